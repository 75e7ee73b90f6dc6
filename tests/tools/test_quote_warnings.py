"""What a quote says before it misleads: money among the attributes, and prices that end before the quote does."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from cpq.base.settings import Settings, shipped
from tests.support.engine import Tools, import_dicts, open_app, product_row, row_counts
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


@pytest.mark.parametrize(("ends", "is_said"), [("2026-12-15", True), ("2026-12-16", False), (None, False)])
def test_a_quote_that_outlives_the_exchange_rate_of_the_policies_says_so(
    store: Settings, tmp_path: Path, ends: str | None, is_said: bool
):
    """The day of the quote's end itself is covered, and so is a quote in the policies' own currency."""
    policies = tmp_path / "policies"
    shutil.copytree(shipped("policies"), policies)
    with (policies / "terms.yaml").open("a", encoding="utf-8") as file:
        file.write(f"rates_valid_until: {ends}\n" if ends else "")
    with closing(open_app(store.model_copy(update={"policies_dir": policies}))) as app:
        tools = Tools(app)
        made = tools("quote_create", account_id="acct_rheinstahl_010", line_items=[SEATS])
        said = (
            "The policies value EUR in USD at a rate that ends on 2026-12-15, and the quote is valid until 2026-12-16."
        )
        assert made["currency"] == "EUR"
        assert made["warnings"] == ([said] if is_said else [])
        assert tools("quote_price", quote_id=made["quote_id"])["warnings"] == made["warnings"]
        assert tools("quote_create", account_id=ACME, line_items=[SEATS])["warnings"] == []
