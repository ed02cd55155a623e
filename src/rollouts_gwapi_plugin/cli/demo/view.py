"""What is seen while the play runs: a live view in a terminal, lines elsewhere."""

import sys
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rollouts_gwapi_plugin.cli.demo.play import Play

# The measured share is that of the last second.
RECENT_SECONDS = 1.0
SHOWN_MESSAGES = 6
REFRESH_PER_SECOND = 5
WIDTH = 90


class View(Protocol):
    """Shows a play while its context is open."""

    def say(self, line: str) -> None:
        """Take a line about what happened."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def make_view(play: Play, *, plain: bool) -> View:
    """Return the live view where there is a terminal."""
    return PlainView(play) if plain or not sys.stdout.isatty() else LiveView(play)


class PlainView:
    """One line an event, with the time since the load began."""

    def __init__(self, play: Play) -> None:
        self._play = play

    def say(self, line: str) -> None:
        """Print the line."""
        now = self._play.load.now if self._play.load else 0.0
        sys.stdout.write(f"{now:6.1f} s  {line}\n")
        sys.stdout.flush()

    def __enter__(self) -> Self:
        self.say(self._play.example.title)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is open."""


class LiveView:
    """Steps, the new version's share of each cohort, lost requests, API calls, and the last lines."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._live = Live(get_renderable=self._render, refresh_per_second=REFRESH_PER_SECOND, transient=True)

    def say(self, line: str) -> None:
        """Keep the line for the next picture."""
        self._play.state.messages.append(line)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)
        for line in self._play.state.messages:
            Console().print(f"  {line}", highlight=False)

    def _render(self) -> Panel:
        play, state = self._play, self._play.state
        recent = play.load.answers(since=play.load.now - RECENT_SECONDS) if play.load else []
        everything = play.load.answers() if play.load else []
        lost = sum(answer.lost for answer in everything)
        table = Table.grid(padding=(0, 2))
        table.add_row("steps", self._steps())
        for cohort in (cohort.name for cohort in play.example.cohorts):
            answers = [answer for answer in recent if answer.cohort == cohort]
            hits = sum(answer.backend == play.version for answer in answers) if play.version else 0
            table.add_row(f"{cohort}, asked", _bar(state.asked.get(cohort, 0.0)))
            table.add_row(f"{cohort}, measured", _bar(hits / len(answers) if answers else 0.0))
        table.add_row("requests", f"{len(everything)}, {len(recent) / RECENT_SECONDS:.0f}/s")
        table.add_row("lost", Text(str(lost), style="bold red" if lost else "green"))
        table.add_row("API calls", f"{state.reads} reads, {state.writes} writes")
        lines = Text("\n".join(state.messages[-SHOWN_MESSAGES:]), style="dim")
        return Panel(Group(table, Text(), lines), title=f"{play.example.title} ({state.status})", width=WIDTH)

    def _steps(self) -> Text:
        text = Text()
        current = self._play.state.step
        for index, step in enumerate(self._play.example.rollout["spec"]["strategy"]["canary"].get("steps") or []):
            kind, value = next(iter(step.items()))
            shown = f"{value}%" if kind == "setWeight" else kind
            style = "bold reverse" if index == current else "dim" if current is None or index < current else ""
            text.append(shown, style=style).append(" ")
        return text


def _bar(part: float) -> Table:
    row = Table.grid(padding=(0, 1))
    row.add_row(ProgressBar(total=1.0, completed=part, width=50), f"{part:6.1%}")
    return row
