"""Matches of HTTPRoute and GRPCRoute: step headers put into a rule's own matches, mirrors intersected with them.

Takes plain JSON matches and a step, returns plain JSON matches. Header names are compared without case; a match whose
own header contradicts the step's yields nothing. What differs between the kinds is `path` and `method`, and is in
`httproute.py` and `grpcroute.py`.
"""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final, Protocol

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.rollout import HeaderRoutingMatch, RouteMatch, StringMatch

# The Gateway API's limits of a header's name and value.
MAX_HEADER_NAME: Final = 256
MAX_HEADER_VALUE: Final = 4096
# A route holds 128 matches: more alternatives of one step fit nowhere, and must not be multiplied out first.
MAX_ALTERNATIVES: Final = 128
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")

_IN_NO_DIALECT = re.compile(
    r"missing \), unterminated|unbalanced parenthesis|unterminated character set|nothing to repeat|bad escape \(end"
)

Header = JsonObject
Alternative = tuple[Header, ...]


@dataclass(frozen=True)
class StringTest:
    """A string match in the API's words: type Exact, RegularExpression, or (paths only) Prefix."""

    type: str
    value: str


class MatchKind(Protocol):
    """What a kind of route does its own way."""

    def intersect(self, match: JsonObject, asked: RouteMatch, where: str) -> JsonObject | None:
        """Return the match narrowed to the asked method and path, or None where no request can have both.

        Raises:
            StepNotTakenError: the kind can't match what is asked; the text names the field.
            RouteError: no kind can.

        """


def string_test(asked: StringMatch, where: str) -> StringTest:
    """Return the one test that is given.

    Raises:
        RouteError: none is given (Go sends an empty one as nothing), or an expression that surely is none.

    """
    for type_, value in (("Exact", asked.exact), ("Prefix", asked.prefix), ("RegularExpression", asked.regex)):
        if value:
            if type_ == "RegularExpression":
                _check_expression(value, f"{where}.regex")
            return StringTest(type_, value)
    raise RouteError(f"{where}: one of exact, prefix, regex must be given")


def _check_expression(text: str, where: str) -> None:
    """Refuse what is an expression in no dialect: the API takes it, and gateways then refuse the whole route.

    Raises:
        RouteError: with the reason.

    """
    if len(text) > MAX_HEADER_VALUE or r"\Q" in text:
        return
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        # Dialects differ in much else: only what none of them takes is refused.
        if isinstance(error, re.error) and _IN_NO_DIALECT.match(error.msg):
            raise RouteError(f"{where}: {text!r} is no regular expression: {error.msg}") from error


def escape(text: str) -> str:
    """Escape a text for RE2, and for every dialect that gateways use."""
    return _SPECIAL.sub(r"\\\1", text)


def header(name: str, asked: StringMatch | None, where: str) -> Header:
    """Return the API's header match; it has no prefix type, so a prefix becomes an expression.

    Raises:
        RouteError: the name or the value is not one that the API takes.

    """
    if not _TOKEN.fullmatch(name) or len(name) > MAX_HEADER_NAME:
        raise RouteError(f"{where}.headerName: {name!r} is not a header name")
    test = string_test(asked or StringMatch(), f"{where}.headerValue")
    value = f"{escape(test.value)}.*" if test.type == "Prefix" else test.value
    if len(value) > MAX_HEADER_VALUE:
        raise RouteError(f"{where}.headerValue: {len(value)} characters; the Gateway API takes {MAX_HEADER_VALUE}")
    type_ = "Exact" if test.type == "Exact" else "RegularExpression"
    return {"type": type_, "name": name, "value": value}


def header_alternatives(match: tuple[HeaderRoutingMatch, ...], *, match_any: bool, where: str) -> list[Alternative]:
    """Return the alternatives of a header step, each a set of headers that must all match (decision D13).

    Entries of one name are alternatives, since no request has both values; entries of different names must all match,
    unless `match_any` makes each an alternative.

    Raises:
        RouteError: an entry can't be matched, or the alternatives are more than a route takes.

    """
    entries = [
        header(entry.header_name, entry.header_value, f"{where}.match[{index}]") for index, entry in enumerate(match)
    ]
    unique = _unique(entries)
    by_name: dict[str, list[Header]] = {}
    for entry in unique:
        by_name.setdefault(entry["name"].lower(), []).append(entry)
    count = len(unique) if match_any else prod(map(len, by_name.values()))
    if count > MAX_ALTERNATIVES:
        raise RouteError(
            f"{where}.match: its entries make {count} alternatives, the Gateway API takes {MAX_ALTERNATIVES} matches"
            " of all rules together; use fewer values, or a regex"
        )
    if match_any:
        return [(entry,) for entry in unique]
    return list(product(*by_name.values()))


def _unique(entries: list[Header]) -> list[Header]:
    seen: dict[tuple[str, str, str], Header] = {}
    for entry in entries:
        seen.setdefault((entry["type"], entry["name"].lower(), entry["value"]), entry)
    return list(seen.values())


def mirror_headers(headers: Mapping[str, StringMatch], where: str) -> Alternative:
    """Return the headers of one mirror match, which must all match."""
    return tuple(header(name, asked, f"{where}.headers[{name}]") for name, asked in sorted(headers.items()))


def with_headers(match: JsonObject, headers: Alternative) -> JsonObject | None:
    """Return the match with the headers added behind its own, or None where one contradicts.

    The API refuses one name twice, and proxies ignore the second of two names that differ in case: an equal header is
    dropped, a different value of the same name makes the match impossible.
    """
    own = list(match.get("headers") or [])
    values = {str(entry.get("name", "")).lower(): entry for entry in reversed(own)}
    for entry in headers:
        there = values.setdefault(entry["name"].lower(), entry)
        if there is entry:
            own.append(entry)
        elif (there.get("type") or "Exact", there.get("value")) != (entry["type"], entry["value"]):
            return None
    return {**match, "headers": own} if len(own) > len(match.get("headers") or []) else match
