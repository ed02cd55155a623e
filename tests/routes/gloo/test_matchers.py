"""A mirror step's path within a route's own, where one is in letters of any case."""

from typing import Any

import pytest

from rollouts_gwapi_plugin.model.rollout import RouteMatch
from rollouts_gwapi_plugin.routes.gloo.matchers import GlooMatch

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("own", "asked", "both"),
    [
        ({"prefix": "/a/b"}, {"prefix": "/a"}, {"regex": "/a(?i:/b).*"}),
        ({"exact": "/A/b.c"}, {"prefix": "/a"}, {"regex": r"/a(?i:/b\.c)"}),
        ({"exact": "/A"}, {"prefix": "/a"}, {"exact": "/a"}),
        ({"prefix": "/A"}, {"prefix": "/a"}, {"prefix": "/a"}),
        ({"prefix": "/a/b"}, {"exact": "/A/B"}, {"exact": "/A/B"}),
        ({"exact": "/b"}, {"prefix": "/a"}, None),
        ({"regex": "/a/b"}, {"prefix": "/a"}, None),
    ],
)
def test_a_route_that_takes_any_case(own: Json, asked: Json, both: Json | None) -> None:
    """What the two have in common is all of it, with the step's letters as they stand."""
    match = RouteMatch.model_validate({"path": asked})

    narrowed = GlooMatch().intersect({"uri": {**own, "ignoreCase": True}}, match, "match[0]")

    assert (None if narrowed is None else narrowed["uri"]) == both
