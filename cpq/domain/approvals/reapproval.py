"""PURE. Re-approval: whether a role's approval of an earlier version is kept for this one.

It is kept only where the customer gets no more in any respect than a person approved, and no fact behind it got worse.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from cpq.base.money import from_micro, plain, readable
from cpq.base.text import canonical_json
from cpq.domain.billing_periods import is_recurring
from cpq.domain.policy.evaluation import (
    Each,
    FactRead,
    FactValue,
    LinesPast,
    Safe,
    Violation,
    is_each,
    is_no_worse,
    worse_lines,
)
from cpq.domain.policy.policy_set import Roles
from cpq.domain.pricing import rate_cards
from cpq.domain.pricing.selling_models import is_evergreen
from cpq.domain.quotes.quote import Quote, QuoteLine, QuoteVersion
from cpq.domain.quotes.special_terms import NOTHING_SPECIAL, SpecialTerms

Grounds = Mapping[str, tuple[FactRead, ...]]
"""The facts that each policy read when it required a role, by the policy's id."""


@dataclass(frozen=True)
class Earlier:
    """A role's approval of an earlier version, as people gave it."""

    id: str
    version: int
    voters: tuple[str, ...]
    """All who gave it, in order."""
    asked_at: datetime
    """When they were asked."""
    decided_by: str
    decided_at: datetime
    policy_hash: str
    holds_until: datetime
    grounds: Grounds
    offer: Quote
    """The version that they saw, with its lines."""


class Answer(NamedTuple):
    """Whether the earlier approval is kept, and the reason as a sentence."""

    is_kept: bool
    reason: str


def grounds_of(violations: Iterable[Violation]) -> Grounds:
    """The facts behind these violations."""
    return {found.policy_id: found.facts_read for found in violations}


def is_kept(
    role: str,
    roles: Roles,
    earlier: Earlier,
    offer: Quote,
    grounds: Grounds,
    *,
    policy_hash: str,
    now: datetime,
    barred: Collection[str],
    gone: Collection[str] = (),
) -> Answer:
    """Whether `earlier` covers the version `offer`, which requires the role on these grounds.

    `barred` are people who may not decide on this version, `gone` those who may no longer decide anything.
    """
    if not roles.keeps_approvals:
        return Answer(False, "Asked again: the policies keep no approvals.")
    if not roles.keep.get(role, True):
        return Answer(False, f"Asked again: {role} looks at every version.")
    if earlier.policy_hash != policy_hash:
        return Answer(False, f"Asked again: the policies have changed since version {earlier.version}.")
    if earlier.holds_until <= now:
        return Answer(False, f"Asked again: version {earlier.version}, which was approved, is no longer valid.")
    if given := next((voter for voter in earlier.voters if voter in barred), None):
        return Answer(False, f"Asked again: {given}, who approved before, had a hand in this version.")
    if given := next((voter for voter in earlier.voters if voter in gone), None):
        return Answer(False, f"Asked again: {given}, who approved before, may no longer decide.")
    if worse := _what_is_worse(earlier, offer, grounds):
        return Answer(False, f"Asked again: {worse}.")
    if more := what_is_more(earlier.offer, offer):
        rest = f"; and {len(more) - DIFFERENCES_MAX} more" if len(more) > DIFFERENCES_MAX else ""
        shown = "; ".join(more[:DIFFERENCES_MAX])
        return Answer(False, f"Asked again: compared with version {earlier.version}, {shown}{rest}.")
    return Answer(True, f"Kept from version {earlier.version}: the customer gets no more than {role} approved.")


def _what_is_worse(earlier: Earlier, offer: Quote, grounds: Grounds) -> str | None:
    """The first fact or policy that is worse than when people approved, in words."""
    for policy_id, reads in grounds.items():
        is_hidden = any(read.is_secret for read in reads)
        if policy_id not in earlier.grounds:
            name = "a policy that is not shown" if is_hidden else policy_id
            return f"{name} did not apply to version {earlier.version}"
        before = {read.name: read for read in earlier.grounds[policy_id]}
        for read in reads:
            if read.name not in before or not is_no_worse(before[read.name], read):
                return _moved(before.get(read.name), read)
        if is_hidden and not _is_as_profitable(earlier.offer, offer):
            return f"{_HIDDEN} may be worse"
    return None


