"""Tryton: a sale of so many lines by its models, with a price list, quoted and stored. Run by its own environment."""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

warnings.simplefilter("ignore")
FOLDER, SIZES = sys.argv[1], json.loads(sys.argv[2])
os.environ.update(TRYTOND_DATABASE_URI="sqlite://", TRYTOND_DATABASE__PATH=FOLDER, DB_NAME="bench")

from trytond.modules.account.tests import create_chart  # noqa: E402 # Tryton reads its settings when it is imported.
from trytond.modules.company.tests import create_company, set_company  # noqa: E402
from trytond.pool import Pool  # noqa: E402
from trytond.tests.test_tryton import activate_module  # noqa: E402
from trytond.transaction import Transaction, TransactionError  # noqa: E402

PRODUCTS = 50


def in_transaction(work: Callable[[], Any], **context: Any) -> Any:
    """As Tryton's dispatcher does: a transaction that needs a lock begins again with it."""
    extras: dict[str, Any] = {}
    while True:
        with Transaction().start("bench", 1, context=context, **extras) as transaction:
            try:
                answer = work()
                transaction.commit()
                return answer
            except TransactionError as needs:
                transaction.rollback()
                transaction.tasks.clear()
                needs.fix(extras)


def fill() -> dict[str, Any]:
    """A company with a chart of accounts, products, a price list with a break, and a customer."""
    company = create_company()
    with set_company(company), Transaction().set_context(company=company.id):
        create_chart(company)
        get = Pool().get
        [unit] = get("product.uom").search([("name", "=", "Unit")])
        accounts = [("type.revenue", "=", True), ("company", "=", company.id), ("closed", "!=", True)]
        [revenue] = get("account.account").search(accounts, limit=1)
        category = {"name": "all", "accounting": True, "account_revenue": revenue.id}
        [category] = get("product.category").create([category])
        common = {"type": "goods", "salable": True, "default_uom": unit.id, "sale_uom": unit.id}
        common |= {"account_category": category.id}
        made = [
            {**common, "name": f"P{n}", "products": [("create", [{"list_price": Decimal(10 + n)}])]}
            for n in range(PRODUCTS)
        ]
        products = [template.products[0].id for template in get("product.template").create(made)]
        lines = [{"quantity": 5.0, "formula": "unit_price * 0.9"}, {"formula": "unit_price"}]
        prices = {
            "name": "list",
            "company": company.id,
            "unit": "product_default",
            "price": "list_price",
            "lines": [("create", lines)],
        }
        [prices] = get("product.price_list").create([prices])
        customer = {"name": "Acme", "addresses": [("create", [{}])], "sale_price_list": prices.id}
        [customer] = get("party.party").create([customer])
    return {"company": company.id, "products": products, "customer": customer.id}


def sell(known: dict[str, Any], count: int) -> None:
    get = Pool().get
    sale_of, line_of = get("sale.sale"), get("sale.line")
    company = get("company.company")(known["company"])
    sale = sale_of(company=company, currency=company.currency, party=get("party.party")(known["customer"]))
    sale.on_change_party()
    lines = []
    for number in range(count):
        line = line_of(sale=sale, type="line", product=known["products"][number % PRODUCTS], quantity=number % 9 + 1)
        line.on_change_product()
        line.on_change_quantity()
        lines.append(line)
    sale.lines = lines
    sale.save()
    sale_of.quote([sale])
    assert len(sale.lines) == count
    assert sale.untaxed_amount > 0


def main() -> None:
    activate_module(["sale", "sale_price_list"])
    known = in_transaction(fill)

    def once(count: int) -> float:
        began = time.process_time()
        in_transaction(lambda: sell(known, count), company=known["company"])
        return time.process_time() - began

    once(1)
    print(json.dumps({str(count): min(once(count) for _ in range(rounds)) * 1000 for count, rounds in SIZES}))


main()
