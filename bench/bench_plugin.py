"""How fast the plugin is as the controller sees it: started and called by the Go host of the interop tests.

Prints a table, a column a way to connect: start until the handshake line (with an empty bytecode cache, and later) and
until InitPlugin and a ping were answered, resident memory, SetWeight with nothing to change and with a change, calls a
second, API requests a call, and the end after Quit and after the host was killed. The API server is the embedded one,
in this process, which answers at once; the client's rate limit is lifted, since it is there to be slow.

Run as `python -m bench.bench_plugin` from the top folder; BENCH_CALLS sets the number of calls (10000), BENCH_MODES the
ways to connect ("netrpc netrpc-mtls grpc grpc-mtls").
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.interop.conftest import MODES, Host, Mode, build_host, create_web, web_rollout

from rollouts_gwapi_plugin.embedded.apiserver import ApiServer

CALLS = int(os.environ.get("BENCH_CALLS", "10000"))
WAYS = os.environ.get("BENCH_MODES", " ".join(map(str, MODES))).split()
STARTS = 7
# What the figures of net/rpc are held against: the highest that is good.
TARGETS = {"start, warm: handshake, ms": 600.0, "RSS after all calls, MB": 70.0, "no change: p50, ms": 4.0}
UNLIMITED = ["--kubeClientQPS=1000000", "--kubeClientBurst=1000000"]
_PAUSE = 0.005
# A plugin has two seconds to follow its host; one that takes so long never will.
END_SECONDS = 30.0

Figures = dict[str, float]


class Bench:
    """One way to connect, measured."""

    def __init__(self, binary: Path, mode: Mode, folder: Path, api: ApiServer) -> None:
        self._binary = binary
        self._mode = mode
        self._folder = folder
        self._api = api
        self._rollout = web_rollout()
        kubeconfig = folder / "kubeconfig"
        if not kubeconfig.exists():
            api.write_kubeconfig(kubeconfig)
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}

    @contextmanager
    def _host(self, **environment: str) -> Iterator[tuple[Host, dict[str, Any]]]:
        host = Host(self._binary, {**self._environment, **environment}, self._folder / "host.log")
        arguments = ["serve", "--transport", self._mode.protocol, *UNLIMITED]
        try:
            answer = host.start(self._mode, args=arguments)
            if answer["error"]:
                raise SystemExit(f"{self._mode}: {answer['error']}; {host.last_words()}")
            yield host, answer
        finally:
            host.end()

    def _calls(self, host: Host, weights: list[int], count: int, goroutines: int = 1) -> dict[str, Any]:
        call = {"method": "SetWeight", "rollout": self._rollout}
        before = self._api.requests[-1].number if len(self._api.requests) else 0
        answer = host.do("bench", seconds=900, call=call, weights=weights, count=count, parallel=goroutines)
        if answer["error"]:
            raise SystemExit(f"{self._mode}: {answer['error']}")
        return {**answer, "requests": (self._api.requests[-1].number - before) / answer["calls"]}

    def starts(self) -> Figures:
        """Start often: first without bytecode, then with."""
        with (
            tempfile.TemporaryDirectory() as empty,
            self._host(PYTHONPYCACHEPREFIX=empty, PYTHONDONTWRITEBYTECODE="1") as (_, cold),
        ):
            pass
        warm = []
        for _ in range(STARTS):
            with self._host() as (_, answer):
                warm.append(answer)
        return {
            "start, no bytecode: handshake, ms": cold["handshake_seconds"] * 1000,
            "start, no bytecode: ready, ms": cold["ready_seconds"] * 1000,
            "start, warm: handshake, ms": statistics.median(one["handshake_seconds"] for one in warm) * 1000,
            "start, warm: ready, ms": statistics.median(one["ready_seconds"] for one in warm) * 1000,
        }

    def calls(self) -> Figures:
        """Call often, and end by Quit."""
        with self._host() as (host, _):
            figures = {"RSS after start, MB": resident(host.plugin_pid)}
            self._calls(host, [20], 100)
            same = self._calls(host, [20], CALLS // 2)
            change = self._calls(host, [30, 20], CALLS // 10)
            crowd = self._calls(host, [20], CALLS - CALLS // 2 - CALLS // 10, 10)
            figures |= {
                "RSS after all calls, MB": resident(host.plugin_pid),
                "no change: p50, ms": same["p50"] * 1000,
                "no change: p99, ms": same["p99"] * 1000,
                "no change: API requests": same["requests"],
                "change: p50, ms": change["p50"] * 1000,
                "change: p99, ms": change["p99"] * 1000,
                "change: API requests": change["requests"],
                "1 goroutine: calls/s": same["per_second"],
                "10 goroutines: calls/s": crowd["per_second"],
                "10 goroutines: p99, ms": crowd["p99"] * 1000,
                "ping, ms": statistics.median(host.do("ping")["seconds"] for _ in range(50)) * 1000,
                "end after Quit, ms": host.do("kill")["seconds"] * 1000,
            }
        return figures

    def death(self) -> Figures:
        """Kill the host, and wait for the plugin to go."""
        with self._host() as (host, _):
            host.process.send_signal(signal.SIGKILL)
            began = time.monotonic()
            while not host.plugin_ended():
                if time.monotonic() - began > END_SECONDS:
                    raise SystemExit(f"{self._mode}: the plugin still runs {END_SECONDS:g} s after its host was killed")
                time.sleep(_PAUSE)
            return {"end after host's SIGKILL, ms": (time.monotonic() - began) * 1000}


def resident(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    kilobytes = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], check=True, capture_output=True, text=True).stdout
    return int(kilobytes) * 1024 / 1e6


def show(results: dict[str, Figures]) -> None:
    """Print the table."""
    table = Table(
        title=f"The plugin under Go's host, {CALLS} calls, Python {sys.version.split()[0]}",
        caption=f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; above 1 a core, times are longer",
    )
    table.add_column("")
    for name in results:
        table.add_column(name, justify="right")
    table.add_column("target (netrpc)", justify="right")
    first = next(iter(results.values()))
    for row, figure in first.items():
        target = TARGETS.get(row)
        verdict = "" if target is None else f"{target:g} {'met' if figure < target else 'MISSED'}"
        table.add_row(row, *(f"{figures[row]:.1f}" for figures in results.values()), verdict)
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def main() -> None:
    """Measure each way to connect."""
    known = list(map(str, MODES))
    if not WAYS or not set(WAYS) <= set(known):
        raise SystemExit(f"BENCH_MODES is {' '.join(WAYS)!r}; it takes some of: {' '.join(known)}")
    results: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as folder, ApiServer() as api:
        create_web(api)
        binary = Path(folder) / "host"
        build_host(binary)
        for mode in (mode for mode in MODES if str(mode) in WAYS):
            bench = Bench(binary, mode, Path(folder), api)
            results[str(mode)] = bench.starts() | bench.calls() | bench.death()
    show(results)


if __name__ == "__main__":
    main()
