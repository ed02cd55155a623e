"""The service is built once, when it is first needed, and again only if that failed."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.calls import Verification
from rollouts_gwapi_plugin.service import Service
from rollouts_gwapi_plugin.transport.lazy_service import LazyService

CALLS: list[Callable[[LazyService], Any]] = [
    lambda service: service.init_plugin(),
    lambda service: service.update_hash(None),  # type: ignore[arg-type]
    lambda service: service.set_weight(None),  # type: ignore[arg-type]
    lambda service: service.verify_weight(None),  # type: ignore[arg-type]
    lambda service: service.set_header_route(None),  # type: ignore[arg-type]
    lambda service: service.set_mirror_route(None),  # type: ignore[arg-type]
    lambda service: service.remove_managed_routes(None),  # type: ignore[arg-type]
]


class Built:
    """Notes the names of its methods as they are called."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(*_: Any) -> Any:
            self.called.append(name)
            return Verification.VERIFIED

        return call


class Builder:
    """Fails as long as it has errors to raise."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.built: list[Any] = []

    def __call__(self) -> Service:
        """Build."""
        if self.errors:
            raise self.errors.pop(0)
        self.built.append(Built())
        service: Service = self.built[-1]
        return service


def test_every_call_reaches_the_one_service() -> None:
    """All calls go to the same object, which is built by the first of them."""
    builder = Builder()
    lazy = LazyService(builder)
    assert lazy.type_name() == "GatewayAPI"
    assert builder.built == []
    for call in CALLS:
        call(lazy)

    (built,) = builder.built
    assert built.called == [
        "init_plugin",
        "update_hash",
        "set_weight",
        "verify_weight",
        "set_header_route",
        "set_mirror_route",
        "remove_managed_routes",
    ]


def test_a_failure_is_told_by_each_call_and_tried_again() -> None:
    """Each call raises its own cause; after the last one the service is there."""
    lazy = LazyService(Builder(ConfigError("first"), ConfigError("second")))
    for cause in ("first", "second"):
        with pytest.raises(ConfigError, match=cause):
            lazy.init_plugin()

    lazy.init_plugin()


@pytest.mark.parametrize("error", [ConfigError("no kubeconfig"), ZeroDivisionError("a bug")])
def test_warming_up_never_fails(error: Exception) -> None:
    """What goes wrong while nobody asks is left to the calls."""
    builder = Builder(error)
    lazy = LazyService(builder)
    lazy.warm()
    assert builder.built == []

    lazy.warm()
    assert len(builder.built) == 1


def test_the_end_builds_nothing() -> None:
    """A service that was never needed is not built to be ended; one that was is."""
    builder = Builder()
    lazy = LazyService(builder)
    lazy.close(0.1)
    assert builder.built == []

    lazy.warm()
    lazy.close(0.1)
    assert builder.built[0].called == ["close"]


def test_calls_at_once_build_once() -> None:
    """Of many first calls one builds, and the others wait for it."""
    builder = Builder()
    lazy = LazyService(builder)
    threads = [threading.Thread(target=lazy.init_plugin) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10.0)

    assert len(builder.built) == 1
