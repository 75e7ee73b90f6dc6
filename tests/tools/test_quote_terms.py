"""How long a quote holds, how its term runs, ramps, and alternatives of which the customer takes one."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.app import App
from cpq.app.access import Principal, Role
from cpq.base.settings import Settings, shipped
from cpq.domain.quotes.lifecycle import end_of_day, local_day
from tests.support import engine
from tests.support.engine import Tools, open_app
from tests.support.quotes import (
    ACME,
    SEATS,
    assert_adds_up,
    assert_sound,
    new_quote,
    put_into,
    sent_quote,
    status_of,
    stored,
)

OIL = {"product_id": "prod_oil_screw", "quantity": 5}
SECOND = timedelta(seconds=1)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("account", "created", "last_day", "over"),
    [
        (ACME, "2026-11-16T04:59:59Z", "2026-12-15", "2026-12-16T05:00:00Z"),
        (ACME, "2026-11-16T05:00:00Z", "2026-12-16", "2026-12-17T05:00:00Z"),
        ("acct_cascade_005", "2026-06-10T06:00:00Z", "2026-07-09", "2026-07-10T07:00:00Z"),
        ("acct_hikari_020", "2026-11-16T14:59:59Z", "2026-12-16", "2026-12-16T15:00:00Z"),
        ("acct_hikari_020", "2026-11-16T15:00:00Z", "2026-12-17", "2026-12-17T15:00:00Z"),
        # The day the clocks go forward has 23 hours, the one they go back has 25.
        ("acct_fromagerie_014", "2026-02-27T12:00:00Z", "2026-03-29", "2026-03-29T22:00:00Z"),
        ("acct_fromagerie_014", "2026-09-25T12:00:00Z", "2026-10-25", "2026-10-25T23:00:00Z"),
        (ACME, "2026-10-02T12:00:00Z", "2026-11-01", "2026-11-02T05:00:00Z"),
    ],
)
def test_q23_a_quote_holds_to_the_end_of_its_last_day_where_the_account_is(
    store: Settings, account: str, created: str, last_day: str, over: str
):
    clock = engine.StillEffects(moment(created))
    app = open_app(store, clock)
    tools = Tools(app)
    quote_id, late = (sent_quote(tools, account_id=account) for _ in range(2))
    assert tools("quote_get", quote_id=quote_id)["quote"]["valid_until"] == last_day
    clock.advance(seconds=(moment(over) - SECOND - clock.now()).total_seconds())
    assert status_of(tools, quote_id) == "sent"
    assert tools.seller("quote_accept", quote_id=quote_id, expected_version=1)["status"] == "accepted"
    clock.advance(seconds=1)
    assert status_of(tools, late) == "expired"
    assert tools.error("quote_accept", quote_id=late, expected_version=1)["code"] == "CONFLICT"
    assert status_of(tools, quote_id) == "accepted"
    app.close()


zones = st.sampled_from(
    ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "Africa/Cairo", "America/Havana", "Australia/Lord_Howe"]
)


@given(st.dates(datetime(2000, 1, 1).date(), datetime(2037, 1, 1).date()), zones)  # noqa: DTZ001 - only the dates
def test_q23_the_first_moment_after_a_day_is_the_next_day_and_the_one_before_is_not(day, zone: str):
    over = end_of_day(day, zone)
    assert local_day(over, zone) > day
    assert local_day(over - timedelta(microseconds=1), zone) <= day


def test_q23_pricing_a_draft_on_a_later_day_moves_its_last_valid_day(store: Settings, clock: engine.StillEffects):
    app = open_app(store, clock)
    tools = Tools(app)
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id)
    clock.advance(days=40)
    assert status_of(tools, quote_id) == "draft"
    error = tools.error("quote_send", quote_id=quote_id, expected_version=1)
    assert error["details"]["next_call"] == {"tool": "quote_price", "arguments": {"quote_id": quote_id}}
    assert tools("quote_price", quote_id=quote_id)["outcome"] == "changed"
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["valid_until"] == "2027-01-25"
    app.close()


def test_q23_an_approved_quote_expires_too_and_cannot_be_sent_then(store: Settings, clock: engine.StillEffects):
    app = open_app(store, clock)
    tools = Tools(app)
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    put_into(app, quote_id, "approved")
    clock.advance(days=40)
    error = tools.error("quote_send", quote_id=quote_id, expected_version=1)
    assert (error["code"], error["details"]["status"]) == ("CONFLICT", "expired")
    call = error["details"]["next_call"]
    assert tools(call["tool"], **call["arguments"])["version"] == 2
    app.close()


def with_policies(store: Settings, tmp_path: Path, **terms: Any) -> App:
    """The engine with terms of its own."""
    folder = Path(shutil.copytree(shipped("policies"), tmp_path / "own"))
    text = (folder / "terms.yaml").read_text(encoding="utf-8")
    lines = [
        f"{line.split(':')[0]}: {terms[line.split(':')[0]]}" if line.split(":")[0] in terms else line
        for line in text.splitlines()
    ]
    (folder / "terms.yaml").write_text("\n".join(lines), encoding="utf-8")
    (folder / "terms_test.yaml").unlink()
    return open_app(store.model_copy(update={"policies_dir": folder}))


@pytest.mark.parametrize(
    ("mode", "end", "total"),
    [
        ("actual_days", "2026-12-31", 1500),
        ("actual_days", "2026-06-30", 743.84),
        ("actual_days", "2026-01-01", 4.11),
        ("thirty_360", "2026-06-30", 750),
        ("thirty_360", "2026-07-15", 812.5),
        ("whole_months_up", "2026-07-15", 875),
        ("whole_months", "2026-06-30", 750),
    ],
)
def test_a_term_that_ends_within_a_period_is_priced_as_the_terms_say(
    store: Settings, tmp_path: Path, mode: str, end: str, total: object
):
    app = with_policies(store, tmp_path, part_periods=mode)
    tools = Tools(app)
    quote_id = new_quote(tools, term_months=None, start_date="2026-01-01", end_date=end)
    priced = tools("quote_price", quote_id=quote_id)
    assert priced["pricing"]["total"] == total
    assert_adds_up(priced)
    assert tools("quote_get", quote_id=quote_id)["quote"]["end_date"] == end
    copied = tools("quote_clone", quote_id=quote_id)["quote_id"]
    assert tools("quote_get", quote_id=copied)["quote"]["end_date"] == end
    assert_sound(app)
    app.close()


def test_a_broken_term_is_refused_with_the_days_that_would_do_when_only_whole_months_count(tools: Tools):
    before = stored(tools.app)
    term = {"account_id": ACME, "line_items": [SEATS], "start_date": "2026-01-01"}
    error = tools.error("quote_create", **term, end_date="2026-07-15")
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/end_date")
    assert error["details"]["allowed"] == ["2026-06-30", "2026-07-31"]
    assert tools.error("quote_create", **term, end_date="2025-12-31")["details"]["field"] == "/end_date"
    assert tools.error("quote_create", **term, end_date="2026-01-15")["details"]["allowed"] == ["2026-01-31"]
    assert stored(tools.app) == before
    assert tools("quote_create", **term, end_date="2026-07-31")["line_items"][0]["subtotal"] == 875


def test_the_days_a_quote_holds_are_a_matter_of_policy(store: Settings, tmp_path: Path):
    app = with_policies(store, tmp_path, validity_days=14)
    tools = Tools(app)
    read = tools("quote_get", quote_id=new_quote(tools, account_id="acct_brightwater_015", currency="GBP"))["quote"]
    created = local_day(moment(read["created_at"]), "Europe/London")
    assert read["valid_until"] == (created + timedelta(days=14)).isoformat()
    app.close()


def test_a_ramp_prices_each_stretch_by_itself_and_comes_back(app: App, tools: Tools):
    ramp = [{"months": 12, "quantity": 100, "uplift_pct": 0}, {"months": 12, "quantity": 200, "uplift_pct": 10}]
    quote_id = new_quote(tools, {**SEATS, "quantity": 200, "ramp": ramp}, term_months=24)
    assert tools("quote_price", quote_id=quote_id)["pricing"]["total"] == 1000 + 2200
    assert tools("quote_get", quote_id=quote_id)["line_items"][0]["ramp"] == ramp
    tools("quote_update", quote_id=quote_id, expected_version=1, notes="n")
    copied = tools("quote_clone", quote_id=quote_id)["quote_id"]
    for id_ in (quote_id, copied):
        read = tools("quote_get", quote_id=id_)
        assert (read["line_items"][0]["ramp"], read["pricing"]["total"]) == (ramp, 3200)
    before = stored(app)
    error = tools.error("quote_update", quote_id=quote_id, expected_version=1, term_months=12)
    assert (error["code"], error["details"]["expected"], error["details"]["actual"]) == ("VALIDATION_ERROR", 12, 24)
    assert error["details"]["line_id"] == f"{quote_id}-ql-1"
    error = tools.error("quote_create", account_id=ACME, line_items=[{**OIL, "ramp": [{"months": 12}]}], term_months=12)
    assert error["code"] == "VALIDATION_ERROR"
    assert stored(app) == before
    assert_sound(app)


def alternatives(tools: Tools) -> str:
    """A shared line, and one more in each of two sets; more oil makes all of it cheaper."""
    return new_quote(tools, OIL, {**SEATS, "option_set": "small"}, {**OIL, "quantity": 10, "option_set": "large"})


def test_each_option_set_has_its_own_total_and_the_first_is_selected(app: App, tools: Tools):
    quote_id = alternatives(tools)
    priced = tools("quote_price", quote_id=quote_id)
    totals = [(one["option_set"], one["is_selected"], one["total"]) for one in priced["option_sets"]]
    assert totals == [("small", True, 5 * 189 + 1500), ("large", False, 15 * 172)]
    assert priced["pricing"]["total"] == 2445
    read = tools("quote_get", quote_id=quote_id)
    assert (read["quote"]["option_set"], read["pricing"]["total"]) == ("small", 2445)
    assert [line["option_set"] for line in read["line_items"]] == [None, "small", "large"]
    assert assert_sound(app) == 1


@pytest.mark.parametrize("discount", [0, "4.37"])
def test_accepting_one_option_set_voids_the_others(app: App, tools: Tools, discount: object):
    quote_id = alternatives(tools)
    priced = tools("quote_price", quote_id=quote_id, requested_discount_pct=discount)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    before = stored(app)
    for wrong in (None, "medium"):
        error = tools.error("quote_accept", quote_id=quote_id, expected_version=1, option_set=wrong)
        assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/option_set")
        assert error["details"]["allowed"] == ["small", "large"]
    assert stored(app) == before
    accepted = tools.seller("quote_accept", quote_id=quote_id, expected_version=1, option_set="large")
    assert accepted["total"] == priced["option_sets"][1]["total"]
    read = tools("quote_get", quote_id=quote_id)
    assert read["quote"]["option_set"] == "large"
    assert read["quote"]["reason"] == "option set large was accepted; small void"
    assert read["pricing"]["total"] == accepted["total"]
    assert read["line_items"][0]["subtotal"] == 5 * 172
    assert_sound(app)


def test_accepting_the_selected_option_set_keeps_its_total(app: App, tools: Tools):
    quote_id = alternatives(tools)
    tools("quote_price", quote_id=quote_id)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    assert tools.seller("quote_accept", quote_id=quote_id, expected_version=1, option_set="small")["total"] == 2445
    assert tools("quote_price", quote_id=quote_id)["option_sets"][0]["option_set"] == "small"
    assert_sound(app)


def test_a_quote_without_option_sets_takes_no_name_of_one(tools: Tools):
    quote_id = sent_quote(tools)
    error = tools.error("quote_accept", quote_id=quote_id, expected_version=1, option_set="small")
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/option_set")
    single = sent_quote(tools, {**SEATS, "option_set": "only"})
    assert tools.seller("quote_accept", quote_id=single, expected_version=1)["status"] == "accepted"


def test_q24_the_policy_looks_at_every_option_set(tools: Tools):
    dear, cheap = {**SEATS, "option_set": "a"}, {**SEATS, "option_set": "b", "discount_pct": 25}
    quote_id = new_quote(tools, dear, cheap)
    priced = tools("quote_price", quote_id=quote_id)
    assert [violation["policy_id"] for violation in priced["policy_violations"]] == ["discount_cap_vp_sales"]
    assert priced["approval_required"] is True
    assert tools.error("quote_send", quote_id=quote_id, expected_version=1)["code"] == "CONFLICT"


def test_q24_of_several_option_sets_the_worst_margin_speaks(app: App, tools: Tools):
    made = [engine.product_row() for _ in range(3)]
    engine.import_dicts(app, "products", *made)
    price = {"price_book": "list", "currency": "USD", "unit_price": "100"}
    costs = ("95", "98", "97")
    rows = [{**price, "product_id": row["id"], "cost": cost} for row, cost in zip(made, costs, strict=True)]
    engine.import_dicts(app, "prices", *rows)
    lines = [{"product_id": row["id"], "quantity": 1, "option_set": f"s{n}"} for n, row in enumerate(made)]
    manager = Tools(app, principal=Principal("maria", "human", frozenset({Role.SALES_MANAGER})))
    priced = manager("quote_price", quote_id=new_quote(tools, *lines))
    assert [(v["policy_id"], v["actual"]) for v in priced["policy_violations"]] == [("margin_floor_finance", 2)]


def test_what_excludes_each_other_may_be_offered_side_by_side(tools: Tools):
    products = [{"product_id": "prod_enterprise_v2", "quantity": 10}, {"product_id": "prod_starter_v2", "quantity": 10}]
    together = tools("quote_create", account_id=ACME, line_items=products)
    assert len(together["warnings"]) == 1
    lines = [{**line, "option_set": name} for line, name in zip(products, "ab", strict=True)]
    apart = tools("quote_create", account_id=ACME, line_items=lines)
    assert apart["warnings"] == []
    tools("quote_price", quote_id=apart["quote_id"])
    assert tools("quote_send", quote_id=apart["quote_id"], expected_version=1)["status"] == "sent"


def test_what_one_option_set_requires_the_other_does_not_supply(tools: Tools):
    lines = [
        {"product_id": "prod_dr1000", "quantity": 1, "option_set": "a"},
        {"product_id": "prod_fp1200", "quantity": 1, "option_set": "b"},
    ]
    created = tools("quote_create", account_id=ACME, line_items=lines)
    assert "prod_fp1200" in created["warnings"][0]
    tools("quote_price", quote_id=created["quote_id"])
    error = tools.error("quote_send", quote_id=created["quote_id"], expected_version=1)
    assert error["code"] == "CONFIGURATION_INVALID"
