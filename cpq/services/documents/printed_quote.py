"""The content of a document together with its language: what every part of its pages reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cpq.domain.billing_periods import counted
from cpq.services.documents.locale import Tongue

Content = Mapping[str, Any]

NO_PRICE = "–"
"""Printed for the price of a line that only its rates say."""


@dataclass(frozen=True)
class Row:
    label: str
    value: str
    is_total: bool = False


def in_printed_order(
    products: Mapping[str, Content], asked: Mapping[int, Content], lines: Sequence[Content]
) -> list[Content]:
    """The lines of an option set in the order of the page, which numbers them: charges of once before recurring ones,
    and within both the lines of a category together."""
    groups: dict[tuple[bool, str], list[Content]] = {}
    for is_recurring in (False, True):
        for line in lines:
            if (line["billing_period"] != "one_time") == is_recurring:
                category = products.get(asked[line["number"]]["product_id"], _UNKNOWN)["category"]
                groups.setdefault((is_recurring, category), []).append(line)
    return [line for inside in groups.values() for line in inside]


def is_in_no_total(usage: Content) -> bool:
    """Whether nothing is committed for the use of a line: its price is then its rates, not zero."""
    return usage.get("commitment") is None and not usage["rate_card"]["committed_per_period"]


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

    def has_no_price(self, number: int) -> bool:
        """Whether only the rates of a line say what it costs."""
        return "usage" in self.asked[number] and is_in_no_total(self.asked[number]["usage"])

    def product(self, product_id: str) -> Content:
        return self.products.get(product_id, _UNKNOWN)

    @property
    def has_term(self) -> bool:
        return bool(self.quote["term_months"] or self.quote["end_date"])

    def recurring(self, priced: Content) -> str:
        """What a unit of a recurring line costs in one billing period, times its periods; empty for other lines."""
        period, price = priced["billing_period"], priced.get("unit_price_per_period")
        if "periods" not in priced and period != "one_time":
            # Older documents do not know the price of one period; a bundle can have several periods.
            return str(self.tongue.labels.get(period, ""))
        if price is None or (not price and "usage" in self.asked[priced["number"]]):
            return ""
        figure = self.tongue.unit_price(price, self.currency)
        count, unit = counted(period)
        shown = {"price": figure} if count == 1 else {"price": figure, "count": self.tongue.number(count)}
        key = period if count == 1 else unit
        if not (self.has_term or self.asked[priced["number"]].get("own_term")):
            return self.tongue.label(f"{key}_once", **shown)
        periods = priced["periods"]
        if isinstance(periods, str):  # A part of one period is `183/365`; its `0` is there for spreadsheets.
            number = self.tongue.figure(periods.removeprefix("0 "))
        else:
            number = self.tongue.number(periods)
        if count == 1 and periods == 1:
            return self.tongue.label(f"{key}_price_one", **shown, periods=number)
        return self.tongue.label(f"{key}_price", **shown, periods=number)

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
