"""`cpq policy simulate`: lists stored quotes with another decision under other policies, as they are found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from cpq.app import App, Command
from cpq.app.access import Permission
from cpq.base.memory import spare_the_collector
from cpq.base.money import from_micro, readable
from cpq.base.text import shown_on_one_line, to_wire
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import Meter, show_table
from cpq.cli.policy_folders import FOLDER, chosen, loaded
from cpq.domain.policy.diff import Turn
from cpq.domain.policy.evaluation import PolicyDecision, Violation
from cpq.domain.policy.policy_set import PolicySet
from cpq.services import quotes
from cpq.services.quotes.simulation import Changed, Page


@click.command()
@click.argument("new", type=FOLDER)
@click.option("--old", type=FOLDER, metavar="DIR", help="The policies to compare with. Default: those in use.")
@click.option(
    "--against",
    type=click.Choice(["stored"]),
    default="stored",
    show_default=True,
    help="Quotes to decide: the current version of all stored quotes.",
)
@json_option
@pass_options
def simulate(options: Options, new: Path, old: Path | None, against: str) -> None:
    """List stored quotes that the new policies decide differently, with old and new approvers and the reasons.

    Each quote is decided from its stored price. Nothing is priced again or changed.

    \b
    Example:
      cpq policy simulate ./policies-2027 --against stored
    """
    after = loaded(new)
    show = _Json() if options.as_json else _Text()
    turns: Counter[Turn] = Counter()
    count = 0
    with local_app.opened(options) as app, Meter("Deciding quotes", app.effects) as meter:
        is_adopted = old is None and app.settings.policies_adopt == "manual"
        before = app.of(app.settings.tenant).policies.current() if is_adopted else loaded(chosen(options, old))
        spare_the_collector()
        for page, total in _pages(app, before, after, against):
            count += page.quotes
            turns.update(found.change.turn for found in page.changed)
            if page.changed:
                meter.aside(show.changes(page.changed))
            meter(count, max(count, total))
    show.summary(count, turns, before, after)


def _pages(app: App, before: PolicySet, after: PolicySet, against: str) -> Iterator[tuple[Page, int]]:
    """Each page with the number of all quotes, in a transaction of its own.

    Slow printing must not hold a snapshot, and a page that is read again must not be printed twice.
    """
    asked = {"old": before.content_hash, "new": after.content_hash, "against": against}
    call, command = app.new_call(app.operator), Command("policy_simulate", Permission.ADMINISTER, asked)
    total = app.read(call, command, quotes.count_quotes)
    simulation = quotes.Simulation(before, after)
    last, is_first = None, True
    while last is not None or is_first:
        page = app.read_unaudited(call, partial(simulation.page, last=last))
        yield page, total
        last, is_first = page.last, False


class _Text:
    """A paragraph for each quote, then a table."""

    def changes(self, found: list[Changed]) -> str:
        return "".join(f"{shown_on_one_line(line)}\n" for one in found for line in _paragraph(one))

    def summary(self, count: int, turns: Counter[Turn], before: PolicySet, after: PolicySet) -> None:
        if turns:
            click.echo()
            show_table(("change", "quotes"), [(turn, turns[turn]) for turn in Turn if turns[turn]], numbers=("quotes",))
            click.echo()
        same = " The policies are the same." if before.content_hash == after.content_hash else ""
        quotes_ = "quote" if count == 1 else "quotes"
        click.echo(f"{turns.total():,} of {count:,} stored {quotes_} would be decided differently.{same}")


class _Json:
    """One JSON document, written in parts, with a quote on each line."""

    def __init__(self) -> None:
        self._before_next = '{"changes": ['

    def changes(self, found: list[Changed]) -> str:
        lines = ",\n".join(json.dumps(to_wire(_described(one)), ensure_ascii=False) for one in found)
        opening, self._before_next = self._before_next, ","
        return f"{opening}\n{lines}"

    def summary(self, count: int, turns: Counter[Turn], before: PolicySet, after: PolicySet) -> None:
        opening = self._before_next if self._before_next != "," else "\n"
        summary = {
            "quotes": count,
            "changed": turns.total(),
            "by_change": {turn.value: turns[turn] for turn in Turn if turns[turn]},
            "hashes": {"old": before.content_hash, "new": after.content_hash},
        }
        click.echo(f'{opening}], "summary": {json.dumps(summary, ensure_ascii=False)}}}')


def _paragraph(found: Changed) -> Iterator[str]:
    before, after = found.change
    amount = f"{readable(from_micro(found.total), found.currency)} {found.currency}"
    yield f"{found.quote_id}, version {found.version}, {found.status}, {found.account_id}, {amount}"
    yield f"    {_approvers(before)} → {_approvers(after)}"
    gone, come = _unlike(before, after), _unlike(after, before)
    yield from (f"    - {violation.policy_id}: {violation.description}" for violation in gone)
    yield from (f"    + {violation.policy_id}: {violation.description}" for violation in come)
    if not gone and not come:
        yield "    the same policies apply, but other roles are asked, or in another order"


def _unlike(decision: PolicyDecision, other: PolicyDecision) -> list[Violation]:
    """The violations of a decision that the other lacks, or has with another effect."""
    known = {_effect(violation) for violation in other.violations}
    return [violation for violation in decision.violations if _effect(violation) not in known]


def _effect(violation: Violation) -> tuple[str, str, str | None]:
    return violation.policy_id, violation.severity, violation.required_approver_role


def _approvers(decision: PolicyDecision) -> str:
    """`vp_sales + legal` for roles asked at once, `sales_manager, then vp_sales` for roles asked in turn."""
    if decision.is_blocked:
        return "blocked"
    return " + ".join(", then ".join(chain) for chain in decision.chains) or "nobody"


def _described(found: Changed) -> dict[str, Any]:
    return {
        "quote_id": found.quote_id,
        "version": found.version,
        "status": found.status,
        "account_id": found.account_id,
        "currency": found.currency,
        "total": from_micro(found.total),
        "change": found.change.turn,
        "before": _decision(found.change.before),
        "after": _decision(found.change.after),
    }


def _decision(decision: PolicyDecision) -> dict[str, Any]:
    return {
        "approvers": decision.chains,
        "blocked": decision.is_blocked,
        "violations": [
            {
                "policy_id": violation.policy_id,
                "severity": violation.severity,
                "role": violation.required_approver_role,
                "description": violation.description,
                "threshold": violation.threshold,
                "actual": violation.actual,
                "lines": violation.line_ids,
            }
            for violation in decision.violations
        ],
    }
