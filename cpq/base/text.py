"""Rules for text: normalised, printable, storable on every database and harmless in a log or a page."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec

_REFUSED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_EXACT = json.JSONDecoder(parse_float=Decimal)
_PLAIN = frozenset({str, int, bool, float, type(None)})
_BARE_NUMBER = re.compile(r'"\\u0000(-?[0-9.]+)\\u0000"')
_UNPRINTED = re.compile(r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Characters that count as printable but show nothing."""

_DIRECTION = re.compile(r"[\u061c\u202a-\u202e\u2066-\u2069]")
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"
"""The flag of a region, which is written with characters that show nothing."""

_HIDDEN = re.compile(
    f"({_FLAG})"
    "|(?:[\xad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
    "|(?<![\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
    "|(?<![\u0300-\u1fff\u2070-\U0010ffff])[\u200c\u200d]"
    "|(?<=[A-Za-z\\s\ufe00-\ufe0f])[\ufe00-\ufe0f])[\u200c\u200d\ufe00-\ufe0f]*"
)
"""Characters that show nothing where they stand, or change the reading direction. Joiners and variations hide in Latin
text only: Persian words, many scripts of India and emoji are written with them. Marks of direction turn nothing around.
The group is what stays."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FORMULA = re.compile(r"'*[ ]*[=+\-@\t\r\n＝＋－＠]")
_MARKS_MAX = 30
"""Unicode's limit for stream-safe text; sorting the marks of one letter takes quadratic time."""

_NEITHER_WORD_NOR_ASCII = re.compile(rf"[^\w\s\x00-\x7f]{{{_MARKS_MAX + 1},}}")


def clean(text: str) -> str:
    """`text` in one Unicode form; ValueError if it contains control characters or half a character."""
    if text.isascii():
        if text.isprintable():
            return text
    else:
        _refuse_floods(text)
        text = unicodedata.normalize("NFC", text)
    if found := _REFUSED.search(text):
        raise ValueError(f"contains a character that is not text (U+{ord(found[0]):04X})")
    return text


def clean_identifier(text: str) -> str:
    """Trimmed and not blank; refuses invisible and direction-changing characters, so that no two ids look alike."""
    is_plain = text.isascii() and text.isprintable()
    text = (text if is_plain else clean(text)).strip()
    if not text:
        raise ValueError("is blank")
    if is_plain:
        return text
    if not text.isprintable() or _UNPRINTED.search(text):
        raise ValueError("contains an invisible character or a blank other than a space")
    return text


def clean_line(text: str) -> str:
    """A name, title or label: trimmed, not blank, on one line, without characters that change the direction."""
    text = clean(text).strip()
    if not text:
        raise ValueError("is blank")
    if text.isascii() and text.isprintable():
        return text
    if "\t" in text or text.splitlines() != [text]:
        raise ValueError("must be one line of text")
    if found := _DIRECTION.search(text):
        raise ValueError(f"contains a character that changes the direction of the text (U+{ord(found[0]):04X})")
    return text


def shown(text: str) -> str:
    """Text of others for a reader: a character that hides or turns the text around is shown as its code, `\\u202e`."""
    return text if text.isascii() else _HIDDEN.sub(lambda found: found[1] or "".join(map(_code, found[0])), text)


def shown_on_one_line(text: str) -> str:
    """The same for a line of a log or a terminal: nothing ends the line or moves the cursor, either."""
    if text.isascii() and text.isprintable():
        return text
    return shown(_CONTROL.sub(lambda found: _code(found[0]), text))


def without_hidden(text: str) -> str:
    """The text as a document prints it, in which the code of a character would only puzzle the customer."""
    return text if text.isascii() else _HIDDEN.sub(lambda found: found[1] or "", text)


def without_formula(text: str) -> str:
    """The text for a cell of a spreadsheet, which would run one that starts like a formula: with an apostrophe."""
    return f"'{text}" if _FORMULA.match(text) else text


def with_formula(cell: str) -> str:
    """The text that `without_formula` wrote into a cell."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def canonical_json(value: object) -> str:
    """One spelling for equal values: sorted keys, no blanks, exact numbers. Used for all that is stored and hashed."""
    written = _CANONICAL.encode(value)
    return _BARE_NUMBER.sub(r"\1", written) if "\\u0000" in written else written


def plain_json(value: object) -> str:
    """The same text in an eighth of the time, for values without floats: requests and results."""
    written = _PLAIN_JSON.encode(value).decode()
    # The two encoders spell text beyond plain ASCII differently.
    return written if written.isascii() and "\x7f" not in written else canonical_json(value)


def read_json(text: str) -> Any:
    """The value that `canonical_json` wrote; numbers with a point come back as exact decimals."""
    return _EXACT.decode(text)


def fingerprint(value: object) -> str:
    """SHA-256 of the canonical JSON of `value`, in hex."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def digest(texts: Iterable[str]) -> str:
    """SHA-256 of texts that are already canonical, in hex."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def to_wire(value: Any) -> Any:
    """JSON values for a client: decimals as numbers (exact to 15 digits), moments as `…Z`, enums as their values."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {name: item if type(item) in _PLAIN else to_wire(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_wire(item) for item in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return value.value if isinstance(value, Enum) else value


def _code(character: str) -> str:
    """A character as people and programs write one that they cannot see."""
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _plain_value(value: object) -> object:
    if isinstance(value, Decimal):
        # json cannot write decimals: mark it with NUL, which no stored text may contain, and unquote it afterwards.
        return f"\0{_digits(value)}\0"
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def _digits(number: Decimal) -> str:
    """The number without exponent, trailing zeros or a negative zero; as text, because arithmetic would round."""
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _refuse_floods(text: str) -> None:
    for run in _NEITHER_WORD_NOR_ASCII.findall(text):
        if sum(map(bool, map(unicodedata.combining, run))) > _MARKS_MAX:
            raise ValueError(f"contains more than {_MARKS_MAX} combining marks in a row")


_PLAIN_JSON = msgspec.json.Encoder(order="deterministic", decimal_format="number")

# Stored values have no cycles, and checking for them would take a third of the encoding time.
_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, check_circular=False, default=_plain_value
)
