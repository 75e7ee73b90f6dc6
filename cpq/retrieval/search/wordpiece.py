"""PURE. BERT's uncased WordPiece tokenizer; gives the same ids as the library `tokenizers`."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise

TOKENS_MAX = 256
"""The model was trained on texts of at most this length; the rest of a longer text is found by its words alone."""


class Tokenizer:
    """Splits a text into the ids of its word pieces."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        self._ids = ids
        self._start, self._end, self._unknown = (self._ids[name] for name in ("[CLS]", "[SEP]", "[UNK]"))
        self._known: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        """The ids of the beginning of a text, as much as the model reads."""
        found: list[int] = []
        for word in _split(text):
            found += self._pieces(word)
            if len(found) >= TOKENS_MAX - 2:
                break
        return [self._start, *found[: TOKENS_MAX - 2], self._end]

    def parts(self, text: str, parts_max: int) -> list[list[int]]:
        """The ids of a long text in parts that the model can read, of about equal length; at most `parts_max`."""
        room = TOKENS_MAX - 2
        found: list[int] = []
        for word in _split(text, parts_max):
            found += self._pieces(word)
            if len(found) >= room * parts_max:
                break
        found = found[: room * parts_max]
        count = max(1, -(-len(found) // room))
        cuts = [len(found) * number // count for number in range(count + 1)]
        return [[self._start, *found[start:end], self._end] for start, end in pairwise(cuts)]

    def _pieces(self, word: str) -> list[int]:
        if (known := self._known.get(word)) is not None:
            return known
        if len(self._known) > 50_000:
            self._known.clear()
        self._known[word] = pieces = self._cut(word)
        return pieces

    def _cut(self, word: str) -> list[int]:
        """The longest known piece first, then the longest of the rest, marked with ##."""
        if len(word) > 100:
            return [self._unknown]
        pieces, start = [], 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                if (number := self._ids.get(mark + word[start:end])) is not None:
                    break
            else:
                return [self._unknown]
            pieces.append(number)
            start = end
        return pieces


def _split(text: str, parts: int = 1) -> Iterator[str]:
    """Words without case and accents; every punctuation mark and every Chinese character is its own word."""
    # Only characters that can fill the model are read; the longest token is well below 20 characters.
    text = text[: parts * TOKENS_MAX * 60]
    if text.isascii():
        text = text.lower()
    else:  # One character at a time: `str.lower` writes a sigma at the end of a word differently.
        bare = (c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
        text = "".join(map(str.lower, bare))
    word: list[str] = []
    for character in text:
        kind = _kind(character)
        if kind == "word":
            word.append(character)
            continue
        if kind == "nothing":
            continue
        if word:
            yield "".join(word)
            word = []
        if kind == "mark":
            yield character
    if word:
        yield "".join(word)


@cache
def _kind(character: str) -> str:
    code, category = ord(character), unicodedata.category(character)
    if character in "\t\n\r" or category == "Zs":
        return "blank"
    if code in (0, 0xFFFD) or category in ("Cc", "Cf", "Cn", "Co"):
        return "nothing"
    is_ascii_mark = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    if is_ascii_mark or category.startswith("P") or any(low <= code <= high for low, high in _CHINESE):
        return "mark"
    return "word"


_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
