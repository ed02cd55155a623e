"""The gRPC side of the data plane: takes unary calls, asks for a decision, forwards and mirrors.

Takes a function that decides on a `GrpcCall` and one that knows the address behind a Service. Messages pass as bytes,
so no service has to be known. A call is sent once; what can't be sent gets the status that Envoy gives (no route:
UNIMPLEMENTED, no endpoint: UNAVAILABLE, anything else wrong with the route: UNKNOWN). The library does not tell the
`:authority`, so hostnames of routes match nothing here.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import Any

import grpc

from rollouts_gwapi_plugin.embedded.dataplane.decision import Decision, Forward
from rollouts_gwapi_plugin.embedded.dataplane.endpoints import Address
from rollouts_gwapi_plugin.embedded.dataplane.filters import modify_response
from rollouts_gwapi_plugin.embedded.dataplane.proxy import BACKEND_SECONDS, SERVICE_HEADER, Resolve
from rollouts_gwapi_plugin.embedded.dataplane.request import GrpcCall, Pairs

# A load generator's workers, and some to spare: a call holds a thread until it is answered.
THREADS = 32
# Mirrored calls that are under way; one more is dropped, so that a slow mirror never grows the process.
MAX_COPIES = 1000
# Calls that are under way at the end have so long.
STOP_SECONDS = 1.0
# Another process must never get a share of our port's connections.
OPTIONS = (("grpc.so_reuseport", 0),)
# The library sets these by itself on each hop.
_OWN_KEYS = ("grpc-", "user-agent", "te", "content-type")
_STATUSES = {
    HTTPStatus.NOT_FOUND: grpc.StatusCode.UNIMPLEMENTED,
    HTTPStatus.SERVICE_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
}

DecideCall = Callable[[GrpcCall], Decision]


class GrpcListener:
    """One listener of a Gateway for gRPC without TLS, on a port of the loopback."""

    def __init__(self, name: str, decide: DecideCall, resolve: Resolve, port: int = 0) -> None:
        self.name = name
        self._channels = _Channels()
        self._server = grpc.server(
            ThreadPoolExecutor(THREADS, thread_name_prefix=f"listener-{name}"),
            handlers=[_Handlers(decide, resolve, self._channels)],
            options=OPTIONS,
        )
        self._port = self._server.add_insecure_port(f"127.0.0.1:{port}")

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"grpc://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Begin to serve."""
        self._server.start()

    def stop(self) -> None:
        """Stop to serve."""
        self._server.stop(STOP_SECONDS).wait()
        self._channels.close()


class _Channels:
    """One channel an address."""

    def __init__(self) -> None:
        self._by_address: dict[Address, grpc.Channel] = {}

    def get(self, address: Address) -> grpc.Channel:
        channel = self._by_address.get(address)
        if channel is None:
            # Of two threads that come here at once one's channel stays unused until the end.
            made = grpc.insecure_channel(f"{address[0]}:{address[1]}")
            channel = self._by_address.setdefault(address, made)
        return channel

    def close(self) -> None:
        for channel in self._by_address.values():
            channel.close()


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, decide: DecideCall, resolve: Resolve, channels: _Channels) -> None:
        self._decide = decide
        self._resolve = resolve
        self._channels = channels
        self._copies: set[Any] = set()

    def service(self, handler_call_details: Any) -> Any:
        """Take every method as a unary one."""
        metadata = tuple(handler_call_details.invocation_metadata)
        return grpc.unary_unary_rpc_method_handler(partial(self._forward, handler_call_details.method, metadata))

    def _forward(self, path: str, metadata: Pairs, message: bytes, context: Any) -> bytes:
        service, _, method = path.strip("/").rpartition("/")
        headers = tuple((key, value) for key, value in metadata if not key.startswith(_OWN_KEYS))
        decision = self._decide(GrpcCall(service, method, headers=headers))
        if not isinstance(decision, Forward):
            return _refuse(context, decision.status, decision.reason)
        address = self._resolve(decision.target)
        if address is None:
            reason = f"Service {decision.target} has no ready endpoint"
            return _refuse(context, HTTPStatus.SERVICE_UNAVAILABLE, reason)
        forwarded = decision.request.headers if isinstance(decision.request, GrpcCall) else ()
        for mirror in decision.mirrors:
            if (copy := self._resolve(mirror)) is not None:
                self._mirror(self._call(copy, path), message, forwarded)
        send = partial(self._call(address, path).with_call, message, metadata=forwarded, timeout=BACKEND_SECONDS)
        return self._answer(decision, send, context)

    def _mirror(self, call: Any, message: bytes, metadata: Pairs) -> None:
        """Send a copy and forget its answer."""
        if len(self._copies) >= MAX_COPIES:
            return
        copy = call.future(message, metadata=metadata, timeout=BACKEND_SECONDS)
        # A call that nobody holds is cancelled by the library.
        self._copies.add(copy)
        copy.add_done_callback(self._copies.discard)

    def _call(self, address: Address, path: str) -> Any:
        return self._channels.get(address).unary_unary(path)

    @staticmethod
    def _answer(decision: Forward, send: Callable[[], Any], context: Any) -> bytes:
        try:
            answer, done = send()
        except grpc.RpcError as error:
            # What a call raises is also the call itself (grpc.Call), with code and details.
            failed: Any = error
            context.abort(failed.code(), failed.details())
            raise
        headers = modify_response(tuple(done.initial_metadata()), decision.response_filters)
        context.send_initial_metadata((*headers, (SERVICE_HEADER, decision.target.name)))
        context.set_trailing_metadata(done.trailing_metadata())
        sent: bytes = answer
        return sent


def _refuse(context: Any, status: int, reason: str) -> bytes:
    code = _STATUSES.get(HTTPStatus(status), grpc.StatusCode.UNKNOWN)
    context.abort(code, reason)
    raise AssertionError(f"abort({code}) raises")
