"""The version and the identity that a request says it is about, against what is there."""

from rollouts_gwapi_plugin.embedded.apiserver.causes import Cause, invalid_value
from rollouts_gwapi_plugin.embedded.apiserver.status import StatusError, conflict, conflict_for, invalid_as
from rollouts_gwapi_plugin.embedded.apiserver.targets import Target
from rollouts_gwapi_plugin.model.base import JsonObject


def check_version(target: Target, given: JsonObject, actual: JsonObject) -> None:
    """Raise where a replace is about another object, or about an older version; both are metadata."""
    if given.get("uid") and given["uid"] != actual["uid"]:
        raise _storage_conflict(target, given["uid"], actual["uid"])
    version = given.get("resourceVersion")
    if version and version != actual["resourceVersion"]:
        raise conflict(target.kind, target.name)
    if not version and target.kind.custom:
        cause: Cause = invalid_value(("metadata", "resourceVersion"), 0, "must be specified for an update")
        raise invalid_as(target.kind.plural, target.kind.group, target.name, [cause])


def check_delete(target: Target, actual: JsonObject, preconditions: JsonObject) -> None:
    """Raise where the preconditions of a delete do not hold."""
    afterthoughts = {
        "uid": ("UID", "The object might have been deleted and then recreated"),
        "resourceVersion": ("ResourceVersion", "The object might have been modified"),
    }
    for key, (label, afterthought) in afterthoughts.items():
        wanted = preconditions.get(key)
        if wanted and wanted != actual[key]:
            why = f"the {label} in the precondition ({wanted}) does not match the {label} in record ({actual[key]}). "
            raise conflict_for(target.kind.kind, target.kind.group, target.name, why + afterthought)


def _storage_conflict(target: Target, given: str, actual: str) -> StatusError:
    group = f"{target.kind.group}/" if target.kind.group else ""
    namespace = f"{target.namespace}/" if target.namespace else ""
    key = f"/registry/{group}{target.kind.plural}/{namespace}{target.name}"
    return conflict(
        target.kind,
        target.name,
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
        f"failed: UID in precondition: {given}, UID in object meta: {actual}",
    )
