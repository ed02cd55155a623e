"""Without a port nothing is counted and nothing loaded; with one, Prometheus reads all of it."""

import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.metrics import MetricWrapperBase

from rollouts_gwapi_plugin import errors, log
from rollouts_gwapi_plugin.observe.metrics import Metrics, start_metrics
from rollouts_gwapi_plugin.observe.prometheus import PrometheusMetrics


@pytest.fixture
def metrics() -> PrometheusMetrics:
    """Serve metrics on a free port, until the process ends."""
    return PrometheusMetrics(0, "127.0.0.1")


def scrape(metrics: PrometheusMetrics) -> dict[str, float]:
    """Return our samples as Prometheus reads them."""
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    samples = re.findall(r"^(rollouts_gwapi_\S+) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in samples if "_created" not in name}


def test_calls_are_counted(metrics: PrometheusMetrics) -> None:
    """Calls are counted by method and outcome, and timed by method."""
    metrics.call_done("SetWeight", "ok", 0.003)
    metrics.call_done("SetWeight", "RouteError", 0.2)
    found = scrape(metrics)

    assert found['rollouts_gwapi_calls_total{method="SetWeight",outcome="ok"}'] == 1
    assert found['rollouts_gwapi_calls_total{method="SetWeight",outcome="RouteError"}'] == 1
    assert found['rollouts_gwapi_call_seconds_bucket{le="0.005",method="SetWeight"}'] == 1
    assert found['rollouts_gwapi_call_seconds_count{method="SetWeight"}'] == 2


def test_requests_waits_and_conflicts_are_counted(metrics: PrometheusMetrics) -> None:
    """Requests are counted by verb, kind and code, waits are summed, a 409 is a conflict."""
    metrics.api_request("get", "httproutes", 200, 0.001, 0.0)
    metrics.api_request("update", "httproutes", 409, 0.001, 1.5)
    metrics.api_request("update", "httproutes", 0, 10.0, 0.25)
    metrics.event_dropped()
    found = scrape(metrics)

    assert found['rollouts_gwapi_api_requests_total{code="200",resource="httproutes",verb="get"}'] == 1
    assert found['rollouts_gwapi_api_requests_total{code="0",resource="httproutes",verb="update"}'] == 1
    assert found['rollouts_gwapi_api_request_seconds_count{verb="update"}'] == 2
    assert found["rollouts_gwapi_limiter_wait_seconds_total"] == 1.75
    assert found['rollouts_gwapi_conflicts_total{resource="httproutes"}'] == 1
    assert found["rollouts_gwapi_events_dropped_total"] == 1


def test_a_busy_port_is_told_once_and_tried_again_by_each_call(capsys: pytest.CaptureFixture[str]) -> None:
    """Counting goes on without the port; once it is free, the next call has all of it served."""
    log.configure("text", stream=sys.stdout)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        metrics = PrometheusMetrics(port, "127.0.0.1")
        metrics.call_done("SetWeight", "ok", 0.003)
        metrics.call_done("SetWeight", "ok", 0.003)
        served = metrics.port
    metrics.call_done("VerifyWeight", "ok", 0.003)
    metrics.call_done("VerifyWeight", "ok", 0.003)
    found = scrape(metrics)
    told = capsys.readouterr().out.splitlines()

    assert (served, metrics.port) == (None, port)
    assert found['rollouts_gwapi_calls_total{method="SetWeight",outcome="ok"}'] == 2
    assert found['rollouts_gwapi_calls_total{method="VerifyWeight",outcome="ok"}'] == 2
    assert [line.partition(" port=")[0] for line in told] == [
        "[WARN] metrics can't be served; weights are set all the same, and each call tries the port again",
        "[INFO] metrics are served now",
    ]
    assert re.search(rf" port={port} cause=.*in use.* remedy=.*its own --metrics-port", told[0])


def test_a_port_that_is_none_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the system says of the port is told."""
    log.configure("text", stream=sys.stdout)
    metrics = start_metrics(70000)
    metrics.call_done("SetWeight", "ok", 0.1)

    assert re.search(r"metrics can't be served; .* port=70000 cause=.*0-65535", capsys.readouterr().out)


def test_the_documentation_has_every_metric() -> None:
    """Names, types and labels in docs/metrics.md are those that are served, and the errors those that there are."""
    page = (Path(__file__).parents[2] / "docs/metrics.md").read_text()
    rows = re.findall(r"^\| `(rollouts_gwapi_\w+)` \| (\w+) \| (.*?) ?\|", page, re.MULTILINE)
    collectors = PrometheusMetrics(0, "127.0.0.1")._registry._collector_to_names
    ours = [one for one in collectors if isinstance(one, MetricWrapperBase)]
    served = {f"{one._name}{'_total' if one._type == 'counter' else ''}": (one._type, *one._labelnames) for one in ours}
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    told = {kind.__name__ for kind in kinds if not issubclass(kind, errors.WireError)} - {"PluginError", "KubeError"}

    assert {name: (kind, *re.findall(r"\w+", labels)) for name, kind, labels in rows} == served
    assert told <= set(re.findall(r"`(\w+)`", page))


def test_without_a_port_nothing_is_counted() -> None:
    """Without a port all methods do nothing, and the library is not loaded."""
    metrics = start_metrics(None)
    metrics.call_done("SetWeight", "ok", 0.1)
    metrics.api_request("get", "httproutes", 200, 0.1, 0.0)
    metrics.event_dropped()
    program = (
        "import sys; from rollouts_gwapi_plugin.observe.metrics import start_metrics; import "
        "rollouts_gwapi_plugin.observe.events; start_metrics(None); print('prometheus_client' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert (type(metrics), done.stdout.strip()) == (Metrics, "False")
