"""A thousand random quotes from the public Salesforce catalogue, each added up again from the files alone."""

import csv
import json
import random
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from cpq.app import App
from cpq.app.transaction import Tx
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.services.catalog import salesforce_folder, salesforce_importer
from cpq.services.quotes.composition import compose
from tests.support import engine
from tests.support.salesforce_exports import public_catalogue

QUOTES = 1_000
DIGITS = {"AUD": 2, "CAD": 2, "CHF": 2, "EUR": 2, "GBP": 2, "JPY": 0, "USD": 2}
TAXES = {"DE": [Fraction(19, 100)], "US-GA-FULTON": [Fraction(4, 100), Fraction(3, 100)], "US-OR": [Fraction(0)]}
PERIODS = {"One-Time": None, "Term Monthly": 1, "Term Annual": 12, "Evergreen Monthly": None, "Evergreen Annual": None}
"""How many months one price is for; None is charged once."""

WORDS = {"One-Time": "one_time", "Term Monthly": "monthly", "Term Annual": "yearly"}
WORDS |= {"Evergreen Monthly": "monthly_evergreen", "Evergreen Annual": "yearly_evergreen"}


class Files:
    """The prices of the files, read by nothing of ours."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "datasets" / "sfdmu" / "qb" / "en-US"
        model = "ProductSellingModel.$$Name$SellingModelType"
        self.prices: dict[tuple[str, str, str], Fraction] = {}
        self.sold: dict[str, set[str]] = defaultdict(set)
        for row in self._rows("qb-pricing/PricebookEntry.csv"):
            if row["IsDerived"] != "true":
                sku, name = row["Product2.StockKeepingUnit"], row[model].partition(";")[0]
                self.prices[sku, name, row["CurrencyIsoCode"]] = Fraction(row["UnitPrice"])
                self.sold[sku].add(name)
        values = {
            row["AttributeBasedAdjRule.Name"]: row["StringValue"]
            for row in self._rows("qb-pricing/AttributeAdjustmentCondition.csv")
        }
        self.by_type = {
            (
                row["Product.StockKeepingUnit"],
                values[row["AttributeBasedAdjRule.Name"]],
                row["CurrencyIsoCode"],
            ): Fraction(row["AdjustmentValue"])
            for row in self._rows("qb-pricing/AttributeBasedAdjustment.csv")
        }
        self.names = {row["StockKeepingUnit"]: row["Name"] for row in self._rows("qb-pcm/Product2.csv")}
        self.most = self._bounds(folder)
        self.components: dict[str, list[dict[str, str]]] = defaultdict(list)
        for row in self._rows("qb-pcm/ProductRelatedComponent.csv"):
            self.components[row["ParentProduct.StockKeepingUnit"]].append(row)

    def _bounds(self, folder: Path) -> dict[tuple[str, str], int]:
        """How many pieces of a component the constraint models allow, by the names of bundle and component."""
        found = {}
        for model in json.loads((folder / "cml_facts.json").read_text(encoding="utf-8")):
            place = f"../../../{model['path'].partition('/blobs')[0].partition('/')[2]}"
            names = {row["Id"]: row["Name"] for row in self._rows(f"{place}/Product2.csv")}
            tags = self._rows(f"{place}/ExpressionSetConstraintObj.csv")
            types = {row["ConstraintModelTag"]: names.get(row["ReferenceObjectId"], "") for row in tags}
            for one in model["relations"]:
                if one["max"] and one["max"] <= 50:
                    found[types.get(one["owner"], ""), types.get(one["type"], "")] = one["max"]
        return found

    def _rows(self, name: str) -> list[dict[str, str]]:
        with (self._folder / name).open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))


class Reckoned(NamedTuple):
    """A line to quote, and what it costs before discounts by the files."""

    line: DraftLine
    regular: Fraction


def test_a_thousand_random_quotes_of_the_public_catalogue_add_up_by_the_files_alone(sqlite_app: App):
    folder = public_catalogue()
    files, chance = Files(folder), random.Random(20)
    read = salesforce_folder.read_folder(folder)
    translation = salesforce_importer.translated(read.files, with_inactive_schedules=False)
    engine.import_rows(sqlite_app, lambda: iter(translation.rows))
    engine.import_dicts(sqlite_app, "accounts", *map(account, TAXES))
    seen: set[str] = set()

    def work(tx: Tx) -> dict[str, Any]:
        for _ in range(QUOTES):
            seen.update(quote_once(tx, files, chance))
        return {}

    engine.write(sqlite_app, work)
    assert len(seen) > len(files.sold) * 9 // 10
    assert {"QB-API", "QB-QRack-750", "QB-BDL-SRVC", "QB-BDL-R750", "QB-BDL-STND", "PROD-455868158"} <= seen


def account(zone: str) -> dict[str, Any]:
    where = {"segment": "smb", "region": "amer", "country": zone[:2], "tax_zone": zone}
    return {"id": f"acct_{zone.lower()}", "name": f"Buyer in {zone}", **where}


def quote_once(tx: Tx, files: Files, chance: random.Random) -> set[str]:
    """Make up a quote, price it, and compare every sum with that of the files; the products it has."""
    zone, currency = chance.choice(list(TAXES)), chance.choice(list(DIGITS))
    months, percent = chance.choice([1, 6, 12, 18, 24, 36, 60]), chance.choice([Decimal(0), Decimal(3), Decimal("7.5")])
    skus = [chance.choice(list(files.sold)) for _ in range(chance.randint(1, 4))]
    if chance.random() < 0.2:
        skus.append(chance.choice(["QB-API", "QB-QRack-750", "QB-BDL-SRVC"]))
    made = [reckon(files, chance, number, sku, currency, months) for number, sku in enumerate(skus, 1)]
    draft = Draft(
        f"acct_{zone.lower()}",
        currency,
        tuple(one.line for one in made),
        term_months=months,
        requested_discount=int(percent * 10**6),
    )
    totals = compose(tx, draft).priced
    size = 10 ** (6 - DIGITS[currency])
    customers = [half_up(one.regular * (1 - Fraction(one.line.discount_pct, 10**8)) * 10**6, size) for one in made]
    net = sum(customers) - half_up(Fraction(sum(customers)) * Fraction(percent) / 100, size)
    tax = sum(half_up(net * rate, size) for rate in TAXES[zone])
    assert (totals.net, totals.tax_total, totals.total) == (net, tax, net + tax), draft
    assert totals.subtotal == sum(half_up(one.regular * 10**6, size) for one in made), draft
    assert sum(line.net for line in totals.lines) == net
    return set(skus)


def reckon(files: Files, chance: random.Random, number: int, sku: str, currency: str, months: int) -> Reckoned:
    model = chance.choice(sorted(files.sold[sku]))
    price, options = files.prices[sku, model, currency], dict[str, Any]()
    if sku == "QB-API":
        options["Type"] = chance.choice(["Flex", "Gov", "Pre-Prod", "Prod"])
        price = files.by_type.get((sku, options["Type"], currency), price) if model == "Term Annual" else price
    if sku == "QB-BDL-STND":
        training = chance.choice(["QB-TRN-ESSNTLS", "QB-TRN-FUND"])
        if training == "QB-TRN-FUND" or chance.random() < 0.5:  # The other one is the default of its group.
            options["Training"] = files.names[training]
        price += files.prices[training, model, currency]
    if sku in ("QB-QRack-750", "QB-BDL-SRVC"):
        added, options = choose_components(files, chance, sku, currency)
        price += added
    quantity, discount = chance.randint(1, 40), chance.choice([0, 0, 0, 5, 12, 100])
    period = PERIODS[model]
    regular = price * quantity * (Fraction(months, period) if period else 1)
    line = DraftLine(number, sku, quantity, discount * 10**6, options, selling_model=WORDS[model])
    return Reckoned(line, regular)


def choose_components(files: Files, chance: random.Random, sku: str, currency: str) -> tuple[Fraction, dict[str, Any]]:
    """Some components: one processor, the defaults kept or left out, a few others; and what they add to the price."""
    added, options = Fraction(0), dict[str, Any]()
    rows = files.components[sku]
    processor = chance.choice([row for row in rows if row["ProductComponentGroup.Code"] == "Processor"] or rows)
    for row in rows:
        child, group = row["ChildProduct.StockKeepingUnit"], row["ProductComponentGroup.Code"]
        count = int(row["Quantity"]) if row["IsDefaultComponent"] == "true" else 0
        is_fixed = row["IsComponentRequired"] == "true" or group == "Cooling"
        most = int(row["MaxQuantity"] or files.most.get((files.names[sku], files.names[child]), 0))
        is_counted = bool(most) and row["IsQuantityEditable"] == "true"
        is_tried = row is processor if group == "Processor" else chance.random() < 0.1
        if is_tried and not is_fixed and (group != "Solid State Drives" or len(options) < 4):
            count = chance.randint(1, most) if is_counted else int(row["Quantity"]) - count
            options[files.names[child]] = count if is_counted else bool(count)
        added += count * files.prices[child, "One-Time", currency]
    return added, options


def half_up(amount: Fraction | int, size: int) -> int:
    """To whole minor units; nothing here is negative."""
    return int((Fraction(amount) / size + Fraction(1, 2)) // 1) * size


def test_tiers_of_the_public_catalogue_count_when_their_schedule_is_taken(sqlite_app: App):
    read = salesforce_folder.read_folder(public_catalogue())
    translation = salesforce_importer.translated(read.files, with_inactive_schedules=True)
    engine.import_rows(sqlite_app, lambda: iter(translation.rows))
    engine.import_dicts(sqlite_app, "accounts", account("US-OR"))
    tools = engine.Tools(sqlite_app)
    for quantity, percent in ((4, 0), (5, 10), (10, 10), (11, 15), (16, 25)):
        line = {"product_id": "QB-MSG-STRT", "quantity": quantity, "selling_model": "yearly"}
        made = tools("quote_create", account_id="acct_us-or", line_items=[line], currency="USD", term_months=12)
        assert Decimal(made["line_items"][0]["subtotal"]) == Decimal(30000) * quantity * (100 - percent) / 100
