"""The queue shows exactly what a person may decide, in the order they asked for, and no more than they may see."""

import csv
import io
import re
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App
from cpq.app.access import Principal, Role
from cpq.app.transaction import Tx
from cpq.base.settings import Settings
from cpq.services import approvals
from cpq.storage.schema.tables import account
from tests.support import engine
from tests.support.approvals import ask, decide, person, priced_quote, with_roles
from tests.support.console import Console
from tests.support.engine import Tools, open_app
from tests.support.quotes import ACME

BIG = {"product_id": "prod_qmb15", "quantity": 20}


def queue_of(who: Tools, **asked: Any) -> dict[str, Any]:
    found: Any = who.app.read_unaudited(who.app.new_call(who.principal), lambda tx: approvals.queue_page(tx, **asked))
    return found


def openings_of(who: Tools, quote_id: str) -> list[Any]:
    return who.app.read_unaudited(who.app.new_call(who.principal), lambda tx: approvals.openings(tx, quote_id))


def lend(who: Tools, role: str, to: str, hours: int = 10, **scope: Any) -> None:
    until = (who.app.effects.now() + timedelta(hours=hours)).isoformat()
    who("approval_delegate", role=role, to=to, until=until, **scope)


@pytest.fixture
def still(store: Settings, tmp_path: Path, clock: engine.StillEffects):
    settings = with_roles(store, tmp_path / "policies", "backup: {legal: vp_sales, finance: vp_sales}")
    app = open_app(settings, clock)
    yield app
    app.close()


def test_the_owner_behind_an_agent_is_seen_sorted_searched_and_exported(console: Console):
    """What the user saw: five deals "by bot (agent)", and no word about which seller they belong to."""
    dana = console.signed_in("dana", "sales_manager")
    made = {}
    for owner in ("Zoe", "adam", None):
        agent = Principal(f"bot{owner}", "agent", frozenset({Role.AGENT}), acts_for=owner)
        made[owner] = priced_quote(Tools(console.app, principal=agent))
        ask(Tools(console.app, principal=agent), made[owner])
    page = dana.get("/console/queue?sort=owner").text
    assert re.findall(r'class="owner" data-label="Owner"><bdi>([^<]*)', page) == ["adam", "Zoe", "none"]
    assert '<option value="owner" selected>By owner' in page
    found = dana.get("/console/queue?q=zoe&format=csv").content.decode("utf-8-sig")
    [row] = csv.DictReader(io.StringIO(found))
    assert (row["quote_id"], row["owner"]) == (made["Zoe"], "Zoe")
    assert re.fullmatch(r"\d{4}-\d{6}", row["number"])
    listed = dana.get("/console/quotes?sort=owner&format=csv").content.decode("utf-8-sig")
    assert [one["owner"] for one in csv.DictReader(io.StringIO(listed))] == ["adam", "Zoe", ""]


