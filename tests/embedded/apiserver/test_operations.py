"""Create, read, replace, delete; versions, generations, conflicts."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer


def test_create_gives_what_the_api_server_gives(ask: Any, routes: str, web: dict[str, Any]) -> None:
    """A created object has a uid, a version, a time, generation 1 and the defaults of its kind."""
    answer = ask("POST", routes, web)

    metadata = answer.json()["metadata"]
    rule = answer.json()["spec"]["rules"][0]
    assert (answer.status, metadata["generation"]) == (201, 1)
    assert all(metadata[key] for key in ("uid", "resourceVersion", "creationTimestamp"))
    assert rule["backendRefs"][0] == {"name": "stable", "port": 80, "weight": 1, "group": "", "kind": "Service"}
    assert rule["backendRefs"][1]["weight"] == 0
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/"}}]


def test_second_create_is_refused(server: ApiServer, ask: Any, routes: str, web: dict[str, Any]) -> None:
    """A taken name answers 409 AlreadyExists."""
    server.create(web)

    answer = ask("POST", routes, web)

    assert (answer.status, answer.json()["reason"]) == (409, "AlreadyExists")
    assert answer.json()["message"] == 'httproutes.gateway.networking.k8s.io "web" already exists'


def test_stale_put_is_a_conflict(server: ApiServer, ask: Any, routes: str, web: dict[str, Any]) -> None:
    """A PUT under an old resourceVersion is refused and changes nothing."""
    stale = server.create(web)
    server.edit("HTTPRoute", "shop", "web", lambda route: route["metadata"].update(labels={"a": "b"}))

    answer = ask("PUT", f"{routes}/web", stale)

    assert answer.status == 409
    assert answer.json()["message"] == (
        'Operation cannot be fulfilled on httproutes.gateway.networking.k8s.io "web": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert server.read("HTTPRoute", "shop", "web")["metadata"]["labels"] == {"a": "b"}


def test_put_without_version_is_refused(server: ApiServer, ask: Any, routes: str, web: dict[str, Any]) -> None:
    """A custom resource can't be replaced without saying which version is meant."""
    server.create(web)

    answer = ask("PUT", f"{routes}/web", web)

    assert answer.status == 422
    assert answer.json()["details"]["causes"][0]["field"] == "metadata.resourceVersion"


def test_generation_counts_changes_of_the_spec_only(server: ApiServer, web: dict[str, Any]) -> None:
    """Labels and status leave the generation, spec raises it; each write raises the version."""
    first = server.create(web)["metadata"]

    labelled = server.edit("HTTPRoute", "shop", "web", lambda route: route["metadata"].update(labels={"a": "b"}))
    judged = server.update_status(labelled | {"status": {"parents": []}})
    changed = server.edit("HTTPRoute", "shop", "web", lambda route: route["spec"].update(hostnames=["a.example"]))

    generations = [value["metadata"]["generation"] for value in (labelled, judged, changed)]
    versions = [int(value["resourceVersion"]) for value in (first, labelled["metadata"], changed["metadata"])]
    assert generations == [1, 1, 2]
    assert versions == sorted(set(versions))


def test_write_that_changes_nothing_keeps_the_version(
    server: ApiServer, ask: Any, routes: str, web: dict[str, Any]
) -> None:
    """An equal PUT answers 200 with the same resourceVersion."""
    before = server.create(web)

    answer = ask("PUT", f"{routes}/web", before)

    assert (answer.status, answer.json()["metadata"]["resourceVersion"]) == (200, before["metadata"]["resourceVersion"])


def test_status_is_written_by_its_own_path_only(server: ApiServer, ask: Any, routes: str, web: dict[str, Any]) -> None:
    """A PUT of the main object does not touch the status, a PUT of the status does not touch the rest."""
    route = server.create(web)
    judged = ask("PUT", f"{routes}/web/status", route | {"status": {"parents": [{"x": 1}]}, "spec": {}}).json()
    assert (judged["status"], judged["spec"]) == ({"parents": [{"x": 1}]}, route["spec"])

    changed = ask("PUT", f"{routes}/web", judged | {"status": {}, "spec": {"hostnames": ["a.example"]}}).json()

    assert (changed["status"], changed["spec"]) == ({"parents": [{"x": 1}]}, {"hostnames": ["a.example"]})


def test_dry_run_changes_nothing(server: ApiServer, ask: Any, routes: str, web: dict[str, Any]) -> None:
    """A dry run answers what would be and writes nothing."""
    route = server.create(web)
    wanted = route | {"spec": {"hostnames": ["a.example"]}}

    answer = ask("PUT", f"{routes}/web?dryRun=All", wanted)

    assert answer.json()["spec"] == {"hostnames": ["a.example"]}
    assert server.read("HTTPRoute", "shop", "web") == route


def test_finalizers_hold_an_object(server: ApiServer, ask: Any, routes: str, web: dict[str, Any]) -> None:
    """A deleted object with finalizers stays until the last one is taken off."""
    web["metadata"]["finalizers"] = ["example.com/hold"]
    server.create(web)

    held = ask("DELETE", f"{routes}/web").json()
    assert held["metadata"]["deletionTimestamp"]
    server.edit("HTTPRoute", "shop", "web", lambda route: route["metadata"].pop("finalizers") and route)

    assert ask("GET", f"{routes}/web").status == 404


def test_missing_object_and_missing_kind_answer_differently(ask: Any, routes: str) -> None:
    """A missing object is a Status of its name, an unknown resource of a group is a plain page."""
    missing = ask("GET", f"{routes}/none")
    unknown = ask("GET", "/apis/gateway.networking.k8s.io/v1/namespaces/shop/nothings/none")

    assert (missing.status, missing.json()["details"]["name"]) == (404, "none")
    assert (unknown.status, unknown.data) == (404, b"404 page not found\n")


def test_conditional_writes_lose_nothing(server: ApiServer, ask: Any, routes: str, web: dict[str, Any]) -> None:
    """Threads that read, add and write under the version that they read end with the sum of what they added."""
    server.create(web)

    def add(_: int) -> None:
        for _ in range(5):
            while True:
                route = ask("GET", f"{routes}/web").json()
                notes = route["metadata"].setdefault("annotations", {})
                notes["count"] = str(int(notes.get("count", 0)) + 1)
                if ask("PUT", f"{routes}/web", route).status == 200:
                    break

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(add, range(6)))

    assert server.read("HTTPRoute", "shop", "web")["metadata"]["annotations"] == {"count": "30"}
    assert {request.status for request in server.requests.writes} <= {200, 409}
