"""Margins do not leak: who may not see them learns the role and nothing else, and no series of prices finds a cost."""

from decimal import Decimal
from typing import Any

import pytest

from cpq.app import App
from tests.support.approvals import ask, decide, person, priced_quote
from tests.support.engine import Tools, import_dicts, product_row
from tests.support.quotes import SEATS

COST = Decimal("61.37")


def secret_line(app: App, cost: Decimal = COST) -> dict[str, Any]:
    row = product_row()
    import_dicts(app, "products", row)
    price = {"price_book": "list", "currency": "USD", "unit_price": "100", "product_id": row["id"]}
    import_dicts(app, "prices", {**price, "cost": str(cost)})
    return {"product_id": row["id"], "quantity": 1}


def is_asked(tools: Tools, quote_id: str, discount: Decimal) -> bool:
    answer = tools("quote_price", quote_id=quote_id, requested_discount_pct=str(discount), dry_run=True)
    return any(one["policy_id"] == "hidden" for one in answer["policy_violations"])


def bisected(tools: Tools, *lines: dict[str, Any]) -> list[bool]:
    """The answers to ever closer discounts on a new quote, around the one at which finance begins to be asked."""
    quote_id, low, high = priced_quote(tools, 0, *lines), Decimal(0), Decimal(99)
    answers = []
    while high - low > Decimal("0.01"):
        middle = ((low + high) / 2).quantize(Decimal("0.000001"))
        answers.append(is_asked(tools, quote_id, middle))
        low, high = (low, middle) if answers[-1] else (middle, high)
    return answers


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


def test_an_approver_reads_one_margin_the_true_one(app: App, tools: Tools):
    """At a discount of 31.7 % the margin is 10.1 %, but with the cost on the grid it counts as 9.7 %."""
    quote_id = priced_quote(tools, Decimal("31.7"), secret_line(app))
    fay = person(app, "fay", "finance")
    [floor] = [
        one
        for one in fay("approval_preview", quote_id=quote_id)["policy_violations"]
        if one["policy_id"] == "margin_floor_finance"
    ]
    assert floor["actual"] == pytest.approx(10.146413)
    told = (
        "A margin of 10.1 % is not known to reach 10 %. Costs count as rounded up by up to 5 %, and so it is asked for."
    )
    assert floor["description"] == told
    asked = ask(tools, quote_id, "finance")
    decided = fay("approval_status", quote_id=quote_id)
    assert told in str(decided)
    assert "9.6" not in str(decided)
    assert "Costs count" not in str(asked)


def test_a_kept_approval_tells_no_more_of_a_margin_than_a_price(app: App, tools: Tools):
    """Finance's approval is kept where the price rises, and asked for again where the mix of lines is another."""
    line, other = secret_line(app), secret_line(app, Decimal(80))
    quote_id = priced_quote(tools, 33, {**line, "quantity": 10}, {**other, "quantity": 10})
    answer = ask(tools, quote_id, "finance")
    fay = person(app, "fay", "finance")
    for one in (answer, *answer["also_requested"]):
        who = fay if one["approver_role"] == "finance" else person(app, "vera", one["approver_role"])
        decide(who, answer, one["approver_role"])

    def finance() -> dict[str, Any]:
        tools("quote_price", quote_id=quote_id, requested_discount_pct=32)
        steps = tools("approval_preview", quote_id=quote_id)["steps"]
        return next(step for step in steps if step["approver_role"] == "finance")

    tools("quote_revise", quote_id=quote_id, expected_version=1)
    assert finance()["would_be"] == "kept"
    fewer_units = [{"line_id": f"{quote_id}-ql-1", "quantity": 9}]
    tools("quote_update", quote_id=quote_id, expected_version=2, change_lines=fewer_units)
    fewer = finance()
    assert (fewer["would_be"], fewer["reasons"][-1]) == ("asked", "Asked again: cost or margin may be worse.")


def test_prices_of_a_product_or_a_bundle_with_it_tell_no_two_costs_of_an_interval_apart(app: App, tools: Tools):
    """The pure test with 2,000 calls is that of the grid; here are some of them, through the tools."""
    found = []
    for cost in (Decimal("58.75"), COST, Decimal("61.68"), Decimal("61.69")):
        line = secret_line(app, cost)
        bundle = product_row(product_type="bundle", bundle={"pricing": "components"})
        bundle["relationships"] = [
            {"kind": "component", "product_id": line["product_id"], "quantity": 3},
            {"kind": "component", "product_id": SEATS["product_id"], "quantity": 1},
        ]
        import_dicts(app, "products", bundle)
        own = {"price_book": "list", "currency": "USD", "unit_price": "0", "product_id": bundle["id"]}
        import_dicts(app, "prices", own)
        kit = {"product_id": bundle["id"], "quantity": 2}
        found.append([bisected(tools, line), bisected(tools, {**line, "quantity": 7}, kit)])
    assert found[0] == found[1] == found[2]
    assert found[0][0] != found[3][0]
    assert found[0][1] != found[3][1]


def test_the_demo_needs_nobody_for_its_margin(tools: Tools):
    assert tools("quote_price", quote_id=priced_quote(tools, 0, SEATS))["policy_violations"] == []
