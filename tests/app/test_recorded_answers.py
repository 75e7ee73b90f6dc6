"""An answer that somebody changed in the database is not replayed."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App
from cpq.base.settings import Settings
from cpq.base.state_digest import row_digest
from cpq.storage.columns import as_stored
from cpq.storage.schema import tables
from tests.support.approvals import ask, decision, person, priced_quote
from tests.support.engine import Tools, open_app
from tests.support.quotes import ACME, SEATS, new_quote, stored

CREATE = {"account_id": ACME, "line_items": [SEATS], "term_months": 12, "idempotency_key": "k1"}


@pytest.fixture
def tools(app: App) -> Tools:
    return Tools(app)


@pytest.fixture
def signing(store: Settings, tmp_path: Path) -> Iterator[App]:
    """The engine with a key outside the database."""
    path = tmp_path / "audit.key"
    path.write_bytes(base64.b64encode(bytes(32)))
    path.chmod(0o600)
    app = open_app(store.model_copy(update={"audit_key_file": path}))
    yield app
    app.close()


def tamper(app: App, *statements: sa.Executable) -> None:
    app.flush_audit()
    with app.database.writing(app.effects.monotonic() + 10) as connection:
        for statement in statements:
            connection.execute(statement)


def forge(app: App, operation: str, **values: Any) -> None:
    """Change what the stored answer of an operation says."""
    row = tables.idempotency
    mine = (row.c.tenant_id == "main") & (row.c.operation == operation) & ~row.c.key.startswith("call:")
    with app.database.reading() as connection:
        answer = connection.execute(sa.select(row.c.answer).where(mine)).scalar_one()
    tamper(app, sa.update(row).where(mine).values(answer={**answer, **values}))


def assert_refused(tools: Tools, name: str, **arguments: Any) -> None:
    before = stored(tools.app)
    error = tools.error(name, **arguments)
    assert (error["code"], error["details"]["differing"]) == ("CONFLICT", ["idempotency"])
    assert "cpq audit verify --state" in error["details"]["hint"]
    assert stored(tools.app) == before


def test_an_answer_is_replayed_as_long_as_nobody_changed_it(app: App, tools: Tools):
    first = tools("quote_create", **CREATE)
    assert tools("quote_create", **CREATE)["quote_id"] == first["quote_id"]
    forge(app, "quote_create", number="Q-2026-99999")
    assert_refused(tools, "quote_create", **CREATE)
    forge(app, "quote_create", number=first["number"])
    assert tools("quote_create", **CREATE)["replayed"]


def test_an_answer_that_points_at_another_quote_is_not_replayed(app: App, tools: Tools):
    other = new_quote(tools)
    tools("quote_create", **CREATE)
    forge(app, "quote_create", quote_id=other)
    assert_refused(tools, "quote_create", **CREATE)


def test_an_invented_answer_is_not_replayed(app: App, tools: Tools):
    """A row that no call wrote, under a key that is yet to be used."""
    first = tools("quote_create", **CREATE)
    row = tables.idempotency
    tamper(app, sa.update(row).where(row.c.tenant_id == "main", row.c.key == "k1").values(key="k2"))
    assert_refused(tools, "quote_create", **{**CREATE, "idempotency_key": "k2"})
    assert tools("quote_create", **CREATE)["quote_id"] != first["quote_id"]


def test_the_answer_of_a_document_is_compared_too(app: App, tools: Tools):
    quote_id = priced_quote(tools, 0)
    issued = tools("quote_pdf", quote_id=quote_id, idempotency_key="k1")
    again = tools("quote_pdf", quote_id=quote_id, idempotency_key="k1")
    assert (again["replayed"], again["document_id"]) == (True, issued["document_id"])
    forge(app, "quote_pdf", checksum=f"sha256:{'0' * 64}")
    assert_refused(tools, "quote_pdf", quote_id=quote_id, idempotency_key="k1")


def test_decisions_and_delegations_are_replayed_as_they_were(app: App, tools: Tools):
    made = ask(tools, priced_quote(tools))
    ann = person(app, "ann", "sales_manager")
    person(app, "bob", "sales_manager")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("approval_decide", decision(made["approval_id"], made["fingerprint"])),
        ("approval_delegate", {"role": "sales_manager", "to": "bob", "until": "2026-12-01T00:00:00Z"}),
    ]
    for name, arguments in calls:
        ann(name, **arguments, idempotency_key="k1")
        assert ann(name, **arguments, idempotency_key="k1")["replayed"]
        forge(app, name, outcome="forged")
        assert_refused(ann, name, **arguments, idempotency_key="k1")


def test_with_a_key_an_answer_forged_together_with_its_entry_is_not_replayed(signing: App):
    tools, entry, row = Tools(signing), tables.audit_entry, tables.idempotency
    tools("quote_create", **CREATE)
    assert tools("quote_create", **CREATE)["replayed"]
    forge(signing, "quote_create", number="Q-2026-99999")
    with signing.database.reading() as connection:
        columns = [as_stored(connection.dialect.name, column) for column in row.c]
        forged = connection.execute(sa.select(*columns).where(row.c.key == "k1")).one()
    tamper(signing, sa.update(entry).where(entry.c.operation == "quote_create").values(answer=row_digest(forged)))
    assert_refused(tools, "quote_create", **CREATE)
