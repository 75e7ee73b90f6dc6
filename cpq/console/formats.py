"""Formats numbers, times and names for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from cpq.app.access import Caller
from cpq.base.money import readable
from cpq.base.text import shown
from cpq.domain.policy.facts import Unit
from cpq.domain.pricing.period_prices import in_words

_ABBREVIATED = {"vp_sales": "VP Sales", "smb": "SMB", "emea": "EMEA", "apac": "APAC", "saas": "SaaS"}
_IN_A_SENTENCE = {"deal_desk": "the deal desk", "finance": "finance", "legal": "legal", "vp_sales": "the VP Sales"}
_CODE = re.compile("`([^`]+)`")
_CALLER = re.compile(r"\b(?:human|agent):[a-z0-9][a-z0-9._@-]*[a-z0-9]|\b(?:human|agent):[a-z0-9]")
_SPACED_PERCENT = re.compile(r"([0-9]) %")
_MINUS_SIGN = re.compile(r"(?<![\w.-])-(?=[0-9])")


THIN = "\N{NARROW NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"

ZONE: ContextVar[ZoneInfo] = ContextVar("ZONE", default=ZoneInfo("UTC"))  # noqa: B039 # It never changes.
"""The reader's time zone, while a page is made."""


def money(amount: Decimal | int | None, currency: str) -> str:
    return "" if amount is None else readable(amount, currency).replace("-", MINUS)


def unit_price(line: Mapping[str, Any], currency: str, has_term: bool) -> str:
    """The price of one unit; of a recurring line for one period: `4,900.00 a month × 12 months`."""
    price = line["unit_price_per_period"]
    if price is None:
        return money(line["unit_price"], currency)
    return in_words(money(price, currency), line["billing_period"], line["periods"], has_term=has_term)


def percent(share: Decimal | int | None) -> str:
    """To a tenth, `12.5 %`; a dash when the value is unknown."""
    if share is None:
        return "–"
    rounded = Decimal(share).quantize(Decimal("0.1"), ROUND_HALF_UP)
    return f"{rounded:f}{THIN}%".replace("-", MINUS) if rounded else f"0.0{THIN}%"


def in_a_sentence(share: Decimal | int) -> str:
    """As `percent`, without `.0`: `10 %`, as the policies' messages write it."""
    return percent(share).replace(".0", "")


def measured(value: Decimal | int | None, unit: Unit, currency: str) -> str:
    """A limit or an actual value with its unit: `5 %`, `100,000.00 USD`."""
    if value is None:
        return "–"
    if unit in (Unit.AMOUNT, Unit.VALUE):
        return f"{money(value, currency)}\N{NO-BREAK SPACE}{currency}"
    signs = {Unit.PERCENT: "%", Unit.MONTHS: "months", Unit.DAYS: "days"}
    space = THIN if unit is Unit.PERCENT else "\N{NO-BREAK SPACE}"
    return f"{number(value)}{space}{signs.get(unit, '')}".rstrip(space).replace("-", MINUS)


def number(value: Decimal | int) -> str:
    """All digits, without trailing zeros: `12,000`, `0.5`."""
    exact = Decimal(value)
    text = f"{exact:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def spelled(value: object) -> str:
    """A value as people type it into a form: `true`, `12.5`, `air`."""
    if isinstance(value, bool):
        return str(value).lower()
    return number(value).replace(",", "") if isinstance(value, Decimal | int) else str(value)


def words(name: str | None) -> str:
    """A name with spaces and a capital: `Pending approval`."""
    if not name:
        return ""
    return _ABBREVIATED.get(name) or name.replace("_", " ").capitalize()


def who(caller: str | None) -> str:
    """`dana` for `human:dana`; a program is marked as an agent."""
    found = Caller.parse(caller or "")
    return found.name if found.is_person else f"{found.name} (agent)" if found.name else found.kind


def named(text: str | None) -> str:
    """A sentence of the product with the callers in it by their names: `dana` for `human:dana`."""
    return _CALLER.sub(lambda found: who(found[0]), text or "")


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
    """In the reader's time zone, with its name."""
    shape = "%Y-%m-%d %H:%M:%S %Z" if to_the_second else "%Y-%m-%d %H:%M %Z"
    return "" if at is None else f"{at.astimezone(ZONE.get()):{shape}}"


def day(at: datetime) -> str:
    """The day in the reader's time zone."""
    return f"{at.astimezone(ZONE.get()):%Y-%m-%d}"


def fine(text: str) -> str:
    """A sentence of a policy with the spaces and signs of print: no line break before `%`, a real minus."""
    return _MINUS_SIGN.sub(MINUS, _SPACED_PERCENT.sub(rf"\1{THIN}%", text))


def a_role(role: str) -> str:
    """A role in a sentence, with its article: `a sales manager`, `the deal desk`."""
    name = _IN_A_SENTENCE.get(role)
    if name is None:
        plain = words(role) if role in _ABBREVIATED else words(role).lower()
        name = f"{'an' if plain[:1].lower() in 'aeiou' else 'a'} {plain}"
    return name


def coded(text: str) -> Markup:
    """A message of the product, with the text between backticks set as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(shown(named(text))))))  # noqa: S704 # Escaped before.


def short(fingerprint: str) -> str:
    return fingerprint[:12]
