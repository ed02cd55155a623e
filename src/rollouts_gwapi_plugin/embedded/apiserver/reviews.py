"""Reviews of access: may I, or may somebody else, do this? Answered by the same rules as requests; nothing is stored.

SelfSubjectAccessReview is anybody's to ask; SubjectAccessReview has to be allowed like any create.
"""

from typing import Any

from rollouts_gwapi_plugin.embedded.apiserver.access import Access, User
from rollouts_gwapi_plugin.embedded.apiserver.answers import Answer, json_answer
from rollouts_gwapi_plugin.embedded.apiserver.decode import decode_value
from rollouts_gwapi_plugin.embedded.apiserver.requests import Request
from rollouts_gwapi_plugin.embedded.apiserver.status import StatusError, bad_request

GROUP = "authorization.k8s.io"
SELF = "selfsubjectaccessreviews"
OTHER = "subjectaccessreviews"


def is_review(request: Request) -> bool:
    """Whether the request is the create of a review."""
    return request.group == GROUP and request.verb == "create" and request.plural in {SELF, OTHER}


def review(access: Access, user: User, request: Request) -> Answer:
    """Answer a review with its status filled in."""
    body = decode_value(request.raw_body)
    if not isinstance(body, dict) or not isinstance(body.get("spec"), dict):
        raise bad_request("a review with a spec is expected")
    spec = body["spec"]
    if request.plural == SELF:
        asked_for = user
    else:
        access.authorize(user, request)
        asked_for = User(str(spec.get("user", "")), tuple(spec.get("groups") or ()))
    return json_answer(201, {**body, "status": _status(access, asked_for, spec.get("resourceAttributes"))})


def _status(access: Access, user: User, attributes: Any) -> dict[str, Any]:
    if not isinstance(attributes, dict):
        # A path that is no resource's is anybody's here, as in `Access.authorize`.
        return {"allowed": True}
    asked = Request(0, "", "", {}, {})
    asked.verb, asked.group = str(attributes.get("verb", "")), str(attributes.get("group", ""))
    asked.plural, asked.subresource = str(attributes.get("resource", "")), str(attributes.get("subresource", ""))
    asked.namespace, asked.name = str(attributes.get("namespace", "")), str(attributes.get("name", ""))
    try:
        access.authorize(user, asked)
    except StatusError as error:
        return {"allowed": False, "reason": str(error)}
    return {"allowed": True}
