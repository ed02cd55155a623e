"""GRPCRoute's way to narrow a match: it knows service and method names, no HTTP method or path."""

from rollouts_gwapi_plugin.errors import StepNotTakenError
from rollouts_gwapi_plugin.model.base import JsonObject
from rollouts_gwapi_plugin.model.rollout import RouteMatch


class GrpcMatch:
    """Narrow a GRPCRoute's match: only headers can be asked for."""

    def intersect(self, match: JsonObject, asked: RouteMatch, where: str) -> JsonObject | None:
        """Return the match as it is; a method or path is refused."""
        for field, value in (("method", asked.method), ("path", asked.path)):
            if value is not None:
                raise StepNotTakenError(
                    f"{where}.{field}: a GRPCRoute can't match it; use headers, or mirror by an HTTPRoute"
                )
        return match
