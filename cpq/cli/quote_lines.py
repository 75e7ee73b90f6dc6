"""Lines of a quote as they are typed: `PRODUCT:QUANTITY[:DISCOUNT][@MODEL]`, and terms as options."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click
from pydantic import TypeAdapter, ValidationError

from cpq.base.errors import bad_field
from cpq.base.money import to_micro
from cpq.domain.field_types import Currency
from cpq.domain.quotes.file_rows import Money, Percent

_COMMITMENT = re.compile(r"(?P<what>.+):(?P<number>[0-9.,]+)(?: *(?P<currency>[A-Za-z]{3}))?(?:/(?P<per>[a-z]+))?")
F = TypeVar("F", bound=Callable[..., object])

_LINE = re.compile(r"(?P<what>.+?):(?P<quantity>[^:@]+)(?::(?P<discount>[^:@]+))?(?:@(?P<model>.+))?")


class TypedLine(click.ParamType[dict[str, Any]]):
    """A line: what is sold or the number of a line, its quantity, its discount in percent, and its selling model."""

    def __init__(self, what: str) -> None:
        self.name = f"{what}:QUANTITY[:DISCOUNT][@MODEL]"
        self._what = what

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        found = _LINE.fullmatch(str(value).strip())
        if found is None:
            example = "3:20:5" if self._what == "LINE" else "prod_pro_v2:150:5 or prod_pro_v2:150@yearly"
            self.fail(f"{value!r} is not {self.name}, for example {example}", param, ctx)
        line: dict[str, Any] = {"what": found["what"].strip(), "quantity": found["quantity"].strip()}
        if found["discount"]:
            line["discount_pct"] = found["discount"].strip().removesuffix("%")
        if found["model"]:
            line["selling_model"] = found["model"].strip()
        return line


class TypedItem(click.ParamType[dict[str, Any]]):
    """An item of no catalogue: its name, its quantity and the price of one."""

    name = "NAME:QUANTITY:PRICE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        what, _, price = str(value).strip().rpartition(":")
        name, _, quantity = what.rpartition(":")
        if not (name.strip() and quantity.strip() and price.strip()):
            self.fail(f"{value!r} is not {self.name}, for example Freight:1:480", param, ctx)
        return {"custom": {"name": name.strip(), "unit_price": price.strip()}, "quantity": quantity.strip()}


class TypedCommitment(click.ParamType[tuple[str, dict[str, str]]]):
    """What a line commits to: `prod_use_api:260000`, with a currency as an amount, and with `/year` for a year."""

    name = "PRODUCT:QUANTITY|AMOUNT CURRENCY[/PERIOD]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, dict[str, str]]:
        found = _COMMITMENT.fullmatch(str(value).strip())
        if found is None:
            example = "prod_use_api:260000 or 'prod_use_api:400 USD/month'"
            self.fail(f"{value!r} is not {self.name}, for example {example}", param, ctx)
        committed = {"amount" if found["currency"] else "quantity": found["number"]}
        return found["what"], committed | ({"per": found["per"]} if found["per"] else {})


def commit(lines: list[dict[str, Any]], committed: Iterable[tuple[str, dict[str, str]]]) -> None:
    """Give the commitments to the lines of their products."""
    for product_id, commitment in committed:
        inside = [line for line in lines if line.get("product_id") == product_id]
        if not inside:
            raise bad_field("--commit", f"No --line sells {product_id!r}.", hint=f"Add --line {product_id}:1.")
        for line in inside:
            line["commitment"] = commitment


class PercentType(click.ParamType[int]):
    """A percentage from 0 to 100, in millionths of a percent."""

    name = "PERCENT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return to_micro(TypeAdapter(Percent).validate_python(str(value).removesuffix("%")))
        except ValidationError:
            self.fail(f"{value!r} is not a number from 0 to 100 with at most 6 decimals.", param, ctx)


class MoneyType(click.ParamType[int]):
    """An amount of money, in millionths."""

    name = "AMOUNT"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return to_micro(TypeAdapter(Money).validate_python(str(value)))
        except ValidationError:
            self.fail(f"{value!r} is not an amount such as 499.50.", param, ctx)


TERMS = {
    "currency": ("--currency", "ISO 4217, for example EUR."),
    "term_months": ("--term-months", "How many months recurring prices run."),
    "start_date": ("--start", "First day of the term, for example 2026-03-01."),
    "end_date": ("--end", "Last day of the term, instead of --term-months."),
    "valid_until": ("--valid-until", "Last day on which it can be accepted; else as the policies say."),
    "payment_terms": ("--payment-terms", "For example net_30."),
    "deal_id": ("--deal", "Your reference to the opportunity."),
    "notes": ("--notes", "Shown to the customer on the quote."),
}


def term_options(function: F) -> F:
    """Adds an option for each term of a quote."""
    for name, (option, help_) in reversed(TERMS.items()):
        function = click.option(option, name, help=help_)(function)
    return function


def product_line(typed: dict[str, Any]) -> dict[str, Any]:
    """A typed line with the names of a row in a file."""
    return {"product_id" if name == "what" else name: value for name, value in typed.items()}


def currency_code(given: str) -> str:
    """The code of a currency as it is stored; a refusal that names the option for anything else."""
    try:
        return TypeAdapter(Currency).validate_python(given)
    except ValidationError:
        raise bad_field("--currency", f"{given!r} is not an ISO 4217 currency code") from None


def given(terms: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in terms.items() if value is not None}
