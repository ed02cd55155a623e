"""Served versions and kept fields, asked for with what every account may read.

Matrix: preferred, fallback, none; remembered, changed in mid-life, installed later; forbidden; schema, dry run,
neither.
"""

from collections.abc import Callable
from typing import Any

import pytest

from rollouts_gwapi_plugin import errors
from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.kube.discovery import LISTING_SECONDS, SCHEMA_SECONDS, Discovery
from rollouts_gwapi_plugin.model.kube import ResourceType

Connect = Callable[..., KubeClient]
GROUP = "gateway.networking.k8s.io"
V1, ALPHA3, ALPHA2 = (f"/apis/{GROUP}/{version}" for version in ("v1", "v1alpha3", "v1alpha2"))
TLS = (GROUP, "tlsroutes", "TLSRoute", ("v1", "v1alpha3", "v1alpha2"))
HTTP = (GROUP, "httproutes", "HTTPRoute", ("v1", "v1beta1"))
NAME = "spec.rules[].name"


def listing(*kinds: str) -> dict[str, Any]:
    """Return an APIResourceList as the API server sends it, subresources included."""
    resources = [{"name": f"{kind.lower()}s", "kind": kind} for kind in kinds]
    return {"kind": "APIResourceList", "resources": [*resources, {"name": "httproutes/status", "kind": "HTTPRoute"}]}


def openapi(kind: str, **rule_fields: Any) -> dict[str, Any]:
    """Return an OpenAPI v3 document of one kind."""
    rules = {"type": "array", "items": {"type": "object", "properties": rule_fields}}
    schema = {
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": GROUP, "version": "v1", "kind": kind}],
        "properties": {"spec": {"type": "object", "properties": {"rules": rules}}},
    }
    return {"openapi": "3.0.0", "components": {"schemas": {f"io.{kind}": schema}}}


def soon() -> Deadline:
    """Return a deadline that no test meets."""
    return Deadline.after(10)


def paths(api: Any) -> list[str]:
    """Return the paths asked for."""
    return [request.path for request in api.requests]


def test_preferred_version_is_taken_and_remembered(api: Any, connect: Connect) -> None:
    """The first served version is taken with one request, and asked for no more."""
    api.objects = {V1: listing("HTTPRoute", "TLSRoute"), ALPHA2: listing("TLSRoute")}
    discovery = Discovery(connect(api))
    found = {discovery.resource(*TLS, deadline=soon()) for _ in range(3)}

    assert found == {ResourceType(GROUP, "v1", "tlsroutes", "TLSRoute")}
    assert paths(api) == [V1]


def test_one_listing_serves_all_kinds_of_the_group(api: Any, connect: Connect) -> None:
    """Kinds of one group and version cost one request together."""
    api.objects = {V1: listing("HTTPRoute", "TLSRoute")}
    discovery = Discovery(connect(api))
    discovery.resource(*TLS, deadline=soon())
    discovery.resource(*HTTP, deadline=soon())

    assert paths(api) == [V1]


def test_older_version_is_taken_where_the_kind_has_no_newer(api: Any, connect: Connect) -> None:
    """A version that is not served, or serves other kinds only, is stepped over (D23)."""
    api.objects = {V1: listing("HTTPRoute"), ALPHA2: listing("TLSRoute")}
    found = Discovery(connect(api)).resource(*TLS, deadline=soon())

    assert (found.version, paths(api)) == ("v1alpha2", [V1, ALPHA3, ALPHA2])


def test_kind_that_is_not_served_says_what_to_install(api: Any, connect: Connect) -> None:
    """Without the CRD the error names kind, group, versions and what to install."""
    with pytest.raises(
        errors.KindNotFound,
        match=rf"no TLSRoute \(tlsroutes\.{GROUP}\) at v1, v1alpha3, v1alpha2: install the Gateway API CRDs, https://",
    ):
        Discovery(connect(api)).resource(*TLS, deadline=soon())
    with pytest.raises(errors.KindNotFound, match="install the CRDs of example"):
        Discovery(connect(api)).resource("example.com", "xs", "X", ["v1"], deadline=soon())


