"""Who changes a token in the database gets no rights from it."""

import base64
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App, sessions, tokens
from cpq.app.recorded_state import RIGHTS, StateDiffersError
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.base.settings import Settings
from cpq.cli import audit_state
from cpq.storage.schema import tables
from tests.support.approvals import ask, decision, person, priced_quote
from tests.support.engine import Tools, open_app, write


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


def new_token(app: App, name: str, role: str, **options: Any) -> tuple[str, str]:
    """The id and the secret of a new token."""
    made: list[tuple[str, str]] = []

    def work(tx: Tx) -> dict[str, Any]:
        summary, secret = tokens.create_token(tx, name=name, role=role, **options)
        made.append((summary.id, secret))
        return {}

    write(app, work)
    return made[-1]


def revoke(app: App, token_id: str) -> None:
    def work(tx: Tx) -> dict[str, Any]:
        tokens.revoke_token(tx, token_id)
        return {}

    write(app, work)


def read(app: App, work: Callable[[Tx], Any]) -> Any:
    return app.read_unaudited(app.new_call(), work)


@pytest.mark.parametrize(
    ("table", "values", "part"),
    [
        ("token", {"role": "admin"}, "token/"),
        ("token", {"owner": "vera"}, "token/"),
        ("principal", {"kind": "human"}, "principal/bot"),
    ],
)
def test_a_changed_token_opens_nothing_until_it_is_mended(app: App, table: str, values: dict[str, str], part: str):
    person(app, "vera", "vp_sales")
    token_id, secret = new_token(app, "bot", "agent")
    _, other = new_token(app, "ann", "sales_rep")
    before = app.identify(secret)
    assert before is not None
    row: sa.Table = getattr(tables, table)
    mine = row.c.id == token_id if table == "token" else row.c.name == "bot"
    with app.database.reading() as connection:
        old = {name: connection.scalar(sa.select(row.c[name]).where(mine)) for name in values}
    tamper(app, sa.update(row).where(mine).values(values))
    with pytest.raises(StateDiffersError) as refused:
        app.identify(secret)
    assert [name.startswith(part) for name in refused.value.details["differing"]] == [True]  # type: ignore[attr-defined]
    with pytest.raises(StateDiffersError):
        read(app, lambda tx: tokens.find_principal(tx, "bot"))
    assert app.identify(other) is not None
    tamper(app, sa.update(row).where(mine).values(old))
    assert app.identify(secret) == before


def test_a_token_that_was_opened_again_or_invented_opens_nothing(app: App):
    token_id, secret = new_token(app, "dana", "sales_manager")
    assert app.identify(secret) is not None
    revoke(app, token_id)
    assert app.identify(secret) is None
    token = tables.token
    tamper(app, sa.update(token).where(token.c.id == token_id).values(revoked_at=None))
    with pytest.raises(StateDiffersError):
        app.identify(secret)
    assert read(app, lambda tx: tokens.holders(tx, "sales_manager")) == []
    with app.database.reading() as connection:
        row = connection.execute(sa.select(token).where(token.c.id == token_id)).one()
    tamper(app, sa.insert(token).values({**row._mapping, "id": "tok-invented"}))
    with pytest.raises(StateDiffersError, match="token/tok-invented"):
        app.identify(secret.replace(token_id, "tok-invented"))


def test_a_person_whose_role_was_changed_neither_signs_in_nor_decides(app: App):
    made = ask(Tools(app), priced_quote(Tools(app)))
    person(app, "bob", "sales_rep")
    secrets: list[str] = []

    def enter(tx: Tx) -> dict[str, Any]:
        secrets.append(sessions.begin(tx, "bob").secret)
        return {}

    write(app, enter)
    assert read(app, lambda tx: sessions.find(tx, secrets[0], idle_minutes=60)) is not None
    tamper(app, sa.update(tables.token).where(tables.token.c.principal_name == "bob").values(role="sales_manager"))
    assert read(app, lambda tx: sessions.find(tx, secrets[0], idle_minutes=60)) is None
    with pytest.raises(StateDiffersError, match="not as the audit record"):
        read(app, lambda tx: sessions.person(tx, "bob"))
    assert made["status"] == "pending"


