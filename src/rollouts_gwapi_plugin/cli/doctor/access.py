"""Whether the controller's service account may do what a Rollout needs, by reviews of access; C114, C116.

The rights that count are the controller's, not those of whoever runs the command: a SubjectAccessReview asks for them.
Who may not ask that (a pod of the controller itself, say) asks for itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from rollouts_gwapi_plugin.cli.connection import Connection, split_name
from rollouts_gwapi_plugin.cli.findings import Finding, failed, noted, passed, warned
from rollouts_gwapi_plugin.cli.rehearsal import kinds_of
from rollouts_gwapi_plugin.cli.subject import Subject
from rollouts_gwapi_plugin.errors import Forbidden, PluginError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.kube import CONFIG_MAPS, EVENTS, SERVICES, ResourceType
from rollouts_gwapi_plugin.model.rollout import SetMirrorRoute

SELF: Final = "self"
_API: Final = "authorization.k8s.io/v1"
_PATH: Final = f"/apis/{_API}"


@dataclass(frozen=True)
class Right:
    """One verb on one resource; without an `optional` right the plugin does all but tell of it."""

    verb: str
    resource: ResourceType
    namespace: str
    purpose: str
    optional: bool = False
    # The one object, where only one is meant: a role may name it (`resourceNames`).
    name: str = ""

    @property
    def rule(self) -> str:
        """The rule to add."""
        names = f', resourceNames: ["{self.name}"]' if self.name else ""
        return (
            f'{{apiGroups: ["{self.resource.group}"], resources: ["{self.resource.plural}"]{names},'
            f' verbs: ["{self.verb}"]}}'
        )


@dataclass(frozen=True)
class Reviewer:
    """Asks for the rights of a service account; `name` is empty where it asks for its own."""

    connection: Connection
    namespace: str
    name: str = ""

    @classmethod
    def of(cls, connection: Connection, service_account: str) -> "Reviewer":
        """Return the reviewer for `namespace/name`, or for oneself."""
        if service_account == SELF or connection.config.in_pod:
            return cls(connection, connection.config.namespace)
        return cls(connection, *split_name(service_account, "argo-rollouts"))

    @property
    def who(self) -> str:
        """Whose rights these are."""
        if not self.name:
            return f"whoever runs this ({self.connection.config.source})"
        return f"service account {self.namespace}/{self.name}"

    def allows(self, right: Right) -> bool:
        """Ask the API server.

        Raises:
            KubeError: it does not answer that.

        """
        resource = right.resource
        attributes = {
            "verb": right.verb,
            "group": resource.group,
            "resource": resource.plural,
            "namespace": right.namespace,
        }
        if right.name:
            attributes["name"] = right.name
        if not self.name:
            return self._ask("SelfSubjectAccessReview", {"resourceAttributes": attributes})
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", "system:authenticated"]
        user = f"system:serviceaccount:{self.namespace}:{self.name}"
        return self._ask("SubjectAccessReview", {"resourceAttributes": attributes, "user": user, "groups": groups})

    def _ask(self, kind: str, spec: JsonObject) -> bool:
        body = {"apiVersion": _API, "kind": kind, "metadata": {}, "spec": spec}
        client, deadline = self.connection.cluster.client, self.connection.deadline()
        answer = client.raw_post(f"{_PATH}/{kind.lower()}s", body, deadline=deadline)
        return bool((answer.get("status") or {}).get("allowed"))


def needed_rights(subject: Subject) -> list[Right]:
    """Return what the plugin does for this Rollout, and nothing more."""
    config, desired, namespace = subject.config, subject.desired, subject.namespace
    rights = []
    for family, kind in kinds_of(config).items():
        routes = ResourceType(kind.group, kind.versions[0], kind.plural, kind.kind)
        rights += [Right(verb, routes, namespace, "to change routes") for verb in ("get", "update")]
        if config.selector(family) is not None:
            rights.append(Right("list", routes, namespace, f"for {config.selector_key(family)}"))
        if kind.companion is not None and any(isinstance(step, SetMirrorRoute) for step in desired.all_steps):
            one = kind.companion
            beside = ResourceType(one.group, one.versions[0], one.plural, one.kind)
            wanted = ("get", "create", "update", "delete")
            rights += [Right(verb, beside, namespace, "for mirror routes") for verb in wanted]
    if desired.template_names:
        rights.append(Right("get", SERVICES, desired.namespace, "for the ports of experiments"))
    if desired.template_names or desired.managed_names:
        record, purpose = config.config_map, "for the record of managed rules"
        rights += [
            Right("get", CONFIG_MAPS, namespace, purpose, name=record),
            # What is yet to be made has no name that a role could give.
            Right("create", CONFIG_MAPS, namespace, purpose),
            Right("update", CONFIG_MAPS, namespace, purpose, name=record),
        ]
    rights.append(Right("create", EVENTS, desired.namespace, "to tell of warnings", optional=True))
    return rights


def check_rights(subject: Subject, reviewer: Reviewer) -> Iterator[Finding]:
    """Ask for each right; a missing one is named with the rule to add."""
    name, missing = f"Rollout {subject.key}", 0
    rights = needed_rights(subject)
    for right in rights:
        try:
            allowed = reviewer.allows(right)
        except Forbidden:
            if not reviewer.name:
                raise
            text = f"the rights of {reviewer.who} may not be asked for, so these are one's own"
            yield noted(name, "rights", text)
            yield from check_rights(subject, replace(reviewer, name=""))
            return
        except PluginError as error:
            yield noted(name, "rights", f"they can't be found out: {error}")
            return
        if not allowed:
            missing += 1
            what = f"{right.verb} {right.resource.plural} in namespace {right.namespace} ({right.purpose})"
            text = f"{reviewer.who} may not {what}; add the rule {right.rule} to a role that is bound to it"
            yield (warned if right.optional else failed)(name, "rights", text)
    if not missing:
        yield passed(name, "rights", f"{reviewer.who} has all {len(rights)} that are needed")
