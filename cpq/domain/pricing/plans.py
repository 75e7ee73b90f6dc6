"""PURE. Decisions for the whole quote before its lines are priced: one plan for each product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cpq.base.errors import Code, CpqError
from cpq.domain.pricing.parts import Plan
from cpq.domain.pricing.price_selection import PriceSelection
from cpq.domain.pricing.quantities import Counts
from cpq.domain.pricing.request import LineTerm, PriceRow, Product, Request
from cpq.domain.pricing.terms import Terms, bills_alike, terms_of_line

UnitCost = Callable[[Product, int], int]
"""Another cost of a unit for one that a price of the product has."""


class Plans:
    """The facts of one request that its lines share: winning prices, terms, and quantities over the quote."""

    def __init__(self, request: Request, selection: PriceSelection, unit_cost: UnitCost | None = None) -> None:
        self.request = request
        self._terms: dict[LineTerm | None, Terms] = {None: Terms(request)}
        self.counts = Counts(request)
        self._selection = selection
        self._unit_cost = unit_cost
        self._plans: dict[str | tuple[str, str, LineTerm | None], Plan] = {}

    def of(self, product_id: str, selling_model: str = "", term: LineTerm | None = None) -> Plan:
        """The plan of a product for lines of this selling model and term."""
        key = (product_id, selling_model, term) if selling_model or term else product_id
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._decide(product_id, selling_model, term)
        return plan

    def _terms_of(self, term: LineTerm | None) -> Terms:
        found = self._terms.get(term)
        if found is None:
            found = self._terms[term] = terms_of_line(self.request, term)
        return found

    def _decide(self, product_id: str, selling_model: str, term: LineTerm | None) -> Plan:
        product = self.request.products[product_id]
        chosen = self._selection.of(product_id, selling_model)
        row = chosen.charged
        if row is None:
            raise _no_price(self.request, product_id)
        listed = chosen.listed or row
        is_listed = chosen.listed is not None and listed.is_usage == row.is_usage
        if not is_listed:  # A price for use has no price for a quantity to compare with.
            listed = row
        if product.components:
            if row.is_usage:
                raise usage_of_bundle(product_id)
            listed = listed._replace(unit_price=0, tier_mode="none", tiers=(), package_size=None, cost=0, derived=None)
            row = chosen.contracted or listed
        _check_tax(self.request, product_id, row)
        costs = listed if row.cost is None else row
        if self._unit_cost and costs.cost:
            costs = costs._replace(cost=self._unit_cost(product, costs.cost))
        terms = self._terms_of(term)
        return Plan(
            product_id,
            listed,
            row,
            costs,
            is_listed,
            chosen.contracted is not None,
            row.billing_period,
            row.tax_category,
            row.tax_included,
            terms,
            terms.of_row(row),
            bills_alike(row, listed) and row.tax_included == listed.tax_included,
            product.components,
            product.bundle_discount,
            self.request.edition > 2 and bool(row.free_quantity or listed.free_quantity),
            self.request.edition > 1,
            not product.components and not row.is_usage,
        )


def agreed(plan: Plan, unit_price: int) -> Plan:
    """The plan with a price agreed for one segment of a ramp, which replaces list price and contract."""
    row = plan.row._replace(unit_price=unit_price, tier_mode="none", tiers=(), package_size=None)
    return replace(plan, row=row, is_contracted=True)


def usage_of_bundle(product_id: str) -> CpqError:
    return CpqError(
        Code.CONFLICT,
        f"{product_id} is priced by its components, and a rate card has none.",
        field="/product_id",
        hint="Sell what is charged by its use on a line of its own.",
    )


def _no_price(request: Request, product_id: str) -> CpqError:
    return CpqError(Code.CURRENCY_MISMATCH, f"{product_id} has no price in {request.currency}.", field="/product_id")


def _check_tax(request: Request, product_id: str, row: PriceRow) -> None:
    if row.tax_category not in request.tax_rates and (request.tax_status == "taxable" or row.tax_included):
        raise CpqError(
            Code.CONFLICT,
            f"{product_id} is of the tax category {row.tax_category}, which has no rate in the account's tax zone.",
            field="/product_id",
            allowed=sorted(request.tax_rates),
            hint="Add the rate to the tax policy, or correct the category of the price.",
        )
