"""Prints answers: tables that are not cut in a pipe, JSON, and the progress of long work."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import zip_longest
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

import click

from cpq.base.clock import Effects
from cpq.base.late_modules import LateModule
from cpq.base.text import shown_on_one_line, to_wire

if TYPE_CHECKING:
    from rich import cells, progress
    from rich import console as rich_console
else:
    cells = LateModule("rich.cells")
    progress = LateModule("rich.progress")
    rich_console = LateModule("rich.console")

PIPE_WIDTH = 10_000
"""Width of an output that is not a terminal: large enough that nothing is folded or cut."""

GAP = "   "
NARROW_WIDTH = 8
"""No column of a table is folded narrower than this."""

QUIET_SECONDS = 1
LINE_EVERY_SECONDS = 2


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Sequence[str] = (),
    stream: TextIO | None = None,
) -> None:
    """Print rows under headings; the columns in `numbers` are aligned right."""
    out = stream or sys.stdout
    body = [[_plain(value) for value in row] for row in rows]
    widths = _fitted([max(map(_width, column)) for column in zip(columns, *body, strict=True)], _room(out))
    is_number = [column in numbers for column in columns]
    heading = [_bold(line, out) for line in _lines(columns, widths, is_number)]
    rule = "─" * (sum(widths) + len(GAP) * (len(widths) - 1))
    lines = [line for row in body for line in _lines(row, widths, is_number)]
    out.write("\n".join([*heading, rule, *lines]) + "\n")


def show_pairs(pairs: Iterable[tuple[str, object]], *, stream: TextIO | None = None) -> None:
    """Print names and values, one pair per line; pairs without a value are left out."""
    out = stream or sys.stdout
    written = [(name, _plain(value)) for name, value in pairs if value is not None]
    width = max((_width(name) for name, _ in written), default=0)
    for name, value in written:
        blank = " " * (width - _width(name))
        first, *rest = _folded(value, max(NARROW_WIDTH, _room(out) - width - 1))
        out.write(f"{_bold(name, out)}{blank} {first}".rstrip() + "\n")
        out.writelines(f"{' ' * width} {line}\n" for line in rest)


def show_json(value: object) -> None:
    click.echo(json.dumps(to_wire(value), ensure_ascii=False, indent=2))


def counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def moment(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}Z"


class Meter:
    """Shows progress on stderr after one second: a bar on a terminal, else a line every two seconds."""

    def __init__(self, what: str, effects: Effects) -> None:
        self._what = what
        self._effects = effects
        self._next = effects.monotonic() + QUIET_SECONDS
        self._bar: progress.Progress | None = None

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
            self._bar.update(progress.TaskID(0), completed=done, total=total)
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
            count = progress.TaskProgressColumn() if total else progress.TextColumn("{task.completed:,}")
            what = progress.TextColumn("{task.description}")
            shown = rich_console.Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
            # With redirection, output for a file would end up beside the bar, and a terminal would be slow.
            self._bar = progress.Progress(
                what,
                progress.BarColumn(),
                count,
                progress.TimeRemainingColumn(),
                console=shown,
                redirect_stdout=False,
            )
            self._bar.add_task(self._what, total=total, completed=done)
            self._bar.start()
        else:
            self._next = self._effects.monotonic() + LINE_EVERY_SECONDS
            click.echo(f"{self._what}: {f'{100 * done // total} %' if total else f'{done:,}'}", err=True)


def _room(stream: TextIO) -> int:
    return shutil.get_terminal_size().columns if stream.isatty() else PIPE_WIDTH


def _bold(text: str, stream: TextIO) -> str:
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    has_colours = not is_plain and (stream.isatty() or bool(os.environ.get("FORCE_COLOR")))
    return click.style(text, bold=True) if text and has_colours else text


def _width(text: str) -> int:
    """How many columns of a terminal the text fills; some characters fill two."""
    return len(text) if text.isascii() else cells.cell_len(text)


def _fitted(widths: list[int], room: int) -> list[int]:
    """The widths of the columns; the widest become narrower until the table fits."""
    fitted = widths[:]
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - room
    for _ in range(excess):
        widest = max(range(len(fitted)), key=fitted.__getitem__)
        if fitted[widest] <= NARROW_WIDTH:
            break
        fitted[widest] -= 1
    return fitted


def _lines(row: Sequence[str], widths: Sequence[int], is_number: Sequence[bool]) -> Iterable[str]:
    """A row of a table: one line, or more when a cell is wider than its column."""
    folded = [_folded(cell, width) for cell, width in zip(row, widths, strict=True)]
    for parts in zip_longest(*folded, fillvalue=""):
        padded = []
        for part, width, to_the_right in zip(parts, widths, is_number, strict=True):
            blanks = " " * (width - _width(part))
            padded.append(blanks + part if to_the_right else part + blanks)
        yield GAP.join(padded).rstrip()


def _folded(text: str, width: int) -> list[str]:
    """The text in lines of this width, broken between words where that is possible."""
    if _width(text) <= width:
        return [text]
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if _width(joined) <= width:
            lines[-1] = joined
        else:
            lines += cells.chop_cells(word, width)
    return [line for line in lines if line]


def _plain(value: object) -> str:
    """The value as plain text, without markup and control characters."""
    return shown_on_one_line("" if value is None else f"{value:,}" if isinstance(value, int) else str(value))
