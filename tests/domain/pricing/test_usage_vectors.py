"""G-07: cases of usage that other systems publish. What our rules cover comes out as there; the rest says why not."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cpq.domain.pricing.price_selection import is_valid
from cpq.domain.pricing.request import PriceRow, Tier
from cpq.domain.pricing.usage import bill, charge_for_use
from tests.domain.pricing.test_vectors import micro

CASES = json.loads((Path(__file__).parent / "usage_cases.json").read_text(encoding="utf-8"))

NOT_OURS = {
    "fixed": "a fee that does not depend on use is a price of a term",
    "markup": "a rate is an amount, not a multiple of metered money",
    "share": "a rate is an amount, not a percentage of metered money",
    "credits": "a quote has no prepaid credits, wallets or grants",
    "meter": "the meter converts and rounds what it counts before it is priced",
    "blocks": "the packages of a rate card have one size",
    "days": "a rate card prices what is used in a period, not for how many days of it",
    "true-up": "a commitment is that of its own line: the fee of a plan does not use it up",
    "within a period": "a minimum, or a tier by the whole quantity, is settled at the end of a period",
    "meters": "a rate card counts one thing; the use of another does not select its tier",
}
"""Why a case is left out."""

DECIDED = {
    "USG-0010": "no use costs nothing: the first tier is (0, 5], and its fee is due with the first unit",
    "USG-0062": "no use costs nothing: the first tier is (0, 5], and its fee is due with the first unit",
}
"""Cases that a decision of ours contradicts, with the decision."""


class LeftOut(Exception):  # noqa: N818 - not an error
    """A case that is not ours, by the word of `NOT_OURS`."""


def number(text: object) -> Fraction:
    return Fraction(str(text or 0))


def card(asked: Mapping[str, Any]) -> PriceRow:
    """The rate card of a case."""
    row = PriceRow("row", 0, "list", billing_period="monthly", is_usage=True)
    if "minimum_amount" in asked:
        row = row._replace(minimum_spend=micro(Decimal(asked["minimum_amount"])))
    if "maximum_amount" in asked:
        row = row._replace(maximum_spend=micro(Decimal(asked["maximum_amount"])))
    if asked["model"] == "unit":
        return row._replace(unit_price=micro(Decimal(asked["unit_price"])))
    if asked["model"] == "package":
        price = micro(Decimal(asked.get("package_price", 1)))
        return row._replace(tier_mode="package", package_size=int(asked["package_size"]), unit_price=price)
    tiers = [(up_to and int(up_to), micro(Decimal(unit)), micro(Decimal(flat))) for up_to, unit, flat in asked["tiers"]]
    return row._replace(tier_mode=asked["model"], tiers=tuple(Tier(*tier) for tier in tiers))


def of_openmeter(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """A line within a period is what it adds to the bill."""
    if "credits" in asked:
        raise LeftOut("credits")
    if "convert" in asked:
        raise LeftOut("meter")
    if "tier" in expected:
        found = card(
            {**asked, "tiers": [[up_to, str(place), "0"] for place, (up_to, *_) in enumerate(asked["tiers"], 1)]}
        )
        assert charge_for_use(found, number(asked["quantity"])) == micro(Decimal(expected["tier"])) * number(
            asked["quantity"]
        )
        return
    row = card(asked)
    if "packages" in expected:
        assert charge_for_use(row, number(asked["quantity"])) == micro(Decimal(expected["packages"]))
        return
    is_open = asked["line"] == "middle"
    if is_open and ("minimum_amount" in asked or asked["model"] == "volume"):
        raise LeftOut("within a period")
    before = number(asked.get("quantity_before"))
    billed = number(asked["billed_before"]) * 10**6 if "billed_before" in asked else charge_for_use(row, before)
    assert bill(row, before + number(asked["quantity"])) - billed == number(expected["total"]) * 10**6


def of_converted(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    if "convert" in asked:
        raise LeftOut("meter")
    of_openmeter({"line": "only", **asked}, expected)


def of_free(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    row = PriceRow("row", 1, "list", is_usage=True, free_quantity=int(asked["free_units"]))
    before = number(asked["quantity_before"])
    all_of_it = charge_for_use(row, before + number(asked["quantity"]))
    assert charge_for_use(row, before) == number(expected["billed_quantity_before"])
    assert all_of_it - charge_for_use(row, before) == number(expected["billed_quantity"])


def of_lago_volume(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    assert charge_for_use(card(asked), number(asked["quantity"])) == number(expected["total"]) * 10**6


def of_tokens(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """Prices for a million, counted in thousands, so that rates have six decimals and bounds are whole."""
    if "quantity" not in asked:
        raise LeftOut("meters")
    starts = [number(start) / 1000 for start, _ in asked["tiers"]]
    rates = [asked["base"], *(rate for _, rate in asked["tiers"])]
    bounds = [*(int(start) for start in starts), None]
    tiers = tuple(Tier(up_to, micro(Decimal(rate) / 1000)) for up_to, rate in zip(bounds, rates, strict=True))
    row = PriceRow("row", 0, "list", is_usage=True, tier_mode="volume", tiers=tiers)
    assert charge_for_use(row, number(asked["quantity"]) / 1000) == number(expected["total"]) * 10**6


def of_dated(asked: dict[str, Any], expected: dict[str, Any]) -> None:
    """The price that is valid on the day of the quote."""
    if asked["model"] == "volume_per_million":
        of_tokens(asked, expected)
        return
    if asked["model"] != "dated_rate":
        raise LeftOut("meters")
    rows = [
        PriceRow(str(place), micro(Decimal(row["base"])), "list", valid_from=row.get("from"), valid_to=row.get("until"))
        for place, row in enumerate(asked["rows"])
    ]
    (found,) = [row for row in rows if is_valid(row, asked["day"])]
    assert {"base": found.unit_price} == {"base": micro(Decimal(expected["base"]))}


def left(reason: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def run(_asked: dict[str, Any], _expected: dict[str, Any]) -> None:
        raise LeftOut(reason)

    return run


RUN = {
    "usage.om.graduated": of_openmeter,
    "usage.om.volume": of_openmeter,
    "usage.om.package": of_openmeter,
    "usage.om.unit": of_openmeter,
    "usage.om.convert": of_converted,
    "usage.om.flat": left("fixed"),
    "usage.om.free": of_free,
    "usage.om.markup": left("markup"),
    "usage.kb.blocks": left("blocks"),
    "usage.lago.percentage": left("share"),
    "usage.lago.gradpct": left("share"),
    "usage.lago.volume": of_lago_volume,
    "usage.lago.prorated_graduated": left("days"),
    "usage.lago.commit": left("true-up"),
    "usage.lago.wallet": left("credits"),
    "usage.genai.volume": of_tokens,
    "usage.genai.dated": of_dated,
    "usage.vendor.grant": left("credits"),
}


def left_out(case: dict[str, Any]) -> str | None:
    """Why a case is left out; None when it was checked."""
    group = ".".join(case["group"].split(".")[:3])
    try:
        RUN[group](case["inputs"], case["expected"])
    except LeftOut as reason:
        return str(reason)
    return None


@pytest.mark.parametrize("case", [case for case in CASES if case["id"] not in DECIDED], ids=lambda case: case["id"])
def test_g07_a_published_case_comes_out_as_there_or_says_why_not(case: dict[str, Any]):
    reason = left_out(case)
    assert reason is None or reason in NOT_OURS


def test_g07_no_more_cases_are_left_out_than_these():
    found = Counter(reason for case in CASES if case["id"] not in DECIDED and (reason := left_out(case)))
    assert found == {
        "blocks": 5,
        "credits": 7,
        "days": 4,
        "fixed": 3,
        "markup": 4,
        "meter": 4,
        "meters": 5,
        "share": 11,
        "true-up": 17,
        "within a period": 3,
    }
    assert len(CASES) - len(DECIDED) - sum(found.values()) == 41
