"""What stands at the end: a table of the stages, the figures, and what went wrong."""

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from rollouts_gwapi_plugin.cli.demo.measure import Share
from rollouts_gwapi_plugin.cli.demo.play import Result

# A file or a pipe has no width of its own.
WIDTH_WITHOUT_TERMINAL = 110
# The first few show what kind of loss it is.
SHOWN_LOSSES = 5


def report(result: Result, plot: Path) -> None:
    """Print the report."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDTH_WITHOUT_TERMINAL)
    console.print(_table(result))
    console.print(f"plugin started in {result.start_seconds:.2f} s; {len(result.answers)} requests in all")
    for answer in result.lost[:SHOWN_LOSSES]:
        line = f"lost at {answer.sent:.2f} s: {answer.cohort}, status {answer.status} {answer.error}"
        console.print(line, markup=False)
    for problem in result.problems:
        console.print(f"wrong: {problem}", style="bold red", markup=False)
    console.print(f"plot: {plot}", markup=False)
    console.print(f"requests lost: {len(result.lost)}", style="bold")


def _table(result: Result) -> Table:
    table = Table(title=result.example.title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("stage", no_wrap=True)
    for heading in ("asked", "measured", "± allowed", "requests", "lost", "ms p50", "p99", "API reads", "writes"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for one in result.shares:
        table.add_row(*_row(one))
    return table


def _row(one: Share) -> list[str]:
    stage = one.stage
    return [
        stage.name,
        f"{stage.asked:.1%}",
        f"{one.measured:.1%}",
        f"{one.tolerance:.1%}",
        str(one.requests),
        str(one.lost),
        f"{one.median * 1000:.1f}",
        f"{one.slow * 1000:.1f}",
        str(stage.reads),
        str(stage.writes),
        "off" if one.problem else "ok",
    ]
