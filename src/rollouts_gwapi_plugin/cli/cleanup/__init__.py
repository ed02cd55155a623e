"""`cleanup`: give back everything that stands on routes for a Rollout, also for one that is gone."""

import click

from rollouts_gwapi_plugin.cli.options import Place, cluster_options, output_option, plugin_name_option


@click.command()
@click.argument("rollout", required=False)
@click.option("--all-deleted", is_flag=True, help="Every Rollout that is gone and has left something behind.")
@click.option("--weights", is_flag=True, help="Also give all traffic to stable: its weight the maximum, canary's 0.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before writing.")
@click.option("--route", "routes", multiple=True, metavar="KIND/NAME", help="A route that nothing else tells of.")
@click.option("--route-namespace", metavar="NS", help="The routes' namespace, if a Rollout that is gone had another.")
@click.option(
    "--config-map", metavar="NAME", help="The ConfigMap of the record, if a Rollout that is gone had its own."
)
@click.option("--stable", metavar="SERVICE", help="The stable Service of a Rollout that is gone.")
@click.option("--canary", metavar="SERVICE", help="The canary Service of a Rollout that is gone.")
@click.option("--label", metavar="KEY=VALUE", help="The in-progress label, if a Rollout that is gone had its own.")
@cluster_options
@plugin_name_option
@output_option
def cleanup(  # noqa: PLR0913 - one argument an option
    *,
    rollout: str | None,
    all_deleted: bool,
    weights: bool,
    dry_run: bool,
    yes: bool,
    routes: tuple[str, ...],
    route_namespace: str | None,
    config_map: str | None,
    stable: str | None,
    canary: str | None,
    label: str | None,
    place: Place,
    plugin_name: str | None,
    output: str,
) -> int:
    """Give back everything of ROLLOUT (NAME or NAMESPACE/NAME): managed rules, experiment backends, label, record.

    It works on the routes of the configuration, of the record, and of the annotation, in the order in which the plugin
    itself writes, so that it can be stopped at any moment and run again. Nothing of anybody else is touched. Rules that
    only look like the plugin's are left and named; `adopt` them first. A ConfigMap of the plugin that is empty
    afterwards is deleted.

    The diff is shown first. Without a terminal, --yes or --dry-run is needed. The exit code is 0 if nothing is left to
    give back (or with --dry-run, if all of it could be), else 1.
    """
    from rollouts_gwapi_plugin.cli.cleanup.command import Asked, clean_up
    from rollouts_gwapi_plugin.cli.connection import connected
    from rollouts_gwapi_plugin.cli.subject import Remains

    if (rollout is None) == (not all_deleted):
        raise click.UsageError("name one ROLLOUT, or give --all-deleted")
    remains = Remains(route_namespace or "", config_map or "", stable or "", canary or "", _label(label))
    asked = Asked(rollout, weights, dry_run, yes, routes, remains, plugin_name, output)
    with connected(place) as connection:
        return clean_up(connection, asked)


def _label(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--label")
    return key, value