def test_the_queue_of_everybody_is_what_they_may_decide(still: App, clock: engine.StillEffects):
    """Roles, escalation, stand-ins, loans with their scope, own requests and ties: the same as when it is decided."""
    agent = Tools(still)
    dana = person(still, "dana", "sales_manager")
    crowd = [
        dana,
        person(still, "dirk", "sales_manager"),
        person(still, "victor", "vp_sales"),
        person(still, "fiona", "finance", "sales_rep"),
        person(still, "rosa", "sales_rep"),
        person(still, "dora", "deal_desk"),
        person(still, "alex", "admin"),
        agent,
    ]
    dirk, victor, fiona, rosa, dora = crowd[1:6]
    asked = [(agent, 10), (dana, 10), (rosa, 25), (fiona, 33), (dora, 8), (victor, 12)]
    quote_ids = []
    for maker, discount in asked:
        quote_ids.append(priced_quote(maker, discount))
        ask(maker, quote_ids[-1], "vp_sales" if discount > 20 else "sales_manager")
    quote_ids.append(priced_quote(agent, 3, payment_terms="net_90"))
    ask(agent, quote_ids[-1], "legal")
    lend(dana, "sales_manager", "dora")
    lend(dirk, "sales_manager", "fiona", account_id=ACME)
    lend(victor, "vp_sales", "dirk", quote_id=quote_ids[2])
    for hours in (0, 3):
        clock.advance(hours=hours)
        for who in crowd:
            items = queue_of(who, limit=100)["items"]
            openings = [(quote_id, one) for quote_id in quote_ids for one in openings_of(who, quote_id)]
            assert openings
            able = {one["approval_id"]: quote_id for quote_id, one in openings if one["acts_as"]}
            assert [item["quote_id"] for item in items if item["approval_id"] not in able] == []
            assert sorted(item["quote_id"] for item in items) == sorted(set(able.values())), who.principal.name
            assert all(item["acts_as"] for item in items)
            everything = queue_of(who, scope="all", limit=100)
            for item in everything["items"]:
                acts_as = item["acts_as"] or ""
                assert (item["is_delegated"], item["is_stand_in"]) == ("delegated by" in acts_as, acts_as == "stand-in")
                asked = [one["approver_role"] for quote_id, one in openings if quote_id == item["quote_id"]]
                assert sorted([item["approver_role"], *item["also_asked"]]) == sorted(asked)
            waiting = {quote_id for quote_id, _ in openings}
            assert sorted(item["quote_id"] for item in everything["items"]) == sorted(waiting), "one row for each"
            counts = everything["counts"]
            assert counts["own"] + counts["delegated"] == len(set(able.values()))
            assert counts["all"] == len(waiting)
            delegated = queue_of(who, scope="delegated", limit=100)["items"]
            assert len(delegated) == counts["delegated"]
            assert all(item["acts_as"].startswith("delegated by") for item in delegated)


def test_whoever_has_spoken_is_not_waited_for(store: Settings, tmp_path: Path, clock: engine.StillEffects):
    """A quorum of all: after a word nothing waits for whoever said it, nor for those who can only repeat it."""
    with closing(open_app(with_roles(store, tmp_path / "policies", "quorum: {sales_manager: all}"), clock)) as app:
        agent, dora = Tools(app), person(app, "dora", "deal_desk")
        dana, dirk, dave = (person(app, name, "sales_manager") for name in ("dana", "dirk", "dave"))
        quote_id = priced_quote(agent, 10)
        answer = ask(agent, quote_id)
        for lender in (dana, dirk):
            lend(lender, "sales_manager", "dora")
        seen = []
        for speaker in (dana, dirk, dave):
            for who in (dana, dirk, dave, dora):
                able = [one["acts_as"] for one in openings_of(who, quote_id) if one["acts_as"]]
                shown = queue_of(who)
                assert len(shown["items"]) == shown["counts"]["own"] + shown["counts"]["delegated"] == len(able)
                if who is dora:
                    seen += [item["acts_as"] for item in shown["items"]]
            decide(speaker, answer)
        assert seen == ["delegated by dana", "delegated by dirk"]


def test_a_word_that_is_not_the_last_and_a_loan_are_news(store: Settings, tmp_path: Path, clock: engine.StillEffects):
    """The live queue asks every few seconds whether the stamp is still the same."""
    with closing(open_app(with_roles(store, tmp_path / "policies", "quorum: {sales_manager: all}"), clock)) as app:
        agent, dora = Tools(app), person(app, "dora", "deal_desk")
        dana, dirk = (person(app, name, "sales_manager") for name in ("dana", "dirk"))
        answer = ask(agent, priced_quote(agent, 10))

        def begin_loan() -> None:
            lend(dirk, "sales_manager", "dora")

        def end_loan() -> None:
            clock.advance(seconds=1)
            dirk("approval_delegate", role="sales_manager", to="dora")

        for news in (lambda: decide(dana, answer), begin_loan, end_loan):
            stamp = queue_of(dora)["stamp"]
            assert queue_of(dora)["stamp"] == stamp
            news()
            assert queue_of(dora)["stamp"] != stamp


