"""`cpq audit`: the record of every call, and the proof that it is unchanged."""

from __future__ import annotations

import re
from dataclasses import asdict

import click

from cpq.app import Answer, App, audit
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, moment, show_json, show_table

SHOWN = ("seq", "at", "caller", "operation", "outcome", "subject", "trace_id")


class _Head(click.ParamType[tuple[int, str]]):
    """`SEQ:HASH`, as `cpq audit verify` printed it."""

    name = "SEQ:HASH"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, str]:
        found = re.fullmatch(r"([0-9]{1,18}):([0-9a-f]{64})", str(value))
        if found is None:
            self.fail("expected SEQ:HASH, as an earlier verify printed it", param, ctx)
        return int(found[1]), found[2]


@click.group("audit")
def audit_() -> None:
    """Show the record of all calls, and verify that it is complete and unchanged.

    \b
    Example:
      cpq audit verify
    """


@audit_.command()
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True, help="How many entries.")
@json_option
@pass_options
def show(options: Options, limit: int) -> None:
    """Show the newest entries, latest first. Arguments are recorded as a hash.

    \b
    Example:
      cpq audit show --limit 50
    """

    def work(tx: Tx) -> list[Answer]:
        return [asdict(entry) for entry in audit.entries(tx.connection, tx.tenant_id, newest=limit)]

    with local_app.opened(options) as app:
        items = local_app.read(app, "audit_show", work, needs=Permission.ADMINISTER, limit=limit)
    if options.as_json:
        show_json({"items": items})
        return
    rows = [[moment(item[name]) if name == "at" else item[name] for name in SHOWN] for item in items]
    show_table(SHOWN, rows, numbers=("seq",))


@audit_.command()
@click.option("--expect", type=_Head(), help="A head that you saved earlier; it must still be in the chain.")
@json_option
@pass_options
def verify(options: Options, expect: tuple[int, str] | None) -> None:
    """Recompute the whole chain of hashes, and print its head.

    Save the head outside the database: a person who can write to the database could rewrite the whole chain.

    \b
    Example:
      cpq audit verify --expect 1042:3f0c…
    """
    with local_app.opened(options) as app:
        _seal_everything(app)
        report = _verify(app, expect)
    if report["broken_at"] is not None:
        message = f"The chain is broken at entry {report['broken_at']}: {report['reason']}."
        raise CpqError(Code.CONFLICT, message, **report)
    head = f"{report['sealed']}:{report['head']}"
    if options.as_json:
        show_json({**report, "head": head})
    else:
        click.echo(f"The chain is whole: {report['sealed']:,} entries sealed, {report['unsealed']:,} not yet.")
        click.echo(f"Head: {head}")


def _seal_everything(app: App) -> None:
    """Seal the entries that other processes left unsealed, for example because they were killed."""
    sealed = audit.SEAL_BATCH
    while sealed >= audit.SEAL_BATCH:
        answer = local_app.write(
            app, "audit_seal", lambda tx: {"sealed": audit.seal(tx.connection, tx.tenant_id)}, arguments={}
        )
        sealed = answer["sealed"]
    app.flush_audit()


def _verify(app: App, expect: tuple[int, str] | None) -> Answer:
    with Meter("Verifying the audit chain", app.effects) as meter:

        def work(tx: Tx) -> Answer:
            return asdict(audit.verify(tx.connection, tx.tenant_id, expect=expect, progress=meter))

        expected = f"{expect[0]}:{expect[1]}" if expect else None
        return local_app.read(app, "audit_verify", work, needs=Permission.ADMINISTER, expect=expected)
