"""Turns the content of a document into what its pages print: grouped, added up, in its locale."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

from cpq.services.documents.comparison import Alternative, Comparison, alternative, comparisons
from cpq.services.documents.design import Brand, Design
from cpq.services.documents.line_table import LineTable, LineView, Note, Section, Widths, widths_of
from cpq.services.documents.locale import Tongue
from cpq.services.documents.printed_quote import Content, PrintedQuote, Row
from cpq.services.documents.totals import totals_of

LETTER_COUNTRIES = ("US", "CA", "MX", "PH", "CL", "CO")
FACTS_ABREAST_MAX = 5
LONG_FROM = 100
"""Number of lines from which a quote is set more densely."""

SHORT_UP_TO = 4
"""Number of lines up to which a quote should fit a page, and a group of one line has no subtotal."""


@dataclass(frozen=True)
class Work:
    """The work at the customer's site, over all its lines."""

    quantity: str
    name: str
    description: str


@dataclass(frozen=True)
class DocumentView:
    """Everything a template prints."""

    tongue: Tongue
    brand: Brand
    texts: Any
    paper: str
    number: str
    version: str
    version_number: str
    title: str
    subject: str
    currency: str
    issued_at: str
    fingerprint: str
    mark: str
    """Names the quote in the properties of the file."""
    facts: tuple[tuple[Row, ...], ...]
    """In rows, so that no column gets too narrow."""
    buyer: str
    address: tuple[str, ...]
    attention: str
    salutation: str
    notes: tuple[str, ...]
    sections: tuple[Section, ...]
    has_discount: bool
    widths: Widths
    totals: tuple[Row, ...]
    total: str
    tax_note: str
    line_notes: tuple[Note, ...]
    alternatives: tuple[Alternative, ...]
    comparisons: tuple[Comparison, ...]
    installation: tuple[Work, ...]
    exclusions: tuple[str, ...]
    terms: tuple[str, ...]
    stamp: str
    stamp_lines: tuple[str, ...]
    stamp_text: str

    @property
    def is_long(self) -> bool:
        return len(self.lines) > LONG_FROM

    @property
    def is_short(self) -> bool:
        return len(self.lines) <= SHORT_UP_TO

    @property
    def lines(self) -> tuple[LineView, ...]:
        return tuple(line for section in self.sections for group in section.groups for line in group.lines)


def present(
    design: Design, content: Content, locale: str, stamp: str | None, *, with_comparison: bool = False
) -> DocumentView:
    """The view of a document with this content in this locale."""
    return _Presenter(design, content, design.tongue(locale)).view(stamp, with_comparison)


def paper_of(brand: Brand, country: str) -> str:
    if brand.paper != "auto":
        return brand.paper
    return "Letter" if country in LETTER_COUNTRIES else "A4"


