"""Gloo Platform's RouteTables as a gateway reads them: the first route that matches wins. Pure.

Takes RouteTables, MirrorPolicies and Services as raw objects; `GlooTables` answers which route serves a request, as
`matching.RouteTable` does for the Gateway API: with a rule in the Gateway API's words (backendRefs, filters, matches),
so that everything behind it is shared. Of several tables with the request's host the older one comes first.

The rules of weights are Gloo's own: they add up to 100, a zero is an absent one, and absent ones share the rest. A
route whose weights are not so is replaced by an answer of 500, and makes its table INVALID. An empty selector of a
MirrorPolicy means every route.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from rollouts_gwapi_plugin.embedded.dataplane import patterns
from rollouts_gwapi_plugin.embedded.dataplane.matching import RuleMatch
from rollouts_gwapi_plugin.embedded.dataplane.request import Connection, HttpRequest, Request, hostname
from rollouts_gwapi_plugin.model.base import JsonObject

GLOO_GROUP: Final = "networking.gloo.solo.io"
POLICY_GROUP: Final = "trafficcontrol.policy.gloo.solo.io"
VERSIONS: Final = ("v2",)
FULL: Final = 100
_ACTIONS: Final = ("delegate", "redirect", "directResponse", "graphql")


def effective_weights(destinations: list[JsonObject]) -> list[int]:
    """Return what of 100 each destination gets.

    Raises:
        ValueError: Gloo refuses the weights.
    """
    weights = [int(raw.get("weight") or 0) for raw in destinations]
    absent, rest = weights.count(0), FULL - sum(weights)
    if not weights or rest < absent or (rest and not absent):
        raise ValueError(f"the weights {weights} of {len(weights)} destinations do not add up to {FULL}")
    return [weight or rest // absent for weight in weights]


@dataclass(frozen=True)
class GlooObjects:
    """What of a cluster matters to RouteTables."""

    tables: list[JsonObject]
    policies: list[JsonObject] = field(default_factory=list)
    services: list[JsonObject] = field(default_factory=list)

    def port(self, namespace: str, name: str, selector: JsonObject) -> int:
        """Return the number of a destination's port: by number, by name, or the only one; 0 if there is none."""
        ports = [
            port
            for service in self.services
            if (service["metadata"].get("namespace", ""), service["metadata"]["name"]) == (namespace, name)
            for port in (service.get("spec") or {}).get("ports") or []
        ]
        if selector.get("number"):
            return int(selector["number"])
        found = [port for port in ports if port.get("name") == selector["name"]] if selector.get("name") else ports
        return int(found[0]["port"]) if len(found) == 1 else 0


class GlooTables:
    """RouteTables prepared for many requests; immutable. `gateway` is the VirtualGateway's name and namespace."""

    def __init__(self, objects: GlooObjects, gateway: tuple[str, str] | None = None) -> None:
        served = [table for table in objects.tables if gateway is None or _serves(table, gateway)]
        served.sort(key=_age)
        self._routes = [as_route(table, objects) for table in served]

    def match(self, request: Request) -> RuleMatch | None:
        """Return the rule that serves the request, None where no route takes it."""
        for route in self._routes:
            if not _takes_host(route["spec"]["hostnames"], hostname(request.host)):
                continue
            for rule_index, rule in enumerate(route["spec"]["rules"]):
                for match_index, matcher in enumerate(rule["matchers"]):
                    if rule["section"] == _section(request) and _holds(matcher, request):
                        return RuleMatch(route, rule_index, match_index)
        return None


def as_route(table: JsonObject, objects: GlooObjects) -> JsonObject:
    """Return the table as a route of the Gateway API's shape; `matchers` are Gloo's own, one for each of `matches`."""
    spec = table.get("spec") or {}
    rules = [_rule(item, section, table, objects) for section in ("http", "tls") for item in spec.get(section) or []]
    return {**table, "kind": "RouteTable", "spec": {"hostnames": spec.get("hosts") or [], "rules": rules}}


def problems(table: JsonObject, objects: GlooObjects) -> list[str]:
    """Return what makes the table INVALID."""
    return [
        f"route {rule.get('name') or index}: {rule['problem']}"
        for index, rule in enumerate(as_route(table, objects)["spec"]["rules"])
        if rule.get("problem")
    ]


def table_status(table: JsonObject, objects: GlooObjects) -> JsonObject:
    """Return the status that Gloo writes: the state of this generation."""
    wrong = problems(table, objects)
    state = {
        "observedGeneration": table["metadata"].get("generation", 1),
        "approval": "INVALID" if wrong else "ACCEPTED",
        **({"message": "; ".join(wrong)} if wrong else {}),
    }
    status: JsonObject = table.get("status") or {}
    return {**status, "common": {**(status.get("common") or {}), "State": state}}


def as_gateway(virtual: JsonObject) -> JsonObject:
    """Return a VirtualGateway in the shape of a Gateway, as far as listeners are concerned."""
    listeners = [
        {"name": f"port-{entry['port']['number']}", "port": entry["port"]["number"], "protocol": _protocol(entry)}
        for entry in virtual["spec"]["listeners"]
    ]
    return {**virtual, "spec": {"listeners": listeners}}


def _protocol(listener: JsonObject) -> str:
    return "TLS" if "tls" in listener else "TCP" if "tcp" in listener else "HTTP"


