"""PURE. Counts the tokens of a text as the tokenizer cl100k_base does.

Its table ships beside this file (MIT, by OpenAI): the length of each token in order of rank, then all tokens. The text
is cut into words, numbers of three digits, marks and blanks, and the bytes of each are joined, best rank first.
"""

from __future__ import annotations

import re
import zlib
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate

TOKENS = 100_256
PIECE_CHARACTERS_MAX = 100
"""A longer run of letters or marks is counted in parts, so that a hostile text takes no quadratic time. Each cut counts
one token too many at most."""

_PIECE = re.compile(
    r"'(?i:[sdmt]|ll|ve|re)|(?:[^\r\n\w]|_)?+[^\W\d_]++|\d{1,3}+| ?(?:[^\s\w]|_)++[\r\n]*+"
    r"|\s++\Z|\s*[\r\n]|\s+(?!\S)|\s"
)
_NONE = TOKENS
"""Worse than every rank."""


@lru_cache(maxsize=8)
def count_tokens(text: str) -> int:
    """The number of tokens. A whole answer is counted several times while it is put together."""
    if not text.isascii() and (numerals := {each: "0" for each in map(ord, set(text)) if _is_numeral(chr(each))}):
        spans = map(re.Match.span, _PIECE.finditer(text.translate(numerals)))
        return sum(_size(text[start:end]) for start, end in spans)
    return sum(map(_size, _PIECE.findall(text)))


def _is_numeral(character: str) -> bool:
    """A number that is no digit, such as ² or Ⅷ: a letter to regular expressions, not to the tokenizer."""
    return character.isnumeric() and not (character.isdecimal() or character.isalpha())


@lru_cache(maxsize=50_000)
def _size(piece: str) -> int:
    if len(piece) > PIECE_CHARACTERS_MAX:
        starts = range(0, len(piece), PIECE_CHARACTERS_MAX)
        return sum(_size(piece[start : start + PIECE_CHARACTERS_MAX]) for start in starts)
    ranks = _ranks()
    written = piece.encode(errors="replace")
    return 1 if written in ranks else _joined(written, ranks)


def _joined(written: bytes, ranks: dict[bytes, int]) -> int:
    """How many tokens remain when the pair with the best rank is joined as long as there is one."""
    parts = [written[place : place + 1] for place in range(len(written))]
    pairs = [ranks.get(written[place : place + 2], _NONE) for place in range(len(written) - 1)]
    while pairs and (best := min(pairs)) < _NONE:
        place = pairs.index(best)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
        del pairs[place]
        for beside in (place - 1, place):
            if 0 <= beside < len(pairs):
                pairs[beside] = ranks.get(parts[beside] + parts[beside + 1], _NONE)
    return len(parts)


@cache
def _ranks() -> dict[bytes, int]:
    """The rank of each token; read once, in 50 ms."""
    table = zlib.decompress(files(__package__).joinpath("cl100k_base.zlib").read_bytes())
    ends = list(accumulate(table[:TOKENS], initial=TOKENS))
    return {table[ends[rank] : ends[rank + 1]]: rank for rank in range(TOKENS)}
