"""Rows of accounts in an imported file: fields and validation."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from cpq.base.text import clean
from cpq.domain.field_types import Currency, Identifier, Name, Row, TimeZone, Word


class TaxStatus(StrEnum):
    TAXABLE = "taxable"
    EXEMPT = "exempt"
    REVERSE_CHARGE = "reverse_charge"


def _country(code: str) -> str:
    if not _COUNTRY.fullmatch(code):
        raise ValueError("is not two capital letters such as DE or US")
    return code


def _locale(name: str) -> str:
    if not _LOCALE.fullmatch(name):
        raise ValueError("is not a language, or language and country, such as de or en_US")
    return name


_COUNTRY = re.compile(r"[A-Z]{2}")
_LOCALE = re.compile(r"[a-z]{2,3}([_-][A-Za-z]{4})?([_-][A-Z]{2})?")


class AccountRow(Row):
    id: Identifier
    name: Name
    segment: Word
    region: Word
    country: Annotated[str, AfterValidator(_country)]
    tax_zone: Word
    tax_status: TaxStatus = TaxStatus.TAXABLE
    tax_note: Name | None = None
    locale: Annotated[str, AfterValidator(_locale)] = "en_US"
    time_zone: TimeZone = "UTC"
    currency: Currency = "USD"
    price_book: Identifier = "list"
    contact: Name | None = None
    address: Annotated[str, Field(max_length=500), AfterValidator(clean)] | None = None
    tax_id: Word | None = None
    purchase_order: Word | None = None
    active: bool = True

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.tax_status is not TaxStatus.TAXABLE and not self.tax_note:
            raise ValueError("an exempt or reverse-charge account says why in tax_note")
        return self
