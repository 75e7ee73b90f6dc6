"""Understood without a person: a script that knows only what answers say repairs broken configurations.

It knows no product, no option and no rule: it sends the `next_call` of an error, and where an error names the nearest
allowed word for a field, it puts that in.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.support.engine import Tools
from tests.support.quotes import ACME

CALLS_MAX = 2

BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("prod_qvs40", {"outdoor": True, "cooling": "water"}),
    ("prod_qvs40", {"dryer": "integrated", "psi": 150}),
    ("prod_qvs40", {"outdoor": True, "dryer": "integrated"}),
    ("prod_qvs40", {"voltage": "480"}),
    ("prod_qvs40", {"psi": 130}),
    ("prod_qvs60", {"heat_recovery": True, "cooling": "water"}),
    ("prod_qvs60", {"voltage": "208", "cooling": "water"}),
    ("prod_qvs60", {"outdoor": True, "cooling": "water", "voltage": "208"}),
    ("prod_qvs60", {"dryer": "integrated", "psi": 150, "heat_recovery": True, "cooling": "water"}),
    ("prod_qvs100", {"voltage": "208"}),
    ("prod_qvs100", {"outdoor": "perhaps"}),
    ("prod_qvs100", {"outdor": True, "cooling": "water"}),
    ("prod_qvs150", {"psi": 150, "dryer": "integrated"}),
    ("prod_qvs150", {"heat_recovery": True, "cooling": "water", "outdoor": True}),
    ("prod_qvs_series", {"hp": 100, "voltage": "208"}),
    ("prod_qvs_series", {"hp": 100, "psi": 125, "cfm": 91}),
    ("prod_qvs_series", {"hp": 150, "tank_gal": 120, "dryer": "refrigerated", "dryer_cfm": 125}),
    ("prod_slx80", {"dryer": "refrigerated"}),
    ("prod_hz75", {"cooling": "steam", "speed": "variable"}),
    ("prod_ddh400", {"dew_point": "-100F", "filters": "none"}),
]


@pytest.mark.parametrize(("product_id", "attributes"), BROKEN, ids=[f"{n}-{one}" for n, (one, _) in enumerate(BROKEN)])
def test_a_script_that_follows_answers_repairs_a_broken_configuration(
    sqlite_tools: Tools, product_id: str, attributes: dict[str, Any]
):
    line = {"product_id": product_id, "quantity": 1, "attributes": attributes}
    call: Any = {"tool": "quote_create", "arguments": {"account_id": ACME, "line_items": [line]}}
    reply = sqlite_tools.reply(call["tool"], call["arguments"])
    assert reply.is_error, "the configuration is broken"
    for _ in range(CALLS_MAX):
        call = mended(call, reply.body["error"]["details"])
        reply = sqlite_tools.reply(call["tool"], call["arguments"])
        if not reply.is_error:
            break
    assert not reply.is_error, reply.body
    assert call["tool"] == "quote_create"
    assert reply.body["line_items"][0]["product_id"] == product_id


def mended(call: dict[str, Any], details: dict[str, Any]) -> dict[str, Any]:
    """The next call by the details of an error: the one that it gives, or this one with the nearest word put in."""
    given = details.get("next_call")
    if given is not None and given["tool"] == call["tool"]:
        return dict(given)
    changed = deepcopy(call)
    *path, last = details["field"].strip("/").split("/")
    place: Any = changed["arguments"]
    for part in path:
        place = place[int(part)] if isinstance(place, list) else place[part]
    if details["nearest"][0] in details["allowed"] and last not in details["allowed"]:
        place[details["nearest"][0]] = place.pop(last)
    else:
        place[last] = details["nearest"][0]
    return changed
