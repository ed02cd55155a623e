"""The metrics that Prometheus reads from `/metrics` on a port of its own.

Each instance has its own registry, so that one process (and a test) can have several. Labels have few values: methods,
verbs, plurals, status codes; never names of objects, of which a cluster has any number. Traffic comes first: a port
that can't be had (an old process still has it, or a second plugin with the same `args:`) is told once and stops no
call; each call tries it again, so metrics are there once the port is free.
"""

import errno
import threading

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, start_http_server

from rollouts_gwapi_plugin.log import get_logger
from rollouts_gwapi_plugin.observe.metrics import Metrics

_CONFLICT = 409
# All addresses of the pod: the first takes IPv4, too; the second is for nodes without IPv6.
_EVERYWHERE = ("::", "0.0.0.0")  # noqa: S104 - Prometheus comes from another pod
# From a no-change call on a near API server to the client's own time limits.
_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

log = get_logger()


class PrometheusMetrics(Metrics):
    """Counts, and serves what it counted."""

    def __init__(self, port: int, address: str = "") -> None:
        self._port = port
        self._addresses = (address,) if address else _EVERYWHERE
        self._served_at: int | None = None
        self._serving = threading.Lock()
        self._registry = registry = CollectorRegistry()
        prefix = "rollouts_gwapi"
        self._calls = Counter(f"{prefix}_calls", "Calls of the controller.", ["method", "outcome"], registry=registry)
        self._call_seconds = Histogram(
            f"{prefix}_call_seconds", "Time of a call.", ["method"], buckets=_SECONDS, registry=registry
        )
        self._requests = Counter(
            f"{prefix}_api_requests",
            "Requests to the API server; code 0 means no answer.",
            ["verb", "resource", "code"],
            registry=registry,
        )
        self._request_seconds = Histogram(
            f"{prefix}_api_request_seconds", "Time of a request.", ["verb"], buckets=_SECONDS, registry=registry
        )
        self._waited = Counter(
            f"{prefix}_limiter_wait_seconds", "Time that requests waited for kubeClientQPS.", registry=registry
        )
        self._conflicts = Counter(
            f"{prefix}_conflicts", "Writes refused since somebody else wrote.", ["resource"], registry=registry
        )
        self._events_dropped = Counter(
            f"{prefix}_events_dropped", "Kubernetes Events that could not be made.", registry=registry
        )
        ProcessCollector(registry=registry)
        refusal = self._serve()
        if refusal:
            log.warning(
                "metrics can't be served; weights are set all the same, and each call tries the port again",
                port=port,
                cause=refusal,
                remedy="give each plugin its own --metrics-port in args:; an old process frees its port when it ends",
            )

    @property
    def port(self) -> int | None:
        """The port that is served, also where 0 asked for any free one; None while it can't be had."""
        return self._served_at

    def _serve(self) -> str:
        """Listen where that was not to be had before; return why it still is not, empty where it is."""
        with self._serving:
            if self._served_at is not None:
                return ""
            refusal = ""
            for address in self._addresses:
                try:
                    server, _ = start_http_server(self._port, address, self._registry)
                except OSError as error:
                    refusal = str(error)
                    if error.errno == errno.EADDRINUSE:
                        # Who has it may hold one family only; the other alone would be half of it.
                        break
                    continue
                except (OverflowError, RuntimeError) as error:
                    # The port is none, or there is no thread left for it.
                    return str(error)
                self._served_at = int(server.server_port)
                return ""
            return refusal

    def call_done(self, method: str, outcome: str, seconds: float) -> None:
        """Count a call of the host."""
        self._calls.labels(method, outcome).inc()
        self._call_seconds.labels(method).observe(seconds)
        if self._served_at is None and not self._serve():
            log.info("metrics are served now", port=self._served_at)

    def api_request(self, verb: str, resource: str, status: int, seconds: float, waited: float) -> None:
        """Count an API request."""
        self._requests.labels(verb, resource, str(status)).inc()
        self._request_seconds.labels(verb).observe(seconds)
        if waited:
            self._waited.inc(waited)
        if status == _CONFLICT:
            self._conflicts.labels(resource).inc()

    def event_dropped(self) -> None:
        """Count an Event that was not made."""
        self._events_dropped.inc()
