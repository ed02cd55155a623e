"""What an executable is made of: the bill of materials (CycloneDX 1.6) and the licences of all parts.

A part is a Debian package, a Python distribution, a Go module of the launcher, or Go's own library. Nothing is guessed:
names, versions and digests come from the locks and from the launcher's build information.
"""

import json
import re
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builder import debian, wheels
from builder.places import NAME, ROOT, Architecture

# Names the document after what it describes, so that equal executables have equal documents.
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, f"urn:{NAME}")
_DEPENDENCY = re.compile(r"^\s+dep\s+(\S+)\s+(\S+)", re.MULTILINE)
_GO_VERSION = re.compile(r": go(\S+)")


def bill_of_materials(
    executable: Path, sha256: str, version: str, architecture: Architecture, *, strict: bool
) -> dict[str, Any]:
    """Describe an executable."""
    described = {
        "type": "application",
        "bom-ref": NAME,
        "name": NAME,
        "version": version,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "hashes": [{"alg": "SHA-256", "content": sha256}],
        "purl": f"pkg:generic/{NAME}@{version}?arch={architecture.name}",
    }
    parts = [
        *_debian_parts(architecture, strict=strict),
        *_python_parts(architecture),
        *_go_parts(executable),
    ]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, sha256)}",
        "version": 1,
        "metadata": {"component": described},
        "components": parts,
        "dependencies": [{"ref": NAME, "dependsOn": [part["bom-ref"] for part in parts]}],
    }


def _part(purl: str, name: str, version: str, **more: object) -> dict[str, Any]:
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, **more}


def _debian_parts(architecture: Architecture, *, strict: bool) -> Iterator[dict[str, Any]]:
    for name, (package, _) in sorted(debian.fetch(architecture, strict=strict).items()):
        version = package.version.replace("+", "%2B").replace(":", "%3A")
        purl = f"pkg:deb/debian/{name}@{version}?arch={architecture.name}&distro=debian-12"
        yield _part(purl, name, package.version, hashes=[{"alg": "SHA-256", "content": package.sha256}])


def _python_parts(architecture: Architecture) -> Iterator[dict[str, Any]]:
    for wheel in sorted(wheels.fetch(architecture), key=lambda wheel: wheel.name):
        licence = wheels.licence_name(wheel)
        more: dict[str, Any] = {"hashes": [{"alg": "SHA-256", "content": wheel.sha256}]}
        if licence:
            more["licenses"] = [{"license": {"name": licence}}]
        yield _part(f"pkg:pypi/{wheel.name}@{wheel.version}", wheel.name, wheel.version, **more)


def _go_parts(executable: Path) -> Iterator[dict[str, Any]]:
    info = _build_information(executable)
    for module, version in _DEPENDENCY.findall(info):
        yield _part(f"pkg:golang/{module}@{version}", module, version)
    for version in _GO_VERSION.findall(info)[:1]:
        yield _part(f"pkg:golang/std@{version}", "std", version)


def _build_information(executable: Path) -> str:
    done = subprocess.run(["go", "version", "-m", str(executable)], check=True, capture_output=True, text=True)
    return done.stdout


def licences(executable: Path, architecture: Architecture, *, strict: bool) -> str:
    """Gather the licence texts of all parts."""
    sections = [("rollouts-gwapi-plugin", (ROOT / "LICENSE").read_text())]
    for name, (_, file) in sorted(debian.fetch(architecture, strict=strict).items()):
        text = debian.copyright_text(file, name)
        if text:
            sections.append((f"{name} (Debian)", text))
    for wheel in sorted(wheels.fetch(architecture), key=lambda wheel: wheel.name):
        sections += [(f"{wheel.name}: {file}", text) for file, text in wheels.licence_texts(wheel)]
    sections += list(_go_licences(executable))
    rule = "=" * 100
    return "\n".join(f"{rule}\n{title}\n{rule}\n\n{text.strip()}\n" for title, text in sections)


def _go_licences(executable: Path) -> Iterator[tuple[str, str]]:
    for module, version in _DEPENDENCY.findall(_build_information(executable)):
        command = ["go", "mod", "download", "-json", f"{module}@{version}"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT / "packaging" / "launcher")
        for file in sorted(Path(json.loads(done.stdout)["Dir"]).glob("LICENSE*")):
            yield f"{module}: {file.name}", file.read_text()
    root = subprocess.run(["go", "env", "GOROOT"], check=True, capture_output=True, text=True).stdout.strip()
    if (Path(root) / "LICENSE").exists():
        yield "Go", (Path(root) / "LICENSE").read_text()
