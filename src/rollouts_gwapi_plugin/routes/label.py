"""The in-progress label and the annotation beside it (decision D33).

The label is on while something of any Rollout is on the route; the annotation lists which. A label without our
annotation is the user's, and then neither is touched; nor is a value that the user gave it meanwhile.
"""

from typing import Final

from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.desired import Label

ANNOTATION: Final = "rollouts.argoproj.io/gatewayapi-canary-rollouts"


def mark_in_progress(route: Route, label: Label | None, rollout: str, *, standing: bool) -> Route:
    """Return the route with the Rollout on or off the list; the same object where that is so already.

    Without a label (switched off) the Rollout's entry is only taken off the list.
    """
    labels = dict(route.metadata.labels or {})
    annotations = dict(route.metadata.annotations or {})
    listed = {entry for entry in annotations.get(ANNOTATION, "").split(",") if entry}
    key = label.key if label else None
    if not listed and (key is None or key in labels):
        return route
    wanted = listed | {rollout} if standing and label else listed - {rollout}
    if wanted:
        annotations[ANNOTATION] = ",".join(sorted(wanted))
        if label:
            labels.setdefault(label.key, label.value)
    else:
        annotations.pop(ANNOTATION, None)
        if label is not None and labels.get(label.key) == label.value:
            labels.pop(label.key)
    return _with(route, labels, annotations)


def _with(route: Route, labels: dict[str, str], annotations: dict[str, str]) -> Route:
    maps = (("labels", route.metadata.labels, labels), ("annotations", route.metadata.annotations, annotations))
    fields = {field: new for field, old, new in maps if new != (old or {})}
    if not fields:
        return route
    metadata = route.metadata.replace(**fields)
    # An empty map that was not there before our first write does not stay behind.
    gone = [field for field, new in fields.items() if not new]
    return route.replace(metadata=metadata.without(*gone) if gone else metadata)
