"""`cpq audit`: the record of every call, and the proof that it is unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from cpq.app import OUTCOME_OK, Answer, App, audit
from cpq.app.access import Permission, acted_for
from cpq.app.audit import Entry
from cpq.app.signed_head import key_for_heads
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.text import canonical_json
from cpq.cli import audit_head, audit_state, local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, moment, show_json, show_table
from cpq.services import approvals, quotes
from cpq.storage import grants

COLUMNS = ("number", "at", "who", "what", "about", "outcome")
DECIDED = {"approve": "approved", "reject": "rejected"}


class _Head(click.ParamType[tuple[int, str]]):
    """`SEQ:HASH`, as `cpq audit verify` printed it."""

    name = "SEQ:HASH"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, str]:
        found = re.fullmatch(r"([0-9]{1,18}):([0-9a-f]{64})", str(value))
        if found is None:
            self.fail("expected SEQ:HASH, as an earlier verify printed it", param, ctx)
        return int(found[1]), found[2]


class _Role(click.ParamType[str]):
    """The name of a PostgreSQL role."""

    name = "NAME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not grants.is_role_name(str(value)):
            self.fail("expected a role of small letters, digits and _, such as cpq_server", param, ctx)
        return str(value)


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
    """Show the newest entries, latest first: who did what, about what, and what a person decided.

    An entry without a number waits for its seal. Arguments are recorded as a hash; --json has it, and the trace id.

    \b
    Example:
      cpq audit show --limit 50
    """

    def work(tx: Tx) -> list[Answer]:
        found = list(audit.entries(tx.connection, tx.tenant_id, newest=limit))
        decided = _decisions(tx, found)
        numbers = quotes.numbers_of(tx, {entry.subject for entry in found if entry.subject})
        return [
            {**asdict(entry), "quote_number": numbers.get(entry.subject or ""), "decided": decided.get(entry.id)}
            for entry in found
        ]

    with local_app.opened(options) as app:
        items = local_app.read(app, "audit_show", work, needs=Permission.ADMINISTER, limit=limit)
    if options.as_json:
        show_json({"items": items})
        return
    rows = [
        (
            item["seq"],
            moment(item["at"]),
            item["caller"],
            ": ".join(filter(None, (item["operation"], item["decided"]))),
            " ".join(filter(None, (item["quote_number"], item["subject"]))),
            item["outcome"],
        )
        for item in items
    ]
    show_table(COLUMNS, rows, numbers=("number",))


def _decisions(tx: Tx, entries: Sequence[Entry]) -> dict[str, str]:
    """What was decided in each entry of a decision, by the entry's id.

    The record holds no arguments, so this comes from the votes: the caller's last one before the entry was written.
    """
    made = [entry for entry in entries if entry.operation == "approval_decide" and entry.outcome == OUTCOME_OK]
    if not made:
        return {}  # Most records have no decision, and the approvals need not be loaded for them.
    votes = approvals.votes_about(tx, sorted({entry.subject for entry in made if entry.subject}))
    decided = {}
    for entry in made:
        mine = [vote for vote in votes.get(entry.subject or "", ()) if vote.caller == acted_for(entry.caller)]
        before = [vote for vote in mine if vote.at <= entry.at]
        if before:
            vote = before[-1]
            decided[entry.id] = f"{DECIDED.get(vote.decision, vote.decision)} as {vote.acted_as}"
    return decided


@audit_.command()
@click.option("--expect", type=_Head(), help="A head that you saved earlier; it must still be in the chain.")
@click.option(
    "--head",
    "head_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A head that `cpq audit head` signed; its signature must be right, and it must still be in the chain.",
)
@click.option("--state", "is_with_state", is_flag=True, help="Compare all rows with the entries as well.")
@json_option
@pass_options
def verify(options: Options, expect: tuple[int, str] | None, head_file: Path | None, is_with_state: bool) -> None:
    """Recompute the whole chain of hashes, and print its head.

    Save the head outside the database: a person who can write to the database could rewrite the whole chain.
    With --state, every quote, version, line, approval, vote, document, token, price and stored answer is compared with
    the entry that wrote it, and every one that differs is named.

    \b
    Example:
      cpq audit verify --state --expect 1042:3f0c…
    """
    if expect and head_file:
        raise click.UsageError("Give --expect or --head, not both.")
    with local_app.opened(options) as app:
        report = _whole(app, audit_head.expected(app, head_file) if head_file else expect)
        state = audit_state.compare(app) if is_with_state else None
    last = f"{report['sealed']}:{report['head']}"
    if options.as_json and (state is None or not state["findings"]):
        show_json({**report, "head": last, **({"state": state} if state else {})})
    elif not options.as_json:
        click.echo(f"The chain is whole: {report['sealed']:,} entries sealed, {report['unsealed']:,} not yet.")
        click.echo(f"Head: {last}")
    if state is not None:
        audit_state.show(state, is_quiet=options.as_json)


@audit_.command()
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Default: stdout.")
@click.option("--publish", "is_published", is_flag=True, help="Send it to the webhooks as well, as `audit.head`.")
@pass_options
def head(options: Options, output: Path | None, is_published: bool) -> None:
    """Verify the chain and sign its head, as JSON; keep it elsewhere, and compare it with `cpq audit verify --head`.

    Entries before the head that somebody cuts off, or rewrites with all hashes after them, are noticed. It needs a key.

    \b
    Example:
      cpq audit head --output /mnt/elsewhere/head.json --publish
    """
    with local_app.opened(options) as app:
        key_for_heads(app.audit_key)
        signed = audit_head.sign(app, _whole(app, None))
        if is_published:
            audit_head.publish(app, signed)
    if output is None:
        show_json(signed.written())
        return
    output.write_text(f"{canonical_json(signed.written())}\n", encoding="utf-8")
    click.echo(f"Wrote {output}: head {signed.seq}:{signed.hash}", err=True)


@audit_.command()
@click.option("--accept", "subject", help="A quote, `rights` or `catalog`: accept its changed rows as they are.")
@json_option
@pass_options
def baseline(options: Options, subject: str | None) -> None:
    """Record the state of everything that has none yet: quotes, tokens and prices from before states were recorded.

    What is on record already stays as it is. What differs from its record is recorded again only by --accept.
    With a key, states from before it are signed where the rows are as they say; compare before you set the key.

    \b
    Example:
      cpq audit baseline
    """
    with local_app.opened(options) as app:
        made = audit_state.accept(app, subject) if subject else audit_state.baseline(app)
    if options.as_json:
        show_json(made)
    else:
        click.echo(f"Recorded: {made['quotes']:,} quotes" + (f", {', '.join(made['also'])}." if made["also"] else "."))
        if made["differing"]:
            click.echo(f"Not signed, because rows differ from the record: {', '.join(made['differing'])}.", err=True)


@audit_.command("grants")
@click.option("--role", required=True, type=_Role(), help="The role that servers connect as; not the tables' owner.")
def grants_(role: str) -> None:
    """Print the SQL for a PostgreSQL role that can add audit entries, and neither change nor remove them.

    The owner of the tables runs it after `cpq init` and after each upgrade; servers then connect as the role.

    \b
    Example:
      cpq audit grants --role cpq_server | psql -v ON_ERROR_STOP=1 …
    """
    click.echo(grants.grants(role), nl=False)


def _seal_everything(app: App) -> None:
    """Seal the entries that other processes left unsealed, for example because they were killed."""
    sealed = audit.SEAL_BATCH
    while sealed >= audit.SEAL_BATCH:
        answer = local_app.write(
            app, "audit_seal", lambda tx: {"sealed": audit.seal(tx.connection, tx.tenant_id)}, arguments={}
        )
        sealed = answer["sealed"]
    app.flush_audit()


def _whole(app: App, expect: tuple[int, str] | None) -> Answer:
    """The report about a chain that is whole; CONFLICT names where it is not."""
    _seal_everything(app)
    report = _verify(app, expect)
    if report["broken_at"] is not None:
        message = f"The chain is broken at entry {report['broken_at']}: {report['reason']}."
        raise CpqError(Code.CONFLICT, message, **report)
    return report


def _verify(app: App, expect: tuple[int, str] | None) -> Answer:
    with Meter("Verifying the audit chain", app.effects) as meter:

        def work(tx: Tx) -> Answer:
            return asdict(audit.verify(tx.connection, tx.tenant_id, expect=expect, progress=meter))

        expected = f"{expect[0]}:{expect[1]}" if expect else None
        return local_app.read(app, "audit_verify", work, needs=Permission.ADMINISTER, expect=expected)
