"""The entries of `trafficRouterPlugins`: what the controller, or the plugin that it starts, would refuse (C131, C132).

One entry that can't be used keeps the controller from starting any plugin, so all are checked, whosever they are; the
arguments only of the plugin that was asked for.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from rollouts_gwapi_plugin.cli.findings import Finding, failed, passed
from rollouts_gwapi_plugin.errors import ConfigError, cut
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.configuration import parse_configuration
from rollouts_gwapi_plugin.model.rollout import Rollout
from rollouts_gwapi_plugin.service.targets import route_namespace
from rollouts_gwapi_plugin.transport import flags

KEY: Final = "trafficRouterPlugins"
SHA256: Final = re.compile(r"[0-9a-fA-F]{64}")
# A path from the controller's working folder is written with one of these in the place of the host.
_RELATIVE: Final = frozenset({".", ".."})


def check_entries(
    subject: str, entries: Sequence[JsonObject], wanted: Sequence[str], rollouts: Sequence[Rollout] = ()
) -> Iterator[Finding]:
    """Check all entries: say where each wanted one is that can be used; those that Rollouts name have to be there."""
    # Go reads the keys without case.
    lowered = [{str(key).lower(): value for key, value in entry.items()} for entry in entries]
    names = [entry.get("name") for entry in lowered]
    for index, entry in enumerate(lowered):
        name = entry.get("name")
        wrong = [*_wrong(entry), *(_wrong_arguments(name, entry.get("args")) if name in wanted else ())]
        if name is not None and name in names[:index]:
            wrong.append("it is there more than once; which one is started is not certain")
        for text in wrong:
            yield failed(subject, "installation", f"{KEY}: {f'{name}: {text}' if _is_name(name) else text}")
        if name in wanted and not wrong:
            yield passed(subject, "installation", f"{name} is at {entry['location']}")
            yield from _not_allowed(str(name), entry.get("args"), rollouts)
    used = [key for key in wanted if any(key in rollout.traffic_routing.plugins for rollout in rollouts)]
    present = ", ".join(str(name) for name in names) or "none"
    for key in (key for key in used if key not in names):
        text = f"{KEY} has no entry {key}, which a Rollout names; its entries: {present}"
        yield failed(subject, "installation", text)
    if not used and not set(wanted) & {name for name in names if isinstance(name, str)}:
        yield failed(subject, "installation", f"{KEY} has no entry {' or '.join(wanted)}; its entries: {present}")


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.count("/") == 1 and all(name.split("/"))


def _wrong(entry: JsonObject) -> Iterator[str]:
    name, sum_ = entry.get("name"), entry.get("sha256")
    if not _is_name(name):
        yield f"name {_told(name)} is not ORG/NAME: the controller refuses to start"
    if sum_ is not None and not (isinstance(sum_, str) and SHA256.fullmatch(sum_)):
        yield f"sha256 {_told(sum_)} is no SHA-256 of 64 hexadecimal digits"
    yield from _wrong_location(entry.get("location"))


def _wrong_location(location: Any) -> Iterator[str]:
    expected = "file:///PATH, https://… or http://… is expected"
    if location is None:
        yield f"it has no location; {expected}"
        return
    if not isinstance(location, str):
        yield f"location {_told(location)} is no text; {expected}"
        return
    try:
        parts = urlsplit(location)
    except ValueError as error:
        yield f"location {_told(location)} is no address: {error}"
        return
    if parts.scheme == "file":
        yield from _wrong_file(location, parts)
    elif parts.scheme not in {"http", "https"} or not parts.netloc:
        hint = f"; is file://{location} meant?" if location.startswith("/") else ""
        yield f"location {_told(location)}: {expected}{hint}"


def _wrong_file(location: str, parts: SplitResult) -> Iterator[str]:
    absolute = not parts.netloc and parts.path.startswith("/") and parts.path != "/"
    if absolute or parts.netloc in _RELATIVE:
        return
    meant = f"; is file:///{parts.netloc}{parts.path} meant?" if parts.netloc else ""
    yield f"location {_told(location)} has no absolute path{meant}"


def _wrong_arguments(name: Any, arguments: Any) -> Iterator[str]:
    if arguments is None:
        return
    if not isinstance(arguments, list) or not all(isinstance(one, str) for one in arguments):
        yield f"args {_told(arguments)} is no list of texts"
        return
    if set(arguments) & {"-h", "-help", "--help"}:
        yield "args ask for help; the plugin prints it and ends"
        return
    try:
        found = flags.parse(arguments)
    except ConfigError as error:
        yield f"args: {error}"
        return
    key = found.service.plugin_name
    if key not in {None, name}:
        yield f"args: --plugin-name {key} is not the entry's name, under which Rollouts configure the plugin"
    if found.transport != "netrpc":
        yield f"args: the transport is {found.transport}; the stock controller speaks netrpc"


def _not_allowed(name: str, arguments: Any, rollouts: Sequence[Rollout]) -> Iterator[Finding]:
    """Tell of the Rollouts whose routes are where the entry's arguments let the plugin write none."""
    allowed = flags.parse(arguments or []).service.allowed_namespaces
    for rollout in rollouts:
        plugins = rollout.traffic_routing.plugins
        try:
            if name in plugins:
                route_namespace(rollout, parse_configuration(plugins[name], name), allowed)
        except ConfigError as error:
            yield failed(f"Rollout {rollout.key}", "configuration", str(error))


def _told(value: Any) -> str:
    """Return a value of which the type may be what is wrong."""
    return cut(repr(value))
