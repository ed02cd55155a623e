"""What the process remembers: bounded, and one for all threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

from rollouts_gwapi_plugin.routes.kinds import HTTP
from rollouts_gwapi_plugin.service.memory import Memory, Remembered, RoutePlace, Shift

PLACE = RoutePlace(HTTP, "shop", "web", "ledger")


def test_what_was_set_longest_ago_falls_out() -> None:
    """Setting again makes an entry new; looking does not."""
    memory: Remembered[str, int] = Remembered(limit=2)
    memory.set("a", 1)
    memory.set("b", 2)
    memory.set("a", 3)
    memory.set("c", 4)

    assert [3, None, 4] == [memory.get(key) for key in "abc"]
    assert 5 == memory.setdefault("d", 5)
    assert [None, None, 4, 5] == [memory.get(key) for key in "abcd"]
    assert 4 == memory.setdefault("c", 6)
    memory.set("e", 7)
    assert [4, None, 7] == [memory.get(key) for key in "cde"]
    memory.set("d", 8)
    memory.forget("d")
    memory.forget("never there")
    assert memory.get("d") is None


def test_threads_get_one_lock_of_one_object() -> None:
    """However many ask for it at the same moment: two locks would be none."""
    for _ in range(50):
        memory, start = Memory(), threading.Barrier(8)

        def ask(memory: Memory = memory, start: threading.Barrier = start) -> int:
            start.wait(5)
            return id(memory.lock("HTTPRoute", "shop", "web"))

        with ThreadPoolExecutor(8) as pool:
            assert 1 == len({future.result() for future in [pool.submit(ask) for _ in range(8)]})


def test_a_lock_in_use_is_not_made_anew() -> None:
    """However many other objects there are meanwhile: two locks would be none."""
    memory = Memory()
    memory._locks = Remembered(limit=2)
    first = memory.lock("HTTPRoute", "shop", "web")
    for other in ("a", "b", "c"):
        memory.lock("HTTPRoute", "shop", other)
        assert first is memory.lock("HTTPRoute", "shop", "web")


def test_other_objects_have_other_locks() -> None:
    """Kind, namespace and name tell them apart."""
    memory = Memory()
    keys = [("HTTPRoute", "a", "x"), ("GRPCRoute", "a", "x"), ("HTTPRoute", "b", "x"), ("HTTPRoute", "a", "y")]

    assert 4 == len({id(memory.lock(*key)) for key in keys})


def test_a_call_that_writes_no_weights_does_not_forget_them() -> None:
    """Who wrote the live weights is remembered until the route is given back (D29)."""
    memory = Memory()
    memory.note_place("shop/web", PLACE, None)
    unknown = dict(memory.places.get("shop/web") or {})
    memory.note_place("shop/web", PLACE, Shift(30, "main"))
    memory.note_place("shop/web", PLACE, None)

    assert {PLACE: None} == unknown
    assert {PLACE: Shift(30, "main")} == memory.places.get("shop/web")
    memory.drop_place("shop/web", PLACE)
    assert {} == memory.places.get("shop/web")
    assert "HTTPRoute shop/web" == str(PLACE)
