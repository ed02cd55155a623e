"""The golden streams that our own generator writes."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.go
@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go")
def test_generated(tmp_path: Path) -> None:
    """The generator writes the golden files: the same meanings; type numbers and the order of maps may differ."""
    subprocess.run(["go", "run", ".", str(tmp_path)], cwd=GOLDEN / "generate", check=True)

    expected = {path.name: json.loads(path.read_text()) for path in (GOLDEN / "gob-extra").glob("*.json")}
    found = {path.name: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}

    assert expected == found
