"""`cpq restore`: loads a backup into an empty database, and proves what is in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import click

from cpq.app import Answer, App, Tx, audit
from cpq.app.access import OPERATOR
from cpq.app.reconciliation import reconcile
from cpq.cli import local_app
from cpq.cli.chosen_settings import settings_of
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, counted, show_json, show_table
from cpq.services import agreements, backups, documents, quotes
from cpq.services.backups import Restored

Check = tuple[str, str, bool]
"""What was checked, the result, and whether it is right."""


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--verify", "is_verified", is_flag=True, help="Then prove prices, audit chain, rows and agreements.")
@json_option
@pass_options
def restore(options: Options, file: Path, is_verified: bool) -> int:
    """Load a backup into an empty home or database, on SQLite or PostgreSQL whichever it came from.

    Every part is checked first; then all of it is loaded or nothing, and nothing is overwritten. With --verify every
    price is computed again, the audit chain is followed, and rows, documents and agreements are compared with the
    record. Exit code 1 when something differs.

    \b
    Example:
      cpq --home /srv/new restore quotewright.backup.zip --verify
    """
    local_app.require_all_tenants(options)
    app = App(settings_of(options), options.effects)
    try:
        with Meter("Restoring", app.effects) as meter:
            restored = backups.restore(app, file, meter)
        checks = list(_verified(app, restored)) if is_verified else []
    finally:
        app.close()
    is_right = all(is_right for *_, is_right in checks)
    if options.as_json:
        named = [{"check": what, "result": result, "is_right": is_so} for what, result, is_so in checks]
        show_json({**asdict(restored), "checks": named, "is_right": is_right})
        return 0 if is_right else 1
    columns = ("checked", "result", "")
    rows = [(*check[:2], "right" if check[2] else "DIFFERS") for check in (*_loaded(app, restored), *checks)]
    show_table(columns, rows)
    for folder in restored.folders:
        click.echo(f"Wrote {folder}; {_USES.get(Path(folder).name, '')}")
    if restored.missing_documents:
        click.echo("Some documents were lost before the backup; `cpq repair` renders them again.", err=True)
    return 0 if is_right else 1


_USES = {
    "policies": "to use it, set CPQ_POLICIES_DIR.",
    "templates": "to use it, set CPQ_TEMPLATES_DIR.",
    "audit.key": "to use it, set CPQ_AUDIT_KEY_FILE.",
}


def _loaded(app: App, restored: Restored) -> Iterator[Check]:
    yield "parts", f"{restored.parts:,}, {restored.bytes:,} bytes; signature: {restored.signature}", True
    rows = f"{sum(restored.rows.values()):,} rows in {counted(len(restored.rows), 'table')}"
    where = "were there already" if restored.was_there else f"as of {restored.made_at}"
    yield "tables", f"{rows} of {app.settings.database_name}, {where}", True
    yield "documents", f"{restored.documents:,}", True
    yield "manifest", f"checksum {restored.checksum}", True


def _verified(app: App, restored: Restored) -> Iterator[Check]:
    """The proofs, without entries of their own: the database stays as it was restored."""
    with app.database.reading() as connection:
        tenants = backups.tenants(connection)
    heads = {head["tenant_id"]: (head["seq"], head["hash"]) for head in restored.audit_heads}
    app.policies.refresh()
    for tenant in tenants:
        call = app.new_call(replace(OPERATOR, tenant_id=tenant))
        of = f" of {tenant}" if len(tenants) > 1 else ""

        def chain(tx: Tx, tenant: str = tenant) -> audit.ChainReport:
            with Meter("Verifying the audit chain", app.effects) as meter:
                return audit.verify(tx.connection, tenant, expect=heads.get(tenant), progress=meter)

        found = app.read_unaudited(call, chain)
        whole = f"{found.sealed:,} entries sealed, {found.unsealed:,} not yet; head {found.sealed}:{found.head}"
        broken = f"broken at entry {found.broken_at}: {found.reason}"
        yield f"audit chain{of}", whole if found.broken_at is None else broken, found.broken_at is None
        yield from _compared(app.read_unaudited(call, lambda tx: _compare(app, tx)), of)


def _compare(app: App, tx: Tx) -> Answer:
    with Meter("Replaying quotes", app.effects) as meter:
        proofs = list(quotes.replay_stored(tx, None, meter))
    with Meter("Comparing rows with the record", app.effects) as meter:
        state = reconcile(tx, meter)
    state.findings += documents.changed_files(tx)
    with Meter("Folding agreements", app.effects) as meter:
        folded = agreements.verify(tx, None, meter)
    return {"versions": len(proofs), "lines": sum(one.lines for one in proofs), "state": state, "folded": dict(folded)}


def _compared(found: Answer, of: str) -> Iterator[Check]:
    state, folded = found["state"], found["folded"]
    yield f"prices{of}", f"{counted(found['versions'], 'version')}, {counted(found['lines'], 'line')} replayed", True
    unchecked = state.unchecked_quotes + state.unchecked_answers
    compared = f"{counted(state.quotes, 'quote')}, {counted(state.answers, 'stored answer')} as recorded"
    first = state.findings[0].message if state.findings else ""
    rows = f"{compared}, {unchecked:,} without a record" + (
        f"; {len(state.findings):,} differ: {first}" if first else ""
    )
    yield f"rows{of}", rows, not state.findings
    same = f"{counted(folded['agreements'], 'agreement')}, {counted(len(folded['differences']), 'difference')}"
    yield f"agreements{of}", same, not folded["differences"]
