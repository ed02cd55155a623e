"""Whole stories: what the controller sends from a user's action until nothing moves any more.

Each was seen with the controller's own code (argo-rollouts 1.9); letters are the branches of `desired`.
"""

from collections.abc import Callable
from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.host import actions
from rollouts_gwapi_plugin.embedded.host.cluster import Cluster, Destination
from rollouts_gwapi_plugin.embedded.host.controller import Reply

World = Any
MakeWorld = Callable[..., World]
HEADER = {"setHeaderRoute": {"name": "h", "match": [{"headerName": "a", "headerValue": {"exact": "1"}}]}}
PROMOTED = ["B", "RemoveManagedRoutes", "UpdateHash", "SetWeight 0", "VerifyWeight 0"]


def weights(n: int, letter: str, *before: str) -> list[str]:
    """Return the calls that set a weight."""
    return [letter, *before, "UpdateHash", f"SetWeight {n}", f"VerifyWeight {n}"]


def new_version(world: World, image: str = "v2") -> None:
    """Set another image."""
    world.controller.act(lambda cluster: actions.new_revision(cluster, image))


def distinct(stories: list[list[str]]) -> list[list[str]]:
    """Return what was done, without repetitions in a row."""
    return [one for index, one in enumerate(stories) if index == 0 or one != stories[index - 1]]


def test_first_deployment(raw_world: Callable[..., World], rollout: Callable[..., Any]) -> None:
    """A first version gets no weight but 0, and no call at all before its pods are there."""
    world = raw_world(rollout({"setWeight": 20}, HEADER))

    assert world.once() == ["-"]
    assert world.once() == ["D", "RemoveManagedRoutes"]
    assert world.cluster.read.fully_promoted
    assert world.once() == ["B", "RemoveManagedRoutes"]
    world.controller.act(Cluster.all_available)
    assert world.once() == PROMOTED
    assert world.selectors == {"stable": world.cluster.read.pod_hash, "canary": world.cluster.read.pod_hash}
    assert world.cluster.read.revision == 1


def test_canary_without_pauses(make_world: MakeWorld) -> None:
    """A weight repeats its predecessor until pods are ready, the end is the maximum, and then stable is the new one."""
    world = make_world({"setWeight": 20}, {"setWeight": 50})
    old = world.cluster.read.stable_hash
    new_version(world)

    stories = distinct(world.settle())
    new = world.cluster.read.pod_hash

    assert stories == [
        ["-"],
        weights(0, "D", "RemoveManagedRoutes"),
        weights(20, "G"),
        weights(20, "F"),
        weights(50, "G"),
        weights(50, "F"),
        weights(100, "H"),
        PROMOTED,
    ]
    assert new != old
    assert world.cluster.read.stable_hash == new
    assert world.selectors == {"stable": new, "canary": new}


def test_the_last_pods_come_after_the_last_step(make_world: MakeWorld) -> None:
    """Past the steps the weight waits at the last step's until the canary has all pods; old pods end after a delay."""
    world = make_world({"setWeight": 20})
    old = world.cluster.read.stable_hash
    new_version(world)
    world.settle()

    assert world.cluster.replica_sets[old].desired == 10
    world.now += 31
    world.settle()
    assert world.cluster.replica_sets[old].desired == 0


def test_pause(make_world: MakeWorld) -> None:
    """A pause goes on sending the weight, ends after its time, and one without a time ends by promotion."""
    world = make_world({"setWeight": 20}, {"pause": {"duration": "10s"}}, {"setWeight": 40}, {"pause": {}})
    new_version(world)

    world.settle()
    assert (world.cluster.read.index, world.once()) == (1, weights(20, "G"))
    world.now += 11
    world.settle()
    assert (world.cluster.read.index, world.once()) == (3, weights(40, "G"))
    world.now += 1000
    assert world.once() == weights(40, "G")
    world.controller.act(actions.promote)
    assert world.settle()[-1] == PROMOTED


