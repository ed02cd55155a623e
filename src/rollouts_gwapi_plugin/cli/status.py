"""`status`: what stands on the routes of each Rollout, and by what it is known to be the plugin's."""

import click

from rollouts_gwapi_plugin.cli.options import Place, cluster_options, output_option, plugin_name_option


@click.command()
@click.argument("rollouts", nargs=-1, metavar="[ROLLOUT]...")
@cluster_options
@plugin_name_option
@output_option
def status(*, rollouts: tuple[str, ...], place: Place, plugin_name: str | None, output: str) -> int:
    """Show the live weights, managed rules, experiment backends and label of each ROLLOUT's routes, rule by rule.

    Routes that left a Rollout's configuration and still have something of it are shown, too, and so are Rollouts that
    are gone, or do not name the plugin any more, and have left something behind. Without a name: all of the namespace.
    It only reads.

    The exit code is 0 if everything could be read, else 1.
    """
    from rollouts_gwapi_plugin.cli.connection import connected
    from rollouts_gwapi_plugin.cli.status_report import print_statuses, statuses

    with connected(place) as connection:
        found = statuses(connection, rollouts, plugin_name)
    print_statuses(found, output, connection.namespace)
    return 1 if any(one.broken for one in found) else 0
