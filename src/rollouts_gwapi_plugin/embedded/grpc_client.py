"""A load's gRPC client: unary calls with an empty message, over one channel (see `clients`)."""

from typing import Any
from urllib.parse import urlsplit

import grpc

from rollouts_gwapi_plugin.embedded.backends import ID_HEADER, NAME_HEADER
from rollouts_gwapi_plugin.embedded.clients import ANSWER_SECONDS, Cohort, Reply
from rollouts_gwapi_plugin.embedded.dataplane.proxy import SERVICE_HEADER

GOOD = 200


class GrpcClient:
    """Calls the method that the cohort's path names; its headers are the metadata."""

    def __init__(self, url: str, cohort: Cohort) -> None:
        # A channel of its own a client, not one shared connection for all.
        self._channel = grpc.insecure_channel(urlsplit(url).netloc, options=(("grpc.use_local_subchannel_pool", 1),))
        self._call: Any = self._channel.unary_unary(cohort.path)
        self._metadata = tuple((name.lower(), value) for name, value in cohort.headers.items())

    def send(self, request_id: str) -> Reply:
        """Make a call and wait for its answer."""
        metadata = (*self._metadata, (ID_HEADER, request_id))
        try:
            _, done = self._call.with_call(b"", metadata=metadata, timeout=ANSWER_SECONDS)
        except grpc.RpcError as error:
            # What a call raises is also the call itself (grpc.Call), with code and details.
            failed: Any = error
            return Reply(0, error=f"{failed.code().name}: {failed.details()}")
        found = dict(done.initial_metadata())
        return Reply(GOOD, found.get(NAME_HEADER, ""), found.get(SERVICE_HEADER, ""))

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()