def test_header_step_is_sent_once(make_world: MakeWorld) -> None:
    """A header step is one call and complete in the same reconcile."""
    world = make_world({"setWeight": 20}, HEADER, {"pause": {}})
    new_version(world)
    world.settle()

    sent = [call for call in world.notes.calls if call.method == "SetHeaderRoute"]
    assert [call.arguments["setHeaderRoute"] for call in sent] == [HEADER["setHeaderRoute"]]
    assert sent[0].arguments["rollout"]["status"]["currentStepIndex"] == 1


def test_header_step_is_lost_while_stable_lacks_pods(make_world: MakeWorld) -> None:
    """A header step completes without its call where stable lacks pods (argo-rollouts#4561)."""
    world = make_world({"setWeight": 20}, HEADER, {"pause": {}})
    new_version(world)
    world.once()
    while world.cluster.read.index < 1:
        world.once()
        world.controller.act(Cluster.all_available)
    stable = world.cluster.read.stable_hash
    short = world.cluster.replica_sets[stable]
    world.controller.act(lambda cluster: cluster.with_replica_set(stable, type(short)(short.desired, 3)))

    assert world.once() == ["G"]
    assert world.cluster.read.index == 2


def test_abort_and_retry(make_world: MakeWorld) -> None:
    """An abort repoints the canary Service, removes managed routes and sends 0; a first header step is set again."""
    world = make_world(HEADER, {"setWeight": 20}, {"pause": {}})
    new_version(world)
    world.settle()
    world.controller.act(actions.abort)

    aborted = weights(0, "C", "RemoveManagedRoutes")
    again = weights(0, "C", "RemoveManagedRoutes", "SetHeaderRoute h")
    assert distinct(world.settle()) == [aborted, again]
    assert world.selectors["canary"] == world.cluster.read.stable_hash
    assert world.cluster.read.index == 0
    world.now += 31
    world.settle()
    assert world.cluster.new.desired == 0

    world.controller.act(actions.retry)
    stories = distinct(world.settle())
    assert stories[0] == weights(0, "D", "RemoveManagedRoutes", "SetHeaderRoute h")
    assert stories[-1] == weights(20, "G")
    assert world.selectors["canary"] == world.cluster.read.pod_hash


def test_promote_full(make_world: MakeWorld) -> None:
    """A full promotion keeps the last weight until the canary is whole; the maximum is never sent."""
    world = make_world({"setWeight": 20}, {"pause": {}}, {"setWeight": 60})
    new_version(world)
    world.settle()
    world.controller.act(actions.promote_full)

    assert distinct(world.settle()) == [weights(20, "E", "RemoveManagedRoutes"), PROMOTED]


def test_promote_full_at_a_header_step_passes_the_end(make_world: MakeWorld) -> None:
    """The index can become larger than the number of steps."""
    world = make_world({"setWeight": 20}, {"pause": {}}, HEADER)
    new_version(world)
    world.settle()
    world.controller.act(actions.promote)
    world.once()
    assert world.cluster.read.step == HEADER
    world.controller.act(actions.promote_full)
    world.once()

    assert world.cluster.read.index == 4  # of three steps
    assert world.settle()[-1] == PROMOTED


def test_third_version_in_between(make_world: MakeWorld) -> None:
    """A third version in the second takes the weight back before UpdateHash, and starts anew."""
    world = make_world({"setWeight": 20}, {"pause": {}})
    new_version(world)
    world.settle()
    second = world.cluster.read.pod_hash
    new_version(world, "v3")

    stories = distinct(world.settle())
    assert stories[:2] == [
        ["-"],
        ["D", "RemoveManagedRoutes", "SetWeight 0", "UpdateHash", "SetWeight 0", "VerifyWeight 0"],
    ]
    assert stories[-1] == weights(20, "G")
    assert world.cluster.replica_sets[second].desired == 0


