"""A deal does not get smaller by being split, and a small percentage of much money is much money."""

import threading
from contextlib import suppress
from typing import Any

import pytest

from cpq.app import App
from cpq.base.settings import Settings
from cpq.services.quotes import policy_check
from cpq.services.quotes.deal_facts import other_quotes
from tests.support.approvals import ask, decide, let_lapse, person, priced_quote, race_calls, refused
from tests.support.engine import StillEffects, Tools, import_dicts, open_app, product_row
from tests.support.quotes import counted_statements, new_quote, sent_quote

OTHER = "acct_groeb_002"


def line(app: App, price: str, **product: Any) -> dict[str, Any]:
    """A line of one unit at this price in dollars and euros."""
    row = product_row(**product)
    import_dicts(app, "products", row)
    prices = [{"currency": currency, "unit_price": price, "cost": "0"} for currency in ("USD", "EUR")]
    import_dicts(app, "prices", *({"price_book": "list", "product_id": row["id"], **one} for one in prices))
    return {"product_id": row["id"], "quantity": 1}


def roles(tools: Tools, quote_id: str) -> list[str]:
    return tools("quote_price", quote_id=quote_id)["required_roles"]


@pytest.mark.parametrize("deal", [{"deal_id": "D-1"}, {}], ids=["one deal", "no deal"])
def test_six_quotes_of_99_990_are_one_deal(app: App, tools: Tools, deal: dict[str, str]):
    large = line(app, "99990")
    sent_quote(tools, large, **deal)
    quote_id = priced_quote(tools, 0, large, **deal)
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    [violation] = error["details"]["policy_violations"]
    assert (violation["policy_id"], violation["actual"], violation["required_approver_role"]) == (
        "whole_deal_deal_desk",
        199980,
        "deal_desk",
    )
    decide(person(app, "dee", "deal_desk"), ask(tools, quote_id, "deal_desk"))
    tools("quote_send", quote_id=quote_id, expected_version=1)
    third, fourth, fifth = (priced_quote(tools, 0, large, **deal) for _ in range(3))
    assert roles(tools, third) == ["deal_desk"]
    for one in (third, fourth, fifth):
        ask(tools, one, "deal_desk")
    assert roles(tools, priced_quote(tools, 0, large, **deal)) == ["vp_sales"]


def test_deals_under_several_names_add_up_for_their_account(app: App, tools: Tools):
    large = line(app, "99990")
    for number in range(5):
        sent_quote(tools, large, deal_id=f"D-{number}")
    quote_id = priced_quote(tools, 0, large, deal_id="D-9")
    [violation] = tools("quote_price", quote_id=quote_id)["policy_violations"]
    assert (violation["policy_id"], violation["actual"]) == ("whole_account_deal_desk", 599940)


def test_only_what_is_offered_or_was_sold_lately_counts(store: Settings, clock: StillEffects):
    app = open_app(store, clock)
    tools = Tools(app)
    large = line(app, "60000")
    new_quote(tools, large)
    priced_quote(tools, 0, large)
    quote_id = priced_quote(tools, 0, large)
    assert roles(tools, quote_id) == []
    declined, cancelled, accepted = (sent_quote(tools, large, deal_id=f"D-{n}") for n in range(3))
    tools("quote_decline", quote_id=declined, expected_version=1)
    tools("quote_cancel", quote_id=cancelled, expected_version=1)
    assert roles(tools, priced_quote(tools, 0, large, deal_id="D-0")) == []
    assert roles(tools, priced_quote(tools, 0, large, deal_id="D-1")) == []
    tools("quote_revise", quote_id=accepted, expected_version=1)
    tools("quote_update", quote_id=accepted, expected_version=2, deal_id="D-other")
    assert roles(tools, priced_quote(tools, 0, large, deal_id="D-2")) == ["deal_desk"]
    person(app, "rob", "sales_rep")("quote_accept", quote_id=accepted, expected_version=1)
    clock.advance(days=119)
    assert roles(tools, priced_quote(tools, 0, large, deal_id="D-2")) == ["deal_desk"]
    clock.advance(days=3)
    assert roles(tools, priced_quote(tools, 0, large, deal_id="D-2")) == []
    app.close()


def test_a_revision_that_nobody_decided_in_time_does_not_hide_what_was_sent(app: App, tools: Tools):
    large = line(app, "60000")
    first = sent_quote(tools, large, deal_id="D-1")
    quote_id = priced_quote(tools, 0, large, deal_id="D-1")
    tools("quote_revise", quote_id=first, expected_version=1)
    tools("quote_price", quote_id=first, requested_discount_pct=10)
    ask(tools, first)
    let_lapse(app, first)
    assert roles(tools, quote_id) == ["deal_desk"]


def test_a_quote_of_the_deal_for_another_account_is_not_of_this_account(app: App, tools: Tools):
    large = line(app, "99990")
    sent_quote(tools, large, account_id=OTHER, currency="USD", deal_id="D-1")
    for number in range(2, 6):
        sent_quote(tools, large, deal_id=f"D-{number}")
    quote_id = priced_quote(tools, 0, large, deal_id="D-1")
    found = tools("quote_price", quote_id=quote_id)["policy_violations"]
    assert [(one["policy_id"], one["actual"]) for one in found] == [("whole_deal_deal_desk", 199980)]


