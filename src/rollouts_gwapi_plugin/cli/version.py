"""`version`: print the version."""

import click

from rollouts_gwapi_plugin import __version__


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(__version__)
