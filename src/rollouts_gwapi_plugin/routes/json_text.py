"""JSON as it is kept inside API objects: in the ledger's ConfigMap, and in an annotation."""

import json
import re
from typing import Any

_HALF = re.compile("[\ud800-\udfff]")


def json_text(value: Any) -> str:
    """Return a value's one spelling: sorted, compact, and always text that can be encoded.

    Half of a surrogate pair, which JSON can spell and UTF-8 can't, stays the escape that it was read from.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
