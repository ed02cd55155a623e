"""What several packages' tests share: the real Gateway API CustomResourceDefinitions."""

import json
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

Channel = Literal["standard", "experimental"]
GatewayApiCrds = Callable[[str, Channel], list[dict[str, Any]]]

# The kinds that tests use; parsing all files would cost seconds a release.
_PLURALS = (
    "gatewayclasses",
    "gateways",
    "grpcroutes",
    "httproutes",
    "referencegrants",
    "tcproutes",
    "tlsroutes",
    "udproutes",
)
_DOWNLOAD_SECONDS = 300


@pytest.fixture(scope="session")
def gateway_api_crds() -> GatewayApiCrds:
    """Give a function that loads the definitions of a release: `gateway_api_crds("1.4.1", "standard")`.

    They come from the Go module of the Gateway API, which `go` fetches once and keeps; mark the tests with `go`.
    """
    if shutil.which("go") is None:
        pytest.skip("the Gateway API's CustomResourceDefinitions come from its Go module, and there is no `go`")
    return _load


@cache
def _load(release: str, channel: Channel) -> list[dict[str, Any]]:
    folder = _module_folder(release) / "config" / "crd" / channel
    files = [folder / f"gateway.networking.k8s.io_{plural}.yaml" for plural in _PLURALS]
    documents = [
        document for file in files if file.exists() for document in yaml.load_all(file.read_bytes(), _loader())
    ]
    return [document for document in documents if document and document["kind"] == "CustomResourceDefinition"]


@cache
def _module_folder(release: str) -> Path:
    command = ["go", "mod", "download", "-json", f"sigs.k8s.io/gateway-api@v{release}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS)
    if done.returncode:
        pytest.fail(f"{' '.join(command)} failed: {done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"])


def _loader() -> type[yaml.SafeLoader]:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)
