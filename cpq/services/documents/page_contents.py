"""Turns the content of a document into what its pages print: grouped, added up, in its locale."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from cpq.services.documents.design import Brand, Design
from cpq.services.documents.locale import Tongue

NOTE_LENGTH_MAX = 400
"""Length up to which a note is printed with its line; a longer one follows below all lines."""

LETTER_COUNTRIES = ("US", "CA", "MX", "PH", "CL", "CO")
SETS_ABREAST_MAX = 4
FACTS_ABREAST_MAX = 5
LONG_FROM = 100
"""Number of lines from which a quote is set more densely."""

SHORT_UP_TO = 4
"""Number of lines up to which a quote should fit a page, and a group of one line has no subtotal."""

PADDING_MM = 2.5
OTHER_MM = 1.15
WIDTHS_MM = {**dict.fromkeys("0123456789-−", 2.0), "%": 2.9, "٪": 2.9, "\u2002": 1.6}
"""Maximum printed width of a character of a figure."""

TOTAL_SCALE = 1.6
"""Extra width of the total, which is larger and has its currency."""

Content = Mapping[str, Any]


@dataclass(frozen=True)
class Characteristic:
    name: str
    label: str
    value: str


@dataclass(frozen=True)
class LineView:
    """A line as it is printed. Texts are complete, but not escaped yet."""

    number: str
    name: str
    sku: str
    description: str
    details: tuple[str, ...]
    """Options, components, billing, steps of a ramp, a short note."""
    quantity: str
    unit_price: str
    discount: str
    """In percent and as an amount; empty without a discount."""
    amount: str
    net: Decimal
    category: str
    category_name: str
    model: str
    net_each: str
    characteristics: Mapping[str, Characteristic]

    def pairs(self, names: Sequence[str]) -> list[tuple[Characteristic, ...]]:
        """The characteristics that the product has, in this order, two per row."""
        known = [self.characteristics[name] for name in names if name in self.characteristics]
        return [tuple(known[start : start + 2]) for start in range(0, len(known), 2)]


@dataclass(frozen=True)
class Group:
    """The lines of one category and their subtotal."""

    name: str
    lines: tuple[LineView, ...]
    subtotal: str


@dataclass(frozen=True)
class Section:
    """A total that is paid once, or that recurs."""

    name: str
    groups: tuple[Group, ...]
    total: str
    count: str


@dataclass(frozen=True)
class Row:
    label: str
    value: str
    is_total: bool = False


@dataclass(frozen=True)
class Note:
    title: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Work:
    """The work at the customer's site, over all its lines."""

    quantity: str
    name: str
    description: str


@dataclass(frozen=True)
class Alternative:
    name: str
    is_selected: bool
    totals: tuple[Row, ...]


@dataclass(frozen=True)
class ComparedCell:
    amount: str
    quantity: str = ""


@dataclass(frozen=True)
class ComparedRow:
    name: str
    sku: str
    cells: tuple[ComparedCell, ...]
    is_group: bool = False


@dataclass(frozen=True)
class Comparison:
    """Alternatives side by side; those that do not fit the page follow in further tables."""

    sets: tuple[Alternative, ...]
    rows: tuple[ComparedRow, ...]
    totals: tuple[tuple[str, tuple[str, ...]], ...]
    width: int
    """Width of the column of an alternative, in millimetres."""


