"""The pricer alone, trace included: lines a second, growth with their number, and bare integers beside it."""

import time
from collections.abc import Callable
from typing import Any

from cpq.base.memory import spare_the_collector
from cpq.domain.pricing import price
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Line, PriceRow, Product, Request, Segment, Tier, Usage

SIZES = (10, 100, 1_000, 10_000)
PRODUCTS = 60
MICRO = 10**6
CENT = 10**4
MONTHS = {"one_time": 0, "monthly": 1, "yearly": 12}


def measure() -> dict[str, float]:
    """By the processor's time, the best of many, ours and the bare twin in turns, because the machine is shared."""
    spare_the_collector()  # As every server does.
    ours: dict[int, float] = {}
    theirs: dict[int, float] = {}
    for size in SIZES:
        request = quote(size)
        bare = flatten(request)
        assert price(request).total == twin(bare)
        for _ in range(max(9, min(400, 60_000 // size))):
            ours[size] = min(ours.get(size, 1e9), _seconds(price, request) / size)
            theirs[size] = min(theirs.get(size, 1e9), _seconds(twin, bare) / size)
    figures = {f"{size:,} lines: lines a second": 1 / ours[size] for size in SIZES}
    figures["time a line, 10,000 / 100"] = ours[10_000] / ours[100]
    special = special_quote(1_000)
    best = min(_seconds(price, special) for _ in range(60))
    figures["1,000 lines with price, amount or ramp: lines a second"] = 1_000 / best
    use = usage_quote(1_000)
    best = min(_seconds(price, use) for _ in range(60))
    figures["1,000 lines of use with a price: lines a second"] = 1_000 / best
    return figures | {f"{size:,} lines: pricer / bare integers": ours[size] / theirs[size] for size in SIZES}


def special_quote(size: int) -> Request:
    """A third of the lines has a price of the seller, a third an amount off, a third a ramp of three segments."""
    plain = quote(size)
    recurring = [id_ for id_, product in plain.products.items() if product.rows[0].billing_period != "one_time"]
    ramp = (Segment(1, discount=ONE_HUNDRED_PERCENT), Segment(5, 3), Segment(6, 7))
    lines = []
    for number, line in enumerate(plain.lines):
        if number % 3 == 0:
            lines.append(line._replace(override=9_990_000, discount=0))
        elif number % 3 == 1:
            lines.append(line._replace(amount_off=CENT, discount=0))
        else:
            of_term = recurring[number % len(recurring)]
            lines.append(Line(line.id, of_term, 7, ramp=ramp))
    return plain._replace(lines=tuple(lines), term_months=12)


def usage_quote(size: int) -> Request:
    """Rate cards of four kinds, each with a rate of the seller; three lines in four commit to something."""
    cards = {f"use_{number}": Product((_rate_card(number),)) for number in range(PRODUCTS)}
    commitments = (Usage(quantity=5_000), Usage(amount=400 * MICRO), None, Usage(quantity=100_000, expected=200_000))
    lines = tuple(
        Line(f"line_{number}", f"use_{number % PRODUCTS}", 1, usage=commitments[number % 4], override=9_000)
        for number in range(size)
    )
    return Request("USD", "2026-11-16", lines, cards, ("list",), {"standard": 19 * MICRO}, term_months=12)


def _rate_card(number: int) -> PriceRow:
    rate, mode = 10_000 + number * 7, ("none", "graduated", "volume", "package")[number % 4]
    tiers = (Tier(1_000, rate), Tier(100_000, rate * 9 // 10, 5 * MICRO), Tier(None, rate * 8 // 10))
    return PriceRow(
        f"use_{number}",
        rate,
        "list",
        None,
        "monthly",
        mode,
        tiers if mode in ("graduated", "volume") else (),
        package_size=100 if mode == "package" else None,
        free_quantity=number % 2 * 100,
        cost=rate // 2,
        is_usage=True,
        unit="call",
        minimum_spend=None if number % 3 else 5 * MICRO,
    )


def _seconds(work: Callable[[Any], object], quote: object) -> float:
    start = time.process_time()
    work(quote)
    return time.process_time() - start


def quote(size: int) -> Request:
    """A third of the prices recurs, two fifths have tiers, a fifth options, a tenth a contract; half have discounts."""
    lines = tuple(
        Line(
            f"line_{number}",
            f"prod_{number * 7 % PRODUCTS}",
            1 + number * 13 % 150,
            (0, 0, 2_500_000, 10 * MICRO)[number % 4],
            {"finish": ("plain", "galvanized")[number % 2]} if number * 7 % PRODUCTS % 5 == 4 else {},
        )
        for number in range(size)
    )
    products = {f"prod_{number}": Product(tuple(_rows(number))) for number in range(PRODUCTS)}
    return Request(
        "USD",
        "2026-11-16",
        lines,
        products,
        ("gold", "list"),
        {"standard": 19 * MICRO, "reduced": 7 * MICRO},
        term_months=18,
        requested_discount=7 * MICRO,
    )


def _rows(number: int) -> list[PriceRow]:
    unit = (10 + number) * MICRO + number * 1_234
    mode = ("none", "volume", "none", "graduated", "none")[number % 5]
    tiers = (Tier(10, unit), Tier(100, unit * 9 // 10, 5 * MICRO), Tier(None, unit * 8 // 10))
    first = PriceRow(
        f"list_{number}",
        unit,
        "list",
        None,
        ("one_time", "one_time", "yearly", "monthly", "one_time", "one_time")[number % 6],
        mode,
        tiers if mode != "none" else (),
        cost=unit * 6 // 10,
        tax_category=("standard", "standard", "reduced")[number % 3],
        surcharges={"finish": {"galvanized": 690_000, "plain": 0}} if number % 5 == 4 else {},
    )
    others = [first._replace(id=f"old_{number}", valid_to="2025-12-31", unit_price=1)]
    if number % 4 == 0:
        others.append(first._replace(id=f"gold_{number}", price_book_id="gold", unit_price=unit * 95 // 100))
    if number % 10 == 0:
        others.append(first._replace(id=f"deal_{number}", price_book_id=None, account_id="acme", unit_price=unit // 2))
    return [first, *others]


def flatten(request: Request) -> list:
    """The same quote as lists of integers and texts: what a program would hold that only wants the total."""
    products: dict[str, list] = {}
    for id_, product in request.products.items():
        products[id_] = [
            [
                row.price_book_id,
                row.account_id,
                row.valid_from,
                row.valid_to,
                row.priority,
                row.id,
                row.unit_price,
                MONTHS[row.billing_period],
                ("none", "volume", "graduated").index(row.tier_mode),
                [[tier.up_to or 10**12, tier.unit_price, tier.flat_fee] for tier in row.tiers],
                row.cost,
                row.tax_category,
                row.surcharges.get("finish"),
            ]
            for row in product.rows
        ]
    lines = [[line.product_id, line.quantity, line.discount, line.choices.get("finish")] for line in request.lines]
    rates = dict(request.tax_rates)
    return [request.as_of, list(request.price_books), products, lines, rates, 18, request.requested_discount]


def twin(bare: list) -> int:
    """The bare arithmetic: the same choice of row, tiers, options, term, discounts, splitting, tax and cost."""
    day, books, products, lines, rates, term, off = bare
    chosen: dict[str, list] = {}
    customers, categories = [], []
    subtotal = cost = listed_total = 0
    for product_id, quantity, discount, finish in lines:
        pair = chosen.get(product_id)
        if pair is None:
            pair = chosen[product_id] = _choose(products[product_id], day, books)
        listed, row = pair
        unit, months, mode, tiers, unit_cost, category, surcharges = row[6:13]
        amount = unit * quantity if mode == 0 else _tiered(mode, tiers, quantity)
        before = listed[6] * quantity
        costs = unit_cost * quantity
        below = 1
        if finish is not None and (extra := surcharges[finish]):
            amount += extra * quantity
            before += extra * quantity
            below = listed[6]
            costs = costs * below + unit_cost * extra * quantity
        if months:
            amount, before, costs = amount * term, before * term, costs * term
        months = months or 1
        whole = months * 2 * CENT
        listed_total += (2 * before + months * CENT) // whole * CENT
        subtotal += (2 * amount + months * CENT) // whole * CENT
        cost += (2 * costs + months * below * CENT) // (whole * below) * CENT
        share = amount * (ONE_HUNDRED_PERCENT - discount)
        customers.append((2 * share + months * CENT * ONE_HUNDRED_PERCENT) // (whole * ONE_HUNDRED_PERCENT))
        categories.append(category)
    total = sum(customers)
    given = (2 * total * off + ONE_HUNDRED_PERCENT) // (2 * ONE_HUNDRED_PERCENT)
    bases = dict.fromkeys(rates, 0)
    for category, customer, share in zip(categories, customers, _split(given, customers, total), strict=True):
        bases[category] += customer - share
    taxes = sum(
        (2 * base * rates[name] + ONE_HUNDRED_PERCENT) // (2 * ONE_HUNDRED_PERCENT) for name, base in bases.items()
    )
    assert cost > 0 < listed_total
    assert subtotal >= (total - given) * CENT
    return (total - given + taxes) * CENT


def _choose(rows: list, day: str, books: list) -> list:
    listed = contracted = listed_key = contracted_key = None
    for row in rows:
        if (row[2] and row[2] > day) or (row[3] and row[3] < day):
            continue
        key = (-row[4], -((row[2] is not None) + (row[3] is not None)), row[5])
        if row[1] is not None:
            if contracted_key is None or key < contracted_key:
                contracted, contracted_key = row, key
        elif row[0] in books:
            ranked = (books.index(row[0]), *key)
            if listed_key is None or ranked < listed_key:
                listed, listed_key = row, ranked
    return [listed, contracted or listed]


def _tiered(mode: int, tiers: list, quantity: int) -> int:
    amount = low = 0
    for up_to, unit, fee in tiers:
        if mode == 1:
            if quantity <= up_to:
                return unit * quantity + fee
        elif quantity <= up_to:
            return amount + (quantity - low) * unit + fee
        else:
            amount += (up_to - low) * unit + fee
            low = up_to
    raise AssertionError("the last tier is open")


def _split(units: int, weights: list, total: int) -> list:
    shares = [units * weight // total for weight in weights]
    if left := units - sum(shares):
        rests = [units * weight % total for weight in weights]
        for index in sorted(range(len(weights)), key=rests.__getitem__, reverse=True)[:left]:
            shares[index] += 1
    return shares
