"""`install DIRECTORY`: copy the executable, for init containers without a shell.

The launcher of the executable does it before anything is unpacked (packaging/launcher/install.go), since an init
container has no room for that. This module gives the help, and passes on what the launcher left to it.
"""

import os
from pathlib import Path

import click

from rollouts_gwapi_plugin.transport.flags import EXECUTABLE_VARIABLE


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
def install(directory: Path) -> None:
    """Copy this executable to DIRECTORY/rollouts-gwapi-plugin and print its SHA-256.

    The file appears whole or not at all; an equal one that is already there is left alone. This is how an init
    container brings the plugin into the volume that the controller's configuration names with file://.
    """
    executable = os.environ.get(EXECUTABLE_VARIABLE, "")
    if not executable:
        raise click.ClickException(
            "only the released executable can copy itself, and this is a Python installation: "
            "take rollouts-gwapi-plugin-linux-amd64 or -arm64 from the release, or the image"
        )
    os.execv(executable, [executable, "install", str(directory.absolute())])  # noqa: S606 - our own path
