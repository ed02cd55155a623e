"""Rollouts with in-progress labels of their own on one route: the list says who, not which label (D33)."""

from pathlib import Path

import pytest
from tests.service.world import Json, Shop, route, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.routes.label import ANNOTATION


def labelled(key: str) -> Json:
    """Make a configuration with this label."""
    return {"httpRoute": "web", "inProgressLabelKey": key, "inProgressLabelValue": "yes"}


@pytest.fixture
def two(api: ApiServer, tmp_path: Path) -> list[Shop]:
    """Give two Rollouts of one process in the middle of an update, each with a label of its own."""
    api.update(route(rule("s100 c0"), rule("t100 d0")))
    first = Shop(api, tmp_path, config=labelled("example.com/first"))
    second = Shop(api, tmp_path, config=labelled("example.com/second"))
    second.metadata, second.canary = {"name": "api", "uid": "uid-api"}, {"stableService": "t", "canaryService": "d"}
    second._router = first.router
    first.weight(20)
    second.weight(30)
    assert {"example.com/first": "yes", "example.com/second": "yes"} == marks(api)
    return [first, second]


def marks(api: ApiServer) -> Json:
    """Return the route's labels; there is no list where there is none."""
    metadata = api.read("HTTPRoute", "shop", "web")["metadata"]
    labels: Json = metadata.get("labels") or {}
    assert bool(labels) or ANNOTATION not in (metadata.get("annotations") or {})
    return labels


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_last_one_takes_off_the_others_labels_too(api: ApiServer, two: list[Shop], order: tuple[int, int]) -> None:
    """Whoever leaves first."""
    for one in order:
        two[one].weight(0)

    assert {} == marks(api)


def test_after_a_restart_each_call_tells_its_label_anew(api: ApiServer, two: list[Shop]) -> None:
    """A Rollout that is done is reconciled, too, when the controller starts."""
    first, second = two
    first.weight(0)
    first.restart()
    second._router = first.router
    second.weight(30)
    first.weight(0)
    second.weight(0)

    assert {} == marks(api)


def test_a_label_that_the_user_set_to_another_value_stays(api: ApiServer, two: list[Shop]) -> None:
    """Only what was put there goes."""
    first, second = two
    first.weight(0)
    api.edit(
        "HTTPRoute", "shop", "web", lambda value: value["metadata"]["labels"].update({"example.com/first": "mine"})
    )
    second.weight(0)

    assert {"example.com/first": "mine"} == marks(api)


def test_a_label_that_changes_midway_goes_in_the_end(api: ApiServer, two: list[Shop]) -> None:
    """The configuration names another one in the middle of the update."""
    first, second = two
    first.config = labelled("example.com/third")
    first.weight(40)
    assert "example.com/third" in marks(api)
    first.weight(0)
    second.weight(0)

    assert {} == marks(api)
