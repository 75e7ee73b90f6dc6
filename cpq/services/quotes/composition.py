"""Composition of a quote from a draft: gathers the facts, checks all of them at once, prices every option set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base import traces
from cpq.base.errors import CpqError, bad_field
from cpq.base.late_modules import LateModule
from cpq.base.money import to_micro
from cpq.base.text import canonical_json, digest, plain_json
from cpq.domain import billing_periods, pricing
from cpq.domain.policy.facts import LineInputs
from cpq.domain.policy.policy_kinds import TaxCode
from cpq.domain.policy.policy_set import Terms, tax_code
from cpq.domain.pricing import PriceSelection
from cpq.domain.pricing import request as pricing_request
from cpq.domain.pricing import result as pricing_result
from cpq.domain.pricing.rate_cards import RateCard, rate_cards
from cpq.domain.pricing.request import EDITION, Adjustment, ChosenComponent, Line, PriceRow, Product, Request, Tax
from cpq.domain.pricing.result import PricedLine, PricedQuote
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.domain.quotes.lifecycle import end_of_day, local_day
from cpq.domain.quotes.ramp_dates import with_months
from cpq.domain.quotes.special_check import special_problems
from cpq.domain.quotes.special_terms import CUSTOM, SpecialTerms
from cpq.domain.quotes.usage_check import usage_problems
from cpq.services.catalog import repository
from cpq.services.catalog.conversions import with_derived_prices
from cpq.services.catalog.repository import AccountFacts, Facts, ProductFacts
from cpq.services.quotes.agreement_prices import kept_products, with_agreed_prices, without_contract
from cpq.services.quotes.draft_check import (
    PROBLEMS_MAX,
    check_lines,
    draft_problems,
    fraction_problems,
    parts_with_prices,
    pick_models,
    rate_problems,
    refuse,
    text_problems,
    unpriceable,
    validity_problems,
    with_clauses,
    with_doubts,
)
from cpq.services.quotes.policy_facts import line_inputs, payment_terms_of, quote_inputs
from cpq.storage.columns import JsonText

if TYPE_CHECKING:
    from cpq.services.quotes import cross_lines, owned_products
else:
    cross_lines = LateModule("cpq.services.quotes.cross_lines")
    owned_products = LateModule("cpq.services.quotes.owned_products")


@dataclass(frozen=True)
class PricedSet:
    """One option set, or the whole quote when it has none: the pricer's request and result."""

    name: str
    request: Request
    priced: PricedQuote
    request_json: JsonText
    result_json: JsonText


@dataclass(frozen=True)
class Composition:
    """A draft with its facts, prices and hashes."""

    draft: Draft
    buyer: AccountFacts
    products: Mapping[str, ProductFacts]
    sets: tuple[PricedSet, ...]
    """The selected option set first."""
    payment_terms: str
    end_date: date | None
    valid_until: date
    expires_at: datetime
    hashes: Mapping[str, str]
    warnings: tuple[str, ...]
    selling_models: Mapping[int, str]
    """The model of each line's price, by its number."""

    @property
    def priced(self) -> PricedQuote:
        return self.sets[0].priced

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_of(one.priced for one in self.sets)

    @cached_property
    def rate_cards(self) -> Mapping[int, RateCard]:
        """By line number, of the lines that are charged by their use."""
        found: dict[int, RateCard] = {}
        for one in self.sets:
            for id_, card in rate_cards(one.request).items():
                found.setdefault(int(id_), card)
        return found

    @cached_property
    def components(self) -> Mapping[int, list[dict[str, object]]]:
        """By line number, what the buyer chose for each piece of a bundle."""
        found: dict[int, list[dict[str, object]]] = {}
        for line in chain.from_iterable(one.request.lines for one in self.sets):
            if line.chosen:
                found[int(line.id)] = [self._component(part) for part in line.chosen]
        return found

    def _component(self, part: ChosenComponent) -> dict[str, object]:
        id_ = part.product_id.partition("@")[0]  # A line of an agreement has prices of its own for it.
        name = self.products[id_].name if id_ in self.products else id_
        return {"product_id": id_, "name": name, "quantity": part.quantity, "included": part.is_included}

    @cached_property
    def priced_lines(self) -> Mapping[int, PricedLine]:
        """Every line's price by its number: from the selected set if the line is in it, else from its own set."""
        found: dict[int, PricedLine] = {}
        for one in self.sets:
            for line in one.priced.lines:
                found.setdefault(int(line.id), line)
        return found


