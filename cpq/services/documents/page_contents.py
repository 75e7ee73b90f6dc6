"""Turns the content of a document into what its pages print: grouped, added up, in its locale."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

from cpq.services.documents.comparison import Alternative, Comparison, alternative, comparisons
from cpq.services.documents.design import Brand, Design
from cpq.services.documents.line_table import LineTable, LineView, Note, Section, Widths, widths_of
from cpq.services.documents.locale import Tongue
from cpq.services.documents.order_pages import OrderPages, order_facts, order_pages
from cpq.services.documents.printed_quote import Content, PrintedQuote, Row
from cpq.services.documents.printed_rates import rate_card_notes
from cpq.services.documents.scope import Supplies, Work, scope_of
from cpq.services.documents.totals import total_label, totals_of

LETTER_COUNTRIES = ("US", "CA", "MX", "PH", "CL", "CO")
FACTS_ABREAST_MAX = 5
LONG_FROM = 100
"""Number of lines from which a quote is set more densely."""

UNNUMBERED = ("comparison", "executive_summary")
"""Templates that do not number lines, so nothing can refer to a number."""

SHORT_UP_TO = 4
"""Number of lines up to which a quote should fit a page, and a group of one line has no subtotal."""


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
    heading: str
    """The kind of document, in words."""
    introduction: str
    subject: str
    currency: str
    issued_at: str
    fingerprint: str
    mark: str
    """Names the quote in the properties of the file."""
    facts: tuple[tuple[Row, ...], ...]
    """In rows, so that no column gets too narrow."""
    imprint: tuple[str, ...]
    """The seller's legal line with tax ids, and the bank."""
    contact: tuple[str, ...]
    """The person to ask: name, position, telephone, e-mail."""
    buyer: str
    address: tuple[str, ...]
    has_purchase_order: bool
    attention: str
    salutation: str
    notes: tuple[str, ...]
    sections: tuple[Section, ...]
    has_discount: bool
    change_note: str
    """Of a quote that changes an agreement, whose table shows before, change and after; else empty."""
    widths: Widths
    totals: tuple[Row, ...]
    total: str
    total_label: str
    credit: str
    """The total without its sign where the customer gets it, else empty."""
    tax_note: str
    line_notes: tuple[Note, ...]
    rate_cards: tuple[Note, ...]
    """Of lines that are charged by their use."""
    alternatives: tuple[Alternative, ...]
    comparisons: tuple[Comparison, ...]
    installation: tuple[Work, ...]
    """The work at the customer's site."""
    installation_title: str
    installation_text: str
    exclusions: tuple[str, ...]
    terms: tuple[str, ...]
    stamp: str
    stamp_lines: tuple[str, ...]
    stamp_text: str
    order: OrderPages | None
    """Of the confirmation of an order."""

    @property
    def is_long(self) -> bool:
        return len(self.lines) > LONG_FROM

    @property
    def is_short(self) -> bool:
        return len(self.lines) <= SHORT_UP_TO

    @property
    def lines(self) -> tuple[LineView, ...]:
        return tuple(line for section in self.sections for group in section.groups for line in group.lines)


