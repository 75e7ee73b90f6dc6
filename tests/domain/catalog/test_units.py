"""Units: exact factors, every spelling, and amounts within a query."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.catalog.units import NEAR_SHARE, UNITS, Amount, converted, read, shown, unit_named

HP, KW, PSI, CFM, GAL = (UNITS[name] for name in ("hp", "kW", "psi", "cfm", "gal"))
STATED = {
    HP: Counter(map(Decimal, ("5", "7.5", "75", "100", "100"))),
    KW: Counter([Decimal(6)]),
    PSI: Counter(map(Decimal, (100, 116, 150))),
    CFM: Counter(map(Decimal, (20, 350, 500))),
    GAL: Counter([Decimal(240)]),
}

amounts = st.builds(Amount, st.decimals(0, 10**9, places=6), st.sampled_from(list(UNITS.values())))


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("hp", "745.69987158227022"),
        ("PS", "735.49875"),
        ("psi", "44482216152605/6451600000"),
        ("cfm", "28316846592/60000000000000"),
        ("l/s", "0.001"),
        ("gal", "0.003785411784"),
        ("lb", "0.45359237"),
        ("m³/h", "1/3600"),
    ],
)
def test_a_factor_is_the_legal_definition(name: str, exact: str):
    assert UNITS[name].size == Fraction(exact)


@given(amount=amounts, data=st.data())
def test_an_amount_comes_back_exactly_through_any_other_unit(amount: Amount, data: st.DataObject):
    unit = data.draw(st.sampled_from([unit for unit in UNITS.values() if unit.kind == amount.unit.kind]))
    there = amount.in_unit(unit)
    assert there * unit.size / amount.unit.size == Fraction(amount.number)
    assert there * unit.size == Fraction(amount.number) * amount.unit.size


@given(amount=amounts)
def test_an_amount_is_read_as_it_is_written(amount: Amount):
    assert read(str(amount)) == amount


@given(number=st.fractions(0, 10**9))
def test_a_shown_number_has_five_right_digits(number: Fraction):
    assert abs(Fraction(shown(number)) - number) <= max(number / 20_000, Fraction(0))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("75 kW", "75 kW"),
        ("75kw", "75 kW"),
        ("100-HP", "100 hp"),
        ("100 horsepower", "100 hp"),
        ("8 bar(g)", "8 bar"),
        ("125 PSIG", "125 psi"),
        ("7,5 bar", "7.5 bar"),
        ("1,200 SCFM", "1200 cfm"),
        ("10 m3/min", "10 m³/min"),
        ("10 m^3 / min", "10 m³/min"),
        ("600 m³/h", "600 m³/h"),
        ("160 l/s", "160 l/s"),
        ("160 litres per second", "160 l/s"),
        ("75", None),
        ("kW", None),
        ("75 kWh", None),
        ("75 psia", None),
        ("-75 kW", None),
        ("1.2.3 bar", None),
        ("75 stones", None),
        ("1" + ",000" * 200 + " kW", None),
    ],
)
def test_an_amount_is_a_number_with_a_unit_of_any_spelling(text: str, expected: str | None):
    found = read(text)
    assert (str(found) if found else None) == expected


@pytest.mark.parametrize(
    ("query", "searched", "told"),
    [
        ("75 kW oilless", "100 hp oilless", ["75 kW = 100.58 hp"]),
        ("oilless 75kW", "oilless 100 hp", ["75 kW = 100.58 hp"]),
        ("4 kW", "5 hp", ["4 kW = 5.3641 hp"]),
        ("400 kW", "536.41 hp", ["400 kW = 536.41 hp"]),
        ("8 bar", "116 psi", ["8 bar = 116.03 psi"]),
        ("7-10 bar", "100 psi to 150 psi", ["7 bar = 101.53 psi", "10 bar = 145.04 psi"]),
        ("10 m³/min at 8 bar", "350 cfm at 116 psi", ["10 m³/min = 353.15 cfm", "8 bar = 116.03 psi"]),
        ("236 l/s", "500 cfm", ["236 l/s = 500.06 cfm"]),
        ("8 bar or 8 bar", "116 psi or 116 psi", ["8 bar = 116.03 psi"]),
        ("900 litres", "240 gal", ["900 l = 237.75 gal"]),
        ("0.9 m³ tank, 10 m³/min", "240 gal tank, 350 cfm", ["0.9 m³ = 237.75 gal", "10 m³/min = 353.15 cfm"]),
        ("100 HP", "100 HP", []),
        ("110 HP", "110 HP", []),
        ("6 kW dryer", "6 kW dryer", []),
        ("2 barrels, 75 kWh, 3 kW/h, type B75 W", "2 barrels, 75 kWh, 3 kW/h, type B75 W", []),
        ("quiet compressor", "quiet compressor", []),
    ],
)
def test_amounts_in_a_query_become_those_of_the_products(query: str, searched: str, told: list[str]):
    texts, made = converted(query, STATED)
    assert ([query, *texts][bool(texts)], [f"{each.amount} = {each.shown}" for each in made]) == (searched, told)


@given(number=st.decimals("0.1", 500, places=1))
def test_the_number_of_a_product_is_searched_only_where_it_is_near(number: Decimal):
    exact = Amount(number, KW).in_unit(HP)
    near = [value for value in STATED[HP] if abs(Fraction(value) - exact) <= NEAR_SHARE * exact]
    _, made = converted(f"{number} kW", {HP: STATED[HP]})
    assert [each.near for each in made] == [tuple(sorted(set(near), key=lambda value: abs(Fraction(value) - exact)))]


def test_numbers_further_off_are_searched_after_the_nearest():
    stated = {CFM: Counter(map(Decimal, (460, 492, 500, 520, 600))), PSI: Counter(map(Decimal, (116, 120)))}
    texts, _ = converted("filter 14 m³/min", stated)
    assert texts == ["filter 492 cfm", "filter 500 cfm", "filter 520 cfm", "filter 460 cfm"]
    texts, _ = converted("14 m³/min at 8 bar", stated)
    assert texts == [
        "492 cfm at 116 psi",
        "492 cfm at 120 psi",
        "500 cfm at 116 psi",
        "500 cfm at 120 psi",
    ]


def test_without_products_of_a_kind_nothing_is_converted():
    assert converted("75 kW", {}) == ([], [])
    assert converted("75 kW", {HP: {}}) == ([], [])


@pytest.mark.parametrize(("text", "unit"), [("RPM", None), (None, None), ("", None), (" HP ", HP), ("cu ft/min", CFM)])
def test_a_declared_unit_is_known_by_its_name(text: str | None, unit: object):
    assert unit_named(text) == unit


def test_an_amount_has_no_number_in_a_unit_of_another_kind():
    with pytest.raises(ValueError, match="kW is no unit of pressure"):
        Amount(Decimal(1), KW).in_unit(PSI)
