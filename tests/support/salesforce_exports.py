"""Exports for the tests of `cpq import salesforce`: the public one, where it is at hand, and small ones made here."""

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cpq.domain.catalog.salesforce.card_entries import ENTRY
from cpq.domain.catalog.salesforce.exported import ExportedFile, ExportedRow

Tables = Mapping[str, Sequence[Mapping[str, str]]]

BOOK = "Pricebook2.$$Name$IsStandard"
MODEL = "ProductSellingModel.$$Name$SellingModelType"
ONE_TIME, MONTHLY, YEARLY = "One-Time;OneTime", "Term Monthly;TermDefined", "Term Annual;TermDefined"


def public_catalogue() -> Path:
    """The public reference catalogue. It is read where it lies, beside the project, and is no part of it."""
    named = os.environ.get("QUOTEWRIGHT_TESTS_CATALOGUE")
    places = [Path(named)] if named else []
    places += [parent / "shared" / "vectors" / "catalogue" for parent in Path(__file__).resolve().parents]
    for place in places:
        if (place / "datasets").is_dir():
            return place
    pytest.skip("the public catalogue is not at hand; QUOTEWRIGHT_TESTS_CATALOGUE names its folder")


def export(tables: Tables) -> list[ExportedFile]:
    """Tables as the reader of a folder gives them."""
    return [
        ExportedFile(
            f"{name}.csv",
            name,
            [
                ExportedRow(f"{name}.csv", line, {column: cell for column, cell in row.items() if cell})
                for line, row in enumerate(rows, 2)
            ],
        )
        for name, rows in tables.items()
    ]


def write(folder: Path, tables: Tables) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    for name, rows in tables.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            columns = list(dict.fromkeys(column for row in rows for column in row))
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
    return folder


def small(**more: Sequence[Mapping[str, str]]) -> dict[str, Sequence[Mapping[str, str]]]:
    """A rack with a choice of one processor, up to two of three drives, and a subscription with two selling models."""
    skus = ("RACK", "CPU-A", "CPU-B", "DISK 1", "DISK-2", "DISK-3", "PLAN")
    once = {"RACK": "1000", "CPU-A": "0", "CPU-B": "250", "DISK 1": "40", "DISK-2": "60", "DISK-3": "80"}
    tables: dict[str, Sequence[Mapping[str, str]]] = {
        "Product2": [{"StockKeepingUnit": sku, "Name": f"The {sku}", "IsActive": "true"} for sku in skus],
        "ProductSellingModel": [
            {"Name": "One-Time", "SellingModelType": "OneTime"},
            {
                "Name": "Term Monthly",
                "SellingModelType": "TermDefined",
                "PricingTerm": "1",
                "PricingTermUnit": "Months",
            },
            {"Name": "Term Annual", "SellingModelType": "TermDefined", "PricingTerm": "1", "PricingTermUnit": "Annual"},
        ],
        "Pricebook2": [{"Name": "Standard Price Book", "IsStandard": "true", "IsActive": "true"}],
        "PricebookEntry": [
            *(entry(sku, ONE_TIME, price) for sku, price in once.items()),
            entry("PLAN", MONTHLY, "10"),
            entry("PLAN", YEARLY, "100"),
        ],
        "ProductSellingModelOption": [
            {"Product2.StockKeepingUnit": "PLAN", MODEL: YEARLY, "IsDefault": "true"},
            {"Product2.StockKeepingUnit": "PLAN", MODEL: MONTHLY, "IsDefault": "false"},
        ],
        "ProductRelationshipType": [{"Name": "Bundle", "AssociatedProductRoleCat": "BundleComponent"}],
        "ProductComponentGroup": [
            group("Processor", "1", "1"),
            group("Drives", "0", "2"),
        ],
        "ProductRelatedComponent": [
            component("RACK", "CPU-A", "Processor", IsDefaultComponent="true"),
            component("RACK", "CPU-B", "Processor"),
            component("RACK", "DISK 1", "Drives"),
            component("RACK", "DISK-2", "Drives", IsQuantityEditable="true", MaxQuantity="3"),
            component("RACK", "DISK-3", "Drives", Quantity="2"),
        ],
    }
    return tables | more