@dataclass(frozen=True)
class Widths:
    """Column widths in millimetres, each wide enough for its longest figure: figures are never broken or cut."""

    number: int
    quantity: int
    unit_price: int
    discount: int
    amount: int
    total: int


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
    """The content, with its lines by number."""

    def __init__(self, design: Design, content: Content, tongue: Tongue) -> None:
        self.design = design
        self.tongue = tongue
        self.quote: Content = content["quote"]
        self.buyer: Content = content["buyer"]
        self.products: Mapping[str, Content] = content["products"]
        self.sets: Sequence[Content] = content["option_sets"]
        self.asked: Mapping[int, Content] = {line["number"]: line for line in content["lines"]}
        self.currency: str = self.quote["currency"]

    def view(self, stamp: str | None, with_comparison: bool) -> DocumentView:
        t, quote, brand = self.tongue, self.quote, self.design.brand
        selected = self.sets[0]
        texts = brand.texts_in(t.language)
        lines = {line["number"]: self._line(line) for line in selected["lines"]}
        installation = tuple(self._works(selected))
        exclusions = texts.exclusions if installation else (*texts.exclusions_without_installation, *texts.exclusions)
        values = {
            "payment": t.payment_terms(quote["payment_terms"]),
            "valid_until": self._day("valid_until", is_short=False),
        }
        has_sets = len(self.sets) > 1
        return DocumentView(
            tongue=t,
            brand=brand,
            texts=texts,
            paper=paper_of(brand, self.buyer["country"]),
            number=t.isolated(quote["id"]),
            version=t.label("version", version=t.number(quote["version"])),
            version_number=t.number(quote["version"]),
            title=f"{t.label('title')} {quote['id']}",
            subject=f"{brand.company.name} – {self.buyer['name']}",
            currency=self.currency,
            issued_at=quote["issued_at"],
            fingerprint=quote["fingerprint"],
            mark=f"{quote['id']} v{quote['version']} {quote['fingerprint']}",
            facts=_in_rows(tuple(self._facts())),
            buyer=t.text(self.buyer["name"]),
            address=self._paragraphs(self.buyer["address"]),
            attention=t.label("attention", name=t.text(self.buyer["contact"])) if self.buyer["contact"] else "",
            salutation=self._salutation(),
            notes=self._paragraphs(quote["notes"]),
            sections=tuple(self._sections(selected, lines)),
            has_discount=any(line["discount_amount"] for line in selected["lines"]),
            widths=_widths(lines.values(), t, t.money(selected["total"], self.currency)),
            totals=tuple(self._totals(selected)),
            total=t.money(selected["total"], self.currency),
            tax_note=t.text(quote["tax_note"] or ""),
            line_notes=tuple(self._line_notes(selected)),
            alternatives=tuple(map(self._alternative, self.sets)) if has_sets else (),
            comparisons=tuple(self._comparisons()) if with_comparison else (),
            installation=installation,
            exclusions=exclusions,
            terms=tuple(term.format(**values) for term in texts.terms),
            stamp=t.label(f"stamp_{stamp}") if stamp else "",
            stamp_lines=tuple(re.split(r" ?[·・] ?", t.label(f"stamp_{stamp}"))) if stamp else (),
            stamp_text=t.label("stamp_text") if stamp else "",
        )

    def _facts(self) -> Iterable[Row]:
        t, quote = self.tongue, self.quote
        yield Row(t.label("proposal_number"), t.text(quote["id"]))
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

    def _paragraphs(self, text: str | None) -> tuple[str, ...]:
        return tuple(self.tongue.text(part.strip()) for part in (text or "").splitlines() if part.strip())

    def _sections(self, chosen: Content, lines: Mapping[int, LineView]) -> Iterable[Section]:
        t = self.tongue
        for name, is_recurring in (("one_time", False), ("recurring", True)):
            inside = [
                lines[line["number"]]
                for line in chosen["lines"]
                if (line["billing_period"] != "one_time") == is_recurring
            ]
            if inside:
                yield Section(t.label(name), self._groups(inside), self._sum(inside), t.number(len(inside)))

    def _groups(self, lines: Sequence[LineView]) -> tuple[Group, ...]:
        by_category: dict[str, list[LineView]] = {}
        for line in lines:
            by_category.setdefault(line.category_name, []).append(line)
        return tuple(Group(name, tuple(inside), self._sum(inside)) for name, inside in by_category.items())

    def _sum(self, lines: Iterable[LineView]) -> str:
        return self.tongue.amount(sum((line.net for line in lines), Decimal(0)), self.currency)

    def _line(self, priced: Content) -> LineView:
        t, asked = self.tongue, self.asked[priced["number"]]
        product = self.products.get(asked["product_id"], _UNKNOWN)
        characteristics = {one.name: one for one in self._characteristics(product)}
        model = characteristics["model"].value if "model" in characteristics else t.text(asked["product_name"])
        pct, off = priced["discount_pct"], priced["discount_amount"]
        # The quantity of a ramp differs by step, so it is printed as one unit at the full price; the steps follow.
        is_ramp = "ramp" in asked
        each = priced["line_total" if is_ramp else "net_unit_price"]
        return LineView(
            number=t.number(priced["number"]),
            name=t.text(asked["product_name"]),
            sku=t.text(product["sku"]),
            description=t.text(product["description"]),
            details=tuple(self._details(priced, asked, product)),
            quantity=t.number(1 if is_ramp else priced["quantity"]),
            unit_price=t.unit_price(priced["subtotal" if is_ramp else "unit_price"], self.currency),
            discount=t.figure(f"{t.percent(_rounded(pct))}\u2002{t.amount(-off, self.currency)}") if off else "",
            amount=t.amount(priced["line_total"], self.currency),
            net=Decimal(priced["line_total"]),
            category=product["category"],
            category_name=t.text(product["category_name"]),
            model=t.label("as_described", model=model),
            net_each=t.label("net_each", price=t.unit_price(each, self.currency)),
            characteristics=characteristics,
        )

    def _details(self, priced: Content, asked: Content, product: Content) -> Iterable[str]:
        t = self.tongue
        chosen = {**asked["attributes"], **priced["configuration"]}
        if chosen:
            labels = product["option_labels"]
            yield " · ".join(
                t.isolated(
                    f"{t.text(labels.get(name) or t.word('specs', name))}{t.label('colon')} {self._value(value)}"
                )
                for name, value in chosen.items()
            )
        if product["components"]:
            yield t.label("includes")
            yield from map(self._component, product["components"])
        if priced["billing_period"] != "one_time":
            yield t.label(priced["billing_period"])
        if "ramp" in asked:
            yield " · ".join(self._ramp(asked["ramp"]))
        if note := asked["notes"]:
            is_short = len(note) <= NOTE_LENGTH_MAX and note.count("\n") < 5
            yield (
                t.label("note", text=t.text(note))
                if is_short
                else t.label("see_note", number=t.number(priced["number"]))
            )

    def _component(self, part: Content) -> str:
        name = self.products.get(part["product_id"], _UNKNOWN)["name"]
        return "– " + self.tongue.text(f"{part['quantity']} × {name}")

    def _ramp(self, steps: Sequence[Content]) -> Iterable[str]:
        t, first = self.tongue, 1
        for step in steps:
            last = first + step["months"] - 1
            uplift = f" (+{t.percent(step['uplift_pct'])})" if step["uplift_pct"] else ""
            quantity = t.number(step["quantity"])
            yield t.label("ramp_step", first=t.number(first), last=t.number(last), quantity=quantity) + uplift
            first = last + 1

    def _characteristics(self, product: Content) -> Iterable[Characteristic]:
        t = self.tongue
        for name, value in product["attributes"].items():
            yield Characteristic(name, t.word("specs", name), self._value(value))
        for name, spec in product["specs"].items():
            unit = t.word("units", spec["unit"]) if spec["unit"] else ""
            yield Characteristic(
                name, t.word("specs", name), t.isolated(f"{self._plain(spec['value'])} {unit}".strip())
            )

    def _value(self, value: object) -> str:
        return self.tongue.isolated(self._plain(value))

    def _plain(self, value: object) -> str:
        if isinstance(value, bool):
            return self.tongue.word("words", "true" if value else "false")
        if isinstance(value, Decimal | int):
            return self.tongue.number(value)
        return self.tongue.text(self.tongue.word("words", str(value)) if _WORD.fullmatch(str(value)) else value)

    def _totals(self, chosen: Content) -> Iterable[Row]:
        """From the subtotal to the total; the other rows add up to the last one."""
        t, currency = self.tongue, self.currency
        if chosen["discount_total"]:
            yield Row(t.label("subtotal"), t.amount(chosen["subtotal"], currency))
            yield Row(t.label("discount_total"), t.amount(-chosen["discount_total"], currency))
        yield Row(t.label("net_total"), t.amount(chosen["net"], currency))
        rates: dict[Decimal, list[Content]] = {}
        for group in chosen["tax_groups"]:
            rates.setdefault(Decimal(group["rate_pct"]), []).append(group)
        for rate, groups in rates.items():
            base, tax = (sum((Decimal(group[name]) for group in groups), Decimal(0)) for name in ("base", "tax"))
            label = t.label("tax", rate=t.percent(rate), base=t.amount(base, currency))
            yield Row(label, t.amount(tax, currency))
        yield Row(t.label("total"), t.money(chosen["total"], currency), is_total=True)

    def _line_notes(self, chosen: Content) -> Iterable[Note]:
        t = self.tongue
        for line in chosen["lines"]:
            asked = self.asked[line["number"]]
            note = asked["notes"] or ""
            if len(note) > NOTE_LENGTH_MAX or note.count("\n") >= 5:
                title = t.label("line_note", number=t.number(line["number"]), name=t.text(asked["product_name"]))
                yield Note(title, self._paragraphs(note))

    def _alternative(self, one: Content) -> Alternative:
        name = one["name"] or self.tongue.label("title")
        return Alternative(self.tongue.text(name), one["is_selected"], tuple(self._totals(one)))

    def _comparisons(self) -> Iterable[Comparison]:
        for start in range(0, len(self.sets), SETS_ABREAST_MAX):
            sets = self.sets[start : start + SETS_ABREAST_MAX]
            columns = [self._cells(one) for one in sets]
            keys = dict.fromkeys(key for column in columns for key in column)
            groups: dict[str, list[ComparedRow]] = {}
            for product_id, nth in keys:
                product = self.products.get(product_id, _UNKNOWN)
                cells = tuple(column.get((product_id, nth), ComparedCell("–")) for column in columns)
                row = ComparedRow(self.tongue.text(product["name"]), self.tongue.text(product["sku"]), cells)
                groups.setdefault(self.tongue.text(product["category_name"]), []).append(row)
            rows: list[ComparedRow] = []
            for name, inside in groups.items():
                rows += [ComparedRow(name, "", (), is_group=True), *inside]
            totals = tuple(self._compared_totals(sets))
            figures = [
                *(text for column in columns for cell in column.values() for text in (cell.amount, cell.quantity)),
                *(v for _, vs in totals for v in vs),
            ]
            width = math.ceil(max(map(_millimetres, figures)) + 2 * PADDING_MM)
            yield Comparison(tuple(map(self._alternative, sets)), tuple(rows), totals, max(width, 26))

    def _cells(self, one: Content) -> dict[tuple[str, int], ComparedCell]:
        """The price of each product in one alternative; a product on two lines gets two rows."""
        cells: dict[tuple[str, int], ComparedCell] = {}
        t, times = self.tongue, Counter[str]()
        for line in one["lines"]:
            asked = self.asked[line["number"]]
            product_id = asked["product_id"]
            nth = times[product_id]
            times[product_id] += 1
            quantity = f"{t.label('quantity')} {t.number(1 if 'ramp' in asked else line['quantity'])}"
            cells[product_id, nth] = ComparedCell(t.amount(line["line_total"], self.currency), quantity)
        return cells

    def _compared_totals(self, sets: Sequence[Content]) -> Iterable[tuple[str, tuple[str, ...]]]:
        t = self.tongue
        labels = {
            "subtotal": "subtotal",
            "discount_total": "discount_total",
            "net": "net_total",
            "tax_total": "tax_total",
        }
        if not any(one["discount_total"] for one in sets):
            labels = {"net": "net_total", "tax_total": "tax_total"}
        for name, label in labels.items():
            sign = -1 if name == "discount_total" else 1
            yield t.label(label), tuple(t.amount(sign * one[name], self.currency) for one in sets)
        yield t.label("total"), tuple(t.money(one["total"], self.currency) for one in sets)

    def _works(self, chosen: Content) -> Iterable[Work]:
        rule, t = self.design.brand.installation, self.tongue
        quantities: dict[str, int] = {}
        for line in chosen["lines"]:
            asked = self.asked[line["number"]]
            product = self.products.get(asked["product_id"], _UNKNOWN)
            if product["category"] == rule.category and product["specs"].get(rule.spec, {}).get("value") == rule.value:
                times = 1 if "ramp" in asked else line["quantity"]
                quantities[asked["product_id"]] = quantities.get(asked["product_id"], 0) + times
        for product_id, quantity in quantities.items():
            product = self.products[product_id]
            yield Work(t.number(quantity), t.text(product["name"]), t.text(product["description"]))


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


