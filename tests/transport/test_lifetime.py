"""When the process ends and how long calls still run: the rules by themselves, then with a host over each transport."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from rollouts_gwapi_plugin.transport import lifetime
from rollouts_gwapi_plugin.transport.calls import Answer
from rollouts_gwapi_plugin.transport.lifetime import DRAIN_AFTER_HOST, DRAIN_AFTER_SIGTERM, Ending, Lifetime

if TYPE_CHECKING:
    from tests.transport.conftest import Connect, Served
    from tests.transport.hosts import Call

MakeCall = Callable[..., "Call"]
# Decision D4 says two seconds. Busy cores get more here: without the rule it would be for ever.
GONE_SECONDS = 6.0


def test_the_first_reason_stays() -> None:
    """A reason to end that comes later changes nothing."""
    life = Lifetime(parent=1, parent_now=lambda: 1)
    life.end("Quit")
    life.end_by_signal("SIGTERM")

    assert life.wait() == Ending("Quit", DRAIN_AFTER_HOST)


def test_a_signal_ends_it_with_more_time() -> None:
    """After SIGTERM the host still waits for answers, so calls get longer."""
    life = Lifetime(parent=1, parent_now=lambda: 1)
    life.end_by_signal("SIGTERM")

    assert life.wait() == Ending("SIGTERM", DRAIN_AFTER_SIGTERM)


def test_another_parent_ends_it() -> None:
    """The parent's pid changes when the parent is gone, whoever inherits us."""
    life = Lifetime(parent=4711, parent_now=lambda: 1)

    assert life.wait().reason == "the host (pid 4711) is gone"


def test_a_parent_with_pid_1_is_a_parent() -> None:
    """In a container the controller is pid 1; that says nothing about being orphaned."""
    assert Lifetime(parent=1, parent_now=lambda: 1).host_gone == ""


def test_only_the_last_session_counts() -> None:
    """While another session is open nothing ends; after the last one it does, but not at once."""
    life = Lifetime(parent=1, parent_now=lambda: 1)
    life.session_opened()
    life.session_opened()
    life.session_closed()
    assert life.host_gone == ""

    life.session_closed()
    assert life.host_gone == ""
    started = time.monotonic()
    assert life.wait().reason == "the host has closed its last connection"
    assert lifetime.LINGER <= time.monotonic() - started < GONE_SECONDS


def test_a_new_session_keeps_it_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that connects again in time is not gone."""
    monkeypatch.setattr(lifetime, "LINGER", 0.0)
    life = Lifetime(parent=1, parent_now=lambda: 1)
    life.session_opened()
    life.session_closed()
    assert life.host_gone
    life.session_opened()

    assert life.host_gone == ""


def test_a_host_that_goes_while_calls_run_cuts_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for the answers any more, so the drain after SIGTERM ends soon."""
    monkeypatch.setattr(lifetime, "DRAIN_AFTER_HOST", 0.1)
    parent = [1]
    life = Lifetime(parent=1, parent_now=lambda: parent[0])
    asked = threading.Event()

    def never_idle(seconds: float) -> bool:
        asked.wait(min(seconds, 0.01))
        parent[0] = 2
        return False

    started = time.monotonic()
    assert life.wait_drained(60.0, never_idle) is False
    assert time.monotonic() - started < 10.0


def test_the_drain_ends_when_no_call_runs() -> None:
    """Where no call runs nothing is waited for."""
    assert Lifetime(parent=1, parent_now=lambda: 1).wait_drained(60.0, lambda _: True) is True


def test_quit_is_answered_before_the_end(served: "Served") -> None:
    """Quit (Shutdown) gets its answer, and then the process is gone within two seconds, with its socket."""
    served.host.quit()

    assert served.plugin.wait(GONE_SECONDS) == 0
    assert not Path(served.line.address).exists()
    assert list(served.plugin.folder.glob("rollouts-gwapi-*")) == []


def test_quit_cuts_a_call_that_hangs(served: "Served", call: MakeCall, tmp_path: Path) -> None:
    """A call that does not come back can't keep the process beyond the two seconds of go-plugin's patience."""
    hanging = served.host.start(call("SetWeight", annotations={"wait": str(tmp_path / "never")}))
    served.plugin.wait_calls("set_weight", 1)
    served.host.quit()

    assert hanging is not None
    assert served.plugin.wait(GONE_SECONDS) == 0
    assert served.plugin.log("calls were cut off")
    assert list(served.plugin.folder.glob("rollouts-gwapi-*")) == []


def test_the_last_session_takes_it_along(served: "Served") -> None:
    """When the host's only connection closes the process ends within two seconds."""
    served.host.ping()
    served.host.close()

    assert served.plugin.wait(GONE_SECONDS) == 0
    assert served.plugin.log("the plugin ends")[0]["reason"] == "the host has closed its last connection"


def test_one_session_of_two_does_not(served: "Served", connect: "Connect", call: MakeCall) -> None:
    """While another host is connected the process goes on."""
    other = connect(served.line)
    other.ping()
    served.host.ping()
    other.close()

    with pytest.raises(subprocess.TimeoutExpired):
        served.plugin.wait(1.5)
    assert served.perform(call("SetWeight")) == Answer()


def test_sigterm_lets_running_calls_answer(
    served: "Served", call: MakeCall, tmp_path: Path, plugin_process: ModuleType
) -> None:
    """After SIGTERM a running call is finished and answered, a new one is refused, and then the process ends."""
    gate = tmp_path / "gate"
    running = served.host.start(call("SetWeight", annotations={"wait": str(gate)}))
    served.plugin.wait_calls("set_weight", 1)
    served.plugin.process.send_signal(signal.SIGTERM)
    served.plugin.wait_log("the plugin ends")
    plugin_process.wait_until(
        lambda: "the plugin is ending" in served.perform(call("UpdateHash")).error, "new calls are refused"
    )

    gate.touch()
    assert served.host.result(running) == Answer()
    assert served.plugin.wait(GONE_SECONDS) == 0
    assert not served.plugin.log("calls were cut off")
