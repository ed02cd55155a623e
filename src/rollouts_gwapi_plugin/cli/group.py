"""The click group whose commands are imported when they are asked for."""

import sys
from collections.abc import Mapping
from importlib import import_module
from io import TextIOWrapper

import click

from rollouts_gwapi_plugin import __version__
from rollouts_gwapi_plugin.errors import PluginError


class LazyGroup(click.Group):
    """A group that knows its commands by `module:attribute`, below this package."""

    def __init__(self, commands: Mapping[str, str]) -> None:
        help_ = (
            "Traffic router plugin of Argo Rollouts for the Kubernetes Gateway API.\n\n"
            "The controller starts `serve` by itself; the other commands are for people."
        )
        super().__init__(name="rollouts-gwapi-plugin", help=help_)
        self.places = commands

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All names, `serve` among them."""
        return sorted([*self.places, "serve"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import the command's module and return the command."""
        if cmd_name == "serve":
            return click.Command(
                "serve", help="Serve as a plugin; the controller calls it. `serve --help` has the flags."
            )
        if cmd_name not in self.places:
            return None
        module, _, attribute = self.places[cmd_name].partition(":")
        command = getattr(import_module(f"rollouts_gwapi_plugin.cli.{module}"), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.places[cmd_name]} is not a command")
        return command


def main(arguments: list[str], commands: Mapping[str, str]) -> int:
    """Run a command; errors of ours are one line on standard error and exit code 1."""
    if isinstance(sys.stdout, TextIOWrapper):
        # What a terminal's encoding has no bytes for is shown as an escape.
        sys.stdout.reconfigure(errors="backslashreplace")
    group = click.version_option(__version__, prog_name="rollouts-gwapi-plugin")(LazyGroup(commands))
    try:
        result = group.main(args=arguments, prog_name="rollouts-gwapi-plugin", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return 130
    except PluginError as error:
        click.echo(f"error: {error}", err=True)
        return 1
    return result if isinstance(result, int) else 0