def compose(
    tx: Tx,
    draft: Draft,
    *,
    problems_max: int = PROBLEMS_MAX,
    is_written: bool = False,
    stored_day: date | None = None,
) -> Composition:
    """Look everything up and price it; CpqError lists every problem at once.

    Texts that are written now are checked for what is not the customer's; stored ones when they are sent. `stored_day`
    is the last valid day that was asked for before: once it is over, the policies decide again.
    """
    draft, undated = with_months(with_custom_ids(with_clauses(tx.policies.library, draft)))
    buyer, products, rules = gather(tx, draft)
    if any(line.product_id not in products for line in draft.lines):
        draft = by_id(tx, draft, products)
        buyer, products, rules = gather(tx, draft)
    checked = check_lines(draft, products, buyer, local_day(tx.now, buyer.time_zone) if buyer else None)
    problems = [*undated, *draft_problems(tx, draft, buyer)]
    problems += chain.from_iterable(one.problems for one in checked.values())
    problems += [*fraction_problems(draft, products), *special_problems(draft, tx.policies.terms.part_periods)]
    choices = {index: one.choices for index, one in checked.items() if one.choices is not None}
    if buyer is None:
        refuse(problems)
        raise AssertionError
    if is_written:
        problems += text_problems(tx, draft, buyer, products)
        draft = with_doubts(tx, draft, buyer, products)
    today = local_day(tx.now, buyer.time_zone)
    is_over = stored_day is not None and stored_day == draft.valid_until and stored_day < today
    valid_until = None if is_over else draft.valid_until
    draft = replace(draft, currency=draft.currency or buyer.currency, valid_until=valid_until)
    problems += validity_problems(draft, today)
    products, unrated = with_derived_prices(tx.policies.terms, buyer, products, draft.currency, today)
    problems += [*rate_problems(draft, products, unrated), *_untaxed_items(tx, draft, buyer)]
    request = _request(tx, draft, buyer, products, choices)
    selection = PriceSelection(request)
    request, unclear = pick_models(draft, request, selection, products)
    problems += [*unclear, *usage_problems(draft, request, selection)]
    if problems := problems or _counted_twice(tx, draft, request, selection):
        refuse([*problems, *unpriceable(tx, draft, request, selection)], problems_max)
    request = _with_adjustments(tx, draft, request, selection, buyer, products)
    try:
        sets = tuple(_price(name, request, selection, draft) for name in in_order(draft))
    except CpqError:
        refuse(unpriceable(tx, draft, request, selection), problems_max)
        raise
    valid_until = draft.valid_until or today + timedelta(days=tx.policies.terms.validity_days)
    return Composition(
        draft=draft,
        buyer=buyer,
        products=products,
        sets=sets,
        payment_terms=payment_terms_of(tx, draft),
        end_date=draft.last_day,
        valid_until=valid_until,
        expires_at=end_of_day(valid_until, buyer.time_zone),
        hashes=_hashes(tx, buyer, products, sets),
        warnings=(
            *_broken(tx, draft, Facts(buyer, products, rules)),
            *cross_lines.advised(draft, products, rules),
            *_foreign_currency(draft, buyer),
            *([f"The last valid day {stored_day} is over; now it is {valid_until}, as usual."] if is_over else []),
            *_ending_prices(draft, request, products, selection, valid_until),
            *_ending_rate(tx.policies.terms, draft.currency, valid_until),
            *_not_in_total(draft, sets),
        ),
        selling_models=_selling_models(request, selection),
    )


def _untaxed_items(tx: Tx, draft: Draft, buyer: AccountFacts) -> list[CpqError]:
    """Items of no catalogue whose tax category has no rate where the account is."""
    if not draft.custom_lines or buyer.tax_status != "taxable":
        return []
    known = sorted(tx.policies.tax_rates(buyer.tax_zone))
    return [
        bad_field(
            f"/line_items/{index}/custom/tax_category",
            f"The tax category {line.custom.tax_category} has no rate in the account's tax zone.",
            allowed=known,
        )
        for index, line in enumerate(draft.lines)
        if line.custom and line.custom.tax_category and line.custom.tax_category not in known
    ]


def _counted_twice(tx: Tx, draft: Draft, request: Request, selection: PriceSelection) -> list[CpqError]:
    """Use that would be counted by two lines of what is owned after a change."""
    if draft.agreement is None:
        return []
    charged = {line.id: selection.of(line.price_key, line.selling_model).charged for line in request.lines}
    models = {int(id_): row.selling_model for id_, row in charged.items() if row}
    return list(owned_products.counted_twice(tx, draft, models))


