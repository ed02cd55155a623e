"""One destination of a route, and which destinations are meant.

A destination is plain JSON (`DestinationReference`) and is never changed. `Wanted` describes one as far as it is known;
`effective_weights` reads weights as Gloo does: the sum is 100, absent and 0 are the same, and destinations without a
weight share what the others leave.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.routes.canonical import BackendIdentity

SERVICE: Final = "SERVICE"
# The weights of a route's destinations add up to this.
FULL: Final = 100
Place = tuple[str, str, str]


def kind_of(raw: JsonObject) -> str:
    """Return the kind with the API's default."""
    return raw.get("kind") or SERVICE


def name_of(raw: JsonObject) -> str:
    """Return the name of the object; empty for a destination that is none (a Lambda function)."""
    return str((raw.get("ref") or {}).get("name") or "")


def place_of(raw: JsonObject, namespace: str) -> Place:
    """Return kind, namespace (absent: the RouteTable's) and cluster (absent: the RouteTable's)."""
    ref = raw.get("ref") or {}
    return kind_of(raw), ref.get("namespace") or namespace, ref.get("cluster") or ""


def port_of(raw: JsonObject) -> str | int | None:
    """Return the port's name or number."""
    port = raw.get("port") or {}
    return port.get("name") or port.get("number") or None


def service_identity(raw: JsonObject, namespace: str) -> BackendIdentity:
    """Return the identity under which the ledger has a destination."""
    kind, where, _ = place_of(raw, namespace)
    return "", kind, where, name_of(raw)


def without_weight(raw: JsonObject) -> JsonObject:
    """Return the destination as a plain reference."""
    return {field: value for field, value in raw.items() if field != "weight"}


def with_weight(raw: JsonObject, weight: int) -> JsonObject:
    """Return the destination with the weight; the same object where it has it."""
    return raw if raw.get("weight") == weight else {**raw, "weight": weight}


def same(left: JsonObject, right: JsonObject, namespace: str) -> bool:
    """Whether two destinations are the same modulo the API's defaults, weights aside."""
    return _canonical(left, namespace) == _canonical(right, namespace)


def _canonical(raw: JsonObject, namespace: str) -> JsonObject:
    result = {field: value for field, value in without_weight(raw).items() if value not in (None, {}, "")}
    kind, where, cluster = place_of(raw, namespace)
    ref = {**(raw.get("ref") or {}), "namespace": where, "cluster": cluster}
    return {**result, "kind": kind, "ref": ref}


def effective_weights(destinations: Sequence[JsonObject]) -> list[int]:
    """Return each destination's part of 100; one without a weight has its part of the rest."""
    weights = [int(raw.get("weight") or 0) for raw in destinations]
    absent = weights.count(0)
    rest = max(0, FULL - sum(weights))
    return [weight or rest // absent for weight in weights]


@dataclass(frozen=True)
class Wanted:
    """A destination as far as it is known; what is None is not asked for."""

    name: str
    kind: str | None = None
    namespace: str | None = None
    cluster: str | None = None
    port: str | int | None = None
    subset: tuple[tuple[str, str], ...] | None = None

    @property
    def known(self) -> int:
        """How much is known."""
        return sum(getattr(self, field.name) is not None for field in fields(self))

    def matches(self, raw: JsonObject, table_namespace: str) -> bool:
        """Whether the destination is one of these."""
        kind, namespace, cluster = place_of(raw, table_namespace)
        subset = tuple(sorted((raw.get("subset") or {}).items()))
        found = Wanted(name_of(raw), kind, namespace, cluster, port_of(raw), subset)
        return all(getattr(self, field.name) in (None, getattr(found, field.name)) for field in fields(self))
