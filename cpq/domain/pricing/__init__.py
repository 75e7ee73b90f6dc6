"""Pricing: the stages of the waterfall turn a request into a result with its trace."""

from cpq.domain.pricing.price_selection import PriceSelection
from cpq.domain.pricing.request import Request
from cpq.domain.pricing.result import PricedLine, PricedQuote, Stage, Step
from cpq.domain.pricing.target_total import discount_for_total
from cpq.domain.pricing.waterfall import AMOUNT_MAX, Costs, costs, price, refusals

__all__ = [
    "AMOUNT_MAX",
    "Costs",
    "PriceSelection",
    "PricedLine",
    "PricedQuote",
    "Request",
    "Stage",
    "Step",
    "costs",
    "discount_for_total",
    "price",
    "refusals",
]
