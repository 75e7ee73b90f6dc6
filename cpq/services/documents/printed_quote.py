"""The content of a document together with its language: what every part of its pages reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cpq.services.documents.locale import Tongue

Content = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    label: str
    value: str
    is_total: bool = False


class PrintedQuote:
    """The content, with its lines by number, and its values in words."""

    def __init__(self, content: Content, tongue: Tongue) -> None:
        self.tongue = tongue
        self.quote: Content = content["quote"]
        self.buyer: Content = content["buyer"]
        self.products: Mapping[str, Content] = content["products"]
        self.sets: Sequence[Content] = content["option_sets"]
        self.asked: Mapping[int, Content] = {line["number"]: line for line in content["lines"]}
        self.currency: str = self.quote["currency"]

    @property
    def selected(self) -> Content:
        """The option set that the document offers."""
        return self.sets[0]

    def product(self, product_id: str) -> Content:
        return self.products.get(product_id, _UNKNOWN)

    def paragraphs(self, text: str | None) -> tuple[str, ...]:
        return tuple(self.tongue.text(part.strip()) for part in (text or "").splitlines() if part.strip())

    def value(self, value: object) -> str:
        """The value of an option, attribute or spec, isolated in its direction."""
        return self.tongue.isolated(self.plain(value))

    def plain(self, value: object) -> str:
        if isinstance(value, bool):
            return self.tongue.word("words", "true" if value else "false")
        if isinstance(value, Decimal | int):
            return self.tongue.number(value)
        return self.tongue.text(self.tongue.word("words", str(value)) if _WORD.fullmatch(str(value)) else value)


_WORD = re.compile(r"[a-z0-9_-]{1,40}")
_UNKNOWN: Content = {
    "sku": "",
    "name": "",
    "description": "",
    "category": "",
    "category_name": "",
    "specs": {},
    "attributes": {},
    "option_labels": {},
    "components": (),
}
"""Placeholder for a product without a sheet; its line still has a name and a price."""
