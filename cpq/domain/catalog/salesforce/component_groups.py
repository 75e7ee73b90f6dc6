"""Components of Salesforce bundles: parts that the price includes, options with their price, or lines of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from cpq.domain.catalog.salesforce.book_prices import MODEL, BookPrice, BookPrices, Span, SurchargeEffect
from cpq.domain.catalog.salesforce.exported import Export, Record
from cpq.domain.catalog.salesforce.identifiers import identifier
from cpq.domain.catalog.salesforce.losses import Fate, Losses, Outcome

NAME_LENGTH_MAX = 64
SENTENCE_LENGTH_MAX = 500
COUNTED_MAX = 50
"""An option for a number of pieces lists each number with its surcharge."""


class Bounds(NamedTuple):
    """How many pieces of a component there may be, without `high` any number from `low` on."""

    low: int = 0
    high: int | None = None

    def within(self, other: Bounds) -> Bounds:
        highs = [one.high for one in (self, other) if one.high is not None]
        return Bounds(max(self.low, other.low), min(highs, default=None))

    def allows(self, count: int) -> bool:
        return self.low <= count and (self.high is None or count <= self.high)


class Component(NamedTuple):
    """One component of a bundle."""

    record: Record
    child: Record
    quantity: int
    is_included: bool
    is_default: bool
    is_required: bool
    counts: tuple[int, ...]
    """The numbers of pieces that a buyer may choose, if they are bounded."""
    why_alone: str = ""
    """Why it can only be sold on a line of its own."""
    is_unsold: bool = False
    choosable: Bounds | None = None
    """The numbers of pieces by the export, if a buyer may choose."""

    @property
    def is_fixed(self) -> bool:
        return self.is_included and (self.is_default or self.is_required)


@dataclass
class BundleParts:
    """What a bundle gets from its components."""

    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    rules: list[dict[str, Any]] = field(default_factory=list)
    parts: dict[str, int] = field(default_factory=dict)
    """The SKU and quantity of each part that the price includes."""
    required: dict[str, int] = field(default_factory=dict)
    recommended: dict[str, int] = field(default_factory=dict)
    taken: dict[str, tuple[str, list[Any]]] = field(default_factory=dict)
    """The option of each SKU, and the values with which the bundle has it."""


class ComponentGroups:
    """The components of all bundles, by group."""

    def __init__(
        self, export: Export, losses: Losses, prices: BookPrices, bounds: Mapping[tuple[str, str], Bounds]
    ) -> None:
        self._export = export
        self._losses = losses
        self._prices = prices
        self._bounds = bounds
        self.related: dict[tuple[str, str], Outcome] = {}
        """What became of the components and their bounds, by the SKUs of bundle and component."""
        self._members: dict[str, dict[str, list[Component]]] = defaultdict(lambda: defaultdict(list))
        self._groups = {one.key: one for one in export.records("ProductComponentGroup")}
        self._adjustments = self._read_adjustments()
        self._adjusted: set[int] = set()
        self._check_groups()
        links = [link for one in export.records("ProductRelatedComponent") if (link := self._link(one))]
        self._parents_with_prices = {
            parent.key for one, parent, _ in links if not one.is_true("DoesBundlePriceIncludeChild")
        }
        for one, parent, child in links:
            component = self._component(one, parent, child)
            self._members[parent.key][one.text("ProductComponentGroup.Code")].append(component)
        self._refuse_cycles()
        self._needed = self._need_others()

    def of(self, parent: Record, names_taken: Iterable[str]) -> BundleParts:
        """The parts of a product. Its prices get the surcharges of its options."""
        found = BundleParts({name: {} for name in names_taken}, required=dict(self._needed.get(parent.key, {})))
        for code in sorted(self._members.get(parent.key, {}), key=self._sequence):
            self._place(found, parent, self._groups.get(code), self._members[parent.key][code])
        found.options = {name: option for name, option in found.options.items() if option}
        return found

    def settle(self) -> None:
        """Account for the rows of groups without components, of relationship types and of adjustments."""
        filled = {code for groups in self._members.values() for code in groups}
        for code, group in self._groups.items():
            if code not in filled:
                self._losses.lose(group, "it has no component that is here")
        for one in self._export.records("ProductRelationshipType"):
            if one.text("AssociatedProductRoleCat") == "BundleComponent":
                self._losses.translate(one, "parts, options and recommendations of products")
            else:
                self._losses.lose(one, "no relationship here is like it")
        for adjustments in self._adjustments.values():
            for one in adjustments:
                _, why = self._prices.schedule(one)
                if id(one) in self._adjusted:
                    self._losses.translate(one, "the surcharge of an option of the bundle")
                else:
                    self._losses.lose(one, why or self._why_unadjusted(one))

    def _place(self, found: BundleParts, parent: Record, group: Record | None, members: list[Component]) -> None:
        high = self._export.whole(group, "MaxBundleComponents") if group else None
        low = self._export.whole(group, "MinBundleComponents") if group else None
        can_choose = all(not one.why_alone and not one.is_required for one in members)
        if group is not None and high == 1 and len(members) > 1 and can_choose:
            self._place_choice(found, parent, group, members, is_required=bool(low))
            return
        names = [self._place_one(found, parent, one) for one in members]
        self._place_bounds(found, group, members, [name for name in names if name], (low, high))

    def _place_choice(
        self, found: BundleParts, parent: Record, group: Record, members: list[Component], *, is_required: bool
    ) -> None:
        """A group that allows one component is one option."""
        name = _free_name(found.options, group.text("Name"), group.key)
        names: dict[str, dict[str, Any]] = {}
        for one in members:
            names[_free_name(names, one.child.text("Name"), one.child.key)] = {}
        option: dict[str, Any] = {"type": "enum", "values": list(names), "required": is_required}
        for value, one in zip(names, members, strict=True):
            if one.is_default and "default" not in option:
                option["default"] = value
            self._charge(parent, name, value, one, one.quantity)
            self._losses.translate(one.record, f"a value of an option{_of_price(one)}")
            found.taken.setdefault(one.child.key, (name, [value]))
            if one.counts and (parent.key, one.child.key) in self._bounds:
                self.related[parent.key, one.child.key] = _lost("in a choice of one component its number is fixed")
        found.options[name] = option
        self._losses.translate(group, "an option with its components as values")

    def _place_one(self, found: BundleParts, parent: Record, one: Component) -> str:
        """Place a component; the name of its option, if it has one."""
        sku = one.child.key
        if one.is_fixed:
            found.parts[sku] = found.parts.get(sku, 0) + one.quantity
            self._losses.translate(one.record, "a part of the bundle, which its price includes")
            return ""
        if one.why_alone:
            self._place_alone(found, one)
            return ""
        name = _free_name(found.options, one.child.text("Name"), sku)
        if one.counts:
            default = one.quantity if one.is_default or one.is_required else 0
            found.options[name] = {"type": "enum", "values": list(one.counts), "default": default}
            for count in one.counts:
                self._charge(parent, name, str(count), one, count)
        else:
            found.options[name] = {"type": "boolean", "default": one.is_default}
            if one.is_required:
                found.options[name] = {"type": "enum", "values": [True], "default": True}
            self._charge(parent, name, "true", one, one.quantity)
        self._losses.translate(one.record, f"an option{_of_price(one)}")
        found.taken.setdefault(sku, (name, [count for count in one.counts if count] or [True]))
        return name

    def _place_alone(self, found: BundleParts, one: Component) -> None:
        if one.is_unsold:
            self._losses.lose(one.record, one.why_alone)
            return
        how = "requires" if one.is_required else "recommends"
        kept_in = found.required if one.is_required else found.recommended
        kept_in.setdefault(one.child.key, one.quantity)
        self._losses.translate(one.record, f"the product {how} it on a line of its own: {one.why_alone}")

    def _place_bounds(
        self,
        found: BundleParts,
        group: Record | None,
        members: list[Component],
        names: list[str],
        bounds: tuple[int | None, int | None],
    ) -> None:
        """How many components of a group are chosen is a rule over their options."""
        if group is None:
            return
        low, high = bounds
        fixed = sum(one.is_fixed for one in members)
        least = max(0, (low or 0) - fixed)
        most = len(names) if high is None else min(len(names), max(0, high - fixed))
        if low is None and high is None:
            self._losses.lose(group, "without bounds it only groups components for display")
        elif len(names) + fixed < len(members):
            self._losses.lose(group, "its bounds would count components that are sold on lines of their own")
        elif least > most:
            self._losses.lose(group, f"it has fewer components than the {low} that it asks for")
        else:
            if names and (least or most < len(names)):
                number = str(least) if least == most else f"{least} to {most}"
                say = f"Choose {number} of {group.text('Name') or group.key}: {', '.join(names)}"
                rule = {"id": identifier(group.key), "choose": {"from": names, "min": least, "max": most}}
                found.rules.append({**rule, "say": say[:SENTENCE_LENGTH_MAX]})
            self._losses.translate(group, "a rule of how many of its options are chosen")

    def _charge(self, parent: Record, option: str, value: str, one: Component, count: int) -> None:
        if one.is_included or not count:
            return
        for price in self._prices.of(parent.key):
            child = self._price_inside(price, one.child)
            assert child is not None, "a component without such a price is sold alone"
            price.surcharges.append(SurchargeEffect(Span(), option, value, child.unit_price * count))
            if adjustment := self._adjustment(price, child):
                reduced = self._prices.adjusted(adjustment, "AdjustmentValue", child.unit_price)
                if reduced is not None:
                    schedule, _ = self._prices.schedule(adjustment)
                    span = self._prices.span(schedule, adjustment)
                    price.surcharges.append(SurchargeEffect(span, option, value, reduced * count))
                    self._adjusted.add(id(adjustment))

    def _price_inside(self, price: BookPrice, child: Record) -> BookPrice | None:
        return next((one for one in self._prices.of(child.key) if one.offer == price.offer), None)

    def _link(self, one: Record) -> tuple[Record, Record, Record] | None:
        """A row with the bundle and the component that it connects."""
        parent = self._export.named(one, "ParentProduct.StockKeepingUnit", "Product2")
        kind = self._export.named(one, "ProductRelationshipType.Name", "ProductRelationshipType")
        if kind is not None and kind.text("AssociatedProductRoleCat") != "BundleComponent":
            self._losses.lose(one, "no relationship here is like it")
            return None
        child = self._export.named(one, "ChildProduct.StockKeepingUnit", "Product2")
        code = one.text("ProductComponentGroup.Code")
        group = self._export.named(one, "ProductComponentGroup.Code", "ProductComponentGroup") if code else None
        if parent is None or child is None:
            return None
        owner = group.text("ParentProduct.StockKeepingUnit") if group else ""
        if owner not in ("", parent.key):
            self._export.refuse(one, "ProductComponentGroup.Code", f"{code!r} is a group of {owner}")
        if not parent.text("Name") or not child.text("Name"):
            self._losses.lose(one, "its product is not described")
            return None
        return one, parent, child

    def _component(self, one: Record, parent: Record, child: Record) -> Component:
        is_included = one.is_true("DoesBundlePriceIncludeChild")
        quantity = self._export.whole(one, "Quantity", least=1) or 1
        is_required = one.is_true("IsComponentRequired")
        choosable = self._choosable(one)
        component = Component(
            one,
            child,
            quantity,
            is_included,
            one.is_true("IsDefaultComponent"),
            is_required,
            _counts(choosable, quantity, is_required),
            choosable=choosable,
        )
        if not is_included and not self._prices.of(child.key):
            component = component._replace(why_alone="it has no price", is_unsold=True)
        elif not is_included:
            component = component._replace(why_alone=self._why_alone(one, parent, child))
        bounds = self._bounds.get((parent.key, child.key))
        component, self.related[parent.key, child.key] = _bounded(component, bounds)
        return component

    def _choosable(self, one: Record) -> Bounds | None:
        high = self._export.whole(one, "MaxQuantity", least=1)
        low = self._export.whole(one, "MinQuantity") or 1
        return Bounds(low, high) if one.is_true("IsQuantityEditable") else None

    def _need_others(self) -> dict[str, dict[str, int]]:
        """What a product has at least one piece of by its bounds, and what is no component of it."""
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for (parent, child), bounds in self._bounds.items():
            if (parent, child) not in self.related and bounds.low:
                found[parent][child] = bounds.low
                self.related[parent, child] = _REQUIREMENT
        return found

    def _why_alone(self, one: Record, parent: Record, child: Record) -> str:
        """Why the price of a component cannot be a surcharge of the bundle; empty when it can."""
        if one.text("QuantityScaleMethod") == "Constant":
            return "its quantity does not follow the bundle's"
        for price in self._prices.of(parent.key):
            inside = self._price_inside(price, child)
            if inside is None:
                return "it is not sold for all the periods and currencies of the bundle"
            if not inside.is_plain or child.key in self._parents_with_prices:
                return "it has tiers or options with prices"
        return ""

    def _adjustment(self, price: BookPrice, child: BookPrice) -> Record | None:
        """The adjustment for a component in a bundle; of several the one that names the bundle's selling model."""
        model = price.record.text(MODEL)
        fitting = [
            one
            for one in self._adjustments.get((price.sku, child.sku, child.record.text(MODEL), price.currency), ())
            if not self._prices.schedule(one)[1]
            and one.text("ParentProduct.StockKeepingUnit") in ("", price.sku)
            and one.text("RootProductSellingModel.$$Name$SellingModelType") in ("", model)
            and one.text("ParentProductSellingModel.$$Name$SellingModelType") in ("", model)
        ]
        return max(fitting, key=lambda one: len(one.cells), default=None)

    def _read_adjustments(self) -> dict[tuple[str, str, str, str], list[Record]]:
        found: dict[tuple[str, str, str, str], list[Record]] = defaultdict(list)
        for one in self._export.records("BundleBasedAdjustment"):
            root = self._export.named(one, "RootBundle.StockKeepingUnit", "Product2")
            child = self._export.named(one, "Product.StockKeepingUnit", "Product2")
            self._export.named(one, MODEL, "ProductSellingModel")
            if root and child:
                found[root.key, child.key, one.text(MODEL), one.text("CurrencyIsoCode")].append(one)
        return found

    def _why_unadjusted(self, one: Record) -> str:
        if one.text("AdjustmentType") not in ("Percentage", "Amount", "Override"):
            return f"no price here is adjusted by {one.text('AdjustmentType') or 'nothing'}"
        return "its component is no option of the bundle with this selling model, or a nearer adjustment counts"

    def _sequence(self, code: str) -> tuple[Decimal, str]:
        group = self._groups.get(code)
        number = self._export.number(group, "Sequence") if group else None
        return (Decimal(0) if number is None else number, code)

    def _check_groups(self) -> None:
        for group in self._groups.values():
            self._export.named(group, "ParentProduct.StockKeepingUnit", "Product2")

    def _refuse_cycles(self) -> None:
        inside = {
            sku: {one.child.key for members in groups.values() for one in members}
            for sku, groups in self._members.items()
        }
        try:
            TopologicalSorter(inside).prepare()
        except CycleError as error:
            circle = list(reversed(error.args[1]))
            members = [one for group in self._members[circle[0]].values() for one in group]
            place = next(one.record for one in members if one.child.key == circle[1])
            shown = " > ".join(circle)
            self._export.refuse(place, "ChildProduct.StockKeepingUnit", f"a bundle contains itself: {shown}")


