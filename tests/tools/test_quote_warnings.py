"""What a quote says before it misleads: money among the attributes, and prices that end before the quote does."""

import pytest

from tests.support.engine import Tools, import_dicts, product_row, row_counts
from tests.support.quotes import ACME, SEATS


@pytest.mark.parametrize("name", ["price", "unit_price", "discount", "cost", "Unit-Price", "discount_pct"])
def test_an_attribute_that_looks_like_money_is_refused(tools: Tools, name: str):
    before = row_counts(tools.app)
    error = tools.error("quote_create", account_id=ACME, line_items=[{**SEATS, "attributes": {name: 5}}])
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", f"/line_items/0/attributes/{name}")
    assert "discount_pct" in error["details"]["hint"]
    assert row_counts(tools.app) == before


def test_a_note_that_only_mentions_money_stays_a_note(tools: Tools):
    line = {"product_id": "prod_tk240v", "quantity": 1, "attributes": {"cost_note": "see sheet"}}
    made = tools("quote_create", account_id=ACME, line_items=[line])
    read = tools("quote_get", quote_id=made["quote_id"])
    assert read["line_items"][0]["attributes"] == {"cost_note": "see sheet"}


@pytest.mark.parametrize(
    ("whose", "kind"), [({"price_book": "list"}, "price"), ({"account_id": ACME}, "contracted price")]
)
def test_a_quote_that_outlives_a_price_says_so(tools: Tools, whose: dict[str, str], kind: str):
    product = product_row()
    import_dicts(tools.app, "products", product)
    price = {"product_id": product["id"], "currency": "USD", "unit_price": 10, "valid_to": "2026-11-20"}
    import_dicts(tools.app, "prices", {**price, **whose})
    made = tools("quote_create", account_id=ACME, line_items=[{"product_id": product["id"], "quantity": 1}])
    expected = f"The {kind} of Made ({product['id']}) ends on 2026-11-20, and the quote is valid until 2026-12-16."
    assert made["warnings"] == [expected]
    quote_id = made["quote_id"]
    assert tools("quote_price", quote_id=quote_id)["warnings"] == [expected]
    assert tools("quote_get", quote_id=quote_id)["warnings"] == [expected]
    assert tools("quote_update", quote_id=quote_id, expected_version=1, notes="More.")["warnings"] == [expected]
