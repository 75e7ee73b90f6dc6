"""PURE. What must not stand in a text that the customer reads: remarks for the seller, and other customers' names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import NamedTuple

from cpq.base.text import without_hidden
from cpq.domain.quotes.customer_names import Names

_REMARK = re.compile(
    r"salesperson[\s_-]+review|retrieval[\s_-]+summary|^\W*from (?:past )?quote [^\s,(]*\d",
    re.IGNORECASE | re.MULTILINE,
)
"""The marks that drafts carried before quotes had internal notes."""


class Finding(NamedTuple):
    """The words that must not stand there, and whether they are a remark for the seller or a customer's name."""

    words: str
    is_remark: bool


def find_secret(text: str, customer: str, names: Names) -> Finding | None:
    """The first thing in a text for this customer that is not for them, as it would be printed; None for none."""
    text = _printed(text)
    remark = _REMARK.search(text)
    if remark:
        return Finding(remark[0].strip(), True)
    name = names.mentioned(text, customer)
    return None if name is None else Finding(name, False)


def find_doubt(text: str, customer: str, names: Names, usual: Collection[str] = ()) -> str | None:
    """A single word that begins another customer's name, and may be an ordinary word; None for none.

    A word among the `usual`, such as the name of a product, is no doubt.
    """
    return names.perhaps_mentioned(_printed(text), customer, usual)


def _printed(text: str) -> str:
    """Without what hides or only looks different: the paper shows none of it."""
    return unicodedata.normalize("NFKC", without_hidden(text))
