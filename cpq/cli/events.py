"""`cpq events`: lists webhook events and their deliveries, and delivers them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from cpq.app import Answer
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.text import canonical_json
from cpq.cli import local_app
from cpq.cli.common_options import Options, json_option, pass_options
from cpq.cli.output import moment, show_json, show_pairs, show_table
from cpq.services import agreements, events, quotes
from cpq.services.events import delivery as event_delivery
from cpq.services.events.claims import Status

SHOWN = ("id", "created_at", "name", "subject", "number", "deliveries")
DELIVERY = ("webhook", "status", "attempts", "attempted_at", "due_at", "answer")


@click.group("events")
def events_() -> None:
    """List webhook events about quotes and approvals, and deliver them again.

    \b
    Example:
      cpq events list --status failed
    """


@events_.command("list")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many events.")
@click.option("--quote", "subject", metavar="ID", help="Only events of this quote.")
@click.option(
    "--status",
    type=click.Choice([status.value for status in Status]),
    help="Only events with a delivery in this state.",
)
@json_option
@pass_options
def list_(options: Options, limit: int, subject: str | None, status: str | None) -> None:
    """Show the newest events, latest first, with the state of their deliveries.

    \b
    Example:
      cpq events list --status waiting
    """

    def work(tx: Tx) -> list[Answer]:
        return events.list_events(tx, limit=limit, subject=subject, status=status)

    with local_app.opened(options) as app:
        asked = {"limit": limit, "subject": subject, "status": status}
        items = local_app.read(app, "event_list", work, needs=Permission.ADMINISTER, **asked)
    if options.as_json:
        show_json({"items": items})
    elif items:
        show_table(SHOWN, [_row(item) for item in items], numbers=("number",))
    else:
        click.echo("There are no such events.")


@events_.command()
@click.argument("event_id", metavar="ID")
@json_option
@pass_options
def show(options: Options, event_id: str) -> None:
    """Show one event: its data, and the result of each delivery.

    \b
    Example:
      cpq events show ev-01kq3v8n5e7d9xw2rjfb
    """
    with local_app.opened(options) as app:
        found = local_app.read(
            app, "event_show", lambda tx: events.get(tx, event_id), needs=Permission.ADMINISTER, id=event_id
        )
    if options.as_json:
        show_json(found)
        return
    named = {name: found[name] for name in ("id", "name", "subject", "number")}
    show_pairs([*named.items(), ("created_at", moment(found["created_at"])), ("data", canonical_json(found["data"]))])
    click.echo()
    if found["deliveries"]:
        rows = [[_cell(delivery[name]) for name in DELIVERY] for delivery in found["deliveries"]]
        show_table(DELIVERY, rows, numbers=("attempts",))
    else:
        click.echo("No webhook was configured when it happened; `cpq events replay` delivers it to the current ones.")


@events_.command()
@click.argument("event_id", metavar="ID")
@json_option
@pass_options
def replay(options: Options, event_id: str) -> None:
    """Deliver an event again to every webhook, even if it was delivered before.

    The delivery happens in the next round of a server, or of `cpq events deliver`.

    \b
    Example:
      cpq events replay ev-01kq3v8n5e7d9xw2rjfb
    """

    def work(tx: Tx) -> Answer:
        return {"id": event_id, "webhooks": events.replay(tx, event_id)}

    with local_app.opened(options) as app:
        answer = local_app.write(app, "event_replay", work, {"id": event_id}, subject=event_id)
    if options.as_json:
        show_json(answer)
    else:
        click.echo(f"Event {event_id} waits for {', '.join(answer['webhooks'])}.")


@events_.command()
@json_option
@pass_options
def deliver(options: Options) -> int:
    """Publish events for expired quotes and due renewals, and deliver all due events. Exit code 1 when one failed.

    A server does this continuously when CPQ_WEBHOOKS is set; use the command where no server runs.

    \b
    Example:
      cpq events deliver
    """
    with local_app.opened(options) as app:
        if not app.of(app.settings.tenant).settings.webhook_list:
            hint = "Set CPQ_WEBHOOKS and CPQ_WEBHOOK_SECRET."
            raise CpqError(Code.CONFLICT, "No webhook is configured.", hint=hint)
        expired = quotes.sweep(app) + quotes.sweep_drafts(app)
        renewals = agreements.sweep(app)
        attempts = event_delivery.deliver_due(app)
    if options.as_json:
        show_json({"expired": expired, "renewals_due": renewals, "attempts": [asdict(attempt) for attempt in attempts]})
    elif attempts:
        columns = ("event_id", "webhook", "attempt", "status", "answer")
        rows = [(made.event_id, made.webhook, made.number, made.status, made.answer) for made in attempts]
        show_table(columns, rows, numbers=("attempt",))
    else:
        click.echo("Nothing is due.")
    return 0 if all(made.status is Status.DELIVERED for made in attempts) else 1


def _row(item: Mapping[str, Any]) -> list[object]:
    return [_summary(item[name]) if name == "deliveries" else _cell(item[name]) for name in SHOWN]


def _summary(deliveries: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(delivery["status"] for delivery in deliveries)
    return ", ".join(f"{counts[status]} {status}" for status in Status if counts[status]) or "no webhook"


def _cell(value: object) -> object:
    return moment(value) if isinstance(value, datetime) else value
