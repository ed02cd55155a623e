"""`lint`: what a Rollout asks of the plugin is checked before anything of it is in a cluster."""

from pathlib import Path

import click

from rollouts_gwapi_plugin.cli.options import output_option, plugin_name_option


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True, path_type=Path))
@click.option("-n", "--namespace", default="default", show_default=True, help="For objects without a namespace.")
@plugin_name_option
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings, too.")
@output_option
def lint(*, files: tuple[Path, ...], namespace: str, plugin_name: str | None, strict: bool, output: str) -> int:
    """Check the Rollouts in FILES (YAML or JSON, folders, - for standard input), without a cluster.

    With the routes among FILES all steps are played on them, so that limits of the Gateway API and steps that a route
    can't take are found. An error is what makes a call of the plugin (or the controller's own validation) fail, a
    warning is what makes it do less than was asked for.

    The exit code is 0 without errors, 1 with errors, 2 for a wrong command line.
    """
    from rollouts_gwapi_plugin.cli.findings import exit_code, report
    from rollouts_gwapi_plugin.cli.lint.lint_files import lint_manifests
    from rollouts_gwapi_plugin.cli.manifests import read_manifests

    findings = lint_manifests(read_manifests(files, namespace=namespace), plugin_name)
    report(findings, output)
    return exit_code(findings, strict=strict)
