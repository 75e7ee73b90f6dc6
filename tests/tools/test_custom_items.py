"""Items of no catalogue beyond the first quote: renamed, compared, in files and forms; and ramps by their last days."""

import json
from pathlib import Path
from typing import Any

import pytest

from cpq.app import App, Command
from cpq.app.access import OPERATOR, Permission
from cpq.app.transaction import Tx
from cpq.base.row_files import read_rows
from cpq.services import quotes
from tests.support.approvals import ask, decide, person
from tests.support.engine import Tools
from tests.tools.test_special_terms import FREIGHT, MACHINE, SEATS, line_of, made, refused

SUNRISE = "acct_hikari_020"
"""An account in a region where services are marked up."""


def compared(app: App, quote_id: str) -> dict[str, Any]:
    found: list[Any] = []

    def work(tx: Tx) -> dict[str, Any]:
        found.append(quotes.compare(tx, quote_id, before=1, after=2))
        return {}

    app.write(app.new_call(OPERATOR), Command("compare", Permission.ADMINISTER), work)
    return found[0]


def test_g02_an_item_of_no_catalogue_gets_another_name_and_the_versions_say_so(app: App, tools: Tools):
    quote_id = made(tools, MACHINE, FREIGHT)
    tools("quote_price", quote_id=quote_id)
    decide(person(app, "dora", "deal_desk"), ask(tools, quote_id, "deal_desk"), "deal_desk")
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    item = {"name": "Freight and a crane", "description": "With a permit", "unit_price": 500, "tax_category": "service"}
    change = {"line_id": f"{quote_id}-ql-2", "custom": item}
    tools("quote_update", quote_id=quote_id, expected_version=2, change_lines=[change])
    line = line_of(tools, quote_id, 1)
    assert (line["product_name"], line["unit_price"], line["line_total"]) == ("Freight and a crane", 500, 1000)
    assert line["custom"] == {**item, "unit": "trip"}
    [changed] = compared(app, quote_id)["lines"]
    fields = {one["field"]: (one["before"], one["after"]) for one in changed["changes"]}
    assert fields["product_name"] == ("Freight to Dayton", "Freight and a crane")
    assert fields["description"] == (None, "With a permit")
    assert fields["tax_category"] == (None, "service")
    tools("quote_price", quote_id=quote_id)
    assert ask(tools, quote_id, "deal_desk")["status"] == "pending", "another item was never approved"


@pytest.mark.parametrize(
    ("place", "custom", "field"),
    [
        (1, {"name": "Another machine"}, "/change_lines/0/custom"),
        (2, {"name": " "}, "/change_lines/0/custom/name"),
        (2, {"colour": "red"}, "/change_lines/0/custom/colour"),
        (2, {"cost": -1}, "/change_lines/0/custom/cost"),
    ],
)
def test_g02_only_items_of_no_catalogue_are_renamed(tools: Tools, place: int, custom: dict[str, Any], field: str):
    quote_id = made(tools, MACHINE, FREIGHT)
    change = {"line_id": f"{quote_id}-ql-{place}", "custom": custom}
    details = refused(tools, "quote_update", quote_id=quote_id, expected_version=1, change_lines=[change])
    assert details["field"] == field


def test_g02_no_pricing_rule_changes_a_price_that_was_typed_in(tools: Tools):
    call_out = {"custom": {"name": "Call-out", "unit_price": 90000, "category": "services", "cost": 1}, "quantity": 1}
    quote = tools("quote_create", account_id=SUNRISE, line_items=[call_out])
    assert quote["line_items"][0]["subtotal"] == 90000
    assert tools("quote_price", quote_id=quote["quote_id"])["line_pricing"][0]["line_total"] == 90000


@pytest.mark.parametrize("name", ["lines.json", "lines.csv"])
def test_g02_a_file_of_quotes_holds_items_of_no_catalogue(app: App, tools: Tools, tmp_path: Path, name: str):
    custom = {"name": "Freight", "unit_price": "480", "cost": "400", "tax_category": "service"}
    file = tmp_path / name
    if name.endswith("json"):
        lines = [{"product_id": "prod_qmb15", "quantity": 1}, {"custom": custom, "quantity": 2}]
        file.write_text(json.dumps([{"id": "F-1", "account_id": "acct_acme_001", "line_items": lines}]))
    else:
        quoted = json.dumps(custom).replace('"', '""')
        rows = ["id,account_id,product_id,quantity,custom", "F-1,acct_acme_001,prod_qmb15,1,", f'F-1,,,2,"{quoted}"']
        file.write_text("\n".join(rows) + "\n")
    _import(app, file)
    line = line_of(tools, "F-1", 1)
    assert (line["product_id"], line["product_name"], line["line_total"]) == ("custom:2", "Freight", 960)
    assert line["custom"]["tax_category"] == "service"


def _import(app: App, file: Path) -> None:
    def work(tx: Tx) -> dict[str, Any]:
        quotes.import_quotes(tx, read_rows(file, "quotes"))
        return {}

    app.write(app.new_call(OPERATOR), Command("import_quotes", Permission.ADMINISTER), work)


UNTIL = [{"until": "2027-03-31", "discount_pct": 100}, {"until": "2027-12-31"}]
DATES = {"term_months": 12, "start_date": "2027-01-01"}


def test_g06_a_segment_names_its_last_day(tools: Tools):
    by_day = made(tools, {**SEATS, "ramp": UNTIL}, **DATES)
    by_months = made(tools, {**SEATS, "ramp": [{"months": 3, "discount_pct": 100}, {"months": 9}]}, **DATES)
    found = [line_of(tools, id_) for id_ in (by_day, by_months)]
    assert found[0]["ramp"] == found[1]["ramp"]
    assert found[0]["line_total"] == found[1]["line_total"]
    change = {"line_id": f"{by_day}-ql-1", "ramp": [{"until": "2027-06-30", "quantity": 5}, {"months": 6}]}
    tools("quote_update", quote_id=by_day, expected_version=1, change_lines=[change])
    assert [one["months"] for one in line_of(tools, by_day)["ramp"]] == [6, 6]
    own = {**SEATS, "start_date": "2027-02-01", "term_months": 3, "ramp": [{"until": "2027-02-28"}, {"months": 2}]}
    assert [one["months"] for one in line_of(tools, made(tools, own, **DATES))["ramp"]] == [1, 2]


@pytest.mark.parametrize(
    ("ramp", "dates", "field"),
    [
        ([{"until": "2027-03-30"}, {"months": 9}], DATES, "/line_items/0/ramp/0/until"),
        ([{"until": "2026-12-31"}, {"months": 9}], DATES, "/line_items/0/ramp/0/until"),
        ([{"months": 6}, {"until": "2027-06-30"}], DATES, "/line_items/0/ramp/1/until"),
        ([{"until": "2027-03-31"}], DATES, "/line_items/0/ramp"),
        ([{"until": "2027-03-31"}, {"months": 9}], {"term_months": 12}, "/line_items/0/ramp/0/until"),
        ([{"until": "2027-03-31", "months": 3}, {"months": 9}], DATES, "/line_items/0/ramp/0"),
        ([{"quantity": 3}, {"months": 9}], DATES, "/line_items/0/ramp/0"),
    ],
    ids=["within a month", "before the start", "not after the one before", "does not tile", "no start", "both", "none"],
)
def test_g06_days_that_do_not_tile_the_term_are_refused(tools: Tools, ramp: list[Any], dates: Any, field: str):
    line = {**SEATS, "ramp": ramp}
    details = refused(tools, "quote_create", account_id="acct_acme_001", line_items=[line], **dates)
    assert details["field"] == field
