"""From manifests to findings: each Rollout alone, then on those of its routes that are among the files."""

from collections.abc import Sequence

from rollouts_gwapi_plugin.cli.findings import Finding
from rollouts_gwapi_plugin.cli.lint.on_routes import lint_on_routes
from rollouts_gwapi_plugin.cli.lint.rollout_checks import lint_rollout
from rollouts_gwapi_plugin.cli.manifests import Manifest
from rollouts_gwapi_plugin.errors import ConfigError


def lint_manifests(manifests: Sequence[Manifest], plugin_name: str | None) -> list[Finding]:
    """Check all Rollouts.

    Raises:
        ConfigError: there is no Rollout among the manifests.

    """
    rollouts = [manifest for manifest in manifests if manifest.kind == "Rollout"]
    if not rollouts:
        kinds = ", ".join(sorted({manifest.kind for manifest in manifests})) or "nothing"
        hint = "" if manifests else "; folders are not searched below"
        raise ConfigError(f"there is no Rollout in the files (found: {kinds}){hint}")
    findings: list[Finding] = []
    for manifest in rollouts:
        linted = lint_rollout(manifest, plugin_name)
        findings += linted.findings
        if linted.rollout is not None and linted.config is not None:
            findings += lint_on_routes(manifest, linted.rollout, linted.config, manifests)
    return findings
