"""`cleanup --all-deleted` on ConfigMaps that finished rollouts left with nothing in them; D6."""

from typing import Any

import pytest
from tests.cli.town import Town
from tests.service.world import LEDGER, header_step

LABELS = {"app.kubernetes.io/managed-by": "rollouts-gwapi-plugin"}
DELETED = f"ConfigMap shop/{LEDGER} was empty and is deleted\n"
COMMAND = ("cleanup", "--all-deleted")


@pytest.fixture
def finished(town: Town) -> Town:
    """Let a rollout with a managed route come to its end."""
    town.configure(managed=["canary"], steps=[{"setHeaderRoute": header_step("canary")}])
    town.shop.header("canary")
    town.shop.weight(30)
    town.shop.remove()
    town.shop.weight(0)
    assert not town.api.read("ConfigMap", "shop", LEDGER).get("data")
    return town


@pytest.mark.parametrize("plugins", [{}, None])
def test_nothing_is_left_of_a_finished_rollout(finished: Town, plugins: Any) -> None:
    """With the plugin taken out, and beside living Rollouts, it goes; the next managed route makes it anew."""
    if plugins is not None:
        finished.configure(plugins=plugins)

    code, text, _ = finished.run(*COMMAND, "--yes")

    assert (code, text) == (0, f"ConfigMap shop/{LEDGER} is empty, and is deleted\n{DELETED}")
    assert finished.api.find("ConfigMap", "shop", LEDGER) is None
    assert "has left anything behind" in finished.run(*COMMAND, "--yes")[1]
    finished.configure(plugins=None)
    finished.shop.header("canary")
    assert finished.shop.ledger()


@pytest.mark.parametrize(("options", "expected"), [((), 1), (("--dry-run",), 0)])
def test_it_is_shown_first(finished: Town, options: tuple[str, ...], expected: int) -> None:
    """Without --yes it is told, and stands."""
    code, text, _ = finished.run(*COMMAND, *options)

    assert (code, text) == (expected, f"ConfigMap shop/{LEDGER} is empty, and is deleted\n")
    assert finished.api.find("ConfigMap", "shop", LEDGER) is not None


def test_one_rollout_does_not_ask_for_others(town: Town) -> None:
    """Only --all-deleted looks at ConfigMaps of other names."""
    town.api.create(config_map(name="other", labels=LABELS))

    town.run("cleanup", "web", "--yes")

    assert town.api.find("ConfigMap", "shop", "other") is not None


def config_map(name: str = LEDGER, labels: Any = None, **fields: Any) -> dict[str, Any]:
    """Make a ConfigMap in shop."""
    metadata = {"name": name, "namespace": "shop", "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields}


@pytest.mark.parametrize(
    "made",
    [
        config_map(),
        config_map(labels={"app.kubernetes.io/managed-by": "helm"}),
        config_map(labels=LABELS, data={"mine": ""}),
        config_map(labels=LABELS, binaryData={"mine": "AA=="}),
    ],
)
def test_what_is_a_users_stays(town: Town, made: dict[str, Any]) -> None:
    """Both are needed: the plugin's label, and that nothing is in it."""
    town.api.create(made)

    code, text, _ = town.run(*COMMAND, "--yes")

    assert code == 0
    assert "has left anything behind" in text
    assert town.api.find("ConfigMap", "shop", LEDGER) is not None


def test_what_is_recorded_meanwhile_stays(finished: Town) -> None:
    """It is deleted only as it was found."""

    def in_between(request: Any) -> None:
        if (request.verb, request.plural) == ("delete", "configmaps"):
            finished.api.edit("ConfigMap", "shop", LEDGER, lambda one: one.update(data={"key": "{}"}))

    finished.api.before_write(in_between)

    assert finished.run(*COMMAND, "--yes")[0] == 0
    assert finished.shop.ledger() == {"key": "{}"}


def test_without_the_right_to_delete(finished: Town) -> None:
    """It is an error, and said of which ConfigMap."""
    with finished.api.deny("delete", "configmaps"):
        code, text, _ = finished.run(*COMMAND, "--yes")

    assert code == 1
    assert f"error: ConfigMap shop/{LEDGER} is left: delete ConfigMap" in text


@pytest.mark.parametrize(("option", "deleted"), [("--yes", True), ("--dry-run", False)])
def test_for_machines(finished: Town, option: str, *, deleted: bool) -> None:
    """JSON has it as what belongs to no Rollout."""
    assert finished.json(*COMMAND, option) == [
        {
            "rollout": None,
            "configMap": f"shop/{LEDGER}",
            "written": deleted,
            "configMapDeleted": deleted,
            "warnings": [],
            "errors": [],
            "routes": [],
        }
    ]
