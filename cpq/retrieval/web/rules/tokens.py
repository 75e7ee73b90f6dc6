"""PURE. How many tokens a text costs a model, estimated: the tables of real tokenizers are fetched from the network.

The text is cut about as cl100k_base cuts it before it looks anything up: words, numbers of three digits, marks. Long
words and capitals count more than once, letters outside ASCII by their bytes; that is rather too high than too low.
"""

from __future__ import annotations

import re

_LETTERS_PER_TOKEN = 6
"""Common words are one token up to about this length; longer ones are mostly two or three."""

_WORD = re.compile(r"[A-Za-z]+")
_CAPITALS = re.compile(r"[A-Z]{2,}")
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_OTHERS = re.compile(r"[0-9]{1,3}|[^\w\s\x80-\U0010ffff]{1,2}|_|\n\s*|  +")


def count_tokens(text: str) -> int:
    """An estimate that is rather too high than too low."""
    words = _WORD.findall(text)
    count = len(words) + sum((len(word) - 1) // _LETTERS_PER_TOKEN for word in words if len(word) > _LETTERS_PER_TOKEN)
    count += sum(len(word) // 2 for word in _CAPITALS.findall(text))
    count += len(_OTHERS.findall(text))
    return count if text.isascii() else count + sum(len(each.encode()) for each in _FOREIGN.findall(text)) * 2 // 5