class _Presenter:
    """The parts of a document around its lines: the buyer, the seller and the agreement."""

    def __init__(self, design: Design, content: Content, tongue: Tongue) -> None:
        self.design = design
        self.tongue = tongue
        self.printed = PrintedQuote(content, tongue)
        self.quote = self.printed.quote
        self.buyer = self.printed.buyer

    def view(self, stamp: str | None, with_comparison: bool) -> DocumentView:
        t, quote, brand, printed = self.tongue, self.quote, self.design.brand, self.printed
        selected, table = printed.selected, LineTable(printed)
        texts = brand.texts_in(t.language)
        installation = tuple(self._works(selected))
        exclusions = texts.exclusions if installation else (*texts.exclusions_without_installation, *texts.exclusions)
        values = {
            "payment": t.payment_terms(quote["payment_terms"]),
            "valid_until": self._day("valid_until", is_short=False),
        }
        has_sets = len(printed.sets) > 1
        return DocumentView(
            tongue=t,
            brand=brand,
            texts=texts,
            paper=paper_of(brand, self.buyer["country"]),
            number=t.isolated(_number(quote)),
            version=t.label("version", version=t.number(quote["version"])),
            version_number=t.number(quote["version"]),
            title=f"{t.label('title')} {_number(quote)}",
            subject=f"{brand.company.name} – {self.buyer['name']}",
            currency=printed.currency,
            issued_at=quote["issued_at"],
            fingerprint=quote["fingerprint"],
            mark=f"{quote['id']} v{quote['version']} {quote['fingerprint']}",
            facts=_in_rows(tuple(self._facts())),
            buyer=t.text(self.buyer["name"]),
            address=printed.paragraphs(self.buyer["address"]),
            attention=t.label("attention", name=t.text(self.buyer["contact"])) if self.buyer["contact"] else "",
            salutation=self._salutation(),
            notes=printed.paragraphs(quote["notes"]),
            sections=tuple(table.sections()),
            has_discount=table.has_discount,
            widths=widths_of(table.lines.values(), t, t.money(selected["total"], printed.currency)),
            totals=tuple(totals_of(printed, selected)),
            total=t.money(selected["total"], printed.currency),
            tax_note=t.text(quote["tax_note"] or ""),
            line_notes=tuple(table.notes()),
            alternatives=tuple(alternative(printed, one) for one in printed.sets) if has_sets else (),
            comparisons=tuple(comparisons(printed)) if with_comparison else (),
            installation=installation,
            exclusions=exclusions,
            terms=tuple(term.format(**values) for term in texts.terms),
            stamp=t.label(f"stamp_{stamp}") if stamp else "",
            stamp_lines=tuple(re.split(r" ?[·・] ?", t.label(f"stamp_{stamp}"))) if stamp else (),
            stamp_text=t.label("stamp_text") if stamp else "",
        )

    def _facts(self) -> Iterable[Row]:
        t, quote = self.tongue, self.quote
        yield Row(t.label("proposal_number"), t.text(_number(quote)))
        yield Row(t.label("date"), self._day("issued_on"))
        yield Row(t.label("valid_until"), self._day("valid_until"))
        if quote["deal_id"]:
            yield Row(t.label("reference"), t.text(quote["deal_id"]))
        yield Row(t.label("payment"), t.payment_terms(quote["payment_terms"]))
        if quote["term_months"]:
            yield Row(t.label("term"), t.number(quote["term_months"]))
        if quote["start_date"] and quote["end_date"]:
            yield Row(t.label("period"), f"{self._day('start_date')} – {self._day('end_date')}")

    def _day(self, name: str, *, is_short: bool = True) -> str:
        return self.tongue.day(date.fromisoformat(self.quote[name]), is_short=is_short)

    def _salutation(self) -> str:
        name = re.split(r"[,،、，]", self.buyer["contact"] or "")[0].strip()
        return (
            self.tongue.label("salutation", name=self.tongue.text(name))
            if name
            else self.tongue.label("salutation_unknown")
        )

    def _works(self, chosen: Content) -> Iterable[Work]:
        rule, t = self.design.brand.installation, self.tongue
        quantities: dict[str, int] = {}
        for line in chosen["lines"]:
            asked = self.printed.asked[line["number"]]
            product = self.printed.product(asked["product_id"])
            if product["category"] == rule.category and product["specs"].get(rule.spec, {}).get("value") == rule.value:
                times = 1 if "ramp" in asked else line["quantity"]
                quantities[asked["product_id"]] = quantities.get(asked["product_id"], 0) + times
        for product_id, quantity in quantities.items():
            product = self.printed.product(product_id)
            yield Work(t.number(quantity), t.text(product["name"]), t.text(product["description"]))


def _in_rows(facts: tuple[Row, ...]) -> tuple[tuple[Row, ...], ...]:
    if len(facts) <= FACTS_ABREAST_MAX:
        return (facts,)
    half = (len(facts) + 1) // 2
    return facts[:half], facts[half:] + (Row("", ""),) * (2 * half - len(facts))


def _number(quote: Content) -> str:
    """The number for people; documents that were issued before there were numbers print the id."""
    return str(quote.get("number") or quote["id"])
