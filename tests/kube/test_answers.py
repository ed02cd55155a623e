"""What each answer of an API server, or of something in between, means.

Matrix: every status class; JSON Status, other JSON, HTML, nothing, garbage; the three 404s; RBAC and other 403s.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts_gwapi_plugin import errors
from rollouts_gwapi_plugin.kube.answers import MAX_SERVER_TEXT, Answer, Operation, error_from, object_from, one_line
from rollouts_gwapi_plugin.model.kube import CONFIG_MAPS, ResourceType

StatusMaker = Callable[..., dict[str, Any]]
ROUTES = ResourceType("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
GET = Operation("get", ROUTES, "shop", "web")


def answered(status: int, body: Any, **headers: str) -> Answer:
    """Return an answer with a body given as JSON value, text or bytes."""
    if isinstance(body, str):
        body = body.encode()
    return Answer(status, headers, body if isinstance(body, bytes) else json.dumps(body).encode())


def test_object_is_returned_whole() -> None:
    """A good answer is the object as sent, unknown fields and nulls kept."""
    sent = {"kind": "HTTPRoute", "spec": {"new": None, "n": 1}}

    assert object_from(GET, answered(200, sent)) == sent


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (400, errors.Invalid),
        (401, errors.Forbidden),
        (403, errors.Forbidden),
        (404, errors.KindNotFound),
        (409, errors.Conflict),
        (410, errors.Invalid),
        (413, errors.Invalid),
        (422, errors.Invalid),
        (429, errors.Unavailable),
        (302, errors.Unavailable),
        (500, errors.Unavailable),
        (503, errors.Unavailable),
    ],
)
def test_status_is_one_class(code: int, expected: type[errors.KubeError]) -> None:
    """Each status is one class of the tree, carries the status and names the object."""
    error = error_from(GET, answered(code, b""))

    assert (type(error), error.status) == (expected, code)
    assert "get HTTPRoute shop/web" in str(error)


def test_missing_object_and_missing_kind_differ(status: StatusMaker) -> None:
    """The three 404s have three texts: no object, no namespace, no kind (plain text or Status)."""
    missing = answered(404, status(404, "NotFound", '"web" not found', name="web", kind="httproutes"))
    namespace = answered(404, status(404, "NotFound", '"shop" not found', name="shop", kind="namespaces"))
    plain = answered(404, "404 page not found\n")
    kind = answered(404, status(404, "NotFound", "the server could not find the requested resource"))
    found = [error_from(GET, answer) for answer in (missing, namespace, plain, kind)]

    assert [type(error) for error in found] == [
        errors.NotFound,
        errors.NotFound,
        errors.KindNotFound,
        errors.KindNotFound,
    ]
    assert "HTTPRoute shop/web does not exist" in str(found[0])
    assert "namespace shop does not exist" in str(found[1])
    assert "serves no httproutes of gateway.networking.k8s.io/v1" in str(found[2])
    assert "404 page not found" in str(found[2])
    assert "serves no httproutes of gateway.networking.k8s.io/v1" in str(found[3])


def test_rbac_refusal_names_the_rule_to_add(status: StatusMaker) -> None:
    """A 403 of RBAC names account, verb, resource, group, namespace, and the rule as YAML takes it."""
    message = (
        'httproutes.gateway.networking.k8s.io "web" is forbidden: User "system:serviceaccount:argo:argo-rollouts" '
        'cannot update resource "httproutes" in API group "gateway.networking.k8s.io" in the namespace "shop"'
    )
    text = str(error_from(Operation("update", ROUTES, "shop", "web"), answered(403, status(403, "Forbidden", message))))

    assert "service account system:serviceaccount:argo:argo-rollouts may not update httproutes" in text
    assert "API group gateway.networking.k8s.io in namespace shop" in text
    assert '{apiGroups: ["gateway.networking.k8s.io"], resources: ["httproutes"], verbs: ["update"]}' in text


def test_rbac_refusal_of_the_core_group(status: StatusMaker) -> None:
    """The core group is the empty string in the rule, and an anonymous user is told that nothing was sent."""
    message = 'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps"'
    operation = Operation("list", CONFIG_MAPS, "shop")
    text = str(error_from(operation, answered(403, status(403, "Forbidden", message))))

    assert '{apiGroups: [""], resources: ["configmaps"], verbs: ["list"]}' in text
    assert "no token or client certificate was sent" in text


def test_rbac_refusal_of_a_path(status: StatusMaker) -> None:
    """A path that is no resource asks for a rule of nonResourceURLs."""
    message = 'forbidden: User "dev" cannot get path "/openapi/v3"'
    text = str(error_from(Operation("get", path="/openapi/v3"), answered(403, status(403, "Forbidden", message))))

    assert '{nonResourceURLs: ["/openapi/v3"], verbs: ["get"]}' in text


def test_refusal_by_admission_asks_for_no_rule(status: StatusMaker) -> None:
    """A 403 that is not RBAC (a webhook, a quota) tells the server's text and no rule to add."""
    message = 'admission webhook "policy.example" denied the request: no canaries on Friday'
    text = str(error_from(GET, answered(403, status(403, "Forbidden", message))))

    assert "no canaries on Friday" in text
    assert "apiGroups" not in text


