"""Tell a case: setup, then traffic, then stage after stage; judge shares and losses; clean up; write the report.

A stage's shares are judged twice: once to go on (a run of requests that all came after the expectations were
fulfilled must show them, which also measures how long the gateway took), and once at the end over all that came from
then until the next stage began.
"""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from e2e.cluster.process import CommandFailed
from e2e.load import generator
from e2e.load.cohort import Cohort
from e2e.load.record import Record
from e2e.load.traffic import GeneratorFailed, Load, Traffic, versions, wrong_share
from e2e.runner import report
from e2e.runner.actions import Scene, act, apply, load_manifest
from e2e.runner.api import ApiTrouble, RouteWatch
from e2e.runner.case import Case, CohortPart, Losses, Stage
from e2e.runner.expectations import Before, remember, unfulfilled
from e2e.runner.received import wrong_received
from e2e.runner.target import GATEWAY_NAME, GATEWAY_NAMESPACE, PORTS, Target
from e2e.runner.telling import Telling, Told
from e2e.waiting import NotYet, until

# A cohort's traffic begins once so many requests in a row were answered: the gateway has the route.
ANSWERS_FIRST = 5
# Until a new route is answered for: less than a second measured.
FIRST_SECONDS = 60.0
# So many times longer than their rates say may requests take: a busy machine makes fewer of them.
SLOWER = 4.0
# Different ways of failing that a finding names; all are in the records.
_LOSSES_NAMED = 5
ROUTES = ("httproutes", "grpcroutes", "tcproutes", "tlsroutes", "udproutes")
# What goes wrong with a case or its cluster; all else is a fault of the runner.
_TROUBLE = (CommandFailed, ApiTrouble, GeneratorFailed, TimeoutError)
_NOT_SERVED = re.compile(r"the server doesn't have a resource type \"(\w+)\"")


def tell(case: Case, target: Target, folder: Path) -> Telling:
    """Tell the case; what went wrong is in the findings."""
    namespace = f"e2e-{case.name}-{int(time.time()) % 100_000}"
    # With several cohorts the turns of one are dealt by the chance of who asks when.
    exact = target.exact and (case.exact or len(case.load) == 1)
    telling = Telling(case, namespace, time.monotonic(), exact)
    api = target.api()
    scene = Scene(case, target, api, telling.namespace, _values(case, target, telling.namespace))
    try:
        with _namespace(scene), ExitStack() as stack:
            _tell_or_find(scene, telling, folder, stack)
            if telling.findings:
                telling.explanation = report.explain(telling, target, api, folder)
                telling.again = (
                    case.again is not None
                    and re.search(scene.filled(case.again.log), target.controller_log()) is not None
                )
    except _TROUBLE as trouble:  # with it the findings would be lost
        telling.findings.append(f"before the story, or cleaning up after it: {trouble}")
    report.write_graph(telling, folder)
    return telling


def _tell_or_find(scene: Scene, telling: Telling, folder: Path, stack: ExitStack) -> None:
    try:
        _tell_in_namespace(scene, telling, folder, stack)
    except _TROUBLE as trouble:
        stage = telling.stages[-1].stage.name if telling.stages else "before the first stage"
        telling.findings.insert(0, f"stage {stage!r}: {trouble}")


def _tell_in_namespace(scene: Scene, telling: Telling, folder: Path, stack: ExitStack) -> None:
    case = scene.case
    if any(action.configure for stage in (case.setup, *case.stages) for action in stage.do):
        stack.callback(scene.target.configure, None)
    for action in reversed(case.cleanup):
        stack.callback(act, scene, action)
    for name in case.resources:
        apply(scene, load_manifest(case, name))
    kind, _, name = case.watch.route.partition("/")
    watch = stack.enter_context(RouteWatch(scene.api, kind, scene.filled(case.watch.namespace), name))
    telling.route_states = watch.states
    _tell_stage(scene, case.setup, telling)
    cohorts = [_cohort(scene, part) for part in case.load]
    for cohort in cohorts:
        _wait_for_answers(cohort)
    load = Load(cohorts, folder, case.pods)
    telling.traffic_began = time.monotonic()
    with load as telling.traffic:
        for stage in case.stages:
            _tell_stage(scene, stage, telling)
    telling.stages[-1].ended = time.monotonic()
    _judge(telling)


def _values(case: Case, target: Target, namespace: str) -> dict[str, str]:
    return {
        "NAMESPACE": namespace,
        "HOST": f"{case.name}.e2e.example",
        "IMAGE": target.image,
        "GATEWAY_CLASS": target.gateway_class,
        "GATEWAY": GATEWAY_NAME,
        "GATEWAY_NAMESPACE": GATEWAY_NAMESPACE,
        "ADDRESS": target.address(),
        **target.values(),
    }


@contextmanager
def _namespace(scene: Scene) -> Iterator[None]:
    scene.target.run(["kubectl", "create", "namespace", scene.namespace])
    try:
        yield
    finally:
        # The routes first and for sure: a layer 4 listener serves the oldest one.
        _delete_routes(scene)
        scene.target.run(["kubectl", "delete", "namespace", scene.namespace, "--wait=false"])