def what_is_more(before: Quote, after: Quote) -> list[str]:
    """Every respect in which the customer gets more by `after`, or something else; empty if in none.

    A field that this module does not know must be the same, so that a new one cannot slip past approvals.
    """
    old, new = before.version, after.version
    more = ["account_id changed"] if before.account_id != after.account_id else []
    more += [_changed(name, getattr(old, name), getattr(new, name)) for name in _fixed(old, new)]
    if (old.term_months is None) != (new.term_months is None) or (new.term_months or 0) > (old.term_months or 0):
        more.append(_changed("term_months", old.term_months, new.term_months))
    if new.expires_at > old.expires_at:
        more.append(_changed("valid_until", old.valid_until, new.valid_until))
    if new.discount_total > old.discount_total:
        money = (readable(from_micro(one.discount_total), new.currency) for one in (old, new))
        more.append(f"the discount went from {' to '.join(money)} {new.currency}")
    earlier, later = ({line.number: line for line in quote.lines} for quote in (before, after))
    more += [f"line {number} was removed" for number in earlier if number not in later]
    more += [f"line {number} was added" for number in later if number not in earlier]
    for number, line in later.items():
        if number in earlier:
            more += _more_of_line(earlier[number], line, months=(old.term_months or 1, new.term_months or 1))
    return more


def _more_of_line(old: QuoteLine, new: QuoteLine, *, months: tuple[int, int]) -> Iterator[str]:
    for name in QuoteLine._fields:
        was, is_ = getattr(old, name), getattr(new, name)
        if name == "special" and old.usage and new.usage:
            was, is_ = _without_commitment(was), _without_commitment(is_)
        if name not in _MEASURED_OF_LINE and canonical_json(was) != canonical_json(is_):
            yield f"{_changed(name, was, is_)} on line {new.number}"
    before, after = months if _follows_term(old, new, months) else (1, 1)
    if old.ramp and (new.quantity != old.quantity or months[0] != months[1]):
        yield f"the ramp of line {new.number} changed"
    yield from (f"{more} on line {new.number}" for more in rate_cards.what_is_more(old.usage, new.usage))
    if new.quantity > old.quantity:
        yield f"the quantity of line {new.number} went from {old.quantity:,} to {new.quantity:,}"
    # Prices for one unit, and month where they follow the term, without a division that could hide a difference.
    if new.net * old.quantity * before < old.net * new.quantity * after:
        yield f"line {new.number} costs less for each unit"


def _without_commitment(special: SpecialTerms | None) -> SpecialTerms | None:
    """The rate card has it, with what else it gives."""
    rest = (special or NOTHING_SPECIAL)._replace(commitment=None)
    return None if rest == NOTHING_SPECIAL else rest


def _is_as_profitable(before: Quote, after: Quote) -> bool:
    """Whether no margin can have fallen where no line is cheaper: no unit costs us more, and all quantities changed by
    the same factor.

    Hidden facts are compared as they were judged, on a grid: exact ones would reveal by a kept approval what the grid
    hides. But between two of its points, a margin could fall unseen by another mix of lines or a higher cost.
    """
    months = (before.version.term_months or 1, after.version.term_months or 1)
    earlier, scales = {line.number: line for line in before.lines}, set()
    for line in after.lines:
        old = earlier.get(line.number)
        if old is None or (old.cost is None) != (line.cost is None):
            return False
        factors = months if _follows_term(old, line, months) else (1, 1)
        was, is_ = old.quantity * factors[0], line.quantity * factors[1]
        scales.add(Fraction(is_) / Fraction(was))
        if old.cost is not None and line.cost is not None and line.cost * was > old.cost * is_:
            return False
    return len(scales) == 1


def _follows_term(old: QuoteLine, new: QuoteLine, months: tuple[int, int]) -> bool:
    """Whether the line is charged for every month of the term, not once or for its first period.

    A bundle does not store how its parts are sold, so with a shorter term its list price must be lower, too.
    """
    if not is_recurring(new.billing_period) or new.selling_model is None or is_evergreen(new.selling_model):
        return False
    before, after = months
    return after >= before or new.list_amount * old.quantity * before == old.list_amount * new.quantity * after


