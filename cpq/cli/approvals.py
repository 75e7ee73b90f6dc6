"""`cpq approvals`: lists pending approval requests, and decides them in the name of a person."""

from __future__ import annotations

import sys
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import TextIO

import click

from cpq.app import Answer, App, Command
from cpq.app.access import Permission, Principal
from cpq.app.transaction import Tx
from cpq.base.money import readable
from cpq.base.text import to_wire
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import show_json, show_pairs, show_table
from cpq.services import approvals, quotes

LIMIT_MAX = 1_000


@click.group("approvals")
def approvals_() -> None:
    """List pending approval requests, and approve or reject them as a person with the role.

    \b
    Example:
      cpq approvals list --role sales_manager
    """


@approvals_.command("list")
@click.option("--role", help="Only requests to this role.")
@click.option("--limit", type=click.IntRange(1, LIMIT_MAX), default=20, show_default=True, help="How many at most.")
@json_option
@pass_options
def list_(options: Options, role: str | None, limit: int) -> None:
    """List pending requests, oldest first.

    \b
    Example:
      cpq approvals list
    """

    def work(tx: Tx) -> Answer:
        return dict(approvals.pending(tx, role=role, limit=limit))

    with local_app.opened(options) as app:
        answer = local_app.read(app, "approvals_list", work, role=role, limit=limit)
    if options.as_json:
        show_json(answer)
        return
    columns = ("approval", "role", "quote", "version", "account", "total", "", "asked by", "expires", "waits for")
    rows = [
        (
            item["approval_id"],
            item["approver_role"],
            item["quote_id"],
            item["version"],
            item["account_name"],
            readable(item["quote_total"], item["currency"]),
            item["currency"],
            item["requested_by"],
            to_wire(item["expires_at"]),
            item["waits_for"],
        )
        for item in answer["items"]
    ]
    if rows:
        show_table(columns, rows, numbers=("version", "total"))
    click.echo(f"{len(rows):,} of {answer['total']:,} requests.")


@approvals_.command()
@click.argument("approval_id")
@json_option
@pass_options
def show(options: Options, approval_id: str) -> None:
    """Show a request: the quote, the reasons, the role that is asked, and the decision.

    \b
    Example:
      cpq approvals show APR-06f3mv2k9e7d1xw2rjfb
    """
    with local_app.opened(options) as app:
        found = local_app.read(app, "approvals_show", lambda tx: _found(tx, approval_id), approval_id=approval_id)
    if options.as_json:
        show_json(found)
    else:
        _show(found)


@approvals_.command()
@click.argument("approval_id")
@click.option("--as", "name", metavar="NAME", required=True, help="The person who decides; they need the role.")
@click.option(
    "--fingerprint",
    metavar="HASH",
    help="The version you saw. Default: show it and confirm.",
)
@click.option("--comment", help="For the record.")
@json_option
@pass_options
def approve(options: Options, approval_id: str, name: str, fingerprint: str | None, comment: str | None) -> None:
    """Approve a request.

    \b
    Example:
      cpq approvals approve APR-06f3mv2k9e7d1xw2rjfb --as dana
    """
    _decide(options, approval_id, name, "approve", fingerprint, comment)


@approvals_.command()
@click.argument("approval_id")
@click.option("--as", "name", metavar="NAME", required=True, help="The person who decides; they need the role.")
@click.option("--comment", required=True, help="The reason; the person who asked reads it.")
@click.option(
    "--fingerprint",
    metavar="HASH",
    help="The version you saw. Default: show it and confirm.",
)
@json_option
@pass_options
def reject(options: Options, approval_id: str, name: str, fingerprint: str | None, comment: str) -> None:
    """Reject a request, which ends the round for all roles.

    \b
    Example:
      cpq approvals reject APR-06f3mv2k9e7d1xw2rjfb --as dana --comment "Half of it."
    """
    _decide(options, approval_id, name, "reject", fingerprint, comment)


