"""Reviews of access: the answer is what a request would meet, and nothing is stored."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

Ask = Callable[..., urllib3.BaseHTTPResponse]
PATH = "/apis/authorization.k8s.io/v1/"
GET_ROUTES = {"verb": "get", "group": "gateway.networking.k8s.io", "resource": "httproutes", "namespace": "shop"}
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "reader"},
    "rules": [{"apiGroups": ["gateway.networking.k8s.io"], "resources": ["httproutes"], "verbs": ["get"]}],
}
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "reader"},
    "roleRef": {"kind": "ClusterRole", "name": "reader"},
    "subjects": [{"kind": "ServiceAccount", "namespace": "ci", "name": "robot"}],
}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Start an API server under RBAC where only ci/robot may read routes."""
    with ApiServer(rbac=True) as running:
        running.create(ROLE)
        running.create(BINDING)
        yield running


def allowed(answer: urllib3.BaseHTTPResponse) -> bool:
    """Return what a review says."""
    assert answer.status == 201, answer.data
    return bool(answer.json()["status"]["allowed"])


def test_of_oneself(server: ApiServer, ask: Ask) -> None:
    """A user without rights may ask for its own, and hears what requests would meet."""
    body = {"spec": {"resourceAttributes": GET_ROUTES}}
    robot = {"Authorization": f"Bearer {server.access.add_token('system:serviceaccount:ci:robot')}"}

    assert not allowed(ask("POST", f"{PATH}selfsubjectaccessreviews", body))
    assert allowed(ask("POST", f"{PATH}selfsubjectaccessreviews", body, headers=robot))
    with server.deny("get", "httproutes"):
        assert not allowed(ask("POST", f"{PATH}selfsubjectaccessreviews", body, headers=robot))


def test_of_another(server: ApiServer, ask: Ask) -> None:
    """Asking for another takes a right of its own; then it is that user's rights that count."""
    spec = {"user": "system:serviceaccount:ci:robot", "groups": [], "resourceAttributes": GET_ROUTES}
    admin = {"Authorization": f"Bearer {server.access.admin_token}"}

    def review(**more: Any) -> urllib3.BaseHTTPResponse:
        return ask("POST", f"{PATH}subjectaccessreviews", {"spec": spec}, **more)

    assert review().status == 403
    assert allowed(review(headers=admin))
    spec["user"] = "somebody"
    assert not allowed(review(headers=admin))


def test_a_review_without_a_spec_is_refused(ask: Ask) -> None:
    """What is no review is a bad request."""
    assert ask("POST", f"{PATH}selfsubjectaccessreviews", {"kind": "x"}).status == 400
