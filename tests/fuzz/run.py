"""Fuzz driver: mutates golden bytes and gives them to each target for a while.

A target is a module `fuzz_NAME.py` beside this file with a function `one_input(data)`: it raises nothing but for a bug.
Its seeds are the golden files of `tests/wire/golden/NAME*` and what the module itself lists as `GOLDEN`. The first byte
of an input is the target's to choose sizes and roles by; it is drawn.

Run by `make fuzz` for FUZZ_SECONDS (60) over all targets, with a printed seed (FUZZ_SEED repeats it). An input that
raises, or takes more than a few seconds, is saved under `out/fuzz` and ends the run with exit code 1.
"""

import base64
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

FOLDER = Path(__file__).parent
GOLDEN = FOLDER.parent / "wire" / "golden"
SAVED = FOLDER.parents[1] / "out" / "fuzz"
SECONDS = 60
# No input is larger than a few hundred kilobytes; a session of that size is read in a fraction of this.
SECONDS_AN_INPUT = 5
LONGEST_INPUT = 1 << 18
# More than the most that the limits of a stream let a peer have: beyond, MemoryError is a finding.
MEMORY_BYTES = 2 << 30

INTERESTING = (0x00, 0x01, 0x02, 0x03, 0x07, 0x08, 0x10, 0x7F, 0x80, 0x81, 0xF7, 0xF8, 0xFE, 0xFF)
NUMBERS = (b"\x00", b"\x01", b"\x7f", b"\xff\xff", b"\xfe\x7f\xff", b"\xfc\xff\xff\xff\xff", b"\xf8" + b"\xff" * 8)


@dataclass(frozen=True)
class Target:
    """What is fuzzed, and what its inputs are made from."""

    name: str
    one_input: Callable[[bytes], None]
    seeds: list[bytes]


class TooSlow(Exception):  # noqa: N818 - says what was found
    """An input took longer than it may."""


def targets() -> list[Target]:
    """Return all targets beside this file."""
    return [load(path) for path in sorted(FOLDER.glob("fuzz_*.py"))]


