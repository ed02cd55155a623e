"""What an API server's answer means: a JSON object, or one error of our tree. The one place that reads status codes.

Takes an `Operation` (what was asked) and an `Answer` (status, headers, body); returns the object or raises. Whatever
stands between us and the API server may answer too, so a body may be HTML, empty, or anything. Texts of the server go
into messages cut and on one line; headers and bodies that we sent never do.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from rollouts_gwapi_plugin.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    KindNotFound,
    KubeError,
    NotFound,
    Unavailable,
)
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import ResourceType

# The API server lists every reason for a refusal; the first ones say enough, and the message must fit a log line.
MAX_SERVER_TEXT = 600
MAX_CAUSES = 6
# No call waits for so long, whatever it is told.
MAX_RETRY_AFTER = 24 * 3600
_RBAC_REFUSAL = re.compile(r'User "(?P<user>[^"]*)" cannot ')
_HTML_TITLE = re.compile(r"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True)
class Operation:
    """What is asked of the API server, in the words of its RBAC; `path` stands alone where there is no resource."""

    verb: str
    resource: ResourceType | None = None
    namespace: str = ""
    name: str = ""
    path: str = ""

    def __str__(self) -> str:
        if self.resource is None:
            return f"{self.verb} {self.path}"
        what = self.resource.kind
        if self.name:
            return f"{self.verb} {what} {self.namespace}/{self.name}"
        return f"{self.verb} {what} in namespace {self.namespace}"


@dataclass(frozen=True)
class Answer:
    """An HTTP answer with its whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def status_object(self) -> JsonObject:
        """The `Status` that the API server sends with an error, empty where the body is something else."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) and value.get("kind") == "Status" else {}

    @property
    def text(self) -> str:
        """What the answer says, on one line and cut; of a page of HTML its title."""
        message = self.status_object.get("message")
        if isinstance(message, str) and message:
            return one_line(message)
        text = self.body[: 16 * MAX_SERVER_TEXT].decode("utf-8", "replace")
        title = _HTML_TITLE.search(text)
        return one_line(title.group(1) if title else _TAG.sub(" ", text))

    @property
    def retry_after(self) -> float | None:
        """The seconds after which the server wants to be asked again, where it says so."""
        text = self.headers.get("retry-after", "").strip()
        if text.isdecimal():
            return float(text)
        seconds = _mapping(self.status_object.get("details")).get("retryAfterSeconds")
        # A number of any length is JSON, but not a float.
        return float(min(seconds, MAX_RETRY_AFTER)) if isinstance(seconds, int) and seconds > 0 else None


def one_line(text: str, limit: int = MAX_SERVER_TEXT) -> str:
    """Return foreign text fit for a message: white space collapsed, unprintable characters out, cut."""
    words = " ".join(text.split())
    clean = "".join(character if character.isprintable() else "?" for character in words)
    return clean if len(clean) <= limit else f"{clean[:limit]}… ({len(clean)} characters)"


def object_from(operation: Operation, answer: Answer) -> JsonObject:
    """Return the JSON object of an answer.

    Raises:
        KubeError: The answer is an error, or not a JSON object.
    """
    if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
        raise error_from(operation, answer)
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise Unavailable(
            f"{operation}: the answer ({answer.status}, {len(answer.body)} bytes) is not JSON, so it is not the API "
            f"server's: {answer.text}",
            status=answer.status,
        ) from error
    if not isinstance(value, dict):
        raise Unavailable(f"{operation}: the answer is JSON but not an object: {answer.text}", status=answer.status)
    return value


def error_from(operation: Operation, answer: Answer) -> KubeError:
    """Return the error that an answer means."""
    status = answer.status
    if status == HTTPStatus.UNAUTHORIZED:
        return Forbidden(
            f"{operation}: the API server does not know us (401): {answer.text}; look at the token or client "
            "certificate that this process uses",
            status=status,
        )
    if status == HTTPStatus.FORBIDDEN:
        return _forbidden(operation, answer)
    if status == HTTPStatus.NOT_FOUND:
        return _not_found(operation, answer)
    if status == HTTPStatus.CONFLICT:
        return _conflict(operation, answer)
    return _refused_or_unavailable(operation, answer)


def _refused_or_unavailable(operation: Operation, answer: Answer) -> KubeError:
    status = answer.status
    if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.TOO_MANY_REQUESTS:
        return Invalid(f"{operation}: refused by the API server ({status}): {_causes(answer)}", status=status)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return Unavailable(
            f"{operation}: answered {status}, a redirect, which an API server never sends here; is the server's "
            "address right?",
            status=status,
        )
    return Unavailable(f"{operation}: the API server answered {status}: {answer.text}", status=status)


def _forbidden(operation: Operation, answer: Answer) -> Forbidden:
    """Return the refusal with the rule to add; what is not RBAC (admission, quota) has no such rule."""
    refusal = _RBAC_REFUSAL.search(answer.text)
    if refusal is None:
        return Forbidden(f"{operation}: forbidden (403): {answer.text}", status=answer.status)
    user = one_line(refusal.group("user"))
    who = f"service account {user}" if user.startswith("system:serviceaccount:") else f"user {user}"
    if user == "system:anonymous":
        who = "user system:anonymous (no token or client certificate was sent)"
    if operation.resource is None:
        rule = f'{{nonResourceURLs: ["{operation.path}"], verbs: ["{operation.verb}"]}} in a ClusterRole'
    else:
        rule = (
            f'{{apiGroups: ["{operation.resource.group}"], resources: ["{operation.resource.plural}"], '
            f'verbs: ["{operation.verb}"]}} in a Role of namespace {operation.namespace}, or in a ClusterRole'
        )
    resource = _qualified(operation)
    return Forbidden(
        f"{operation}: forbidden (403): {who} may not {operation.verb} {resource}; add the rule {rule} that is bound "
        "to it",
        status=answer.status,
    )


def _qualified(operation: Operation) -> str:
    if operation.resource is None:
        return operation.path
    group = operation.resource.group or '"" (core)'
    return f"{operation.resource.plural} of API group {group} in namespace {operation.namespace}"


def _not_found(operation: Operation, answer: Answer) -> NotFound:
    """Tell a missing object, a missing namespace and a missing kind apart."""
    resource = operation.resource
    details = _mapping(answer.status_object.get("details"))
    if resource is None:
        return NotFound(f"{operation}: the API server has no such path (404): {answer.text}", status=answer.status)
    if details.get("kind") == "namespaces" and resource.plural != "namespaces":
        return NotFound(f"{operation}: namespace {operation.namespace} does not exist", status=answer.status)
    if operation.name and details.get("name") == operation.name:
        return NotFound(
            f"{operation}: {resource.kind} {operation.namespace}/{operation.name} does not exist", status=404
        )
    return KindNotFound(
        f"{operation}: the API server serves no {resource.plural} of {resource.api_version}: its CRD is not installed, "
        f"or not at this version (404: {answer.text})",
        status=answer.status,
    )


def _conflict(operation: Operation, answer: Answer) -> Conflict:
    if answer.status_object.get("reason") == "AlreadyExists":
        return AlreadyExists(f"{operation}: it exists already")
    return Conflict(f"{operation}: changed by somebody else since it was read (409): {answer.text}")


def _causes(answer: Answer) -> str:
    """Return the fields and what is wrong with each, or the server's text where it lists none."""
    causes = _mapping(answer.status_object.get("details")).get("causes")
    found = [_mapping(cause) for cause in causes] if isinstance(causes, list) else []
    parts = [f"{_field(cause)}: {cause.get('message', '')}" for cause in found]
    if not parts:
        return answer.text
    more = f" (and {len(parts) - MAX_CAUSES} more)" if len(parts) > MAX_CAUSES else ""
    return one_line("; ".join(parts[:MAX_CAUSES])) + more


def _field(cause: JsonObject) -> str:
    """Return the field that a cause names; the API server's `<nil>` and `[]` mean the object."""
    field = str(cause.get("field") or "")
    return "object" if field in {"", "<nil>", "[]"} else field


def _mapping(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}
