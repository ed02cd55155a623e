"""One program of the cluster: started in the background, noted in a file, stopped by what the file says; or just run.

The note holds pid and start time, so that a pid that the kernel has given to somebody else is never signalled. Programs
outlive the command that started them (`up` returns, the cluster stays). A zombie counts as ended.
"""

import json
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.settings import Settings

Command = list[str | Path]

# What a program gets between SIGTERM and SIGKILL.
STOP_SECONDS = 10.0
# Until a command has ended: most take less than a second, a deletion that waits for finalizers some; more is a hang.
RUN_SECONDS = 180.0


@dataclass(frozen=True)
class Note:
    """Which process it is: pid, and start time in clock ticks since boot."""

    pid: int
    started: int


class CommandFailed(RuntimeError):  # noqa: N818 - reads well where it is caught
    """A command ended with another code than 0, or not at all; its error output is the text."""


def run(command: Sequence[str | Path], *, text: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Run a command to its end and return its output, or raise CommandFailed."""
    said = " ".join(str(part) for part in command)
    try:
        done = subprocess.run(
            command, input=text, env=environment, capture_output=True, text=True, check=False, timeout=RUN_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(f"{said}: no end after {RUN_SECONDS:g} s") from error
    if done.returncode != 0:
        raise CommandFailed(f"{said}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def start(
    settings: Settings,
    name: str,
    command: Command,
    *,
    folder: Path | None = None,
) -> Note:
    """Start the program in the calling thread's network namespace; its output is appended to its log."""
    with (settings.logs / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=folder or settings.state,
        )
    note = Note(process.pid, started_at(process.pid) or 0)
    # The process is waited for through its pid; its object would complain when it is collected.
    process.returncode = 0
    (settings.pids / name).write_text(json.dumps({"pid": note.pid, "started": note.started}))
    return note


def read(settings: Settings, name: str) -> Note | None:
    """Return the program's note if it runs."""
    try:
        note = Note(**json.loads((settings.pids / name).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return note if alive(note) else None


def names(settings: Settings) -> list[str]:
    """All programs that were started, running or not."""
    return sorted(path.name for path in settings.pids.iterdir()) if settings.pids.exists() else []


def started_at(pid: int) -> int | None:
    """Start time of a process in ticks since boot; None if it is gone or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def alive(note: Note) -> bool:
    """Whether it is still this process."""
    return started_at(note.pid) == note.started


def stop(settings: Settings, name: str, *, signal_number: int = signal.SIGTERM, seconds: float = STOP_SECONDS) -> bool:
    """End the program and wait for its end; SIGKILL after the time is up. False if it did not run."""
    note = read(settings, name)
    ended = note is not None and end(note, signal_number=signal_number, seconds=seconds)
    (settings.pids / name).unlink(missing_ok=True)
    return ended


def end(note: Note, *, signal_number: int = signal.SIGTERM, seconds: float = STOP_SECONDS) -> bool:
    """End a process as `stop` does."""
    try:
        handle = os.pidfd_open(note.pid)
    except ProcessLookupError:
        return False
    try:
        if not alive(note):
            return False
        for number in (signal_number, signal.SIGKILL):
            signal.pidfd_send_signal(handle, number)
            if select.select([handle], [], [], seconds)[0]:
                break
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True
