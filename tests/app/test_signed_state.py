"""With a key outside the database, who can write the database cannot make a record that anybody relies on."""

import base64
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App, Command
from cpq.app.access import Permission
from cpq.app.reconciliation import StateReport, reconcile
from cpq.app.recorded_state import CATALOG, RIGHTS, read_all
from cpq.app.transaction import Tx
from cpq.base.audit_key import read_audit_key
from cpq.base.errors import CpqError
from cpq.base.settings import Settings, read_settings
from cpq.base.text import plain_json
from cpq.cli import audit_state
from cpq.services.approvals import held_decisions
from cpq.storage import migrations
from cpq.storage.schema import tables
from tests.support.approvals import ask, decide, person, priced_quote
from tests.support.engine import StillEffects, Tools, import_dicts, open_app, product_row
from tests.support.quotes import new_quote, sent_quote, stored

KEY, NEWER = (base64.b64encode(bytes([byte]) * 32).decode() for byte in (1, 2))
State = dict[str, Any]


def key_file(path: Path, *keys: str) -> Path:
    path.write_text("\n".join(keys) + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.fixture
def keyed(store: Settings, tmp_path: Path) -> Settings:
    return store.model_copy(update={"audit_key_file": key_file(tmp_path / "audit.key", KEY)})


@pytest.fixture
def signing(keyed: Settings) -> Iterator[App]:
    """The engine with a key."""
    app = open_app(keyed)
    yield app
    app.close()


@pytest.fixture
def tools(signing: App) -> Tools:
    return Tools(signing)


def tamper(app: App, *statements: sa.Executable) -> None:
    app.flush_audit()
    with app.database.writing(app.effects.monotonic() + 10) as connection:
        for statement in statements:
            connection.execute(statement)


def states(app: App, quote_id: str) -> list[tuple[str, State]]:
    """The ids and states of the entries about a quote, in their order."""
    app.flush_audit()
    entry = tables.audit_entry
    mine = (entry.c.tenant_id == "main") & (entry.c.subject == quote_id) & entry.c.state.is_not(None)
    with app.database.reading() as connection:
        rows = connection.execute(sa.select(entry.c.id, entry.c.state).where(mine).order_by(entry.c.at)).all()
    return [(row.id, json.loads(row.state)) for row in rows]


def rewrite(app: App, entry_id: str, state: State | None) -> None:
    """Put another state into an entry, as somebody does who would then rewrite the chain of hashes, too."""
    entry = tables.audit_entry
    mine = (entry.c.tenant_id == "main") & (entry.c.id == entry_id)
    tamper(app, sa.update(entry).where(mine).values(state=plain_json(state) if state else None))


def forge(app: App, quote_id: str, status: str = "approved") -> dict[str, str]:
    """Set the status in the rows; returns the digests that a forger would put on record."""
    for table, column in ((tables.quote, "id"), (tables.quote_version, "quote_id")):
        mine = (table.c.tenant_id == "main") & (table.c[column] == quote_id)
        tamper(app, sa.update(table).where(mine).values(status=status))
    return app.read_unaudited(app.new_call(), lambda tx: read_all(tx, quote_id))


def report(app: App) -> StateReport:
    return app.read_unaudited(app.new_call(), lambda tx: reconcile(tx, lambda _done, _total: None))


def forged_parts(app: App, quote_id: str) -> None:
    parts = forge(app, quote_id)
    last, state = states(app, quote_id)[-1]
    rewrite(app, last, {**state, "parts": parts})


def without_signature(app: App, quote_id: str) -> None:
    parts = forge(app, quote_id)
    last, state = states(app, quote_id)[-1]
    rewrite(app, last, {"number": state["number"], "parts": parts})


def without_states(app: App, quote_id: str) -> None:
    forge(app, quote_id)
    for entry_id, _ in states(app, quote_id):
        rewrite(app, entry_id, None)


def an_older_state(app: App, quote_id: str) -> None:
    """Take the quote back to its first state, with the signature that this state once got."""
    known = states(app, quote_id)
    rewrite(app, known[-1][0], known[0][1])


FORGERIES = [forged_parts, without_signature, without_states, an_older_state]


@pytest.mark.parametrize("attack", FORGERIES)
def test_a_record_forged_together_with_its_rows_is_relied_on_by_no_call(
    signing: App, tools: Tools, attack: Callable[[App, str], None]
):
    waiting, sent = priced_quote(tools, 30), sent_quote(tools)
    ask(tools, waiting)
    issued = tools("quote_pdf", quote_id=sent)
    for quote_id in (waiting, sent):
        attack(signing, quote_id)
    before = stored(signing)
    errors = [
        tools.error("quote_send", quote_id=waiting, expected_version=1),
        tools.seller.error("quote_accept", quote_id=sent, expected_version=1),
        tools.error("quote_pdf", quote_id=sent),
        tools.error("quote_verify_pdf", document=issued["checksum"]),
    ]
    for error in errors:
        assert (error["code"], error["details"]["differing"]) == ("CONFLICT", ["audit_entry"])
        assert "cpq audit verify --state" in error["details"]["hint"]
    assert stored(signing) == before


@pytest.mark.parametrize("attack", [forged_parts, an_older_state])
def test_a_signature_that_is_not_by_the_key_is_named(signing: App, tools: Tools, attack: Callable[[App, str], None]):
    quote_id = sent_quote(tools)
    attack(signing, quote_id)
    assert any("is not by the key" in one.message and one.subject == quote_id for one in report(signing).findings)


def test_a_deal_with_a_key_is_signed_from_the_first_call_to_the_last(signing: App, tools: Tools):
    quote_id = priced_quote(tools)
    decide(person(signing, "ann", "sales_manager"), ask(tools, quote_id))
    tools("quote_send", quote_id=quote_id, expected_version=1)
    tools("quote_pdf", quote_id=quote_id)
    tools.seller("quote_accept", quote_id=quote_id, expected_version=1)
    assert all(state.keys() == {"number", "parts", "signature"} for _, state in states(signing, quote_id))
    found = report(signing)
    assert (found.findings, found.has_key) == ([], True)
    assert (found.signed, found.plain) == (2, 1), "the quote and the tokens; the prices are from before the key"


def test_without_a_key_a_state_is_as_it_was(app: App):
    quote_id = new_quote(Tools(app))
    assert [state.keys() for _, state in states(app, quote_id)] == [{"number", "parts"}]


def test_states_from_before_the_key_are_counted_and_signed_where_the_rows_are_whole(store: Settings, keyed: Settings):
    before = open_app(store)
    whole, changed = new_quote(Tools(before)), new_quote(Tools(before))
    for quote_id in (whole, changed):
        Tools(before)("quote_price", quote_id=quote_id)
    forge(before, changed)
    before.close()
    app = open_app(keyed)
    tools = Tools(app)
    refused = tools.error("quote_send", quote_id=whole, expected_version=1)
    assert "cpq audit baseline" in refused["details"]["hint"]
    found = report(app)
    assert (found.signed, found.plain) == (0, 3)
    made = audit_state.baseline(app)
    assert (made["quotes"], made["differing"]) == (1, [changed])
    found = report(app)
    assert {one.subject for one in found.findings} == {changed}
    assert found.plain == 1
    tools("quote_send", quote_id=whole, expected_version=1)
    tools.error("quote_send", quote_id=changed, expected_version=1)
    assert audit_state.baseline(app)["quotes"] == 0
    app.close()


def test_a_process_without_the_key_does_not_go_on_with_what_is_signed(signing: App, tools: Tools, store: Settings):
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id)
    signing.flush_audit()
    app = open_app(store)
    error = Tools(app).error("quote_send", quote_id=quote_id, expected_version=1)
    assert (error["code"], "CPQ_AUDIT_KEY_FILE" in error["details"]["hint"]) == ("CONFLICT", True)
    found = report(app)
    assert (found.has_key, found.signed, found.findings) == (False, 1, [])
    app.close()


