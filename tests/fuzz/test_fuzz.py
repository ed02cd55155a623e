"""A short, repeatable run of the fuzz driver over every target."""

import importlib.util
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parent
INPUTS = 300


def driver() -> ModuleType:
    """Return the module of the driver."""
    spec = importlib.util.spec_from_file_location("fuzz_driver", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_driver"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", sorted(FOLDER.glob("fuzz_*.py")), ids=lambda path: path.stem)
def test_target(path: Path) -> None:
    """A few hundred mutated inputs raise nothing, and none takes long."""
    run = driver()
    target = run.load(path)
    mutator = run.Mutator(target.seeds, generator(1))
    assert target.seeds
    for number in range(INPUTS):
        data = mutator.next_input()
        start = time.thread_time()
        target.one_input(data)
        assert time.thread_time() - start < run.SECONDS_AN_INPUT, f"input {number}: {data[:100].hex()}"


def test_repeatable() -> None:
    """The same seed gives the same inputs, and they are not the seeds themselves."""
    run = driver()
    seeds = [b"\x03\x04\x00\x02" * 5, b"\x04\x0c\x00\x01a"]

    first, second = (run.Mutator(seeds, generator(7)) for _ in range(2))
    inputs = [first.next_input() for _ in range(50)]

    assert inputs == [second.next_input() for _ in range(50)]
    assert len(set(inputs)) > 40


def generator(seed: int) -> random.Random:
    """Return a generator that always gives the same."""
    return random.Random(seed)  # noqa: S311 - repeatable on purpose


def broken(action: Callable[[bytes], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the input that the driver saves of a target that does this."""
    run = driver()
    monkeypatch.setattr(run, "SAVED", tmp_path)
    monkeypatch.setattr(run, "SECONDS_AN_INPUT", 0.2)
    target = run.Target("t", action, [b"\x03\x04\x00\x02"])
    with pytest.raises((ZeroDivisionError, run.TooSlow)):
        run.fuzz(target, generator(1), 30)
    (saved,) = tmp_path.iterdir()
    return saved


def test_finding_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An input that raises is saved, and the run ends."""
    seen: list[bytes] = []

    def fail(data: bytes) -> None:
        seen.append(data)
        _ = 1 // (3 - len(seen))

    assert broken(fail, tmp_path, monkeypatch).read_bytes() == seen[-1]
    assert len(seen) == 3
