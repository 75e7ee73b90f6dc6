"""What `cpq demo` shows: numbered steps for a reader, or the same as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cpq.base.money import readable

READING_SECONDS = 0.5
"""Pause after a step at a terminal, for the eye; `--fast` leaves it out."""

PIPE_WIDTH = 10_000
BAR_WIDTH = 30
INDENT = (0, 0, 0, 3)

Body = dict[str, Any]


class Screen:
    """Shows the steps as they happen, and keeps them for `--json`."""

    def __init__(self, *, as_json: bool) -> None:
        is_plain = bool(os.environ.get("NO_COLOR"))
        self._console = Console(
            width=None if sys.stdout.isatty() else PIPE_WIDTH,
            color_system=None if is_plain else "auto",
            highlight=False,
            markup=False,
            emoji=False,
            quiet=as_json,
        )
        self.steps: list[Body] = []

    @property
    def requests(self) -> int:
        return sum(len(step["requests"]) for step in self.steps)

    def heading(self, title: str) -> None:
        self.steps.append({"step": len(self.steps) + 1, "title": title, "requests": []})
        self._console.print()
        self._console.print(Text(f"{len(self.steps)}. {title}", style="bold cyan"))

    def request(self, caller: str, name: str, arguments: Mapping[str, object]) -> Body:
        """Show a request. Its record is returned, for the answer."""
        request: Body = {"caller": caller, "name": name, "arguments": dict(arguments)}
        self.steps[-1]["requests"].append(request)
        shown = " ".join(f"{key}={_short(value)}" for key, value in arguments.items() if key != "idempotency_key")
        line = Text.assemble(f"{caller} → ", (name, "bold"), f" {shown}", style="green")
        self._console.print(Padding(line, INDENT, expand=False))
        return request

    def say(self, text: str, style: str = "") -> None:
        self._console.print(Padding(Text(text, style=style), INDENT, expand=False))

    def refusal(self, error: Mapping[str, Any]) -> None:
        self.say(f"{error['code']}: {error['message']}", style="yellow")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Columns whose heading ends in `#` hold numbers."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column.rstrip("#"), justify="right" if column.endswith("#") else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
        self._console.print(Padding(table, INDENT, expand=False))

    def waterfall(self, stages: Sequence[tuple[str, Decimal]], currency: str) -> None:
        """Bars from the list price to the total: each stage begins where the one before it ended."""
        table = Table(box=None, pad_edge=False, show_header=False)
        for justify in ("left", "right", "left", "left"):
            table.add_column(justify=justify)
        highest = max((amount for _, amount in stages), default=Decimal(1)) or Decimal(1)
        reached = Decimal(0)
        for place, (name, amount) in enumerate(stages):
            is_level = place in (0, len(stages) - 1)
            start = Decimal(0) if is_level else min(reached, reached + amount)
            left, width = (round(BAR_WIDTH * part / highest) for part in (start, abs(amount)))
            bar = Text(" " * left + ("█" if is_level else "▒") * width, style="cyan" if is_level else "yellow")
            table.add_row(Text(name), Text(readable(amount, currency)), Text(currency), bar)
            reached = amount if is_level else reached + amount
        self._console.print(Padding(table, INDENT, expand=False))

    def end(self, words: str, last: str | None = None) -> None:
        self._console.print()
        self._console.print(Text(words, style="bold"))
        if last is not None:
            self._console.print(Text(last), soft_wrap=True)

    def as_json(self, **facts: object) -> str:
        return json.dumps({"steps": self.steps, "requests": self.requests, **facts}, indent=1, ensure_ascii=False)


def _short(value: object) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= 60 else f"{written[:57]}…"
