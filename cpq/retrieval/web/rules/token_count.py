"""PURE. Estimates the tokens of a text: the tables of real tokenizers are downloaded at run time.

The text is cut about as cl100k_base cuts it: words, numbers of three digits, marks. Long words and capitals count more
than once, letters outside ASCII by their bytes; the estimate is rather too high than too low.
"""

from __future__ import annotations

import re

_LETTERS_PER_TOKEN = 6
"""Common words up to about this length are one token; longer ones are mostly two or three."""

_WORD = re.compile(r"[A-Za-z]+")
_CAPITALS = re.compile(r"[A-Z]{2,}")
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_OTHERS = re.compile(r"[0-9]{1,3}|[^\w\s\x80-\U0010ffff]{1,2}|_|\n\s*|  +")


def count_tokens(text: str) -> int:
    """The estimated number of tokens, rather too high than too low."""
    words = _WORD.findall(text)
    count = len(words) + sum((len(word) - 1) // _LETTERS_PER_TOKEN for word in words if len(word) > _LETTERS_PER_TOKEN)
    count += sum(len(word) // 2 for word in _CAPITALS.findall(text))
    count += len(_OTHERS.findall(text))
    return count if text.isascii() else count + sum(len(each.encode()) for each in _FOREIGN.findall(text)) * 2 // 5
