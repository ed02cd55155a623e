"""The rules of a schema (`x-kubernetes-validations`, written in CEL), as checks written out here.

A rule is known by its message. Only the rules of the Gateway API's routes are here, since a route is what is written;
a rule that is not known is not checked, and a test tells if a release of the Gateway API brings one for routes. Where a
rule applies, and in which release and channel, is the CustomResourceDefinition's to say.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.causes import Cause, invalid_value
from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import Path
from rollouts_gwapi_plugin.model.base import JsonObject

VALIDATIONS = "x-kubernetes-validations"
MAX_MATCHES = 128
Check = Callable[[Any], bool]
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DNS_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_PATH_CHARACTERS = r"(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+"
_GRPC_SERVICE = r"(?i:\.?[a-z_][a-z_0-9]*(\.[a-z_][a-z_0-9]*)*)"
_GRPC_METHOD = r"[A-Za-z_][A-Za-z_0-9]*"


def broken_rules(value: Any, schema: JsonObject, path: Path) -> list[Cause]:
    """Find the rules that a value, or anything in it, breaks; the value fits the schema's types."""
    found: list[Cause] = []
    for rule in schema.get(VALIDATIONS, []):
        message = rule.get("message", "")
        check = check_for(message)
        if check is not None and not check(value):
            found.append(invalid_value(path, _kind(value), message))
    if isinstance(value, dict):
        properties, additional = schema.get("properties", {}), schema.get("additionalProperties")
        for key, entry in value.items():
            field = properties.get(key, additional)
            if isinstance(field, dict) and entry is not None:
                found += broken_rules(entry, field, (*path, key))
    elif isinstance(value, list) and "items" in schema:
        for index, entry in enumerate(value):
            found += broken_rules(entry, schema["items"], (*path, index))
    return found


def check_for(message: str) -> Check | None:
    """Find the check for a rule's message; None where there is none."""
    check = _CHECKS.get(message)
    if check is not None:
        return check
    for pattern, make in _FAMILIES:
        if found := pattern.fullmatch(message):
            return make(*found.groups())
    return None


def _kind(value: Any) -> str:
    return {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer"}.get(type(value), "number")


def _full(pattern: str, text: Any) -> bool:
    return re.fullmatch(pattern, str(text)) is not None


# Paths of HTTP matches


def _literal_path(match: JsonObject) -> str:
    """Give the path's value where its type takes it literally, else a value that breaks no rule."""
    return str(match.get("value", "/")) if match.get("type") in {"Exact", "PathPrefix"} else "/"


def _not_containing(text: str) -> Check:
    return lambda match: text not in _literal_path(match)


def _not_ending(text: str) -> Check:
    return lambda match: not _literal_path(match).endswith(text)


# Fields that go with a type


def _nil_unless_type(name: str, kind: str) -> Check:
    return lambda value: name not in value or value.get("type") == kind


def _given_for_type(name: str, kind: str) -> Check:
    return lambda value: name in value or value.get("type") != kind


def _given_when(name: str, discriminator: str, kind: str) -> Check:
    return lambda value: value.get(discriminator) != kind or name in value


def _type_when_given(discriminator: str, kind: str, name: str) -> Check:
    return lambda value: name not in value or value.get(discriminator) == kind


def _not_repeated(kind: str) -> Check:
    return lambda filters: sum(one.get("type") == kind for one in filters) <= 1


# Rules of a route


def _redirects(rule: JsonObject) -> bool:
    return any("requestRedirect" in one for one in rule.get("filters") or ())


def _replaces_prefix(filters: Iterable[JsonObject], field: str) -> bool:
    paths: list[JsonObject] = [one.get(field, {}).get("path", {}) for one in filters]
    # CEL's exists_one: two such filters are another rule's business.
    replacing = [path for path in paths if path.get("type") == "ReplacePrefixMatch" and "replacePrefixMatch" in path]
    return len(replacing) == 1


def _one_prefix_match(rule: JsonObject) -> bool:
    matches = rule.get("matches") or []
    return len(matches) == 1 and bool(matches[0].get("path", {}).get("type") == "PathPrefix")


def _prefix_rule(field: str) -> Check:
    return lambda rule: not _replaces_prefix(rule.get("filters") or (), field) or _one_prefix_match(rule)


def _backend_prefix_rule(field: str) -> Check:
    def holds(rule: JsonObject) -> bool:
        backends = rule.get("backendRefs") or ()
        replacing = sum(_replaces_prefix(one.get("filters") or (), field) for one in backends)
        return replacing != 1 or _one_prefix_match(rule)

    return holds


def _unique_names(rules: list[JsonObject]) -> bool:
    names = [rule["name"] for rule in rules if "name" in rule]
    return len(names) == len(set(names))


def _timeouts_fit(timeouts: JsonObject) -> bool:
    if "request" not in timeouts or "backendRequest" not in timeouts:
        return True
    whole = _seconds(timeouts["request"])
    return whole == 0 or _seconds(timeouts["backendRequest"]) <= whole


def _seconds(text: str) -> float:
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text))


