"""What somebody changes in the database, past the engine, is noticed before a call relies on it."""

from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App, audit, recorded_state
from cpq.app.reconciliation import reconcile
from cpq.app.recorded_state import BY_ROW, OF_VERSION, Part
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.base.settings import Settings
from cpq.cli import audit_state
from cpq.services import approvals
from cpq.services.documents.file_store import Store, checksum_of
from cpq.services.quotes import expiry
from cpq.storage.schema import tables
from tests.support.approvals import ask, decide, person, priced_quote
from tests.support.engine import StillEffects, Tools, open_app
from tests.support.quotes import new_quote, record_again, sent_quote, stored


def tamper(app: App, statement: sa.Executable) -> None:
    """Change rows as somebody does who can write the database."""
    app.flush_audit()
    with app.database.writing(app.effects.monotonic() + 10) as connection:
        connection.execute(statement)


def of(table: sa.Table, quote_id: str) -> sa.ColumnElement[bool]:
    column = table.c.id if table is tables.quote else table.c.quote_id
    return (table.c.tenant_id == "main") & (column == quote_id)


def recorded(app: App, quote_id: str) -> recorded_state.Recorded:
    found = app.read_unaudited(app.new_call(), lambda tx: recorded_state.latest(tx, quote_id))
    assert found is not None
    return found


def read_back(app: App, quote_id: str) -> dict[str, str]:
    """The digests of all rows of a quote, as they are read from the database."""

    def work(tx: Tx) -> dict[str, str]:
        version = tables.quote_version
        numbers = list(tx.connection.scalars(sa.select(version.c.version).where(of(version, quote_id))))
        parts = [Part("quote"), *map(Part, BY_ROW)]
        parts += [Part(table, str(number)) for table in OF_VERSION for number in numbers]
        return {name: digest for part in parts for name, digest in recorded_state.read(tx, quote_id, part).items()}

    return app.read_unaudited(app.new_call(), work)


def approved_quote(app: App, tools: Tools) -> str:
    quote_id = priced_quote(tools)
    decide(person(app, "ann", "sales_manager"), ask(tools, quote_id))
    return quote_id


@pytest.fixture
def tools(app: App) -> Tools:
    return Tools(app)


def test_every_call_records_what_the_database_then_holds(app: App, tools: Tools):
    line = {"product_id": "prod_tk240v", "quantity": 2, "notes": "Bérit – ≥ 2 °C", "attributes": {"färg": "blå"}}
    quote_id = new_quote(tools, line, notes="Ünïcode 漢字", deal_id="D-1")
    steps: list[tuple[str, dict[str, Any]]] = [
        ("quote_price", {"requested_discount_pct": 10.5}),
        ("quote_pdf", {}),
    ]
    assert recorded(app, quote_id).parts == read_back(app, quote_id)
    for name, arguments in steps:
        tools(name, quote_id=quote_id, **arguments)
        assert recorded(app, quote_id).parts == read_back(app, quote_id), name
    made = ask(tools, quote_id)
    assert recorded(app, quote_id).parts == read_back(app, quote_id)
    decide(person(app, "ann", "sales_manager"), made)
    assert recorded(app, quote_id).parts == read_back(app, quote_id)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=0)
    assert recorded(app, quote_id).parts == read_back(app, quote_id)
    tools("quote_cancel", quote_id=quote_id, expected_version=2)
    tools.seller("quote_accept", quote_id=quote_id, expected_version=1)
    known = recorded(app, quote_id)
    assert known.parts == read_back(app, quote_id)
    assert {name.partition("/")[0] for name in known.parts} >= {"quote.status", "approval", "approval_vote", "document"}
    clone = tools("quote_clone", quote_id=quote_id)["quote_id"]
    assert recorded(app, clone).parts == read_back(app, clone)


def test_entries_about_a_quote_are_numbered_and_sealed_with_their_state(app: App, tools: Tools):
    quote_id = sent_quote(tools)
    app.flush_audit()
    with app.database.reading() as connection:
        entries = [one for one in audit.entries(connection, "main", sealed_only=True) if one.subject == quote_id]
        assert audit.verify(connection, "main").broken_at is None
    numbers = [recorded_state.parse(one).number for one in entries if one.state]
    assert numbers == [1, 2, 3]
    entry = tables.audit_entry
    forged = sa.func.replace(entry.c.state, '"number":2', '"number":3')
    tamper(app, sa.update(entry).where(entry.c.id == entries[1].id).values(state=forged))
    with app.database.reading() as connection:
        assert audit.verify(connection, "main").broken_at == entries[1].seq


