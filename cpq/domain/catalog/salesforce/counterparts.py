"""What of Salesforce has no counterpart here, and how its billing periods are called here: tables to change."""

from __future__ import annotations

from typing import NamedTuple

NO_COUNTERPARTS: dict[str, str] = {
    "AttributeCategory": "options are not grouped for display",
    "AttributeCategoryAttribute": "options are not grouped for display",
    "CurrencyType": "rates between currencies are policy: terms.yaml has them",
    "PricebookEntryDerivedPrice": "no price here is a percentage of other lines",
    "ProdtAttrScope": "it steers the handling of orders",
    "ProductCatalog": "categories are not grouped into catalogues",
    "ProductCategoryDisqual": "categories are offered to all accounts",
    "ProductCategoryQualification": "categories are offered to all accounts",
    "ProductComponentGrpOverride": "a bundle inside another one has the same groups",
    "ProductDisqualification": "products are offered to all accounts",
    "ProductQualification": "products are offered to all accounts",
    "ProductRampSegment": "a ramp is given on a line, and every price with a term takes one",
    "ProductRelComponentOverride": "a bundle inside another one has the same components",
    "ProrationPolicy": "how part periods count is policy: terms.yaml says it",
    "UnitOfMeasureClass": "units are not grouped into classes",
}
"""Tables without a counterpart, with the reason; a table that is in neither list is unknown."""

CONSTRAINT_MODEL_TABLE = "ExpressionSet"
"""A folder with this table holds a constraint model: its other tables only list what the model names."""

UNKNOWN_TABLE = "nothing here reads this table"


class Sold(NamedTuple):
    """How a Salesforce selling model is called here."""

    selling_model: str
    billing_period: str

    @property
    def model(self) -> str:
        """The word by which a line picks it."""
        return f"{self.billing_period}_evergreen" if self.selling_model == "evergreen" else self.billing_period


KINDS = {"TermDefined": "term", "Evergreen": "evergreen"}

PERIODS: dict[tuple[str, int], str] = {
    ("Months", 1): "monthly",
    ("Months", 3): "quarterly",
    ("Months", 6): "half_yearly",
    ("Months", 12): "yearly",
    ("Quarterly", 1): "quarterly",
    ("Quarterly", 4): "yearly",
    ("Semi-Annual", 1): "half_yearly",
    ("Semi-Annual", 2): "yearly",
    ("Annual", 1): "yearly",
}
"""The billing period of a price for this many of these units; others have no counterpart."""


def sold_as(kind: str, unit: str, count: int) -> Sold | None:
    """How a selling model of this kind and pricing term is called here; None without a counterpart."""
    if kind == "OneTime":
        return Sold("one_time", "one_time")
    period = PERIODS.get((unit, count))
    return Sold(KINDS[kind], period) if kind in KINDS and period else None


