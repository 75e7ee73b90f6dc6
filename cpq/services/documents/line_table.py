"""The lines of a document: named, described and priced, grouped by category, with columns wide enough for them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from cpq.services.documents.agreement_change import REMOVED
from cpq.services.documents.change_table import ChangedLine, change_details, changed_line
from cpq.services.documents.locale import Tongue
from cpq.services.documents.printed_quote import NO_PRICE, Content, PrintedQuote, in_printed_order
from cpq.services.documents.scope import Supplies

NOTE_LENGTH_MAX = 400
"""Length up to which a note is printed with its line; a longer one follows below all lines."""

PADDING_MM = 2.5
OTHER_MM = 1.15
WIDTHS_MM = {**dict.fromkeys("0123456789-−+", 2.0), "%": 2.9, "٪": 2.9, "\u2002": 1.6}
"""Maximum printed width of a character of a figure."""

LEAD_TIME = "lead_time_days"
MOTOR_FACTS = {"hp": "hp", "rpm": "rpm", "service_factor": "sf", "enclosure": ""}
"""Specs that the text about a motor may state, and how it writes their unit."""

"""The attribute of a product that prints, if the seller shows it."""

TOTAL_SCALE = 1.6
"""Extra width of the total, which is larger and has its currency."""


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
    recurring: str
    """The price of one billing period and the number of periods, which is also one of the details."""
    quantity: str
    unit_price: str
    discount: str
    """In percent and as an amount; empty without a discount."""
    amount: str
    net: Decimal
    has_no_price: bool
    """Whether it is charged by its rates alone."""
    category: str
    category_name: str
    model: str
    net_each: str
    characteristics: Mapping[str, Characteristic]
    delivery: str
    """When goods are delivered; empty for everything that is not shipped."""
    change: ChangedLine | None = None
    """Of a quote that changes an agreement; `amount` and `net` are then the difference."""

    @property
    def named(self) -> str:
        """The name alone; of a recurring line also how many units there are and what one costs in a period."""
        if self.change:
            return self.change.named
        return f"{self.quantity} × {self.name} · {self.recurring}" if self.recurring else self.name

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
    is_recurring: bool


@dataclass(frozen=True)
class Note:
    title: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Widths:
    """Column widths in millimetres, each wide enough for its longest figure: figures are never broken or cut."""

    number: int
    quantity: int
    unit_price: int
    discount: int
    amount: int
    total: int
    change: int = 0
    """Of a quantity before, changed or after."""
    credit: int = 0
    """Of a price or a credit."""


class LineTable:
    """The lines of the selected option set as they are printed."""

    def __init__(self, printed: PrintedQuote, supplies: Supplies) -> None:
        self._printed = printed
        self._supplies = supplies
        self._chosen = in_printed_order(printed.products, printed.asked, printed.selected["lines"])
        self._numbers = {line["number"]: place for place, line in enumerate(self._chosen, 1)}
        self.lines = {line["number"]: self._line(line) for line in self._chosen}

    @property
    def numbers(self) -> Mapping[int, int]:
        """The printed numbers by those of the lines."""
        return self._numbers

    @property
    def has_discount(self) -> bool:
        return any(line["discount_amount"] for line in self._chosen)

    def sections(self) -> Iterable[Section]:
        t = self._printed.tongue
        recurring = "recurring" if self._printed.has_term else "recurring_once"
        if "agreement" in self._printed.quote:  # Each line is for what is left of its own term.
            recurring = "recurring_change"
        for name, is_recurring in (("one_time", False), (recurring, True)):
            inside = [
                self.lines[line["number"]]
                for line in self._chosen
                if (line["billing_period"] != "one_time") == is_recurring
            ]
            if inside:
                count = t.number(len(inside))
                yield Section(t.label(name), self._groups(inside), self._sum(inside), count, is_recurring)

    def notes(self) -> Iterable[Note]:
        t = self._printed.tongue
        for line in self._chosen:
            asked = self._printed.asked[line["number"]]
            note = asked["notes"] or ""
            if len(note) > NOTE_LENGTH_MAX or note.count("\n") >= 5:
                number = t.number(self._numbers[line["number"]])
                title = t.label("line_note", number=number, name=t.text(asked["product_name"]))
                yield Note(title, self._printed.paragraphs(note))

    def _groups(self, lines: Sequence[LineView]) -> tuple[Group, ...]:
        by_category: dict[str, list[LineView]] = {}
        for line in lines:
            by_category.setdefault(line.category, []).append(line)
        return tuple(
            Group(inside[0].category_name, tuple(inside), self._sum(inside)) for inside in by_category.values()
        )

    def _sum(self, lines: Sequence[LineView]) -> str:
        if all(line.has_no_price for line in lines):
            return NO_PRICE
        return self._printed.tongue.amount(sum((line.net for line in lines), Decimal(0)), self._printed.currency)

    def _line(self, priced: Content) -> LineView:
        t, asked = self._printed.tongue, self._printed.asked[priced["number"]]
        product = self._printed.product(asked["product_id"])
        characteristics = {one.name: one for one in self._characteristics(product)}
        model = characteristics["model"].value if "model" in characteristics else t.text(asked["product_name"])
        pct, off = priced["discount_pct"], priced["discount_amount"]
        # The quantity of a ramp differs by step, so it is printed as one unit at the full price; the steps follow.
        is_ramp = "ramp" in asked
        each = priced["line_total" if is_ramp else "net_unit_price"]
        due = priced.get("difference", priced["line_total"])
        has_no_price = self._printed.has_no_price(priced["number"]) and not due
        unit_price = t.unit_price(priced["subtotal" if is_ramp else "unit_price"], self._printed.currency)
        return LineView(
            number=t.number(self._numbers[priced["number"]]),
            name=t.text(asked["product_name"]),
            # Below the name: an item of no catalogue has no code, but what it is.
            sku=t.text(product["description"] if product.get("is_custom") else product["sku"]),
            description="" if product.get("is_custom") else t.text(product["description"]),
            details=tuple(self._details(priced, asked, product)),
            recurring=self._printed.recurring(priced),
            quantity=t.number(1 if is_ramp else priced["quantity"]),
            unit_price=NO_PRICE if has_no_price else unit_price,
            discount=t.figure(f"{t.percent(_rounded(pct))}\u2002{t.amount(-off, self._printed.currency)}")
            if off
            else "",
            amount=NO_PRICE if has_no_price else t.amount(due, self._printed.currency),
            net=Decimal(due),
            has_no_price=has_no_price,
            category=product["category"],
            category_name=t.text(product["category_name"]),
            model=t.label("as_described", model=model),
            net_each=t.label("net_each", price=t.unit_price(each, self._printed.currency)),
            characteristics=characteristics,
            delivery=self._delivery(asked["product_id"]),
            change=changed_line(self._printed, priced, asked),
        )

    def lead_time(self) -> str:
        """Which lines have which lead time; empty when no product states one."""
        t, places = self._printed.tongue, dict[int, list[int]]()
        for line in self._chosen:
            if days := self._lead_days(self._printed.asked[line["number"]]["product_id"]):
                places.setdefault(days, []).append(self._numbers[line["number"]])
        times = [
            t.label("lead_time_of", days=t.number(days), lines=t.figure(_spans(numbers)))
            for days, numbers in sorted(places.items())
        ]
        return t.label("lead_time", times=t.label("comma").join(times)) if times else ""

    def _delivery(self, product_id: str) -> str:
        if not self._supplies.is_shipped(product_id):
            return ""
        t, days = self._printed.tongue, self._lead_days(product_id)
        return t.label("lead_time_line", days=t.number(days)) if days else self._supplies.delivery_in(t.language)

    def _lead_days(self, product_id: str) -> int:
        days = self._printed.product(product_id)["attributes"].get(LEAD_TIME)
        return int(days) if isinstance(days, Decimal | int) and not isinstance(days, bool) else 0

    def _details(self, priced: Content, asked: Content, product: Content) -> Iterable[str]:
        t = self._printed.tongue
        chosen = {**asked["attributes"], **priced["configuration"]}
        if (unit := product.get("unit")) and "usage" not in asked:  # A rate card names what it counts.
            yield t.isolated(f"{t.word('specs', 'unit_of_sale')}{t.label('colon')} {t.text(unit)}")
        shown = {name: value for name, value in chosen.items() if name not in product.get("choices_of_components", ())}
        if shown:
            yield " · ".join(self._choice(product, name, value) for name, value in shown.items())
        if parts := [*product["components"], *asked.get("components", ())]:
            yield t.label("includes")
            yield from map(self._component, parts)
        change = asked.get("change")
        is_removed = change is not None and change["action"] == REMOVED
        if (recurring := self._printed.recurring(priced)) and not is_removed:
            yield recurring
        if "usage" in asked and not is_removed:
            yield t.label("usage_see")
        if (term := asked.get("own_term")) and not is_removed:
            yield self._own_term(term)
        if change is not None:
            yield from change_details(self._printed, priced, change)
        if "ramp" in asked:
            yield " · ".join(self._ramp(asked["ramp"]))
        if note := asked["notes"]:
            is_short = len(note) <= NOTE_LENGTH_MAX and note.count("\n") < 5
            yield (
                t.label("note", text=t.text(note))
                if is_short
                else t.label("see_note", number=t.number(self._numbers[priced["number"]]))
            )

    def _choice(self, product: Content, name: str, value: object) -> str:
        t = self._printed.tongue
        label = t.text(product["option_labels"].get(name) or t.word("specs", name))
        # Older documents have no names of values.
        named = product.get("value_names", {}).get(name, {}).get(str(value))
        return t.isolated(f"{label}{t.label('colon')} {t.text(named) if named else self._printed.value(value)}")

    def _component(self, part: Content) -> str:
        name = self._printed.product(part["product_id"])["name"]
        return "– " + self._printed.tongue.text(f"{part['quantity']} × {name}")

    def _own_term(self, term: Content) -> str:
        """The dates of a line that are not the quote's."""
        t = self._printed.tongue
        if term["start_date"] and term["end_date"]:
            days = [t.day(date.fromisoformat(term[name]), is_short=True) for name in ("start_date", "end_date")]
            return f"{t.label('period')}{t.label('colon')} {' – '.join(days)}"
        return f"{t.label('term')}{t.label('colon')} {t.number(term['term_months'] or 1)}"

    def _ramp(self, steps: Sequence[Content]) -> Iterable[str]:
        t, first = self._printed.tongue, 1
        for step in steps:
            last = first + step["months"] - 1
            uplift = f" (+{t.percent(step['uplift_pct'])})" if step["uplift_pct"] else ""
            if step.get("discount_pct"):
                uplift += f" (−{t.percent(step['discount_pct'])})"
            if "unit_price" in step:
                uplift += f" ({t.unit_price(step['unit_price'], self._printed.currency)})"
            quantity = t.number(step["quantity"])
            yield t.label("ramp_step", first=t.number(first), last=t.number(last), quantity=quantity) + uplift
            first = last + 1

    def _characteristics(self, product: Content) -> Iterable[Characteristic]:
        t = self._printed.tongue
        for name, value in product["attributes"].items():
            yield Characteristic(name, t.word("specs", name), self._printed.value(value))
        motor = str(product["attributes"].get("motor", ""))
        for name, spec in product["specs"].items():
            if is_stated(motor, name, spec["value"]):
                continue
            unit = t.word("units", spec["unit"]) if spec["unit"] else ""
            yield Characteristic(
                name, t.word("specs", name), t.isolated(f"{self._printed.plain(spec['value'])} {unit}".strip())
            )