_REQUIREMENT = Outcome(Fate.TRANSLATED, "the product requires it on a line of its own, which has no maximum")


def _bounded(one: Component, bounds: Bounds | None) -> tuple[Component, Outcome]:
    """A component within bounds, and what became of them. Bounds that contradict the export change nothing."""
    if one.is_unsold:
        return one, _lost("its component is not here")
    if bounds is None:
        return one, Outcome(Fate.TAKEN, "a component of the export")
    if not bounds.allows(one.quantity):
        return one, _lost("the number of pieces in the export is outside of its bounds")
    is_required = one.is_required or bounds.low > 0
    counts = _counts(one.choosable.within(bounds), one.quantity, is_required) if one.choosable else ()
    result = one._replace(is_required=is_required, counts=counts)
    if one.why_alone:
        return result, _REQUIREMENT if bounds.low else _lost("a line of its own has no bounds")
    if one.choosable and not counts and not result.is_fixed:
        return result, _lost(f"an option lists at most {COUNTED_MAX} numbers of pieces")
    if result == one:
        return one, Outcome(Fate.TAKEN, "the number of its component is within its bounds")
    return result, Outcome(Fate.TRANSLATED, "the bounds of an option for a component")


def _counts(choosable: Bounds | None, quantity: int, is_required: bool) -> tuple[int, ...]:
    if choosable is None or choosable.high is None or choosable.high > COUNTED_MAX or not choosable.allows(quantity):
        return ()
    numbers = tuple(range(max(1, choosable.low), choosable.high + 1))
    return numbers if is_required else (0, *numbers)


def _lost(why: str) -> Outcome:
    return Outcome(Fate.NO_COUNTERPART, why)


def _of_price(one: Component) -> str:
    return ", which the price includes" if one.is_included else " with its price as surcharge"


def _free_name(taken: Iterable[str], name: str, code: str) -> str:
    """The name of an option: as people call it, or by its code where that is too long or taken."""
    used = set(taken)
    return name if name and len(name) <= NAME_LENGTH_MAX and name not in used else code[:NAME_LENGTH_MAX]
