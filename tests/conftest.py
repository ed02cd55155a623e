"""What several packages' tests share: the Gateway API's own CustomResourceDefinitions, the plugin as a process."""

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import hypothesis
import pytest
import structlog
import yaml

if TYPE_CHECKING:
    from tests.plugin_process import PluginProcess

StartPlugin = Callable[..., "PluginProcess"]
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


# How long an example takes is the machine's affair, and these tests also run on busy ones; `make bench` is for speed.
# The same examples each time, so that what passed passes again; `make soak` draws new ones.
hypothesis.settings.register_profile("project", deadline=None, derandomize=not os.environ.get("HYPOTHESIS_RANDOM"))
hypothesis.settings.load_profile("project")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the after.yaml files of the reconciler cases be rewritten."""
    parser.addoption("--update-cases", action="store_true", help="rewrite the after.yaml files of tests/routes/cases")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest, the random lives: shared out last, one process would end long after the other."""
    items.sort(key=lambda item: "stateful" not in item.path.parts)


@pytest.fixture(autouse=True)
def _default_logging() -> Iterator[None]:
    """Undo what a test configured, such as a level that would swallow another test's lines."""
    yield
    structlog.reset_defaults()


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


@pytest.fixture(scope="session")
def plugin_process() -> ModuleType:
    """Give the module `plugin_process`: a test file can't import its neighbour."""
    spec = importlib.util.spec_from_file_location("plugin_process", Path(__file__).with_name("plugin_process.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def start_plugin(tmp_path: Path, plugin_process: ModuleType) -> Iterator[StartPlugin]:
    """Give a function that starts the plugin: `start_plugin("--transport", "grpc", environ={…})`."""
    started: list[PluginProcess] = []

    def start(
        *arguments: str, command: Sequence[str] = (), environ: Mapping[str, str | None] | None = None
    ) -> "PluginProcess":
        folder = tmp_path / f"p{len(started)}"
        folder.mkdir()
        started.append(plugin_process.PluginProcess(folder, arguments, environ or {}, command))
        return started[-1]

    yield start
    for process in started:
        process.stop()