USED_COLUMNS: dict[str, frozenset[str]] = {
    table: frozenset(columns.split("|"))
    for table, columns in {
        "AttributeAdjustmentCondition": "AttributeBasedAdjRule.Name|AttributeDefinition.Code|Operator|StringValue"
        "|Product.StockKeepingUnit|BooleanValue|DoubleValue|IntegerValue",
        "AttributeBasedAdjRule": "Name",
        "AttributeBasedAdjustment": "AttributeBasedAdjRule.Name|PriceAdjustmentSchedule.Name|Product.StockKeepingUnit"
        "|ProductSellingModel.$$Name$SellingModelType|CurrencyIsoCode|AdjustmentType|AdjustmentValue|EffectiveFrom"
        "|EffectiveTo|PricingTerm|PricingTermUnit|SellingModelType|ScheduleType",
        "AttributeDefinition": "Code|DataType|DefaultValue|IsActive|IsRequired|Name|Label|Picklist.Name",
        "AttributePicklist": "DataType|Name|Status|Code",
        "AttributePicklistValue": "Picklist.Name|Sequence|Status|Value",
        "BundleBasedAdjustment": "PriceAdjustmentSchedule.Name|Product.StockKeepingUnit|ParentProduct.StockKeepingUnit"
        "|RootBundle.StockKeepingUnit|ProductSellingModel.$$Name$SellingModelType"
        "|ParentProductSellingModel.$$Name$SellingModelType|RootProductSellingModel.$$Name$SellingModelType"
        "|CurrencyIsoCode|AdjustmentType|AdjustmentValue|EffectiveFrom|EffectiveTo|PricingTerm|PricingTermUnit"
        "|SellingModelType|ScheduleType",
        "CostBook": "Name|IsDefault",
        "CostBookEntry": "CostBook.Name|Cost|CurrencyIsoCode|Product.StockKeepingUnit",
        "PriceAdjustmentSchedule": "Name|IsActive|AdjustmentMethod|ScheduleType|EffectiveFrom|EffectiveTo"
        "|Pricebook2.$$Name$IsStandard",
        "PriceAdjustmentTier": "PriceAdjustmentSchedule.Name|Product2.StockKeepingUnit|AdjustmentType|TierType"
        "|ProductSellingModel.$$Name$SellingModelType|CurrencyIsoCode|LowerBound|UpperBound|TierValue|EffectiveFrom"
        "|EffectiveTo|PricingTerm|PricingTermUnit|SellingModelType|ScheduleType",
        "PriceBookRateCard": "PriceBook.Name|RateCard.$$Name$Type|RateCardType",
        "RateAdjustmentByTier": "AdjustmentType|AdjustmentValue|EffectiveFrom|EffectiveTo|LowerBound|UpperBound"
        "|RateCardEntry.$$Product.StockKeepingUnit$RateCard.Name$UsageResource.Code$RateUnitOfMeasure.UnitCode"
        "|RateCardEntryStatus|Product.StockKeepingUnit|RateUnitOfMeasure.Name|RateUnitOfMeasureName"
        "|UsageResource.Name",
        "RateCard": "Name|Type|EffectiveFrom|EffectiveTo",
        "RateCardEntry": "DefaultUnitOfMeasure.Name|EffectiveFrom|EffectiveTo|Product.StockKeepingUnit|Rate"
        "|RateCard.$$Name$Type|RateUnitOfMeasure.Name|RateUnitOfMeasure.UnitCode|RateUnitOfMeasureClass.Name|Status"
        "|UsageResource.Code|UsageResource.Name",
        "Pricebook2": "Name|IsActive|IsStandard|ValidFrom|ValidTo|CostBook.Name",
        "PricebookEntry": "CurrencyIsoCode|IsActive|IsDerived|Pricebook2.$$Name$IsStandard|Product2.StockKeepingUnit"
        "|ProductSellingModel.$$Name$SellingModelType|UnitPrice",
        "Product2": "StockKeepingUnit|Name|Description|Family|IsActive|BasedOn.Code|ProductCode|Type"
        "|QuantityUnitOfMeasure|UnitOfMeasure.UnitCode|UsageModelType",
        "ProductAttributeDefinition": "AttributeDefinition.Code|Product2.StockKeepingUnit|AttributeNameOverride"
        "|DefaultValue|IsHidden|IsReadOnly|IsRequired|MaximumValue|MinimumValue|StepValue|Status|Sequence",
        "ProductCategory": "Code|Name",
        "ProductCategoryProduct": "ProductCategory.Code|Product.StockKeepingUnit|IsPrimaryCategory",
        "ProductClassification": "Code|Status",
        "ProductClassificationAttr": "AttributeDefinition.Code|ProductClassification.Code|AttributeNameOverride"
        "|DefaultValue|IsHidden|IsReadOnly|IsRequired|MaximumValue|MinimumValue|StepValue|Status|Sequence",
        "ProductComponentGroup": "Code|Name|MaxBundleComponents|MinBundleComponents|ParentProduct.StockKeepingUnit"
        "|Sequence",
        "ProductRelatedComponent": "ChildProduct.StockKeepingUnit|ChildProductClassification.Code"
        "|DoesBundlePriceIncludeChild|IsComponentRequired|IsDefaultComponent|IsQuantityEditable|MaxQuantity|MinQuantity"
        "|ParentProduct.StockKeepingUnit|ProductComponentGroup.Code|ProductRelationshipType.Name|Quantity"
        "|QuantityScaleMethod|Sequence|ChildProductRole|ParentProductRole",
        "ProductRelationshipType": "Name|AssociatedProductRoleCat|MainProductRoleCat",
        "ProductSellingModel": "Name|PricingTerm|PricingTermUnit|SellingModelType|Status",
        "ProductSellingModelOption": "Product2.StockKeepingUnit|ProductSellingModel.$$Name$SellingModelType|IsDefault",
        "UnitOfMeasure": "Name|UnitCode|Scale",
        "UsageResource": "Name",
    }.items()
}
"""The columns that count; the report names every other column with values."""
