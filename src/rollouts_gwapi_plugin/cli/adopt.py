"""`adopt`: record a rule that looks like the plugin's, so that the plugin takes it for its own from then on."""

import click

from rollouts_gwapi_plugin.cli.options import Place, cluster_options, output_option, plugin_name_option


@click.command()
@click.argument("rollout")
@click.option("--route", metavar="KIND/NAME", help="The route that has the rule.")
@click.option("--rule", type=click.IntRange(min=0), metavar="INDEX", help="The rule's place in the route, from 0.")
@click.option("--managed-route", metavar="NAME", help="The managed route of the Rollout that the rule is of.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before recording.")
@cluster_options
@plugin_name_option
@output_option
def adopt(  # noqa: PLR0913 - one argument an option
    *,
    rollout: str,
    route: str | None,
    rule: int | None,
    managed_route: str | None,
    yes: bool,
    place: Place,
    plugin_name: str | None,
    output: str,
) -> int:
    """Show the rules on ROLLOUT's routes that look like the plugin's and are on no record, or record one of them.

    Rules without a name and without a record are left alone by the plugin, whatever they look like: they come from an
    older plugin on a cluster that drops rule names, or they are yours. With --route, --rule and --managed-route one is
    put on record; the route is not changed. The next call then treats it like a rule that the plugin made: it is kept
    while the Rollout's steps ask for it, and removed with the other managed routes.

    The exit code is 0 if the list could be made or the rule is on record, else 1.
    """
    from rollouts_gwapi_plugin.cli.adoption import Choice, adopt_rule, show_alikes
    from rollouts_gwapi_plugin.cli.connection import connected
    from rollouts_gwapi_plugin.cli.subject import subject_of

    given = [option is not None for option in (route, rule, managed_route)]
    if any(given) and not all(given):
        raise click.UsageError("--route, --rule and --managed-route belong together")
    with connected(place) as connection:
        subject = subject_of(connection, connection.rollout(rollout), plugin_name)
        if route is None or rule is None or managed_route is None:
            return show_alikes(connection, subject, output)
        return adopt_rule(connection, subject, Choice(route, rule, managed_route, yes), output)
