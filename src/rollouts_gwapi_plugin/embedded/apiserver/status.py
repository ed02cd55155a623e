"""The answers of the API that are not objects: `Status` bodies, in the words of the real API server.

`StatusError` travels from wherever a rule of the API is broken to the HTTP border, which sends `body` with `code`. The
texts are kept equal to those of Kubernetes 1.34 by `tests/conformance`.
"""

from collections.abc import Mapping, Sequence

from rollouts_gwapi_plugin.embedded.apiserver.causes import Cause
from rollouts_gwapi_plugin.embedded.apiserver.kinds import Kind
from rollouts_gwapi_plugin.model.base import JsonObject


class StatusError(Exception):
    """The API refuses: the whole answer is in it."""

    def __init__(
        self, code: int, reason: str, message: str, *, details: JsonObject | None = None, retry_after: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    @property
    def body(self) -> JsonObject:
        """The `Status` object."""
        return status(self.code, self.reason, self.message, self.details)


class PageNotFoundError(Exception):
    """The path is none of the API's: the answer is plain text."""


def status(code: int, reason: str, message: str, details: JsonObject | None = None) -> JsonObject:
    """Build a `Status` of a failure."""
    body: JsonObject = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
    }
    if reason:
        body["reason"] = reason
    if details is not None:
        body["details"] = details
    return body | {"code": code}


def success(kind: Kind, name: str, uid: str) -> JsonObject:
    """Build the `Status` that answers a delete."""
    details = _details(kind.group, kind.plural, name) | {"uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def not_found(kind: Kind, name: str) -> StatusError:
    """404: no such object."""
    message = f'{kind.resource} "{name}" not found'
    return StatusError(404, "NotFound", message, details=_details(kind.group, kind.plural, name))


def no_such_resource() -> StatusError:
    """404: the group is served, the path below it is not."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(kind: Kind, name: str) -> StatusError:
    """409: the name is taken."""
    message = f'{kind.resource} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_details(kind.group, kind.plural, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(kind: Kind, name: str, why: str = MODIFIED) -> StatusError:
    """409: the object was written since it was read."""
    return conflict_for(kind.plural, kind.group, name, why)


def conflict_for(plural: str, group: str, name: str, why: str = MODIFIED) -> StatusError:
    """409 for a resource that is known by its names only."""
    resource = f"{plural}.{group}" if group else plural
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_details(group, plural, name))


def apply_conflict(causes: Sequence[tuple[str, str]]) -> StatusError:
    """409 of a server-side apply: fields that other managers own, as (manager, field) pairs."""
    details = [{"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": at} for who, at in causes]
    count = f"{len(causes)} conflict{'s' if len(causes) != 1 else ''}"
    message = f"Apply failed with {count}: {_conflict_text(causes)}"
    return StatusError(409, "Conflict", message, details={"causes": details})


def _conflict_text(causes: Sequence[tuple[str, str]]) -> str:
    by_manager: dict[str, list[str]] = {}
    for who, at in causes:
        by_manager.setdefault(who, []).append(at)
    if len(causes) == 1:
        return f"conflict with {causes[0][0]}: {causes[0][1]}"
    parts = []
    for who, fields in sorted(by_manager.items()):
        lines = "\n".join(f"- {at}" for at in fields)
        parts.append(f"conflicts with {who}:\n{lines}")
    return "\n".join(parts)


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> StatusError:
    """422: the object breaks rules of its kind."""
    return invalid_as(kind.kind, kind.group, name, causes)


def invalid_as(kind: str, group: str, name: str, causes: Sequence[Cause]) -> StatusError:
    """422 for a kind that is known by its names only; a fault is told once."""
    lines = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    full_kind = f"{kind}.{group}" if group else kind
    details = _details(group, kind, name) | {"causes": [cause.as_json() for cause in causes]}
    return StatusError(422, "Invalid", f'{full_kind} "{name}" is invalid: {text}', details=details)


def invalid_option(verb: str, cause: Cause) -> StatusError:
    """422: a query parameter has a value that it can't have."""
    kinds = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
    return invalid_as(kinds.get(verb, "DeleteOptions"), "meta.k8s.io", "", [cause])


def bad_request(message: str) -> StatusError:
    """400: the request can't be understood."""
    return StatusError(400, "BadRequest", message)


def forbidden(resource: str, name: str, group: str, why: str) -> StatusError:
    """403: `resource` is `plural.group`, `why` says who cannot do what."""
    quoted = f' "{name}"' if name else ""
    plural = resource.partition(".")[0]
    return StatusError(
        403, "Forbidden", f"{resource}{quoted} is forbidden: {why}", details=_details(group, plural, name)
    )


def unauthorized() -> StatusError:
    """401: no token, or one that nobody knows."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> StatusError:
    """405: the path is right and the method is not."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, details={})


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """415: the body is of a type that is not taken here."""
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return StatusError(415, "UnsupportedMediaType", message)


def too_large(limit: int) -> StatusError:
    """413: the body is over the limit."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def expired(oldest: int, asked: int) -> StatusError:
    """410: the history does not reach back to what was asked."""
    return StatusError(410, "Expired", f"too old resource version: {asked} ({oldest})")


def patch_failed() -> StatusError:
    """422: a JSON patch that can't be applied, or whose `test` is false; the real API server does not say which."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", details={})


def method_not_supported(kind: Kind, verb: str) -> StatusError:
    """405 for custom resources, which say what was tried."""
    message = f'{verb} is not supported on resources of kind "{kind.resource}"'
    return StatusError(405, "MethodNotAllowed", message, details=_details(kind.group, kind.plural, ""))


def not_acceptable() -> StatusError:
    """406: the client takes no type that there is."""
    types = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    return StatusError(406, "NotAcceptable", f"only the following media types are accepted: {types}")


def _details(group: str, kind: str, name: str) -> JsonObject:
    pairs: Mapping[str, str] = {"name": name, "group": group, "kind": kind}
    return {key: value for key, value in pairs.items() if value}
