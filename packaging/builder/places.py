"""Where things lie, which version they are, and what differs between the two architectures."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
DIST = ROOT / "dist"
# Downloads are kept by digest, so that a warm build needs no registry.
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rollouts-gwapi-plugin"

PYTHON = "python3.11"
NAME = "rollouts-gwapi-plugin"
# The Go plugin's asset name: an install that only changes the URL or the image works.
GO_PLUGIN_NAME = "gatewayapi-plugin"


@dataclass(frozen=True)
class Architecture:
    """One target; `name` is Debian's, Go's and the image's name for it."""

    name: str
    triplet: str
    loader: str
    wheel: str

    @property
    def wheel_platforms(self) -> list[str]:
        """Platform tags that the carried glibc (2.36) can load, as pip names them."""
        return [f"manylinux_2_{minor}_{self.wheel}" for minor in range(36, 16, -1)] + [f"manylinux2014_{self.wheel}"]


ARCHITECTURES = {
    "amd64": Architecture("amd64", "x86_64-linux-gnu", "ld-linux-x86-64.so.2", "x86_64"),
    "arm64": Architecture("arm64", "aarch64-linux-gnu", "ld-linux-aarch64.so.1", "aarch64"),
}


class BuildError(Exception):
    """The build can't go on; the text says what to do."""


def version() -> str:
    """Read the version where the package has it."""
    found = re.search(r'__version__ = "([^"]+)"', (ROOT / "src/rollouts_gwapi_plugin/__init__.py").read_text())
    if found is None:
        raise BuildError("src/rollouts_gwapi_plugin/__init__.py has no __version__")
    return found[1]
