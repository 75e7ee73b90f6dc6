"""The sample catalogue sells things as they are really sold: several selling models, freight, taxes, currencies."""

import csv
from collections import defaultdict
from decimal import Decimal
from typing import Any

import pytest

from cpq.app import App
from tests.support.engine import SAMPLE, Tools

COUNTY, QUEBEC, NORWAY = "acct_chattahoochee_028", "acct_laurentide_009", "acct_nordfjord_027"


@pytest.fixture
def tools(sqlite_app: App) -> Tools:
    return Tools(sqlite_app)


def created(tools: Tools, account_id: str, *lines: dict[str, Any], **more: Any) -> dict[str, Any]:
    return tools("quote_create", account_id=account_id, line_items=list(lines), **more)


def subtotals(made: dict[str, Any]) -> list[Decimal]:
    return [Decimal(str(line["subtotal"])) for line in made["line_items"]]


def test_g01_at_least_twelve_products_have_several_selling_models_and_a_default(tools: Tools):
    sold: dict[str, set[tuple[str, str]]] = defaultdict(set)
    with (SAMPLE / "prices.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["price_book"] == "list":
                sold[row["product_id"]].add((row["billing_period"], row["selling_model"]))
    several = sorted(id_ for id_, models in sold.items() if len(models) > 1)
    assert len(several) >= 12
    periods = {model for id_ in several for model in sold[id_]}
    assert {"monthly", "quarterly", "yearly", "one_time"} == {period for period, _ in periods}
    assert ("monthly", "evergreen") in periods
    for id_ in several:
        # Left out, the default decides: nothing has to be asked.
        assert tools("quote_create", account_id=COUNTY, line_items=[{"product_id": id_, "quantity": 1}], term_months=12)


def test_g01_a_plan_costs_ten_months_when_it_is_paid_by_the_year(tools: Tools):
    line = {"product_id": "prod_app_leak", "quantity": 1}
    lines = [{**line, "selling_model": "monthly"}, {**line, "selling_model": "yearly"}]
    assert subtotals(created(tools, COUNTY, *lines, term_months=24)) == [24 * 79, 2 * 790]


def test_freight_goes_by_weight_or_distance_and_a_crew_by_the_hour_with_their_base_charges(tools: Tools):
    made = created(
        tools,
        COUNTY,
        {"product_id": "prod_svc_freight_ltl", "quantity": "18.5"},
        {"product_id": "prod_svc_freight_ftl", "quantity": 410},
        {"product_id": "prod_svc_install_h", "quantity": "6.5"},
    )
    by_weight = 120 + 5 * 62 + Decimal("13.5") * 41
    by_distance = 350 + 250 * Decimal("4.5") + 160 * Decimal("3.5")
    assert subtotals(made) == [by_weight, by_distance, 190 + 4 * 285 + Decimal("2.5") * 260]


def test_g09_a_county_of_georgia_and_quebec_charge_two_taxes(tools: Tools):
    line = {"product_id": "prod_qmb30", "quantity": 1}
    quotes = [created(tools, account_id, line)["quote_id"] for account_id in (COUNTY, QUEBEC)]
    county, quebec = (tools("quote_price", quote_id=quote_id) for quote_id in quotes)
    assert [(group["tax_name"], group["rate"], group["tax"]) for group in county["tax_groups"]] == [
        ("state", 4, 586),
        ("county", 3, 439.5),
    ]
    assert [(group["tax_name"], group["tax"]) for group in quebec["tax_groups"]] == [("GST", 732.5), ("QST", 1461.34)]


def test_g10_an_account_in_another_currency_gets_converted_prices(tools: Tools):
    made = created(tools, NORWAY, {"product_id": "prod_qmb15", "quantity": 1})
    assert made["currency"] == "NOK"
    assert subtotals(made) == [99_845]


def test_the_options_of_each_group_have_their_own_price(tools: Tools):
    groups = {"voltage": "575", "redundancy": "n_plus_1", "finish": "standard"}
    prices = tools("catalog_get", product_id="prod_slx40")["prices"]
    dollars = next(price for price in prices if price["currency"] == "USD" and price["price_book"] == "list")
    extra = [Decimal(str(dollars["option_surcharges"][name][value])) for name, value in groups.items()]
    line = {"product_id": "prod_slx40", "quantity": 1}
    assert all(extra)
    [plain, chosen] = subtotals(created(tools, COUNTY, line, {**line, "attributes": groups}))
    assert chosen == plain + sum(extra)
