"""Re-approval: what was approved covers less and never more, in any respect."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.approvals import reapproval
from cpq.domain.approvals.reapproval import Earlier, is_kept, what_is_more
from cpq.domain.policy.evaluation import FactRead, LinesPast, Safe
from cpq.domain.policy.policy_set import Roles
from cpq.domain.pricing.request import Segment
from cpq.domain.quotes.lifecycle import QuoteStatus, VersionStatus
from cpq.domain.quotes.quote import Quote, QuoteLine, QuoteVersion

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=4)
ROLES = Roles(("manager", "desk", "vp"), ("finance", "legal"), asks_each=True, keep={"legal": False})

SEATS = QuoteLine(
    1,
    "seats",
    "Seats",
    {},
    10,
    0,
    {"size": "m"},
    None,
    None,
    "monthly",
    "standard",
    1200,
    1200,
    1080,
    5,
    "monthly",
    None,
    None,
    (),
)
SETUP = QuoteLine(
    2, "setup", "Set-up", {}, 2, 0, {}, None, None, "one_time", "standard", 400, 400, 400, None, None, None, None, ()
)


def offer(*lines: QuoteLine, account_id: str = "acct", **changes: Any) -> Quote:
    """A version with these lines; its totals are theirs."""
    lines = lines or (SEATS, SETUP)
    known = {
        "number": 1, "status": VersionStatus.APPROVED, "reason": None, "deal_id": None, "currency": "USD",
        "term_months": 12,
        "start_date": date(2027, 1, 1), "end_date": None, "payment_terms": "net_30", "notes": None, "option_set": None,
        "requested_discount": 0, "requested_amount": None, "tax_total": 0, "tax_note": None, "warnings": (),
        "priced_at": NOW, "fingerprint": "f", "hashes": {},
        "valid_until": date(2026, 12, 16), "expires_at": NOW + timedelta(days=30), "lapses_at": None, "created_at": NOW,
        "created_by": "agent:mcp", "edited_by": (), "internal": None,
        "requested_valid_until": None, "agreement": None,
    }  # fmt: skip
    regular, net = sum(line.regular for line in lines), sum(line.net for line in lines)
    totals = {"subtotal": regular, "discount_total": regular - net, "total": net}
    version = QuoteVersion(**{**known, **totals, **changes})
    return Quote(
        id="Q-1", number="2026-000001", account_id=account_id, account_name="Acme", time_zone="UTC",
        currency=version.currency, current_version=1, edit=1, status=QuoteStatus.APPROVED, total=net,
        valid_until=version.valid_until, expires_at=version.expires_at, created_at=NOW, created_by="agent:mcp",
        owner=None, version=version, lines=lines,
    )  # fmt: skip


OFFER = offer()
GROUNDS = {"cap": (FactRead("discount", Decimal(10), Safe.LOWER), FactRead("segment", "smb", Safe.SAME))}
EARLIER = Earlier("APR-1", 1, ("human:dora", "human:dana"), NOW, "human:dana", NOW, "hash", LATER, GROUNDS, OFFER)


def stands(
    role: str = "manager", roles: Roles = ROLES, earlier: Earlier = EARLIER, offer=OFFER, grounds=GROUNDS, **changes
) -> tuple[bool, str]:
    given_ = {"policy_hash": "hash", "now": NOW, "barred": {"agent:mcp"}, **changes}
    return is_kept(role, roles, earlier, offer, grounds, **given_)


def of(discount: str, segment: str = "smb") -> reapproval.Grounds:
    return {"cap": (FactRead("discount", Decimal(discount), Safe.LOWER), FactRead("segment", segment, Safe.SAME))}


@pytest.mark.parametrize(
    ("asked", "is_kept", "reason"),
    [
        ({}, True, "Kept from version 1: the customer gets no more than manager approved."),
        ({"grounds": of("9.5")}, True, "Kept from version 1: the customer gets no more than manager approved."),
        ({"grounds": {}}, True, "Kept from version 1: the customer gets no more than manager approved."),
        ({"grounds": of("10.01")}, False, "Asked again: discount went from 10 to 10.01."),
        ({"grounds": of("9", "enterprise")}, False, "Asked again: segment went from smb to enterprise."),
        ({"grounds": {"other": ()}}, False, "Asked again: other did not apply to version 1."),
        ({"role": "legal"}, False, "Asked again: legal looks at every version."),
        ({"roles": replace(ROLES, keeps_approvals=False)}, False, "Asked again: the policies keep no approvals."),
        ({"offer": offer(SEATS._replace(quantity=11), SETUP)}, False,
         ("Asked again: compared with version 1, the quantity of line 1 went from 10 to 11;"
         " line 1 costs less for each unit.")),
        ({"policy_hash": "new"}, False, "Asked again: the policies have changed since version 1."),
        ({"now": LATER}, False, "Asked again: version 1, which was approved, is no longer valid."),
        ({"barred": {"human:dana"}}, False,
         "Asked again: human:dana, who approved before, had a hand in this version."),
        ({"barred": {"human:dora"}}, False,
         "Asked again: human:dora, who approved before, had a hand in this version."),
    ],
)  # fmt: skip
def test_an_approval_is_kept_or_asked_for_again_with_a_reason(asked, is_kept: bool, reason: str):
    assert stands(**asked) == (is_kept, reason)


@given(st.decimals(0, 100, places=6), st.decimals(0, 100, places=6))
def test_what_was_approved_covers_less_and_never_more(before: Decimal, after: Decimal):
    earlier = replace(EARLIER, grounds=of(str(before)))
    assert stands(earlier=earlier, grounds=of(str(after)))[0] is (after <= before)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (FactRead("margin", Decimal("5.26"), Safe.HIGHER, True), FactRead("margin", Decimal("2.7"), Safe.HIGHER, True),
         "cost or margin got worse"),
        (FactRead("line.cost", (("1", Decimal(7)),), Safe.LOWER, True),
         FactRead("line.cost", (("1", Decimal(8)),), Safe.LOWER, True), "cost or margin got worse"),
        (FactRead("x by line", LinesPast((("1", Decimal(7)),)), Safe.LOWER, True),
         FactRead("x by line", LinesPast((("1", Decimal(8)), ("3", None))), Safe.LOWER, True),
         "cost or margin got worse"),
        (FactRead("net_value", None, Safe.LOWER), FactRead("net_value", None, Safe.LOWER),
         "net_value is unknown"),
    ],
)  # fmt: skip
def test_the_reason_names_what_got_worse_and_never_a_cost_or_a_margin(before: FactRead, after: FactRead, told: str):
    earlier = replace(EARLIER, grounds={"cap": (before,)})
    assert stands(earlier=earlier, grounds={"cap": (after,)}) == (False, f"Asked again: {told}.")


@pytest.mark.parametrize(
    ("after", "more"),
    [
        (offer(), []),
        (offer(SEATS._replace(quantity=9, regular=1080, net=972), SETUP), []),
        (offer(SEATS._replace(list_amount=600, regular=600, net=540), SETUP, term_months=6), []),
        (offer(SEATS._replace(net=1200), SETUP), []),
        (offer(expires_at=NOW), []),
        (offer(SEATS), ["line 2 was removed"]),
        (offer(SEATS, SETUP, SETUP._replace(number=3)), ["line 3 was added"]),
        (offer(SEATS._replace(quantity=20, regular=2400, net=2400), SETUP),
         ["the quantity of line 1 went from 10 to 20"]),
        (offer(SEATS._replace(net=1079), SETUP),
         ["the discount went from 0.00012 to 0.000121 USD", "line 1 costs less for each unit"]),
        (offer(SEATS, SETUP, term_months=120), ["term_months went from 12 to 120", "line 1 costs less for each unit"]),
        (offer(SEATS, SETUP, term_months=None), ["term_months went from 12 to None"]),
        (offer(notes="Net 180, and 40 % back."), ["notes changed"]),
        (offer(SEATS._replace(notes="Free support."), SETUP), ["notes changed on line 1"]),
        (offer(SEATS._replace(attributes={"size": "l"}), SETUP), ["attributes changed on line 1"]),
        (offer(payment_terms="net_90"), ["payment_terms went from net_30 to net_90"]),
        (offer(valid_until=date(2026, 12, 17), expires_at=NOW + timedelta(days=31)),
         ["valid_until went from 2026-12-16 to 2026-12-17"]),
        (offer(account_id="other"), ["account_id changed"]),
        (offer(currency="EUR"), ["currency changed"]),
        (offer(start_date=date(2027, 2, 1)), ["start_date went from 2027-01-01 to 2027-02-01"]),
        (offer(SEATS._replace(ramp=(Segment(6, 1), Segment(6, 10))), SETUP), ["ramp changed on line 1"]),
    ],
)  # fmt: skip
def test_every_respect_in_which_a_customer_gets_more_is_named(after: Quote, more: list[str]):
    assert what_is_more(OFFER, after) == more


@pytest.mark.parametrize(
    ("period", "model"),
    [("monthly", "monthly_evergreen"), ("yearly", "yearly_evergreen:prepaid"), ("mixed", "monthly"), ("monthly", None)],
)
def test_a_shorter_term_makes_no_line_cheaper_that_is_not_charged_by_the_term(period: str, model: str | None):
    line = SEATS._replace(billing_period=period, selling_model=model)
    tenth = line._replace(list_amount=100, regular=100, net=90)
    assert what_is_more(offer(line), offer(tenth, term_months=1)) == ["line 1 costs less for each unit"]
    assert what_is_more(offer(line), offer(line, term_months=1)) == []


def test_a_bundle_of_parts_without_an_end_is_not_measured_by_the_term():
    """It is stored as sold by the month, but its list price does not follow the term."""
    cheap = SEATS._replace(regular=100, net=90)
    assert what_is_more(offer(SEATS), offer(cheap, term_months=1)) == ["line 1 costs less for each unit"]


words = st.sampled_from(["a", "b"])
amounts = st.integers(0, 40)
TERM = ("monthly", "monthly")
lines = st.builds(
    lambda number, product, quantity, sold, notes, net, off: QuoteLine(
        number, product, product, {}, quantity, 0, {}, notes, None, sold[0], "standard", 0, net + off, net, None,
        sold[1], None, None, (),
    ),
    st.integers(1, 3), words, st.integers(1, 4),
    st.sampled_from([
        TERM, ("one_time", "one_time"), ("monthly", "monthly_evergreen"), ("mixed", "monthly"), ("mixed", "mixed"),
    ]),
    st.none() | words, amounts, st.integers(0, 3),
)  # fmt: skip
offers = st.builds(
    lambda lines, days, **more: offer(*lines, expires_at=NOW + timedelta(days=days), **more),
    st.lists(lines, min_size=1, max_size=3, unique_by=lambda line: line.number),
    st.integers(1, 2),
    term_months=st.none() | st.integers(1, 3),
    notes=st.none() | words,
    payment_terms=words,
)


@st.composite
def pairs(draw: Any) -> tuple[Quote, Quote]:
    """Two versions that mostly differ in a few fields, so that both answers are common."""
    before = draw(offers)
    others = draw(offers)
    changed = draw(st.sets(st.sampled_from(["term_months", "notes", "payment_terms", "expires_at"]), max_size=2))
    lines = [draw(st.sampled_from([line, *_near(line)])) for line in before.lines]
    if draw(st.integers(0, 5)) == 0:
        lines = list(others.lines)
    terms = {
        name: getattr((others if name in changed else before).version, name)
        for name in ("term_months", "notes", "payment_terms", "expires_at")
    }
    old_months, new_months = before.version.term_months, terms["term_months"]
    return replace(before, lines=listed(before.lines, old_months)), offer(*listed(lines, new_months), **terms)


def listed(lines: Iterable[QuoteLine], months: int | None) -> tuple[QuoteLine, ...]:
    """The lines at a list price of 50 for each unit and period that is charged."""
    return tuple(line._replace(list_amount=50 * int(line.quantity) * charged(line, months)) for line in lines)


def charged(line: QuoteLine, months: int | None) -> int:
    """The months that a line is charged for."""
    return (months or 1) if (line.billing_period, line.selling_model) == TERM else 1


def _near(line: QuoteLine) -> Iterator[QuoteLine]:
    yield line._replace(net=line.net + 1, regular=line.regular + 1)
    yield line._replace(net=max(0, line.net - 1))
    yield line._replace(quantity=max(1, line.quantity - 1))
    yield line._replace(quantity=line.quantity + 1, net=line.net * 2, regular=line.regular * 2)
    yield line._replace(notes="c")


@given(pairs())
def test_a_version_gives_more_exactly_when_a_count_of_every_unit_and_month_says_so(both: tuple[Quote, Quote]):
    before, after = both
    assert bool(what_is_more(before, after)) is gets_more(before, after)


def gets_more(before: Quote, after: Quote) -> bool:
    """By brute force: every unit in every month with its price, and everything that is written on the offer."""
    old, new = goods(before), goods(after)
    is_more = not new.keys() <= old.keys() or any(new[one] < old[one] for one in new.keys() & old.keys())
    lost = {line.number for line in before.lines} - {line.number for line in after.lines}
    months = [quote.version.term_months for quote in both_of(before, after)]
    is_longer = months[0] != months[1] and (None in months or months[1] > months[0])  # type: ignore[operator] # Not None.
    written = [(quote.version.notes, quote.version.payment_terms) for quote in both_of(before, after)]
    off = [sum(line.regular - line.net for line in quote.lines) for quote in both_of(before, after)]
    is_later = after.version.expires_at > before.version.expires_at
    return is_more or bool(lost) or is_longer or written[0] != written[1] or off[1] > off[0] or is_later


def both_of(before: Quote, after: Quote) -> tuple[Quote, Quote]:
    return before, after


def goods(quote: Quote) -> dict[tuple[object, ...], Fraction]:
    found: dict[tuple[object, ...], Fraction] = {}
    for line in quote.lines:
        months = charged(line, quote.version.term_months)
        what = (line.number, line.product_id, line.notes, line.billing_period, line.selling_model)
        for unit in range(int(line.quantity)):
            for month in range(months):
                found[(*what, unit, month)] = Fraction(line.net, int(line.quantity) * months)
    return found


MARGIN = {"floor": (FactRead("margin", Decimal(7), Safe.HIGHER, True),)}
MADE = SETUP._replace(cost=300)


@pytest.mark.parametrize(
    ("after", "is_kept"),
    [
        (offer(SEATS, MADE), True),
        (offer(SEATS._replace(net=1081), MADE), True),
        (offer(SEATS._replace(cost=4), MADE), True),
        (offer(SEATS._replace(cost=6), MADE), False),
        (offer(SEATS._replace(cost=None), MADE), False),
        (offer(SEATS._replace(quantity=5, regular=600, net=540, cost=2), MADE), False),
        (offer(SEATS._replace(quantity=5, regular=600, net=540, cost=2),
               MADE._replace(quantity=1, regular=200, net=200, cost=150)), True),
        (offer(SEATS._replace(list_amount=600, regular=600, net=540, cost=2), MADE, term_months=6), False),
    ],
)  # fmt: skip
def test_a_hidden_fact_that_looks_the_same_on_the_grid_is_asked_about_if_it_may_be_worse(after: Quote, is_kept: bool):
    earlier = replace(EARLIER, grounds=MARGIN, offer=offer(SEATS, MADE))
    answer = stands(earlier=earlier, offer=after, grounds=MARGIN)
    assert answer[0] is is_kept
    assert is_kept or answer[1] == "Asked again: cost or margin may be worse."
    assert stands(earlier=replace(EARLIER, offer=offer(SEATS, MADE)), offer=after)[0] is True


@given(pairs(), st.lists(amounts, min_size=6, max_size=6))
def test_a_kept_approval_of_a_margin_never_covers_a_lower_one(both: tuple[Quote, Quote], costs: list[int]):
    """Whatever the grid says: it says the same of both here."""
    before, after = (
        replace(quote, lines=tuple(line._replace(cost=costs[line.number + place]) for line in quote.lines))
        for quote, place in zip(both, (-1, 2), strict=True)
    )
    if stands(earlier=replace(EARLIER, grounds=MARGIN, offer=before), offer=after, grounds=MARGIN)[0]:
        (net, cost), (later_net, later_cost) = (
            (sum(line.net for line in quote.lines), sum(line.cost or 0 for line in quote.lines))
            for quote in (before, after)
        )
        assert later_cost * net <= cost * later_net