def test_an_invented_delegation_gives_no_role(app: App):
    made = ask(Tools(app), priced_quote(Tools(app)))
    person(app, "ann", "sales_manager")
    bob = person(app, "bob", "finance")
    now = app.effects.now()
    row = {"tenant_id": "main", "id": "DLG-1", "role": "sales_manager", "from_name": "ann", "to_name": "bob"}
    times = {"starts_at": now, "ends_at": now.replace(year=2027), "created_at": now}
    tamper(app, sa.insert(tables.delegation).values({**row, **times}))
    error = bob.error("approval_decide", **decision(made["approval_id"], made["fingerprint"]))
    assert (error["code"], error["details"]["differing"]) == ("CONFLICT", ["delegation/DLG-1"])


def test_tokens_from_before_states_were_recorded_still_open(app: App):
    _, secret = new_token(app, "dana", "sales_manager")
    tamper(app, sa.update(tables.audit_entry).values(state=None, answer=None))
    assert app.identify(secret) is not None


def test_with_a_key_tokens_count_only_while_their_record_is_signed(signing: App):
    _, secret = new_token(signing, "dana", "sales_rep")
    assert signing.identify(secret) is not None
    entry = tables.audit_entry
    tamper(
        signing,
        sa.update(tables.token).values(role="admin"),
        sa.update(entry).where(entry.c.subject == RIGHTS).values(state=None),
    )
    with pytest.raises(StateDiffersError, match="is not signed"):
        signing.identify(secret)
    tamper(signing, sa.update(tables.token).values(role="sales_rep"))
    audit_state.baseline(signing)
    assert signing.identify(secret) is not None


def entered(tx: Tx, code: str) -> dict[str, Any]:
    return {"name": sessions.enter(tx, code).principal.name}


def test_with_a_key_an_invented_session_or_link_signs_nobody_in(signing: App):
    """Who can write the database knows a secret for each row, and gives it or a true one the name of an approver."""
    for name, role in (("dana", "sales_manager"), ("mallory", "sales_rep")):
        new_token(signing, name, role)
    secrets: list[str] = []

    def enter(tx: Tx) -> dict[str, Any]:
        secrets.extend([sessions.begin(tx, "mallory").secret, sessions.new_link(tx, "mallory")])
        return {}

    write(signing, enter)
    session, link = secrets
    found = read(signing, lambda tx: sessions.find(tx, session, idle_minutes=60))
    assert found.principal.name == "mallory"
    assert read(signing, lambda tx: sessions.who_enters(tx, link)).name == "mallory"

    invented, now = "main.known", signing.effects.now()
    row = {"tenant_id": "main", "principal_name": "dana", "created_at": now, "expires_at": now + timedelta(hours=1)}
    tamper(
        signing,
        sa.update(tables.console_session).values(principal_name="dana"),
        sa.update(tables.sign_in_link).values(principal_name="dana"),
        sa.insert(tables.console_session).values(
            {**row, "secret_hash": sessions.derived("stored", invented), "seen_at": now}
        ),
        sa.insert(tables.sign_in_link).values({**row, "code_hash": sessions.derived("stored", invented)}),
    )
    for secret in (session, invented):
        assert read(signing, partial(sessions.find, secret=secret, idle_minutes=60)) is None
    for code in (link, invented):
        with pytest.raises(CpqError, match="used or has expired"):
            read(signing, partial(sessions.who_enters, code=code))
        with pytest.raises(CpqError, match="used or has expired"):
            write(signing, partial(entered, code=code))
    assert read(signing, lambda tx: len(tx.connection.execute(sa.select(tables.console_session)).all())) == 2