def test_a_status_set_to_approved_is_not_sent(app: App, tools: Tools):
    quote_id = priced_quote(tools, 30)
    ask(tools, quote_id)
    tamper(app, sa.update(tables.quote).where(of(tables.quote, quote_id)).values(status="approved"))
    tamper(app, sa.update(tables.quote_version).where(of(tables.quote_version, quote_id)).values(status="approved"))
    before = stored(app)
    error = tools.error("quote_send", quote_id=quote_id, expected_version=1)
    assert error["code"] == "CONFLICT"
    assert error["details"]["differing"] == ["quote.status", "quote_version/1.status"]
    assert "cpq audit verify --state" in error["details"]["hint"]
    assert stored(app) == before


@pytest.mark.parametrize("table", ["approval", "approval_vote"])
def test_a_forged_approval_does_not_let_a_quote_out(app: App, tools: Tools, table: str):
    quote_id = priced_quote(tools, 30)
    made = ask(tools, quote_id)
    if table == "approval":
        row = tables.approval
        forged: sa.Executable = (
            sa.update(row).where(of(row, quote_id)).values(status="approved", decided_by="human:vera")
        )
    else:
        values = {"approval_id": made["approval_id"], "caller": "human:vera", "acted_as": "vp", "holder": "human:vera"}
        values |= {"tenant_id": "main", "decision": "approve", "at": app.effects.now()}
        forged = sa.insert(tables.approval_vote).values(values)
    tamper(app, forged)
    error = tools.error("approval_request", quote_id=quote_id, justification="Again.")
    assert {name.partition("/")[0] for name in error["details"]["differing"]} == {table}
    ann = person(app, "ann", "sales_manager")
    refused = ann.error(
        "approval_decide", approval_id=made["approval_id"], decision="approve", fingerprint=made["fingerprint"]
    )
    assert refused["details"]["differing"] == error["details"]["differing"]


CHANGES = [
    ("quote_version", {"notes": "40 % rebate."}, "quote_version/1.terms"),
    ("quote_version", {"payment_terms": "net_180"}, "quote_version/1.terms"),
    ("quote_line", {"notes": "Free."}, "quote_line/1"),
    ("quote_pricing", {"result": {}}, "quote_pricing/1"),
    ("quote", {"owner": "mallory"}, "quote.terms"),
]


@pytest.mark.parametrize(("table", "values", "part"), CHANGES)
def test_changed_terms_of_a_sent_version_are_neither_accepted_nor_printed(
    app: App, tools: Tools, table: str, values: dict[str, Any], part: str
):
    quote_id = sent_quote(tools)
    row: sa.Table = getattr(tables, table)
    tamper(app, sa.update(row).where(of(row, quote_id)).values(values))
    before = stored(app)
    accepted = tools.seller.error("quote_accept", quote_id=quote_id, expected_version=1)
    printed = tools.error("quote_pdf", quote_id=quote_id)
    for error in (accepted, printed):
        assert (error["code"], error["details"]["differing"]) == ("CONFLICT", [part])
    assert stored(app) == before


def test_a_document_row_that_points_at_a_forged_file_is_refused(app: App, tools: Tools):
    quote_id = sent_quote(tools)
    issued = tools("quote_pdf", quote_id=quote_id)
    forged = b"%PDF-1.7 forged"
    with Store(app.settings.home).incoming(forged):
        pass
    row = tables.document
    tamper(app, sa.update(row).where(of(row, quote_id)).values(checksum=checksum_of(forged)))
    part = f"document/{issued['document_id']}"
    for error in (
        tools.error("quote_pdf", quote_id=quote_id),
        tools.error("quote_verify_pdf", document=f"sha256:{checksum_of(forged)}"),
    ):
        assert (error["code"], error["details"]["differing"]) == ("CONFLICT", [part])


def test_a_change_that_was_not_made_by_a_call_stays_visible_after_later_calls(app: App, tools: Tools):
    """A later change of another part must not put the forged part on record."""
    quote_id = approved_quote(app, tools)
    pricing = tables.quote_pricing
    tamper(app, sa.update(pricing).where(of(pricing, quote_id)).values(result={}))
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=0)
    stale = recorded_state.differences(recorded(app, quote_id).parts, read_back(app, quote_id))
    assert stale == ["quote_pricing/1"]


def forget_states(app: App) -> None:
    """Leave the entries as they were before states were recorded."""
    tamper(app, sa.update(tables.audit_entry).values(state=None, answer=None))


def findings(app: App) -> list[str]:
    app.flush_audit()
    found = app.read_unaudited(app.new_call(), lambda tx: reconcile(tx, lambda _done, _total: None))
    return [one.message for one in found.findings]


