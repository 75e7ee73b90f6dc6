"""The format of a file that a command writes: the one that was given, or the one that its name ends in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click


def form_of(form: str | None, output: str, forms: Sequence[str], *, default: str) -> str:
    """The format that was given, else the one of the file ending. A contradiction is refused."""
    ending = Path(output).suffix.lower()
    meant = _ALSO.get(ending, ending.removeprefix("."))
    if form is None and ending and meant not in forms:
        known = ", ".join(f".{one}" for one in (*forms, *(also[1:] for also, one in _ALSO.items() if one in forms)))
        raise click.UsageError(f"{output} ends in {ending}, which is not one of {known}: rename it, or give --format.")
    if form is not None and meant != form and meant in forms:
        raise click.UsageError(f"--format is {form}, but {output} ends in {ending}: leave one out, or make them agree.")
    return form or meant or default


_ALSO = {".yml": "yaml", ".xml": "ubl", ".htm": "html"}
"""Other file endings of a format."""