def load(path: Path) -> Target:
    """Return the target in a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    name = path.stem.removeprefix("fuzz_")
    folders = [*GOLDEN.glob(f"{name}*"), *(GOLDEN / folder for folder in getattr(module, "GOLDEN", ()))]
    files = sorted(file for folder in folders for file in folder.iterdir() if file.suffix in {".bin", ".jsonl"})
    return Target(name, module.one_input, [seed for file in files for seed in seeds_in(file)])


def seeds_in(file: Path) -> Iterator[bytes]:
    """Yield the bytes of a golden file; a capture has two directions."""
    if file.suffix == ".bin":
        yield file.read_bytes()[:LONGEST_INPUT]
        return
    sides: dict[str, bytearray] = {}
    for line in file.read_text().splitlines():
        frame = json.loads(line)
        side = sides.setdefault(frame["dir"], bytearray())
        side += bytes.fromhex(frame["hex"])
        if "body_zlib_base64" in frame:
            side += zlib.decompress(base64.b64decode(frame["body_zlib_base64"]))
    for side in sides.values():
        yield bytes(side[:LONGEST_INPUT])


class Mutator:
    """Makes inputs out of seeds; the same seed of the generator gives the same inputs."""

    def __init__(self, seeds: list[bytes], generator: random.Random) -> None:
        self._seeds = seeds
        self._random = generator
        self._changes = [self._byte, self._bit, self._number, self._delete, self._repeat, self._splice, self._cut]

    def next_input(self) -> bytes:
        """Return a new input."""
        choose = self._random
        data = bytearray(
            choose.choice(self._seeds) if choose.random() < 0.95 else choose.randbytes(choose.randrange(64))
        )
        for _ in range(choose.choice((1, 1, 1, 2, 3, 8))):
            if choose.random() < 0.5:
                self._in_a_message(data)
            else:
                choose.choice(self._changes)(data)
        return bytes((choose.randrange(256),)) + bytes(data[:LONGEST_INPUT])

    def _in_a_message(self, data: bytearray) -> None:
        """Change one message of a gob stream, or the order of messages, and let the lengths be right."""
        messages = split(data)
        if not messages:
            self._byte(data)
            return
        place = self._random.randrange(len(messages))
        action = self._random.randrange(8)
        if action == 0:
            del messages[place]
        elif action == 1:
            messages.insert(place, self._random.choice(messages))
        else:
            self._random.choice(self._changes)(messages[place])
        data[:] = b"".join(length_of(message) + message for message in messages)

    def _place(self, data: bytearray) -> int:
        return self._random.randrange(len(data) + 1)

    def _byte(self, data: bytearray) -> None:
        place = self._place(data)
        data[place : place + 1] = bytes((self._random.choice(INTERESTING),))

    def _bit(self, data: bytearray) -> None:
        place = self._place(data)
        if place < len(data):
            data[place] ^= 1 << self._random.randrange(8)

    def _number(self, data: bytearray) -> None:
        place = self._place(data)
        data[place : place + self._random.randrange(3)] = self._random.choice(NUMBERS)

    def _delete(self, data: bytearray) -> None:
        place = self._place(data)
        del data[place : place + self._random.choice((1, 2, 4, 16))]

    def _repeat(self, data: bytearray) -> None:
        place = self._place(data)
        piece = data[place : place + self._random.choice((1, 2, 8, 64))]
        data[place:place] = piece * self._random.choice((1, 2, 50))

    def _splice(self, data: bytearray) -> None:
        other = self._random.choice(self._seeds)
        start = self._random.randrange(len(other) + 1)
        place = self._place(data)
        data[place : place + 16] = other[start : start + self._random.choice((4, 16, 256))]

    def _cut(self, data: bytearray) -> None:
        del data[self._place(data) :]


def split(data: bytearray) -> list[bytearray]:
    """Return the messages of a gob stream as far as it is one."""
    messages = []
    place = 0
    while place < len(data):
        first, start = data[place], place + 1
        if first >= 0x80:
            start += 256 - first
            first = int.from_bytes(data[place + 1 : start], "big")
        if start + first > len(data):
            break
        messages.append(data[start : start + first])
        place = start + first
    return messages


def length_of(message: bytearray) -> bytes:
    """Return the length of a message as it stands before it."""
    length = len(message)
    if length < 0x80:
        return bytes((length,))
    size = (length.bit_length() + 7) // 8
    return bytes((256 - size,)) + length.to_bytes(size, "big")


@contextmanager
def bounded_time() -> Iterator[None]:
    """Let the block be interrupted by TooSlow when it runs too long."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow(f"more than {SECONDS_AN_INPUT} s")

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, SECONDS_AN_INPUT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def fuzz(target: Target, generator: random.Random, seconds: float) -> int:
    """Give a target inputs for some time; return how many. Saves the input and raises when there is a finding."""
    mutator = Mutator(target.seeds, generator)
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        data = mutator.next_input()
        count += 1
        try:
            with bounded_time():
                target.one_input(data)
        except BaseException:
            SAVED.mkdir(parents=True, exist_ok=True)
            saved = SAVED / f"{target.name}-{zlib.crc32(data):08x}.bin"
            saved.write_bytes(data)
            print(f"fuzz {target.name}: input {count} fails, saved as {saved}", file=sys.stderr)  # noqa: T201 - a program
            raise
    return count


def main() -> int:
    """Fuzz every target for its share of the time."""
    seconds = float(os.environ.get("FUZZ_SECONDS", SECONDS))
    seed = int(os.environ.get("FUZZ_SEED", time.time_ns() % 1_000_000_000))
    print(f"fuzz: {seconds:.0f} s, FUZZ_SEED={seed}")  # noqa: T201 - a program
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.RLIM_INFINITY))
    found = targets()
    for target in found:
        generator = random.Random(seed)  # noqa: S311 - repeatable on purpose
        try:
            count = fuzz(target, generator, seconds / len(found))
        except Exception:  # noqa: BLE001 - whatever it is, it is the finding
            traceback.print_exc()
            return 1
        text = f"fuzz {target.name}: {count} inputs from {len(target.seeds)} seeds, nothing found"
        print(text)  # noqa: T201 - a program
    return 0


if __name__ == "__main__":
    sys.exit(main())
