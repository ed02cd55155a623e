"""What the data plane does with one request: forward it, or answer it by itself. Pure but for the dealer's state.

Takes a request, the routes, the references and a dealer. Always returns a decision:

- no rule: 404; a redirect filter: its answer;
- a filter that is not known, a mirror or the chosen backend that can't be resolved, no backend with a weight above
  zero: 500 (the Gateway API's answer for invalid references; Envoy's for all-zero weights and for a broken mirror,
  which takes the whole rule down);
- else the backend to forward to, the request as filtered, and the mirrors whose turn it is. Whether the backend has an
  endpoint (else 503) is the caller's to find out.
"""

from dataclasses import dataclass
from http import HTTPStatus

from rollouts_gwapi_plugin.embedded.dataplane import filters
from rollouts_gwapi_plugin.embedded.dataplane.dealing import Dealer
from rollouts_gwapi_plugin.embedded.dataplane.matching import RouteTable, RuleMatch
from rollouts_gwapi_plugin.embedded.dataplane.references import References, ServicePort, target_of
from rollouts_gwapi_plugin.embedded.dataplane.request import HttpRequest, Pairs, Request
from rollouts_gwapi_plugin.embedded.dataplane.routetable import GlooTables
from rollouts_gwapi_plugin.model.base import JsonObject

DEFAULT_WEIGHT = 1
FULL_PERCENT = 100


@dataclass(frozen=True)
class OwnAnswer:
    """An answer of the data plane itself."""

    status: int
    reason: str
    headers: Pairs = ()


@dataclass(frozen=True)
class Forward:
    """A backend for the request; `request` is as the filters left it."""

    place: RuleMatch
    target: ServicePort
    request: Request
    response_filters: tuple[JsonObject, ...]
    mirrors: tuple[ServicePort, ...]


Decision = OwnAnswer | Forward


@dataclass(frozen=True)
class Configuration:
    """What a data plane is programmed with at one moment; `port` is the listener's."""

    table: RouteTable | GlooTables
    references: References
    port: int = 80


def decide(request: Request, configuration: Configuration, dealer: Dealer) -> Decision:
    """Decide on one request."""
    place = configuration.table.match(request)
    if place is None:
        return OwnAnswer(HTTPStatus.NOT_FOUND, "no route matches")
    rule_filters = place.rule.get("filters") or []
    if unknown := filters.unsupported(rule_filters):
        return OwnAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, f"filter {unknown} is not supported")
    if isinstance(request, HttpRequest):
        redirect = filters.redirect(request, rule_filters, place.match, configuration.port)
        if redirect:
            return OwnAnswer(redirect.status, "redirect", (("location", redirect.location),))
    return _forward(request, place, configuration, dealer)


def _forward(request: Request, place: RuleMatch, configuration: Configuration, dealer: Dealer) -> Decision:
    rule_filters = place.rule.get("filters") or []
    backend = _choose(place, dealer)
    if backend is None:
        return OwnAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, "no backend has a weight above zero")
    all_filters = [*rule_filters, *(backend.get("filters") or [])]
    if unknown := filters.unsupported(all_filters):
        return OwnAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, f"filter {unknown} is not supported")
    mirrors = filters.of_type(all_filters, "RequestMirror", "requestMirror")
    for ref in (backend, *(mirror["backendRef"] for mirror in mirrors)):
        if problem := configuration.references.problem(place.route, ref):
            return OwnAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, f"{problem.reason}: {problem.message}")
    due = [mirror for index, mirror in enumerate(mirrors) if _is_due(place, index, mirror, dealer)]
    return Forward(
        place=place,
        target=target_of(place.route, backend),
        request=filters.modify_request(request, all_filters, place.match),
        response_filters=tuple(entry for entry in all_filters if entry["type"] == "ResponseHeaderModifier"),
        mirrors=tuple(target_of(place.route, mirror["backendRef"]) for mirror in due),
    )


def weight_of(ref: JsonObject) -> int:
    """Return a backendRef's weight; absent means 1."""
    weight = ref.get("weight")
    return DEFAULT_WEIGHT if weight is None else int(weight)


def _choose(place: RuleMatch, dealer: Dealer) -> JsonObject | None:
    refs: list[JsonObject] = place.rule.get("backendRefs") or []
    index = dealer.deal(place.key, tuple(weight_of(ref) for ref in refs)) if refs else None
    return None if index is None else refs[index]


def _is_due(place: RuleMatch, index: int, mirror: JsonObject, dealer: Dealer) -> bool:
    fraction = mirror.get("fraction")
    if fraction:
        share, whole = fraction["numerator"], fraction.get("denominator") or FULL_PERCENT
    else:
        percent = mirror.get("percent")
        share, whole = FULL_PERCENT if percent is None else percent, FULL_PERCENT
    if share >= whole:
        return True
    return dealer.deal((*place.key, "mirror", index), (share, whole - share)) == 0
