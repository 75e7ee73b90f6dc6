"""Quotes have numbers that people can say, and a number is accepted wherever an id is."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from cpq.app import App
from cpq.app.access import OPERATOR, Principal, Role
from cpq.base.settings import Settings
from cpq.domain.quotes.quote_number import is_number, written
from cpq.services import quotes
from cpq.services.quotes import repository
from cpq.services.quotes.composition import compose
from tests.support.engine import StillEffects, Tools, add_tenant, open_app, patient, write
from tests.support.quotes import ACME, SEATS, counted_statements, new_quote, sent_quote


def numbers_of(tools: Tools) -> list[str]:
    return [item["number"] for item in tools("quote_list")["items"]]


def test_a_quote_has_a_number_beside_its_id_in_every_answer(tools: Tools):
    made = tools("quote_create", account_id=ACME, line_items=[SEATS])
    quote_id, number = made["quote_id"], made["number"]
    assert re.fullmatch(r"2026-\d{6}", number)
    answers = [
        tools("quote_price", quote_id=quote_id),
        tools("approval_status", quote_id=quote_id),
        tools("approval_preview", quote_id=quote_id),
        tools("approval_history", quote_id=quote_id),
        tools("quote_update", quote_id=quote_id, expected_version=1, notes="More."),
        tools("quote_get", quote_id=quote_id)["quote"],
        tools("quote_list")["items"][0],
    ]
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    answers.append(tools("approval_request", quote_id=quote_id, justification="They grow."))
    answers.append(tools("approval_pending")["items"][0])
    assert {answer["number"] for answer in answers} == {number}


def test_numbers_count_up_and_a_refused_call_takes_none(tools: Tools):
    first = tools("quote_create", account_id=ACME, line_items=[SEATS])["number"]
    tools.error("quote_create", account_id=ACME, line_items=[{**SEATS, "product_id": "prod_none"}])
    again = [tools("quote_create", account_id=ACME, line_items=[SEATS], idempotency_key="k")["number"] for _ in "ab"]
    assert [int(number[5:]) - int(first[5:]) for number in again] == [1, 1]


def test_each_year_begins_its_own_numbers(store: Settings):
    clock = StillEffects(datetime(2026, 12, 31, 23, 59, tzinfo=UTC))
    app = open_app(store, clock)
    tools = Tools(app)
    new_quote(tools)
    clock.advance(minutes=1)
    new_quote(tools)
    new_quote(tools)
    assert numbers_of(tools)[:2] == ["2027-000002", "2027-000001"] or numbers_of(tools)[:2] == [
        "2027-000001",
        "2027-000002",
    ]
    assert numbers_of(tools)[2].startswith("2026-")
    app.close()


def test_tenants_count_apart(app: App):
    mine = Tools(app)
    new_quote(mine)
    add_tenant(app, "second")
    other = Principal("rob", "agent", frozenset({Role.AGENT}), "second")
    assert Tools(app, principal=other).error("quote_get", quote_id=numbers_of(mine)[0])["code"] == "NOT_FOUND"


def test_quotes_that_are_made_at_once_get_different_numbers(app: App):
    tools = Tools(app)
    with patient(), ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: tools("quote_create", account_id=ACME, line_items=[SEATS]), range(24)))
    places = sorted(int(answer["number"][5:]) for answer in made)
    assert places == list(range(places[0], places[0] + 24))


def test_a_number_costs_one_statement(tools: Tools):
    new_quote(tools)
    with counted_statements() as seen:
        new_quote(tools)
    assert sum("quote_counter" in statement for statement in seen) == 1


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("quote_get", {}),
        ("quote_price", {"requested_discount_pct": 3}),
        ("quote_update", {"expected_version": 1, "notes": "More."}),
        ("quote_cancel", {"expected_version": 1}),
        ("quote_clone", {}),
        ("approval_status", {}),
        ("approval_preview", {}),
        ("approval_history", {}),
    ],
)
def test_a_number_is_accepted_wherever_an_id_is(tools: Tools, tool: str, arguments: dict[str, Any]):
    quote_id = new_quote(tools)
    (number, *_) = numbers_of(tools)
    answer = tools(tool, quote_id=f" {number} ", **arguments)
    named = answer.get("quote_id") or answer["quote"]["id"]
    assert (named == quote_id) is (tool != "quote_clone")


def test_a_sent_quote_moves_on_by_its_number(tools: Tools):
    sent_quote(tools)
    (number, *_) = numbers_of(tools)
    tools("quote_revise", quote_id=number, expected_version=1)
    tools("quote_price", quote_id=number)
    tools("quote_send", quote_id=number, expected_version=2)
    assert tools.seller("quote_accept", quote_id=number, expected_version=2)["status"] == "accepted"
    assert (
        tools("get_quote", quote_id=number)["quote"]["quote_id"] == tools("quote_get", quote_id=number)["quote"]["id"]
    )


def test_the_same_request_by_id_and_by_number_is_one_request(tools: Tools):
    quote_id = new_quote(tools)
    (number, *_) = numbers_of(tools)
    first = tools("quote_clone", quote_id=quote_id, idempotency_key="k")
    again = tools("quote_clone", quote_id=number, idempotency_key="k")
    assert (again["quote_id"], again["replayed"]) == (first["quote_id"], True)


def test_an_unknown_number_is_not_found_as_it_was_given(tools: Tools):
    error = tools.error("quote_get", quote_id="2026-999999")
    assert (error["code"], error["message"]) == ("NOT_FOUND", "There is no quote '2026-999999'.")


def test_an_id_that_looks_like_a_number_comes_first(tools: Tools):
    new_quote(tools)
    (number, *_) = numbers_of(tools)
    draft = quotes.Draft(ACME, "USD", (quotes.DraftLine(1, "prod_pro_v2", 7),))

    def work(tx: Any) -> dict[str, Any]:
        repository.add_quote(tx, number, compose(tx, draft))
        return {}

    write(tools.app, work)
    assert tools("quote_get", quote_id=number)["quote"]["id"] == number


def test_a_search_finds_a_quote_by_the_start_of_its_number(app: App):
    tools = Tools(app)
    quote_id = new_quote(tools)
    (number, *_) = numbers_of(tools)
    page = app.read_unaudited(
        app.new_call(OPERATOR),
        lambda tx: quotes.list_quotes(tx, account_id=None, status=None, limit=5, page=1, query=number),
    )
    assert [item["id"] for item in page["items"]] == [quote_id]


def test_a_number_has_at_least_six_digits_after_its_year():
    assert (written(2026, 123), written(2026, 1_234_567)) == ("2026-000123", "2026-1234567")
    assert [is_number(text) for text in ("2026-000123", "Q-2026-000123", "2026-123", "2026-1234567")] == [
        True,
        False,
        False,
        True,
    ]