def _in_rows(facts: tuple[Row, ...]) -> tuple[tuple[Row, ...], ...]:
    if len(facts) <= FACTS_ABREAST_MAX:
        return (facts,)
    half = (len(facts) + 1) // 2
    return facts[:half], facts[half:] + (Row("", ""),) * (2 * half - len(facts))


def _widths(lines: Collection[LineView], tongue: Tongue, total: str) -> Widths:
    def fit(figures: Iterable[str], heading: str, least: int) -> int:
        widest = max(map(_millimetres, figures), default=0)
        return max(least, math.ceil(max(widest, len(tongue.label(heading)) * 1.3) + PADDING_MM))

    return Widths(
        fit((line.number for line in lines), "position", 9),
        fit((line.quantity for line in lines), "quantity", 13),
        fit((line.unit_price for line in lines), "unit_price", 21),
        fit((line.discount for line in lines), "discount", 21),
        fit((line.amount for line in lines), "amount", 23),
        math.ceil(_millimetres(total) * TOTAL_SCALE + PADDING_MM),
    )


def _millimetres(figure: str) -> float:
    return sum([WIDTHS_MM.get(character, OTHER_MM) for character in figure])


def _rounded(percent: Decimal | int) -> Decimal:
    """Two decimals are enough, because the exact amount is printed beside it."""
    return Decimal(percent).quantize(Decimal("0.01")).normalize()
