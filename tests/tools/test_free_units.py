"""Free units: a product has them once in a quote, however many lines it has, and they cost what others do."""

from typing import Any

from cpq.app import App
from tests.support.approvals import priced_quote
from tests.support.engine import Tools, import_dicts, product_row
from tests.support.quotes import assert_sound


def given_away(app: App, *, free: int, cost: str = "10") -> str:
    """A product at 100 a piece, some of which are free."""
    row = product_row()
    import_dicts(app, "products", row)
    price = {"price_book": "list", "currency": "USD", "unit_price": "100", "cost": cost, "product_id": row["id"]}
    import_dicts(app, "prices", {**price, "tier_mode": "package", "package_size": 1, "free_quantity": free})
    return str(row["id"])


def total(tools: Tools, *lines: dict[str, Any]) -> Any:
    quote_id = priced_quote(tools, 0, *lines)
    return tools("quote_get", quote_id=quote_id)["pricing"]["total"]


def test_four_hundred_lines_have_no_more_free_units_than_one(app: App, tools: Tools):
    product_id = given_away(app, free=10)
    whole = {"product_id": product_id, "quantity": 400}
    assert total(tools, whole) == 39_000
    assert total(tools, *[{**whole, "quantity": 1}] * 400) == 40_000
    assert total(tools, {**whole, "quantity": 200}, {**whole, "quantity": 200}) == 39_000
    assert assert_sound(app) == 3


def test_free_units_have_their_cost_in_the_margin(app: App, tools: Tools):
    product_id = given_away(app, free=10, cost="60")
    quote_id = priced_quote(tools, 0, {"product_id": product_id, "quantity": 20})
    answer = tools("quote_price", quote_id=quote_id)
    assert (answer["pricing"]["total"], answer["required_roles"]) == (1000, ["finance"])
    assert (
        tools("quote_price", quote_id=priced_quote(tools, 0, {"product_id": product_id, "quantity": 100}))[
            "required_roles"
        ]
        == []
    )
