"""The pages by which clients learn what is served: versions, groups, resources, OpenAPI v3, health."""

from collections.abc import Iterable

from rollouts_gwapi_plugin.embedded.apiserver.answers import Answer, json_answer, plain_answer
from rollouts_gwapi_plugin.embedded.apiserver.kinds import Kind, Registry, Version
from rollouts_gwapi_plugin.embedded.apiserver.openapi import openapi_page, short_hash
from rollouts_gwapi_plugin.model.base import JsonObject

VERSION: JsonObject = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.4+embedded",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "embedded/python",
}
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")
_HEALTH = frozenset({"healthz", "livez", "readyz"})


def discovery_page(registry: Registry, path: str) -> Answer | None:  # noqa: PLR0911 - one return a page
    """Answer a discovery path; None where the path is none."""
    match path.strip("/").split("/"):
        case [word] if word in _HEALTH:
            return plain_answer(200, "ok")
        case ["version"]:
            return json_answer(200, VERSION)
        case [""]:
            return json_answer(200, {"paths": _root_paths(registry)})
        case ["api"]:
            return json_answer(200, {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
        case ["api", version]:
            return _resources(registry, "", version)
        case ["apis", *rest]:
            return _apis(registry, rest)
        case ["openapi", "v3", *rest]:
            return openapi_page(registry, "/".join(rest), VERSION["gitVersion"])
    return None


def _root_paths(registry: Registry) -> list[str]:
    groups = [f"/apis/{group}" for group in _groups(registry)]
    return ["/api", "/api/v1", "/apis", *groups, "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]


def _apis(registry: Registry, rest: list[str]) -> Answer | None:
    groups = _groups(registry)
    if not rest:
        entries = [_group(name, kinds) for name, kinds in groups.items()]
        return json_answer(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": entries})
    match rest:
        case [group] if group in groups:
            return json_answer(200, {"kind": "APIGroup", "apiVersion": "v1"} | _group(group, groups[group]))
        case [group, version] if group in groups:
            return _resources(registry, group, version)
    return None


def _groups(registry: Registry) -> dict[str, list[Kind]]:
    groups: dict[str, list[Kind]] = {}
    for kind in registry.all():
        if kind.group and any(version.served for version in kind.versions):
            groups.setdefault(kind.group, []).append(kind)
    return groups


def _group(name: str, kinds: Iterable[Kind]) -> JsonObject:
    names = {version.name for kind in kinds for version in kind.versions if version.served}
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in sorted(names, key=_age)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _age(version: str) -> tuple[int, int, int, str]:
    """Order versions as Kubernetes does: v2, v1, v1beta1, v1alpha3, v1alpha2."""
    digits = "".join(character if character.isdigit() else " " for character in version).split()
    stage = 0 if "alpha" not in version and "beta" not in version else 1 if "beta" in version else 2
    major = int(digits[0]) if digits else 0
    minor = int(digits[1]) if len(digits) > 1 else 0
    return stage, -major, -minor, version


def _resources(registry: Registry, group: str, version: str) -> Answer | None:
    rows = [(kind, kind.version(version)) for kind in registry.all() if kind.group == group]
    resources = [entry for kind, served in rows if served for entry in _resource(kind, served)]
    if not resources:
        return None
    group_version = f"{group}/{version}" if group else version
    page = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}
    return json_answer(200, page)


def _resource(kind: Kind, version: Version) -> list[JsonObject]:
    main: JsonObject = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(VERBS),
    }
    if kind.short_names:
        main["shortNames"] = list(kind.short_names)
    if kind.categories:
        main["categories"] = list(kind.categories)
    main["storageVersionHash"] = short_hash(f"{kind.group}/{kind.storage.name}/{kind.kind}".encode())
    entries = [main]
    if version.status:
        entries.append(
            {
                "name": f"{kind.plural}/status",
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": kind.kind,
                "verbs": list(STATUS_VERBS),
            }
        )
    return entries