@pytest.mark.parametrize(
    ("version", "first"),
    [
        ((1, 7), ["D", "UpdateHash", "SetWeight 0", "VerifyWeight 0"]),
        ((1, 8), ["D", "RemoveManagedRoutes", "UpdateHash", "SetWeight 0", "VerifyWeight 0"]),
        ((1, 9), ["D", "RemoveManagedRoutes", "SetWeight 0", "UpdateHash", "SetWeight 0", "VerifyWeight 0"]),
    ],
)
def test_host_versions(make_world: MakeWorld, version: tuple[int, int], first: list[str]) -> None:
    """Older controllers send less while no canary is available."""
    world = make_world({"setWeight": 20}, {"pause": {}}, version=version)
    new_version(world)
    world.settle()
    new_version(world, "v3")
    world.once()

    assert world.once() == first


def test_rollback_to_stable(make_world: MakeWorld) -> None:
    """The stable version again, in the middle of an update, goes straight back to it."""
    world = make_world({"setWeight": 20}, {"pause": {}})
    new_version(world)
    world.settle()
    new_version(world, "v1")

    assert distinct(world.settle()) == [["-"], PROMOTED]


def test_dynamic_rollback_to_stable(make_world: MakeWorld) -> None:
    """With dynamicStableScale the weight goes down as stable's pods come, with the previous canary's hash."""
    world = make_world({"setWeight": 50}, {"pause": {}}, canary={"dynamicStableScale": True})
    new_version(world)
    world.settle()
    canary = world.cluster.read.pod_hash
    assert world.cluster.stable.desired == 5
    new_version(world, "v1")
    world.once()
    world.notes.calls.clear()

    assert world.once() == weights(50, "A")
    hashes = next(call.arguments for call in world.notes.calls if call.method == "UpdateHash")
    assert hashes["canaryHash"] == canary
    assert distinct(world.settle())[-1] == PROMOTED


def test_dynamic_abort_goes_down_in_steps(make_world: MakeWorld) -> None:
    """With dynamicStableScale an abort follows stable's pods, and the canary Service is repointed only at 0."""
    world = make_world({"setWeight": 20}, {"setWeight": 60}, {"pause": {}}, canary={"dynamicStableScale": True})
    new_version(world)
    world.settle()
    canary = world.cluster.read.pod_hash
    world.controller.act(actions.abort)

    assert world.once() == weights(60, "C", "RemoveManagedRoutes")
    assert world.selectors["canary"] == canary
    sent = [one[3] for one in distinct(world.settle())]
    assert sent == sorted(sent, key=lambda text: -int(text.split()[1]))
    assert sent[-1] == "SetWeight 0"
    assert world.selectors["canary"] == world.cluster.read.stable_hash


def test_ping_pong(make_world: MakeWorld) -> None:
    """With ping-pong the canary is the Service whose turn it is, and the stable name changes at the promotion."""
    world = make_world(
        {"setWeight": 20},
        canary={"pingPong": {"pingService": "ping", "pongService": "pong"}, "stableService": "", "canaryService": ""},
    )
    (stable, canary), old = world.cluster.read.services(), world.cluster.read.pod_hash
    new_version(world)
    world.settle()

    assert (stable, canary) == ("ping", "pong")
    assert world.selectors == {"ping": old, "pong": world.cluster.read.pod_hash}
    assert world.cluster.read.services() == ("pong", "ping")


def test_experiment(make_world: MakeWorld) -> None:
    """Destinations are sent while the experiment runs, with Remove each time, and one call without them follows."""
    world = make_world({"experiment": {"templates": [{"name": "a", "weight": 5}]}}, {"setWeight": 20})
    new_version(world)
    world.once()
    world.once()
    assert world.cluster.read.status["canary"]["currentExperiment"].startswith("web-")

    def phase(name: str) -> None:
        destinations = (Destination("exp-a", "h", 5),)
        world.controller.act(
            lambda cluster: type(cluster)(
                **{**vars(cluster), "experiment": type(cluster.experiment)("e", name, destinations)}
            )
        )

    calls = ["D", "RemoveManagedRoutes", "UpdateHash"]
    phase("Running")
    assert world.once() == [*calls, "SetWeight 0 exp-a=5", "VerifyWeight 0 exp-a=5"]
    assert world.cluster.read.weights["stable"]["weight"] == 95
    phase("Successful")
    assert world.once() == [*calls, "SetWeight 0", "VerifyWeight 0"]
    assert (world.cluster.read.index, world.cluster.read.status["canary"]["currentExperiment"]) == (1, "")


