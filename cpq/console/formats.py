"""Formats numbers, times and names for people."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from markupsafe import Markup, escape

from cpq.app.access import Caller
from cpq.base.money import readable
from cpq.domain.policy.facts import Unit

_ABBREVIATED = {"vp_sales": "VP Sales", "smb": "SMB", "emea": "EMEA", "apac": "APAC", "saas": "SaaS"}
_CODE = re.compile("`([^`]+)`")


def money(amount: Decimal | int | None, currency: str) -> str:
    return "" if amount is None else readable(amount, currency)


def percent(share: Decimal | int | None) -> str:
    """To a tenth, `12.5 %`; a dash when the value is unknown."""
    if share is None:
        return "–"
    return f"{Decimal(share).quantize(Decimal('0.1'), ROUND_HALF_UP):f}\N{NO-BREAK SPACE}%"


def in_a_sentence(share: Decimal | int) -> str:
    """As `percent`, without `.0`: `10 %`, as the policies' messages write it."""
    return percent(share).replace(".0", "")


def measured(value: Decimal | int | None, unit: Unit, currency: str) -> str:
    """A limit or an actual value with its unit: `5 %`, `100,000 USD`."""
    if value is None:
        return "–"
    signs = {Unit.PERCENT: "%", Unit.AMOUNT: currency, Unit.VALUE: currency, Unit.MONTHS: "months", Unit.DAYS: "days"}
    return f"{number(value)}\N{NO-BREAK SPACE}{signs.get(unit, '')}".rstrip("\N{NO-BREAK SPACE}")


def number(value: Decimal | int) -> str:
    """All digits, without trailing zeros: `12,000`, `0.5`."""
    exact = Decimal(value)
    text = f"{exact:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def words(name: str | None) -> str:
    """A name with spaces and a capital: `Pending approval`."""
    if not name:
        return ""
    return _ABBREVIATED.get(name) or name.replace("_", " ").capitalize()


def who(caller: str | None) -> str:
    """`dana` for `human:dana`; a program is marked as an agent."""
    found = Caller.parse(caller or "")
    return found.name if found.is_person else f"{found.name} (agent)" if found.name else found.kind


def span(duration: timedelta) -> str:
    """`12 min`, `3 h 05 min`, `4 days`."""
    minutes = max(0, int(duration.total_seconds()) // 60)
    if minutes < 1:
        return "under a minute"
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest:02d} min" if rest else f"{hours} h"
    return f"{hours // 24} days"


def seconds(duration: timedelta) -> str:
    """`8 seconds`; at least one, while it is not over."""
    count = max(1, round(duration.total_seconds()))
    return "1 second" if count == 1 else f"{count} seconds"


def span_of_minutes(minutes: int) -> str:
    return span(timedelta(minutes=minutes))


def moment(at: datetime | None, to_the_second: bool = False) -> str:
    return "" if at is None else f"{at:{'%Y-%m-%d %H:%M:%S' if to_the_second else '%Y-%m-%d %H:%M'}} UTC"


def coded(text: str) -> Markup:
    """A message of the product, with the text between backticks set as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 # Escaped before.


def short(fingerprint: str) -> str:
    return fingerprint[:12]
