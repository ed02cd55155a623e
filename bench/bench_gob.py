"""How long the gob decoder takes for a request of the controller: the first of a connection, and a later one.

Prints a line a case, microseconds, minimum and median: everything built, and only what a reconciler reads. The later
request is made from the first one; its types are known then. CPU time of this thread, so that other work does not
count.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rollouts_gwapi_plugin.wire import gob
from rollouts_gwapi_plugin.wire.gob.varint import encode_uint, read_uint

GOLDEN = Path(__file__).parents[1] / "tests" / "wire" / "golden" / "rpc"
FIRST, LATER = 300, 2000
# What reconciling reads of the arguments, about.
PROJECTION: gob.Projection = {
    "Rollout": {
        "TypeMeta": None,
        "ObjectMeta": {"Name": None, "Namespace": None, "UID": None, "ResourceVersion": None, "Annotations": None},
        "Spec": {"Strategy": {"Canary": None}},
        "Status": {
            "CurrentStepIndex": None,
            "Abort": None,
            "PromoteFull": None,
            "StableRS": None,
            "CurrentPodHash": None,
        },
    },
    "DesiredWeight": None,
    "AdditionalDestinations": None,
    "SetHeaderRoute": None,
    "SetMirrorRoute": None,
}


def microseconds(action: Callable[[], Any], count: int) -> str:
    """Return minimum and median of some runs."""
    times = []
    for _ in range(count):
        start = time.thread_time_ns()
        action()
        times.append(time.thread_time_ns() - start)
    return f"min {min(times) / 1000:6.0f}  median {statistics.median(times) / 1000:6.0f}"


def messages_of(stream: bytes) -> list[bytes]:
    """Return the messages of a gob stream without their lengths."""
    found = []
    position = 0
    while position < len(stream):
        length, start = read_uint(bytearray(stream), position)
        position = start + length
        found.append(stream[start:position])
    return found


def later_request(stream: bytes) -> bytes:
    """Return the argument of the request as it is sent when its types are known."""
    messages = messages_of(stream)
    # An interface at the top: type 8, a zero, the name; the rest of this message defines the type of the argument.
    beginning = next(message for message in messages if message.startswith(b"\x10\x00"))
    argument = beginning[: 3 + beginning[2]] + messages[-1]
    return encode_uint(len(argument)) + argument


def bench(name: str, projection: gob.Projection | None) -> tuple[str, str]:
    """Return the figures of the first request of a golden connection, and of a later one."""
    stream = (GOLDEN / name).read_bytes()

    def connect() -> gob.Decoder:
        decoder = gob.Decoder()
        decoder.receive(stream)
        decoder.next_value()
        decoder.next_value(projection)
        return decoder

    decoder = connect()
    later = later_request(stream)

    def request() -> None:
        decoder.receive(later)
        decoder.next_value(projection)

    return microseconds(connect, FIRST), microseconds(request, LATER)


def main() -> None:
    """Print all cases."""
    for path in sorted(GOLDEN.glob("rich-*.request.bin")):
        for what, projection in (("all", None), ("projected", PROJECTION)):
            first, later = bench(path.name, projection)
            method = path.name.split(".")[0].removeprefix("rich-")
            print(f"gob {method:20} {what:10} first µs {first}   later µs {later}")  # noqa: T201 - a program


if __name__ == "__main__":
    main()
