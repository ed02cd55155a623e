"""Log lines on file descriptor 2: JSON that the host's hclog reads, or text for people.

The host turns each JSON line into a log entry of its own; `@level`, `@message` and `@timestamp` must be strings (a
number there panics the controller) and one line must stay under 64 KiB.
"""

import contextlib
import datetime as dt
import json
import sys
from collections.abc import MutableMapping
from typing import Any, Literal, TextIO, cast

import structlog

# go-plugin reads stderr through a 64 KiB buffer and logs a longer line raw, in pieces.
MAX_LINE = 60_000
# No single value deserves more than this of a line; server text and configs are the usual offenders.
MAX_VALUE = 2_000

LogFormat = Literal["json", "text"]
Level = Literal["debug", "info", "warn", "error"]
_LEVELS = {"debug": 10, "info": 20, "warn": 30, "error": 40}

Logger = structlog.typing.FilteringBoundLogger


def configure(log_format: LogFormat = "json", level: Level = "info", stream: TextIO | None = None) -> None:
    """Set up logging for the process."""
    render = _render_hclog if log_format == "json" else _render_text
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", _Unfailing(stream or sys.stderr))),
        cache_logger_on_first_use=False,
    )


class _Unfailing:
    """A stream whose reader may be gone: a host that was killed must not turn each log line into an error of ours."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            return self._stream.write(text)
        return 0

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


def get_logger(**context: Any) -> Logger:
    """Return a logger with the context bound."""
    return structlog.get_logger(**context)  # type: ignore[no-any-return]


bound = structlog.contextvars.bound_contextvars


def _timestamp() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}… ({len(text)} characters)"


def _render_hclog(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
    level = str(event.pop("level", "info")).replace("warning", "warn").replace("critical", "error")
    message = _text(event.pop("event", ""))
    # An `@`-key of ours would be taken for hclog's own: the three must stay strings.
    fields = {key.lstrip("@") or "field": _value(value) for key, value in event.items()}
    line = json.dumps(
        {"@level": level, "@message": message, "@timestamp": _timestamp(), **fields}, ensure_ascii=False, default=str
    )
    if len(line.encode("utf-8", "replace")) > MAX_LINE:
        line = json.dumps({"@level": level, "@message": message, "@timestamp": _timestamp(), "fields_cut": len(line)})
    return line


def _value(value: Any) -> Any:
    return value if isinstance(value, bool | int | float) else _text(value)


def _render_text(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
    level = str(event.pop("level", "info")).replace("warning", "warn").upper()
    message = _text(event.pop("event", ""))
    fields = " ".join(f"{key}={_text(value)}" for key, value in event.items())
    # The host reads the level from brackets at the very start of a line; a line break would start a new entry.
    return f"[{level}] {message} {fields}".rstrip().replace("\n", "\\n")