@pytest.mark.parametrize("method", ["UpdateHash", "SetWeight"])
def test_an_error_ends_the_reconcile(make_world: MakeWorld, method: str) -> None:
    """After a failed call nothing more is sent and nothing moves."""
    world = make_world({"setWeight": 20}, {"pause": {}})
    new_version(world)
    world.once()
    world.notes.answers[method] = Reply(error="broken")
    world.notes.calls.clear()
    before = world.cluster
    done = world.controller.reconcile()

    assert done.outcome.error == f"{method}: broken"
    assert world.notes.calls[-1].method == method
    assert world.cluster == before


def test_not_verified_holds_a_weight_step(make_world: MakeWorld) -> None:
    """A weight that is not verified holds its step; an error of VerifyWeight does not."""
    world = make_world({"setWeight": 20}, {"pause": {}})
    world.notes.answers["VerifyWeight"] = Reply(verified=False)
    new_version(world)
    world.settle()
    assert world.cluster.read.index == 0
    world.notes.answers["VerifyWeight"] = Reply(error="broken")
    world.settle()
    assert world.cluster.read.index == 1


def test_not_verified_holds_the_end_and_an_error_does_not(make_world: MakeWorld) -> None:
    """At the maximum, not verified is no promotion; an error promotes."""
    world = make_world({"setWeight": 20})
    new_version(world)
    world.once()
    while world.cluster.read.index < 1 or world.cluster.new.available < 10:
        world.once()
        world.controller.act(Cluster.all_available)
    world.notes.answers["VerifyWeight"] = Reply(verified=False)
    assert world.settle() == [weights(100, "H")]
    assert not world.cluster.read.fully_promoted
    world.notes.answers["VerifyWeight"] = Reply(error="broken")
    world.once()
    assert world.cluster.read.fully_promoted


def test_paused_by_the_user(make_world: MakeWorld) -> None:
    """`spec.paused` stops scaling and steps, not the calls."""
    world = make_world({"setWeight": 20}, {"setWeight": 40})
    new_version(world)
    world.once()
    world.controller.act(lambda cluster: actions.set_paused(cluster, paused=True))

    assert world.settle()[-1] == weights(0, "D", "RemoveManagedRoutes")
    world.controller.act(lambda cluster: actions.set_paused(cluster, paused=False))
    assert world.settle()[-1] == PROMOTED


def test_ping_and_type_come_first(make_world: MakeWorld) -> None:
    """Each reconcile with traffic routing begins with Ping and Type."""
    world = make_world({"setWeight": 20})
    world.notes.pings = 0
    world.once()

    assert (world.notes.pings, world.notes.calls[0].method) == (1, "Type")


def test_changed_steps_start_again(make_world: MakeWorld) -> None:
    """Other steps reset the index without a call; the revision stays."""
    world = make_world({"setWeight": 20}, {"pause": {}})
    new_version(world)
    world.settle()
    world.controller.act(lambda cluster: actions.change_steps(cluster, [{"setWeight": 40}, {"pause": {}}]))

    assert world.once() == ["-"]
    assert (world.cluster.read.index, world.cluster.read.revision) == (0, 2)
    assert world.settle()[-1] == weights(40, "G")


def test_a_label_makes_a_version(make_world: MakeWorld) -> None:
    """Another label in the template is a new revision, as another image is."""
    world = make_world({"setWeight": 20}, {"pause": {}})
    old = world.cluster.read.pod_hash
    world.controller.act(lambda cluster: actions.label_template(cluster, "version", "v2"))

    assert world.cluster.read.pod_hash != old
    assert distinct(world.settle())[-1] == weights(20, "G")
    assert world.cluster.rollout["spec"]["template"]["metadata"]["labels"]["version"] == "v2"
