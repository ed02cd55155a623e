"""The kinds of route, a row each: where the API has them, and what they can do.

A kind without `match` has no headers to match on: it takes weights and experiments, no managed routes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rollouts_gwapi_plugin.routes.companions import CompanionKind
from rollouts_gwapi_plugin.routes.gloo.matchers import GlooMatch
from rollouts_gwapi_plugin.routes.grpcroute import GrpcMatch
from rollouts_gwapi_plugin.routes.httproute import HttpMatch
from rollouts_gwapi_plugin.routes.l7 import MatchKind

GATEWAY_GROUP: Final = "gateway.networking.k8s.io"
GLOO_GROUP: Final = "networking.gloo.solo.io"
NEWEST_FIRST: Final = ("v1", "v1beta1", "v1alpha3", "v1alpha2")


@dataclass(frozen=True)
class RouteKind:
    """One kind of route; `family` is its name in the configuration (`httpRoute`) and in the ledger's keys."""

    family: str
    kind: str
    plural: str
    group: str = GATEWAY_GROUP
    versions: tuple[str, ...] = NEWEST_FIRST
    match: MatchKind | None = None
    # The API's v1 of TCPRoute and TLSRoute holds exactly one rule; L7 kinds hold 16.
    one_rule_versions: tuple[str, ...] = ()
    # The kind of object that a managed route of this kind needs beside it.
    companion: CompanionKind | None = None


HTTP: Final = RouteKind("http", "HTTPRoute", "httproutes", match=HttpMatch())
GRPC: Final = RouteKind("grpc", "GRPCRoute", "grpcroutes", match=GrpcMatch())
TCP: Final = RouteKind("tcp", "TCPRoute", "tcproutes", one_rule_versions=("v1",))
TLS: Final = RouteKind("tls", "TLSRoute", "tlsroutes", one_rule_versions=("v1",))
UDP: Final = RouteKind("udp", "UDPRoute", "udproutes", one_rule_versions=("v1",))
MIRROR_POLICY: Final = CompanionKind("trafficcontrol.policy.gloo.solo.io", ("v2",), "mirrorpolicies", "MirrorPolicy")
ROUTE_TABLE: Final = RouteKind(
    "routeTable", "RouteTable", "routetables", GLOO_GROUP, ("v2",), GlooMatch(), companion=MIRROR_POLICY
)

KINDS: Final[Mapping[str, RouteKind]] = {kind.family: kind for kind in (HTTP, GRPC, TCP, TLS, UDP, ROUTE_TABLE)}
