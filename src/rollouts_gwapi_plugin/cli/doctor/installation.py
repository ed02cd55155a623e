"""How the controller is to find the plugin: its ConfigMap, and the file that it names (C131, C132).

The controller checks a SHA-256 of what it downloads, and nothing of what file:// names: that is done here.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from rollouts_gwapi_plugin.cli.connection import Connection
from rollouts_gwapi_plugin.cli.doctor.access import Reviewer
from rollouts_gwapi_plugin.cli.doctor.plugin_entries import KEY, SHA256, check_entries
from rollouts_gwapi_plugin.cli.findings import Finding, failed, noted, passed, warned
from rollouts_gwapi_plugin.errors import NotFound, PluginError
from rollouts_gwapi_plugin.model.kube import CONFIG_MAPS
from rollouts_gwapi_plugin.model.rollout import Rollout
from rollouts_gwapi_plugin.service.plugin_key import KNOWN_KEYS

CONFIG_MAP: Final = "argo-rollouts-config"
# e_machine of an ELF file, at this place in its header.
_MACHINE_AT: Final = 18
_HEADER: Final = 20
_MACHINES: Final = {62: "linux/amd64", 183: "linux/arm64"}
_CHUNK: Final = 1 << 20


def check_file(file: Path, wanted: str | None) -> Iterator[Finding]:
    """Check an executable: that it can be run, for which machine it is, and its sum."""
    name = f"file {file}"
    try:
        digest, head = hashlib.sha256(), b""
        with file.open("rb") as opened:
            while chunk := opened.read(_CHUNK):
                head = head or chunk[:_HEADER]
                digest.update(chunk)
    except OSError as error:
        yield failed(name, "file", f"it can't be read: {error.strerror or error}")
        return
    found = digest.hexdigest()
    if not os.access(file, os.X_OK):
        yield failed(name, "file", "it is not executable: the controller can't start it (chmod 755)")
    if head[:4] == b"\x7fELF" and len(head) == _HEADER:
        machine = int.from_bytes(head[_MACHINE_AT:_HEADER], "little")
        yield passed(name, "file", f"an executable for {_MACHINES.get(machine, f'machine {machine}')}")
    else:
        yield warned(name, "file", "it is no Linux executable (ELF); a container without an interpreter can't start it")
    yield from check_sum(name, found, wanted)


def check_sum(name: str, found: str, wanted: str | None) -> Iterator[Finding]:
    """Compare a SHA-256 with what it has to be."""
    if wanted is None:
        yield noted(name, "sha256", found)
    elif not SHA256.fullmatch(wanted):
        yield failed(name, "sha256", f"{wanted!r} is no SHA-256: 64 hexadecimal digits and nothing else are expected")
    elif wanted.lower() != found:
        yield failed(name, "sha256", f"it is {found}, and should be {wanted.lower()}: this is another file")
    else:
        yield passed(name, "sha256", found)


def check_configuration(
    connection: Connection,
    reviewer: Reviewer,
    plugin_name: str | None,
    file: Path | None,
    rollouts: Sequence[Rollout],
) -> Iterator[Finding]:
    """Check what the controller's ConfigMap says of the plugin; with a file, its sum there is that file's."""
    namespace = reviewer.namespace
    name = f"ConfigMap {namespace}/{CONFIG_MAP}"
    try:
        found = connection.cluster.client.get(CONFIG_MAPS, namespace, CONFIG_MAP, deadline=connection.deadline())
    except NotFound:
        text = (
            "it does not exist, so a controller of this namespace starts no plugin, and every Rollout that names one"
            " fails with `unable to find plugin` (--service-account names another)"
        )
        # One's own namespace need not be the controller's.
        yield (failed if reviewer.name else warned)(name, "installation", text)
        return
    except PluginError as error:
        yield noted(name, "installation", f"it can't be read: {error}")
        return
    plugins = (found.get("data") or {}).get(KEY)
    if not plugins:
        yield failed(name, "installation", f"it has no {KEY}: the controller knows no traffic router plugin")
        return
    try:
        entries = yaml.safe_load(plugins)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else getattr(error, "problem", error)
        yield failed(name, "installation", f"{KEY} is not YAML: {problem}")
        return
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        yield failed(name, "installation", f"{KEY} is not a list of entries with name and location")
        return
    yield from check_entries(name, entries, [plugin_name] if plugin_name else list(KNOWN_KEYS), rollouts)
    if file is not None:
        yield from _same_sum(name, entries, file)


def _same_sum(name: str, entries: list[dict[str, Any]], file: Path) -> Iterator[Finding]:
    for entry in entries:
        location, sum_ = str(entry.get("location", "")), entry.get("sha256")
        if sum_ and location.startswith("file://") and Path(location.removeprefix("file://")).name == file.name:
            try:
                found = hashlib.sha256(file.read_bytes()).hexdigest()
            except OSError:
                # Told where the file itself is checked.
                return
            yield from check_sum(f"{name}: {entry.get('name')}", found, str(sum_))