def _broken(tx: Tx, draft: Draft, facts: Facts) -> tuple[str, ...]:
    """What the products of the quote, or of what is owned after a change, require or exclude."""
    if draft.agreement:
        return owned_products.broken_by_change(tx, draft)
    return cross_lines.broken(draft, facts.products, facts.rules)


def _selling_models(request: Request, selection: PriceSelection) -> dict[int, str]:
    """By line number; of a line that picked none, the only one of its product."""
    found: dict[int, str] = {}
    only: dict[str, str] = {}
    for line in request.lines:
        model = line.selling_model
        if not model:
            key = line.priced_as or line.product_id
            if key not in only:
                charged = selection.of(key).charged
                assert charged is not None, "it was priced"
                only[key] = charged.selling_model
            model = only[key]
        found[int(line.id)] = model
    return found


def gather(tx: Tx, draft: Draft) -> Facts:
    """The account and the products that a draft names, with the components of bundles and custom items."""
    custom = draft.custom_lines
    ids = {line.product_id for line in draft.lines} - {line.product_id for line in custom}
    found = repository.gather(tx, ids, account_id=draft.account_id, currency=draft.currency)
    if any(product.choosable for product in found.products.values()):
        found = found._replace(products=_with_chosen_parts(draft, found.products))
    if draft.agreement:
        listed = {line.product_id for line in draft.lines if line.agreed and line.agreed.ignores_contract}
        kept = without_contract(found.products, listed) | kept_products(draft, found.products)
        found = found._replace(products=kept)
    if not custom:
        return found
    book = found.buyer.price_books[0] if found.buyer else ""
    return found._replace(products=found.products | {line.product_id: custom_product(line, book) for line in custom})


def _with_chosen_parts(draft: Draft, products: Mapping[str, ProductFacts]) -> dict[str, ProductFacts]:
    """The products of the lines, and of their components only those that bundles have or their buyer chose."""
    needed: dict[str, ProductFacts] = {}
    for line in draft.lines:
        if product := products.get(line.product_id):
            inside = repository.all_parts(product, products, line.attributes)
            needed |= {one.id: one for one in (product, *inside)}
    return {id_: product for id_, product in products.items() if id_ in needed}


def custom_product(line: DraftLine, price_book: str) -> ProductFacts:
    """An item of no catalogue, as if it were a product with this one price."""
    item, special = line.custom, line.special
    assert item is not None
    assert special is not None
    row = PriceRow(CUSTOM, special.unit_price or 0, price_book, cost=item.cost)
    if item.tax_category:
        row = row._replace(tax_category=item.tax_category)
    return ProductFacts(
        id=line.product_id,
        sku="",
        name=item.name,
        names={},
        product_type="simple",
        category=item.category or CUSTOM,
        active=True,
        attributes={},
        options=[],
        rules={},
        bundle=None,
        content_hash=digest([canonical_json(special.stored)]),
        default_selling_model=None,
        quantity_decimals=3,
        relations=(),
        parts=(),
        for_pricing=Product((row,)),
    )


def with_custom_ids(draft: Draft) -> Draft:
    """The draft with an id of its own for each item of no catalogue."""
    if not draft.custom_lines:
        return draft
    lines = (line._replace(product_id=f"{CUSTOM}:{line.number}") if line.custom else line for line in draft.lines)
    return replace(draft, lines=tuple(lines))


def by_id(tx: Tx, draft: Draft, products: Mapping[str, ProductFacts]) -> Draft:
    """The draft with product ids where it names products by their SKU."""
    ids = repository.ids_by_sku(tx, {line.product_id for line in draft.lines if line.product_id not in products})
    lines = tuple(line._replace(product_id=ids.get(line.product_id, line.product_id)) for line in draft.lines)
    return replace(draft, lines=lines)


def fingerprint_of(results: Iterable[PricedQuote]) -> str:
    """Hash of the prices without costs: customers see it, and with costs in it they could test guesses of a cost."""
    return digest(plain_json(pricing_result.shown(result)) for result in results)


def _foreign_currency(draft: Draft, buyer: AccountFacts) -> Iterator[str]:
    if draft.currency != buyer.currency:
        yield f"The quote is in {draft.currency}, but the account {buyer.id} buys in {buyer.currency}."