# Parents


def _parent(reference: JsonObject) -> tuple[Any, ...]:
    return tuple(reference.get(key) or "" for key in ("group", "kind", "name", "namespace"))


def _sections_given_alike(*fields: str) -> Check:
    """Among references to one parent, all or none say the section (and the port)."""

    def holds(references: list[JsonObject]) -> bool:
        shapes: dict[tuple[Any, ...], set[tuple[bool, ...]]] = {}
        for one in references:
            shapes.setdefault(_parent(one), set()).add(tuple(bool(one.get(field)) for field in fields))
        return all(len(shape) == 1 for shape in shapes.values())

    return holds


def _sections_unique(*fields: str) -> Check:
    def holds(references: list[JsonObject]) -> bool:
        keys = [(*_parent(one), *(one.get(field) or "" for field in fields)) for one in references]
        return len(keys) == len(set(keys))

    return holds


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _grpc_exact(field: str, pattern: str) -> Check:
    def holds(method: JsonObject) -> bool:
        return method.get("type", "Exact") != "Exact" or field not in method or _full(pattern, method[field])

    return holds


_PAIR = "when parentRefs includes 2 or more references to the same parent"
_LITERAL = r"when type one of \['Exact', 'PathPrefix'\]"
_FAMILIES: tuple[tuple[re.Pattern[str], Callable[..., Check]], ...] = (
    (re.compile(r"filter\.(\w+) must be nil if the filter\.type is not (\w+)"), _nil_unless_type),
    (re.compile(r"filter\.(\w+) must be specified for (\w+) filter\.type"), _given_for_type),
    (re.compile(r"(\w+) filter cannot be repeated"), _not_repeated),
    (re.compile(r"(\w+) must be specified when (type|protocol) is set to '(\w+)'"), _given_when),
    (re.compile(r"(type|protocol) must be '(\w+)' when (\w+) is set"), _type_when_given),
    (re.compile(rf"must not contain '(.+)' {_LITERAL}"), _not_containing),
    (re.compile(rf"must not end with '(.+)' {_LITERAL}"), _not_ending),
    (
        re.compile(r"Allow\w+ cannot contain '\*' alongside other \w+"),
        lambda: lambda values: "*" not in values or len(values) == 1,
    ),
)
_CHECKS: dict[str, Check] = {
    "value must be an absolute path and start with '/' when type one of ['Exact', 'PathPrefix']": (
        lambda match: _literal_path(match).startswith("/")
    ),
    "type must be one of ['Exact', 'PathPrefix', 'RegularExpression']": (
        lambda match: match.get("type") in {"Exact", "PathPrefix", "RegularExpression"}
    ),
    f"must only contain valid characters (matching ^{_PATH_CHARACTERS}$) for types ['Exact', 'PathPrefix']": (
        lambda match: _full(_PATH_CHARACTERS, _literal_path(match))
    ),
    "While 16 rules and 64 matches per rule are allowed, the total number of matches across all rules in a route must "
    "be less than 128": lambda rules: sum(len(rule.get("matches") or ()) for rule in rules) <= MAX_MATCHES,
    "Rule name must be unique within the route": _unique_names,
    "RequestRedirect filter must not be used together with backendRefs": (
        lambda rule: not (rule.get("backendRefs") and _redirects(rule))
    ),
    "When using RequestRedirect filter with path.replacePrefixMatch, exactly one PathPrefix match must be specified": (
        _prefix_rule("requestRedirect")
    ),
    "When using URLRewrite filter with path.replacePrefixMatch, exactly one PathPrefix match must be specified": (
        _prefix_rule("urlRewrite")
    ),
    "Within backendRefs, when using RequestRedirect filter with path.replacePrefixMatch, exactly one PathPrefix match "
    "must be specified": _backend_prefix_rule("requestRedirect"),
    "Within backendRefs, When using URLRewrite filter with path.replacePrefixMatch, exactly one PathPrefix match must "
    "be specified": _backend_prefix_rule("urlRewrite"),
    "Must have port for Service reference": (
        lambda one: one.get("group") != "" or one.get("kind") != "Service" or "port" in one
    ),
    "May specify either httpRouteFilterRequestRedirect or httpRouteFilterRequestRewrite, but not both": (
        lambda filters: not {"RequestRedirect", "URLRewrite"} <= {one.get("type") for one in filters}
    ),
    "Only one of percent or fraction may be specified in HTTPRequestMirrorFilter": (
        lambda mirror: not ("percent" in mirror and "fraction" in mirror)
    ),
    "numerator must be less than or equal to denominator": (
        lambda fraction: fraction.get("numerator", 0) <= fraction.get("denominator", 100)
    ),
    "backendRequest timeout cannot be longer than request timeout": _timeouts_fit,
    "AbsoluteTimeout must be specified when cookie lifetimeType is Permanent": (
        lambda one: one.get("cookieConfig", {}).get("lifetimeType") != "Permanent" or "absoluteTimeout" in one
    ),
    "cookieConfig can only be set with type Cookie": lambda one: "cookieConfig" not in one or one["type"] == "Cookie",
    "One or both of 'service' or 'method' must be specified": lambda one: "service" in one or "method" in one,
    r"service must only contain valid characters (matching ^(?i)\.?[a-z_][a-z_0-9]*(\.[a-z_][a-z_0-9]*)*$)": (
        _grpc_exact("service", _GRPC_SERVICE)
    ),
    "method must only contain valid characters (matching ^[A-Za-z_][A-Za-z_0-9]*$)": (
        _grpc_exact("method", _GRPC_METHOD)
    ),
    f"sectionName must be specified {_PAIR}": _sections_given_alike("sectionName"),
    f"sectionName must be unique {_PAIR}": _sections_unique("sectionName"),
    f"sectionName or port must be specified {_PAIR}": _sections_given_alike("sectionName", "port"),
    f"sectionName or port must be unique {_PAIR}": _sections_unique("sectionName", "port"),
    "Hostnames cannot contain an IP": lambda names: not any(_is_address(name) for name in names),
    "Hostnames must be valid based on RFC-1123": (
        lambda names: all(_full(_DNS_NAME, name) for name in names if "*" not in name)
    ),
    "Wildcards on hostnames must be the first label, and the rest of hostname must be valid based on RFC-1123": (
        lambda names: all(name[:2] == "*." and _full(_DNS_NAME, name[2:]) for name in names if "*" in name)
    ),
    "Listener name must be unique within the Gateway": (
        lambda listeners: len({one.get("name") for one in listeners}) == len(listeners)
    ),
}
