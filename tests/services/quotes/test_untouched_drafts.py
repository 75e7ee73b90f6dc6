"""Drafts that nobody touches expire after the time of the policies; a revision or a clone goes on with them."""

import shutil
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa

from cpq.base.settings import Settings, shipped
from cpq.cli import audit_state
from cpq.services import quotes
from cpq.storage.schema import tables
from tests.support.engine import StillEffects, Tools, open_app
from tests.support.quotes import new_quote, put_into, sent_quote, status_of

LONG = 30 + 180 + 1
"""Days: the validity of a draft, the time of the policies, and one more."""


def test_only_a_draft_that_nobody_touches_expires_and_says_why(store: Settings, clock: StillEffects):
    with closing(open_app(store, clock)) as app:
        tools = Tools(app)
        untouched, priced, changed, rejected = (new_quote(tools) for _ in range(4))
        sent = sent_quote(tools)
        put_into(app, rejected, "draft", "rejected")
        last_day = tools("quote_get", quote_id=untouched)["quote"]["valid_until"]
        clock.advance(days=LONG - 5)
        assert quotes.sweep_drafts(app) == 0
        tools("quote_price", quote_id=priced)
        tools("quote_update", quote_id=changed, expected_version=1, deal_id="D-1")
        clock.advance(days=5)
        assert [quotes.sweep_drafts(app), quotes.sweep_drafts(app)] == [2, 0]
        found = tools("quote_get", quote_id=untouched)["quote"]
        assert found["status"] == "expired"
        assert found["reason"] == f"nobody touched it for 180 days after {last_day}"
        listed = {one["id"]: one["status"] for one in tools("quote_list")["items"]}
        assert listed == {untouched: "expired", rejected: "expired", priced: "draft", changed: "draft", sent: "expired"}
        app.flush_audit()
        with app.database.reading() as connection:
            swept = sa.select(sa.func.count()).where(
                tables.audit_entry.c.operation == "quote_sweep", tables.audit_entry.c.caller == "agent:engine"
            )
            assert connection.scalar(swept) == 1
            told = sa.select(tables.event.c.subject).where(tables.event.c.name == "quote.expired")
            assert {*connection.scalars(told)} == {untouched, rejected}


def test_a_draft_whose_internal_notes_were_changed_was_touched(store: Settings, clock: StillEffects):
    with closing(open_app(store, clock)) as app:
        tools = Tools(app)
        noted, recorded = new_quote(tools), new_quote(tools)
        clock.advance(days=LONG - 5)
        tools("quote_update", quote_id=noted, expected_version=1, internal_notes="Ask Jo about the site.")
        audit_state.accept(app, recorded)
        clock.advance(days=5)
        assert quotes.sweep_drafts(app) == 1
        assert (status_of(tools, noted), status_of(tools, recorded)) == ("draft", "expired")
        clock.advance(days=180)
        assert quotes.sweep_drafts(app) == 1
        assert status_of(tools, noted) == "expired"


def test_an_expired_draft_goes_on_as_a_revision_or_a_clone(store: Settings, clock: StillEffects):
    with closing(open_app(store, clock)) as app:
        tools = Tools(app)
        quote_id = new_quote(tools)
        clock.advance(days=LONG)
        quotes.sweep_drafts(app)
        error = tools.error("quote_update", quote_id=quote_id, expected_version=1, deal_id="D-1")
        assert (error["code"], error["details"]["next_call"]["tool"]) == ("CONFLICT", "quote_revise")
        assert tools("quote_price", quote_id=quote_id)["stored"] is False
        assert status_of(tools, tools("quote_clone", quote_id=quote_id)["quote_id"]) == "draft"
        revised = tools("quote_revise", quote_id=quote_id, expected_version=1)
        assert (revised["status"], revised["version"]) == ("draft", 2)
        assert tools("quote_price", quote_id=quote_id)["stored"] is True
        assert tools("quote_send", quote_id=quote_id, expected_version=2)["status"] == "sent"


def test_drafts_stay_for_ever_where_the_policies_say_so(store: Settings, clock: StillEffects, tmp_path: Path):
    folder = tmp_path / "policies"
    shutil.copytree(shipped("policies"), folder)
    terms = folder / "terms.yaml"
    terms.write_text(terms.read_text(encoding="utf-8").replace("draft_days: 180", "draft_days: 0"), encoding="utf-8")
    with closing(open_app(store.model_copy(update={"policies_dir": folder}), clock)) as app:
        quote_id = new_quote(Tools(app))
        clock.advance(days=3000)
        assert quotes.sweep_drafts(app) == 0
        assert status_of(Tools(app), quote_id) == "draft"
