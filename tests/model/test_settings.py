"""What the process was started with."""

import pytest

from rollouts_gwapi_plugin.model.settings import ServiceSettings


@pytest.mark.parametrize(
    ("executable", "key"),
    [
        ("/home/argo-rollouts/plugin-bin/argoproj-labs/gatewayAPI", "argoproj-labs/gatewayAPI"),
        ("plugin-bin/example.com/router", "example.com/router"),
        ("/router", None),
        ("", None),
    ],
)
def test_the_key_is_the_end_of_the_executables_path(executable: str, key: str | None) -> None:
    """The controller runs a plugin from plugin-bin/<org>/<name>; a path with less says nothing (D25)."""
    assert key == ServiceSettings(executable=executable).executable_key
