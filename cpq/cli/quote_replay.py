"""`cpq quote replay`: proves stored prices by pricing them again."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

import click

from cpq.app import Answer, App
from cpq.app.transaction import Tx
from cpq.base.money import from_micro, readable
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, counted, show_json, show_table
from cpq.services import quotes

HASH_LENGTH = 12


@click.command()
@click.argument("quote_id", required=False)
@click.option("--all", "is_all", is_flag=True, help="Every version of every quote.")
@json_option
@pass_options
def replay(options: Options, quote_id: str | None, is_all: bool) -> None:
    """Price stored versions again, and prove that results and hashes are the same to the byte.

    Exit code 1 with the first difference when they are not. A newer catalogue or newer policies are reported, and are
    no error: the stored request holds everything that the price depends on.

    \b
    Example:
      cpq quote replay --all
    """
    if is_all == (quote_id is not None):
        raise click.UsageError("Give the id of a quote, or --all.")
    with local_app.opened(options) as app:
        answer = _replay(app, quote_id, keeps_proofs=not is_all)
    if options.as_json:
        show_json(answer)
        return
    if answer["proofs"]:
        _show_proofs(answer["proofs"])
    click.echo(_summary(answer))


def _replay(app: App, quote_id: str | None, *, keeps_proofs: bool) -> Answer:
    with Meter("Replaying quotes", app.effects) as meter:

        def work(tx: Tx) -> Answer:
            counts: Counter[str] = Counter(quotes=0, versions=0, lines=0, catalog_moved_on=0, policies_moved_on=0)
            proofs, last = [], ""
            for proof in quotes.replay_stored(tx, quote_id, meter):
                counts["quotes"] += proof.quote_id != last
                counts["versions"] += 1
                counts["lines"] += proof.lines
                counts["catalog_moved_on"] += not proof.has_same_catalog
                counts["policies_moved_on"] += not proof.has_same_policies
                last = proof.quote_id
                if keeps_proofs:
                    proofs.append({**asdict(proof), "total": from_micro(proof.total)})
            return {**counts, "proofs": proofs}

        return local_app.read(app, "quote_replay", work, quote_id=quote_id)


def _show_proofs(proofs: list[Answer]) -> None:
    columns = ("version", "status", "lines", "total", "", "request", "result", "catalogue", "policies")
    rows = [
        (
            proof["version"],
            proof["status"],
            proof["lines"],
            readable(proof["total"], proof["currency"]),
            proof["currency"],
            proof["hashes"]["request"][:HASH_LENGTH],
            proof["hashes"]["result"][:HASH_LENGTH],
            "as then" if proof["has_same_catalog"] else "moved on",
            "as then" if proof["has_same_policies"] else "moved on",
        )
        for proof in proofs
    ]
    show_table(columns, rows, numbers=("version", "lines", "total"))


def _summary(answer: Answer) -> str:
    moved = " and ".join(
        f"{answer[f'{what}_moved_on']:,} {name}"
        for what, name in (("catalog", "of another catalogue"), ("policies", "under other policies"))
        if answer[f"{what}_moved_on"]
    )
    return (
        f"Proven: {counted(answer['versions'], 'version')} of {counted(answer['quotes'], 'quote')}, "
        f"{counted(answer['lines'], 'line')}. "
        "Every request gives the same result to the byte, and all hashes and amounts are correct."
        + (f"\nChanged since, which is no error: {moved}." if moved else "")
    )
