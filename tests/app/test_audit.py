"""Every invocation leaves one record, and the records cannot be changed unnoticed: Q-12."""

from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from cpq.app import App, Command, audit
from cpq.app.access import LOCAL_AGENT, OPERATOR, Permission
from cpq.base.errors import Code, CpqError
from cpq.services.documents import DocumentRequest, read_pdf
from cpq.storage.schema.tables import audit_entry, audit_head
from tests.support.engine import Tools
from tests.support.quotes import new_quote


def trail(app: App) -> list[audit.Entry]:
    app.flush_audit()
    with app.database.reading() as connection:
        return list(audit.entries(connection, "main", sealed_only=True))


def verify(app: App) -> audit.ChainReport:
    app.flush_audit()
    with app.database.reading() as connection:
        return audit.verify(connection, "main")


def tamper(app: App, statement: sa.Executable) -> None:
    app.flush_audit()
    with app.database.writing(app.effects.monotonic() + 10) as connection:
        connection.execute(statement)


def test_q12_allowed_denied_and_failed_calls_leave_one_record_each(app: App):
    start = len(trail(app))
    tools = Tools(app)
    tools("catalog_get", product_id="prod_pro_v2")
    tools.error("catalog_get", product_id="nothing")
    tools.error("catalog_get", product_id="")
    tools.error("no_such_tool")
    with pytest.raises(CpqError):
        app.write(app.new_call(LOCAL_AGENT), Command("import", Permission.ADMINISTER), lambda tx: {})
    records = trail(app)[start:]
    assert [(r.operation, r.outcome) for r in records] == [
        ("catalog_get", "OK"),
        ("catalog_get", "NOT_FOUND"),
        ("catalog_get", "VALIDATION_ERROR"),
        ("unknown", "NOT_FOUND"),
        ("import", "FORBIDDEN"),
    ]
    assert {record.caller for record in records} == {"agent:mcp"}
    assert len({record.trace_id for record in records}) == 5
    assert sorted(record.subject or "" for record in records) == ["", "", "", "nothing", "prod_pro_v2"]


def test_q12_a_document_leaves_one_record_whether_it_is_made_known_or_fails(app: App, monkeypatch: pytest.MonkeyPatch):
    tools = Tools(app)
    quote_id = new_quote(tools)
    start = len(trail(app))
    tools("quote_pdf", quote_id=quote_id)
    tools("quote_pdf", quote_id=quote_id)
    read_pdf(app, app.new_call(), DocumentRequest(quote_id))
    tools("quote_pdf", quote_id=quote_id, idempotency_key="once")
    tools("quote_pdf", quote_id=quote_id, idempotency_key="once")

    def fails(*_: object, **_named: object) -> None:
        raise CpqError(Code.UNAVAILABLE, "The write fails.")

    monkeypatch.setattr("cpq.services.documents.repository.record", fails)
    tools.error("quote_pdf", quote_id=quote_id, locale="de")
    records = trail(app)[start:]
    outcomes = ["OK", "OK", "OK", "OK", "OK", "UNAVAILABLE"]
    assert [(record.operation, record.outcome) for record in records] == [("quote_pdf", one) for one in outcomes]
    assert {record.subject for record in records} == {quote_id}


def test_q12_a_crash_is_on_record_and_its_trace_id_is_in_the_answer(app: App, monkeypatch: pytest.MonkeyPatch, caplog):
    monkeypatch.setattr("cpq.services.catalog.word_index.find", lambda *a, **k: 1 / 0)
    start = len(trail(app))
    error = Tools(app).error("catalog_search", query="x")
    record = trail(app)[start]
    assert (record.outcome, record.trace_id) == ("INTERNAL_ERROR", error["details"]["trace_id"])
    assert "division" not in str(error)
    assert any(error["details"]["trace_id"] == getattr(entry, "trace_id", None) for entry in caplog.records)


def test_q12_the_record_of_a_write_stands_or_falls_with_the_change(app: App):
    start = len(trail(app))
    app.write(app.new_call(OPERATOR), Command("change", Permission.ADMINISTER), lambda tx: {"quote_id": "Q-1"})
    with app.database.reading() as connection:
        written = next(iter(audit.entries(connection, "main", newest=1)))
    assert (written.operation, written.outcome, written.subject) == ("change", "OK", "Q-1")

    def fails(tx):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        app.write(app.new_call(OPERATOR), Command("change", Permission.ADMINISTER), fails)
    assert [record.outcome for record in trail(app)[start:]] == ["OK", "INTERNAL_ERROR"]


def test_q12_arguments_are_recorded_only_as_a_hash(app: App):
    Tools(app)("catalog_search", query="a very private wish")
    with app.database.reading() as connection:
        app.flush_audit()
        rows = str(connection.execute(sa.select(audit_entry)).all())
    assert "private" not in rows


