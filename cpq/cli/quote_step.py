"""One step of a deal on the command line: done in a person's name, then shown with the next command to type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TypeVar

import click

from cpq.app import Answer, Command
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.money import readable
from cpq.base.text import shown_on_one_line
from cpq.cli import local_app, next_command
from cpq.cli.common_options import Options, as_option, json_option, key_option, pass_options
from cpq.cli.output import show_json, show_pairs
from cpq.domain.approvals.approval_request import RequestStatus
from cpq.domain.quotes.lifecycle import QuoteStatus
from cpq.services import quotes

Work = Callable[[Tx, int], Mapping[str, object]]

F = TypeVar("F", bound=Callable[..., object])


def version_option(function: F) -> F:
    """Adds `--version`: refuse the step when the quote has moved on since the person looked at it."""
    return click.option(
        "--version",
        type=click.IntRange(1, 2**53),
        help="The version you saw; if there is another one now, nothing is done. Default: the current one.",
    )(function)


def reason_option(function: F) -> F:
    """Adds `--reason`: kept with the step."""
    return click.option("--reason", help="The reason, in one sentence.")(function)


def step_options(function: Callable[..., object]) -> Callable[..., object]:
    """Adds what every step of a quote takes: the quote, the version that was seen, the key, the person, `--json`."""
    for decorate in (pass_options, json_option, as_option, key_option, version_option, click.argument("quote_id")):
        function = decorate(function)
    return function


def take_use_case(
    options: Options,
    tool: str,
    use_case: Callable[..., Mapping[str, object]],
    quote_id: str,
    *,
    version: int | None,
    key: str | None,
    **arguments: object,
) -> None:
    """Do a step whose use case takes the quote, the expected version and these arguments."""
    take(
        options,
        tool,
        quote_id,
        lambda tx, expected: use_case(tx, quote_id, expected_version=expected, **arguments),
        {"expected_version": version, **arguments},
        key=key,
    )


def take(
    options: Options,
    tool: str,
    quote_id: str,
    work: Work,
    arguments: Mapping[str, object],
    *,
    key: str | None,
    needs: Permission = Permission.QUOTE,
) -> None:
    """Do one step of a quote in one transaction, as the tool of this name does it, and show what became of it.

    `work` gets the version that is expected: the given one, else the one that is current in this transaction.
    """

    def step(tx: Tx) -> Answer:
        given = arguments.get("expected_version")
        version = given or quotes.get(tx, quote_id, include_pricing=False)["quote"]["version"]
        assert isinstance(version, int)
        return dict(work(tx, version))

    options.subject = quote_id
    with local_app.opened(options) as app:
        id_ = local_app.quote_id(app, quote_id)
        command = Command(tool, needs, {"quote_id": id_, **arguments}, idempotency_key=key, subject=id_)
        outcome = local_app.write_as_person(app, options, command, step)
    show(options, outcome.answer, is_replayed=outcome.replayed)


def show(options: Options, answer: Answer, *, is_replayed: bool) -> None:
    """Print the answer to a step: what happened, how the quote stands, and what to type next."""
    if options.as_json:
        show_json({**answer, "replayed": is_replayed})
        return
    status = answer.get("quote_status") or answer["status"]
    total, currency = answer.get("total"), answer.get("currency")
    if is_replayed:
        click.echo("This was done before with the same key; nothing changed now. The answer was:")
    click.echo(shown_on_one_line(str(answer["message"])))
    show_pairs(
        [
            ("quote", answer["quote_id"]),
            ("number", answer.get("number")),
            ("version", answer["version"]),
            ("status", status),
            ("total", f"{wired(total, currency)} {currency}" if total is not None and currency else None),
            ("valid until", answer.get("valid_until")),
        ]
    )
    for warning in answer.get("warnings") or ():
        click.echo(shown_on_one_line(f"Note: {warning}"))
    is_withdrawn = answer["status"] == RequestStatus.WITHDRAWN and status == QuoteStatus.PENDING_APPROVAL
    follows = QuoteStatus.EXPIRED if is_withdrawn else status  # Nobody is asked any more; a revision goes on.
    show_next(next_command.after(follows, str(answer["quote_id"]), options.person))


def wired(amount: object, currency: str) -> str:
    """An amount of an answer, which is a JSON number by now, for people."""
    return readable(Decimal(str(amount)), currency)


def show_next(command: str | None) -> None:
    if command:
        click.echo(f"Next: {command}")