def _ending_prices(
    draft: Draft,
    request: Request,
    products: Mapping[str, ProductFacts],
    selection: PriceSelection,
    valid_until: date,
) -> Iterator[str]:
    """The prices that end before the quote does: who accepts it later gets a price that is no longer valid."""
    last_day = valid_until.isoformat()
    ends = [row.valid_to for product in request.products.values() for row in product.rows if row.valid_to]
    if not ends or min(ends) >= last_day:
        return
    asked = {str(line.number): line.attributes for line in draft.lines}
    parts: dict[tuple[str, str], None] = {}
    for line in request.lines:
        if line.priced_as:
            continue  # A price that was sold does not end.
        inside = parts_with_prices(products[line.product_id], asked[line.id])
        parts[line.product_id, line.selling_model] = None
        parts |= dict.fromkeys((id_, line.part_models.get(id_, "")) for id_ in inside)
    for id_, model in parts:
        row = selection.of(id_, model).charged
        if row is not None and row.valid_to and row.valid_to < last_day:
            kind = "contracted price" if row.account_id else "price"
            yield (
                f"The {kind} of {products[id_].name} ({id_}) ends on {row.valid_to},"
                f" and the quote is valid until {last_day}."
            )


def _ending_rate(terms: Terms, currency: str, valid_until: date) -> Iterator[str]:
    """The rate that values a foreign currency for the policies, if it ends before the quote does."""
    ends = terms.rates_valid_until
    if ends and ends < valid_until.isoformat() and currency != terms.currency and currency in terms.rates:
        yield (
            f"The policies value {currency} in {terms.currency} at a rate that ends on {ends},"
            f" and the quote is valid until {valid_until}."
        )


def _not_in_total(draft: Draft, sets: Sequence[PricedSet]) -> Iterator[str]:
    """Lines that are charged by their use and commit to nothing, so that nothing for them is in the total."""
    open_lines: dict[str, RateCard] = {}
    for one in sets:
        open_lines |= {id_: card for id_, card in rate_cards(one.request).items() if not card.committed}
    for line in draft.lines:
        if card := open_lines.get(str(line.number)):
            noun = billing_periods.noun(card.billing_period)
            yield (
                f"Line {line.number}: the use of {line.product_id} is billed by its rate card for each {noun}; "
                "nothing for it is in the total."
            )


def in_order(draft: Draft) -> list[str]:
    """The names of the option sets, the selected one first, in which they are priced and hashed."""
    names = draft.option_sets or [""]
    first = draft.option_set if draft.option_set in names else names[0]
    return [first, *(name for name in names if name != first)]


def _price(name: str, request: Request, selection: PriceSelection, draft: Draft) -> PricedSet:
    if name:
        inside = {str(line.number) for line in draft.lines if line.option_set in (None, name)}
        lines = tuple(line for line in request.lines if line.id in inside)
        named = {line.price_key for line in lines}
        named |= {part.product_id for id_ in named for part in request.products[id_].components}
        named |= {part.product_id for line in lines for part in line.charged}
        products = {id_: product for id_, product in request.products.items() if id_ in named}
        request = request._replace(lines=lines, products=products)
    with traces.span("price", lines=len(request.lines)):
        priced = pricing.price(request, selection)
    return PricedSet(
        name,
        request,
        priced,
        JsonText(plain_json(pricing_request.dump(request))),
        JsonText(plain_json(pricing_result.dump(priced))),
    )


def _request(
    tx: Tx,
    draft: Draft,
    buyer: AccountFacts,
    products: Mapping[str, ProductFacts],
    choices: Mapping[int, Mapping[str, str]],
) -> Request:
    terms_ = tx.policies.terms
    request = Request(
        currency=draft.currency,
        as_of=local_day(tx.now, buyer.time_zone).isoformat(),
        lines=tuple(_line(index, line, draft, choices, products) for index, line in enumerate(draft.lines)),
        products={id_: product.for_pricing for id_, product in products.items()},
        price_books=buyer.price_books,
        **_taxes(tx, buyer, [product.for_pricing for product in products.values()]),
        tax_status=buyer.tax_status,
        tax_note=buyer.tax_note,
        term_months=draft.term_months,
        starts_on=draft.start_date.isoformat() if draft.start_date else None,
        ends_on=draft.end_date.isoformat() if draft.end_date else None,
        requested_discount=draft.requested_discount,
        requested_amount=draft.requested_amount,
        rounding=terms_.rounding.value,
        tax_rounding=terms_.tax_rounding.value,
        part_periods=terms_.part_periods.value,
        edition=EDITION,
    )
    if draft.agreement is None:
        return request
    request = with_agreed_prices(tx, draft, request, buyer)
    return request._replace(**_taxes(tx, buyer, request.products.values()))