@approvals_.command()
@json_option
@pass_options
def sweep(options: Options) -> None:
    """Expire requests whose time is over, and escalate those that waited too long. Servers do this every minute.

    \b
    Example:
      cpq approvals sweep
    """
    total = {"expired": 0, "withdrawn": 0, "escalated": 0}
    with local_app.opened(options) as app:
        after, is_more = "", True
        while is_more:
            swept = local_app.write(app, "approvals_sweep", partial(approvals.sweep, after=after), {})
            total = {word: count + swept[word] for word, count in total.items()}
            after = swept["after"]
            is_more = bool(after)
    if options.as_json:
        show_json(total)
    else:
        click.echo(", ".join(f"{count:,} {word}" for word, count in total.items()) + ".")


def _decide(
    options: Options,
    approval_id: str,
    name: str,
    decision: approvals.Decision,
    fingerprint: str | None,
    comment: str | None,
) -> None:
    with local_app.opened(options) as app:
        principal = local_app.person(app, options, name)
        if fingerprint is None:
            found = local_app.read(app, "approvals_show", lambda tx: _found(tx, approval_id), approval_id=approval_id)
            _require_decidable(app, principal, approval_id, decision)
            _show(found, sys.stderr if options.as_json else None)
            click.confirm(f"{decision.capitalize()} this as {principal.caller}?", abort=True, err=True)
            fingerprint = str(found["fingerprint"])
        shown = fingerprint

        def work(tx: Tx) -> Answer:
            return dict(approvals.decide(tx, approval_id, decision, fingerprint=shown, comment=comment))

        arguments = {"approval_id": approval_id, "decision": decision, "fingerprint": shown, "comment": comment}
        command = Command("approval_decide", Permission.DECIDE, arguments, subject=approval_id)
        answer = app.write(app.new_call(principal), command, work).answer
        local_app.warn_unprotected(app)
    if options.as_json:
        show_json(answer)
    else:
        click.echo(f"{answer['message']} Quote {answer['quote_id']} is {answer['quote_status']}.")


def _require_decidable(app: App, principal: Principal, approval_id: str, decision: approvals.Decision) -> None:
    """Refuse before the prompt if this person may not decide the request."""
    command = Command(f"approvals_{decision}", Permission.DECIDE, {"approval_id": approval_id}, subject=approval_id)
    app.read(app.new_call(principal), command, lambda tx: approvals.require_decidable(tx, approval_id, decision))


def _found(tx: Tx, approval_id: str) -> Answer:
    record, quote = approvals.get(tx, approval_id)
    review = quotes.review_version(tx, quote.id, version=record["version"])
    reviewed = {name: review[name] for name in ("discount_pct", "margin_pct", "policy_violations")}
    return {**record, "account_name": quote.account_name, **reviewed}


def _percent(share: Decimal | int | None) -> str:
    return "unknown" if share is None else f"{Decimal(share).quantize(Decimal('0.1'), ROUND_HALF_UP)} %"


def _show(found: Answer, stream: TextIO | None = None) -> None:
    pairs = [
        ("approval", found["approval_id"]),
        ("role", found["approver_role"]),
        ("status", found["status"] + (f": {found['reason']}" if found["reason"] else "")),
        ("quote", f"{found['quote_id']}, version {found['version']}"),
        ("account", found["account_name"]),
        ("total", f"{readable(found['quote_total'], found['currency'])} {found['currency']}"),
        ("discount", _percent(found["discount_pct"])),
        ("margin", _percent(found["margin_pct"])),
        *(("why", reason) for reason in found["reasons"]),
        ("justification", found["justification"]),
        ("asked", f"{to_wire(found['requested_at'])} by {found['requested_by']}"),
        ("expires", to_wire(found["expires_at"])),
        ("fingerprint", found["fingerprint"]),
    ]
    pairs += [
        (vote["decision"], f"{to_wire(vote['at'])} by {vote['by']} as {vote['acted_as']}: {vote['comment'] or '-'}")
        for vote in found["votes"]
    ]
    show_pairs(pairs, stream=stream)