def test_causes_name_the_fields(status: StatusMaker) -> None:
    """A 422 lists the fields and what is wrong with each, and says how many more there are."""
    causes = [{"reason": "Invalid", "field": f"spec.rules[{n}].name", "message": f"bad {n}"} for n in range(9)]
    error = error_from(GET, answered(422, status(422, "Invalid", "is invalid", causes=causes)))

    assert "(422): spec.rules[0].name: bad 0; spec.rules[1].name: bad 1" in str(error)
    assert str(error).endswith("(and 3 more)")


@pytest.mark.parametrize("field", ["<nil>", "[]", "", None])
def test_cause_without_a_field_is_the_objects(status: StatusMaker, field: str | None) -> None:
    """What concerns the whole object is told as such."""
    causes = [{"field": field, "message": "Too long: may not be more than 1048576 bytes"}]
    error = error_from(GET, answered(422, status(422, "Invalid", "is invalid", causes=causes)))

    assert str(error).endswith("(422): object: Too long: may not be more than 1048576 bytes")


def test_create_of_what_is_there(status: StatusMaker) -> None:
    """A 409 with the reason AlreadyExists is its own class."""
    error = error_from(Operation("create", CONFIG_MAPS, "a", "b"), answered(409, status(409, "AlreadyExists", "there")))

    assert isinstance(error, errors.AlreadyExists)


def test_page_of_a_proxy_is_told_by_its_title() -> None:
    """A proxy's HTML becomes one line: its title, or its text without tags."""
    page = "<html><head><title>502 Bad\nGateway</title></head><body>nginx</body></html>"
    with_title = str(error_from(GET, answered(502, page)))
    without = str(error_from(GET, answered(502, "<html><body><h1>upstream</h1>\n<p>down</p></body></html>")))

    assert with_title.endswith("answered 502: 502 Bad Gateway")
    assert without.endswith("answered 502: upstream down")


def test_good_answer_that_is_not_json() -> None:
    """A 200 with HTML (a login page) is no object: the text says that it is not the API server's."""
    with pytest.raises(errors.Unavailable, match=r"\(200, 24 bytes\) is not JSON.*Sign in"):
        object_from(GET, answered(200, "<title>Sign in</title>\r\n"))
    with pytest.raises(errors.Unavailable, match="not an object"):
        object_from(GET, answered(200, [1]))
    with pytest.raises(errors.Unavailable, match="is not JSON"):
        object_from(GET, answered(200, b"[" * 200_000))


def test_server_text_is_cut(status: StatusMaker) -> None:
    """A server's text of any length becomes a line of bounded length."""
    error = error_from(GET, answered(400, status(400, "BadRequest", "x" * 100_000)))

    assert len(str(error)) < MAX_SERVER_TEXT + 200


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        ({"retry-after": "3"}, {}, 3.0),
        ({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, {}, None),
        ({}, {"kind": "Status", "details": {"retryAfterSeconds": 2}}, 2.0),
        ({}, {"kind": "Status", "details": {"retryAfterSeconds": 10**400}}, 24 * 3600.0),
        ({}, {"kind": "Status", "details": None}, None),
        ({}, {}, None),
    ],
)
def test_retry_after(headers: dict[str, str], body: dict[str, Any], expected: float | None) -> None:
    """The wait that the server asks for is read from the header or the Status; a date is not."""
    assert Answer(429, headers, json.dumps(body).encode()).retry_after == expected


@given(
    code=st.integers(100, 599),
    body=st.one_of(
        st.binary(max_size=200),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["kind", "details", "causes", "message", "reason", "name", "field", "x"]), inner
                )
            ),
        ).map(lambda value: json.dumps({"kind": "Status", "details": value, "message": value}).encode()),
    ),
)
def test_any_answer_is_an_object_or_one_error(code: int, body: bytes) -> None:
    """Whatever comes back is a dict or a KubeError whose text is one printable line."""
    found: object
    try:
        found = object_from(GET, Answer(code, {}, body))
    except errors.KubeError as error:
        found = error

    assert isinstance(found, dict) or str(found).isprintable()


def test_one_line_replaces_what_can_not_be_printed() -> None:
    """Control characters of foreign text never reach a log or a terminal."""
    assert one_line("a\x1b[31m\n b\x00") == "a?[31m b?"
