"""Approvals for tests: people with roles, quotes that need them, and decisions made through the tools."""

import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from cpq.app import App, Command, recorded_state, tokens
from cpq.app.access import OPERATOR, Permission, Principal
from cpq.app.transaction import Tx
from cpq.base.settings import Settings, shipped
from cpq.storage.schema import tables
from tests.support.engine import Tools, patient
from tests.support.quotes import new_quote, stored


def person(app: App, name: str, *roles: str, kind: str | None = None) -> Tools:
    """Somebody with a token for each role, calling with all of them."""
    found: list[Principal] = []

    def work(tx: Tx) -> dict[str, Any]:
        for role in roles:
            tokens.create_token(tx, name=name, role=role, kind=kind)  # type: ignore[arg-type] # A word in tests.
        found.append(tokens.find_principal(tx, name))
        return {}

    app.write(app.new_call(OPERATOR), Command("token_create", Permission.ADMINISTER), work)
    return Tools(app, principal=found[-1])


def revoke_all(app: App, name: str) -> None:
    """Nobody of that name holds anything any more."""

    def work(tx: Tx) -> dict[str, Any]:
        for token in tokens.list_tokens(tx):
            if token.principal.name == name:
                tokens.revoke_token(tx, token.id)
        return {}

    app.write(app.new_call(OPERATOR), Command("token_revoke", Permission.ADMINISTER), work)


def priced_quote(tools: Tools, discount: Any = 10, *lines: dict[str, Any], **terms: Any) -> str:
    """The id of a draft that is priced with a discount on the whole; 10 % needs a sales manager."""
    quote_id = new_quote(tools, *lines, **terms)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=discount)
    return quote_id


def ask(tools: Tools, quote_id: str, role: str = "sales_manager") -> dict[str, Any]:
    return tools("approval_request", quote_id=quote_id, justification="A good deal.", approver_role=role)


def request_of(answer: dict[str, Any], role: str) -> str:
    """The id of the request to a role that one call has made."""
    made = [answer, *answer["also_requested"]]
    return next(one["approval_id"] for one in made if one["approver_role"] == role)


def decision(approval_id: str, fingerprint: str, word: str = "approve") -> dict[str, Any]:
    """The arguments of a decision; a rejection says why."""
    comment = {"comment": "Too much."} if word == "reject" else {}
    return {"approval_id": approval_id, "decision": word, "fingerprint": fingerprint, **comment}


def decide(tools: Tools, answer: dict[str, Any], role: str | None = None, word: str = "approve") -> dict[str, Any]:
    """Decide what a request has asked of a role, and return the answer."""
    approval_id = request_of(answer, role or answer["approver_role"])
    return tools("approval_decide", **decision(approval_id, answer["fingerprint"], word))


def refused_decision(
    tools: Tools, answer: dict[str, Any], role: str | None = None, word: str = "approve"
) -> dict[str, Any]:
    """The error of a decision, which must have changed no row."""
    approval_id = request_of(answer, role or answer["approver_role"])
    return refused(tools, "approval_decide", **decision(approval_id, answer["fingerprint"], word))


def refused(tools: Tools, name: str, **arguments: Any) -> dict[str, Any]:
    """The error of a call, which must have changed no row; keys whose time is over may go meanwhile."""
    before = stored(tools.app)
    error = tools.error(name, **arguments)
    assert {**stored(tools.app), "idempotency": []} == {**before, "idempotency": []}
    return error


def follow(tools: Tools, error: dict[str, Any]) -> dict[str, Any]:
    """Send the next call exactly as it was offered."""
    call = error["details"]["next_call"]
    return tools(call["tool"], **call["arguments"])


def race_calls(calls: Sequence[tuple[Tools, str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Send all at once, each as its own caller; every answer, failed or not, in their order."""
    start = threading.Barrier(len(calls))

    def run(call: tuple[Tools, str, dict[str, Any]]) -> dict[str, Any]:
        start.wait()
        tools, name, arguments = call
        return tools.reply(name, arguments).body

    with patient(), ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def race_as(decisions: Sequence[tuple[Tools, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Decide all at once."""
    return race_calls([(who, "approval_decide", arguments) for who, arguments in decisions])


def with_roles(settings: Settings, folder: Path, *lines: str) -> Settings:
    """The same store under the shipped policies, whose roles have some lines more or other ones."""
    shutil.copytree(shipped("policies"), folder)
    path = folder / "approvals.yaml"
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if not _is_replaced(line, lines)]
    place = kept.index("roles:") + 1
    said = [f"  {line}" for line in lines]
    path.write_text("\n".join([*kept[:place], *said, *kept[place:]]) + "\n", encoding="utf-8")
    return settings.model_copy(update={"policies_dir": folder})


def _is_replaced(line: str, lines: tuple[str, ...]) -> bool:
    """Whether the file already says something under the same name."""
    names = tuple(f"  {said.partition(':')[0]}:" for said in lines)
    return line.startswith(names)


def let_lapse(app: App, quote_id: str) -> None:
    """The time of all open requests of a quote is over, as if nobody had answered."""

    def work(tx: Tx) -> dict[str, Any]:
        over = tx.now - timedelta(seconds=1)
        for table in (tables.quote, tables.quote_version):
            mine = (table.c.id if table is tables.quote else table.c.quote_id) == quote_id
            is_waiting = table.c.status == "pending_approval"
            tx.connection.execute(sa.update(table).where(tx.own(table), mine, is_waiting).values(lapses_at=over))
        requests = tx.own(tables.approval) & (tables.approval.c.quote_id == quote_id)
        is_open = tables.approval.c.status == "pending"
        tx.connection.execute(sa.update(tables.approval).where(requests, is_open).values(expires_at=over))
        recorded_state.rebase(tx, quote_id)
        return {}

    app.write(app.new_call(OPERATOR), Command("lapse", Permission.ADMINISTER), work)
