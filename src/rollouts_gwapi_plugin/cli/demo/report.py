"""What stands at the end: who answered in each stage, what was on the API, the figures, and what went wrong."""

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from rollouts_gwapi_plugin.cli.demo.asked import PROMOTED
from rollouts_gwapi_plugin.cli.demo.measure import Share, Stage
from rollouts_gwapi_plugin.cli.demo.result import Result
from rollouts_gwapi_plugin.cli.demo.traces import RouteTrace, told
from rollouts_gwapi_plugin.cli.printing import WIDTH_WITHOUT_TERMINAL

# What the tables need. A narrower terminal wraps lines, which is better than to lose columns.
MIN_WIDTH = 130
# The first few show what kind of loss it is.
SHOWN_LOSSES = 5
PAIR = 2


def report(result: Result, plot: Path) -> None:
    """Print the report."""
    console = Console(highlight=False)
    # A pipe has no width: nothing is to be cut there.
    console.width = max(console.width, MIN_WIDTH) if console.is_terminal else WIDTH_WITHOUT_TERMINAL
    _print_table(console, _shares(result))
    _print_table(console, _traces(result))
    console.print(f"plugin started in {result.start_seconds:.2f} s; {len(result.answers)} requests in all")
    for answer in result.lost[:SHOWN_LOSSES]:
        line = f"lost at {answer.sent:.2f} s: {answer.cohort}, status {answer.status} {answer.error}"
        console.print(line, markup=False)
    for problem in result.problems:
        console.print(f"wrong: {problem}", style="bold red", markup=False, soft_wrap=True)
    console.print(f"plot: {plot}", markup=False)
    console.print(f"requests lost: {len(result.lost)}", style="bold")
    if not result.problems:
        console.print(_verdict(result), style="bold green", markup=False, soft_wrap=True)
        console.print(f"next: {_next(result.example.name)}", markup=False, soft_wrap=True)


def _verdict(result: Result) -> str:
    """Say what was checked, and nothing else."""
    text = (
        f"passed: {len(result.answers)} requests, none lost; each share within 3 sigma (± allowed) of what the Rollout"
        " asked for"
    )
    if any(stage.held and stage.name == PROMOTED for stage in result.stages):
        text += "; after it the route is as you wrote it"
    return text


def _next(name: str) -> str:
    if name == "canary":
        return "demo --example header-routing (testers at weight 0); --example list lists all"
    return "demo --example list lists all examples"


def _print_table(console: Console, table: Table) -> None:
    """Print a table without the spaces that fill its lines."""
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        console.file.write(f"{line.rstrip()}\n")


def _shares(result: Result) -> Table:
    table = Table(title=result.example.title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("stage", "cohort", "answered by"):
        table.add_column(heading)
    for heading in ("asked", "measured", "± allowed", "requests", "lost"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for one in result.shares:
        table.add_row(*_row(one))
    if result.lasting:
        table.add_section()
    for one in result.lasting:
        table.add_row(*_row(one))
    return table


def _row(one: Share) -> list[str]:
    return [
        one.stage,
        one.cohort,
        f"copied to {one.name}" if one.copies else one.name,
        f"{one.asked:.1%}",
        f"{one.measured:.1%}",
        f"{one.tolerance:.1%}",
        str(one.requests),
        str(one.lost),
        "off" if one.problem else "ok",
    ]


def _traces(result: Result) -> Table:
    """Return what stood on the API at the end of each stage."""
    table = Table(title="On the API at the end of each stage", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("stage", "route", "weights"):
        table.add_column(heading, no_wrap=True)
    for heading in ("rules\nadded", "refs\nadded", "in the\nledger", "API\nreads", "\nwrites", "ms\np50", "\np99"):
        table.add_column(heading, justify="right")
    for stage in (stage for stage in result.stages if stage.held):
        for index, route in enumerate(stage.routes):
            first = index == 0
            figures = [str(stage.ledger), str(stage.reads), str(stage.writes), *_times(result, stage)]
            table.add_row(stage.name if first else "", *_route(route), *(figures if first else ()))
    return table


def _times(result: Result, stage: Stage) -> list[str]:
    """Return within how many milliseconds half, and 99 of 100, of the stage's requests were answered."""
    inside = [answer for answer in result.answers if answer.sent >= stage.since and answer.done < stage.until]
    times = sorted(answer.seconds for answer in inside if not answer.lost) or [0.0]
    return [f"{times[len(times) * part // 100] * 1000:.1f}" for part in (50, 99)]


def _route(route: RouteTrace) -> list[str]:
    # Rules of one route mostly have the same weights; they are told once, an experiment's on lines of their own.
    rules = dict.fromkeys(
        "\n".join([told(weights[:PAIR]), *(told((one,)) for one in weights[PAIR:])]) for weights in route.weights
    )
    return [route.name, "\n".join(rules), str(route.added_rules), str(route.added_backends)]
