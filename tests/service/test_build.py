"""The service as `serve` has it built."""

import socket

from tests.service.world import Shop

from rollouts_gwapi_plugin.model.settings import ServiceSettings
from rollouts_gwapi_plugin.service import build


def test_a_busy_metrics_port_stops_no_traffic(shop: Shop) -> None:
    """Another plugin, or the one before that is still ending, has the port: weights are set all the same."""
    shop.api.write_kubeconfig(shop.folder / "kubeconfig")
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))  # noqa: S104 - the address that metrics are served on
        taken.listen()
        settings = ServiceSettings(kubeconfig=str(shop.folder / "kubeconfig"), metrics_port=taken.getsockname()[1])
        build(settings).set_weight(shop._weight_call(20, {}))

    assert ["s=80 c=20"] == shop.rules()


def test_events_that_wait_are_made_at_the_end(shop: Shop) -> None:
    """The last call's warning is not lost with the process."""
    shop.config = {"httpRoute": "web", "one": 1, "two": 2}
    shop.api.faults.add(verb="create", plural="events", delay=0.05, times=None)
    shop.weight(20)
    shop.router.close(10)

    assert ["UnknownKey"] * 2 == [event["reason"] for event in shop.api.list("events", "shop")]


def test_an_end_without_a_cluster_is_quick(shop: Shop) -> None:
    """Nothing is connected to for it."""
    assert [] == shop.requests(lambda: shop.router.close(10))
    assert shop.router._connector._cluster is None
