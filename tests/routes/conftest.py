"""`--update-cases` rewrites the after.yaml files of the reconciler cases."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml


@pytest.fixture
def update_cases(request: pytest.FixtureRequest) -> Callable[[Path, Any], None] | None:
    """Give a function that writes or removes an after.yaml, or None where the files are to be held to."""
    if not request.config.getoption("--update-cases"):
        return None

    def write(file: Path, value: Any) -> None:
        if value is None:
            file.unlink(missing_ok=True)
        else:
            file.write_text(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))

    return write
