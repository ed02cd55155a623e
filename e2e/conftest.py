"""Chooses the cluster that the cases are told on.

Without options that is the cluster of e2e/cluster, started once for all cases and stopped at the end. With
`--e2e-kubeconfig` it is that cluster; it must have a gateway, Argo Rollouts and the plugin (e2e/README.md).
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.cluster import tools
from e2e.cluster.cluster import Cluster, open_cluster
from e2e.cluster.settings import REPOSITORY, Channel, Rollouts, Settings, cache_root
from e2e.runner.target import KubeconfigTarget, LocalTarget, Target, make_gateway


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say which cluster."""
    group = parser.getgroup("e2e", "end-to-end cases")
    # Never the environment's: that may be a cluster of somebody's.
    group.addoption("--e2e-kubeconfig", default="", help="tell the cases on this cluster")
    group.addoption("--e2e-gateway-address", default="", help="address of its gateway, if its Gateway does not tell")
    group.addoption("--e2e-gateway-class", default="eg", help="its GatewayClass")
    group.addoption("--e2e-image", default="", help="image of e2e/cluster/tools/echo that it can pull")
    group.addoption("--e2e-kind-node", default="", help="container of its node, where it is kind's")
    group.addoption(
        "--e2e-plugin", default="", choices=["", "binary", "venv"], help="what the local cluster's controller runs"
    )
    group.addoption("--e2e-name", default="", help="the local cluster's name, for several runs of one checkout at once")
    group.addoption(
        "--e2e-channel",
        default="standard",
        choices=["standard", "experimental"],
        help="the local cluster's channel of the Gateway API",
    )
    group.addoption(
        "--e2e-rollouts",
        default="1.9",
        choices=["1.9", "1.10"],
        help="the cluster's Argo Rollouts; cases that need a newer one have a local cluster of their own",
    )
    group.addoption("--e2e-keep", action="store_true", help="leave the local cluster up")


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """Start the local cluster, or say why it can't be."""
    if pytestconfig.getoption("e2e_kubeconfig"):
        pytest.skip("about the local cluster; this run is told on another one")
    with _up(pytestconfig) as found:
        yield found


@pytest.fixture(scope="session")
def newer_cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """Start a local cluster with the newest controller, for what the other refuses."""
    with _up(pytestconfig, "-newer", rollouts="1.10") as found:
        yield found


@pytest.fixture
def newer_target(newer_cluster: Cluster) -> Iterator[Target]:
    """Return the cluster with the newest controller; the test runs where it can be reached."""
    with _ready(LocalTarget(newer_cluster)) as chosen:
        yield chosen


@pytest.fixture(scope="module")
def experimental_cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """Start a local cluster with the Gateway API's experimental channel."""
    with _up(pytestconfig, "-experimental", channel="experimental") as found:
        yield found


@pytest.fixture
def experimental_target(experimental_cluster: Cluster) -> Iterator[Target]:
    """Return the cluster with the experimental channel; the test runs where it can be reached."""
    with _ready(LocalTarget(experimental_cluster)) as chosen:
        yield chosen


@contextmanager
def _up(
    pytestconfig: pytest.Config, suffix: str = "", *, rollouts: Rollouts | None = None, channel: Channel | None = None
) -> Iterator[Cluster]:
    """Keep the local cluster of this run up, or one beside it that differs in what is given."""
    reason = tools.missing_reason()
    if reason:
        pytest.skip(f"end-to-end tests left out: {reason}")
    plugin = pytestconfig.getoption("e2e_plugin")
    settings = Settings(
        name=(pytestconfig.getoption("e2e_name") or _cluster_name()) + suffix,
        root=cache_root(),
        channel=channel or pytestconfig.getoption("e2e_channel"),
        plugin="venv" if plugin == "venv" else "binary",
        rollouts=rollouts or pytestconfig.getoption("e2e_rollouts"),
    )
    if settings.plugin == "binary" and not settings.binary.exists():
        pytest.fail(f"no plugin at {settings.binary}: run `make binary`, or choose --e2e-plugin venv")
    found = open_cluster(settings, _tell(pytestconfig), build=True)
    with found.held():
        found.up(_tell(pytestconfig))
        yield found
        if not pytestconfig.getoption("e2e_keep"):
            found.down(_tell(pytestconfig))


@contextmanager
def _ready(chosen: Target) -> Iterator[Target]:
    """Reach the cluster, with the cases' Gateway in place."""
    with chosen.reached():
        make_gateway(chosen)
        yield chosen


@pytest.fixture(scope="session")
def target(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> Iterator[Target]:
    """Return the cluster of this run, with the cases' Gateway in place; the tests run where it can be reached."""
    kubeconfig = pytestconfig.getoption("e2e_kubeconfig")
    chosen: Target = (
        KubeconfigTarget(
            kubeconfig=Path(kubeconfig),
            image=pytestconfig.getoption("e2e_image"),
            gateway_class=pytestconfig.getoption("e2e_gateway_class"),
            gateway_address=pytestconfig.getoption("e2e_gateway_address"),
            kind_node=pytestconfig.getoption("e2e_kind_node"),
            rollouts=pytestconfig.getoption("e2e_rollouts"),
        )
        if kubeconfig
        else LocalTarget(request.getfixturevalue("cluster"))
    )
    wanted = any(item.get_closest_marker("newer_controller") for item in request.session.items)
    if wanted and not kubeconfig and "rollouts-1.10" not in chosen.can:
        # Before the network namespace is entered, in which nothing can be downloaded.
        request.getfixturevalue("newer_cluster")
    with _ready(chosen):
        yield chosen


def _cluster_name() -> str:
    """Name the cluster after this checkout: others on the machine may run their tests at the same time."""
    return f"test-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"


def _tell(pytestconfig: pytest.Config) -> Callable[[str], None]:
    def tell(line: str) -> None:
        capture = pytestconfig.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            print(f"e2e: {line}", flush=True)  # noqa: T201 - the build takes minutes: it must be seen while it runs

    return tell


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show each case's story: what was measured is the point of these tests."""
    found = [
        value
        for outcome in ("passed", "failed")
        for item in terminalreporter.getreports(outcome)
        for key, value in item.user_properties
        if key == "summary"
    ]
    if found:
        terminalreporter.section("end-to-end cases")
        for text in found:
            terminalreporter.write_line(str(text))