def is_stated(motor: str, name: str, value: object) -> bool:
    """Whether the text about the motor already states this spec, so that the document does not state it twice."""
    if name not in MOTOR_FACTS:
        return False
    fact = rf"{re.escape(str(value))}\s?{MOTOR_FACTS[name]}"
    return re.search(rf"(?<![\w.,])(?<!x ){fact}(?![\w.])", motor, re.IGNORECASE) is not None


def widths_of(lines: Collection[LineView], tongue: Tongue, total: str) -> Widths:
    def fit(figures: Iterable[str], heading: str, least: int) -> int:
        widest = max(map(millimetres, figures), default=0)
        return max(least, math.ceil(max(widest, len(tongue.label(heading)) * 1.3) + PADDING_MM))

    changes = [line.change for line in lines if line.change]
    quantities = [text for one in changes for text in (one.before, one.by, one.after)]
    amounts = [text for one in changes for text in (one.price, one.credit, one.difference)]
    return Widths(
        fit((line.number for line in lines), "position", 9),
        fit((line.quantity for line in lines), "quantity", 13),
        fit((line.unit_price for line in lines), "unit_price", 21),
        fit((line.discount for line in lines), "discount", 21),
        fit((line.amount for line in lines), "amount", 23),
        math.ceil(millimetres(total) * TOTAL_SCALE + PADDING_MM),
        max(15, math.ceil(max(map(millimetres, quantities), default=0) + PADDING_MM)),
        max(19, math.ceil(max(map(millimetres, amounts), default=0) + PADDING_MM)),
    )


def millimetres(figure: str) -> float:
    return sum([WIDTHS_MM.get(character, OTHER_MM) for character in figure])


def _spans(numbers: Sequence[int]) -> str:
    """`1–3, 7`: neighbours together."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in spans)


def _rounded(percent: Decimal | int) -> Decimal:
    """Two decimals are enough, because the exact amount is printed beside it."""
    return Decimal(percent).quantize(Decimal("0.01"), ROUND_HALF_UP).normalize()
