"""Options that several commands have. It imports nothing but click: `--help` imports every command."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

plugin_name_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--plugin-name", metavar="ORG/NAME", help="The plugin's key in Rollouts, if it is none of the usual ones."
)
output_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="For whom to print."
)


@dataclass(frozen=True)
class Place:
    """What the command line says of the cluster; None where it says nothing."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets them as `place`."""

    @functools.wraps(command)
    def with_place(
        *arguments: Any, kubeconfig: str | None, context: str | None, namespace: str | None, **more: Any
    ) -> Any:
        return command(*arguments, place=Place(kubeconfig, context, namespace), **more)

    options = (
        click.option(
            "--kubeconfig", metavar="FILE", help="Else KUBECONFIG, the Pod's service account, ~/.kube/config."
        ),
        click.option("--context", metavar="NAME", help="A context of the kubeconfig."),
        click.option("-n", "--namespace", metavar="NS", help="The Rollouts' namespace [default: the context's]."),
    )
    for option in reversed(options):
        with_place = option(with_place)
    return with_place