def entry(sku: str, model: str, price: str, currency: str = "USD", **more: str) -> dict[str, str]:
    keys = {BOOK: "Standard Price Book;true", "Product2.StockKeepingUnit": sku, MODEL: model}
    return {**keys, "CurrencyIsoCode": currency, "UnitPrice": price, "IsActive": "true", **more}


def group(code: str, low: str, high: str, parent: str = "RACK") -> dict[str, str]:
    return {
        "Code": code,
        "Name": code,
        "MinBundleComponents": low,
        "MaxBundleComponents": high,
        "ParentProduct.StockKeepingUnit": parent,
    }


def component(parent: str, child: str, code: str, **more: str) -> dict[str, str]:
    return {
        "ParentProduct.StockKeepingUnit": parent,
        "ChildProduct.StockKeepingUnit": child,
        "ProductComponentGroup.Code": code,
        "ProductRelationshipType.Name": "Bundle",
        "Quantity": "1",
        **more,
    }


def rate(card: str, amount: str = "", **more: str) -> dict[str, str]:
    return {
        "Product.StockKeepingUnit": "PLAN",
        "RateCard.$$Name$Type": f"{card};x",
        "UsageResource.Code": "SUP",
        "UsageResource.Name": "Support",
        "RateUnitOfMeasure.UnitCode": "USD",
        "RateUnitOfMeasureClass.Name": "Currency",
        "DefaultUnitOfMeasure.Name": "Hour",
        "Rate": amount,
        "EffectiveFrom": "2026-01-01T08:00:00.000+0000",
        **more,
    }


def rate_tier(low: str, high: str, value: str, **more: str) -> dict[str, str]:
    bounds = {"LowerBound": low, "UpperBound": high, "AdjustmentType": "Percentage", "AdjustmentValue": value}
    return {ENTRY: "PLAN;Tiers;SUP;USD", **bounds, **more}


