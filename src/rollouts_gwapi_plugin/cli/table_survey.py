"""What stands on a RouteTable, in the words that every kind of route has."""

import json
from collections.abc import Iterator

from rollouts_gwapi_plugin.cli.standing import BackendFound, Known, Role, RouteFound, RuleFound
from rollouts_gwapi_plugin.cli.subject import Subject
from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.gloo.destination import effective_weights, name_of, service_identity
from rollouts_gwapi_plugin.routes.gloo.kept import ANNOTATION
from rollouts_gwapi_plugin.routes.gloo.pair import GlooPair
from rollouts_gwapi_plugin.routes.gloo.standing import TableStanding, take_apart
from rollouts_gwapi_plugin.routes.gloo.table import TableRoute
from rollouts_gwapi_plugin.routes.managed import Owned
from rollouts_gwapi_plugin.routes.record import RecordView
from rollouts_gwapi_plugin.service.targets import Target


def look_at_table(subject: Subject, target: Target, route: Route, view: RecordView, sign: str) -> RouteFound:
    """Look at one RouteTable.

    Raises:
        RouteError: the object has not the API's shape.

    """
    standing = take_apart(route, subject.desired, view)
    pair: GlooPair | None = None
    problem = ""
    try:
        pair, _ = standing.find_pair()
    except RouteError as error:
        problem = str(error)
    names = (pair.stable.name, pair.canary.name) if pair else None
    return RouteFound(target, sign, None, view, route, tuple(_rules(standing, pair)), names, problem)


def kept_for(raw: JsonObject) -> list[str]:
    """Return the Rollouts for which the RouteTable keeps destinations in its annotation."""
    text = ((raw.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION, "")
    try:
        return list(json.loads(text)["rollouts"]) if text else []
    except (ValueError, KeyError, TypeError):
        return []


def _rules(standing: TableStanding, pair: GlooPair | None) -> Iterator[RuleFound]:
    owners = dict(zip(map(id, standing.table["http"]), standing.owners, strict=True))
    weighted = {
        id(item)
        for place, item in enumerate(standing.candidates)
        if pair is not None and standing.is_weighted(place, pair)
    }
    every = [item for items in standing.table.values() for item in items]
    for index, item in enumerate(every):
        owner = owners.get(id(item))
        yield RuleFound(
            index=index,
            place=f"{item.section}[{item.index}]",
            name=item.name or None,
            backends=tuple(_backends(standing, pair, item)),
            weighted=id(item) in weighted,
            owner=owner,
            known=_known(standing, owner) if owner else None,
        )


def _known(standing: TableStanding, owner: Owned) -> Known:
    return Known.LABEL if standing.record_of(owner) is None else Known.RECORD


def _backends(standing: TableStanding, pair: GlooPair | None, item: TableRoute) -> Iterator[BackendFound]:
    for raw, weight in zip(item.destinations, effective_weights(item.destinations), strict=True):
        yield BackendFound(name_of(raw) or "(no object)", weight, _role(standing, pair, raw))


def _role(standing: TableStanding, pair: GlooPair | None, raw: JsonObject) -> Role:
    if pair is not None and pair.is_stable(raw):
        return "stable"
    if pair is not None and pair.is_canary(raw):
        return "canary"
    return "experiment" if service_identity(raw, standing.namespace) in standing.experiments else "other"