def test_a_new_key_signs_and_the_old_one_still_counts(tools: Tools, keyed: Settings, tmp_path: Path):
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id)
    for keys, may_send in (([NEWER], False), ([NEWER, KEY], True)):
        app = open_app(keyed.model_copy(update={"audit_key_file": key_file(tmp_path / "newer.key", *keys)}))
        answer = Tools(app).reply("quote_send", {"quote_id": quote_id, "expected_version": 1})
        assert answer.is_error is not may_send
        app.close()


@pytest.mark.skipif(os.name != "posix", reason="files have no modes")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int):
    path = key_file(tmp_path / "audit.key", KEY)
    path.chmod(mode)
    with pytest.raises(CpqError, match="other users") as refused:
        read_audit_key(read_settings({"CPQ_AUDIT_KEY_FILE": str(path)}))
    assert "chmod" in str(refused.value.details["hint"])


@pytest.mark.parametrize("text", ["", "short", base64.b64encode(b"x" * 31).decode(), f"{KEY}\nnot base64!"])
def test_a_file_without_a_key_is_refused_and_not_shown(tmp_path: Path, text: str):
    path = key_file(tmp_path / "audit.key", text)
    with pytest.raises(CpqError, match="gives no key") as refused:
        read_audit_key(read_settings({"CPQ_AUDIT_KEY_FILE": str(path)}))
    assert KEY not in f"{refused.value} {refused.value.details}"
    with pytest.raises(CpqError, match="There is no key file"):
        read_audit_key(read_settings({"CPQ_AUDIT_KEY_FILE": str(tmp_path / "absent")}))