def full() -> dict[str, Sequence[Mapping[str, str]]]:
    """The small export with a row or two of every table that has a counterpart."""
    dated = {"EffectiveFrom": "2026-01-01T08:00:00.000+0000", "CurrencyIsoCode": "USD"}
    plan = {**dated, "PriceAdjustmentSchedule.Name": "Prices", MODEL: YEARLY}
    products = [
        {**row, "BasedOn.Code": "PLANS", "UnitOfMeasure.UnitCode": "h"} if row["StockKeepingUnit"] == "PLAN" else row
        for row in small()["Product2"]
    ]
    return small(
        Product2=products,
        UnitOfMeasure=[{"Name": "Hour", "UnitCode": "h", "Scale": "2"}],
        ProductCategory=[{"Code": "HW", "Name": "Hardware"}],
        ProductCategoryProduct=[{"ProductCategory.Code": "HW", "Product.StockKeepingUnit": "RACK"}],
        ProductClassification=[{"Code": "PLANS", "Name": "Plans", "Status": "Active"}],
        AttributePicklist=[{"Name": "Sizes", "DataType": "Text", "Status": "Active"}],
        AttributePicklistValue=[
            {"Picklist.Name": "Sizes", "Value": value, "Status": "Active", "Sequence": place}
            for place, value in (("2", "large"), ("1", "small"))
        ],
        AttributeDefinition=[
            {"Code": "SIZE", "Name": "Size", "DataType": "Picklist", "Picklist.Name": "Sizes", "IsActive": "true"},
            {"Code": "SEATS", "Name": "Seats", "DataType": "Number", "IsActive": "true"},
        ],
        ProductClassificationAttr=[
            {"ProductClassification.Code": "PLANS", "AttributeDefinition.Code": "SIZE", "DefaultValue": "small"},
            {"ProductClassification.Code": "PLANS", "AttributeDefinition.Code": "SEATS", "MinimumValue": "1"},
        ],
        ProductAttributeDefinition=[
            {"Product2.StockKeepingUnit": "PLAN", "AttributeDefinition.Code": "SEATS", "DefaultValue": "3"}
        ],
        PriceAdjustmentSchedule=[
            {"Name": "Prices", "AdjustmentMethod": "Range", "IsActive": "true", BOOK: "Standard Price Book;true"}
        ],
        AttributeBasedAdjRule=[{"Name": "If large"}],
        AttributeAdjustmentCondition=[
            {
                "AttributeBasedAdjRule.Name": "If large",
                "AttributeDefinition.Code": "SIZE",
                "Operator": "equals",
                "StringValue": "large",
            }
        ],
        AttributeBasedAdjustment=[
            {
                **plan,
                "AttributeBasedAdjRule.Name": "If large",
                "Product.StockKeepingUnit": "PLAN",
                "AdjustmentType": "Override",
                "AdjustmentValue": "180",
            }
        ],
        BundleBasedAdjustment=[
            {
                **plan,
                MODEL: ONE_TIME,
                "Product.StockKeepingUnit": "CPU-B",
                "RootBundle.StockKeepingUnit": "RACK",
                "AdjustmentType": "Amount",
                "AdjustmentValue": "50",
            }
        ],
        PriceAdjustmentTier=[
            {
                **plan,
                MODEL: MONTHLY,
                "Product2.StockKeepingUnit": "PLAN",
                "AdjustmentType": "Percentage",
                "LowerBound": "10",
                "TierValue": "20",
            }
        ],
        RateCard=[{"Name": "Base", "Type": "Base"}, {"Name": "Tiers", "Type": "Tier"}],
        PriceBookRateCard=[
            {"RateCard.$$Name$Type": f"{card};x", "PriceBook.Name": "Standard Price Book"} for card in ("Base", "Tiers")
        ],
        UsageResource=[{"Name": "Support"}],
        RateCardEntry=[rate("Base", "0.5"), rate("Tiers")],
        RateAdjustmentByTier=[rate_tier("0", "10", "20"), rate_tier("10", "", "0.3", AdjustmentType="Override")],
        CostBook=[{"Name": "Costs", "IsDefault": "true"}],
        CostBookEntry=[
            {"CostBook.Name": "Costs", "Product.StockKeepingUnit": "RACK", "CurrencyIsoCode": "USD", "Cost": "600"}
        ],
    )


def model_tables(products: Mapping[str, str], status: str = "Active") -> Tables:
    """The tables beside a constraint model with these types, each of which is a product by its name."""
    ids = {name: f"01t{number}" for number, name in enumerate(dict.fromkeys(products.values()))}
    tags = [
        {"ReferenceObjectId": ids[name], "ConstraintModelTag": tag, "ConstraintModelTagType": "Type"}
        for tag, name in products.items()
    ]
    return {
        "ExpressionSet": [{"ApiName": "M"}],
        "ExpressionSetDefinitionVersion": [{"DeveloperName": "M_V1", "Status": status}],
        "Product2": [{"Id": id_, "Name": name} for name, id_ in ids.items()],
        "ExpressionSetConstraintObj": tags,
    }


def model_facts(types: Sequence[str], **more: Any) -> dict[str, Any]:
    """The facts of the model `M`, whose tables are in the folder `models/m`."""
    listed = [{"name": name, "parent": None} for name in types]
    return {"model": "M", "path": "models/m/blobs/M.ffxblob", "types": listed, **more}


def with_model(tables: Tables, beside: Tables, *facts: Any) -> list[ExportedFile]:
    """An export with the tables of the model `M` and a file of facts."""
    models = []
    for file in export(beside):
        name = f"models/m/{file.name}"
        models.append(ExportedFile(name, file.table, [row._replace(file=name) for row in file.rows], True))
    rows = [ExportedRow("facts.json", number, {}) for number, _ in enumerate(facts, 1)]
    return [*export(tables), *models, ExportedFile("facts.json", "facts", rows, True, facts)]
