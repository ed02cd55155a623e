"""A gRPC backend that answers every unary call with the message it got, and names itself in the metadata.

As `backends.EchoBackend`, for gRPC without TLS: the name is in the initial metadata (`x-backend`), and arrivals are
counted by `x-request-id`.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Self

import grpc

from rollouts_gwapi_plugin.embedded.backends import NAME_HEADER, Arrivals, Received

# As many calls can be under way as a gateway forwards at once.
THREADS = 32
# Calls that are under way at the end have so long.
STOP_SECONDS = 1.0


class GrpcBackend:
    """A backend of a name; it listens while its context is open."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.arrivals = Arrivals()
        self._server = grpc.server(
            ThreadPoolExecutor(THREADS, thread_name_prefix=f"echo-{name}"),
            handlers=[_Handlers(self)],
            # Another process must never get a share of our port's connections.
            options=(("grpc.so_reuseport", 0),),
        )
        self._port = self._server.add_insecure_port("127.0.0.1:0")

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return "127.0.0.1", self._port

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop(STOP_SECONDS).wait()


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, backend: GrpcBackend) -> None:
        self._backend = backend

    def service(self, handler_call_details: Any) -> Any:
        """Take every method as a unary one."""
        received = Received(
            "POST",
            handler_call_details.method,
            {key: value for key, value in handler_call_details.invocation_metadata if isinstance(value, str)},
        )
        return grpc.unary_unary_rpc_method_handler(partial(self._echo, received))

    def _echo(self, received: Received, message: bytes, context: Any) -> bytes:
        self._backend.arrivals.take(received)
        context.send_initial_metadata(((NAME_HEADER, self._backend.name),))
        return message
