"""Builds the image from the Dockerfile, for both architectures, without a docker engine.

buildah runs the Dockerfile; its store lives and dies with the build. The result is an OCI image layout in a tar file,
whose bytes depend on the executables alone: times are zero, the files are in order.
"""

import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from builder.places import NAME, ROOT, BuildError

DOCKERFILE = ROOT / "Dockerfile"


def make_image(executables: Mapping[str, Path], target: Path) -> None:
    """Build the image of these executables, by architecture, and write it to `target`."""
    if shutil.which("buildah") is None:
        raise BuildError("the image is built by buildah: `apt-get install buildah`")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        context = folder / "context"
        (context / "dist").mkdir(parents=True)
        shutil.copy(DOCKERFILE, context)
        for name, executable in executables.items():
            copied = context / "dist" / f"{NAME}-linux-{name}"
            shutil.copyfile(executable, copied)
            copied.chmod(0o755)
        for name in sorted(executables):  # one after the other: the list keeps their order
            # chroot isolation needs neither a daemon nor user namespaces, and nothing is run in the image anyway.
            _buildah(folder, "build", "--isolation=chroot", "--timestamp=0", f"--platform=linux/{name}",
                     f"--manifest={NAME}", str(context))  # fmt: skip
        layout = folder / "layout"
        _buildah(folder, "manifest", "push", "--all", NAME, f"oci:{layout}")
        _pack(layout, target)


def _buildah(folder: Path, *arguments: str) -> None:
    # vfs works on any file system, also inside of a container.
    store = [f"--root={folder / 'store'}", f"--runroot={folder / 'run'}", "--storage-driver=vfs"]
    done = subprocess.run(["buildah", *store, *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        raise BuildError(f"buildah {' '.join(arguments)}: {done.stderr.strip()}")


def _pack(layout: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(target, "w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(layout.rglob("*")):
            entry = archive.gettarinfo(path, str(path.relative_to(layout)))
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
            entry.mode = 0o755 if path.is_dir() else 0o644
            if path.is_file():
                with path.open("rb") as content:
                    archive.addfile(entry, content)
            else:
                archive.addfile(entry)