def _fixed(old: QuoteVersion, new: QuoteVersion) -> Iterator[str]:
    """The fields of a version that must be the same and are not."""
    for field in fields(QuoteVersion):
        if field.name not in _MEASURED_OF_VERSION and getattr(old, field.name) != getattr(new, field.name):
            if field.name == "end_date" and old.term_months is not None and new.term_months is not None:
                continue  # It follows from the start and the months.
            yield field.name


def _changed(name: str, old: object, new: object) -> str:
    """A text may be long, so it is named but not repeated."""
    if any(isinstance(value, str | Mapping | Sequence) for value in (old, new)) and name != "payment_terms":
        return f"{name} changed"
    return f"{name} went from {old} to {new}"


DIFFERENCES_MAX = 5

_HIDDEN = "cost or margin"

_MEASURED_OF_LINE = frozenset(
    {"quantity", "discount_pct", "list_amount", "regular", "net", "cost", "internal", "usage"}
)
"""Fields of a line that are compared by what they give, or that are not the customer's: the cost, internal notes."""

_RECORD = (
    "number",
    "status",
    "reason",
    "warnings",
    "priced_at",
    "lapses_at",
    "created_at",
    "created_by",
    "edited_by",
    "internal",
)
_PRICE = (
    "requested_discount",
    "requested_amount",
    "subtotal",
    "discount_total",
    "tax_total",
    "total",
    "fingerprint",
    "hashes",
)
_MEASURED_OF_VERSION = frozenset(
    {*_RECORD, *_PRICE, "term_months", "valid_until", "requested_valid_until", "expires_at"}
)
"""Fields of a version that are compared by what they give, or that are its record and not part of the offer."""


def dump(grounds: Grounds) -> list[dict[str, Any]]:
    """The grounds as stored; values keep their types."""
    return [
        {
            "policy_id": id_,
            "reads": [[read.name, _dump_value(read.value), read.safe.value, read.is_secret] for read in reads],
        }
        for id_, reads in grounds.items()
    ]


def load(stored: Sequence[Mapping[str, Any]]) -> Grounds:
    return {
        part["policy_id"]: tuple(
            FactRead(name, _load_value(value), Safe(safe), *more) for name, value, safe, *more in part["reads"]
        )
        for part in stored
    }


def _dump_value(value: FactValue) -> Any:
    """Numbers are written as text, so that 5 and 5.5 are read as the same type."""
    if isinstance(value, LinesPast):
        return {"past": _dump_each(value.values)}
    if is_each(value):
        return {"each": _dump_each(value)}
    if isinstance(value, frozenset):
        return {"set": sorted(value)}
    return {"number": str(value)} if isinstance(value, Decimal) else value


def _dump_each(values: Each) -> list[Any]:
    return [[id_, _dump_value(part)] for id_, part in values]


def _load_value(stored: Any) -> Any:
    if not isinstance(stored, Mapping):
        return stored
    if "past" in stored:
        return LinesPast(_load_value({"each": stored["past"]}))
    if "each" in stored:
        return tuple((id_, _load_value(part)) for id_, part in stored["each"])
    return frozenset(stored["set"]) if "set" in stored else Decimal(stored["number"])


def _moved(before: FactRead | None, after: FactRead) -> str:
    """How a fact changed. The sentence is stored and shown to all, so it shows no number of a secret fact."""
    if after.is_secret:
        return f"{_HIDDEN} got worse"
    if before is not None and isinstance(before.value, LinesPast) and isinstance(after.value, LinesPast):
        return f"{after.name} got worse at {', '.join(worse_lines(before, after))}"
    if after.value is None:
        return f"{after.name} is unknown"
    if before is None or not all(_is_readable(read.value) for read in (before, after)):
        return f"{after.name} changed"
    return f"{after.name} went from {_readable(before.value)} to {_readable(after.value)}"


def _is_readable(value: FactValue) -> bool:
    return value is None or isinstance(value, bool | Decimal | str)


def _readable(value: FactValue) -> str:
    if value is None:
        return "unknown"
    return f"{plain(value):f}" if isinstance(value, Decimal) else str(value)
