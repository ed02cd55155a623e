"""What goes back over HTTP: a body, or a stream of pieces."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import encode
from rollouts_gwapi_plugin.embedded.apiserver.status import StatusError

JSON = "application/json"
PLAIN = "text/plain; charset=utf-8"


@dataclass
class Answer:
    """One answer; with `stream`, its pieces are sent as they come."""

    code: int
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    stream: Iterator[bytes] | None = None

    def head(self) -> bytes:
        """Write the status line and the headers."""
        try:
            phrase = HTTPStatus(self.code).phrase
        except ValueError:
            phrase = "Unknown"
        lines = [f"HTTP/1.1 {self.code} {phrase}", f"Content-Type: {self.content_type}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines += [f"Warning: 299 - {_quoted(text)}" for text in self.warnings]
        lines.append("Transfer-Encoding: chunked" if self.stream else f"Content-Length: {len(self.body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def json_answer(code: int, value: Any) -> Answer:
    """Answer with a JSON value."""
    return Answer(code, encode(value) + b"\n")


def error_answer(error: StatusError) -> Answer:
    """Answer with a `Status`."""
    answer = json_answer(error.code, error.body)
    if error.retry_after:
        answer.headers["Retry-After"] = str(error.retry_after)
    return answer


def plain_answer(code: int, text: str) -> Answer:
    """Answer with a line of text."""
    return Answer(code, text.encode(), PLAIN)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