def _delete_routes(scene: Scene) -> None:
    """Delete the routes of every kind that is served: kubectl refuses the whole list for one that is not."""
    kinds = list(ROUTES)
    while kinds:
        try:
            scene.target.run(["kubectl", "--namespace", scene.namespace, "delete", ",".join(kinds), "--all"])
        except CommandFailed as failed:
            missing = _NOT_SERVED.search(str(failed))
            if not missing or missing[1] not in kinds:
                raise
            kinds.remove(missing[1])
        else:
            return


def _cohort(scene: Scene, part: CohortPart) -> Cohort:
    filled = scene.filled(part.model_dump())
    return Cohort(**filled, address=scene.target.address(), port=PORTS[part.protocol])


def _wait_for_answers(cohort: Cohort) -> None:
    def answered() -> bool:
        for _ in range(ANSWERS_FIRST):
            record = generator.ask(cohort)
            if record.error:
                raise NotYet(record.error)
        return True

    until(answered, f"cohort {cohort.name} gets its first answers", seconds=FIRST_SECONDS)


def _tell_stage(scene: Scene, stage: Stage, telling: Telling) -> None:
    told = Told(stage, time.monotonic())
    if telling.stages:
        telling.stages[-1].ended = told.began
    telling.stages.append(told)
    before = remember(scene, stage.expect)
    for action in stage.do:
        act(scene, action)

    deadline = told.began + stage.within
    while True:
        until(lambda: _fulfilled(scene, stage, before), "what the stage expects", seconds=deadline - time.monotonic())
        told.fulfilled = told.settled = time.monotonic()
        if not telling.traffic or not stage.expect.traffic:
            return
        _settle(telling, told)
        wrong = _wrongly_received(scene, telling.traffic, stage)
        # What was so when the traffic began to be counted must be so when it was: else it was a state on the way, and
        # so was what the pods received.
        if _is_so(scene, stage, before):
            telling.findings += wrong
            return


def _wrongly_received(scene: Scene, traffic: Traffic, stage: Stage) -> list[str]:
    if "count" not in scene.target.can:
        return []
    seconds = _patience(scene.case, stage)
    found = {
        cohort: wrong_received(scene, traffic, cohort, expected, stage.requests, seconds)
        for cohort, expected in stage.expect.received.items()
    }
    return [f"stage {stage.name!r}, cohort {cohort}: {wrong}" for cohort, wrong in found.items() if wrong]


def _patience(case: Case, stage: Stage) -> float:
    """Return how long is waited for as many requests as judge a stage."""
    return stage.settle + SLOWER * stage.requests / min(part.rate for part in case.load)


def _fulfilled(scene: Scene, stage: Stage, before: Before) -> bool:
    try:
        missing = unfulfilled(scene, stage.expect, before)
    except ApiTrouble as trouble:
        raise NotYet(str(trouble)) from trouble
    if missing:
        raise NotYet("; ".join(missing))
    return True


def _is_so(scene: Scene, stage: Stage, before: Before) -> bool:
    try:
        return _fulfilled(scene, stage, before)
    except NotYet:
        return False


def _settle(telling: Telling, told: Told) -> None:
    """Move `settled` on until the requests from then on show the right shares."""
    stage, traffic = told.stage, telling.traffic
    if traffic is None:
        return

    wrong = ""

    def right() -> bool:
        nonlocal wrong
        traffic.refresh()
        for cohort, expected in stage.expect.traffic.items():
            window = traffic.window(cohort, told.settled)
            counted = versions(window)
            if counted.total() < stage.requests:
                early = {version for version in counted if not expected.get(version)}
                if early:
                    told.settled = _after_last(traffic, cohort, early)
                raise NotYet(
                    f"{cohort}: {counted.total()} of {stage.requests} requests; before: {wrong or 'nothing wrong'}"
                )
            wrong = wrong_share(counted, expected, exact=telling.exact)
            if wrong:
                told.settled = window[len(window) // 2].began
                raise NotYet(f"{cohort}: {wrong}")
        return True

    until(right, "the right shares", seconds=_patience(telling.case, stage), pause=0.1)


def _after_last(traffic: Traffic, cohort: str, wanted: set[str]) -> float:
    """Return the time after the last answer of one of these versions."""
    return (
        max(record.began for record in traffic.records if record.cohort == cohort and record.version in wanted) + 1e-6
    )


def _judge(telling: Telling) -> None:
    traffic, case = telling.traffic, telling.case
    if traffic is None:
        return
    for told in telling.stages:
        for cohort, expected in told.stage.expect.traffic.items():
            wrong = wrong_share(
                versions(traffic.window(cohort, told.settled, told.ended)), expected, exact=telling.exact
            )
            if wrong:
                telling.findings.append(f"stage {told.stage.name!r}, cohort {cohort}, from settled to the end: {wrong}")
    told_of = [record for record in traffic.losses() if case.losses and _is_told_of(record, case.losses)]
    too_many = case.losses and len(told_of) > len(traffic.records) * case.losses.percent / 100
    losses = [record for record in traffic.losses() if too_many or record not in told_of]
    if losses:
        kinds = sorted({f"{record.cohort}: {record.error}" for record in losses})
        telling.findings.append(f"{len(losses)} of {len(traffic.records)} requests failed: {kinds[:_LOSSES_NAMED]}")


def _is_told_of(record: Record, losses: Losses) -> bool:
    return losses.cohort in {"", record.cohort} and re.search(losses.error, record.error) is not None
