"""PURE. Exact amounts of money: as decimals, as whole millionths in the database, and as text for people."""

from __future__ import annotations

from decimal import Context, Decimal, InvalidOperation

SIGNIFICANT_DIGITS_MAX = 15
"""A JSON number keeps 15 digits exactly on any client; more digits may be lost."""

AMOUNT_MAX = Decimal(10) ** 12
"""The largest number that a file or an option may hold."""

UNIT_PRICE_DIGITS = 6
"""Decimals of a unit price, and of an amount in the database."""

_EXACT = Context(prec=60)
_MICRO = Decimal(10) ** -UNIT_PRICE_DIGITS
_MICROS = 10**UNIT_PRICE_DIGITS


Amount = Decimal | int
"""Exact; an int where it is whole."""


def amount(micro: int) -> Amount:
    """Whole millionths as a number: 10000000 is 10."""
    whole, rest = divmod(micro, 1_000_000)
    return from_micro(micro) if rest else whole


def minor_digits(currency: str) -> int:
    """Decimals of the currency's minor unit by ISO 4217; ValueError for an unknown code."""
    try:
        return MINOR_DIGITS[currency]
    except KeyError:
        raise ValueError(f"{currency!r} is not an ISO 4217 currency code") from None


def to_micro(amount: Decimal) -> int:
    """The amount as whole millionths, as the database stores it; ValueError when it would lose a digit."""
    try:
        micro = int(_EXACT.quantize(amount, _MICRO).scaleb(UNIT_PRICE_DIGITS, _EXACT))
    except InvalidOperation:
        raise ValueError(f"{amount} is not an amount of money") from None
    if from_micro(micro) != amount:
        raise ValueError(f"{amount} has more than {UNIT_PRICE_DIGITS} decimals")
    return micro


def from_micro(micro: int) -> Decimal:
    """The amount without trailing zeros: 10000000 is 10."""
    whole, rest = divmod(micro, _MICROS)
    if rest == 0:
        return Decimal(whole)
    return _EXACT.normalize(Decimal(micro).scaleb(-UNIT_PRICE_DIGITS, _EXACT))


def plain(number: Decimal) -> Decimal:
    """The same number written without exponent, trailing zeros or a negative zero."""
    number = _EXACT.plus(number.normalize(_EXACT))
    return number.quantize(Decimal(1), context=_EXACT) if int(number.as_tuple().exponent) > 0 else number


def readable(amount: Decimal | int, currency: str) -> str:
    """The amount for people, `1,350.00`: with the digits of the currency, or more where the amount has more."""
    exact = Decimal(amount)
    exponent = exact.normalize(_EXACT).as_tuple().exponent
    digits = max(minor_digits(currency), -exponent if isinstance(exponent, int) else 0)
    return f"{exact:,.{digits}f}"


def significant_digits(number: Decimal) -> int:
    return len(number.normalize(_EXACT).as_tuple().digits)


_CODES_BY_DIGITS = {
    0: ("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"),
    2: (
        "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF "
        "CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD "
        "GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL "
        "MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR "
        "PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP "
        "TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG"
    ),
    3: ("BHD IQD JOD KWD LYD OMR TND"),
    4: ("CLF UYW"),
}

MINOR_DIGITS = {code: digits for digits, codes in _CODES_BY_DIGITS.items() for code in codes.split()}
"""Decimals of every currency with a minor unit, by ISO 4217."""
