"""How much our own code works for a call, by the calls of its functions: a figure that no load and no clock disturbs.

The bounds are what it took when this was written, and a twentieth more. Raise one only for what is worth it, and lower
it when the work gets less.
"""

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cpq
from cpq.app import App
from cpq.base.settings import read_settings
from tests.support.engine import Tools, import_dicts, open_app, product_row
from tests.support.quotes import ACME

OURS = str(Path(cpq.__file__).parent)
EXPONENT_MAX = 1.05
BOUNDS = {
    "quote_create": {10: 1_420, 100: 10_180},
    "quote_price": {10: 2_850, 100: 21_090},
    "quote_update": {10: 1_780, 100: 11_470},
    "quote_send": {10: 1_510, 100: 8_040},
    "agreement_amend": {10: 4_340, 100: 37_400},
}


def work_of(call: Callable[[], Any]) -> int:
    """How often functions of ours are called; those in brackets, as of a comprehension, differ between Pythons."""
    count = 0

    def see(frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        code = frame.f_code
        count += event == "call" and code.co_filename.startswith(OURS) and code.co_name[0] != "<"

    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def fill(app: App) -> list[str]:
    """Products that are so cheap that nobody has to approve 500 of them."""
    products = [product_row() for _ in range(500)]
    price = {"price_book": "list", "currency": "USD", "unit_price": "1", "cost": "0.5", "billing_period": "yearly"}
    import_dicts(app, "products", *products)
    import_dicts(app, "prices", *({**price, "product_id": one["id"]} for one in products))
    return [one["id"] for one in products]


def works(app: App, products: list[str]) -> dict[str, int]:
    """The work of each call on a quote with a line for each product, and of a change of all lines afterwards."""
    tools, found = Tools(app), {}
    answers: dict[str, dict[str, Any]] = {}

    def count(name: str, given: dict[str, Any], who: Tools = tools) -> None:
        found[name] = work_of(lambda: answers.update({name: who(name, **given)}))

    lines = [{"product_id": one, "quantity": n % 9 + 1, "discount_pct": n % 5} for n, one in enumerate(products)]
    count("quote_create", {"account_id": ACME, "term_months": 12, "line_items": lines})
    quote = {"quote_id": answers["quote_create"]["quote_id"]}
    count("quote_update", {**quote, "expected_version": 1, "notes": "By the end of the month."})
    count("quote_price", quote)
    count("quote_send", {**quote, "expected_version": 1})
    agreement_id = tools.seller("quote_accept", **quote, expected_version=1)["agreement_id"]
    owned = tools("agreement_get", agreement_id=agreement_id)["lines"]
    changes = [{"action": "set_quantity", "line_id": one["line_id"], "quantity": 99} for one in owned]
    count("agreement_amend", {"agreement_id": agreement_id, "effective_date": "2026-12-16", "changes": changes})
    return found


@pytest.fixture(scope="module")
def measured(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, int]]:
    home = tmp_path_factory.mktemp("work")
    settings = read_settings({}, home=home, rate_limit_per_minute=0)
    settings.sqlite_path.write_bytes(sqlite_template.read_bytes())
    app = open_app(settings)
    products = fill(app)
    works(app, products)  # What is made once in a process, or is read of a product, is not of a call.
    found = {lines: works(app, products[:lines]) for lines in (10, 50, 100, 500)}
    app.close()
    print(found)
    return found


@pytest.mark.parametrize("name", BOUNDS)
def test_a_call_works_no_more_than_it_did(measured: dict[int, dict[str, int]], name: str):
    for lines, most in BOUNDS[name].items():
        assert measured[lines][name] <= most, f"{name} of {lines} lines"


@pytest.mark.parametrize("name", BOUNDS)
def test_the_work_grows_with_the_lines_and_no_faster(measured: dict[int, dict[str, int]], name: str):
    growth = math.log10(measured[500][name] / measured[50][name])
    assert growth <= EXPONENT_MAX, f"{name} grows with the power {growth:.3f}"
