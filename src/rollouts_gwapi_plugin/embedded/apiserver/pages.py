"""Lists in pages: `limit` and the `continue` token, which says where the next page begins."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rollouts_gwapi_plugin.embedded.apiserver.jsonvalue import encode
from rollouts_gwapi_plugin.embedded.apiserver.status import bad_request
from rollouts_gwapi_plugin.embedded.apiserver.store import Stored

Place = tuple[str, str]


@dataclass(frozen=True)
class Page:
    """Some of the rows; `next_token` is empty on the last page, `remaining` tells how many follow."""

    rows: list[Stored]
    next_token: str = ""
    remaining: int = 0


def cut_page(rows: Sequence[Stored], query: Mapping[str, str]) -> Page:
    """Cut the page that a query asks for; the rows are in the order of namespace and name."""
    limit = _number(query.get("limit") or "0")
    token = query.get("continue", "")
    start = _read_token(token) if token else ("", "")
    left = [row for row in rows if _place(row) > start]
    if not limit or len(left) <= limit:
        return Page(left)
    return Page(left[:limit], _token(_place(left[limit - 1])), len(left) - limit)


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _place(row: Stored) -> Place:
    metadata = row.value["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _token(place: Place) -> str:
    return base64.urlsafe_b64encode(encode({"v": "embedded", "start": list(place)})).decode()


def _read_token(token: str) -> Place:
    try:
        namespace, name = json.loads(base64.urlsafe_b64decode(token))["start"]
    except (ValueError, KeyError, TypeError):
        raise bad_request("invalid continue token: continue key is not valid") from None
    return str(namespace), str(name)
