"""`demo`: a canary rollout from nothing to a picture, with real requests, in one command."""

import math
import os
import sys
from pathlib import Path

import click

from rollouts_gwapi_plugin.cli.demo.examples import example_names, load_example
from rollouts_gwapi_plugin.transport.flags import EXECUTABLE_VARIABLE

DEFAULT_PLOT = "out/demo.svg"
# A pause of 30 s in a manifest is held for 5 s, or for 1 s with --fast.
SPEED = 6.0
FAST_SPEED = 30.0
# Faster than that, a stage is over before its first request.
MAX_SPEED = 1000.0


def _number(_context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    """Refuse what is no number: no range does."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is not a number", param=parameter)
    return value


@click.command()
@click.option(
    "--example", "name", default="canary", show_default=True, help="Which example to play; `list` lists them."
)
@click.option("--transport", type=click.Choice(["netrpc", "grpc"]), default="netrpc", show_default=True)
@click.option(
    "--fast", is_flag=True, help=f"Hold each stage {FAST_SPEED / SPEED:g} times shorter; takes a few seconds."
)
@click.option(
    "--speed",
    type=click.FloatRange(0.1, MAX_SPEED),
    callback=_number,
    help="How many times faster than the manifest's pauses.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEFAULT_PLOT,
    show_default=True,
    help="Where to draw.",
)
@click.option("--plugin", help="Another plugin executable to play with, in place of this program.")
@click.option("--plain", is_flag=True, help="Lines in place of the live view; the default without a terminal.")
def demo(  # noqa: PLR0913 - one argument an option
    name: str, transport: str, *, fast: bool, speed: float | None, plot: Path, plugin: str | None, plain: bool
) -> int:
    """Play a canary rollout under real load on an API server, a gateway and backends of its own.

    The plugin runs as a child process, as the controller starts it. At the end stand asked and measured shares, as a
    table and as a plot, and what stood on the routes and in the ledger. The exit code is 1 if a share is off by more
    than three sigma, a request was lost, or something was on the API that should not have been.
    """
    if name == "list":
        width = max(map(len, example_names()))
        click.echo("\n".join(f"{one:{width}}  {load_example(one).title}" for one in example_names()))
        return 0
    from rollouts_gwapi_plugin.cli.demo.play import Options, Play
    from rollouts_gwapi_plugin.cli.demo.plot import draw
    from rollouts_gwapi_plugin.cli.demo.report import report
    from rollouts_gwapi_plugin.cli.demo.view import make_view

    command = (plugin,) if plugin else (*_own_command(), "--transport", transport)
    options = Options(command, speed or (FAST_SPEED if fast else SPEED))
    if name not in example_names():
        text = f"there is no example {name!r} to play; there are {', '.join(example_names())}"
        raise click.BadParameter(text, param_hint="--example")
    play = Play(load_example(name), options)
    with make_view(play, plain=plain) as view:
        result = play.run(view.say)
    draw(result, plot)
    report(result, plot)
    return 1 if result.problems else 0


def _own_command() -> tuple[str, ...]:
    """Return how this very program is started as a plugin; the one-file executable has no interpreter to name."""
    executable = os.environ.get(EXECUTABLE_VARIABLE)
    return (executable,) if executable else (sys.executable, "-m", "rollouts_gwapi_plugin")
