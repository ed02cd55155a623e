"""The in-progress label and the annotation beside it (decision D33).

The label is on while something of any Rollout is on the route; the annotation lists which. A label without our
annotation is the user's, and then neither is touched; nor is a value that the user gave it meanwhile. Rollouts of one
route may name different labels: the list does not say which, so only the default one is known to be others'.
"""

from collections.abc import Iterable
from typing import Final

from rollouts_gwapi_plugin.model.config import DEFAULT_LABEL_KEY, DEFAULT_LABEL_VALUE
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.desired import Label

ANNOTATION: Final = "rollouts.argoproj.io/gatewayapi-canary-rollouts"
_DEFAULT: Final = Label(DEFAULT_LABEL_KEY, DEFAULT_LABEL_VALUE)


def mark_in_progress(route: Route, label: Label | None, rollout: str, *, standing: bool) -> Route:
    """Return the route with the Rollout on or off the list; the same object where that is so already.

    Without a label, or with one that is switched off, the Rollout is only taken off the list.
    """
    labels = dict(route.metadata.labels or {})
    annotations = dict(route.metadata.annotations or {})
    listed = {entry.strip() for entry in annotations.get(ANNOTATION, "").split(",")} - {""}
    wears = label is not None and label.enabled
    # Nobody is listed: there is nothing to take off, and a label that stands there all the same is the user's.
    if not listed and (label is None or not wears or label.key in labels):
        return route
    wanted = listed | {rollout} if standing and wears else listed - {rollout}
    if not wanted:
        annotations.pop(ANNOTATION, None)
        _take_off(labels, label, _DEFAULT)
    else:
        annotations[ANNOTATION] = ",".join(sorted(wanted))
        if label is not None and rollout in wanted:
            labels.setdefault(label.key, label.value)
        elif label is not None and label.key != _DEFAULT.key and labels.get(_DEFAULT.key) == _DEFAULT.value:
            _take_off(labels, label)
    return _with(route, labels, annotations)


def without_labels(before: Route, after: Route, worn: Iterable[Label]) -> Route:
    """Return the route as it is to be, without labels that Rollouts wore on it, where the list has just become empty.

    `worn` are labels of Rollouts that left earlier: the list does not say which label each had.
    """
    if not (before.metadata.annotations or {}).get(ANNOTATION) or ANNOTATION in (after.metadata.annotations or {}):
        return after
    labels = dict(after.metadata.labels or {})
    _take_off(labels, *worn)
    return _with(after, labels, dict(after.metadata.annotations or {}))


def _take_off(labels: dict[str, str], *ours: Label | None) -> None:
    for label in ours:
        if label is not None and labels.get(label.key) == label.value:
            labels.pop(label.key)


def _with(route: Route, labels: dict[str, str], annotations: dict[str, str]) -> Route:
    maps = (("labels", route.metadata.labels, labels), ("annotations", route.metadata.annotations, annotations))
    fields = {field: new for field, old, new in maps if new != (old or {})}
    if not fields:
        return route
    metadata = route.metadata.replace(**fields)
    # An empty map that was not there before our first write does not stay behind.
    gone = [field for field, new in fields.items() if not new]
    return route.replace(metadata=metadata.without(*gone) if gone else metadata)
