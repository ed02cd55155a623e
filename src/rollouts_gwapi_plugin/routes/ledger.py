"""The ledger's text: a ConfigMap in the routes' namespace, shared by its Rollouts (decisions D5, D8, D30).

Takes the ConfigMap's `data`, returns `Ledger` values for one kind of route; `Ledger.write` gives the new `data` with
only the keys of that kind changed. Each key's value is JSON with `version` on top::

    {"version": 1, "rollouts": {"<namespace>/<name>": {"uid": "…", "routes": {"<route>": …}}}}

A value that is broken, or newer than this program, is a `LedgerError`; the ConfigMap is then left as it is.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import ValidationError

from rollouts_gwapi_plugin.errors import LedgerError, cause
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.rollout import SetHeaderRoute, SetMirrorRoute
from rollouts_gwapi_plugin.routes.desired import ManagedStep
from rollouts_gwapi_plugin.routes.json_text import json_text
from rollouts_gwapi_plugin.routes.record import ManagedRecord, ManagedRecords, RecordView, RouteRecord, RuleMark

VERSION: Final = 1
# The API server refuses a ConfigMap above this many bytes of data.
MAX_DATA_BYTES: Final = 1_048_576
HEADERS: Final = "ManagedHeaderRoutes"
MIRRORS: Final = "ManagedMirrorRoutes"
EXPERIMENTS: Final = "ExperimentBackends"
# The Go plugin's key, up to its version 0.12; only HTTP and GRPC had one.
LEGACY: Final = "ManagedRoutes"
# Its version 0.1 knew one route only and named none: `{"<managed route>": <index>}`.
ANY_ROUTE: Final = ""

Data = Mapping[str, str]


@dataclass(frozen=True)
class RolloutEntries:
    """All routes of one Rollout."""

    uid: str = ""
    routes: Mapping[str, RouteRecord] = field(default_factory=dict)


@dataclass(frozen=True)
class Ledger:
    """The records of one kind of route in one namespace."""

    family: str
    rollouts: Mapping[str, RolloutEntries] = field(default_factory=dict)
    legacy: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def view(self, rollout: str, route: str) -> RecordView:
        """Return what a reconciler may know for this Rollout and route."""
        own = self.rollouts.get(rollout)
        others = [
            entries.routes[route]
            for key, entries in self.rollouts.items()
            if key != rollout and route in entries.routes
        ]
        foreign = tuple(
            mark
            for other in others
            for records in (other.headers, other.mirrors)
            for managed in records.values()
            for mark in managed.rules
        )
        experiments = tuple(dict.fromkeys(frozenset(other.experiments) for other in others))
        legacy = {
            name: places[key] for name, places in self.legacy.items() for key in (ANY_ROUTE, route) if key in places
        }
        record = own.routes.get(route, RouteRecord()) if own else RouteRecord()
        # Experiments have a key of their own: they say nothing of the Rollout's managed routes.
        known = own is not None and any(other.headers or other.mirrors for other in own.routes.values())
        return RecordView(record, known, foreign, experiments, legacy)

    def routes_of(self, rollout: str) -> tuple[str, ...]:
        """Return the routes on which something of the Rollout stands."""
        own = self.rollouts.get(rollout)
        return tuple(own.routes) if own else ()

    def with_record(self, rollout: str, uid: str, route: str, record: RouteRecord) -> "Ledger":
        """Return the ledger with the route's record of this Rollout replaced; an empty one is taken out."""
        own = self.rollouts.get(rollout, RolloutEntries())
        routes = {name: other for name, other in own.routes.items() if name != route}
        if not record.empty:
            routes[route] = record
        rollouts = {key: entries for key, entries in self.rollouts.items() if key != rollout}
        if routes:
            rollouts[rollout] = RolloutEntries(uid, routes)
        return replace(self, rollouts=rollouts)

    def without_legacy(self, names: frozenset[str], route: str) -> "Ledger":
        """Return the ledger without the Go plugin's old entries of these managed routes on this route."""
        legacy = {}
        for name, places in self.legacy.items():
            rest = {key: index for key, index in places.items() if key not in {route, ANY_ROUTE} or name not in names}
            if rest:
                legacy[name] = rest
        return replace(self, legacy=legacy)

    def with_moved_legacy(self, moves: Mapping[str, tuple[int, int]], route: str) -> "Ledger":
        """Return the ledger with old entries that pointed at one place of this route pointing at another one.

        The Go plugin's entries are places in the list of rules: whoever takes a rule out of the list, or puts one in
        before them, moves those of other Rollouts, too. An entry that points elsewhere meanwhile is left as it is.
        """
        legacy = {name: dict(places) for name, places in self.legacy.items()}
        for name, (old, new) in moves.items():
            for key in (route, ANY_ROUTE):
                if legacy.get(name, {}).get(key) == old:
                    legacy[name][key] = new
        return replace(self, legacy=legacy)

    def write(self, data: Data, rollout: str, where: str) -> dict[str, str]:
        """Return `data` with one Rollout's entries of this kind as they should be, and everything else as it was.

        Raises:
            LedgerError: the ConfigMap would be larger than the API takes.

        """
        result = dict(data)
        for key, text in self._texts(data, rollout).items():
            if text is None:
                result.pop(key, None)
            else:
                result[key] = text
        # Half of a surrogate pair in somebody else's value counts as what the API server puts in its place: 3 bytes.
        size = sum(len(text.encode("utf-8", "surrogatepass")) for item in result.items() for text in item)
        if size > MAX_DATA_BYTES:
            raise LedgerError(
                f"{where}: the record of managed routes would need {size} bytes, a ConfigMap holds {MAX_DATA_BYTES};"
                " give some Rollouts a ConfigMap of their own (configMap in the plugin's configuration)"
            )
        return result

    def _texts(self, data: Data, rollout: str) -> dict[str, str | None]:
        own = self.rollouts.get(rollout, RolloutEntries())
        texts: dict[str, str | None] = {}
        for purpose, dump in (
            (HEADERS, lambda record: _dump_managed(record.headers)),
            (MIRRORS, lambda record: _dump_managed(record.mirrors)),
            (EXPERIMENTS, lambda record: [list(identity) for identity in record.experiments]),
        ):
            key = f"{self.family}{purpose}"
            routes = {name: dump(record) for name, record in sorted(own.routes.items()) if dump(record)}
            texts[key] = _with_entry(data.get(key), rollout, {"uid": own.uid, "routes": routes} if routes else None)
        if self.family in {"http", "grpc"}:
            key = f"{self.family}{LEGACY}"
            unchanged = _read_legacy(data.get(key, "")) == self.legacy
            texts[key] = data.get(key) if unchanged else _dump_legacy(self.legacy) if self.legacy else None
        return texts


