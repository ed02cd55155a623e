"""`decode`: the golden files come out as the JSON beside them, and broken ones as one line."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from rollouts_gwapi_plugin.cli.main import run
from rollouts_gwapi_plugin.wire import gob

GOLDEN = Path(__file__).parents[1] / "wire" / "golden"
STREAMS = sorted([*GOLDEN.glob("gob/*.bin"), *GOLDEN.glob("gob-extra/*.bin")])
CONNECTIONS = sorted([*GOLDEN.glob("rpc/*.bin"), *GOLDEN.glob("control/*.bin")])
CAPTURES = sorted(GOLDEN.glob("yamux/*.jsonl"))


def name_of(path: Path) -> str:
    """Return how pytest shows a file."""
    return f"{path.parent.name}/{path.stem}"


def meaning_in(path: Path) -> dict[str, Any]:
    """Return the JSON beside a golden file."""
    meaning: dict[str, Any] = json.loads(path.with_suffix(".json").read_text())
    return meaning


def exact(value: Any) -> str:
    """Return JSON text, which tells 1 from 1.0."""
    return json.dumps(value, sort_keys=True)


def decoded(capsys: pytest.CaptureFixture[str], kind: str, path: Path) -> Any:
    """Return what the command prints."""
    assert run(["decode", kind, str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def refusal(capsys: pytest.CaptureFixture[str], kind: str, path: Path) -> str:
    """Return the one line with which the command refuses a file."""
    assert run(["decode", kind, str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"error: {path}: ")
    assert captured.err.count("\n") == 1
    return captured.err.removeprefix(f"error: {path}: ").strip()


@pytest.mark.parametrize("path", STREAMS, ids=name_of)
def test_gob(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A gob stream is a list of its values."""
    assert exact(decoded(capsys, "gob", path)) == exact(meaning_in(path)["values"])


@pytest.mark.parametrize("path", CONNECTIONS, ids=name_of)
def test_rpc(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One direction of a net/rpc connection is a list of headers and bodies."""
    expected = [{"header": call["header"], "body": call["body"]} for call in meaning_in(path)["calls"]]

    assert exact(decoded(capsys, "rpc", path)) == exact(expected)


@pytest.mark.parametrize("path", CAPTURES, ids=name_of)
def test_yamux(path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A yamux session is a list of frames, from a capture as from the bytes of one side."""
    frames = [json.loads(line) for line in path.read_text().splitlines()]
    expected = [{key: frame[key] for key in ("type", "flags", "stream", "length")} for frame in frames]

    assert decoded(capsys, "yamux", path) == expected

    small = [frame for frame in frames if frame["dir"] == "s2c" and "body_zlib_base64" not in frame]
    one_side = tmp_path / "s2c.bin"
    one_side.write_bytes(b"".join(bytes.fromhex(frame["hex"]) for frame in small))

    assert decoded(capsys, "yamux", one_side) == [expected[frame["n"]] for frame in small]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("gob-broken/*.bin")), ids=name_of)
def test_broken(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A broken stream is one line that says where and why."""
    assert refusal(capsys, "gob", path) == meaning_in(path)["error"]


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("gob", b"\x02\xff", "at byte 1: a message of 2 bytes, 1 left"),
        ("rpc", b"\x04\x0c\x00\x01a", "expected the header of a call or a reply, found str"),
        ("yamux", b"\x01" * 12, "frame 0 at byte 0: a yamux frame has version 1"),
        ("yamux", b"{}", "line 1 is no captured frame: KeyError('hex')"),
        ("yamux", b'{"hex": 1}', "line 1 is no captured frame: TypeError("),
        ("yamux", b'{"hex": "", "body_zlib_base64": "AAAA"}', "line 1 is no captured frame: error("),
        ("yamux", b"{\n", "line 1 is no captured frame: JSONDecodeError("),
    ],
)
def test_refused(kind: str, data: bytes, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not of the kind is refused."""
    path = tmp_path / "file"
    path.write_bytes(data)

    assert refusal(capsys, kind, path).startswith(text)


def test_header_without_body(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A connection that ends after a header is cut short."""
    path = tmp_path / "file"
    header = gob.StructOf("Request", (gob.Field("ServiceMethod", gob.STRING),))
    path.write_bytes(gob.Encoder().encode(header, {"ServiceMethod": "M.X"}))

    assert refusal(capsys, "rpc", path) == f"at byte {path.stat().st_size}: the header of call 0 has no body"


def test_other_structs_are_no_headers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A stream of other structs is no net/rpc connection."""
    path = tmp_path / "file"
    path.write_bytes(gob.Encoder().encode(gob.StructOf("S", (gob.Field("Other", gob.INT),)), {"Other": 1}))

    assert refusal(capsys, "rpc", path) == "header 0 has a field Other, so it is none of net/rpc"


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a file the bytes come from standard input."""
    for arguments in (["decode", "gob"], ["decode", "gob", "-"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\x03\x04\x00\x02")))

        assert run(arguments) == 0
        assert capsys.readouterr().out == "[1]\n"


def test_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No bytes are no values."""
    path = tmp_path / "empty"
    path.touch()

    for kind in ("gob", "rpc", "yamux"):
        assert decoded(capsys, kind, path) == []


def test_deep_value(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of a thousand nodes is printed, one that never ends is refused, and so is what Python can't print."""
    node = gob.StructOf("Node")
    node.fields = (gob.Field("Next", node),)
    stream = gob.Encoder().encode(node, {})
    definition = stream[: 1 + stream[0]]
    for depth in (1000, 3000):
        body = b"\xff\x80" + b"\x01" * depth + b"\x00" * (depth + 1)
        (tmp_path / f"{depth}").write_bytes(definition + b"\xfe" + len(body).to_bytes(2, "big") + body)

    assert run(["decode", "gob", str(tmp_path / "1000")]) == 0
    assert capsys.readouterr().out == "[" + '{"Next": ' * 1000 + "{}" + "}" * 1000 + "]\n"
    assert refusal(capsys, "gob", tmp_path / "3000").endswith("more than 2000 levels")

    monkeypatch.setattr("rollouts_gwapi_plugin.cli.decode.RECURSION", 0)

    assert refusal(capsys, "gob", tmp_path / "1000") == "a value is nested too deeply to be written as JSON"


def test_unknown_kind(capsys: pytest.CaptureFixture[str]) -> None:
    """Another kind is a mistake in the command line."""
    assert run(["decode", "json", "-"]) == 2
    assert "'json' is not one of 'gob', 'rpc', 'yamux'" in capsys.readouterr().err
