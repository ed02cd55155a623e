"""What a write must pass before it may be stored: pruning, defaults, validation, and metadata that is not the user's.

Every write goes through here, by whatever verb it came. `admit` changes the object that it is given; `validate` raises
where the real API server refuses it.
"""

from dataclasses import replace

from rollouts_gwapi_plugin.embedded.apiserver import causes
from rollouts_gwapi_plugin.embedded.apiserver import metadata as meta
from rollouts_gwapi_plugin.embedded.apiserver.causes import UNCHECKED_RULES, Cause
from rollouts_gwapi_plugin.embedded.apiserver.core import check_core, fill_core_defaults
from rollouts_gwapi_plugin.embedded.apiserver.decode import typed
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import duplicate
from rollouts_gwapi_plugin.embedded.apiserver.schema import fill_defaults, misshapen, prune
from rollouts_gwapi_plugin.embedded.apiserver.status import StatusError, bad_request, invalid
from rollouts_gwapi_plugin.embedded.apiserver.targets import Options, Target
from rollouts_gwapi_plugin.model.base import JsonObject


def admit(value: JsonObject, target: Target, options: Options) -> None:
    """Prune, fill in defaults and report what was dropped, as the request asks."""
    unknown = meta.drop_unknown(value["metadata"])
    if target.version.schema is not None:
        unknown += prune(value, target.version.schema)
    _report_unknown(sorted(unknown), target, options)
    if target.version.schema is not None:
        fill_defaults(value, target.version.schema)
    if not target.kind.custom:
        with typed(target):
            fill_core_defaults(value, target)
    options.warnings.extend(meta.finalizer_warnings(value["metadata"]))


def check_declared(value: JsonObject, target: Target) -> None:
    """Raise what a server-side apply says to a field that the schema does not know."""
    schema = target.version.schema
    if schema is None:
        return
    unknown = sorted(prune(duplicate(value), schema))
    why = f".{unknown[0]}: field not declared in schema" if unknown else misshapen(value, schema)
    if why:
        name = f"/{value['metadata'].get('name', '')}; {target.api_version}, Kind={target.kind.kind}"
        raise StatusError(500, "", f"failed to create typed patch object ({name}): {why}")


def validate(value: JsonObject, target: Target, before: JsonObject | None = None) -> None:
    """Raise where the object, or the change from what was before, breaks rules of its kind."""
    found = meta.check(value["metadata"], target.kind.kind)
    if before is not None:
        found += _check_finalizers(value["metadata"], before["metadata"])
    checker = target.version.checker
    if checker is not None and target.kind.custom:
        found += _by_schema(value, target, before)
        if UNCHECKED_RULES not in found and checker.has_rules and any(cause.blocks_rules for cause in found):
            found.append(UNCHECKED_RULES)
    if not target.kind.custom:
        with typed(target):
            found += check_core(value, target, before)
    if found:
        raise invalid(target.kind, value["metadata"].get("name", ""), found)


def _by_schema(value: JsonObject, target: Target, before: JsonObject | None) -> list[Cause]:
    """Validate all of it, or by the status path the status alone."""
    checker = target.version.checker
    if checker is None:
        return []
    found = checker.check(value, before)
    if target.subresource == "status":
        return [_below_status(cause) for cause in found if cause.path[0] == "status" or cause == UNCHECKED_RULES]
    return found


def _below_status(cause: Cause) -> Cause:
    """Name the field as the real API server does, whose check of the status by its own path starts below it."""
    return replace(cause, message=cause.message.replace(f"{cause.field} in", f"{cause.field[len('status.') :]} in"))


def check_user_metadata(metadata: JsonObject, before: JsonObject, target: Target) -> None:
    """Raise where an update changes metadata that nobody may change."""
    found = [
        causes.invalid_value(("metadata", key), metadata[key], "field is immutable")
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds")
        if metadata.get(key) is not None and metadata[key] != before.get(key)
    ]
    if found:
        raise invalid(target.kind, target.name, found)


def _check_finalizers(metadata: JsonObject, before: JsonObject) -> list[Cause]:
    if not before.get("deletionTimestamp"):
        return []
    added = [one for one in metadata.get("finalizers") or () if one not in (before.get("finalizers") or ())]
    if not added:
        return []
    names = ", ".join(f'"{one}"' for one in added)
    why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{names}}}"
    return [causes.forbidden_value(("metadata", "finalizers"), why)]


def _report_unknown(unknown: list[str], target: Target, options: Options) -> None:
    if not unknown or options.validation == "Ignore":
        return
    texts = [f'unknown field "{path}"' for path in unknown]
    if options.validation == "Strict":
        kind = target.kind.kind
        why = f'{kind} in version "{target.version.name}" cannot be handled as a {kind}: strict decoding error: '
        raise bad_request(why + ", ".join(texts))
    options.warnings.extend(texts)