def test_absence_is_not_remembered_for_long(api: Any, connect: Connect, fake_time: Any) -> None:
    """A CRD that is installed later is found some seconds later, and until then costs nothing."""
    discovery = Discovery(connect(api), timing=fake_time.timing)
    for _ in range(2):
        with pytest.raises(errors.KindNotFound):
            discovery.resource(*HTTP, deadline=soon())
    asked = len(api.requests)
    api.objects = {V1: listing("HTTPRoute")}
    fake_time.sleep(LISTING_SECONDS)

    assert (asked, discovery.resource(*HTTP, deadline=soon()).version) == (2, "v1")


def test_remembered_version_that_is_gone_is_asked_again(api: Any, connect: Connect, reply: Any) -> None:
    """A CRD upgraded in mid-life: the call meets a 404 of the kind, and is made once more with the new version."""
    api.objects = {ALPHA2: listing("TLSRoute")}
    client = connect(api)
    discovery = Discovery(client)
    discovery.resource(*TLS, deadline=soon())
    api.objects = {V1: listing("TLSRoute"), f"{V1}/namespaces/shop/tlsroutes/web": {"spec": 1}}
    api.responder = lambda request: None if request.path in api.objects else reply(404, b"404 page not found")
    found = discovery.on_served(*TLS, lambda kind: client.get(kind, "shop", "web", deadline=soon()), deadline=soon())

    assert found["spec"] == 1
    assert discovery.resource(*TLS, deadline=soon()).version == "v1"


def test_object_that_is_missing_is_not_asked_again(api: Any, connect: Connect) -> None:
    """A missing object of a served kind is the answer: nothing is forgotten."""
    api.objects = {V1: listing("HTTPRoute")}
    client = connect(api)
    discovery = Discovery(client)
    with pytest.raises(errors.NotFound):
        discovery.on_served(*HTTP, lambda kind: client.get(kind, "shop", "web", deadline=soon()), deadline=soon())

    assert len(api.requests) == 2


def test_same_version_again_is_the_error(api: Any, connect: Connect) -> None:
    """If the version asked again is the same, the 404 is the answer, after one new listing."""
    api.objects = {V1: listing("HTTPRoute")}
    calls: list[ResourceType] = []

    def use(resource: ResourceType) -> None:
        calls.append(resource)
        raise errors.KindNotFound("gone")

    with pytest.raises(errors.KindNotFound, match="gone"):
        Discovery(connect(api)).on_served(*HTTP, use, deadline=soon())

    assert (len(calls), paths(api)) == (1, [V1, V1])


def test_forbidden_discovery_takes_the_preferred_version(api: Any, connect: Connect, reply: Any, status: Any) -> None:
    """Where an account may not even discover, the preferred version is assumed."""
    api.responder = lambda _request: reply(403, status(403, "Forbidden", 'User "x" cannot get path'))

    assert Discovery(connect(api)).resource(*TLS, deadline=soon()).version == "v1"


@pytest.mark.parametrize(("fields", "expected"), [({"name": {"type": "string"}}, True), ({"matches": {}}, False)])
def test_kept_field_is_read_from_the_schema(
    api: Any, connect: Connect, routes: ResourceType, fields: dict[str, Any], *, expected: bool
) -> None:
    """Whether rule names survive is read from the API server's schema, once for many calls (D18)."""
    api.objects = {f"/openapi/v3{V1}": openapi("HTTPRoute", **fields)}
    discovery = Discovery(connect(api))
    found = {discovery.preserves(routes, NAME, deadline=soon()) for _ in range(3)}

    assert (found, paths(api)) == ({expected}, [f"/openapi/v3{V1}"])


