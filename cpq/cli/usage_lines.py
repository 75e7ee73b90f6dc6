"""Prints the rates of lines that are charged by their use, and what of them is in the total."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from cpq.base.text import shown_on_one_line


def show_rate_cards(lines: Iterable[Mapping[str, Any]]) -> None:
    """Two rows for each line with a rate card; nothing for others."""
    for line in lines:
        if "rate_card" in line:
            number, card = line.get("number") or line["line_id"].rpartition("-")[2], line["rate_card"]
            click.echo(shown_on_one_line(f"Line {number}, by use: {card['rates']}."))
            click.echo(f"  {shown_on_one_line(card['in_words'])}")
