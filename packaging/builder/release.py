"""Everything that is released, into one folder: from a clean tree, with every input as pinned.

| file                                        | what                                                        |
| ------------------------------------------- | ----------------------------------------------------------- |
| rollouts-gwapi-plugin-linux-ARCH            | the executable; also as gatewayapi-plugin-linux-ARCH        |
| FILE.sha256                                 | its SHA-256, in `sha256sum -c` form                         |
| rollouts-gwapi-plugin-linux-ARCH.cdx.json   | bill of materials                                           |
| rollouts-gwapi-plugin-VERSION-image.tar     | the image, an OCI layout of both architectures              |
| install/                                    | the install manifests, with this version and its digest     |
| *.whl, *.tar.gz                             | the Python package                                          |
| THIRD-PARTY-LICENSES.txt                    | licences of all parts                                       |
| CHANGELOG.md, release-notes.md              | all releases; this one                                      |
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from builder import image, manifests, materials
from builder.executable import Figures, Options, make_executable
from builder.places import ARCHITECTURES, GO_PLUGIN_NAME, NAME, ROOT, BuildError, version

FRAGMENTS = ROOT / "changelog.d"
CHANGELOG = ROOT / "CHANGELOG.md"
KINDS = ("added", "changed", "fixed", "removed")


def check_clean() -> None:
    """Stop where the tree has changes that no commit has."""
    done = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, check=True, capture_output=True, text=True)
    if done.stdout:
        raise BuildError(f"a release is made from a commit, and this tree has changes:\n{done.stdout}")


def make_release(output: Path, options: Options) -> list[Figures]:
    """Build all files."""
    output.mkdir(parents=True, exist_ok=True)
    executables = {}
    reported = []
    for name, architecture in ARCHITECTURES.items():
        target = output / f"{NAME}-linux-{name}"
        figures = make_executable(target, architecture, options)
        copied = output / f"{GO_PLUGIN_NAME}-linux-{name}"
        shutil.copy(target, copied)
        for file in (target, copied):
            write_checksum(file)
        bill = materials.bill_of_materials(target, figures.sha256, version(), architecture, strict=options.strict)
        target.with_name(f"{target.name}.cdx.json").write_text(f"{json.dumps(bill, indent=1)}\n")
        executables[name] = target
        reported.append(figures)
    texts = materials.licences(executables["amd64"], ARCHITECTURES["amd64"], strict=options.strict)
    (output / "THIRD-PARTY-LICENSES.txt").write_text(texts)
    archive = output / f"{NAME}-{version()}-image.tar"
    image.make_image(executables, archive)
    write_checksum(archive)
    [digest] = [figures.sha256 for figures in reported if figures.architecture == "amd64"]
    make_manifests(output / "install", digest)
    make_package(output)
    notes = release_notes()
    (output / "release-notes.md").write_text(notes)
    earlier = CHANGELOG.read_text() if CHANGELOG.exists() else ""
    (output / "CHANGELOG.md").write_text(f"{notes}\n{earlier}".rstrip() + "\n")
    return reported


def write_checksum(file: Path) -> None:
    """Write FILE.sha256 beside a file; the controller takes the 64 digits alone."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    file.with_name(f"{file.name}.sha256").write_text(f"{digest}  {file.name}\n")


def make_manifests(folder: Path, digest: str) -> None:
    """Write the install manifests with this version in them, and the digest of the executable that they download."""
    manifests.write(folder, replace(manifests.example_place(version()), sha256=digest))


def make_package(output: Path) -> None:
    """Build wheel and source distribution, with the commit's time in them."""
    command = ["git", "log", "-1", "--format=%ct"]
    moment = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(output)],
        cwd=ROOT,
        check=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": moment},
        stdout=subprocess.DEVNULL,
    )


def release_notes() -> str:
    """Gather the fragments of changelog.d into this version's section."""
    lines = [f"## {version()}", ""]
    for kind in KINDS:
        fragments = sorted(FRAGMENTS.glob(f"*.{kind}.md"))
        if fragments:
            lines += [f"### {kind.capitalize()}", ""]
            lines += [f"- {' '.join(fragment.read_text().split())}" for fragment in fragments]
            lines.append("")
    unknown = [path.name for path in FRAGMENTS.glob("*.md")
        if path.name != "README.md" and path.name.split(".")[-2] not in KINDS]  # fmt: skip
    if unknown:
        raise BuildError(f"changelog.d/{unknown[0]}: the name must end in one of .{'.md, .'.join(KINDS)}.md")
    return "\n".join(lines)
