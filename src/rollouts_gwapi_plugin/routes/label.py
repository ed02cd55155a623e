"""The in-progress label and the annotation beside it (decision D33).

The label is on while something of any Rollout is on the route; the annotation lists which: `shop/web`, and for a
Rollout with a label of its own `shop/web:example.com/busy=yes`, so that whoever leaves takes off just what nobody else
wears. A value that the user gave the label meanwhile is the user's.

A label without our annotation is the user's, but for one that has exactly the key and the value that the Rollout is
configured to set: the Go plugin leaves that behind, and a mark of something in progress where nothing is would hold
back whoever goes by it. It is put on the list while something of the Rollout stands on the route, and goes after that.
"""

from collections.abc import Mapping
from typing import Final

from rollouts_gwapi_plugin.model.config import DEFAULT_LABEL_KEY, DEFAULT_LABEL_VALUE
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.desired import Label

ANNOTATION: Final = "rollouts.argoproj.io/gatewayapi-canary-rollouts"
_DEFAULT: Final = Label(DEFAULT_LABEL_KEY, DEFAULT_LABEL_VALUE)


def wearers(annotations: Mapping[str, object]) -> dict[str, Label]:
    """Return the Rollouts on the list, each with the label that it wears."""
    result = {}
    for entry in str(annotations.get(ANNOTATION, "")).split(","):
        rollout, _, worn = entry.strip().partition(":")
        key, _, value = worn.partition("=")
        if rollout:
            result[rollout] = Label(key, value) if key else _DEFAULT
    return result


def _text(listed: Mapping[str, Label]) -> str:
    """Return the annotation's text; the default label is not spelled out."""
    common = (_DEFAULT.key, _DEFAULT.value)
    return ",".join(
        rollout if (label.key, label.value) == common else f"{rollout}:{label.key}={label.value}"
        for rollout, label in sorted(listed.items())
    )


def mark_in_progress(route: Route, label: Label | None, rollout: str, *, standing: bool) -> Route:
    """Return the route with the Rollout on or off the list; the same object where that is so already.

    Without a label, or with one that is switched off, the Rollout is only taken off the list.
    """
    labels = dict(route.metadata.labels or {})
    annotations = dict(route.metadata.annotations or {})
    listed = wearers(annotations)
    wears = label if label is not None and label.enabled else None
    if not listed and (wears is None or labels.get(wears.key, wears.value) != wears.value):
        return route
    wanted = {other: worn for other, worn in listed.items() if other != rollout}
    if standing and wears is not None:
        wanted[rollout] = wears
        labels.setdefault(wears.key, wears.value)
    for worn in (listed.get(rollout), label):
        _take_off(labels, worn, wanted)
    if wanted:
        annotations[ANNOTATION] = _text(wanted)
    else:
        annotations.pop(ANNOTATION, None)
    return _with(route, labels, annotations)


def _take_off(labels: dict[str, str], worn: Label | None, wanted: Mapping[str, Label]) -> None:
    """Take off a label that nobody on the list wears; one that others wear with another value gets that."""
    if worn is None or labels.get(worn.key) != worn.value:
        return
    values = {other.value for other in wanted.values() if other.key == worn.key}
    if not values:
        labels.pop(worn.key)
    elif worn.value not in values:
        labels[worn.key] = min(values)


def _with(route: Route, labels: dict[str, str], annotations: dict[str, str]) -> Route:
    maps = (("labels", route.metadata.labels, labels), ("annotations", route.metadata.annotations, annotations))
    fields = {field: new for field, old, new in maps if new != (old or {})}
    if not fields:
        return route
    metadata = route.metadata.replace(**fields)
    # An empty map that was not there before our first write does not stay behind.
    gone = [field for field, new in fields.items() if not new]
    return route.replace(metadata=metadata.without(*gone) if gone else metadata)
