"""Every call of the controller's own client, over both protocols, with and without AutoMTLS."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

if TYPE_CHECKING:
    from tests.interop.conftest import Host, Mode

Rollout = dict[str, Any]
HEADER = {"name": "by-header", "match": [{"headerName": "x-canary", "headerValue": {"exact": "yes"}}]}
MIRROR = {"name": "by-mirror", "percentage": 25, "match": [{"path": {"prefix": "/api"}}]}


def rules(api: ApiServer) -> list[Any]:
    """Return the rules that stand on the route `web`."""
    return list(api.read("HTTPRoute", "default", "web")["spec"]["rules"])


def weights(api: ApiServer) -> list[int]:
    """Return the weights of stable and canary in the first rule of `web`."""
    return [ref.get("weight", 1) for ref in rules(api)[0]["backendRefs"]]


def with_managed_routes(rollout: Rollout) -> Rollout:
    """Return the Rollout with the managed routes of HEADER and MIRROR."""
    changed = copy.deepcopy(rollout)
    routing = changed["spec"]["strategy"]["canary"]["trafficRouting"]
    routing["managedRoutes"] = [{"name": HEADER["name"]}, {"name": MIRROR["name"]}]
    return changed


def test_start(go_host: "Host", mode: "Mode") -> None:
    """The plugin starts as the controller starts it, over the protocol that was asked for, on a unix socket."""
    started = go_host.start(mode)

    assert started["error"] == ""
    assert started["protocol"] == mode.protocol
    assert started["network"] == "unix"
    assert go_host.do("ping")["error"] == ""
    assert go_host.call("InitPlugin")["error"] == ""
    assert go_host.call("Type")["type"] == "GatewayAPI"


def test_weights(go_host: "Host", mode: "Mode", api: ApiServer, rollout: Rollout) -> None:
    """SetWeight writes the weights, VerifyWeight sees them and no others, UpdateHash succeeds."""
    go_host.started(mode)

    assert go_host.call("UpdateHash", rollout=rollout, canary_hash="abc", stable_hash="def")["error"] == ""
    assert go_host.call("SetWeight", rollout=rollout, weight=20)["error"] == ""
    assert weights(api) == [80, 20]
    assert go_host.call("VerifyWeight", rollout=rollout, weight=20)["verified"] == 1
    assert go_host.call("VerifyWeight", rollout=rollout, weight=30)["verified"] == 0
    assert go_host.call("SetWeight", rollout=rollout, weight=0)["error"] == ""
    assert weights(api) == [100, 0]


def test_experiment(go_host: "Host", mode: "Mode", api: ApiServer, rollout: Rollout) -> None:
    """Additional destinations get their share."""
    api.create(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "trial"}, "spec": {"ports": [{"port": 80}]}}
    )
    go_host.started(mode)
    destination = {"serviceName": "trial", "podTemplateHash": "123", "weight": 10}

    assert go_host.call("SetWeight", rollout=rollout, weight=20, destinations=[destination])["error"] == ""
    assert {ref["name"]: ref["weight"] for ref in rules(api)[0]["backendRefs"]} == {
        "stable": 70,
        "canary": 20,
        "trial": 10,
    }


def test_managed_routes(go_host: "Host", mode: "Mode", api: ApiServer, rollout: Rollout) -> None:
    """Header and mirror routes are added as rules, and removed again with RemoveManagedRoutes."""
    go_host.started(mode)
    rollout = with_managed_routes(rollout)
    before = rules(api)

    assert go_host.call("SetHeaderRoute", rollout=rollout, header_route=HEADER)["error"] == ""
    assert go_host.call("SetMirrorRoute", rollout=rollout, mirror_route=MIRROR)["error"] == ""
    managed = [rule for rule in rules(api) if rule not in before]
    matched = [header["value"] for rule in managed for header in rule["matches"][0].get("headers", [])]
    mirrored = [
        (rule["matches"][0]["path"]["value"], filter_["requestMirror"]["percent"])
        for rule in managed
        for filter_ in rule.get("filters", [])
    ]
    assert "yes" in matched
    assert ("/api", 25) in mirrored
    assert go_host.call("RemoveManagedRoutes", rollout=rollout)["error"] == ""
    assert rules(api) == before


def change_config(rollout: Rollout, config: object) -> None:
    """Give the Rollout another plugin configuration."""
    rollout["spec"]["strategy"]["canary"]["trafficRouting"]["plugins"]["argoproj-labs/gatewayAPI"] = config


def deny_update(api: ApiServer) -> None:
    """Answer 403 to writes of HTTPRoutes."""
    api.deny("update", "httproutes")


def drop_all(api: ApiServer) -> None:
    """Answer 503 to everything."""
    api.faults.add(status=503, times=None)


# What is changed in the Rollout and the API, and what the error says about it.
Change = Callable[[Rollout], object]
ERRORS: dict[str, tuple[Change, Callable[[ApiServer], object], list[str]]] = {
    "route-missing": (lambda r: change_config(r, {"httpRoute": "gone"}), lambda _: None, ["gone", "default"]),
    "config-no-object": (lambda r: change_config(r, "text"), lambda _: None, ["argoproj-labs/gatewayAPI"]),
    "config-empty": (lambda r: change_config(r, {}), lambda _: None, ["httpRoute"]),
    "no-pair": (
        lambda r: r["spec"]["strategy"]["canary"].update(canaryService="other"),
        lambda _: None,
        ["other", "canary", "web"],
    ),
    "forbidden": (lambda _: None, deny_update, ["update", "httproutes", "web"]),
    "api-down": (lambda _: None, drop_all, ["503"]),
}


def test_errors(go_host: "Host", mode: "Mode", api: ApiServer, rollout: Rollout) -> None:
    """What is wrong is named in the error, nothing changes on the API, and the plugin lives on."""
    go_host.started(mode)
    before = rules(api)
    missing = {}
    for name, (change, prepare, fragments) in ERRORS.items():
        wrong = copy.deepcopy(rollout)
        change(wrong)
        prepare(api)
        error = go_host.call("SetWeight", rollout=wrong, weight=20)["error"]
        missing[name] = [f"{fragment} in {error!r}" for fragment in fragments if fragment not in error]
        verified = go_host.call("VerifyWeight", rollout=wrong, weight=20)
        assert (verified["error"], verified["verified"]) == ("", 0), name
        api.faults.clear()
        api.access.denials.clear()

    assert missing == {name: [] for name in ERRORS}
    assert before == rules(api)
    assert go_host.call("SetWeight", rollout=rollout, weight=20)["error"] == ""


def test_kubeconfig_comes_late(go_host: "Host", mode: "Mode", environment: dict[str, str], rollout: Rollout) -> None:
    """Without a kubeconfig InitPlugin says so and the plugin lives; the controller never asks again, and need not."""
    kubeconfig = Path(environment["KUBECONFIG"])
    away = kubeconfig.rename(kubeconfig.with_suffix(".away"))
    error = go_host.start(mode)["error"]

    assert str(kubeconfig) in error
    assert str(kubeconfig) in go_host.call("SetWeight", rollout=rollout, weight=20)["error"]
    assert go_host.call("Type")["type"] == "GatewayAPI"
    away.rename(kubeconfig)
    assert go_host.call("SetWeight", rollout=rollout, weight=20)["error"] == ""


# A rollout's life, call by call.
LIFE: list[tuple[str, dict[str, Any]]] = [
    ("SetWeight", {"weight": 0}),
    ("VerifyWeight", {"weight": 0}),
    ("SetWeight", {"weight": 20}),
    ("SetHeaderRoute", {"header_route": HEADER}),
    ("SetMirrorRoute", {"mirror_route": MIRROR}),
    ("SetWeight", {"weight": 50}),
    ("VerifyWeight", {"weight": 50}),
    ("VerifyWeight", {"weight": 51}),
    ("SetHeaderRoute", {"header_route": {"name": HEADER["name"]}}),
    ("SetHeaderRoute", {"header_route": {"name": "not-listed", "match": HEADER["match"]}}),
    ("RemoveManagedRoutes", {}),
    ("SetWeight", {"weight": 100}),
    ("SetWeight", {"weight": 200}),
    ("UpdateHash", {"canary_hash": "", "stable_hash": ""}),
]


def test_both_transports_answer_alike(go_host: "Host", another_host: "Host", api: ApiServer, rollout: Rollout) -> None:
    """The same calls over net/rpc and gRPC get the same answers and leave the same rules after each."""
    rollout = with_managed_routes(rollout)
    start = api.read("HTTPRoute", "default", "web")["spec"]
    seen: dict[str, list[Any]] = {}
    for host, protocol in ((go_host, "netrpc"), (another_host, "grpc")):
        api.edit("HTTPRoute", "default", "web", lambda route: route.update(spec=copy.deepcopy(start)))
        host.started(protocol=protocol, allow_grpc=True, args=["serve", "--transport", protocol])
        seen[protocol] = []
        for method, arguments in LIFE:
            answer = host.call(method, rollout=rollout, **arguments)
            del answer["seconds"]
            seen[protocol].append((method, answer, rules(api)))

    assert seen["netrpc"] == seen["grpc"]
