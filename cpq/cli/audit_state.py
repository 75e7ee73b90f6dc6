"""The part of `cpq audit` that compares rows with the record, and records what has no record yet."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from functools import partial

import click

from cpq.app import Answer, App, recorded_sets, recorded_state
from cpq.app.access import Permission
from cpq.app.reconciliation import has_quote, matches, quote_ids, reconcile, unrecorded_quotes
from cpq.app.recorded_state import BASELINE, CATALOG, RIGHTS
from cpq.app.transaction import Tx
from cpq.base.audit_key import FILE
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
        click.echo(_about_key(state))
    if findings:
        raise CpqError(
            Code.CONFLICT,
            f"{len(findings):,} rows are not as the record has them: {findings[0]['message']}"
            + (", …" if len(findings) > 1 else "."),
            **state,
            hint="Mend the rows from a backup, or accept them with `cpq audit baseline --accept QUOTE|rights|catalog`.",
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
    return [f"Not checked, because they are from before states were recorded or signed: {', '.join(missing)}.", _NEXT]


def _about_key(state: Answer) -> str:
    if state["has_key"]:
        plain = f"; {state['plain']:,} are plain, from before the key: `cpq audit baseline` signs those that are whole"
        return f"States signed by the key: {state['signed']:,}{plain if state['plain'] else ''}."
    if state["signed"]:
        return f"{state['signed']:,} states are signed, and were not verified: this process has no key ({FILE})."
    return "The digests are plain: who can write the database and rewrite the whole chain can forge them, too."


_NEXT = "`cpq audit baseline` records quotes, tokens and prices as they are now."


def baseline(app: App) -> Answer:
    """Record what has no record, in batches; with a key, sign what is plain and whole."""
    done, also, differing, after = 0, list[str](), list[str](), ""
    record = _sign_some if app.audit_key else _record_some
    while True:
        given = {"done": done, "after": after}
        answer = local_app.write(app, BASELINE, partial(record, after=after), given)
        done, also, differing = done + answer["quotes"], also + answer["also"], differing + answer["differing"]
        after = answer["after"]
        if not after:
            return {"quotes": done, "also": also, "differing": differing}


def accept(app: App, given: str) -> Answer:
    """Record one quote, the tokens or the prices as they are stored now, whatever the record says."""
    subject = local_app.quote_id(app, given)

    def work(tx: Tx) -> Answer:
        if subject in _OTHERS:
            _record_others(tx, [_OTHERS[subject]])
            return {"quotes": 0, "also": [_OTHERS[subject]], "differing": []}
        if not has_quote(tx, subject):
            raise CpqError(
                Code.NOT_FOUND,
                f"There is no quote '{given}'.",
                hint=f"Give the id or number of a quote, or {' or '.join(_OTHERS)}; see `cpq audit verify --state`.",
            )
        recorded_state.rebase(tx, subject)
        return {"quotes": 1, "also": [], "differing": []}

    return local_app.write(app, BASELINE, work, {"accept": subject}, subject=subject)


def _record_some(tx: Tx, after: str) -> Answer:  # noqa: ARG001 - what is recorded is not found again
    ids = unrecorded_quotes(tx)[:QUOTES_MAX]
    for quote_id in ids:
        recorded_state.rebase(tx, quote_id)
    also = [name for subject, name in _OTHERS.items() if recorded_state.latest(tx, subject, for_update=True) is None]
    _record_others(tx, also)
    return {"quotes": len(ids), "also": also, "differing": [], "after": ids[-1] if len(ids) == QUOTES_MAX else ""}


def _sign_some(tx: Tx, after: str) -> Answer:
    """Sign the next quotes; the tokens and prices with the first of them."""
    ids = quote_ids(tx, after=after, limit=QUOTES_MAX)
    found = [one for one in (*ids, *(() if after else _OTHERS)) if not _is_signed(tx, one)]
    whole = [one for one in found if recorded_state.on_record(tx, one) is None or matches(tx, one)]
    quotes = [one for one in whole if one not in _OTHERS]
    for quote_id in quotes:
        recorded_state.rebase(tx, quote_id)
    also = [name for subject, name in _OTHERS.items() if subject in whole]
    _record_others(tx, also)
    differing = [one for one in found if one not in whole]
    after = ids[-1] if len(ids) == QUOTES_MAX else ""
    return {"quotes": len(quotes), "also": also, "differing": differing, "after": after}


def _is_signed(tx: Tx, subject: str) -> bool:
    """Whether there is a signature, be it a wrong one: only what is plain is signed here."""
    known = recorded_state.on_record(tx, subject)
    return known is not None and known.signature is not None


def _record_others(tx: Tx, names: Collection[str]) -> None:
    if _OTHERS[RIGHTS] in names:
        recorded_state.rebase(tx, RIGHTS)
    if _OTHERS[CATALOG] in names:
        recorded_state.forget(tx, CATALOG)
        tx.changes.setdefault(CATALOG, {}).update(recorded_sets.sums(tx))


_OTHERS = {RIGHTS: "tokens", CATALOG: "prices"}
"""The subjects besides quotes, and what they are called."""
