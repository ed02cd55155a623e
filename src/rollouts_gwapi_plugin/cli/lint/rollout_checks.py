"""Checks of a Rollout alone: its configuration of the plugin, its Services, weights, names and steps."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pydantic.alias_generators import to_camel

from rollouts_gwapi_plugin.cli.controller_versions import needed_versions
from rollouts_gwapi_plugin.cli.findings import Finding, Severity, failed, noted, passed, warned
from rollouts_gwapi_plugin.cli.lint.step_checks import check_steps
from rollouts_gwapi_plugin.cli.manifests import Manifest
from rollouts_gwapi_plugin.cli.printing import counted
from rollouts_gwapi_plugin.cli.rollout_types import check_types
from rollouts_gwapi_plugin.cli.subject import read_rollout
from rollouts_gwapi_plugin.errors import ConfigError
from rollouts_gwapi_plugin.model.config import CLOSE, ROUTE_FAMILIES, PluginConfig, Section
from rollouts_gwapi_plugin.model.configuration import Configuration, parse_configuration
from rollouts_gwapi_plugin.model.rollout import Rollout
from rollouts_gwapi_plugin.model.settings import ServiceSettings
from rollouts_gwapi_plugin.routes.desired import base_desired
from rollouts_gwapi_plugin.routes.kinds import KINDS
from rollouts_gwapi_plugin.service.plugin_key import KNOWN_KEYS, plugin_key

MAX_SUBDOMAIN: Final = 253
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
MAX_LABEL: Final = 63
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


@dataclass(frozen=True)
class LintedRollout:
    """What was found; `rollout` and `config` are there where both can be used."""

    findings: tuple[Finding, ...]
    rollout: Rollout | None = None
    config: Configuration | None = None


def lint_rollout(manifest: Manifest, plugin_name: str | None) -> LintedRollout:
    """Check one Rollout."""
    subject = f"{manifest} ({manifest.where})"
    try:
        rollout = read_rollout(manifest.value)
        check_types(manifest.value)
        if rollout.spec.strategy.canary is None:
            text = "it has no canary strategy, so no plugin is called for it"
            return LintedRollout((noted(subject, "plugin", text),))
        without = _without_plugin(rollout, subject, plugin_name)
        if without is not None:
            return LintedRollout((without,))
        plugins = rollout.traffic_routing.plugins
        key = plugin_key(plugins, ServiceSettings(plugin_name=plugin_name), rollout.key)
        config = parse_configuration(plugins[key], key)
    except ConfigError as error:
        return LintedRollout((failed(subject, "configuration", str(error)),))
    findings = [
        *_unknown_keys(config, key, subject),
        *_names(rollout, config, key, subject),
        *_header_switches(config, subject),
        *check_steps(rollout, manifest.value, config, subject),
        *needed_versions(rollout, subject),
    ]
    try:
        base_desired(rollout, config)
    except ConfigError as error:
        findings.append(failed(subject, "configuration", str(error)))
        return LintedRollout(tuple(findings))
    if not any(finding.severity in {Severity.WARNING, Severity.ERROR} for finding in findings):
        text = f"the configuration under {key!r} and {counted(len(rollout.canary.steps), 'step')} are in order"
        findings.append(passed(subject, "configuration", text))
    return LintedRollout(tuple(findings), rollout, config)


def _without_plugin(rollout: Rollout, subject: str, plugin_name: str | None) -> Finding | None:
    plugins = rollout.traffic_routing.plugins
    wanted = [plugin_name] if plugin_name else list(KNOWN_KEYS)
    if any(key in plugins for key in wanted):
        return None
    for key in plugins:
        close = difflib.get_close_matches(key.lower(), [name.lower() for name in wanted], n=1, cutoff=CLOSE)
        if close:
            meant = next(name for name in wanted if name.lower() == close[0])
            text = f"trafficRouting.plugins has {key!r}, which is nobody's key; is {meant!r} meant?"
            # In another case it can only be meant for this plugin, and every call would fail.
            return (failed if key.lower() == close[0] else warned)(subject, "plugin", text)
    present = ", ".join(plugins) or "none"
    text = f"it does not name this plugin (keys looked for: {', '.join(wanted)}; its plugins: {present})"
    return noted(subject, "plugin", text)


def _unknown_keys(config: Configuration, key: str, subject: str) -> Iterator[Finding]:
    for path, section in _sections(config, ""):
        known = {to_camel(name) for name in type(section).model_fields}
        for name in sorted(section.model_extra or {}):
            close = difflib.get_close_matches(name, known, n=1, cutoff=CLOSE)
            hint = f"; is {close[0]} meant?" if close else ""
            text = f"plugins[{key!r}]: {path}{name} is no key that this plugin knows, and has no effect{hint}"
            yield warned(subject, "unknown key", text)


def _sections(section: Section, path: str) -> Iterator[tuple[str, Section]]:
    """Yield a section and all in it, each with the path before its keys."""
    yield path, section
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            yield from _sections(value, f"{path}{to_camel(name)}.")
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                if isinstance(item, Section):
                    yield from _sections(item, f"{path}{to_camel(name)}[{index}].")


def _names(rollout: Rollout, config: Configuration, key: str, subject: str) -> Iterator[Finding]:
    named = [("configMap", config.config_map)]
    for family in config.families:
        named += [(f"{family} route", entry.name) for entry in config.entries(family)]
    for what, name in named:
        if not is_subdomain(name):
            text = f"plugins[{key!r}]: {what} {name!r} can't be the name of an object (a DNS subdomain is needed)"
            yield failed(subject, "name", text)
    for what, namespace in (("namespace", config.namespace), ("the Rollout's namespace", rollout.metadata.namespace)):
        if namespace and (len(namespace) > MAX_LABEL or not _LABEL.fullmatch(namespace)):
            text = f"{what} {namespace!r} can't be the name of a namespace (a DNS label is needed)"
            yield failed(subject, "name", text)


def _header_switches(config: Configuration, subject: str) -> Iterator[Finding]:
    """Tell where useHeaderRoutes stands and has no effect."""
    if not isinstance(config, PluginConfig):
        return
    able = [family for family in ROUTE_FAMILIES if KINDS[family].match is not None]
    if config.use_header_routes and not any(config.selector(family) is not None for family in able):
        text = (
            "useHeaderRoutes beside routes without a selector has no effect; it belongs into an entry of httpRoutes or"
            " grpcRoutes"
        )
        yield warned(subject, "steps", text)
    for family in ROUTE_FAMILIES:
        for index, entry in enumerate(getattr(config, f"{family}_routes")):
            if entry.use_header_routes and KINDS[family].match is None:
                text = f"{family}Routes[{index}].useHeaderRoutes: a {KINDS[family].kind} has no headers to match"
                yield warned(subject, "steps", text)


def is_subdomain(name: str) -> bool:
    """Whether an object of the API can have the name."""
    return len(name) <= MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(name) is not None
