"""`cpq order`: the group of the commands about orders; each is in a file of its own beside this one."""

from __future__ import annotations

import click

from cpq.cli.lazy_group import LazyGroup

ORDER_COMMANDS = {
    "show": ("cpq.cli.order_show:show", "Show an order: lines, amounts and billing schedule."),
    "export": ("cpq.cli.order_export:export_order", "Write an order as JSON, CSV or UBL."),
}


@click.group(cls=LazyGroup, lazy=ORDER_COMMANDS)
def order() -> None:
    """Show and export orders: what customers accepted, and when it is billed.

    \b
    Example:
      cpq order show SO-2026-000001
    """
