"""HTTP methods in mirror steps: route APIs match them by exact name only."""

from typing import Final

from rollouts_gwapi_plugin.errors import RouteError
from rollouts_gwapi_plugin.model.rollout import StringMatch
from rollouts_gwapi_plugin.routes.l7 import string_test

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"})
_FIELDS: Final = {"Exact": "exact", "Prefix": "prefix", "RegularExpression": "regex"}


def exact_method(asked: StringMatch, where: str, api: str) -> str:
    """Return the method's name, as it is written in requests.

    Raises:
        RouteError: it is not asked for by name, or is none; the text names the field, and the API as `api` has it.

    """
    test = string_test(asked, where)
    method = test.value.upper()
    if test.type != "Exact" or method not in METHODS:
        raise RouteError(
            f"{where}.{_FIELDS[test.type]}: {test.value!r}: {api} matches methods by exact name only,"
            f" one of {', '.join(sorted(METHODS))}"
        )
    return method
