"""What is counted, for whoever serves it: the calls of the host and the requests to the API server.

`Metrics` counts nothing and costs nothing; `start_metrics` gives the one that Prometheus reads if a port was asked for,
and only then is the Prometheus library imported.
"""


class Metrics:
    """Takes note of what happens; this one takes none. Its methods never raise."""

    def call_done(self, method: str, outcome: str, seconds: float) -> None:
        """Take note of one call of the host: its outcome is `ok` or the class of the error."""

    def api_request(self, verb: str, resource: str, status: int, seconds: float, waited: float) -> None:
        """Take note of one API request; give this method to the client as its `on_request`."""

    def event_dropped(self) -> None:
        """Take note of a Kubernetes Event that could not be made."""


def start_metrics(port: int | None) -> Metrics:
    """Return metrics that are served on a port, or, without one, metrics that count nothing; a busy port is told."""
    if port is None:
        return Metrics()
    # The library and its HTTP server cost 40 ms of the start; few ask for them.
    from rollouts_gwapi_plugin.observe.prometheus import PrometheusMetrics  # noqa: PLC0415 - as said above

    return PrometheusMetrics(port)
