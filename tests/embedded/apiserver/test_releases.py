"""Routes on the Gateway API's own definitions, release by release: what is served, dropped and refused."""

from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer, StatusError

pytestmark = pytest.mark.go


def _http(**rule: Any) -> dict[str, Any]:
    return _route("HTTPRoute", "v1", [{"backendRefs": [{"name": "a", "port": 80}]} | rule])


def _route(kind: str, version: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": f"gateway.networking.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"rules": rules},
    }


@pytest.mark.parametrize(
    ("release", "channel", "kept"),
    [
        ("1.2.1", "standard", False),
        ("1.3.0", "standard", False),
        ("1.4.1", "standard", True),
        ("1.2.1", "experimental", True),
        ("1.6.3", "standard", True),
    ],
)
def test_rule_names_are_dropped_before_1_4(gateway_api_crds: Any, release: str, channel: Any, kept: bool) -> None:  # noqa: FBT001 - a case
    """The standard channel knows rule names since 1.4; before, they vanish without an error."""
    with ApiServer(crds=gateway_api_crds(release, channel)) as server:
        rule = server.create(_http(name="main"))["spec"]["rules"][0]

    assert ("name" in rule) is kept


@pytest.mark.parametrize(("release", "kept"), [("1.2.1", False), ("1.3.0", True)])
def test_mirror_percent_is_dropped_before_1_3(gateway_api_crds: Any, release: str, kept: bool) -> None:  # noqa: FBT001 - a case
    """Before 1.3 the standard channel drops a mirror's percent, which then means all requests."""
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "b", "port": 80}, "percent": 10}}
    with ApiServer(crds=gateway_api_crds(release, "standard")) as server:
        rule = server.create(_http(filters=[mirror]))["spec"]["rules"][0]

    assert ("percent" in rule["filters"][0]["requestMirror"]) is kept


@pytest.mark.parametrize(
    ("release", "channel", "versions"),
    [
        ("1.5.1", "standard", set()),
        ("1.6.3", "standard", {"v1"}),
        ("1.5.1", "experimental", {"v1alpha2"}),
        ("1.6.3", "experimental", {"v1", "v1alpha2"}),
    ],
)
def test_versions_of_tcp_routes(gateway_api_crds: Any, release: str, channel: Any, versions: set[str]) -> None:
    """TCPRoute is served at v1alpha2, at v1, at both or not at all, as the release says."""
    with ApiServer(crds=gateway_api_crds(release, channel)) as server:
        kind = server.registry.find("gateway.networking.k8s.io", "tcproutes")

    assert {version.name for version in kind.versions if version.served} == versions if kind else not versions


def test_tcp_v1_takes_exactly_one_rule(gateway_api_crds: Any) -> None:
    """A second rule of a v1 TCPRoute is refused with the number that is allowed."""
    rule = {"backendRefs": [{"name": "a", "port": 80}]}
    with (
        ApiServer(crds=gateway_api_crds("1.6.3", "standard")) as server,
        pytest.raises(StatusError, match=r"spec\.rules: Too many: 2: must have at most 1 item"),
    ):
        server.create(_route("TCPRoute", "v1", [rule, rule]))


@pytest.mark.parametrize(("channel", "refused"), [("standard", False), ("experimental", True)])
def test_rule_names_are_unique_in_the_experimental_channel(gateway_api_crds: Any, channel: Any, refused: bool) -> None:  # noqa: FBT001 - a case
    """Two rules of one name pass in the standard channel and are refused in the experimental one."""
    rules = [{"name": "a"}, {"name": "a"}]
    with ApiServer(crds=gateway_api_crds("1.6.3", channel)) as server:
        if refused:
            with pytest.raises(StatusError, match="Rule name must be unique within the route"):
                server.create(_route("HTTPRoute", "v1", rules))
        else:
            server.create(_route("HTTPRoute", "v1", rules))


def test_stand_ins_make_way_for_definitions(gateway_api_crds: Any) -> None:
    """With a definition of one kind, the group's other kinds are served only if they are defined, too."""
    crds = [crd for crd in gateway_api_crds("1.6.3", "standard") if crd["spec"]["names"]["kind"] == "HTTPRoute"]
    with ApiServer(crds=crds) as server:
        assert server.registry.find("gateway.networking.k8s.io", "httproutes") is not None
        assert server.registry.find("gateway.networking.k8s.io", "tcproutes") is None
        assert server.registry.find("argoproj.io", "rollouts") is not None
