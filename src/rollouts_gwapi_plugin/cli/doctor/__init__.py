"""`doctor`: whether a cluster has everything that the Rollouts in it ask of the plugin."""

from pathlib import Path

import click

from rollouts_gwapi_plugin.cli.options import Place, cluster_options, output_option, plugin_name_option

DEFAULT_SERVICE_ACCOUNT = "argo-rollouts/argo-rollouts"


@click.command()
@click.argument("rollouts", nargs=-1, metavar="[ROLLOUT]...")
@cluster_options
@click.option(
    "--service-account",
    default=DEFAULT_SERVICE_ACCOUNT,
    show_default=True,
    metavar="NS/NAME",
    help="The controller's, whose rights the plugin has; `self` asks for one's own.",
)
@plugin_name_option
@click.option(
    "--plugin-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The executable that file:// names, to check.",
)
@click.option("--sha256", metavar="HEX", help="What the executable's SHA-256 has to be.")
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings, too.")
@output_option
def doctor(  # noqa: PLR0913 - one argument an option
    *,
    rollouts: tuple[str, ...],
    place: Place,
    service_account: str,
    plugin_name: str | None,
    plugin_file: Path | None,
    sha256: str | None,
    strict: bool,
    output: str,
) -> int:
    """Check the cluster for each ROLLOUT (without a name: all of the namespace), before a rollout does.

    The API server and the kinds that it serves, the controller's configuration, the rights of its service account,
    routes with their Services, limits and gateways, all steps played on the live routes, and the record of managed
    rules. It writes nothing but reviews of access, which store nothing.

    The exit code is 0 without errors, 1 with errors, 2 for a wrong command line.
    """
    from rollouts_gwapi_plugin.cli.doctor.checkup import Order, check_up
    from rollouts_gwapi_plugin.cli.findings import exit_code, report

    if sha256 is not None and plugin_file is None:
        raise click.UsageError("--sha256 goes with --plugin-file")
    parts = service_account.split("/")
    if not all(parts) or len(parts) > 2:  # noqa: PLR2004 - namespace and name
        raise click.BadParameter(
            f"{service_account!r} is no NS/NAME of a service account", param_hint="--service-account"
        )
    order = Order(place, rollouts, service_account, plugin_name, plugin_file, sha256)
    findings = check_up(order)
    report(findings, output)
    return exit_code(findings, strict=strict)
