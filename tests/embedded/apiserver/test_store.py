"""Versions and history."""

from typing import Any

import pytest

from rollouts_gwapi_plugin.embedded.apiserver import store as module
from rollouts_gwapi_plugin.embedded.apiserver.store import Store

KEY = ("", "configmaps")


def _value(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def test_each_write_has_a_later_version() -> None:
    """Creates, changes and deletes of all kinds share one counter."""
    store = Store()
    first = store.put(KEY, ("n", "a"), _value("a"))
    second = store.put(("g", "others"), ("n", "a"), _value("a"))
    last = store.remove(KEY, ("n", "a"))

    assert first.version < second.version < last.version == store.version
    assert last.value["metadata"]["resourceVersion"] == str(last.version)


def test_history_has_all_after_a_version() -> None:
    """What happened after a version comes in order, with the state before each change."""
    store = Store()
    first = store.put(KEY, ("n", "a"), _value("a"))
    store.put(KEY, ("n", "a"), _value("a"))
    store.remove(KEY, ("n", "a"))

    changes = list(store.since(first.version) or ())

    assert [change.type for change in changes] == ["MODIFIED", "DELETED"]
    assert changes[0].before is first


def test_history_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """History forgets the oldest beyond its length, and says so instead of leaving changes out."""
    monkeypatch.setattr(module, "HISTORY_LENGTH", 3)
    store = Store()
    store._history = type(store._history)(maxlen=3)
    versions = [store.put(KEY, ("n", str(number)), _value("a")).version for number in range(5)]

    assert store.since(versions[0]) is None
    assert [change.version for change in store.since(versions[1]) or ()] == versions[2:]
