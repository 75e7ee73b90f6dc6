"""Ramps through the tools: a quantity is what is paid for, and what the pricer refuses is told with its line."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from cpq.app import App
from cpq.base.settings import Settings, shipped
from tests.support import engine
from tests.support.engine import Tools, open_app
from tests.support.quotes import ACME, SEATS, assert_adds_up, assert_sound, new_quote, stored

MACHINE = {"product_id": "prod_qmb15", "quantity": 1}
VOLUME = [{"up_to": 1000, "unit_price": "100"}, {"unit_price": "20"}]


def ramped(*steps: tuple[int, int | None], quantity: int, product_id: str = "prod_pro_v2") -> dict[str, Any]:
    ramp = [{"months": months, **({} if units is None else {"quantity": units})} for months, units in steps]
    return {"product_id": product_id, "quantity": quantity, "ramp": ramp}


def price_row(product_id: str, unit_price: str, **fields: Any) -> dict[str, Any]:
    return {"product_id": product_id, "price_book": "list", "currency": "USD", "unit_price": unit_price, **fields}


def add_products(app: App, *prices: dict[str, Any], **bundles: list[str]) -> None:
    """Products with these prices, and bundles that are priced by their components."""
    for row in prices:
        id_ = row["product_id"]
        kind: dict[str, Any] = {}
        if id_ in bundles:
            relations = [{"kind": "component", "product_id": part} for part in bundles[id_]]
            kind = {"product_type": "bundle", "bundle": {"pricing": "components"}, "relationships": relations}
        engine.import_dicts(app, "products", engine.product_row(id=id_, category="saas", **kind))
    engine.import_dicts(app, "prices", *prices)


def refused(tools: Tools, name: str = "quote_create", **arguments: Any) -> dict[str, Any]:
    """The details of a refusal, which must have changed no row."""
    before = stored(tools.app)
    error = tools.error(name, **arguments)
    assert stored(tools.app) == before
    return error["details"]


def places(details: dict[str, Any]) -> list[tuple[str, str]]:
    return [(problem["code"], problem["field"]) for problem in details["problems"]]


@pytest.mark.parametrize(
    ("line", "largest"),
    [
        (ramped((12, 1), quantity=1_000_000), 1),
        (ramped((12, 50), quantity=1), 50),
        (ramped((6, 10), (6, 40), quantity=41), 40),
        (ramped((6, None), (6, 40), quantity=39), 40),
    ],
)
def test_a_quantity_that_is_not_the_largest_of_the_ramp_is_refused(tools: Tools, line: dict[str, Any], largest: int):
    lines = [SEATS, line, {"product_id": "prod_none", "quantity": 1}]
    details = refused(tools, account_id=ACME, term_months=12, line_items=lines)
    assert (details["field"], details["expected"], details["actual"]) == (
        "/line_items/1/quantity",
        largest,
        line["quantity"],
    )
    assert places(details) == [
        ("VALIDATION_ERROR", "/line_items/1/quantity"),
        ("NOT_FOUND", "/line_items/2/product_id"),
    ]
    repaired = {**line, "quantity": details["expected"]}
    tools("quote_create", account_id=ACME, term_months=12, line_items=[SEATS, repaired])


def test_an_edit_cannot_invent_a_quantity_either(app: App, tools: Tools):
    quote_id = new_quote(tools, SEATS, ramped((6, 10), (6, 40), quantity=40))
    call = {"quote_id": quote_id, "expected_version": 1}
    changed = [{"line_id": f"{quote_id}-ql-2", "quantity": 1_000_000}]
    details = refused(tools, "quote_update", **call, change_lines=changed)
    assert (details["field"], details["expected"]) == ("/change_lines/0/quantity", 40)
    details = refused(tools, "quote_update", **call, add_lines=[ramped((12, 1), quantity=2)])
    assert (details["field"], details["expected"]) == ("/add_lines/0/quantity", 1)
    assert_sound(app)


def test_a_month_of_many_buys_no_tier_for_the_other_months(app: App, tools: Tools):
    add_products(
        app,
        price_row(
            "prod_seat", "100", billing_period="yearly", tier_mode="volume", quantity_scope="quote", tiers=VOLUME
        ),
    )
    seats = {"product_id": "prod_seat", "quantity": 500}
    spike = ramped((11, 1), (1, 1_000_000), quantity=1_000_000, product_id="prod_seat")
    priced = tools("quote_price", quote_id=new_quote(tools, seats, spike))
    assert [line["line_total"] for line in priced["line_pricing"]] == [50_000, 1_666_758.33]
    assert_adds_up(priced)


def test_every_machine_of_a_bundle_on_a_ramp_is_paid(app: App, tools: Tools):
    rows = [
        price_row("prod_hardware", "1000"),
        price_row("prod_service", "100", billing_period="yearly"),
        price_row("prod_both", "0", billing_period="yearly"),
    ]
    add_products(app, *rows, prod_both=["prod_hardware", "prod_service"])
    plain = new_quote(tools, {"product_id": "prod_both", "quantity": 50})
    rising = new_quote(tools, ramped((6, 10), (6, 50), quantity=50, product_id="prod_both"))
    totals = [tools("quote_price", quote_id=id_)["pricing"]["total"] for id_ in (plain, rising)]
    assert totals == [50 * 1000 + 50 * 100, 50 * 1000 + 30 * 100]


def test_policies_see_the_largest_quantity_and_what_a_unit_costs_for_the_term(store: Settings, tmp_path: Path):
    folder = Path(shutil.copytree(shipped("policies"), tmp_path / "own"))
    with (folder / "approvals.yaml").open("a", encoding="utf-8") as file:
        file.write("""
  - id: many
    when: any(line.quantity > 1000 for line in lines)
    then: {severity: approval_required, role: deal_desk, message: "Many."}
  - id: floor_price
    when: any(line.unit_price < 9.9 for line in lines)
    then: {severity: approval_required, role: finance, message: "Cheap."}
