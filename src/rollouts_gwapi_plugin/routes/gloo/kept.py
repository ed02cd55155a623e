"""What the user wrote and we changed, kept in an annotation of the RouteTable until it is put back.

A destination with no share is not in its route: in Gloo 0 is the same as no weight, and a route whose weights add up to
100 beside one without is invalid. Its JSON, and the weights that the user had, stand in the annotation meanwhile; both
are written in the same write as the route, so neither is ever without the other. The annotation's text::

    {"version": 1, "rollouts": {"<namespace>/<name>": [{"section": "http", "name": "…", …}]}}
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rollouts_gwapi_plugin.errors import RouteError, cause
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.routes.gloo.table import TableRoute
from rollouts_gwapi_plugin.routes.json_text import json_text
from rollouts_gwapi_plugin.routes.notes import Note

ANNOTATION: Final = "rollouts.argoproj.io/glooplatform-destinations"
VERSION: Final = 1
# Kubernetes holds 256 KiB of annotations on an object; the user's own need room, too.
MAX_TEXT: Final = 128 * 1024


@dataclass(frozen=True)
class Out:
    """A destination that is not in its route now, and its place among the others."""

    index: int
    raw: JsonObject


@dataclass(frozen=True)
class Original:
    """The pair as the user wrote it; a weight of None is an absent one."""

    stable_weight: int | None
    # Whether the user wrote the canary destination; what we added is gone in the end.
    has_canary: bool = False
    canary_weight: int | None = None


@dataclass(frozen=True)
class Kept:
    """What is kept of one route: how the route is recognised, and what the user wrote."""

    section: str
    name: str
    print: str
    original: Original
    stable: Out | None = None
    canary: Out | None = None
    # Experiments' Services that we put into the route: with a lost ledger they are known by this.
    experiments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Annotation:
    """The annotation's content: this Rollout's entries, and all others as they stand there."""

    own: tuple[Kept, ...] = ()
    others: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def parse_annotation(annotations: Mapping[str, str], rollout: str, where: str) -> Annotation:
    """Read the annotation; a broken one counts as none, with a warning.

    Raises:
        RouteError: it is of a newer version, and may hold the only copy of a destination.

    """
    text = annotations.get(ANNOTATION, "")
    if not text:
        return Annotation()
    try:
        value = json.loads(text)
        version, rollouts = value["version"], dict(value["rollouts"])
        own = tuple(_read(entry) for entry in rollouts.pop(rollout, ()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        note = Note(
            "DestinationsNotKept",
            f"{where}: annotation {ANNOTATION} can't be read ({cause(error)});"
            " destinations that it held are not known any more",
        )
        return Annotation(notes=(note,))
    if not isinstance(version, int) or version > VERSION:
        raise RouteError(
            f"{where}: annotation {ANNOTATION} has version {version!r}, this plugin reads up to {VERSION}: it was"
            " written by a newer plugin; update the plugin, or remove the annotation once the RouteTable is as you"
            " want it"
        )
    return Annotation(own, rollouts)


def dump_annotation(annotations: Mapping[str, str], found: Annotation, rollout: str, where: str) -> dict[str, str]:
    """Return the annotations with the entries; without any the annotation is gone.

    Raises:
        RouteError: the entries need more room than an annotation may take.

    """
    rollouts = dict(found.others)
    if found.own:
        rollouts[rollout] = [_dump(entry) for entry in found.own]
    rest = {key: value for key, value in annotations.items() if key != ANNOTATION}
    if not rollouts:
        return rest
    value = {"version": VERSION, "rollouts": rollouts}
    text = json_text(value)
    if len(text.encode()) > MAX_TEXT:
        raise RouteError(
            f"{where}: the destinations to be kept need {len(text.encode())} bytes in annotation {ANNOTATION}, at most"
            f" {MAX_TEXT} are used; nothing was written. Split the RouteTable, or select fewer routes (routeSelector)"
        )
    old = annotations.get(ANNOTATION)
    # The same content in another spelling is no reason to write.
    return {**rest, ANNOTATION: old if old is not None and _equal(old, value) else text}


def _equal(text: str, value: JsonObject) -> bool:
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


def _read(entry: Any) -> Kept:
    original = entry["original"]
    return Kept(
        section=str(entry["section"]),
        name=str(entry.get("name", "")),
        print=str(entry["print"]),
        original=Original(
            _number(original.get("stableWeight")),
            "canary" in original,
            _number(original.get("canary", {}).get("weight")),
        ),
        stable=_read_out(entry.get("stable")),
        canary=_read_out(entry.get("canary")),
        experiments=tuple(str(name) for name in entry.get("experiments", ())),
    )


def _number(value: Any) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise TypeError(f"a weight is {value!r}")
    return value


def _read_out(value: Any) -> Out | None:
    if value is None:
        return None
    index, raw = value["index"], value["destination"]
    if not isinstance(index, int) or not isinstance(raw, dict) or not isinstance(raw.get("ref"), dict):
        raise TypeError("a kept destination has not the shape of one")
    return Out(index, raw)


def _dump(kept: Kept) -> JsonObject:
    original: JsonObject = {}
    if kept.original.stable_weight is not None:
        original["stableWeight"] = kept.original.stable_weight
    if kept.original.has_canary:
        weight = kept.original.canary_weight
        original["canary"] = {} if weight is None else {"weight": weight}
    result: JsonObject = {"section": kept.section, "print": kept.print, "original": original}
    if kept.name:
        result["name"] = kept.name
    for role, out in (("stable", kept.stable), ("canary", kept.canary)):
        if out is not None:
            result[role] = {"index": out.index, "destination": out.raw}
    if kept.experiments:
        result["experiments"] = list(kept.experiments)
    return result


def assign(entries: Sequence[Kept], routes: Sequence[TableRoute], canary_only: Sequence[bool]) -> dict[int, Kept]:
    """Return which entry is of which route (its place in `routes`).

    By name, else by what the route matches. A route without a name whose matchers changed while its stable destination
    was out is the one that has the canary with a weight, as we write it, and not stable (`canary_only`), if there are
    as many of them as such entries. A named route that has neither name nor matchers any more is another one.
    """
    left = list(entries)
    found: dict[int, Kept] = {}

    def take(index: int, entry: Kept) -> None:
        found[index] = entry
        left.remove(entry)

    for entry in entries:
        named = [index for index, item in enumerate(routes) if entry.name and _is_named(item, entry)]
        if len(named) == 1 and named[0] not in found:
            take(named[0], entry)
    for entry in list(left):
        same = [index for index, item in enumerate(routes) if index not in found and item.print == entry.print]
        if same:
            take(same[0], entry)
    for section in {entry.section for entry in left}:
        orphans = [entry for entry in left if entry.section == section and entry.stable is not None and not entry.name]
        bare = [
            index
            for index, item in enumerate(routes)
            if index not in found and canary_only[index] and item.section == section and not item.name
        ]
        if len(orphans) == len(bare):
            for index, entry in zip(bare, orphans, strict=True):
                take(index, entry)
    return found


def _is_named(item: TableRoute, entry: Kept) -> bool:
    return item.section == entry.section and item.name == entry.name
