"""`devserver`: the embedded API server on its own, for a controller, the plugin or kubectl to talk to."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import yaml

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer, StatusError
from rollouts_gwapi_plugin.model.base import JsonObject

DEFINITION = "CustomResourceDefinition"


@click.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--port", default=0, show_default="a free one", help="Port on 127.0.0.1.")
@click.option("--tls", is_flag=True, help="Serve HTTPS with a certificate made for this run (it is in the kubeconfig).")
@click.option(
    "--kubeconfig-out", type=click.Path(path_type=Path, dir_okay=False), help="Write a kubeconfig to this file."
)
@click.option("--user", default="", help="Whose token the kubeconfig holds [default: an administrator's].")
@click.option("--rbac", is_flag=True, help="Let the Roles and bindings in FILES decide who may do what.")
def devserver(
    *, files: tuple[Path, ...], port: int, tls: bool, kubeconfig_out: Path | None, user: str, rbac: bool
) -> None:
    """Serve a Kubernetes API from memory, with the objects in FILES (YAML or folders of it), until interrupted.

    CustomResourceDefinitions in FILES are installed first. Without those of the Gateway API its kinds are served
    without a schema. Nothing is kept when it ends. It speaks JSON and YAML; clients that send protobuf (kubectl create
    configmap, the stock controller) need a real API server.
    """
    documents = [document for file in files for document in _documents(file)]
    definitions = [document for document in documents if document.get("kind") == DEFINITION]
    try:
        server = ApiServer(crds=definitions, tls=tls, port=port, rbac=rbac)
        server.load(document for document in documents if document.get("kind") != DEFINITION)
    except StatusError as error:
        raise click.ClickException(f"the API server refuses an object of the files: {error}") from error
    except OSError as error:
        raise click.ClickException(f"can't listen on port {port} of 127.0.0.1: {error.strerror}") from error
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with server:
        if kubeconfig_out is not None:
            server.write_kubeconfig(kubeconfig_out, user=user, token="" if user else server.access.admin_token)
        click.echo(server.url)
        stopped.wait()


def _documents(path: Path) -> Iterator[JsonObject]:
    """Read the documents of a YAML file, or of all in a folder, in the order of their names."""
    files = sorted(file for file in path.iterdir() if file.suffix in {".yaml", ".yml"}) if path.is_dir() else [path]
    for file in files:
        try:
            found = list(yaml.load_all(file.read_bytes(), Loader=_loader()))
        except yaml.YAMLError as error:
            raise click.ClickException(f"{file} is not YAML: {error}") from error
        for document in found:
            if document is not None and not (isinstance(document, dict) and document.get("kind")):
                raise click.ClickException(f"{file} has a document that is no Kubernetes object (it has no kind)")
            if document is not None:
                yield document


def _loader() -> type[yaml.SafeLoader]:
    """Take the parser in C where it is: CustomResourceDefinitions are long."""
    loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return loader
