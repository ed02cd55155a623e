"""The addresses on which metrics are served: IPv6 and IPv4, and IPv4 alone where there is no other."""

import errno
import socket
import urllib.request
from typing import Any

import pytest

from rollouts_gwapi_plugin.observe import prometheus
from rollouts_gwapi_plugin.observe.prometheus import PrometheusMetrics


def has_ipv6() -> bool:
    """Say whether this system has an IPv6 loopback."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


class Serving:
    """Stands in for the library's server: refuses the addresses of a test."""

    def __init__(self, refused: dict[str, Exception]) -> None:
        self.refused = refused
        self.tried: list[str] = []

    def __call__(self, _port: int, address: str, _registry: object) -> tuple[Any, None]:
        """Serve, or raise."""
        self.tried.append(address)
        if address in self.refused:
            raise self.refused[address]
        return type("Server", (), {"server_port": 9090}), None


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_both_families_are_served(host: str) -> None:
    """Without an address given, Prometheus gets there by IPv4 and by IPv6."""
    port = PrometheusMetrics(0).port
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=10) as answer:
        assert b"rollouts_gwapi" in answer.read()


@pytest.mark.parametrize(
    ("error", "tried", "port"),
    [
        (OSError(errno.EAFNOSUPPORT, "no IPv6"), ["::", "0.0.0.0"], 9090),  # noqa: S104 - what is tried
        (OSError(errno.EADDRNOTAVAIL, "IPv6 is off"), ["::", "0.0.0.0"], 9090),  # noqa: S104
        (OSError(errno.EADDRINUSE, "in use"), ["::"], None),
        (RuntimeError("can't start new thread"), ["::"], None),
    ],
)
def test_ipv4_alone_is_for_systems_without_ipv6(
    monkeypatch: pytest.MonkeyPatch, error: Exception, tried: list[str], port: int | None
) -> None:
    """A port that is taken, or a thread that can't be had, is no reason for another address."""
    serving = Serving({"::": error})
    monkeypatch.setattr(prometheus, "start_http_server", serving)
    metrics = PrometheusMetrics(9090)

    assert metrics.port == port
    assert serving.tried[: len(tried)] == tried
    assert set(serving.tried) == set(tried)