def test_a_version_that_another_account_has_counts_for_its_deal_whatever_its_revision_says(app: App, tools: Tools):
    large = line(app, "60000")
    sent = sent_quote(tools, large, account_id=OTHER, currency="USD", deal_id="D-1")
    quote_id = priced_quote(tools, 0, large, deal_id="D-1")
    assert roles(tools, quote_id) == ["deal_desk"]
    tools("quote_revise", quote_id=sent, expected_version=1)
    tools("quote_update", quote_id=sent, expected_version=2, deal_id="D-2")
    assert roles(tools, quote_id) == ["deal_desk"]
    assert roles(tools, priced_quote(tools, 0, large, deal_id="D-2")) == []


def test_quotes_of_one_deal_add_up_over_currencies_and_never_with_their_own_versions(app: App, tools: Tools):
    large = line(app, "60000")
    first = sent_quote(tools, large, deal_id="D-1")
    tools("quote_revise", quote_id=first, expected_version=1)
    assert roles(tools, first) == []
    quote_id = priced_quote(tools, 0, large, deal_id="D-1", currency="EUR")
    [violation] = tools("quote_price", quote_id=quote_id)["policy_violations"]
    assert (violation["actual"], violation["unit"]) == (124800, "USD")


def test_the_stamp_of_a_document_follows_the_other_quotes_of_its_deal(tools: Tools):
    large = line(tools.app, "99990")
    quote_id = priced_quote(tools, 0, large, deal_id="D-1")
    assert tools("quote_pdf", quote_id=quote_id)["stamp"] is None
    other = sent_quote(tools, large, deal_id="D-1")
    assert tools("quote_pdf", quote_id=quote_id)["stamp"] == "not_approved"
    tools("quote_cancel", quote_id=other, expected_version=1)
    assert tools("quote_pdf", quote_id=quote_id)["stamp"] is None


@pytest.mark.parametrize("deal", [{"deal_id": "D-1"}, {}], ids=["one deal", "no deal"])
@pytest.mark.parametrize("is_asked", [False, True], ids=["two sent", "one sent, one submitted"])
def test_two_quotes_of_a_deal_at_the_same_moment_see_each_other(
    app: App, tools: Tools, monkeypatch: pytest.MonkeyPatch, deal: dict[str, str], is_asked: bool
):
    large = line(app, "99990")
    first, second = (priced_quote(tools, 0, large, **deal) for _ in range(2))
    together = threading.Barrier(2)

    def looked_up_together(*arguments: Any) -> Any:
        found = other_quotes(*arguments)
        with suppress(threading.BrokenBarrierError):  # Where one waits for the other, they never meet here.
            together.wait(0.3)
        return found

    monkeypatch.setattr(policy_check, "other_quotes", looked_up_together)
    send = {"quote_id": second, "expected_version": 1}
    submit = {"quote_id": second, "justification": "A good deal."}
    rival = (tools, "approval_request", submit) if is_asked else (tools, "quote_send", send)
    answers = race_calls([(tools, "quote_send", {**send, "quote_id": first}), rival])
    assert "deal_desk" in str(answers)


def test_the_deal_is_read_in_one_statement_however_many_quotes_it_has(app: App, tools: Tools):
    small = line(app, "10")
    quote_id = priced_quote(tools, 0, small, deal_id="D-1")
    with counted_statements() as few:
        tools("quote_price", quote_id=quote_id, dry_run=True)
    for _ in range(5):
        sent_quote(tools, small, deal_id="D-1")
    with counted_statements() as many:
        tools("quote_price", quote_id=quote_id, dry_run=True)
    assert len(few) == len(many)
    assert len([one for one in many if "discount_total" in one and "sum(" in one]) == 1


def test_four_percent_of_a_very_large_deal_is_much_money(app: App, tools: Tools):
    quote_id = priced_quote(tools, 4, line(app, "450000"))
    assert tools("quote_price", quote_id=quote_id)["required_roles"] == ["deal_desk"]
    quote_id = priced_quote(tools, 4, line(app, "7000000"), account_id=OTHER, currency="USD")
    answer = tools("quote_price", quote_id=quote_id)
    assert answer["required_roles"] == ["vp_sales", "finance"]
    assert [one["policy_id"] for one in answer["policy_violations"] if "money" in one["policy_id"]] == [
        "discount_money_vp_sales",
        "discount_money_finance",
    ]


@pytest.mark.parametrize("change", [{"change_lines": 1}, {"deal_id": "D-other"}], ids=["smaller", "another deal"])
def test_a_revision_that_was_not_sent_does_not_hide_what_was(app: App, tools: Tools, change: dict[str, Any]):
    """The customer can still accept the version before it, and a revision can be cancelled."""
    large = line(app, "40000")
    first = sent_quote(tools, {**large, "quantity": 2}, deal_id="D-1")
    tools("quote_revise", quote_id=first, expected_version=1)
    if "change_lines" in change:
        change = {"change_lines": [{"line_id": f"{first}-ql-1", "quantity": 1}]}
    tools("quote_update", quote_id=first, expected_version=2, **change)
    tools("quote_price", quote_id=first)
    ask(tools, first)
    quote_id = priced_quote(tools, 0, large, deal_id="D-1")
    [violation] = tools("quote_price", quote_id=quote_id)["policy_violations"]
    assert (violation["policy_id"], violation["actual"]) == ("whole_deal_deal_desk", 120000)
