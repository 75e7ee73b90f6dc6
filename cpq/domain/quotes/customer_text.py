"""PURE. What must not stand in a text that the customer reads: remarks for the seller, and other customers' names."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

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


def find_secret(text: str, customer: str, names: Names, usual: Collection[str] = ()) -> Finding | None:
    """The first thing in a text for this customer that is not for them; None for none.

    A word among the `usual`, such as the name of a product, is nobody's name when it stands alone.
    """
    remark = _REMARK.search(text)
    if remark:
        return Finding(remark[0].strip(), True)
    name = names.mentioned(text, customer, usual)
    return None if name is None else Finding(name, False)
