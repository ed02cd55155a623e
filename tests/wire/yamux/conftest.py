"""Captured sessions for the yamux tests."""

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parent.parent / "golden" / "yamux"


@pytest.fixture(params=["session", "large-request", "unknown-plugin"])
def capture(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """Each captured session in turn: its frames as in the file, with their bytes as `header` and `body`."""
    frames = []
    for line in (GOLDEN / f"{request.param}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        raw = bytes.fromhex(entry.pop("hex"))
        packed = entry.pop("body_zlib_base64", None)
        entry["header"] = raw[:12]
        entry["body"] = zlib.decompress(base64.b64decode(packed)) if packed else raw[12:]
        frames.append(entry)
    return frames
