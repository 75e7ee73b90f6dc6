"""The waterfall once more, in the plainest way: fractions, loops, no plan and no trace. The pricer agrees with it."""

from datetime import date, timedelta
from fractions import Fraction
from typing import NamedTuple

from cpq.base.money import MINOR_DIGITS
from cpq.domain.pricing.request import Adjustment, Line, PriceRow, Request, Segment
from cpq.domain.pricing.terms import add_months, factor

PERCENT = Fraction(1, 10**8)
MONTHS = {"monthly": 1, "quarterly": 3, "half_yearly": 6, "yearly": 12, "18_months": 18}
WEEKS = {"weekly": 1, "2_weeks": 2}


class Totals(NamedTuple):
    lines: list[tuple[int, int, int, int | None]]
    """List amount, regular price, net and cost of each line."""
    subtotal: int
    net: int
    groups: list[tuple[str | None, str, int, int]]
    """Code, categories, base and tax, the highest rate first; without codes by category."""
    total: int


class Sum(NamedTuple):
    """A line before it is rounded."""

    listed: Fraction
    regular: Fraction
    cost: Fraction | None
    taxed: dict[str, Fraction]
    is_included: bool


def rounded(request: Request, amount: Fraction) -> int:
    size = 10 ** (6 - MINOR_DIGITS[request.currency])
    units = amount / size
    down = units.numerator // units.denominator
    rest = units - down
    is_up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and (request.rounding == "half_up" or down % 2 == 1))
    return (down + is_up) * size


def winners(request: Request, product_id: str) -> tuple[PriceRow | None, PriceRow | None]:
    """The list price and the contracted one."""
    day = request.as_of
    valid = [
        row
        for row in request.products[product_id].rows
        if (row.valid_from or "0") <= day <= (row.valid_to or "9")
        and (row.account_id or row.price_book_id in request.price_books)
    ]
    valid.sort(key=lambda row: row.id)
    valid.sort(key=lambda row: (row.valid_from is None) + (row.valid_to is None))
    valid.sort(key=lambda row: -row.priority)
    contracted = [row for row in valid if row.account_id]
    listed = [row for book in request.price_books for row in valid if row.price_book_id == book]
    return listed[0] if listed else None, contracted[0] if contracted else None


def tier_charge(row: PriceRow, quantity: int, free: Fraction | None = None) -> int:
    """Unit by unit; `free` are the free units, where they are not all those of the row."""
    if row.tier_mode == "none":
        return row.unit_price * quantity
    if row.tier_mode == "package":
        packages, rest = 0, quantity - (row.free_quantity if free is None else free)
        while rest > 0:
            packages, rest = packages + 1, rest - (row.package_size or 0)
        return packages * row.unit_price
    if row.tier_mode == "volume":
        reached = reached_tier(row, quantity)
        return sum(row.tiers[reached].unit_price for _ in range(quantity)) + row.tiers[reached].flat_fee
    entered = {reached_tier(row, unit) for unit in range(1, quantity + 1)}
    fees = sum(row.tiers[tier].flat_fee for tier in entered)
    return fees + sum(row.tiers[reached_tier(row, unit)].unit_price for unit in range(1, quantity + 1))


def reached_tier(row: PriceRow, quantity: int) -> int:
    return next(n for n, tier in enumerate(row.tiers) if tier.up_to is None or quantity <= tier.up_to)


def over_the_quote(request: Request, product_id: str, months: range, is_once: bool) -> int:
    """Month by month: what is there in all of these months, or has to be bought once."""
    units = 0
    for line in request.lines:
        contents = [(line.product_id, 1), *request.products[line.product_id].components]
        each = sum(count for id_, count in contents if id_ == product_id)
        units += each * (largest(line) if is_once else min((in_month(line, month) for month in months), default=0))
    return units


def whole(line: Line) -> int:
    """This reckoning counts unit by unit; quantities that are not whole have a law of their own."""
    assert isinstance(line.quantity, int)
    return line.quantity


def largest(line: Line) -> int:
    return max((segment.quantity or whole(line) for segment in line.ramp), default=whole(line))


def in_month(line: Line, month: int) -> int:
    if not line.ramp:
        return whole(line)
    by_month = [segment.quantity or whole(line) for segment in line.ramp for _ in range(segment.months)]
    return by_month[month] if month < len(by_month) else 0