def test_a_command_gives_the_key_without_a_shell(tmp_path: Path):
    path = key_file(tmp_path / "audit.key", KEY)
    by_file = read_audit_key(read_settings({"CPQ_AUDIT_KEY_FILE": str(path)}))
    by_command = read_audit_key(read_settings({"CPQ_AUDIT_KEY_COMMAND": f"{sys.executable} -c \"print('{KEY}')\""}))
    assert by_file is not None
    assert by_command is not None
    assert by_file.sign("a", "text") == by_command.sign("a", "text") != by_file.sign("b", "text")
    for command in ("/absent/program", f"{sys.executable} -c 'raise SystemExit(3)'", '"unclosed'):
        with pytest.raises(CpqError, match="failed"):
            read_audit_key(read_settings({"CPQ_AUDIT_KEY_COMMAND": command}))
    with pytest.raises(CpqError, match="both set"):
        read_audit_key(read_settings({"CPQ_AUDIT_KEY_COMMAND": "true", "CPQ_AUDIT_KEY_FILE": str(path)}))
    assert read_audit_key(read_settings({})) is None


def test_tokens_without_a_record_are_signed_by_a_baseline_and_by_no_later_token(signing: App):
    """Who takes the states of the tokens away does not get a forged token signed together with the next one."""
    audit_state.baseline(signing)
    person(signing, "ann", "sales_manager")
    tamper(signing, sa.update(tables.audit_entry).where(tables.audit_entry.c.subject == RIGHTS).values(state=None))
    person(signing, "bob", "sales_rep")
    signing.flush_audit()
    found = report(signing)
    assert (found.plain, found.findings) == (1, [])
    with pytest.raises(CpqError, match="is not signed"):
        person(signing, "cy", "sales_rep")
    assert audit_state.baseline(signing)["also"] == ["tokens"]
    person(signing, "cy", "sales_rep")
    signing.flush_audit()
    found = report(signing)
    assert (found.plain, found.findings) == (0, [])


def test_prices_without_a_record_are_signed_by_a_baseline_and_by_no_import(signing: App):
    """Who takes the states of the catalogue away does not get a forged price signed together with the next import."""
    audit_state.baseline(signing)
    price, entry = tables.price, tables.audit_entry
    tamper(
        signing,
        sa.update(price).values(unit_price=1),
        sa.update(entry).where(entry.c.subject == CATALOG).values(state=None),
    )
    import_dicts(signing, "price_books", {"id": "pb_new", "name": "New"})
    signing.flush_audit()
    assert report(signing).plain == 1
    with pytest.raises(CpqError, match="is not signed"):
        import_dicts(signing, "price_books", {"id": "pb_newer", "name": "Newer"})
    assert audit_state.baseline(signing)["also"] == ["prices"]
    import_dicts(signing, "price_books", {"id": "pb_newer", "name": "Newer"})
    signing.flush_audit()
    assert (report(signing).plain, report(signing).findings) == (0, [])


def test_the_first_import_into_an_empty_catalogue_is_signed(empty_store: Settings, tmp_path: Path):
    migrations.upgrade(empty_store)
    app = open_app(empty_store.model_copy(update={"audit_key_file": key_file(tmp_path / "audit.key", KEY)}))
    import_dicts(app, "price_books", {"id": "list", "name": "List", "is_default": True})
    import_dicts(app, "products", product_row())
    app.flush_audit()
    found = report(app)
    app.close()
    assert (found.signed, found.plain, found.findings) == (1, 0, [])


def test_a_held_decision_fails_once_when_a_key_has_come_meanwhile(
    store: Settings, keyed: Settings, clock: StillEffects
):
    app = open_app(store, clock)
    tools = Tools(app)
    quote_id = priced_quote(tools)
    made, ann = ask(tools, quote_id), person(app, "ann", "sales_manager")
    command = Command("approval_hold", Permission.DECIDE)

    def hold(tx: Tx) -> dict[str, Any]:
        fingerprint = made["fingerprint"]
        held_decisions.hold(tx, made["approval_id"], "approve", fingerprint=fingerprint, comment=None)
        return {}

    app.write(app.new_call(ann.principal), command, hold)
    app.flush_audit()
    app.close()
    clock.advance(seconds=held_decisions.UNDO_SECONDS)
    app = open_app(keyed, clock)
    held_decisions.take_due(app)
    with app.database.reading() as connection:
        row = tables.held_decision.c
        [(state, reason)] = connection.execute(sa.select(row.state, row.reason)).all()
    assert (state, "is not signed" in reason) == ("failed", True)
    assert not held_decisions.take_due(app)
    app.flush_audit()
    assert report(app).findings == []
    assert report(app).signed == 0, "nobody has looked at the quote yet"
    assert audit_state.baseline(app)["differing"] == []
    app.close()
