"""Experiment backends that have no record: known by the name that the controller gives their Services."""

import re

from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.canonical import BackendIdentity, backend_identity
from rollouts_gwapi_plugin.routes.desired import Desired


def service_pattern(desired: Desired) -> re.Pattern[str] | None:
    """Return what the controller's names for the Services of this Rollout's experiments match; None without any.

    That is `<rollout>-<pod hash>-<revision>-<step>-<template>`, or what the template itself says.
    """
    if not desired.template_names:
        return None
    templates = "|".join(re.escape(name) for name in sorted(desired.template_names))
    generated = rf"{re.escape(desired.rollout_name)}-[a-z0-9]+-\d+-\d+-(?:{templates})"
    return re.compile("|".join([generated, *map(re.escape, sorted(desired.template_services))]))


def leftovers(route: Route, desired: Desired) -> frozenset[BackendIdentity]:
    """Return backends named as those Services: the Go plugin leaves such behind, and so does a lost ledger.

    A name that a template says can be any; so the backend must be a Service where experiments have theirs.
    """
    pattern = service_pattern(desired)
    if pattern is None:
        return frozenset()
    namespace = route.metadata.namespace or desired.namespace
    found = {
        backend_identity(ref, namespace) for rule in route.rules for ref in rule.backends if pattern.fullmatch(ref.name)
    }
    return frozenset(
        (group, kind, where, name)
        for group, kind, where, name in found
        if name not in desired.template_services
        or ((group, kind) == ("", "Service") and where in {namespace, desired.namespace})
    )
