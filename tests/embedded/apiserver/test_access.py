"""Who may do what: tokens, denials, and RBAC by the objects of the API."""

from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

USER = "system:serviceaccount:argo-rollouts:argo-rollouts"
RBAC = "rbac.authorization.k8s.io"


def _role(kind: str, name: str, rules: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": {"name": name, **more}, "rules": rules}


def _binding(kind: str, name: str, role: str, subject: dict[str, str], **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": {"name": name, **more},
        "roleRef": {"apiGroup": RBAC, "kind": role, "name": name},
        "subjects": [subject],
    }


_SERVICE_ACCOUNT = {"kind": "ServiceAccount", "namespace": "argo-rollouts", "name": "argo-rollouts"}
_ROUTES = {"apiGroups": ["gateway.networking.k8s.io"], "resources": ["httproutes"], "verbs": ["get", "update"]}


@pytest.fixture
def guarded() -> Iterator[ApiServer]:
    """Start a server on which RBAC decides."""
    with ApiServer(rbac=True) as running:
        yield running


def _status(server: ApiServer, method: str, path: str, **headers: str) -> int:
    with urllib3.PoolManager(retries=False) as pool:
        return int(pool.request(method, server.url + path, headers=headers).status)


def test_nothing_is_allowed_without_a_role(guarded: ApiServer, routes: str, web: dict[str, Any]) -> None:
    """With RBAC a user without roles gets 403 for each verb, and discovery all the same."""
    guarded.create(web)

    assert [_status(guarded, method, f"{routes}/web") for method in ("GET", "PUT", "DELETE")] == [403, 403, 403]
    assert _status(guarded, "GET", "/apis/gateway.networking.k8s.io/v1") == 200


def test_cluster_role_binding_allows_everywhere(guarded: ApiServer, routes: str, web: dict[str, Any]) -> None:
    """A ClusterRole bound in the cluster allows its verbs on its resources, and no others."""
    guarded.create(web)
    guarded.load([
        _role("ClusterRole", "r", [_ROUTES]),
        _binding("ClusterRoleBinding", "r", "ClusterRole", _SERVICE_ACCOUNT),
    ])  # fmt: skip

    assert _status(guarded, "GET", f"{routes}/web") == 200
    assert _status(guarded, "DELETE", f"{routes}/web") == 403
    assert _status(guarded, "PUT", f"{routes}/web/status") == 403
    assert _status(guarded, "GET", "/api/v1/namespaces/shop/configmaps/x") == 403


def test_role_binding_allows_in_its_namespace(guarded: ApiServer, routes: str, web: dict[str, Any]) -> None:
    """A binding in a namespace allows nothing in another one."""
    guarded.create(web)
    guarded.create(web | {"metadata": {"name": "web", "namespace": "other"}})
    group = {"kind": "Group", "name": "system:serviceaccounts:argo-rollouts"}
    guarded.load([
        _role("Role", "r", [_ROUTES], namespace="shop"),
        _binding("RoleBinding", "r", "Role", group, namespace="shop"),
    ])  # fmt: skip

    assert _status(guarded, "GET", f"{routes}/web") == 200
    assert _status(guarded, "GET", f"{routes.replace('shop', 'other')}/web") == 403


def test_aggregated_roles_and_resource_names(guarded: ApiServer, routes: str, web: dict[str, Any]) -> None:
    """An aggregating ClusterRole has the rules of those that its selector finds; names narrow a rule."""
    guarded.create(web)
    rule = _ROUTES | {"resourceNames": ["web"], "verbs": ["*"]}
    whole = _role("ClusterRole", "r", [])
    whole["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}
    guarded.load([
        whole,
        _role("ClusterRole", "part", [rule], labels={"part": "yes"}),
        _binding("ClusterRoleBinding", "r", "ClusterRole", {"kind": "User", "name": USER}),
    ])  # fmt: skip

    assert _status(guarded, "GET", f"{routes}/web") == 200
    assert _status(guarded, "GET", f"{routes}/other") == 403
    assert _status(guarded, "GET", routes) == 403


def test_tokens_name_users(guarded: ApiServer, routes: str) -> None:
    """An administrator's token may all, an unknown one is 401, and so is a revoked one."""
    admin = {"Authorization": f"Bearer {guarded.access.admin_token}"}
    token = guarded.access.add_token("somebody", groups=("system:masters",))

    assert _status(guarded, "GET", routes, **admin) == 200
    assert _status(guarded, "GET", routes, Authorization=f"Bearer {token}") == 200
    guarded.access.revoke(token)
    assert _status(guarded, "GET", routes, Authorization=f"Bearer {token}") == 401


def test_token_can_be_required() -> None:
    """Where a token is required, a request without one is 401."""
    with ApiServer(require_token=True) as server:
        assert _status(server, "GET", "/api/v1/namespaces") == 401


def test_impersonation_is_for_administrators(guarded: ApiServer, routes: str) -> None:
    """An administrator who acts as another user has that user's rights; nobody else can."""
    admin = {"Authorization": f"Bearer {guarded.access.admin_token}", "Impersonate-User": USER}

    assert _status(guarded, "GET", routes, **admin) == 403
    assert _status(guarded, "GET", routes, **{"Impersonate-User": "admin"}) == 403


def test_denial_is_of_verb_resource_namespace_and_name(server: ApiServer, routes: str, web: dict[str, Any]) -> None:
    """A denial does not reach other verbs, subresources, namespaces and names."""
    server.create(web)
    server.deny("get", "httproutes", "shop", "web")

    assert _status(server, "GET", f"{routes}/web") == 403
    assert _status(server, "GET", f"{routes}/web/status") == 200
    assert _status(server, "GET", f"{routes}/other") == 404
    assert _status(server, "GET", f"{routes.replace('shop', 'other')}/web") == 404
    assert _status(server, "GET", routes) == 200
