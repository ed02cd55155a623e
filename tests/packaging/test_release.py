"""What is released beside the executable: bill of materials, licences, checksums, notes."""

import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from builder import contents, materials, release
from builder.places import ARCHITECTURES, BuildError, version

AMD64 = ARCHITECTURES["amd64"]


@pytest.fixture(scope="module")
def bill(executable: Path) -> dict[str, Any]:
    """Describe the executable."""
    digest = hashlib.sha256(executable.read_bytes()).hexdigest()
    return materials.bill_of_materials(executable, digest, "1.2.3", AMD64, strict=False)


def test_every_part_is_listed(bill: dict[str, Any]) -> None:
    """Debian packages, Python distributions, Go modules and Go itself are listed with version and package URL."""
    names = {part["name"] for part in bill["components"]}

    assert {*contents.CARRIED, *contents.DEBIAN} <= names
    assert {"github.com/klauspost/compress", "github.com/hashicorp/yamux", "golang.org/x/sys", "std"} <= names
    assert all(re.fullmatch(r"pkg:(deb/debian|pypi|golang)/\S+@\S+", part["purl"]) for part in bill["components"])
    assert len({part["bom-ref"] for part in bill["components"]}) == len(bill["components"])


def test_foreign_parts_have_digests(bill: dict[str, Any]) -> None:
    """What was downloaded is named by its digest."""
    for part in bill["components"]:
        if not part["purl"].startswith("pkg:golang/"):
            assert re.fullmatch(r"[0-9a-f]{64}", part["hashes"][0]["content"])


def test_the_document_is_of_the_file(bill: dict[str, Any], executable: Path) -> None:
    """The bill names the executable's digest, and is the same document for the same file."""
    digest = hashlib.sha256(executable.read_bytes()).hexdigest()
    again = materials.bill_of_materials(executable, digest, "1.2.3", AMD64, strict=False)

    assert digest == bill["metadata"]["component"]["hashes"][0]["content"]
    assert json.dumps(bill) == json.dumps(again)


def test_licences(executable: Path) -> None:
    """The licences of the libraries that must be passed on are in the file."""
    text = materials.licences(executable, AMD64, strict=False)

    for title in ("libc6 (Debian)", "libssl3 (Debian)", "gcc-12-base (Debian)", "github.com/hashicorp/yamux: LICENSE"):
        assert f"\n{title}\n" in text
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in text.upper()
    assert "grpcio: LICENSE" in text


def test_checksums(tmp_path: Path) -> None:
    """The checksum file is what `sha256sum -c` reads, and has the 64 digits that the controller takes."""
    file = tmp_path / "file"
    file.write_bytes(b"content")

    release.write_checksum(file)

    checked = subprocess.run(
        ["sha256sum", "-c", "file.sha256"], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert (0, "file: OK\n") == (checked.returncode, checked.stdout)
    assert re.fullmatch(r"[0-9a-f]{64}  file\n", (tmp_path / "file.sha256").read_text())


def test_install_manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release's manifests name that release: its image, its file and the file's digest."""
    monkeypatch.setattr(release, "version", lambda: "7.8.9")

    release.make_manifests(tmp_path, "a" * 64)

    [config] = yaml.safe_load_all((tmp_path / "argo-rollouts-config-http.yaml").read_text())
    [plugin] = yaml.safe_load(config["data"]["trafficRouterPlugins"])
    assert ["7.8.9", "rollouts-gwapi-plugin-linux-amd64"] == plugin["location"].split("/")[-2:]
    assert "a" * 64 == plugin["sha256"]
    for name in ("controller-patch.yaml", "helm-values.yaml"):
        images = re.findall(r"image: (\S+)", (tmp_path / name).read_text())
        assert ["registry.example.com/rollouts-gwapi-plugin:7.8.9"] == images


def test_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fragments become this version's section, by kind."""
    monkeypatch.setattr(release, "FRAGMENTS", tmp_path)
    (tmp_path / "README.md").write_text("how to")
    (tmp_path / "b.fixed.md").write_text("Second\nfix.\n")
    (tmp_path / "a.fixed.md").write_text("First fix.\n")
    (tmp_path / "c.added.md").write_text("New.\n")

    assert release.release_notes() == (
        f"## {version()}\n\n### Added\n\n- New.\n\n### Fixed\n\n- First fix.\n- Second fix.\n"
    )


def test_a_fragment_of_no_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fragment whose name has no kind would be lost, so it stops the release."""
    monkeypatch.setattr(release, "FRAGMENTS", tmp_path)
    (tmp_path / "a.better.md").write_text("Better.")

    with pytest.raises(BuildError, match=r"a\.better\.md"):
        release.release_notes()


def test_a_release_needs_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree with changes is not released; they are named."""
    monkeypatch.setattr(release, "ROOT", tmp_path)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    release.check_clean()
    (tmp_path / "change").touch()

    with pytest.raises(BuildError, match="change"):
        release.check_clean()