def test_the_page_shows_who_delegated_the_role(console: Console):
    dora = console.signed_in("dora", "deal_desk")
    ask(console.tools, priced_quote(console.tools))
    chip = '<span class="chip">delegated by dana</span>'
    assert chip not in dora.get("/console/queue?scope=all").text
    lend(person(console.app, "dana", "sales_manager"), "sales_manager", "dora")
    assert chip in dora.get("/console/queue?scope=all").text


def test_a_sales_rep_stays_in_the_scope_they_chose(console: Console):
    rosa = console.signed_in("rosa", "sales_rep")
    ask(console.tools, priced_quote(console.tools))
    for asked, kept in (("?scope=mine", "scope=mine"), ("", "scope=all")):
        live = re.search(r'hx-get="(/console/queue\?[^"]*)"', rosa.get(f"/console/queue{asked}").text)
        assert live
        assert kept in live[1]


def test_a_loan_bars_only_what_was_asked_before_its_end(still: App, clock: engine.StillEffects):
    """Also when two loans end together, and when somebody else's request is older than the end of all of them."""
    agent, dana = Tools(still), person(still, "dana", "sales_manager")
    dora, lee = person(still, "dora", "deal_desk"), person(still, "lee", "legal", "sales_rep")

    def asked() -> list[str]:
        ids = [priced_quote(maker, 10) for maker in (agent, dora, lee, agent)]
        lee("quote_price", quote_id=ids[-1], requested_discount_pct=9)
        for quote_id in ids:
            ask(agent, quote_id)
        return ids

    for to in ("dora", "lee"):
        lend(dana, "sales_manager", to, hours=1)
    before = asked()
    clock.advance(hours=1)
    after = asked()
    shown = {item["quote_id"] for item in queue_of(dana)["items"]}
    assert shown == {before[0], *after}
    assert shown == {quote_id for quote_id in before + after if openings_of(dana, quote_id)[0]["acts_as"]}


def test_oldest_first_or_biggest_first_whatever_the_currency(still: App, clock: engine.StillEffects):
    agent, dana = Tools(still), person(still, "dana", "sales_manager")
    made = {}
    for name, terms in {
        "small": {},
        "yen": {"account_id": "acct_hikari_020", "currency": "JPY"},
        "euro": {"account_id": "acct_rheinstahl_010", "currency": "EUR"},
        "dollar": {},
    }.items():
        lines = () if name == "small" else (BIG,) if name != "yen" else ({**BIG, "quantity": 1},)
        made[priced_quote(agent, 10, *lines, **terms)] = name
        ask(agent, list(made)[-1])
        clock.advance(minutes=1)
    names = {
        sort: [made[item["quote_id"]] for item in queue_of(dana, sort=sort)["items"]] for sort in ("oldest", "biggest")
    }
    assert names["oldest"] == ["small", "yen", "euro", "dollar"]
    assert names["biggest"] == ["euro", "dollar", "yen", "small"]


def test_pages_and_words_find_their_part(still: App):
    agent, dana = Tools(still), person(still, "dana", "sales_manager")
    ids = [priced_quote(agent, 10) for _ in range(5)]
    ids.append(priced_quote(agent, 10, account_id="acct_groeb_002"))
    for quote_id in ids:
        ask(agent, quote_id)
    pages = [queue_of(dana, limit=4, page=page) for page in (1, 2)]
    assert [len(page["items"]) for page in pages] == [4, 2]
    assert pages[0]["pagination"] == {"total": 6, "page": 1, "per_page": 4, "has_more": True}
    assert [item["quote_id"] for item in queue_of(dana, query="HONEY groeb")["items"]] == [ids[-1]]
    assert [item["quote_id"] for item in queue_of(dana, query=ids[2])["items"]] == [ids[2]]
    assert queue_of(dana, query="100%_")["items"] == []
    assert queue_of(dana, role="legal")["items"] == []


