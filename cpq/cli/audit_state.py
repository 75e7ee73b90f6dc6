"""The part of `cpq audit` that compares rows with the record, and records what has no record yet."""

from __future__ import annotations

from dataclasses import asdict

import click

from cpq.app import Answer, App, recorded_sets, recorded_state
from cpq.app.access import Permission
from cpq.app.reconciliation import reconcile, unrecorded_quotes
from cpq.app.recorded_sets import CATALOG
from cpq.app.recorded_state import RIGHTS, RIGHTS_TABLES
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.cli import local_app
from cpq.cli.output import Meter
from cpq.services import documents

QUOTES_MAX = 200
"""Quotes that are recorded in one transaction, so that other writers do not wait."""


def compare(app: App) -> Answer:
    """All rows and document files against the entries."""
    with Meter("Comparing rows with the record", app.effects) as meter:

        def work(tx: Tx) -> Answer:
            report = asdict(reconcile(tx, meter))
            report["findings"] += [asdict(one) for one in documents.changed_files(tx)]
            return report

        return local_app.read(app, "audit_verify_state", work, needs=Permission.ADMINISTER)


def show(state: Answer, *, is_quiet: bool) -> None:
    """Print what was compared; CONFLICT with every finding when something differs."""
    findings = state["findings"]
    if not is_quiet:
        compared = f"{state['quotes']:,} quotes, {state['answers']:,} stored answers"
        click.echo(f"Compared with the record: {compared}" + (", tokens" if state["are_rights_checked"] else ""))
        for line in _unchecked(state):
            click.echo(line)
        for one in findings:
            click.echo(f"DIFFERS {one['message']}", err=True)
        click.echo("The digests are plain: who can write the database and rewrite the whole chain can forge them, too.")
    if findings:
        raise CpqError(
            Code.CONFLICT,
            f"{len(findings):,} rows are not as the record has them: {findings[0]['message']}"
            + (", …" if len(findings) > 1 else "."),
            **state,
            hint="Mend the rows from a backup, or look at them and run `cpq audit baseline --accept QUOTE`.",
        )


def _unchecked(state: Answer) -> list[str]:
    missing = []
    if state["unchecked_quotes"]:
        missing.append(f"{state['unchecked_quotes']:,} quotes")
    if state["unchecked_answers"]:
        missing.append(f"{state['unchecked_answers']:,} stored answers")
    missing += [] if state["are_rights_checked"] else ["tokens"]
    missing += [] if state["is_catalog_checked"] else ["prices"]
    if not missing:
        return []
    return [f"Not checked, because they are from before states were recorded: {', '.join(missing)}.", _NEXT]


_NEXT = "`cpq audit baseline` records quotes, tokens and prices as they are now."


def baseline(app: App) -> Answer:
    """Record what has no record, in batches."""
    done, also = 0, list[str]()
    while True:
        answer = local_app.write(app, "audit_baseline", _record_some, {"done": done})
        done, also = done + answer["quotes"], also + answer["also"]
        if answer["quotes"] < QUOTES_MAX:
            return {"quotes": done, "also": also}


def accept(app: App, given: str) -> Answer:
    """Record one quote as it is stored now, whatever the record says."""
    quote_id = local_app.quote_id(app, given)

    def work(tx: Tx) -> Answer:
        recorded_state.rebase(tx, quote_id)
        return {"quotes": 1, "also": []}

    return local_app.write(app, "audit_baseline", work, {"accept": quote_id}, subject=quote_id)


def _record_some(tx: Tx) -> Answer:
    ids = unrecorded_quotes(tx)[:QUOTES_MAX]
    for quote_id in ids:
        recorded_state.rebase(tx, quote_id)
    also = []
    if recorded_state.latest(tx, RIGHTS, for_update=True) is None:
        for table in RIGHTS_TABLES:
            recorded_state.note(tx, RIGHTS, table)
        also.append("tokens")
    if recorded_state.latest(tx, CATALOG, for_update=True) is None:
        recorded_sets.finish(tx)
        also.append("prices")
    return {"quotes": len(ids), "also": also}
