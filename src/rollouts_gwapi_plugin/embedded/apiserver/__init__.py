"""An embedded Kubernetes API server on the standard library (see docs: it is kept equal to the real one by tests)."""

from rollouts_gwapi_plugin.embedded.apiserver.access import Denial
from rollouts_gwapi_plugin.embedded.apiserver.faults import Drop, Fault
from rollouts_gwapi_plugin.embedded.apiserver.requests import Request, RequestLog
from rollouts_gwapi_plugin.embedded.apiserver.server import ApiServer
from rollouts_gwapi_plugin.embedded.apiserver.status import StatusError
from rollouts_gwapi_plugin.embedded.apiserver.store import Change

__all__ = ["ApiServer", "Change", "Denial", "Drop", "Fault", "Request", "RequestLog", "StatusError"]
