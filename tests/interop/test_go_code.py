"""The judge's own code: formatted, vetted, and its stubs are what proto/ gives."""

import subprocess
import sys
from pathlib import Path

import pytest

GO = Path(__file__).parent / "go"
PROTO = Path(__file__).parents[2] / "proto"
STUBS = Path("trafficrouter") / "v1" / "traffic_router.pb.go"


def run(*command: str, folder: Path = GO) -> str:
    """Run a command and return what it prints."""
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.usefixtures("host_binary")
def test_format_and_vet() -> None:
    """Gofmt would change nothing, `go vet` finds nothing, and go.mod is tidy."""
    assert run("gofmt", "-l", ".") == ""
    run("go", "vet", "./...")
    run("go", "mod", "tidy", "-diff")


@pytest.mark.usefixtures("host_binary")
def test_stubs_are_up_to_date(tmp_path: Path) -> None:
    """The committed stubs are those that `make proto-go` makes."""
    generator = tmp_path / "protoc-gen-go"
    run("go", "build", "-o", str(generator), "google.golang.org/protobuf/cmd/protoc-gen-go")
    run(
        sys.executable,
        *["-m", "grpc_tools.protoc", f"-I{PROTO}", f"--plugin=protoc-gen-go={generator}"],
        *[f"--go_out={tmp_path}", "--go_opt=module=rollouts-gwapi-plugin"],
        "rollouts_gwapi_plugin/v1/traffic_router.proto",
    )

    assert (tmp_path / STUBS).read_text() == (GO / STUBS).read_text()
