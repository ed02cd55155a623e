"""The troubleshooting page quotes the host's messages as the host writes them."""

import json
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from tests.packaging.rooms import needs_go

from builder.places import ROOT

PAGE = ROOT / "docs" / "troubleshooting.md"
HEADINGS = re.findall(r"^### (`.*`)$", PAGE.read_text(), re.MULTILINE)
MODULES = ("github.com/argoproj/argo-rollouts", "github.com/hashicorp/go-plugin")
# Where those messages are written, in the modules that the interop host is built from and in Go itself.
FOLDERS = {
    "github.com/argoproj/argo-rollouts": (
        "utils/plugin",
        "utils/config",
        "utils/conditions",
        "rollout",
        "pkg/apis/rollouts/validation",
    ),
    "github.com/hashicorp/go-plugin": (".",),
    "": ("os", "os/exec", "syscall"),
}


@cache
def sources() -> str:
    """Read the host's sources."""
    command = ["go", "list", "-m", "-json", *MODULES]
    done = subprocess.run(command, cwd=ROOT / "tests/interop/go", check=True, capture_output=True, text=True)
    found = {module["Path"]: Path(module["Dir"]) for module in _objects(done.stdout)}
    root = subprocess.run(["go", "env", "GOROOT"], check=True, capture_output=True, text=True).stdout.strip()
    found[""] = Path(root) / "src"
    files = [
        file
        for module, folders in FOLDERS.items()
        for folder in folders
        for file in (found[module] / folder).rglob("*.go")
    ]
    return "\n".join(file.read_text() for file in files if not file.name.endswith("_test.go"))


def _objects(text: str) -> list[dict[str, str]]:
    decoder = json.JSONDecoder()
    objects = []
    while text.strip():
        value, end = decoder.raw_decode(text.strip())
        objects.append(value)
        text = text.strip()[end:]
    return objects


@pytest.mark.parametrize("heading", HEADINGS)
def test_messages_are_the_hosts(heading: str) -> None:
    """Each part of a quoted message between what differs stands in the host's sources."""
    needs_go()
    parts = [part.strip() for part in re.split(r'…|: |[\[\]()"]', heading.strip("`"))]

    words = [part for part in parts if sum(map(str.isalpha, part)) > 3]
    assert words
    for part in words:
        assert part in sources(), f"the host never says {part!r}"


def test_the_cases_are_there() -> None:
    """The mistakes that users reported are on the page: death at start, wrong names, places, digests, machines."""
    text = PAGE.read_text()

    for message in (
        "exec: Stdout already set",
        "must be in the format of <namespace>/<name>",
        "not configured in configmap",
        "does not match expected hash",
        "failed to unmarshal traffic router plugins",
        "response code",
        "exec format error",
    ):
        assert message in text
