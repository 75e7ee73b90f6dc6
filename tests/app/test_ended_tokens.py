"""A right that ends while a call waits for a lock is over when its turn comes."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.app import App, Command, tokens
from cpq.app.access import OPERATOR, Permission, Principal
from cpq.app.transaction import Tx
from cpq.storage.schema import tables
from tests.support.approvals import ask, decision, person, priced_quote, request_of
from tests.support.engine import Tools
from tests.support.quotes import status_of

PATIENCE_SECONDS = 30


def presented(app: App) -> Principal:
    """Dana as a server knows her by the token that she sends."""
    secrets: list[str] = []

    def work(tx: Tx) -> dict[str, Any]:
        secrets.append(tokens.create_token(tx, name="dana", role="sales_manager")[1])
        return {}

    app.write(app.new_call(OPERATOR), Command("token_create", Permission.ADMINISTER), work)
    found = app.identify(secrets[0])
    assert found is not None
    return found


def signed_in(app: App) -> Principal:
    """Dana as the console knows her: with the roles of all her tokens, of which one is to end."""
    person(app, "dana", "sales_rep")
    return person(app, "dana", "sales_manager").principal


def wait_for_lock(app: App, connection: Connection) -> None:
    """Until a rival waits for our row lock; on SQLite everybody waits at the gate that we hold."""
    until = time.monotonic() + PATIENCE_SECONDS
    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    while not app.database.is_sqlite and not connection.scalar(waiting):
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("known", [presented, signed_in])
def test_a_decision_that_waited_while_its_token_was_revoked_does_not_count(app: App, known: Callable[[App], Principal]):
    tools = Tools(app)
    quote_id = priced_quote(tools)
    asked = ask(tools, quote_id)
    dana = Tools(app, principal=known(app))
    arguments = decision(request_of(asked, "sales_manager"), asked["fingerprint"])
    answers: list[dict[str, Any]] = []
    is_called = threading.Event()

    def decide() -> None:
        is_called.set()
        answers.append(dana.reply("approval_decide", arguments).body)

    rival = threading.Thread(target=decide)
    token = tables.token.c
    with app.database.writing(app.effects.monotonic() + PATIENCE_SECONDS) as connection:
        for table in (tables.quote, tables.approval):
            connection.execute(sa.select(table).where(table.c.tenant_id == "main").with_for_update())
        rival.start()
        assert is_called.wait(PATIENCE_SECONDS)
        wait_for_lock(app, connection)
        held = (token.tenant_id == "main") & (token.role == "sales_manager")
        connection.execute(sa.update(tables.token).where(held).values(revoked_at=app.effects.now()))
    rival.join(PATIENCE_SECONDS)
    assert answers[0]["error"]["code"] == "FORBIDDEN", answers
    assert "Nothing was changed" in answers[0]["error"]["message"]
    assert status_of(tools, quote_id) == "pending_approval"


def test_whose_token_ran_out_while_the_call_waited_writes_nothing(app: App):
    tools = Tools(app, principal=presented(app))
    with app.database.writing(app.effects.monotonic() + PATIENCE_SECONDS) as connection:
        mine = tables.token.c.tenant_id == "main"
        connection.execute(sa.update(tables.token).where(mine).values(expires_at=app.effects.now()))
    arguments = {"account_id": "acct_acme_001", "line_items": [{"product_id": "prod_pro_v2", "quantity": 1}]}
    assert tools.error("quote_create", **arguments)["code"] == "FORBIDDEN"
    assert Tools(app)("quote_list")["items"] == []
