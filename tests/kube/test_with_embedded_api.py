"""The whole client against the embedded API server, which answers what the real one answers.

The other tests script the server; here versions, dry runs, pruning, RBAC and lost answers are the server's own work.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rollouts_gwapi_plugin import errors
from rollouts_gwapi_plugin.embedded.apiserver import ApiServer
from rollouts_gwapi_plugin.embedded.apiserver.faults import Drop
from rollouts_gwapi_plugin.kube.auth import load_cluster_config
from rollouts_gwapi_plugin.kube.client import KubeClient
from rollouts_gwapi_plugin.kube.conflicts import retry_on_conflict, under_version_of
from rollouts_gwapi_plugin.kube.deadline import Deadline
from rollouts_gwapi_plugin.kube.discovery import Discovery
from rollouts_gwapi_plugin.kube.event_post import post_event
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import CONFIG_MAPS, ObjectRef, ResourceType
from rollouts_gwapi_plugin.model.rollout import parse_rollout
from rollouts_gwapi_plugin.observe.events import EventRecorder

GROUP = "example.com"
THINGS = ResourceType(GROUP, "v1", "things", "Thing")
THING = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "Thing",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"rules": [{"weight": 1}]},
}


def definition(*versions: str) -> JsonObject:
    """Return a CRD that keeps a rule's weight and prunes all else, served at the given versions."""
    rule = {"type": "object", "properties": {"weight": {"type": "integer", "minimum": 0}}}
    spec = {"type": "object", "properties": {"rules": {"type": "array", "items": rule}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "versions": [
                {"name": name, "served": True, "storage": name == versions[0], "schema": schema} for name in versions
            ],
        },
    }


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Start an API server over TLS with one thing."""
    with ApiServer(crds=[definition("v1")], tls=True) as running:
        running.create(THING)
        yield running


@pytest.fixture
def client(server: ApiServer, tmp_path: Path, connect: Callable[..., KubeClient]) -> KubeClient:
    """Connect as the kubeconfig of the server says."""
    return connect(load_cluster_config(server.write_kubeconfig(tmp_path / "kubeconfig")))


def soon() -> Deadline:
    """Return a deadline that no test meets."""
    return Deadline.after(20)


def named(thing: JsonObject) -> JsonObject:
    """Return the thing with a name in its rule, which the CRD prunes."""
    return {**thing, "spec": {"rules": [{**thing["spec"]["rules"][0], "name": "a"}]}}


def weighted(thing: JsonObject, weight: int = 5) -> JsonObject:
    """Return the thing with another weight."""
    return {**thing, "spec": {"rules": [{"weight": weight}]}}


def written(client: KubeClient, before_writing: Callable[[int], None]) -> int:
    """Read the thing and write weight 5 where it has another; return the number of tries."""
    deadline = soon()

    def attempt(tries: int) -> int:
        thing = client.get(THINGS, "shop", "web", deadline=deadline)
        before_writing(tries)
        if thing["spec"]["rules"] != [{"weight": 5}]:
            client.put(THINGS, under_version_of(thing, weighted(thing)), deadline=deadline)
        return tries

    return retry_on_conflict(attempt, ObjectRef("Thing", "shop", "web"), deadline=deadline)


def test_foreign_write_in_between_is_kept(server: ApiServer, client: KubeClient) -> None:
    """A label that somebody sets between our read and our write survives our second try."""

    def interfere(tries: int) -> None:
        if tries == 1:
            server.patch("things.example.com", "shop", "web", {"metadata": {"labels": {"theirs": "1"}}})

    tries = written(client, interfere)
    now = server.read("things.example.com", "shop", "web")

    assert (tries, now["metadata"]["labels"]) == (2, {"theirs": "1"})
    assert now["spec"]["rules"] == [{"weight": 5}]


def test_lost_answer_is_written_once(server: ApiServer, client: KubeClient) -> None:
    """A write whose answer is lost is found done: one new generation, no second write."""
    server.faults.add(verb="update", drop=Drop.AFTER)
    tries = written(client, lambda _: None)
    now = server.read("things.example.com", "shop", "web")

    assert (tries, now["spec"]["rules"], now["metadata"]["generation"]) == (2, [{"weight": 5}], 2)


def test_overload_and_outage_pass(server: ApiServer, client: KubeClient) -> None:
    """A 429 with Retry-After, a 500 and a dropped connection in a row are not seen by the caller (C138)."""
    server.faults.add(verb="get", status=429, retry_after=1)
    server.faults.add(verb="get", status=500)
    server.faults.add(verb="get", drop=Drop.BEFORE)

    assert client.get(THINGS, "shop", "web", deadline=soon())["spec"]["rules"] == [{"weight": 1}]


def test_pruning_is_known_before_it_hurts(server: ApiServer, client: KubeClient) -> None:
    """Schema and dry run agree on what the CRD prunes, and change nothing."""
    discovery = Discovery(client)
    thing = client.get(THINGS, "shop", "web", deadline=soon())
    paths = ("spec.rules[].name", "spec.rules[].weight")
    by_schema = [discovery.preserves(THINGS, path, deadline=soon()) for path in paths]
    by_dry_run = [discovery._from_dry_run(THINGS, path, named(thing), soon()) for path in paths]

    assert by_schema == by_dry_run == [False, True]
    assert server.read("things.example.com", "shop", "web") == thing


def test_version_that_moves_in_mid_life(server: ApiServer, client: KubeClient) -> None:
    """When the CRD stops serving the remembered version, the same call finds the new one."""
    discovery = Discovery(client)
    kind = (GROUP, "things", "Thing", ("v2", "v1"))
    before = discovery.resource(*kind, deadline=soon())
    server.update(definition("v2"))
    found = discovery.on_served(*kind, lambda it: client.get(it, "shop", "web", deadline=soon()), deadline=soon())

    assert (before.version, found["apiVersion"]) == ("v1", f"{GROUP}/v2")


def test_missing_rights_are_told(server: ApiServer, client: KubeClient) -> None:
    """A 403 of the server names who may not do what, where, and the rule to add (C114)."""
    with (
        server.deny("update", "things", "shop"),
        pytest.raises(
            errors.Forbidden,
            match=r"service account system:serviceaccount:\S+ may not update things of API group example\.com in "
            r'namespace shop; .* \{apiGroups: \["example\.com"\], resources: \["things"\], verbs: \["update"\]\}',
        ),
    ):
        written(client, lambda _: None)


def test_refusals_name_field_and_kind(server: ApiServer, client: KubeClient) -> None:
    """What the CRD refuses names the field; a missing object and a missing kind differ."""
    with pytest.raises(errors.Invalid, match=r"\(422\): spec\.rules\[0\]\.weight: "):
        client.put(THINGS, weighted(client.get(THINGS, "shop", "web", deadline=soon()), -1), deadline=soon())
    with pytest.raises(errors.NotFound, match="Thing shop/other does not exist"):
        client.get(THINGS, "shop", "other", deadline=soon())
    with pytest.raises(errors.KindNotFound, match=r"serves no things of example\.com/v9"):
        client.get(ResourceType(GROUP, "v9", "things", "Thing"), "shop", "web", deadline=soon())

    assert server.read("things.example.com", "shop", "web")["spec"] == THING["spec"]


def test_writes_carry_our_name(server: ApiServer, client: KubeClient) -> None:
    """The server records our field manager and our user agent."""
    made = client.post(CONFIG_MAPS, "shop", {"metadata": {"name": "ledger"}, "data": {"a": "b"}}, deadline=soon())
    request = server.requests[-1]

    assert made["metadata"]["managedFields"][0]["manager"] == "rollouts-gwapi-plugin"
    assert request.user_agent.startswith("rollouts-gwapi-plugin/")


def test_list_takes_selectors(server: ApiServer, client: KubeClient) -> None:
    """A selector chooses, by the server's own reading of it."""
    server.create({**THING, "metadata": {"name": "api", "namespace": "shop", "labels": {"tier": "a"}}})
    found = client.list(THINGS, "shop", label_selector="tier in (a,b),!x", deadline=soon())

    assert [thing["metadata"]["name"] for thing in found] == ["api"]
    assert found[0]["kind"] == "Thing"


def test_event_is_on_the_api(server: ApiServer, client: KubeClient) -> None:
    """An Event of the recorder is an Event that the server takes."""
    rollout: Any = parse_rollout({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}})
    recorder = EventRecorder(lambda namespace, event: post_event(client, namespace, event))
    recorder.record(rollout, "verify", "Warning", "RouteNotAccepted", "not accepted")
    assert recorder.flush(10)
    recorder.close()

    assert [event["reason"] for event in server.list("events", "shop")] == ["RouteNotAccepted"]


def test_a_review_of_access_is_answered(client: KubeClient) -> None:
    """What is posted to a path comes back with the API server's answer in it."""
    spec = {"resourceAttributes": {"verb": "get", "group": "", "resource": "secrets", "namespace": "shop"}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    answer = client.raw_post(path, {"spec": spec}, deadline=Deadline.after(10))

    assert answer == {"spec": spec, "status": {"allowed": True}}