def _serves(table: JsonObject, gateway: tuple[str, str]) -> bool:
    own = table["metadata"].get("namespace", "")
    refs = (table.get("spec") or {}).get("virtualGateways") or []
    return any((ref.get("name"), ref.get("namespace") or own) == gateway for ref in refs)


def _age(table: JsonObject) -> tuple[str, str]:
    metadata = table["metadata"]
    return metadata.get("creationTimestamp") or "", f"{metadata.get('namespace', '')}/{metadata['name']}"


def _takes_host(hosts: list[str], name: str) -> bool:
    # A host is exact, or begins with a star that stands for anything; a request without a host meets every table.
    return not name or any(name == host or (host[:1] == "*" and name.endswith(host[1:].lower())) for host in hosts)


def _section(request: Request) -> str:
    return "tls" if isinstance(request, Connection) else "http"


def _rule(item: JsonObject, section: str, table: JsonObject, objects: GlooObjects) -> JsonObject:
    matchers: list[JsonObject] = item.get("matchers") or [{}]
    rule: JsonObject = {
        "name": item.get("name", ""),
        "section": section,
        "matchers": matchers,
        "matches": [{"path": _path(matcher)} for matcher in matchers],
    }
    action = item.get("forwardTo")
    if action is None:
        return {**rule, "filters": [{"type": next((name for name in _ACTIONS if name in item), "no action")}]}
    destinations = action.get("destinations") or []
    try:
        weights = effective_weights(destinations)
    except ValueError as error:
        return {**rule, "backendRefs": [], "problem": str(error)}
    backends = [
        {**_reference(raw, table, objects), "weight": weight} for raw, weight in zip(destinations, weights, strict=True)
    ]
    return {**rule, "backendRefs": backends, "filters": [*_rewrites(action), *_mirrors(item, table, objects)]}


def _path(matcher: JsonObject) -> JsonObject:
    """Return the path of a matcher as the rewrite filter knows it."""
    uri = matcher.get("uri") or {}
    if uri.get("exact"):
        return {"type": "Exact", "value": uri["exact"]}
    return {"type": "PathPrefix", "value": uri.get("prefix") or "/"}


def _reference(raw: JsonObject, table: JsonObject, objects: GlooObjects) -> JsonObject:
    ref, kind = raw.get("ref") or {}, raw.get("kind") or "SERVICE"
    namespace = ref.get("namespace") or table["metadata"].get("namespace", "")
    found = {"name": ref.get("name", ""), "namespace": namespace}
    if kind != "SERVICE":
        # Nothing here stands behind the other kinds, and a reference of a foreign group is answered so.
        return {**found, "group": GLOO_GROUP, "kind": kind}
    return {**found, "port": objects.port(namespace, found["name"], raw.get("port") or {})}


def _rewrites(action: JsonObject) -> Iterator[JsonObject]:
    rewrite: JsonObject = {}
    if action.get("hostRewrite"):
        rewrite["hostname"] = action["hostRewrite"]
    if action.get("pathRewrite"):
        rewrite["path"] = {"type": "ReplacePrefixMatch", "replacePrefixMatch": action["pathRewrite"]}
    if rewrite:
        yield {"type": "URLRewrite", "urlRewrite": rewrite}


def _mirrors(item: JsonObject, table: JsonObject, objects: GlooObjects) -> Iterator[JsonObject]:
    labels = {**(table["metadata"].get("labels") or {}), **(item.get("labels") or {})}
    for policy in objects.policies:
        spec = policy.get("spec") or {}
        selectors = [entry.get("route") or {} for entry in spec.get("applyToRoutes") or []] or [{}]
        if not any((selector.get("labels") or {}).items() <= labels.items() for selector in selectors):
            continue
        config = spec["config"]
        mirror = {"backendRef": _reference(config["destination"], policy, objects)}
        percentage = config.get("percentage")
        share: JsonObject = {} if percentage is None else {"percent": percentage}
        yield {"type": "RequestMirror", "requestMirror": {**mirror, **share}}


def _holds(matcher: JsonObject, request: Request) -> bool:
    """Whether all conditions of a matcher hold; a connection has only its server name."""
    if isinstance(request, Connection):
        return _takes_host(matcher.get("sniHosts") or [], hostname(request.host))
    http = request if isinstance(request, HttpRequest) else request.as_http()
    return (
        _uri_holds(matcher.get("uri") or {}, http.path)
        and (matcher.get("method") or http.method) == http.method
        and all(_header_holds(entry, http.header_values) for entry in matcher.get("headers") or [])
        and all(_value_holds(entry, http.query_values) for entry in matcher.get("queryParameters") or [])
    )


def _uri_holds(uri: JsonObject, path: str) -> bool:
    if uri.get("regex"):
        return patterns.expression_matches(uri["regex"], path)
    exact, prefix = uri.get("exact") or "", uri.get("prefix") or ""
    if uri.get("ignoreCase"):
        exact, prefix, path = exact.lower(), prefix.lower(), path.lower()
    # A prefix is one of characters, as in Envoy.
    return path == exact if exact else path.startswith(prefix)


def _header_holds(entry: JsonObject, values: dict[str, str]) -> bool:
    return _value_holds({**entry, "name": entry["name"].lower()}, values) != bool(entry.get("invertMatch"))


def _value_holds(entry: JsonObject, values: dict[str, Any]) -> bool:
    name, value = entry["name"], entry.get("value") or ""
    if name not in values or not value:
        return name in values
    kind = "RegularExpression" if entry.get("regex") else "Exact"
    return patterns.value_matches(kind, value, values[name])