def test_a_quote_from_before_states_were_recorded_goes_on_to_its_end(app: App, tools: Tools):
    priced, sent, asked = priced_quote(tools, 0), sent_quote(tools), priced_quote(tools)
    made, ann = ask(tools, asked), person(app, "ann", "sales_manager")
    forget_states(app)
    tools("quote_send", quote_id=priced, expected_version=1)
    assert recorded(app, priced).parts == read_back(app, priced)
    tools("quote_pdf", quote_id=priced)
    tools.seller("quote_accept", quote_id=priced, expected_version=1)
    tools("quote_revise", quote_id=sent, expected_version=1)
    tools.seller("quote_accept", quote_id=sent, expected_version=1)
    decide(ann, made)
    tools("quote_send", quote_id=asked, expected_version=1)
    assert findings(app) == []


def test_tokens_from_before_states_were_recorded_are_on_record_with_the_next_one(app: App):
    person(app, "ann", "sales_manager")
    person(app, "bob", "sales_rep")
    forget_states(app)
    person(app, "cy", "sales_rep")
    assert findings(app) == []


def test_a_name_that_begins_another_name_leaves_its_record_alone(app: App):
    for name in ("ann.b", "ann"):
        person(app, name, "sales_rep")
    assert findings(app) == []


def test_a_sweep_passes_a_changed_quote_over_and_expires_the_others(app: App, tools: Tools):
    changed, other = sent_quote(tools), sent_quote(tools)
    long_ago = app.effects.now().replace(year=2020)
    for quote_id in (changed, other):
        tamper(app, sa.update(tables.quote).where(of(tables.quote, quote_id)).values(expires_at=long_ago))
    record_again(app, other)
    assert expiry.sweep(app) == 1
    with app.database.reading() as connection:
        status = dict(connection.execute(sa.select(tables.quote.c.id, tables.quote.c.status)).all())
    assert (status[changed], status[other]) == ("sent", "expired")


def test_a_sweep_gets_past_the_oldest_quotes_when_they_are_changed(
    app: App, tools: Tools, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(expiry, "SWEEP_MAX", 2)
    monkeypatch.setattr(expiry.expire, "__kwdefaults__", {"limit": 2, "after": None})
    quotes = [sent_quote(tools) for _ in range(5)]
    for number, quote_id in enumerate(quotes):
        long_ago = app.effects.now().replace(year=2020 + number // 2)
        tamper(app, sa.update(tables.quote).where(of(tables.quote, quote_id)).values(expires_at=long_ago))
    for quote_id in quotes[3:]:
        record_again(app, quote_id)
    assert expiry.sweep(app) == 2


def test_a_sweep_of_requests_gets_past_quotes_that_are_changed(
    store: Settings, clock: StillEffects, monkeypatch: pytest.MonkeyPatch
):
    app = open_app(store, clock)
    tools = Tools(app)
    monkeypatch.setattr(approvals.sweep, "__kwdefaults__", {"quotes_max": 1})
    first, second = sorted(priced_quote(tools) for _ in range(2))
    for quote_id in (first, second):
        ask(tools, quote_id)
    tamper(app, sa.update(tables.approval).where(of(tables.approval, first)).values(justification="Forged."))
    clock.advance(days=60)
    approvals.sweep_if_due(app)
    row = tables.approval.c
    with app.database.reading() as connection:
        found = dict(connection.execute(sa.select(row.quote_id, row.status)).all())
    app.close()
    assert found == {first: "pending", second: "expired"}


def test_what_differs_is_accepted_by_its_name_and_nothing_else_is(app: App, tools: Tools):
    quote_id = sent_quote(tools)
    person(app, "ann", "sales_rep")
    audit_state.baseline(app)
    tamper(app, sa.update(tables.quote).where(of(tables.quote, quote_id)).values(owner="mallory"))
    tamper(app, sa.update(tables.token).values(role="admin"))
    tamper(app, sa.update(tables.product).values(name="Forged"))
    for given, name in (("rights", "tokens"), ("catalog", "prices")):
        assert [one for one in findings(app) if one.startswith(given)]
        assert audit_state.accept(app, given) == {"quotes": 0, "also": [name], "differing": []}
        assert not [one for one in findings(app) if one.startswith(given)]
    before = findings(app)
    with pytest.raises(CpqError, match="There is no quote 'Q-nothing'") as refused:
        audit_state.accept(app, "Q-nothing")
    assert (refused.value.code, findings(app)) == ("NOT_FOUND", before)
    assert audit_state.accept(app, quote_id)["quotes"] == 1
    assert findings(app) == []