""")
    (folder / "approvals_test.yaml").unlink()
    app = open_app(store.model_copy(update={"policies_dir": folder}))
    tools = Tools(app)
    said = {}
    for name, line in {
        "plain": {**SEATS, "quantity": 2000, "discount_pct": 4},
        "ramped": {**ramped((12, None), quantity=2000), "discount_pct": 4},
        "rising": ramped((11, 1), (1, 2000), quantity=2000),
        "small": ramped((6, 1), (6, 1000), quantity=1000),
    }.items():
        priced = tools("quote_price", quote_id=new_quote(tools, line))
        unit_price = priced["line_pricing"][0]["unit_price"]
        said[name] = (unit_price, sorted(violation["policy_id"] for violation in priced["policy_violations"]))
    assert said == {
        "plain": (9.6, ["floor_price", "many"]),
        "ramped": (9.6, ["floor_price", "many"]),
        "rising": (9.99998, ["many"]),
        "small": (10, []),
    }
    app.close()


def test_the_unit_price_of_a_ramp_is_for_a_unit_that_is_there_all_the_time(tools: Tools):
    quote_id = new_quote(tools, ramped((12, 100), (12, 200), quantity=200), term_months=24)
    (priced,) = tools("quote_price", quote_id=quote_id, requested_discount_pct=5)["line_pricing"]
    assert (priced["quantity"], priced["base_unit_price"], priced["unit_price"]) == (200, 20, 19)
    (read,) = tools("quote_get", quote_id=quote_id)["line_items"]
    assert (read["quantity"], read["unit_price"], read["subtotal"]) == (200, 20, 3000)


def test_q19_what_the_pricer_refuses_comes_with_its_line_and_with_all_the_rest(app: App, tools: Tools):
    rows = [
        price_row("prod_gross", "10", tax_included=True),
        price_row("prod_net", "10"),
        price_row("prod_mixed", "0"),
        price_row("prod_inner", "0"),
        price_row("prod_outer", "0"),
    ]
    bundles = {"prod_mixed": ["prod_gross", "prod_net"], "prod_inner": ["prod_net"], "prod_outer": ["prod_inner"]}
    add_products(app, *rows, **bundles)
    lines = [
        SEATS,
        {**MACHINE, "ramp": [{"months": 12}]},
        {"product_id": "prod_mixed", "quantity": 1},
        {"product_id": "prod_outer", "quantity": 1},
    ]
    found = [
        ("VALIDATION_ERROR", "/line_items/1/ramp"),
        ("VALIDATION_ERROR", "/line_items/2/product_id"),
        ("CONFLICT", "/line_items/3/product_id"),
    ]
    call: dict[str, Any] = {"account_id": ACME, "term_months": 12}
    assert places(refused(tools, **call, line_items=lines)) == found
    more = [*lines, {"product_id": "prod_none", "quantity": 1}]
    assert sorted(places(refused(tools, **call, line_items=more))) == sorted(
        [*found, ("NOT_FOUND", "/line_items/4/product_id")]
    )
    quote_id = new_quote(tools)
    details = refused(tools, "quote_update", quote_id=quote_id, expected_version=1, add_lines=lines[1:])
    assert [problem["field"] for problem in details["problems"]] == [
        "/add_lines/0/ramp",
        "/add_lines/1/product_id",
        "/add_lines/2/product_id",
    ]
    assert [problem["line_id"] for problem in details["problems"]] == [f"{quote_id}-ql-{n}" for n in (2, 3, 4)]


def test_a_cost_beyond_all_bounds_is_a_refusal_also_beside_a_line_without_a_cost(app: App, tools: Tools):
    add_products(app, price_row("prod_dear", "0.01", cost="100000000"), price_row("prod_unknown", "1"))
    lines = [{"product_id": "prod_dear", "quantity": 1_000_000}, {"product_id": "prod_unknown", "quantity": 1}]
    details = refused(tools, account_id=ACME, line_items=lines)
    assert (details["field"], details["maximum"]) == ("/line_items", 10**12)
