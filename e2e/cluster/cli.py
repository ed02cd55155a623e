"""`python -m e2e.cluster`: build, up, down, status, logs, exec, restart."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from e2e.cluster import controller, network, process, tools
from e2e.cluster.cluster import Cluster, InUse, open_cluster
from e2e.cluster.process import CommandFailed
from e2e.cluster.settings import Settings, cache_root


@click.group()
@click.option("--name", default="default", show_default=True, help="Which cluster; several can be up at once.")
@click.option("--channel", type=click.Choice(["standard", "experimental"]), default="standard", show_default=True)
@click.option("--plugin", type=click.Choice(["binary", "venv"]), default="binary", show_default=True)
@click.option("--rollouts", type=click.Choice(["1.9", "1.10"]), default="1.9", show_default=True)
@click.pass_context
def main(context: click.Context, name: str, channel: str, plugin: str, rollouts: str) -> None:
    """Run a real Kubernetes with the stock Argo Rollouts controller and Envoy Gateway, without docker."""
    reason = tools.missing_reason()
    if reason:
        raise click.ClickException(reason)
    context.obj = Settings(
        name=name,
        root=cache_root(),
        channel="experimental" if channel == "experimental" else "standard",
        plugin="venv" if plugin == "venv" else "binary",
        rollouts="1.10" if rollouts == "1.10" else "1.9",
    )


@contextmanager
def _trouble_told() -> Iterator[None]:
    """End with a line that says what went wrong instead of a traceback."""
    try:
        yield
    except (InUse, TimeoutError, CommandFailed, FileNotFoundError, subprocess.CalledProcessError) as error:
        raise click.ClickException(str(error)) from error


def _open(settings: Settings, *, build: bool = False) -> Cluster:
    with _trouble_told():
        return open_cluster(settings, click.echo, build=build)


def _must_be_up(settings: Settings) -> None:
    if not network.exists(settings):
        raise click.ClickException(f"cluster {settings.name!r} is down")


@main.command()
@click.pass_obj
def build(settings: Settings) -> None:
    """Build the programs that are not built yet (cold some 15 minutes on two cores, then seconds)."""
    _open(settings, build=True)


@main.command()
@click.option("--bare", is_flag=True, help="Only etcd and the API server.")
@click.pass_obj
def up(settings: Settings, *, bare: bool) -> None:
    """Build, sweep what is left of an earlier run, start everything, wait until it is ready."""
    cluster = _open(settings, build=True)
    with _trouble_told(), cluster.held():
        (cluster.up_bare if bare else cluster.up)(click.echo)


@main.command()
@click.pass_obj
def down(settings: Settings) -> None:
    """Stop everything and remove its namespaces and files."""
    cluster = _open(settings)
    with _trouble_told(), cluster.held():
        cluster.down(click.echo)


@main.command()
@click.pass_obj
def status(settings: Settings) -> None:
    """Say which programs run; exit code 1 if one does not."""
    names = process.names(settings)
    if not network.exists(settings) or not names:
        click.echo(f"cluster {settings.name!r} is down")
        sys.exit(1)
    running = {name: process.read(settings, name) for name in names}
    for name, note in running.items():
        click.echo(f"{name:12} {f'pid {note.pid}' if note else 'ENDED'}")
    ends = controller.ends_of(settings)
    if ends:
        click.echo(f"controller container ended {len(ends)} times, last with {ends[-1].code}")
    click.echo(f"state        {settings.state}")
    sys.exit(0 if all(running.values()) else 1)


@main.command()
@click.argument("program")
@click.option("--lines", "-n", default=200, show_default=True)
@click.option("--follow", "-f", is_flag=True)
@click.pass_obj
def logs(settings: Settings, program: str, lines: int, *, follow: bool) -> None:
    """Show a program's log; plugin lines are in the controller's."""
    path = settings.logs / f"{program}.log"
    if not path.exists():
        have = ", ".join(sorted(found.stem for found in settings.logs.glob("*.log"))) or "none"
        raise click.ClickException(f"no log of {program!r}; there are: {have}")
    os.execvp("tail", ["tail", f"--lines={lines}", *(["--follow"] if follow else []), str(path)])  # noqa: S606


@main.command("exec", context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def execute(settings: Settings, command: tuple[str, ...]) -> None:
    """Run a command inside the node's network namespace, with KUBECONFIG and the tools on PATH."""
    cluster = _open(settings)
    _must_be_up(settings)
    with network.inside(settings.node_namespace):
        environment = cluster.environment()
        os.environ["PATH"] = environment["PATH"]
        sys.exit(subprocess.run(command, env=environment, check=False).returncode)


@main.command()
@click.argument("what", type=click.Choice(["controller", "apiserver"]))
@click.pass_obj
def restart(settings: Settings, what: str) -> None:
    """Restart the controller's container, or the API server."""
    cluster = _open(settings)
    _must_be_up(settings)
    with _trouble_told(), network.inside(settings.node_namespace):
        began = time.monotonic()
        if what == "apiserver":
            cluster.restart_apiserver()
        else:
            controller.restart(settings)
            controller.wait(settings)
    click.echo(f"{what} is back after {time.monotonic() - began:.1f} s")
