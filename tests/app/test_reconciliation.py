"""`cpq audit verify --state` names every row that somebody changed in the database."""

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App, Command
from cpq.app.access import Permission, Principal, Role
from cpq.app.reconciliation import StateReport, reconcile
from cpq.app.transaction import Tx
from cpq.services import approvals
from cpq.services.documents import changed_files
from cpq.services.documents.file_store import Store
from cpq.storage.schema import tables
from tests.support.approvals import ask, decide, person, priced_quote
from tests.support.engine import Tools, import_dicts
from tests.support.quotes import record_again, sent_quote


@pytest.fixture
def tools(app: App) -> Tools:
    return Tools(app)


def tamper(app: App, *statements: sa.Executable) -> None:
    app.flush_audit()
    with app.database.writing(app.effects.monotonic() + 10) as connection:
        for statement in statements:
            connection.execute(statement)


def report(app: App) -> StateReport:
    return app.read_unaudited(app.new_call(), lambda tx: reconcile(tx, lambda _done, _total: None))


def parts(app: App) -> list[str]:
    return [one.part for one in report(app).findings]


def deal(app: App, tools: Tools) -> str:
    """A quote with everything: approved, voted on, sent and printed."""
    quote_id = priced_quote(tools)
    decide(person(app, "ann", "sales_manager"), ask(tools, quote_id))
    tools("quote_send", quote_id=quote_id, expected_version=1)
    tools("quote_pdf", quote_id=quote_id)
    return quote_id


def test_what_calls_wrote_agrees_with_the_record(app: App, tools: Tools):
    deal(app, tools)
    price = {"product_id": "prod_tk240v", "currency": "USD", "unit_price": "12.50"}
    import_dicts(app, "prices", {**price, "price_book": "list", "billing_period": "one_time"})
    found = report(app)
    assert found.findings == []
    assert (found.quotes, found.unchecked_quotes, found.unchecked_answers) == (1, 0, 0)
    assert found.are_rights_checked
    assert found.is_catalog_checked
    assert found.answers > 5


FORGERIES: list[tuple[str, dict[str, Any], str]] = [
    ("quote", {"status": "approved"}, "quote.status"),
    ("quote_version", {"status": "approved"}, "quote_version/1.status"),
    ("quote_version", {"notes": "Net 180."}, "quote_version/1.terms"),
    ("quote_line", {"product_name": "Another"}, "quote_line/1"),
    ("quote_pricing", {"request": {}}, "quote_pricing/1"),
    ("approval", {"justification": "Fine."}, "approval/"),
    ("approval_vote", {"comment": "Yes!"}, "approval_vote/"),
    ("document", {"checksum": "0" * 64}, "document/"),
    ("token", {"role": "admin"}, "token/"),
    ("principal", {"kind": "agent"}, "principal/ann"),
    ("price", {"unit_price": 1}, "price/"),
    ("account", {"tax_status": "exempt"}, "account/"),
    ("idempotency", {"answer": {"total": 1}}, "idempotency"),
]


def test_every_forged_row_is_named(app: App, tools: Tools):
    deal(app, tools)
    for table, values, part in FORGERIES:
        row: sa.Table = getattr(tables, table)
        with app.database.reading() as connection:
            mine = row.c.tenant_id == "main"
            if table == "account":
                mine &= row.c.tax_status == "taxable"
            if table == "idempotency":
                mine &= row.c.operation == "quote_send"
            before = connection.execute(sa.select(row).where(mine).limit(1)).one()
        key = sa.and_(*(column == before._mapping[column.name] for column in row.primary_key))
        tamper(app, sa.update(row).where(key).values(values))
        found = [one for one in parts(app) if one != "audit_entry"]
        assert len(found) == 1, (table, found)
        assert found[0].startswith(part)
        old = {name: before._mapping[name] for name in values}
        tamper(app, sa.update(row).where(key).values(old))
        assert parts(app) == [], table


