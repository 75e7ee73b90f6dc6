"""Margins do not leak: who may not see them learns the role and nothing else, and no series of prices finds a cost."""

from decimal import Decimal
from typing import Any

import pytest

from cpq.app import App
from cpq.domain.policy.cost_grid import coarse
from tests.support.approvals import ask, person, priced_quote
from tests.support.engine import Tools, import_dicts, open_app, product_row
from tests.support.quotes import SEATS

COST = Decimal("61.37")
GRID = Decimal(5)


def secret_line(app: App, cost: Decimal = COST) -> dict[str, Any]:
    row = product_row()
    import_dicts(app, "products", row)
    price = {"price_book": "list", "currency": "USD", "unit_price": "100", "product_id": row["id"]}
    import_dicts(app, "prices", {**price, "cost": str(cost)})
    return {"product_id": row["id"], "quantity": 1}


def is_asked(tools: Tools, quote_id: str, discount: Decimal) -> bool:
    answer = tools("quote_price", quote_id=quote_id, requested_discount_pct=str(discount), dry_run=True)
    return any(one["policy_id"] == "hidden" for one in answer["policy_violations"])


def bisected_cost(tools: Tools, quote_id: str, quantity: int) -> tuple[Decimal, Decimal]:
    """The net prices of a unit, in turn, at which finance is asked and is not: the cost by the known margin of 10 %."""
    low, high = Decimal(0), Decimal(99)
    while high - low > Decimal("0.000002"):
        middle = ((low + high) / 2).quantize(Decimal("0.000001"))
        low, high = (low, middle) if is_asked(tools, quote_id, middle) else (middle, high)
    return tuple((100 - edge) * Decimal("0.9") for edge in (high, low))  # type: ignore[return-value] # Two of them.


def test_an_agent_learns_only_the_role_of_a_hidden_policy(app: App, tools: Tools):
    quote_id = priced_quote(tools, 33, secret_line(app))
    answers = [
        tools("quote_price", quote_id=quote_id),
        tools.error("quote_send", quote_id=quote_id, expected_version=1)["details"],
        tools("approval_preview", quote_id=quote_id),
    ]
    for answer in answers:
        [hidden] = [one for one in answer["policy_violations"] if one["required_approver_role"] == "finance"][-1:]
        assert hidden == {
            "policy_id": "hidden",
            "policy_name": "hidden policy",
            "severity": "approval_required",
            "description": "Cost or margin is outside its limit; finance has to approve.",
            "threshold": None,
            "actual": None,
            "unit": None,
            "required_approver_role": "finance",
        }
    ask(tools, quote_id, "finance")
    told = [tools("approval_status", quote_id=quote_id), tools("approval_history", quote_id=quote_id), *answers]
    assert "margin_floor" not in str(told)
    seen = person(app, "fay", "finance")("approval_preview", quote_id=quote_id)["policy_violations"]
    [floor] = [one for one in seen if one["policy_id"] == "margin_floor_finance"]
    assert (floor["threshold"], floor["actual"]) == (10, pytest.approx(8.402985))


def test_hundreds_of_prices_find_a_cost_no_better_than_the_grid(sqlite_app: App):
    """Whatever the quantity and whatever else is in the quote, every series ends at the same point of the grid."""
    app = open_app(sqlite_app.settings.model_copy(update={"rate_limit_per_minute": 0}))
    tools = Tools(app)
    line, calls = secret_line(app), 0
    point = Decimal(coarse(int(COST * 10**6), GRID)) / 10**6
    for quantity in (1, 7, 1000):
        quote_id = priced_quote(tools, 0, {**line, "quantity": quantity})
        low, high = bisected_cost(tools, quote_id, quantity)
        assert low - Decimal("0.011") <= point <= high + Decimal("0.011"), (quantity, low, high)
        calls += 26
    # All costs between the point before and this one give the same answers, so none of the calls tells them apart.
    before = max(cost for cost in range(1, 70 * 10**6, 10_000) if coarse(cost, GRID) < coarse(int(COST * 10**6), GRID))
    assert (point - Decimal(before) / 10**6) / point > Decimal("0.04")
    others = [Decimal(before) / 10**6 + Decimal("0.02"), point - Decimal("0.01")]
    probes = [Decimal(30) + Decimal(number) / 500 for number in range(0, 5000, 25)]
    expected = None
    for cost in (COST, *others):
        quote_id = priced_quote(tools, 0, {**secret_line(app, cost), "quantity": 1000})
        found = [is_asked(tools, quote_id, discount) for discount in probes]
        expected = expected or found
        assert found == expected
        assert True in found
        assert False in found
        calls += len(probes)
    assert calls > 600
    app.close()


def test_the_demo_needs_nobody_for_its_margin(tools: Tools):
    assert tools("quote_price", quote_id=priced_quote(tools, 0, SEATS))["policy_violations"] == []
