"""VerifyWeight against a RouteTable's status: `common.State` with approval and observed generation (decision D19)."""

from typing import Any

import pytest
from tests.service.gloo.world import GlooShop

from rollouts_gwapi_plugin.model.calls import Verification

YES, NO = Verification.VERIFIED, Verification.NOT_VERIFIED


@pytest.fixture
def impatient(shop: GlooShop) -> GlooShop:
    """Give a world whose VerifyWeight does not wait, at weight 20 (generation 2)."""
    shop.configure(routeTableName="web", verifyWait=0)
    shop.weight(20)
    return shop


def report(shop: GlooShop, field: str = "State", **state: Any) -> None:
    """Write Gloo's status."""
    live = shop.live()
    shop.api.update_status({**live, "status": {"common": {field: state}, "ownedByWorkspace": "shop"}})


def test_without_status_nothing_is_known_and_nothing_blocks(impatient: GlooShop) -> None:
    """Live weights are what counts then."""
    assert YES == impatient.verify(20)
    assert NO == impatient.verify(30)


@pytest.mark.parametrize(
    ("approval", "verified"),
    [("ACCEPTED", YES), (1, YES), ("PENDING", NO), ("INVALID", NO), ("FAILED", NO), ("UNLICENSED", NO), (None, NO)],
)
def test_approvals_of_this_generation(impatient: GlooShop, approval: Any, verified: Verification) -> None:
    """Accepted is usable, refused and pending are not; absent is pending, as in protobuf."""
    report(impatient, observedGeneration=2, **({} if approval is None else {"approval": approval}))

    assert verified == impatient.verify(20)


@pytest.mark.parametrize(("observed", "verified"), [(1, NO), ("1", NO), (2, YES), ("2", YES), (None, NO)])
def test_the_generation_must_be_ours(impatient: GlooShop, observed: Any, verified: Verification) -> None:
    """What Gloo says of an older generation is nothing yet; a number may come as a text."""
    report(impatient, approval="ACCEPTED", **({} if observed is None else {"observedGeneration": observed}))

    assert verified == impatient.verify(20)


def test_an_old_refusal_is_no_refusal(impatient: GlooShop) -> None:
    """Behind is waited for, up to verifyTimeout; then it counts, with a warning."""
    report(impatient, approval="INVALID", observedGeneration=1)
    assert NO == impatient.verify(20)
    impatient.configure(routeTableName="web", verifyWait=0, verifyTimeout=0)

    assert YES == impatient.verify(20)


@pytest.mark.parametrize(("message", "verified"), [("destination c not found", NO), ("route x overlaps", YES)])
def test_a_warning_counts_where_it_names_us(impatient: GlooShop, message: str, verified: Verification) -> None:
    """A warning is of something in effect; one about our destinations is not what was asked for."""
    report(impatient, approval="WARNING", observedGeneration=2, message=message)

    assert verified == impatient.verify(20)


def test_the_lower_case_spelling(impatient: GlooShop) -> None:
    """`state` is read like `State`."""
    report(impatient, "state", approval="INVALID", observedGeneration=2)

    assert NO == impatient.verify(20)


def test_verify_off(impatient: GlooShop) -> None:
    """The switch answers for it."""
    report(impatient, approval="INVALID", observedGeneration=2)
    impatient.configure(routeTableName="web", verify="off")

    assert YES == impatient.verify(20)


def test_it_never_writes_and_never_fails(impatient: GlooShop) -> None:
    """A missing RouteTable, a bad configuration, a refused read: not verified, and no request that writes."""
    calls = impatient.requests(lambda: impatient.verify(55))
    assert not [call for call in calls if not call.startswith(("get", "list"))]
    with impatient.api.deny("get", "routetables"):
        assert NO == impatient.verify(20)
    impatient.configure(routeTableName=3)
    assert NO == impatient.verify(20)
    impatient.configure(routeTableName="gone")
    assert NO == impatient.verify(20)
