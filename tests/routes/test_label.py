"""The in-progress label of several Rollouts on one route, each with a label of its own or the common one (D33)."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.service.world import route, rule

from rollouts_gwapi_plugin.model.routes import Route, parse_route
from rollouts_gwapi_plugin.routes.desired import Label
from rollouts_gwapi_plugin.routes.label import ANNOTATION, mark_in_progress, wearers

KEYS = ("rollouts.argoproj.io/gatewayapi-canary", "example.com/busy", "team/x")
VALUES = ("in-progress", "yes")
ROLLOUTS = ("shop/a", "shop/b", "shop/c")
labels = st.builds(Label, st.sampled_from(KEYS), st.sampled_from(VALUES), st.just(value=True))


def labelled(**metadata: Any) -> Route:
    """Make a route with this metadata."""
    value = route(rule("s100 c0"))
    value["metadata"] |= metadata
    return parse_route(value)


@settings(max_examples=300)
@given(
    worn=st.tuples(labels, labels, labels),
    calls=st.lists(st.tuples(st.sampled_from(range(3)), st.booleans(), labels | st.none()), max_size=12),
)
def test_whatever_labels_they_wear_the_last_one_leaves_nothing(
    worn: tuple[Label, ...], calls: list[tuple[int, bool, Label | None]]
) -> None:
    """While one stands there its key is on, no key without a wearer is, and in the end the route is as it was."""
    before = now = labelled(labels={"app": "web"})
    current = list(worn)
    standing: set[int] = set()
    for who, stands, changed in calls:
        # The configuration may change at any time.
        current[who] = changed or current[who]
        now = mark_in_progress(now, current[who], ROLLOUTS[who], standing=stands)
        standing = standing | {who} if stands else standing - {who}
        on = now.metadata.labels or {}
        listed = wearers(now.metadata.annotations or {})

        assert {ROLLOUTS[one] for one in standing} == set(listed)
        assert {label.key for label in listed.values()} == set(on) - {"app"}
        assert all(on[label.key] in {other.value for other in listed.values()} for label in listed.values())
        assert now is mark_in_progress(now, current[who], ROLLOUTS[who], standing=stands)
    for who in range(3):
        now = mark_in_progress(now, current[who], ROLLOUTS[who], standing=False)

    assert before.dump() == now.dump()


def test_a_label_that_the_go_plugin_left_goes_with_the_update() -> None:
    """It says that something is in progress; once nothing is it would hold back whoever goes by it."""
    label = Label("k", "v")
    left = labelled(labels={"k": "v"})
    during = mark_in_progress(left, label, "shop/a", standing=True)

    assert (during.metadata.annotations or {})[ANNOTATION] == "shop/a:k=v"
    assert mark_in_progress(during, label, "shop/a", standing=False).dump() == labelled().dump()
    assert mark_in_progress(left, label, "shop/a", standing=False).dump() == labelled().dump()


def test_a_label_that_is_not_just_so_is_the_users() -> None:
    """Another value or another key is never touched, nor is any while the label is switched off."""
    label = Label("k", "v")
    for users, ours in (({"k": "mine"}, label), ({"other": "v"}, None), ({"k": "v"}, Label("k", "v", enabled=False))):
        raw = labelled(labels=users)
        for stands in (True, False):
            assert mark_in_progress(raw, ours, "shop/a", standing=stands) is raw


def test_a_list_without_labels_is_of_the_default_one() -> None:
    """Spaces and empty entries are nothing; who wears another label is listed with it."""
    listed = wearers({ANNOTATION: " shop/a, ,shop/b:example.com/busy=yes,"})

    assert listed == {"shop/a": Label(KEYS[0], "in-progress"), "shop/b": Label("example.com/busy", "yes")}
