"""The price of a quote: a request goes through the stages of the waterfall and comes out as a result with its trace."""

from cpq.domain.pricing.request import Request
from cpq.domain.pricing.result import PricedLine, PricedQuote, Step
from cpq.domain.pricing.waterfall import AMOUNT_MAX, WATERFALL, price, refusals

__all__ = ["AMOUNT_MAX", "WATERFALL", "PricedLine", "PricedQuote", "Request", "Step", "price", "refusals"]