def test_a_forged_order_delegation_and_held_decision_are_named(app: App, tools: Tools):
    quote_id = deal(app, tools)
    person(app, "rita", "sales_rep")("quote_accept", quote_id=quote_id, expected_version=1)
    dora = person(app, "dora", "sales_manager")
    until = (app.effects.now() + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    dora("approval_delegate", role="sales_manager", to="ann", until=until)
    waiting = ask(tools, priced_quote(tools))
    call = app.new_call(Principal("dora", "human", frozenset({Role.SALES_MANAGER})))

    def hold(tx: Tx) -> dict[str, Any]:
        fingerprint = waiting["fingerprint"]
        held = approvals.hold(tx, waiting["approval_id"], "reject", fingerprint=fingerprint, comment="No.")
        return {"held": held.id}

    app.write(call, Command("approval_hold", Permission.DECIDE, {}), hold)
    assert parts(app) == []
    forgeries: tuple[tuple[sa.Table, dict[str, Any]], ...] = (
        (tables.sales_order, {"net": 1}),
        (tables.sales_order, {"evidence": "They said so."}),
        (tables.delegation, {"to_name": "rita"}),
        (tables.held_decision, {"decision": "approve"}),
    )
    for table, values in forgeries:
        with app.database.reading() as connection:
            row = connection.execute(sa.select(table)).one()
        tamper(app, sa.update(table).values(values))
        [found] = parts(app)
        assert found.startswith(f"{table.name}/")
        tamper(app, sa.update(table).values({name: row._mapping[name] for name in values}))
    assert parts(app) == []


def test_forged_and_deleted_rows_are_told_apart(app: App, tools: Tools):
    quote_id = deal(app, tools)
    vote, link = tables.approval_vote, tables.acceptance_link
    forged = {"tenant_id": "main", "id": "LNK-1", "quote_id": quote_id, "version": 1, "fingerprint": "f"}
    forged |= {
        "code_hash": "c",
        "created_by": "human:x",
        "created_at": app.effects.now(),
        "expires_at": app.effects.now(),
    }
    tamper(app, sa.insert(link).values(forged), sa.delete(vote).where(vote.c.tenant_id == "main"))
    messages = sorted(one.message for one in report(app).findings)
    assert len(messages) == 2
    assert messages[0] == f"{quote_id}: acceptance_link LNK-1 is not on record"
    assert messages[1].endswith("is gone")


def test_a_price_is_named_and_stays_forged_after_the_next_import(app: App):
    price = tables.price
    with app.database.reading() as connection:
        first, second = connection.scalars(sa.select(price.c.id).order_by(price.c.id).limit(2))
    tamper(app, sa.update(price).where(price.c.id == first).values(unit_price=1))
    [before] = [one.message for one in report(app).findings]
    assert first in before
    book = {"id": "pb_new", "name": "New"}
    import_dicts(app, "price_books", book)
    assert [one.message for one in report(app).findings] == [before]
    assert second


def test_a_removed_entry_is_noticed(app: App, tools: Tools):
    """Rows and entries put back together to what they were before the last call."""
    quote_id = sent_quote(tools)
    entry = tables.audit_entry
    tamper(app, sa.delete(entry).where(entry.c.subject == quote_id, entry.c.operation == "quote_price"))
    assert "audit_entry" in parts(app)


def test_old_quotes_are_counted_until_their_state_is_recorded(app: App, tools: Tools):
    quote_id = sent_quote(tools)
    tamper(app, sa.update(tables.audit_entry).values(state=None, answer=None))
    found = report(app)
    assert (found.quotes, found.unchecked_quotes, found.findings) == (0, 1, [])
    assert not found.is_catalog_checked
    record_again(app, quote_id)
    found = report(app)
    assert (found.quotes, found.unchecked_quotes, found.findings) == (1, 0, [])


def test_a_changed_file_of_a_document_is_named(app: App, tools: Tools):
    quote_id = sent_quote(tools)
    issued = tools("quote_pdf", quote_id=quote_id)
    store = Store(app.settings.home)
    store.path(issued["checksum"].removeprefix("sha256:")).write_bytes(b"%PDF forged")
    [found] = app.read_unaudited(app.new_call(), changed_files)
    assert found.subject == issued["document_id"]
