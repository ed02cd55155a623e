"""What the API server itself keeps in `metadata`, and the rules for what users write there."""

import datetime as dt
import re
import secrets
import uuid

from rollouts_gwapi_plugin.embedded.apiserver.causes import Cause, invalid_value, required_value, too_long
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import Path
from rollouts_gwapi_plugin.model.base import JsonObject

# The suffix of a generated name: no vowels and no look-alikes, as the API server's.
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_GENERATED_BASE = 58
# Limits of the API server for all annotations of an object, and for the parts of names.
MAX_ANNOTATIONS = 256 * 1024
MAX_SUBDOMAIN = 253
MAX_LABEL = 63

SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is '" + SUBDOMAIN + "')"
)
_DNS_LABEL_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '"
    + _DNS_LABEL_1035
    + "')"
)
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_QUALIFIED_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '" + _QUALIFIED + "')"
)
_LABEL_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '"
    + _LABEL_VALUE
    + "')"
)
FIELDS = frozenset({
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
    "managedFields",
})  # fmt: skip


def now() -> str:
    """Write the time as the API does."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def drop_unknown(metadata: JsonObject) -> list[str]:
    """Drop unknown and empty fields of `metadata`; return the paths of the unknown ones."""
    unknown = [key for key in metadata if key not in FIELDS]
    for key in unknown:
        del metadata[key]
    for key in [key for key, value in metadata.items() if value in (None, "", {}, [])]:
        del metadata[key]
    return [f"metadata.{key}" for key in unknown]


def stamp(metadata: JsonObject, *, generation: bool) -> None:
    """Give a new object its name (if generated), uid, creation time and generation."""
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:_MAX_GENERATED_BASE] + "".join(
            secrets.choice(_SUFFIX_ALPHABET) for _ in range(_SUFFIX_LENGTH)
        )
    for key in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        metadata.pop(key, None)
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = now()
    if generation:
        metadata["generation"] = 1


def keep_system_fields(metadata: JsonObject, before: JsonObject) -> None:
    """Take over from the state before what a user can't change by an update."""
    for key in (
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "selfLink",
    ):
        if key in before:
            metadata[key] = before[key]
        else:
            metadata.pop(key, None)
    metadata["resourceVersion"] = before["resourceVersion"]


def check(metadata: JsonObject, kind: str) -> list[Cause]:
    """Find what is wrong with name, labels and annotations."""
    return [
        *_check_name(metadata.get("name", ""), kind),
        *_check_labels(metadata.get("labels") or {}),
        *_check_annotations(metadata.get("annotations") or {}),
        *_check_finalizers(metadata.get("finalizers") or []),
    ]


def finalizer_warnings(metadata: JsonObject) -> list[str]:
    """Warn of finalizers without a domain."""
    advice = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
    plain = [one for one in metadata.get("finalizers") or () if "/" not in one]
    return [f'metadata.finalizers: "{one}": {advice}' for one in plain]


def _check_name(name: str, kind: str) -> list[Cause]:
    path: Path = ("metadata", "name")
    if not name:
        return [required_value(path, "name or generateName is required")]
    pattern, text, limit = SUBDOMAIN, _SUBDOMAIN_TEXT, MAX_SUBDOMAIN
    if kind == "Service":
        pattern, text, limit = _DNS_LABEL_1035, _DNS_LABEL_1035_TEXT, MAX_LABEL
    elif kind in {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}:
        # These are the path-segment names: anything but a slash and a percent sign.
        pattern, text = r"[^/%]+", "may not contain '/' or '%'"
    found: list[Cause] = []
    if len(name) > limit:
        found.append(invalid_value(path, name, f"must be no more than {limit} bytes"))
    if not re.fullmatch(pattern, name):
        found.append(invalid_value(path, name, text))
    return found


def _check_labels(labels: JsonObject) -> list[Cause]:
    path: Path = ("metadata", "labels")
    found: list[Cause] = []
    for key, value in labels.items():
        found.extend(invalid_value(path, key, text) for text in _qualified_faults(key))
        if len(value) > MAX_LABEL:
            found.append(invalid_value(path, value, f"must be no more than {MAX_LABEL} bytes"))
        if not re.fullmatch(_LABEL_VALUE, value):
            found.append(invalid_value(path, value, _LABEL_VALUE_TEXT))
    return found


def _check_annotations(annotations: JsonObject) -> list[Cause]:
    path: Path = ("metadata", "annotations")
    found = [invalid_value(path, key, text) for key in annotations for text in _qualified_faults(key.lower())]
    if sum(len(key) + len(value) for key, value in annotations.items()) > MAX_ANNOTATIONS:
        found.append(too_long(path, MAX_ANNOTATIONS))
    return found


def _check_finalizers(finalizers: list[str]) -> list[Cause]:
    path: Path = ("metadata", "finalizers")
    return [invalid_value(path, one, text) for one in finalizers for text in _qualified_faults(one)]


def _qualified_faults(key: str) -> list[str]:
    prefix, slash, name = key.partition("/")
    if not slash:
        prefix, name = "", key
    if "/" in name:
        example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {_QUALIFIED_RULE} {example}"]
    faults = []
    if slash and not prefix:
        faults.append("prefix part must be non-empty")
    elif slash and not re.fullmatch(SUBDOMAIN, prefix):
        faults.append(f"prefix part {_SUBDOMAIN_TEXT}")
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > MAX_LABEL:
        faults.append(f"name part must be no more than {MAX_LABEL} bytes")
    if not re.fullmatch(_QUALIFIED, name):
        faults.append(f"name part {_QUALIFIED_RULE}")
    return faults
