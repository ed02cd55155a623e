"""VerifyWeight against the route's status (decision D19), with a clock of the test's."""

from collections.abc import Callable

import pytest
from tests.service.world import Shop, rule

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.apiserver.requests import Request
from rollouts_gwapi_plugin.model.calls import Verification

YES, NO = Verification.VERIFIED, Verification.NOT_VERIFIED
Report = Callable[..., None]


@pytest.fixture
def report(api: ApiServer) -> Report:
    """Give a function that writes a gateway's conditions: `report(1, Accepted="False")` at generation 1."""

    def write(
        generation: int, *, parent: str = "gw", controller: str = "example.com/gateway", **conditions: str
    ) -> None:
        value = api.read("HTTPRoute", "shop", "web")
        listed = [
            {
                "type": type_,
                "status": status.split(":")[0],
                "reason": "Test",
                "message": status.partition(":")[2],
                "observedGeneration": generation,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
            for type_, status in conditions.items()
        ]
        entry = {"parentRef": {"name": parent}, "controllerName": controller, "conditions": listed}
        others = [
            item
            for item in (value.get("status") or {}).get("parents", [])
            if (item["parentRef"]["name"], item["controllerName"]) != (parent, controller)
        ]
        value["status"] = {"parents": [*others, entry]}
        api.update_status(value)

    return write


@pytest.fixture
def impatient(shop: Shop) -> Shop:
    """Give a world whose VerifyWeight does not wait."""
    shop.config = {"httpRoute": "web", "verifyWait": 0}
    return shop


def test_no_parent_reported_is_verified(impatient: Shop) -> None:
    """An implementation that writes no status does not block a rollout."""
    impatient.weight(20)

    assert YES == impatient.verify(20)


def test_a_stale_parent_is_waited_for(impatient: Shop, report: Report) -> None:
    """Behind the generation of our write: not verified; caught up: verified."""
    report(1, Accepted="True")
    impatient.weight(20)
    behind = impatient.verify(20)
    report(2, Accepted="True")

    assert [NO, YES] == [behind, impatient.verify(20)]


def test_a_refusal_stays_not_verified(impatient: Shop, report: Report) -> None:
    """Not Accepted at the current generation."""
    impatient.weight(20)
    report(2, Accepted="False:no regex here")

    assert NO == impatient.verify(20)


@pytest.mark.parametrize(
    ("message", "verdict"), [("Service shop/c not found", NO), ("Service shop/x not found", YES), ("broken", NO)]
)
def test_unresolved_refs_count_if_they_can_be_ours(
    impatient: Shop, report: Report, api: ApiServer, message: str, verdict: Verification
) -> None:
    """A backend of somebody else that is missing does not block this rollout."""
    if "shop/x" in message:
        api.edit("HTTPRoute", "shop", "web", lambda o: o["spec"]["rules"].append(rule("x")))
    impatient.weight(20)
    generation = api.read("HTTPRoute", "shop", "web")["metadata"]["generation"]
    report(generation, Accepted="True", ResolvedRefs=f"False:{message}")

    assert verdict == impatient.verify(20)


def test_a_partially_invalid_route_is_not_verified(impatient: Shop, report: Report) -> None:
    """Some rule was dropped, or an old one is still served."""
    impatient.weight(20)
    report(2, Accepted="True", PartiallyInvalid="True")

    assert NO == impatient.verify(20)


def test_one_parent_of_several_that_is_behind_is_enough(impatient: Shop, report: Report) -> None:
    """All controllers of a parent count; an entry of a parent that the spec has not is left over."""
    impatient.weight(20)
    report(2, Accepted="True")
    report(1, controller="example.com/other", Accepted="True")
    behind = impatient.verify(20)
    report(2, controller="example.com/other", Accepted="True")
    report(1, parent="former", Accepted="False")

    assert [NO, YES] == [behind, impatient.verify(20)]


def test_after_the_timeout_a_stale_parent_counts_as_verified(impatient: Shop, report: Report) -> None:
    """Gateways with a broken observedGeneration do not hold a rollout for ever."""
    report(1, Accepted="True")
    impatient.config["verifyTimeout"] = 0
    impatient.weight(20)

    assert YES == impatient.verify(20)


def test_verify_waits_for_a_gateway_that_is_about_to_catch_up(shop: Shop, api: ApiServer, report: Report) -> None:
    """The controller asks right after the write, and a "no" costs it ten seconds."""
    report(1, Accepted="True")
    shop.config = {"httpRoute": "web", "verifyWait": "20s"}
    shop.weight(20)
    looks: list[str] = []

    def catch_up_before_the_second_look(request: Request) -> bool:
        looks.append(request.plural)
        if len(looks) == 2:
            report(2, Accepted="True")
        return False

    api.faults.add(catch_up_before_the_second_look, times=None)

    assert YES == shop.verify(20)
    assert ["httproutes"] * 2 == looks


def test_verify_does_not_wait_for_what_this_process_did_not_write(shop: Shop, report: Report) -> None:
    """After a restart, or once a write was seen true, a stale status is answered at once."""
    report(1, Accepted="True")
    shop.config = {"httpRoute": "web", "verifyWait": "20s"}
    shop.weight(20)
    shop.restart()

    assert ["get httproutes"] == shop.requests(lambda: shop.verify(20))


def test_verify_off_is_always_verified(shop: Shop) -> None:
    """The switch for gateways whose status is of no use; it costs no request."""
    shop.config = {"httpRoute": "web", "verify": "off"}

    assert YES == shop.verify(99)
    assert [] == shop.requests(lambda: shop.verify(99))