def _with_entry(text: str | None, rollout: str, entry: JsonObject | None) -> str | None:
    """Return a key's text with one Rollout's entry replaced; unchanged it stays the very same text."""
    value: JsonObject = json.loads(text) if text else {"version": VERSION, "rollouts": {}}
    rollouts = value["rollouts"]
    if rollouts.get(rollout) == entry:
        return text
    rest = {key: other for key, other in rollouts.items() if key != rollout}
    if entry is not None:
        rest[rollout] = entry
    return json_text({**value, "rollouts": rest}) if rest else None


def _dump_managed(records: ManagedRecords) -> JsonObject:
    result: JsonObject = {}
    for name, record in records.items():
        rules = [{"name": mark.name, "fingerprints": list(mark.fingerprints)} for mark in record.rules]
        result[name] = {"rules": rules}
        if record.step is not None:
            result[name]["step"] = record.step.model_dump(by_alias=True, exclude_defaults=True)
    return result


def parse_ledger(data: Data, family: str, where: str) -> Ledger:
    """Read the records of one kind of route; `where` names the ConfigMap in errors.

    Raises:
        LedgerError: a value is no JSON of the expected shape, or of a newer version.

    """
    rollouts: dict[str, RolloutEntries] = {}
    for purpose in (HEADERS, MIRRORS, EXPERIMENTS):
        key = f"{family}{purpose}"
        if not data.get(key):
            continue
        for rollout, uid, route, part in _read(data[key], purpose, f"{where}, key {key}"):
            own = rollouts.get(rollout, RolloutEntries(uid))
            record = own.routes.get(route, RouteRecord()).union(part)
            rollouts[rollout] = RolloutEntries(uid, {**own.routes, route: record})
    return Ledger(family, rollouts, _read_legacy(data.get(f"{family}{LEGACY}", "")))


def _read(text: str, purpose: str, where: str) -> list[tuple[str, str, str, RouteRecord]]:
    try:
        value = json.loads(text)
        _check_version(value["version"], where)
        return [
            (rollout, str(entries.get("uid", "")), route, _read_record(part, purpose))
            for rollout, entries in value["rollouts"].items()
            for route, part in entries["routes"].items()
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ValidationError) as error:
        raise LedgerError(
            f"{where} can't be read ({cause(error)}); it is left untouched."
            " Repair or remove the key; rules that bear a managed route's name are then found by name"
        ) from error


def _check_version(version: Any, where: str) -> None:
    if not isinstance(version, int) or isinstance(version, bool):
        raise TypeError(f"version is {version!r}")
    if version > VERSION:
        raise LedgerError(
            f"{where} has version {version}, this plugin reads up to {VERSION}: it was written by a newer plugin;"
            " it is left untouched. Update the plugin, or remove the key once no managed route of it is left"
        )


def _read_record(part: Any, purpose: str) -> RouteRecord:
    if purpose == EXPERIMENTS:
        identities = []
        for group, kind, namespace, name in part:
            identities.append((str(group), str(kind), str(namespace), str(name)))
        return RouteRecord(experiments=tuple(identities))
    records = {name: _read_managed(record, purpose) for name, record in part.items()}
    return RouteRecord(headers=records) if purpose == HEADERS else RouteRecord(mirrors=records)


def _read_managed(record: JsonObject, purpose: str) -> ManagedRecord:
    marks = tuple(
        RuleMark(str(rule["name"]), tuple(str(print_) for print_ in rule["fingerprints"])) for rule in record["rules"]
    )
    step: ManagedStep | None = None
    if "step" in record:
        model = SetHeaderRoute if purpose == HEADERS else SetMirrorRoute
        step = model.model_validate(record["step"])
    return ManagedRecord(marks, step)


def _read_legacy(text: str) -> Mapping[str, Mapping[str, int]]:
    """Read the Go plugin's old value; what has not its shape is not an entry (such ConfigMaps can be years old)."""
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    by_route = {name: places if isinstance(places, dict) else {ANY_ROUTE: places} for name, places in value.items()}
    found = {
        name: {route: index for route, index in places.items() if type(index) is int}
        for name, places in by_route.items()
    }
    return {name: places for name, places in found.items() if places}


def _dump_legacy(legacy: Mapping[str, Mapping[str, int]]) -> str:
    return json_text({name: places.get(ANY_ROUTE, dict(places)) for name, places in legacy.items()})