def test_an_untouched_chain_is_whole(app: App):
    Tools(app)("catalog_search", query="pro plan")
    report = verify(app)
    assert (report.broken_at, report.unsealed) == (None, 0)
    assert report.sealed >= 1


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (sa.update(audit_entry).where(audit_entry.c.seq == 3).values(outcome="OK!"), "not as it was sealed"),
        (sa.delete(audit_entry).where(audit_entry.c.seq == 3), "missing"),
        (sa.delete(audit_entry).where(audit_entry.c.seq > 4), "cut off"),
    ],
)
def test_a_changed_a_missing_and_a_cut_off_entry_are_named(app: App, damage: sa.Executable, reason: str):
    for number in range(6):
        Tools(app)("catalog_search", query=f"number {number}")
    tamper(app, damage)
    report = verify(app)
    assert report.broken_at in (3, 5)
    assert reason in (report.reason or "")


def test_two_entries_that_changed_places_are_noticed(app: App):
    for number in range(6):
        Tools(app)("catalog_search", query=f"number {number}")
    tamper(app, sa.update(audit_entry).where(audit_entry.c.seq == 2).values(seq=900))
    tamper(app, sa.update(audit_entry).where(audit_entry.c.seq == 3).values(seq=2))
    tamper(app, sa.update(audit_entry).where(audit_entry.c.seq == 900).values(seq=3))
    assert verify(app).broken_at == 2


def test_the_head_tells_how_long_the_chain_was(app: App):
    Tools(app)("catalog_search", query="pro plan")
    report = verify(app)
    with app.database.reading() as connection:
        head = connection.execute(sa.select(audit_head)).one()
    assert (head.seq, head.hash) == (report.sealed, report.head)


def test_a_lost_acknowledgement_does_not_stop_the_record(app: App, monkeypatch: pytest.MonkeyPatch):
    """The entries are stored, the answer is lost, and the same entries come again."""
    real = app._recorder._write
    lost: list[int] = []

    def losing(tenant_id: str, batch: list[audit.Noted]) -> None:
        real(tenant_id, batch)
        if batch and not lost:
            lost.append(1)
            raise sa.exc.OperationalError("COMMIT", {}, Exception("the connection is closed"))

    monkeypatch.setattr(app._recorder, "_write", losing)
    start = len(trail(app))
    for number in range(3):
        Tools(app)("catalog_search", query=f"number {number}")
        app.flush_audit()
    assert lost
    assert len(trail(app)) == start + 3
    assert verify(app).broken_at is None


@pytest.mark.parametrize("fault", [RuntimeError("a fault of ours"), UnicodeEncodeError("utf-8", "x", 0, 1, "")])
def test_no_exception_loses_the_entries_that_wait(app: App, monkeypatch: pytest.MonkeyPatch, fault: Exception):
    """The driver raises errors of Python's own, too; the thread that writes the record survives each."""
    real = app._recorder._write
    faults = [fault] * 2

    def failing(tenant_id: str, batch: list[audit.Noted]) -> None:
        if faults:
            raise faults.pop()
        real(tenant_id, batch)

    monkeypatch.setattr(app._recorder, "_write", failing)
    start = len(trail(app))
    for number in range(3):
        Tools(app)("catalog_search", query=f"number {number}")
    app.flush_audit()
    assert not faults
    assert len(trail(app)) == start + 3
    assert verify(app).broken_at is None


def test_a_chain_without_its_head_is_not_taken_for_whole(app: App):
    Tools(app)("catalog_search", query="pro plan")
    tamper(app, sa.delete(audit_head))
    with app.database.reading() as connection:
        assert "head" in (audit.verify(connection, "main").reason or "")


def test_a_head_that_was_kept_elsewhere_must_still_be_in_the_chain(app: App):
    Tools(app)("catalog_search", query="pro plan")
    report = verify(app)
    with app.database.reading() as connection:
        kept = (report.sealed, report.head)
        assert audit.verify(connection, "main", expect=kept).broken_at is None
        assert audit.verify(connection, "main", expect=(report.sealed, "0" * 64)).broken_at == report.sealed
        assert audit.verify(connection, "main", expect=(report.sealed + 9, "0" * 64)).broken_at == report.sealed + 9


@pytest.mark.parametrize("tenants", [["a"], ["a", "b"], ["a", "b", "c", "d", "e"]])
def test_closing_while_the_store_is_down_comes_to_an_end(tenants: list[str], monkeypatch: pytest.MonkeyPatch, caplog):
    monkeypatch.setattr(audit, "PAUSE_SECONDS_MAX", 0.2)
    tried: list[str] = []

    def down(tenant_id: str, _batch: list[audit.Noted]) -> None:
        tried.append(tenant_id)
        raise CpqError(Code.UNAVAILABLE, "The database is down.")

    recorder = audit.Recorder(down)
    for tenant in tenants:
        moment = datetime(2026, 11, 16, tzinfo=UTC)
        recorder.add(audit.Entry(tenant, f"au-{tenant}", moment, "ann", "quote_get", "", "OK", None, "tr-1"))
    recorder.close()
    assert set(tried) == set(tenants)
    assert "audit entries are lost" in caplog.text


def test_q12_a_decision_and_a_clone_are_on_record_under_the_quotes_they_are_about(app: App):
    tools = Tools(app)
    quote_id = new_quote(tools)
    clone = tools("quote_clone", quote_id=quote_id)["quote_id"]
    assert [entry.subject for entry in trail(app) if entry.operation == "quote_clone"] == [clone]