def test_schema_is_read_again_later_and_after_forget(
    api: Any, connect: Connect, routes: ResourceType, fake_time: Any
) -> None:
    """An upgraded CRD is noticed after some minutes, or at once when its version went away."""
    api.objects = {f"/openapi/v3{V1}": openapi("HTTPRoute")}
    discovery = Discovery(connect(api), timing=fake_time.timing)
    old = discovery.preserves(routes, NAME, deadline=soon())
    api.objects = {f"/openapi/v3{V1}": openapi("HTTPRoute", name={})}
    remembered = discovery.preserves(routes, NAME, deadline=soon())
    fake_time.sleep(SCHEMA_SECONDS)
    later = discovery.preserves(routes, NAME, deadline=soon())
    api.objects = {f"/openapi/v3{V1}": openapi("HTTPRoute")}
    discovery.forget(routes)

    assert (old, remembered, later) == (False, False, True)
    assert discovery.preserves(routes, NAME, deadline=soon()) is False


@pytest.mark.parametrize("kept", [True, False])
def test_dry_run_tells_where_no_schema_is_shown(
    api: Any, connect: Connect, routes: ResourceType, reply: Any, *, kept: bool
) -> None:
    """Without OpenAPI v3 a dry-run write tells: nothing is changed, and the field is in the answer or not."""
    sample = {
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7"},
        "spec": {"rules": [{"name": "a"}]},
    }
    api.responder = lambda request: (
        reply(200, sample if kept else {"spec": {"rules": [{}]}}) if request.method == "PUT" else None
    )
    found = Discovery(connect(api)).preserves(routes, NAME, sample=sample, deadline=soon())

    assert (found, api.requests[-1].query["dryRun"]) == (kept, ["All"])


def test_unknown_is_an_error_not_a_guess(api: Any, connect: Connect, routes: ResourceType) -> None:
    """With neither a schema nor an object to try with, the question is an error that says so."""
    with pytest.raises(errors.NotFound, match=r"whether HTTPRoute of .*/v1 keeps spec\.rules\[\]\.name can't be found"):
        Discovery(connect(api)).preserves(routes, NAME, deadline=soon())
    with pytest.raises(errors.NotFound):
        Discovery(connect(api)).preserves(routes, NAME, sample={"spec": {}}, deadline=soon())


def test_how_many_rules_a_route_may_have_is_read_once(
    api: Any, connect: Connect, routes: ResourceType, fake_time: Any
) -> None:
    """The installed schema's limit is remembered as kept fields are, until it is forgotten or old."""
    document = openapi("HTTPRoute")
    schema = document["components"]["schemas"]["io.HTTPRoute"]
    rules = schema["properties"]["spec"]["properties"]["rules"]
    rules["maxItems"] = 64
    api.objects = {f"/openapi/v3{V1}": document}
    discovery = Discovery(connect(api), timing=fake_time.timing)
    found = [discovery.most_items(routes, "spec.rules", deadline=soon()) for _ in range(3)]
    rules["maxItems"] = 16
    discovery.forget(routes)
    found.append(discovery.most_items(routes, "spec.rules", deadline=soon()))
    rules["maxItems"] = 32
    fake_time.sleep(SCHEMA_SECONDS)
    found.append(discovery.most_items(routes, "spec.rules", deadline=soon()))

    assert (found, len(api.requests)) == ([64, 64, 64, 16, 32], 3)


def test_without_a_schema_the_number_of_rules_is_not_known(api: Any, connect: Connect, routes: ResourceType) -> None:
    """That is no error: the Gateway API's own limit holds then."""
    assert Discovery(connect(api)).most_items(routes, "spec.rules", deadline=soon()) is None


def test_a_missing_schema_is_not_remembered_for_long(
    api: Any, connect: Connect, routes: ResourceType, fake_time: Any
) -> None:
    """An API server that shows none is asked again after some seconds, and until then not with each call."""
    discovery = Discovery(connect(api), timing=fake_time.timing)
    for _ in range(2):
        with pytest.raises(errors.NotFound):
            discovery.preserves(routes, NAME, deadline=soon())
        assert discovery.most_items(routes, "spec.rules", deadline=soon()) is None
    asked = paths(api)
    api.objects = {f"/openapi/v3{V1}": openapi("HTTPRoute", name={})}
    fake_time.sleep(LISTING_SECONDS)

    assert asked == [f"/openapi/v3{V1}"]
    assert discovery.preserves(routes, NAME, deadline=soon())
