"""Free units of packages are shared by the lines of a quote, and cost what others do."""

from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.pricing import price
from cpq.domain.pricing.request import EDITION, Line, PriceRow, Product, Request
from cpq.domain.pricing.result import PricedQuote


@given(
    st.integers(1, 40), st.integers(0, 60), st.integers(1, 12), st.lists(st.integers(1, 30), min_size=1, max_size=6),
)  # fmt: skip
def test_no_split_into_lines_makes_free_units_cheaper_or_cost_less(price_: int, free: int, size: int, parts: list[int]):
    row = PriceRow(
        "r", price_ * 10**6, "list", tier_mode="package", package_size=size, free_quantity=free, cost=price_ * 10**5
    )

    def quoted(*quantities: int, edition: int) -> PricedQuote:
        lines = tuple(Line(str(number), "p", quantity) for number, quantity in enumerate(quantities, 1))
        request = Request(
            "USD", "2026-01-31", lines, {"p": Product((row,))}, ("list",), {"standard": 0}, edition=edition
        )
        return price(request)

    whole, split = quoted(sum(parts), edition=EDITION), quoted(*parts, edition=EDITION)
    assert whole.total <= split.total
    assert whole.cost is not None
    assert split.cost is not None
    assert whole.cost <= split.cost
    assert whole.cost == price_ * 10**5 * -(-sum(parts) // size)
    # What was stored before keeps its price: each line had its own free units.
    before = quoted(*parts, edition=2)
    assert before.total == sum(price_ * 10**6 * -(-max(0, quantity - free) // size) for quantity in parts)
