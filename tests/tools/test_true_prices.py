"""A price is true when it goes out: sending prices and judges again, and tells what is different."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cpq.app import App
from cpq.base.settings import Settings
from tests.support import engine
from tests.support.approvals import ask, decide, follow, person, priced_quote, refused, with_roles
from tests.support.engine import StillEffects, Tools, open_app
from tests.support.papers import Paper
from tests.support.quotes import sent_quote, status_of


def sell(
    app: App, *, price: str = "100", cost: str = "50", billing_period: str = "one_time", **product: Any
) -> dict[str, Any]:
    """Put a product at this price and cost into the catalogue, or change it; returns a line with it."""
    row = {"id": "prod_true", "sku": "TRUE-1", "name": "True", "category": "tanks", **product}
    engine.import_dicts(app, "products", row)
    terms = {"id": "price_true", "price_book": "list", "currency": "USD", "product_id": "prod_true"}
    engine.import_dicts(app, "prices", {**terms, "unit_price": price, "cost": cost, "billing_period": billing_period})
    return {"product_id": "prod_true", "quantity": 10}


def test_a_draft_is_not_sent_at_a_price_that_the_catalogue_no_longer_has(app: App, tools: Tools):
    quote_id = priced_quote(tools, 4, sell(app))
    sell(app, price="120")
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert (error["code"], error["message"]) == (
        "CONFLICT",
        "The price is not that of today: 960 USD became 1152. Nothing was sent.",
    )
    assert error["details"]["differences"] == [
        {"field": "subtotal", "before": 1000, "after": 1200},
        {"field": "discount_total", "before": 40, "after": 48},
        {"field": "total", "before": 960, "after": 1152},
        {"line_id": f"{quote_id}-ql-1", "field": "subtotal_before_discount", "before": 1000, "after": 1200},
        {"line_id": f"{quote_id}-ql-1", "field": "line_total", "before": 960, "after": 1152},
    ]
    assert error["details"]["next_call"]["tool"] == "quote_price"
    assert follow(tools, error)["pricing"]["total"] == 1152
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["total"] == 1152


def test_a_draft_is_not_sent_at_the_price_of_an_earlier_day(store: Settings, clock: StillEffects):
    """Nothing but the day has changed since the same process priced it."""
    app = open_app(store, clock)
    tools, line = Tools(app), sell(app)
    terms = {"price_book": "list", "currency": "USD", "product_id": line["product_id"], "cost": "50"}
    days = [clock.now().date() + timedelta(days=days) for days in (1, 2)]
    for row in ({"id": "price_true", "valid_to": str(days[0])}, {"id": "price_later", "valid_from": str(days[1])}):
        engine.import_dicts(app, "prices", {**terms, "unit_price": "100" if "valid_to" in row else "120", **row})
    quote_id, at_once = priced_quote(tools, 4, line), priced_quote(tools, 3, line)
    assert tools("quote_send", quote_id=at_once, expected_version=1)["total"] == 970
    clock.advance(days=3)
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert error["message"] == "The price is not that of today: 960 USD became 1152. Nothing was sent."
    assert follow(tools, error)["pricing"]["total"] == 1152
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["total"] == 1152
    app.close()


def test_a_change_that_leaves_the_price_alone_stops_nothing(app: App, tools: Tools):
    quote_id = priced_quote(tools, 4, sell(app))
    sell(app, name="Truer", cost="60", description="Another text.")
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["total"] == 960


def test_a_monthly_price_that_became_a_yearly_one_is_not_sent_though_the_total_is_the_same(app: App, tools: Tools):
    """In a bundle; a line of its own asks for the price by its period."""
    line = sell(app, billing_period="monthly")
    parts = [{"kind": "component", "product_id": line["product_id"]}]
    bundle = engine.product_row(product_type="bundle", bundle={"pricing": "components"}, relationships=parts)
    engine.import_dicts(app, "products", bundle)
    own = {"price_book": "list", "currency": "USD", "product_id": bundle["id"], "unit_price": "0", "cost": "0"}
    engine.import_dicts(app, "prices", own)
    quote_id = priced_quote(tools, 4, {**line, "product_id": bundle["id"]}, term_months=12)
    sell(app, price="1200", billing_period="yearly")
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert error["message"] == "The price is not that of today: billing_period differs. Nothing was sent."
    of_line = {"line_id": f"{quote_id}-ql-1"}
    assert error["details"]["differences"] == [
        {**of_line, "field": "billing_period", "before": "monthly", "after": "yearly"},
        {**of_line, "field": "unit_price_per_period", "before": 96, "after": 1152},
        {**of_line, "field": "periods", "before": 12, "after": 1},
    ]
    follow(tools, error)
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["total"] == 11520


def test_a_draft_is_not_sent_when_todays_cost_needs_an_approval(app: App, tools: Tools):
    quote_id = priced_quote(tools, 0, sell(app))
    sell(app, cost="95")
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert error["code"] == "CONFLICT"
    assert error["details"]["differences"] == [{"field": "required_roles", "after": ["finance"]}]
    assert error["details"]["next_call"] == {"tool": "quote_price", "arguments": {"quote_id": quote_id}}
    assert follow(tools, error)["required_roles"] == ["finance"]
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert error["details"]["next_call"]["tool"] == "approval_request"


def stricter(folder: Path, clock: StillEffects) -> None:
    """Later policies ask for more."""
    path = folder / "discounts.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("above: 5", "above: 3"), encoding="utf-8")
    clock.advance(minutes=1)


def test_a_draft_is_not_sent_when_todays_policies_need_an_approval(
    store: Settings, tmp_path: Path, clock: StillEffects
):
    app = open_app(with_roles(store, tmp_path / "policies"), clock)
    tools = Tools(app)
    quote_id, other = priced_quote(tools, 4), priced_quote(tools, 3)
    stricter(tmp_path / "policies", clock)
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert error["message"] == (
        "Catalogue, costs or policies have changed since it was priced: sales_manager must approve now."
    )
    arguments = {"quote_id": quote_id, "requested_discount_pct": 4}
    assert error["details"]["next_call"] == {"tool": "quote_price", "arguments": arguments}
    assert tools("quote_send", quote_id=other, expected_version=1)["status"] == "sent"
    app.close()


def test_an_approval_holds_under_later_policies(store: Settings, tmp_path: Path, clock: StillEffects):
    app = open_app(with_roles(store, tmp_path / "policies"), clock)
    tools, dana = Tools(app), person(app, "dana", "sales_manager")
    quote_id = priced_quote(tools, 6)
    decide(dana, ask(tools, quote_id))
    path = tmp_path / "policies" / "discounts.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("above: 20", "above: 5.5"), encoding="utf-8")
    clock.advance(minutes=1)
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"
    app.close()


def test_an_approval_under_earlier_policies_does_not_cover_a_product_that_has_changed(
    store: Settings, tmp_path: Path, clock: StillEffects
):
    app = open_app(with_roles(store, tmp_path / "policies"), clock)
    tools = Tools(app)
    quote_id = priced_quote(tools, 10, sell(app))
    decide(person(app, "dana", "sales_manager"), ask(tools, quote_id))
    sell(app, attributes={"export_controlled": True})
    stricter(tmp_path / "policies", clock)
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert error["details"]["differences"] == [
        {"field": "required_roles", "before": ["sales_manager"], "after": ["sales_manager", "legal"]}
    ]
    app.close()


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"price": "120"}, {"field": "subtotal", "before": 1000, "after": 1200}),
        (
            {"cost": "95"},
            {"field": "required_roles", "before": ["sales_manager"], "after": ["sales_manager", "finance"]},
        ),
        (
            {"attributes": {"export_controlled": True}},
            {"field": "required_roles", "before": ["sales_manager"], "after": ["sales_manager", "legal"]},
        ),
    ],
)
def test_what_was_approved_is_not_sent_after_the_catalogue_has_changed_it(
    app: App, tools: Tools, change: dict[str, Any], difference: dict[str, Any]
):
    quote_id = priced_quote(tools, 10, sell(app))
    decide(person(app, "dana", "sales_manager"), ask(tools, quote_id))
    sell(app, **change)
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert (error["code"], error["details"]["differences"][0]) == ("CONFLICT", difference)
    assert "threshold" not in str(error)
    assert error["details"]["next_call"]["tool"] == "quote_revise"
    assert follow(tools, error)["version"] == 2


def test_what_was_approved_is_sent_when_nothing_that_matters_has_changed(app: App, tools: Tools):
    quote_id = priced_quote(tools, 25, sell(app))
    decide(person(app, "vera", "vp_sales"), ask(tools, quote_id, "vp_sales"))
    sell(app, cost="55", name="Truer")
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"


def test_the_pdf_of_a_superseded_version_is_stamped_and_what_was_issued_stays(tools: Tools):
    quote_id = sent_quote(tools)
    issued = tools("quote_pdf", quote_id=quote_id, idempotency_key="first")
    bytes_issued = Path(issued["file_path"]).read_bytes()
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    assert tools("quote_pdf", quote_id=quote_id, version=1)["stamp"] is None
    tools("quote_price", quote_id=quote_id, requested_discount_pct=2)
    tools("quote_send", quote_id=quote_id, expected_version=2)
    assert status_of(tools, quote_id, 1) == "superseded"
    stamped = tools("quote_pdf", quote_id=quote_id, version=1)
    assert stamped["stamp"] == "superseded"
    assert all("SUPERSEDED" in page for page in Paper.of(stamped).pages)
    assert "A later version has replaced this one" in Paper.of(stamped).text
    assert tools("quote_pdf", quote_id=quote_id, version=1, template="compact")["stamp"] == "superseded"
    assert "ERSETZT" in Paper.of(tools("quote_pdf", quote_id=quote_id, version=1, locale="de")).text
    assert Path(issued["file_path"]).read_bytes() == bytes_issued
    replayed = tools("quote_pdf", quote_id=quote_id, idempotency_key="first")
    assert (replayed["checksum"], replayed["stamp"]) == (issued["checksum"], None)
    assert tools("quote_pdf", quote_id=quote_id)["stamp"] is None
