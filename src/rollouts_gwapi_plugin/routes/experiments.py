"""Experiment backends that have no record: known by the name that the controller gives their Services."""

import re

from rollouts_gwapi_plugin.model.routes import Route
from rollouts_gwapi_plugin.routes.canonical import BackendIdentity, backend_identity
from rollouts_gwapi_plugin.routes.desired import Desired


def leftovers(route: Route, desired: Desired) -> frozenset[BackendIdentity]:
    """Return backends named as the controller names the Services of this Rollout's experiment steps.

    That is `<rollout>-<pod hash>-<revision>-<step>-<template>`. The Go plugin leaves such backends
    behind, and so does a lost ledger.
    """
    if not desired.template_names:
        return frozenset()
    templates = "|".join(re.escape(name) for name in sorted(desired.template_names))
    pattern = re.compile(rf"^{re.escape(desired.rollout_name)}-[a-z0-9]+-\d+-\d+-(?:{templates})$")
    namespace = route.metadata.namespace or desired.namespace
    return frozenset(
        backend_identity(ref, namespace) for rule in route.rules for ref in rule.backends if pattern.match(ref.name)
    )
