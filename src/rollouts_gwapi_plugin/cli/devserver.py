"""`devserver`: the embedded API server on its own, for a controller, the plugin or kubectl to talk to."""

import signal
import threading
from pathlib import Path

import click

from rollouts_gwapi_plugin.cli.manifests import DEFINITION, read_manifests
from rollouts_gwapi_plugin.embedded.apiserver import ApiServer, StatusError

LAST_PORT = 65_535


@click.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--port", type=click.IntRange(0, LAST_PORT), default=0, show_default="a free one", help="Port on 127.0.0.1."
)
@click.option("--tls", is_flag=True, help="Serve HTTPS with a certificate made for this run (it is in the kubeconfig).")
@click.option(
    "--kubeconfig-out", type=click.Path(path_type=Path, dir_okay=False), help="Write a kubeconfig to this file."
)
@click.option("--user", default="", help="Whose token the kubeconfig holds [default: an administrator's].")
@click.option(
    "--rbac",
    is_flag=True,
    help="Let the Roles and bindings in FILES decide who may do what. Goes with --tls for kubectl, which sends no token"
    " over plain HTTP.",
)
def devserver(
    *, files: tuple[Path, ...], port: int, tls: bool, kubeconfig_out: Path | None, user: str, rbac: bool
) -> None:
    """Serve a Kubernetes API from memory, with the objects in FILES (YAML, JSON, folders of them), until interrupted.

    CustomResourceDefinitions in FILES are installed first. Without those of the Gateway API its kinds are served
    without a schema. Nothing is kept when it ends. It speaks JSON and YAML; clients that send protobuf (kubectl create
    configmap, the stock controller) need a real API server.
    """
    manifests = read_manifests(
        files, passed_over=lambda where: click.echo(f"{where}: passed over, no object", err=True)
    )
    definitions = [one.value for one in manifests if one.kind == DEFINITION]
    try:
        server = ApiServer(crds=definitions, tls=tls, port=port, rbac=rbac)
        server.load(one.value for one in manifests if one.kind != DEFINITION)
    except StatusError as error:
        raise click.ClickException(f"the API server refuses an object of the files: {error}") from error
    except OSError as error:
        raise click.ClickException(f"can't listen on port {port} of 127.0.0.1: {error.strerror}") from error
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with server:
        if kubeconfig_out is not None:
            try:
                server.write_kubeconfig(kubeconfig_out, user=user, token="" if user else server.access.admin_token)
            except OSError as error:
                raise click.ClickException(f"can't write {kubeconfig_out}: {error.strerror}") from error
        click.echo(server.url)
        stopped.wait()