@pytest.mark.parametrize("name", ["ÖLWERKE Łódź", "Ölwerke ŁÓDŹ", "ölwerke łódź"])
def test_words_are_found_in_capitals_of_any_alphabet(still: App, name: str):
    agent, dana = Tools(still), person(still, "dana", "sales_manager")
    quote_id = priced_quote(agent, 10)
    ask(agent, quote_id)

    def rename(tx: Tx) -> dict[str, Any]:
        tx.connection.execute(sa.update(account).where(account.c.id == ACME).values(name=name))
        return {}

    engine.write(still, rename)
    for query, count in (("ölwerke", 1), ("ÖLWERKE łódź", 1), ("Łódź öl", 1), ("olwerke", 0), ("%ł_", 0)):
        assert len(queue_of(dana, query=query)["items"]) == count, query
        assert agent("account_search", query=query)["pagination"]["total"] == count, query


def test_margin_and_discount_are_those_of_the_quote(still: App):
    agent, dana = Tools(still), person(still, "dana", "sales_manager")
    lee = person(still, "lee", "legal")
    quote_id = priced_quote(agent, 10, payment_terms="net_90")
    ask(agent, quote_id)
    item = next(item for item in queue_of(dana)["items"] if item["quote_id"] == quote_id)
    assert (item["discount_pct"], item["margin_pct"]) == (10, 80)
    assert queue_of(lee)["items"][0]["margin_pct"] is None


def test_what_is_decided_expired_or_moved_is_gone(still: App, clock: engine.StillEffects):
    agent, dana = Tools(still), person(still, "dana", "sales_manager")
    first, second, third = (priced_quote(agent, 10) for _ in range(3))
    answers = [ask(agent, quote_id) for quote_id in (first, second, third)]
    decide(dana, answers[0])
    agent("quote_revise", quote_id=second, expected_version=1)
    assert [item["quote_id"] for item in queue_of(dana, scope="all")["items"]] == [third]
    stamp = queue_of(dana)["stamp"]
    clock.advance(hours=4)
    assert queue_of(dana, scope="all")["items"] == []
    assert queue_of(dana)["stamp"] != stamp


def test_the_page_says_when_nothing_is_new(console: Console):
    dana = console.signed_in("dana", "sales_manager")
    ask(console.tools, priced_quote(console.tools))
    page = dana.get("/console/queue").text
    assert page.count("<tr data-open>") == 1
    stamp = re.search(r"live=([0-9a-f]+)", page)
    assert stamp
    live = {"HX-Request": "true"}
    assert dana.get(f"/console/queue?live={stamp[1]}", headers=live).status_code == 204
    ask(console.tools, priced_quote(console.tools))
    news = dana.get(f"/console/queue?live={stamp[1]}", headers=live)
    assert news.status_code == 200
    assert news.text.count("<tr data-open>") == 2
    assert "<html" not in news.text
    assert '<b id="count-mine" hx-swap-oob="true">2</b>' in news.text


def test_whoever_may_not_see_margins_is_shown_none(console: Console):
    ask(console.tools, priced_quote(console.tools, 10, payment_terms="net_90"))
    for name, role, sees in (("dana", "sales_manager", True), ("lee", "legal", False), ("rosa", "sales_rep", False)):
        visitor = console.signed_in(name, role)
        queue = visitor.get("/console/queue?scope=all").text
        quote_id = re.search(r"/console/quotes/(Q-[a-z0-9]+)", queue)
        assert quote_id
        for page in (queue, visitor.get(f"/console/quotes/{quote_id[1]}").text):
            assert ("80.0\u202f%" in page) is sees
            assert ("argin" in page) is sees
