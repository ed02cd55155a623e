"""The metrics that Prometheus reads from `/metrics` on a port of its own.

Each instance has its own registry, so that one process (and a test) can have several. Labels have few values: methods,
verbs, plurals, status codes; never names of objects, of which a cluster has any number.
"""

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, start_http_server

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.observe.metrics import Metrics

_CONFLICT = 409
# From a no-change call on a near API server to the client's own time limits.
_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class PrometheusMetrics(Metrics):
    """Counts, and serves what it counted."""

    def __init__(self, port: int, address: str = "0.0.0.0") -> None:  # noqa: S104 - Prometheus comes from another pod
        registry = CollectorRegistry()
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
        try:
            self._server, self._thread = start_http_server(port, address, registry)
        except (OSError, OverflowError) as error:
            raise ConfigError(f"metrics can't be served on port {port}: {error}; choose another port") from error

    @property
    def port(self) -> int:
        """The port that is served, also where 0 asked for any free one."""
        return int(self._server.server_port)

    def call_done(self, method: str, outcome: str, seconds: float) -> None:
        """Count a call of the host."""
        self._calls.labels(method, outcome).inc()
        self._call_seconds.labels(method).observe(seconds)

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

    def close(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
