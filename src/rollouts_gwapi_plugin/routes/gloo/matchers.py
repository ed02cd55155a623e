"""Matchers of HTTP routes: a step's headers put into each of a route's own, mirrors intersected with them.

Takes plain JSON matchers (`HTTPRequestMatcher`) and a step, returns plain JSON matchers. A route's matchers are
alternatives, and what one matcher holds must all be true: so the step's headers go into EACH of them, never beside
them. Header names are compared without case; a matcher that contradicts the step yields nothing.
"""

from collections.abc import Sequence
from typing import Final

from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.rollout import RouteMatch
from rollouts_gwapi_plugin.routes.gloo.table import TableRoute
from rollouts_gwapi_plugin.routes.l7 import Alternative, escape, string_test
from rollouts_gwapi_plugin.routes.methods import exact_method

# Gloo does not serve a suffix yet; where one stands it must not be taken for none.
_TESTS: Final = ("exact", "prefix", "regex", "suffix")
_KINDS: Final = {"Exact": "exact", "Prefix": "prefix", "RegularExpression": "regex"}


def matchers_of(item: TableRoute) -> list[JsonObject]:
    """Return the route's matchers; none mean one that matches everything."""
    return item.raw.get("matchers") or [{}]


def with_headers(matcher: JsonObject, headers: Alternative) -> JsonObject | None:
    """Return the matcher with the headers added behind its own, or None where one contradicts.

    An equal header is dropped, and one that only asks for the name is narrowed to the step's value: of two entries of
    one name the proxies know only one. An inverted entry stays beside the step's.
    """
    own: list[JsonObject] = list(matcher.get("headers") or [])
    for entry in headers:
        wanted = {"name": entry["name"], "value": entry["value"]}
        wanted |= {"regex": True} if entry["type"] == "RegularExpression" else {}
        if not _put(own, wanted):
            return None
    return {**matcher, "headers": own} if own != (matcher.get("headers") or []) else matcher


def _put(own: list[JsonObject], wanted: JsonObject) -> bool:
    """Put the entry among the others; return whether a request can have all of them."""
    test = _header_test(wanted)
    place = None
    for index, entry in enumerate(own):
        if str(entry.get("name") or "").lower() != wanted["name"].lower():
            continue
        own_test = _header_test(entry)
        if entry.get("invertMatch"):
            if not entry.get("value") or own_test == test:
                return False
        elif entry.get("value") and own_test != test:
            return False
        elif place is None:
            place = index
    if place is None:
        own.append(wanted)
    elif not own[place].get("value"):
        rest = {field: value for field, value in own[place].items() if field != "regex"}
        own[place] = {**rest, **wanted}
    return True


def _header_test(entry: JsonObject) -> tuple[str, bool]:
    """Return value and whether it is an expression; one without special characters is a plain text.

    Others are only compared by their text: to try them on a value could take for ever.
    """
    value = str(entry.get("value") or "")
    return value, bool(entry.get("regex")) and escape(value) != value


class GlooMatch:
    """Narrow a RouteTable's matcher to a mirror step's method and path."""

    def intersect(self, match: JsonObject, asked: RouteMatch, where: str) -> JsonObject | None:
        """Return the matcher narrowed to the asked method and path, or None where no request can have both.

        Raises:
            RouteError: the method is none; the text names the field.

        """
        result = dict(match)
        if asked.method is not None:
            method = exact_method(asked.method, f"{where}.method", "a RouteTable")
            if match.get("method") not in (None, "", method):
                return None
            result["method"] = method
        if asked.path is not None:
            test = string_test(asked.path, f"{where}.path")
            uri = _narrower(match.get("uri") or {}, {_KINDS[test.type]: test.value})
            if uri is None:
                return None
            result["uri"] = uri
        return result


def _narrower(own: JsonObject, asked: JsonObject) -> JsonObject | None:
    """Return the narrower of two paths where one lies in the other; of expressions only the text is compared."""
    for outer, inner in ((own, asked), (asked, own)):
        if _contains(outer, inner):
            return inner
    return _in_any_case(own, asked)


def _in_any_case(own: JsonObject, asked: JsonObject) -> JsonObject | None:
    """Return which paths of the asked prefix a test of the route takes in letters of any case.

    `/A/b` in any case and `/a` as it stands have `/a/B` in common: only an expression says that.
    """
    (kind, text), (asked_kind, start) = _test(own), _test(asked)
    takes = own.get("ignoreCase") and kind in {"exact", "prefix"} and asked_kind == "prefix"
    if not takes or not text.lower().startswith(start.lower()):
        return None
    rest = text[len(start) :]
    if not rest:
        return {"exact": start}
    return {"regex": f"{escape(start)}(?i:{escape(rest)}){'.*' if kind == 'prefix' else ''}"}


def _contains(outer: JsonObject, inner: JsonObject) -> bool:
    """Whether every path of the inner is surely one of the outer; a prefix is one of characters, as in Envoy."""
    kind, text = _test(outer)
    inner_kind, inner_text = _test(inner)
    if outer.get("ignoreCase") and "regex" not in {kind, inner_kind}:
        text, inner_text = text.lower(), inner_text.lower()
    elif inner.get("ignoreCase"):
        return kind == "" or (kind == "prefix" and text in {"", "/"})
    if kind == "prefix":
        return inner_text.startswith(text) if inner_kind not in {"regex", "suffix"} else text in {"", "/"}
    return kind == "" or (kind, text) == (inner_kind, inner_text)


def _test(uri: JsonObject) -> tuple[str, str]:
    """Return the kind and the text of a path's test; empty where every path matches."""
    return next(((kind, str(uri[kind])) for kind in _TESTS if uri.get(kind)), ("", ""))


def changes_rewrite(item: TableRoute, matchers: Sequence[JsonObject]) -> bool:
    """Whether narrower paths would be rewritten otherwise: `pathRewrite` replaces what the matcher's path matched."""
    if item.forward_to.get("pathRewrite") is None:
        return False
    own = [matcher.get("uri") or {} for matcher in matchers_of(item)]
    return any((matcher.get("uri") or {}) not in own for matcher in matchers)
