"""Numbers as people write them in files, with separators and decimal commas, if they can mean one thing only."""

from __future__ import annotations

import re

_SPACES = "\u0020\u00a0\u2009\u202f'\u2019"
_SPACED = re.compile(rf"[+-]?[0-9]{{1,3}}([{_SPACES}][0-9]{{3}})+([.,][0-9]*)?")
_COMMAS = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?")
_DOTS = re.compile(r"[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+(,[0-9]*)?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")


class GroupedText(str):
    """A cell such as `1.234` of a file whose numbers have decimal commas: there it may mean 1234."""


def in_plain_digits(text: str) -> str:
    """The number with a point and without separators; ValueError when it can be read in two ways.

    `1,234` is 1234 to some and 1.234 to others, so it is refused; `1,234.5`, `1.234,5`, `1 234` and `1,5` mean one
    thing only. A text that is not such a number comes back as it is.
    """
    given = text.strip()
    if isinstance(text, GroupedText) or (_COMMAS.fullmatch(given) and given.count(",") == 1 and "." not in given):
        whole, fraction = given.replace(",", "").replace(".", ""), given.replace(",", ".")
        raise ValueError(f"{given} can mean {whole} or {fraction}; write {whole}, or {fraction}0 for the fraction")
    if _SPACED.fullmatch(given):
        return re.sub(f"[{_SPACES}]", "", given).replace(",", ".")
    if _COMMAS.fullmatch(given):
        return given.replace(",", "")
    if _DOTS.fullmatch(given) and (given.count(".") > 1 or "," in given):
        return given.replace(".", "").replace(",", ".")
    return given.replace(",", ".") if _DECIMAL_COMMA.fullmatch(given) else text


def marked(cell: str) -> str:
    """The cell of a file with decimal commas, marked when a point in it may separate thousands."""
    is_doubtful = _DOTS.fullmatch(cell.strip()) and cell.count(".") == 1 and "," not in cell
    return GroupedText(cell) if is_doubtful else cell
