"""The image: one file, the controller's user, both architectures; started as an init container starts it."""

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.packaging.rooms import USER, Launchers, Space

from builder.image import make_image

Json = dict[str, Any]


@dataclass(frozen=True)
class Image:
    """An image of one architecture, read from the archive."""

    config: Json
    files: dict[str, tarfile.TarInfo]
    content: bytes


def read(archive: Path) -> dict[str, Image]:
    """Read an OCI layout: architecture -> image; every blob's digest is checked."""
    with tarfile.open(archive) as layout:

        def blob(digest: str) -> bytes:
            member = layout.extractfile(f"blobs/sha256/{digest.removeprefix('sha256:')}")
            assert member is not None
            content = member.read()
            assert digest == f"sha256:{hashlib.sha256(content).hexdigest()}"
            return content

        index = layout.extractfile("index.json")
        assert index is not None
        [top] = json.load(index)["manifests"]
        images = {}
        for entry in json.loads(blob(top["digest"]))["manifests"]:
            manifest = json.loads(blob(entry["digest"]))
            config = json.loads(blob(manifest["config"]["digest"]))
            [layer] = manifest["layers"]
            with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob(layer["digest"])))) as files:
                members = {member.name: member for member in files.getmembers()}
                content = b"".join(
                    part.read() for member in members.values() if (part := files.extractfile(member)) is not None
                )
            images[entry["platform"]["architecture"]] = Image(config, members, content)
    return images


@pytest.fixture(scope="module")
def archive(launchers: Launchers, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build an image of two small executables, one an architecture."""
    if shutil.which("buildah") is None:
        pytest.skip("the image is built by buildah (Debian's buildah), and there is none on PATH")
    target = tmp_path_factory.mktemp("image") / "image.tar"
    make_image({"amd64": launchers.first, "arm64": launchers.second}, target)
    return target


def test_one_file(archive: Path, launchers: Launchers) -> None:
    """Each architecture's image is the one executable, nothing else, run by the controller's user."""
    images = read(archive)

    assert {"amd64": launchers.first.read_bytes(), "arm64": launchers.second.read_bytes()} == {
        name: image.content for name, image in images.items()
    }
    for name, image in images.items():
        assert ["rollouts-gwapi-plugin"] == list(image.files)
        assert image.files["rollouts-gwapi-plugin"].mode & 0o777 == 0o755
        assert (name, "linux") == (image.config["architecture"], image.config["os"])
        assert "999:999" == image.config["config"]["User"]
        assert ["/rollouts-gwapi-plugin"] == image.config["config"]["Entrypoint"]


def test_reproducible(archive: Path, launchers: Launchers, tmp_path: Path) -> None:
    """The same executables give the same archive."""
    again = tmp_path / "again.tar"

    make_image({"amd64": launchers.first, "arm64": launchers.second}, again)

    assert archive.read_bytes() == again.read_bytes()


def test_init_container(archive: Path, space: Space, plugin_bin: Path, tmp_path: Path) -> None:
    """As an init container, in a root that holds the image alone, it puts the executable into the shared volume."""
    image = read(archive)["amd64"]
    (tmp_path / "exported").write_bytes(image.content)
    (tmp_path / "exported").chmod(0o755)
    [entrypoint] = image.config["config"]["Entrypoint"]
    space.description["files"] = {entrypoint: str(tmp_path / "exported")}

    done = space.run(entrypoint, "install", "/plugin-bin")
    started = space.run("/plugin-bin/rollouts-gwapi-plugin", "tell")

    installed = plugin_bin / "rollouts-gwapi-plugin"
    assert done.stdout.startswith(hashlib.sha256(image.content).hexdigest()), done.stderr
    assert (image.content, USER) == (installed.read_bytes(), installed.stat().st_uid)
    assert started.returncode == 0, started.stderr


def test_needs_buildah(launchers: Launchers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without buildah the build says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(Exception, match="apt-get install buildah"):
        make_image({"amd64": launchers.first}, tmp_path / "image.tar")
    assert not subprocess.run(["/bin/ls", tmp_path], check=True, capture_output=True, text=True).stdout
