"""The conversions of price books: the rate of the policies for a base currency, or the refusal to convert."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from fractions import Fraction

from cpq.base.errors import Code, CpqError
from cpq.domain.policy.policy_set import Terms
from cpq.domain.pricing.derived_prices import Conversion, completed, lacking
from cpq.services.catalog.repository import AccountFacts, ConvertingBook, ProductFacts


def conversion(terms: Terms, book: ConvertingBook, currency: str, today: date) -> Conversion:
    """How a book converts its prices today; CURRENCY_MISMATCH with the way out where the rates do not allow it."""
    missing = [code for code in (book.base_currency, currency) if code not in terms.rates]
    if missing:
        raise _no_rate(book, currency, f"terms.yaml has no rate for {missing[0]}", "Add the rate to terms.yaml")
    if terms.rates_as_of is None:
        raise _no_rate(book, currency, "the rates in terms.yaml have no day", "Give rates_as_of in terms.yaml")
    if terms.rates_valid_until is not None and terms.rates_valid_until < today.isoformat():
        why = f"the rates of {terms.rates_as_of} in terms.yaml could be used until {terms.rates_valid_until}"
        raise _no_rate(book, currency, why, "Renew the rates, rates_as_of and rates_valid_until in terms.yaml")
    rate = Fraction(terms.rates[book.base_currency]) / Fraction(terms.rates[currency])
    return Conversion(book.base_currency, currency, rate, terms.rates_as_of, book.rounding)


def with_derived_prices(
    terms: Terms, buyer: AccountFacts, products: Mapping[str, ProductFacts], currency: str, today: date
) -> tuple[dict[str, ProductFacts], dict[str, CpqError]]:
    """The products with the prices that the account's books derive, and by product why one cannot be derived."""
    books = {book.id: book for book in buyer.converting}
    conversions: dict[str, Conversion] = {}
    found, refused = dict(products), dict[str, CpqError]()
    as_of = today.isoformat()
    for id_, product in products.items():
        if not product.base_rows:
            continue
        try:
            for row in lacking(product.for_pricing, product.base_rows, as_of):
                assert row.price_book_id is not None
                if row.price_book_id not in conversions:
                    book = books[row.price_book_id]
                    conversions[row.price_book_id] = conversion(terms, book, currency, today)
        except CpqError as error:
            refused[id_] = error
            continue
        priced = completed(product.for_pricing, product.base_rows, conversions, as_of)
        found[id_] = product._replace(for_pricing=priced)
    return found, refused


def _no_rate(book: ConvertingBook, currency: str, why: str, way_out: str) -> CpqError:
    return CpqError(
        Code.CURRENCY_MISMATCH,
        f"The price book {book.id} converts its prices from {book.base_currency}, but {why}.",
        currency=currency,
        allowed=[book.base_currency],
        hint=f"{way_out}, or quote in {book.base_currency}.",
    )