def _line(
    index: int,
    line: DraftLine,
    draft: Draft,
    choices: Mapping[int, Mapping[str, str]],
    products: Mapping[str, ProductFacts],
) -> Line:
    given = choices.get(index, {})
    plain = Line(str(line.number), line.product_id, line.quantity, line.discount_pct, given, line.ramp)
    product = products.get(line.product_id)
    if product is not None and product.choosable:
        plain = plain._replace(chosen=repository.chosen_components(product, line.attributes))
    if line.special is None:
        return plain
    term = line.special.term_within(draft.start_date, draft.term_months, draft.last_day)
    if is_like_quote(line.special, draft):
        term = None
    price = None if line.custom else line.special.unit_price
    usage = line.special.usage
    return plain._replace(override=price, amount_off=line.special.discount_amount, term=term, usage=usage)


def is_like_quote(own: SpecialTerms, draft: Draft) -> bool:
    """Whether the dates of a line are those of the quote, only spelt out."""
    return (
        own.start_date in (None, draft.start_date)
        and own.term_months in (None, draft.term_months)
        and own.end_date in (None, draft.last_day)
    )


class _Taxes(TypedDict):
    """By tax category; the fields of the request."""

    tax_rates: dict[str, int]
    tax_codes: dict[str, str]
    tax_reasons: dict[str, str]
    taxes: dict[str, tuple[Tax, ...]]


def _taxes(tx: Tx, buyer: AccountFacts, products: Iterable[Product]) -> _Taxes:
    """The known tax rates and codes. A missing one matters only if the chosen price needs it."""
    categories = sorted({row.tax_category for product in products for row in product.rows})
    known = tx.policies.tax_rates(buyer.tax_zone)
    coded = [(one, tax_code(known.get(one), buyer.tax_status, buyer.tax_note)) for one in categories]
    return {
        # All decimals of several taxes together would be too many; `taxes` are exact.
        "tax_rates": {one: to_micro(round(known[one].rate, 6)) for one in categories if one in known},
        "tax_codes": {one: found[0].value for one, found in coded if found},
        "tax_reasons": {one: found[1] for one, found in coded if found and found[1]},
        "taxes": {
            one: tuple(
                Tax(part.name, TaxCode.of(part.rate).value, to_micro(part.rate), part.on_top_of) for part in parts
            )
            for one in categories
            if one in known and (parts := known[one].parts)
        },
    }


def _with_adjustments(
    tx: Tx,
    draft: Draft,
    request: Request,
    selection: PriceSelection,
    buyer: AccountFacts,
    products: Mapping[str, ProductFacts],
) -> Request:
    """The adjustments of each line by the pricing rules, from facts that are known before pricing."""
    environment = tx.policies.environment(quote_inputs(draft, buyer, payment_terms=payment_terms_of(tx, draft)))
    rules = tx.policies.pricing_within(environment)
    if not rules:
        return request
    lines = []
    for line, asked in zip(request.lines, draft.lines, strict=True):
        if line.priced_as:
            lines.append(line)
            continue
        row = selection.of(line.product_id, line.selling_model).charged
        # The pricer refuses a line without a price; that of a custom item was typed in and stays as it is.
        inputs = (
            row
            and not (asked.special and asked.custom)
            and LineInputs(**line_inputs(asked, products, row.billing_period, is_usage=row.is_usage))
        )
        found = inputs and tx.policies.adjustments_within(environment, inputs, rules)
        if not found:
            lines.append(line)
            continue
        adjustments = tuple(
            # The rules write a reduction as a negative number, the pricer takes it as a positive one.
            Adjustment(a.rule_id, a.kind, to_micro(a.value if a.kind == "markup" else -a.value), a.base, a.stacking)
            for a in found
        )
        lines.append(line._replace(adjustments=adjustments))
    return request._replace(lines=tuple(lines))


def _hashes(
    tx: Tx, buyer: AccountFacts, products: Mapping[str, ProductFacts], sets: Sequence[PricedSet]
) -> dict[str, str]:
    """Hashes of everything the price depends on, and of the price itself."""
    catalog = [buyer.content_hash, *(products[id_].content_hash for id_ in sorted(products))]
    return {
        "catalog": digest(catalog),
        "policies": tx.policies.content_hash,
        "request": digest(one.request_json for one in sets),
        "result": digest(one.result_json for one in sets),
    }
