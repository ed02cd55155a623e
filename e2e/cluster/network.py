"""The two network namespaces of a cluster: made, entered, swept.

The node's holds control plane, controller and gateway. The pods' makes every address of the pod range local ("AnyIP"),
so that one program there answers for all pods, on any port, whatever the node's programs listen on. A veth pair joins
them. Nothing can leave: there is no other link. Whoever runs in one of the namespaces belongs to the cluster: `sweep`
finds and kills all of them, whoever started them.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.cluster import linux, process
from e2e.cluster.settings import (
    API_ADDRESS,
    LINK_PREFIX,
    NODE_ADDRESS,
    POD_RANGE,
    PODS_GATEWAY,
    Settings,
)
from e2e.waiting import until

_NAMED = Path("/run/netns")
# A killed process may hang in a system call for a moment.
KILL_SECONDS = 30.0


def _ip(*arguments: str) -> None:
    process.run(["ip", *arguments])


def create(settings: Settings) -> None:
    """Make both namespaces and the link between them."""
    node, pods = settings.node_namespace, settings.pods_namespace
    for namespace in (node, pods):
        _ip("netns", "add", namespace)
        _ip("-n", namespace, "link", "set", "lo", "up")
    _ip("-n", node, "link", "add", "pods0", "type", "veth", "peer", "name", "node0", "netns", pods)
    for namespace, device, address in ((node, "pods0", NODE_ADDRESS), (pods, "node0", PODS_GATEWAY)):
        _ip("-n", namespace, "addr", "add", f"{address}/{LINK_PREFIX}", "dev", device)
        _ip("-n", namespace, "link", "set", device, "up")
    _ip("-n", node, "addr", "add", f"{API_ADDRESS}/32", "dev", "lo")
    _ip("-n", node, "route", "add", POD_RANGE, "via", PODS_GATEWAY)
    _ip("-n", pods, "route", "add", "default", "via", NODE_ADDRESS)
    _ip("-n", pods, "route", "add", "local", POD_RANGE, "dev", "lo")


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Put the calling thread, and what it starts, into the namespace for the time of the block."""
    before = Path(f"/proc/self/task/{threading.get_native_id()}/ns/net")
    with before.open("rb") as back:
        linux.enter_namespace(_NAMED / namespace, linux.CLONE_NEWNET)
        try:
            yield
        finally:
            linux.enter_namespace(Path(f"/proc/self/fd/{back.fileno()}"), linux.CLONE_NEWNET)


def exists(settings: Settings) -> bool:
    """Whether the node's namespace is there."""
    return (_NAMED / settings.node_namespace).exists()


def processes(settings: Settings) -> list[int]:
    """Process ids of all that run in either namespace, this process left out."""
    wanted = {_identity(_NAMED / name) for name in (settings.node_namespace, settings.pods_namespace)} - {None}
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _identity(entry / "ns" / "net") in wanted
    ]


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:  # the process is gone, or the namespace was never made
        return None
    return (found.st_dev, found.st_ino)


def sweep(settings: Settings) -> int:
    """Kill whatever runs in the namespaces and remove them; return how many processes there were."""
    killed: set[int] = set()

    def empty() -> bool:
        found = processes(settings)
        for pid in found:
            killed.add(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return not found

    until(empty, f"no process in {settings.node_namespace}", seconds=KILL_SECONDS)
    for namespace in (settings.node_namespace, settings.pods_namespace):
        if (_NAMED / namespace).exists():
            _ip("netns", "del", namespace)
    return len(killed)