def mean(line: Line) -> Fraction:
    if not line.ramp:
        return Fraction(line.quantity)
    months = range(sum(segment.months for segment in line.ramp))
    return Fraction(sum(in_month(line, month) for month in months), len(months))


def months_of(request: Request, offset: int, segment: Segment | None) -> range:
    """Those of a segment, or of the whole term, which without a number is as long as the longest ramp."""
    if segment:
        return range(offset, offset + segment.months)
    longest = max(sum(segment.months for segment in line.ramp) for line in request.lines)
    return range(request.term_months or longest or 1)


def periods(request: Request, row: PriceRow, offset: int, segment: Segment | None) -> Fraction:
    """How often the price falls due."""
    if row.billing_period == "one_time":
        return Fraction(1)
    start = date.fromisoformat(request.starts_on or request.as_of)
    length = MONTHS.get(row.billing_period, 0)

    def until(end: date) -> Fraction:
        if row.billing_period in WEEKS:
            days = len(range(start.toordinal(), end.toordinal()))
            weeks = Fraction(days, 7) if request.part_periods != "whole_months_up" else Fraction((days + 6) // 7)
            return weeks / WEEKS[row.billing_period]
        return factor(request.part_periods, start, end, length)

    if segment:
        return until(add_months(start, offset + segment.months)) - (until(add_months(start, offset)) if offset else 0)
    if request.term_months:
        return until(add_months(start, request.term_months))
    return until(date.fromisoformat(request.ends_on) + timedelta(days=1)) if request.ends_on else Fraction(1)


class Part(NamedTuple):
    listed: Fraction
    amount: Fraction
    cost: Fraction | None
    category: str
    is_included: bool


def part(request: Request, line: Line, product_id: str, each: int, offset: int, segment: Segment | None) -> Part:
    """One product of a line, over the whole term or one segment of it."""
    listed, contracted = winners(request, product_id)
    row = contracted or listed
    assert row
    listed = listed or row
    is_once = row.billing_period == "one_time"
    quantity = (largest(line) if is_once else (segment and segment.quantity) or whole(line)) * each
    counted = over_the_quote(request, product_id, months_of(request, offset, segment), is_once)
    everywhere = over_the_quote(request, product_id, range(0), is_once=True)

    def free_of(priced: PriceRow, units: int) -> Fraction | None:
        return Fraction(priced.free_quantity * units, everywhere) if request.edition > 2 else None

    is_frame = bool(request.products[product_id].components) and product_id == line.product_id
    base = Fraction(row.unit_price * quantity)
    if segment and segment.unit_price is not None and product_id == line.product_id:
        base = Fraction(segment.unit_price * quantity)
    elif is_frame and contracted is None:
        base = Fraction(0)
    elif row.quantity_scope == "quote" and row.tier_mode != "none":
        base = Fraction(tier_charge(row, counted, free_of(row, counted)) * quantity, counted)
    else:
        base = Fraction(tier_charge(row, quantity, free_of(row, quantity)))
    before = Fraction(0 if is_frame else listed.unit_price * quantity)
    if listed.tier_mode == "package" and not is_frame:
        before = Fraction(tier_charge(listed, quantity, free_of(listed, quantity)))
    surcharge = 0
    if product_id == line.product_id:
        priced = row.surcharges or listed.surcharges
        surcharge = sum(priced.get(name, {}).get(value, 0) for name, value in line.choices.items())
    uplift = 1 + segment.uplift * PERCENT if segment else Fraction(1)
    times = periods(request, row, offset, segment)
    amount = (base + surcharge * quantity) * times * uplift
    before = (before + surcharge * quantity) * periods(request, listed, offset, segment)
    if not is_frame:
        amount, before = max(Fraction(0), amount), max(Fraction(0), before)
    costs = row if row.cost is not None else listed
    cost: Fraction | None = None
    if costs.cost is not None:
        units = Fraction(quantity)
        if costs.tier_mode == "package":
            counting = costs._replace(unit_price=1, free_quantity=0 if request.edition > 2 else costs.free_quantity)
            units = Fraction(tier_charge(counting, quantity))
            if costs.quantity_scope == "quote":
                units = Fraction(tier_charge(counting, counted) * quantity, counted)
        cost = costs.cost * units
        if surcharge:
            cost = (
                None if not listed.unit_price else cost + Fraction(costs.cost * surcharge * quantity, listed.unit_price)
            )
        cost = None if cost is None else max(Fraction(0), cost) * periods(request, costs, offset, segment)
    return Part(before, amount, cost, row.tax_category, row.tax_included)


def gather(request: Request, line: Line) -> Sum:
    """A line's parts, added up."""
    product = request.products[line.product_id]
    _, contracted = winners(request, line.product_id)
    own: list[Part] = []
    inside: list[Part] = []
    counting: list[Part] = []
    offset = 0
    for segment in line.ramp or (None,):
        mine = parts_of(request, line, line.product_id, 1, offset, segment)
        theirs = [
            found._replace(amount=found.amount * (1 - product.bundle_discount * PERCENT))
            for component in product.components
            for found in parts_of(request, line, component.product_id, component.quantity, offset, segment)
        ]
        is_agreed = contracted is not None or (segment is not None and segment.unit_price is not None)
        own, inside, counting = own + mine, inside + theirs, counting + mine + ([] if is_agreed else theirs)
        offset += segment.months if segment else 0
    taxed: dict[str, Fraction] = {}
    for one in counting:
        taxed[one.category] = taxed.get(one.category, Fraction(0)) + one.amount
    taxed = {name: max(Fraction(0), amount) for name, amount in taxed.items()}
    listed = max(Fraction(0), sum((one.listed for one in own + inside), Fraction(0)))
    regular = max(Fraction(0), sum((one.amount for one in counting), Fraction(0)))
    cost = total_cost(inside) if product.components else total_cost(own)
    if product.components and (surcharges := sum(one.listed for one in own)):
        before = sum(one.listed for one in inside)
        cost = None if cost is None or not before else max(Fraction(0), cost + surcharges * cost / before)
    return Sum(listed, adjusted(line, regular, listed), cost, taxed, counting[0].is_included)


def parts_of(
    request: Request, line: Line, product_id: str, each: int, offset: int, segment: Segment | None
) -> list[Part]:
    """A product in one segment. What is paid once is paid with the first, for the largest quantity of the line."""
    listed, contracted = winners(request, product_id)
    row = contracted or listed
    assert row
    if segment is None or row.billing_period != "one_time":
        return [part(request, line, product_id, each, offset, segment)]
    return [] if offset else [part(request, line, product_id, each, 0, None)]


def total_cost(parts: list[Part]) -> Fraction | None:
    costs = [one.cost for one in parts]
    return None if None in costs else sum((cost for cost in costs if cost), Fraction(0))


def adjusted(line: Line, amount: Fraction, listed: Fraction) -> Fraction:
    for kind in ("markup", "percentage", "amount"):
        rules = sorted((rule for rule in line.adjustments if rule.kind == kind), key=lambda rule: rule.rule_id)
        rivals = [(moves(line, rule, amount, listed), rule) for rule in rules if rule.stacking == "best_of"]
        best = None
        for effect, rule in rivals:
            if best is None or (effect < best[0] if kind == "markup" else effect > best[0]):
                best = (effect, rule)
        for rule in rules:
            if rule.stacking == "sequential" or (best and rule is best[1]):
                moved = moves(line, rule, amount, listed)
                amount = amount + moved if kind == "markup" else max(Fraction(0), amount - moved)
    return amount


def moves(line: Line, rule: Adjustment, amount: Fraction, listed: Fraction) -> Fraction:
    if rule.kind == "amount":
        return rule.value * (mean(line) if rule.base == "unit" else Fraction(1))
    return (listed if rule.base == "list" else amount) * rule.value * PERCENT


def split(units: int, weights: list[Fraction], order: list[object]) -> list[int]:
    """Largest remainder; of equal ones, the first in the given order."""
    weights = weights if any(weights) else [Fraction(1)] * len(weights)
    fair = [units * weight / sum(weights) for weight in weights]
    shares = [int(share) for share in fair]
    for index in sorted(range(len(fair)), key=lambda n: (-(fair[n] - int(fair[n])), order[n]))[: units - sum(shares)]:
        shares[index] += 1
    return shares


def totals(request: Request) -> Totals:
    size = 10 ** (6 - MINOR_DIGITS[request.currency])
    sums = [gather(request, line) for line in request.lines]
    customers = [
        rounded(request, one.regular * (1 - line.discount * PERCENT))
        for one, line in zip(sums, request.lines, strict=True)
    ]
    whole = rounded(request, sum(customers) * request.requested_discount * PERCENT)
    order: list[object] = [_identity(request, line) for line in request.lines]
    shares = split(whole // size, [Fraction(customer) for customer in customers], order)
    lines: list[tuple[int, int, int, int | None]] = []
    bases: dict[str, int] = {}
    taxes: dict[str, int] = {}
    owed: dict[str, Fraction] = {}
    is_taxable = request.tax_status == "taxable"
    outside: dict[str, int] = {}
    named: set[str] = set()
    for line, one, customer, share in zip(request.lines, sums, customers, shares, strict=True):
        net = customer - share * size
        regular, listed = rounded(request, one.regular), rounded(request, one.listed)
        categories = sorted(name for name, amount in one.taxed.items() if amount) or list(one.taxed)[:1]
        named.update(categories)
        categories = _leaders(request, categories)
        if one.is_included:
            above = 1 + request.tax_rates[categories[0]] * PERCENT
            gross, net = net, rounded(request, net / above)
            regular, listed = rounded(request, regular / above), rounded(request, listed / above)
            bases[categories[0]] = bases.get(categories[0], 0) + net
            taxes[categories[0]] = taxes.get(categories[0], 0) + (gross - net if is_taxable else 0)
        else:
            weights = [_weight(request, one.taxed, name) for name in categories]
            exact = one.regular * (1 - line.discount * PERCENT) * (1 - request.requested_discount * PERCENT)
            for name, weight, part_ in zip(
                categories, weights, split(net // size, weights, list(categories)), strict=True
            ):
                base, rate = part_ * size, request.tax_rates[name] * PERCENT if is_taxable else Fraction(0)
                bases[name] = bases.get(name, 0) + base
                outside[name] = outside.get(name, 0) + base
                share_of = weight / sum(weights) if sum(weights) else Fraction(1)
                owed[name] = owed.get(name, Fraction(0)) + exact * share_of * rate
                if request.tax_rounding == "line":
                    taxes[name] = taxes.get(name, 0) + rounded(request, base * rate)
        lines.append((listed, regular, net, None if one.cost is None else rounded(request, one.cost)))
    if request.tax_rounding == "group":
        for group in {_group(request, name) for name in outside}:
            names = sorted(name for name in outside if _group(request, name) == group)
            base = sum(outside[name] for name in names)
            taxes[names[0]] = taxes.get(names[0], 0) + rounded(request, base * group[1] * PERCENT)
    elif request.tax_rounding == "document" and owed:
        owed, parts = {}, owed
        for name in sorted(parts, key=lambda name: (_group(request, name), name)):
            first = next((one for one in owed if _group(request, one) == _group(request, name)), name)
            owed[first] = owed.get(first, Fraction(0)) + parts[name]
        names = list(owed)
        once = rounded(request, sum(owed.values(), Fraction(0)))
        for name, share in zip(names, split(once // size, [owed[name] for name in names], list(names)), strict=True):
            taxes[name] = taxes.get(name, 0) + share * size
    found = {_group(request, name) for name in bases}
    groups = []
    for group in sorted(found, key=lambda one: (-one[1] if request.tax_codes else 0, one)):
        names = sorted(name for name in named if _group(request, name) == group)
        base, tax = (sum(amounts.get(name, 0) for name in names) for amounts in (bases, taxes))
        groups.append((group[0] if request.tax_codes else None, ", ".join(names), base, tax))
    net = sum(line[2] for line in lines)
    return Totals(lines, sum(line[1] for line in lines), net, groups, net + sum(tax for *_, tax in groups))


def _group(request: Request, category: str) -> tuple[str, int]:
    rate = request.tax_rates[category] if request.tax_status == "taxable" else 0
    return request.tax_codes.get(category, category), rate


def _leaders(request: Request, categories: list[str]) -> list[str]:
    """Of the categories of a line, the first of each group."""
    groups = [_group(request, name) for name in categories]
    return [name for number, name in enumerate(categories) if groups[number] not in groups[:number]]


def _weight(request: Request, taxed: dict[str, Fraction], leader: str) -> Fraction:
    return sum(
        (amount for name, amount in taxed.items() if _group(request, name) == _group(request, leader)), Fraction(0)
    )


def _identity(request: Request, line: Line) -> tuple[object, ...]:
    digits = "".join(character for character in line.id if character.isdigit())
    number = line.id if request.edition == 1 else (int(digits or 0), line.id)
    return (
        line.product_id,
        line.quantity,
        line.discount,
        sorted(line.choices.items()),
        str(line.ramp),
        str(line.adjustments),
        number,
    )
