"""`simulate`: what a rollout will do to its routes, call by call, before it does."""

from pathlib import Path

import click

from rollouts_gwapi_plugin.cli.options import output_option, plugin_name_option


@click.command()
@click.option(
    "--rollout",
    required=True,
    type=click.Path(exists=True, allow_dash=True, path_type=Path),
    help="The Rollout, as YAML or JSON.",
)
@click.option(
    "--route",
    "routes",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE",
    help="Its routes; also Services and CustomResourceDefinitions, if they matter. Can be repeated.",
)
@click.option(
    "--call",
    "calls",
    multiple=True,
    metavar="CALL",
    help="Only this call, and not the controller's: set-weight=N, set-header-route=NAME, set-mirror-route=NAME (of a"
    " step, or the body as JSON), remove-managed-routes. Can be repeated.",
)
@click.option(
    "--abort-after", type=click.IntRange(min=0), metavar="STEP", help="Abort once this step is done, or stands; from 0."
)
@click.option("-n", "--namespace", default="default", show_default=True, help="For objects without a namespace.")
@plugin_name_option
@output_option
def simulate(  # noqa: PLR0913 - one argument an option
    *,
    rollout: Path,
    routes: tuple[Path, ...],
    calls: tuple[str, ...],
    abort_after: int | None,
    namespace: str,
    plugin_name: str | None,
    output: str,
) -> int:
    """Play a rollout on its routes, without a cluster, and show the diff that each call makes.

    The controller's calls are played in its order, from the first deployment over all steps of one update to the end;
    pauses are not waited for, experiments and analyses succeed. The plugin works on an API server inside this process,
    as it would on a cluster's. No request is routed: `demo` does that.

    The exit code is 0 if every call succeeded, else 1.
    """
    from rollouts_gwapi_plugin.cli.manifests import read_manifests
    from rollouts_gwapi_plugin.cli.simulate.told import tell
    from rollouts_gwapi_plugin.cli.simulate.whole import Wish, run

    if calls and abort_after is not None:
        raise click.UsageError("--abort-after is for the controller's calls, not for those of --call")
    manifests = read_manifests([rollout, *routes], namespace=namespace)
    simulation = run(manifests, Wish(calls, abort_after, plugin_name))
    tell(simulation, output)
    return 1 if simulation.failed else 0