def present(design: Design, content: Content, locale: str, stamp: str | None, template: str) -> DocumentView:
    """The view of a document with this content in this locale."""
    return _Presenter(design, content, design.tongue(locale)).view(stamp, template)


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
        self.order: Content | None = content.get("order")
        self.quote = self.printed.quote
        self.buyer = self.printed.buyer

    def view(self, stamp: str | None, template: str) -> DocumentView:
        t, quote, brand, printed = self.tongue, self.quote, self.design.brand, self.printed
        selected, table = printed.selected, LineTable(printed, Supplies(brand, printed.products))
        texts = brand.texts_in(t.language)
        values = {"payment": t.payment_terms(quote["payment_terms"])}
        if self.order is None:
            values["valid_until"] = self._day("valid_until", is_short=False)
        change = quote.get("agreement")
        kind = "order_confirmation" if self.order else change["kind"] if change else ""
        heading = t.label(f"title_{kind}" if kind else "title")
        total = t.money(selected["total"], printed.currency)
        has_sets = len(printed.sets) > 1
        with_comparison = template == "comparison"
        scope = scope_of(printed, brand, printed.sets if with_comparison else (selected,), values)
        lead_time = "" if template in UNNUMBERED else table.lead_time()
        return DocumentView(
            tongue=t,
            brand=brand,
            texts=texts,
            paper=paper_of(brand, self.buyer["country"]),
            number=t.isolated(_number(quote)),
            version=t.label("version", version=t.number(quote["version"])),
            version_number=t.number(quote["version"]),
            title=f"{heading} {_number(quote)}",
            heading=heading,
            introduction=t.label(_introduction(kind)) if kind else texts.introduction,
            subject=f"{brand.company.name} – {self.buyer['name']}",
            currency=printed.currency,
            issued_at=quote["issued_at"],
            fingerprint=quote["fingerprint"],
            mark=f"{quote['id']} v{quote['version']} {quote['fingerprint']}",
            facts=_in_rows(tuple(self._facts()), tuple(self._change_facts())),
            imprint=tuple(self._imprint()),
            contact=tuple(map(t.text, self._contact())),
            buyer=t.text(self.buyer["name"]),
            address=printed.paragraphs(self.buyer["address"]),
            has_purchase_order=bool(self.buyer.get("purchase_order")),
            attention=t.label("attention", name=t.text(self.buyer["contact"])) if self.buyer["contact"] else "",
            salutation=self._salutation(),
            notes=printed.paragraphs(quote["notes"]),
            sections=tuple(table.sections()),
            has_discount=table.has_discount,
            change_note=self._change_note(),
            widths=widths_of(table.lines.values(), t, total),
            totals=tuple(totals_of(printed, selected)),
            total=total,
            total_label=t.label(total_label(selected)),
            credit=t.money(-selected["total"], printed.currency) if selected["total"] < 0 else "",
            tax_note=t.text(quote["tax_note"] or ""),
            line_notes=tuple(table.notes()),
            rate_cards=tuple(rate_card_notes(printed, table.numbers, printed.sets if with_comparison else (selected,))),
            alternatives=tuple(alternative(printed, one) for one in printed.sets) if has_sets else (),
            comparisons=tuple(comparisons(printed)) if with_comparison else (),
            installation=scope.works,
            installation_title=scope.works_title,
            installation_text=scope.works_text,
            exclusions=tuple(map(t.isolated, scope.exclusions)),
            terms=tuple(map(t.isolated, filter(None, (*scope.terms, lead_time, texts.general_terms)))),
            stamp=t.label(f"stamp_{stamp}") if stamp else "",
            stamp_lines=tuple(re.split(r" ?[·・] ?", t.label(f"stamp_{stamp}"))) if stamp else (),
            stamp_text=t.labels.get(f"stamp_text_{stamp}") or t.label("stamp_text") if stamp else "",
            order=order_pages(printed, self.order) if self.order else None,
        )

    def _imprint(self) -> Iterable[str]:
        company = self.design.brand.company
        ids = company.tax_ids
        if not ids and company.tax_id and company.tax_id not in company.legal:
            ids = (self.tongue.label("tax_id", number=company.tax_id),)
        yield self.tongue.text(" · ".join(filter(None, (company.legal, *ids))))
        if company.bank:
            yield self.tongue.text(" · ".join(company.bank))

    def _contact(self) -> tuple[str, ...]:
        contact = self.design.brand.company.contact
        if contact is None:
            return ()
        person = ", ".join(filter(None, (contact.name, contact.title)))
        return tuple(filter(None, (person, contact.phone, contact.email)))

    def _facts(self) -> Iterable[Row]:
        t, quote = self.tongue, self.quote
        yield Row(t.label("proposal_number"), t.text(_number(quote)))
        if self.order is None:  # The order is the answer to an offer, whose last day is over with it.
            yield Row(t.label("date"), self._day("issued_on"))
            yield Row(t.label("valid_until"), self._day("valid_until"))
        if quote["deal_id"]:
            yield Row(t.label("reference"), t.text(quote["deal_id"]))
        for name, label in (("purchase_order", "purchase_order"), ("tax_id", "buyer_tax_id")):
            if value := self.buyer.get(name):  # Older documents do not have it.
                yield Row(t.label(label), t.text(value))
        yield Row(t.label("payment"), t.payment_terms(quote["payment_terms"]))
        if quote["term_months"]:
            yield Row(t.label("term"), t.number(quote["term_months"]))
        if quote["start_date"] and quote["end_date"]:
            yield Row(t.label("period"), f"{self._day('start_date')} – {self._day('end_date')}")

    def _change_facts(self) -> Iterable[Row]:
        t = self.tongue
        if self.order:
            yield from order_facts(self.printed, self.order)
        elif change := self.quote.get("agreement"):
            yield Row(t.label("agreement"), t.text(", ".join((change["agreement_id"], *change["also"]))))
            yield Row(t.label("effective"), t.day(date.fromisoformat(change["effective_date"]), is_short=True))

    def _change_note(self) -> str:
        change = self.quote.get("agreement")
        if change is None:
            return ""
        return self.tongue.label("change_note", day=self.tongue.day(date.fromisoformat(change["effective_date"])))

    def _day(self, name: str, *, is_short: bool = True) -> str:
        return self.tongue.day(date.fromisoformat(self.quote[name]), is_short=is_short)

    def _salutation(self) -> str:
        name = re.split(r"[,،、，]", self.buyer["contact"] or "")[0].strip()
        return (
            self.tongue.label("salutation", name=self.tongue.text(name))
            if name
            else self.tongue.label("salutation_unknown")
        )


def _introduction(kind: str) -> str:
    return "order_introduction" if kind == "order_confirmation" else "change_introduction"


def _in_rows(facts: tuple[Row, ...], second: tuple[Row, ...]) -> tuple[tuple[Row, ...], ...]:
    """In as few rows as fit the page, equally long. The second row begins with its own, below the widest heading."""
    rows = math.ceil((len(facts) + len(second)) / FACTS_ABREAST_MAX)
    length = math.ceil((len(facts) + len(second)) / rows)
    facts = facts[:length] + second + facts[length:]
    padded = facts + (Row("", ""),) * (rows * length - len(facts))
    return tuple(padded[start : start + length] for start in range(0, len(padded), length))


def _number(quote: Content) -> str:
    """The number for people; documents that were issued before there were numbers print the id."""
    return str(quote.get("number") or quote["id"])
