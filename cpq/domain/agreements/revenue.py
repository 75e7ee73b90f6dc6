"""PURE. Recurring revenue of several agreements: on a day, and how much of it stays. Currencies are never added."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from typing import NamedTuple

from cpq.domain.agreements.agreement import Agreement


class Retained(NamedTuple):
    """The revenue of a year of those accounts that brought any on the first day: then, and on the second."""

    before: int
    after: int


def revenue_on(agreements: Iterable[Agreement], day: date) -> dict[str, int]:
    """The recurring revenue of a year (ARR) at the prices of a day, by currency; only where there is any."""
    found: dict[str, int] = defaultdict(int)
    for agreement in agreements:
        found[agreement.currency] += agreement.yearly(day)
    return {currency: found[currency] for currency in sorted(found) if found[currency]}


def retained(agreements: Sequence[Agreement], since: date, until: date) -> dict[str, Retained]:
    """By currency. An account that came later does not count, one that left counts with 0."""
    before, after = _of_accounts(agreements, since), _of_accounts(agreements, until)
    found: dict[str, Retained] = {}
    for (currency, account_id), arr in sorted(before.items()):
        if arr:
            known = found.get(currency, Retained(0, 0))
            found[currency] = Retained(known.before + arr, known.after + after[currency, account_id])
    return found


def _of_accounts(agreements: Iterable[Agreement], day: date) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = defaultdict(int)
    for agreement in agreements:
        found[agreement.currency, agreement.account_id] += agreement.yearly(day)
    return found
