"""Prints answers: tables that are not cut in a pipe, JSON, and the progress of long work."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self, TextIO

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from cpq.base.clock import Effects
from cpq.base.text import to_wire

PIPE_WIDTH = 10_000
"""Width of an output that is not a terminal: large enough that nothing is folded or cut."""

GAP = "   "
QUIET_SECONDS = 1
LINE_EVERY_SECONDS = 2

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def console(stream: TextIO | None = None) -> Console:
    """A console on `stream` (default: stdout), without colours when NO_COLOR is set."""
    stream = stream or sys.stdout
    plain = bool(os.environ.get("NO_COLOR"))
    return Console(
        file=stream,
        width=None if stream.isatty() else PIPE_WIDTH,
        color_system=None if plain else "auto",
        highlight=False,
        markup=False,
        emoji=False,
    )


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Sequence[str] = (),
    stream: TextIO | None = None,
) -> None:
    """Print rows under headings; the columns in `numbers` are aligned right."""
    out = console(stream)
    cells = [[_plain(value) for value in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    if sum(widths) + len(GAP) * (len(widths) - 1) <= out.width:
        _print_as_it_is(out, columns, cells, widths, numbers)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    out.print(table)


def show_pairs(pairs: Iterable[tuple[str, object]], *, stream: TextIO | None = None) -> None:
    """Print names and values, one pair per line; pairs without a value are left out."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None:
            table.add_row(Text(name), Text(_plain(value)))
    console(stream).print(table)


def show_json(value: object) -> None:
    click.echo(json.dumps(to_wire(value), ensure_ascii=False, indent=2))


def counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def moment(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}Z"


def visible(text: str) -> str:
    """The text with control characters escaped: nothing moves the cursor or changes the text direction."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Meter:
    """Shows progress on stderr after one second: a bar on a terminal, else a line every two seconds."""

    def __init__(self, what: str, effects: Effects) -> None:
        self._what = what
        self._effects = effects
        self._next = effects.monotonic() + QUIET_SECONDS
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int | None = None) -> None:
        """Report progress: `done` of `total`, if that is known."""
        if self._bar is not None:
            self._bar.update(TaskID(0), completed=done, total=total)
        elif self._effects.monotonic() >= self._next:
            self._begin(done, total)

    def aside(self, text: str) -> None:
        """Print during the work: above the bar when both are on a terminal."""
        live = self._bar.live if self._bar is not None and sys.stdout.isatty() else None
        if live is not None:
            live.transient = True
            live.stop()
        sys.stdout.write(text)
        sys.stdout.flush()
        if live is not None:
            live.start()
            live.transient = False

    def _begin(self, done: int, total: int | None) -> None:
        if sys.stderr.isatty():
            count = TaskProgressColumn() if total else TextColumn("{task.completed:,}")
            columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn())
            # With redirection, output for a file would end up beside the bar, and a terminal would be slow.
            self._bar = Progress(*columns, console=console(sys.stderr), redirect_stdout=False)
            self._bar.add_task(self._what, total=total, completed=done)
            self._bar.start()
        else:
            self._next = self._effects.monotonic() + LINE_EVERY_SECONDS
            click.echo(f"{self._what}: {f'{100 * done // total} %' if total else f'{done:,}'}", err=True)


def _print_as_it_is(
    out: Console, columns: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int], numbers: Sequence[str]
) -> None:
    """Print a table that fits, a hundred times faster than rich does: quotes have thousands of lines."""
    is_number = [column in numbers for column in columns]

    def line(cells: Sequence[str]) -> str:
        padded = []
        for cell, width, to_the_right in zip(cells, widths, is_number, strict=True):
            blanks = " " * (width - cell_len(cell))
            padded.append(blanks + cell if to_the_right else cell + blanks)
        return GAP.join(padded).rstrip()

    out.print(Text(line(columns), style="bold"), soft_wrap=True)
    body = ["─" * (sum(widths) + len(GAP) * (len(widths) - 1)), *map(line, rows)]
    out.file.write("\n".join(body) + "\n")


def _plain(value: object) -> str:
    """The value as plain text, without markup and control characters."""
    return visible("" if value is None else f"{value:,}" if isinstance(value, int) else str(value))
