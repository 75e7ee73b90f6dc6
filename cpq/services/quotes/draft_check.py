"""Check of a draft before pricing: reports every problem at once, each with its field and the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field, nearest, next_call
from cpq.base.late_modules import LateModule
from cpq.domain import configuration, pricing
from cpq.domain.policy.free_text import PREFIX as CLAUSE
from cpq.domain.policy.free_text import ClauseLibrary
from cpq.domain.policy.policy_kinds import VALIDITY_DAYS_MAX
from cpq.domain.pricing import PriceSelection, selling_models, terms
from cpq.domain.pricing import request as pricing_request
from cpq.domain.pricing.request import Request
from cpq.domain.quotes import internal
from cpq.domain.quotes.customer_text import Finding, find_doubt, find_secret
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.services.catalog import repository
from cpq.services.catalog.accounts import missing_account
from cpq.services.catalog.repository import AccountFacts, ProductFacts, model_of
from cpq.services.quotes.other_customers import customer_names

if TYPE_CHECKING:
    from cpq.services.quotes import configuration_repair
else:
    configuration_repair = LateModule("cpq.services.quotes.configuration_repair")

PROBLEMS_MAX = 50
OPTION_SETS_MAX = 20

MONEY_WORDS = frozenset(
    {
        *("price", "unit_price", "list_price", "net_price", "total_price", "amount", "total", "subtotal", "surcharge"),
        *("discount", "discount_pct", "discount_percent", "discount_amount", "rebate"),
        *("cost", "unit_cost", "margin", "margin_pct"),
    }
)
"""Names of attributes by which callers try to set a price."""

CODE_ORDER = (
    Code.VALIDATION_ERROR,
    Code.NOT_FOUND,
    Code.CONFLICT,
    Code.CURRENCY_MISMATCH,
    Code.CONFIGURATION_INVALID,
)
"""The first of several problems, in this order, decides the code of the error."""


class CheckedLine(NamedTuple):
    """The problems of a line, and its options as chosen or by default, if it has any."""

    problems: Sequence[CpqError]
    choices: Mapping[str, str] | None = None


def check_lines(
    draft: Draft, products: Mapping[str, ProductFacts], buyer: AccountFacts | None = None, today: date | None = None
) -> dict[int, CheckedLine]:
    """Checks of all lines that need one, by their place in the draft; what is invalid gets the nearest valid later."""
    simple = {id_ for id_, product in products.items() if _is_simple(product)}
    found: dict[int, CheckedLine] = {}
    repairs = configuration_repair.Repairs(buyer, today)
    for index, line in enumerate(draft.lines):
        if (line.attributes or line.product_id not in simple) and not is_kept(line):
            one = found[index] = _check_line(index, line, products)
            invalid = next((error for error in one.problems if error.code is Code.CONFIGURATION_INVALID), None)
            if invalid is not None:
                invalid.details |= repairs.of(line, products[line.product_id])
    return found


def is_kept(line: DraftLine) -> bool:
    """Whether a line of an agreement stays what was sold: it was checked then, and may be sold to nobody else now."""
    return line.agreed is not None and line.agreed.basis is not None


def fraction_problems(draft: Draft, products: Mapping[str, ProductFacts]) -> list[CpqError]:
    """Lines whose quantity has more decimals than the product's unit takes."""
    problems = []
    for index, line in enumerate(draft.lines):
        if isinstance(line.quantity, int) or line.product_id not in products:
            continue
        product = products[line.product_id]
        takes = 0 if line.ramp else product.quantity_decimals
        if round(line.quantity, takes) != line.quantity:
            message = f"The quantity must be whole for {product.name} ({product.id}), not {line.quantity}."
            if takes:
                message = f"The quantity of {product.name} ({product.id}) has at most {takes} decimals."
            elif line.ramp:
                message = f"The quantity of a line with a ramp must be whole, not {line.quantity}."
            near = [int(line.quantity), int(line.quantity) + 1]
            problems.append(
                CpqError(
                    Code.VALIDATION_ERROR,
                    message,
                    field=f"/line_items/{index}/quantity",
                    allowed=None if takes else [number for number in near if number],
                    decimals=takes,
                )
            )
    return problems


def with_clauses(library: ClauseLibrary, draft: Draft) -> Draft:
    """The draft with the text of each clause that a note names as `clause:ID`; VALIDATION_ERROR for an unknown one."""
    if all(CLAUSE not in note for note in (draft.notes or "", *[line.notes for line in draft.lines if line.notes])):
        return draft
    lines = tuple(
        line._replace(notes=_clause(library, line.notes, f"/line_items/{index}/notes"))
        for index, line in enumerate(draft.lines)
    )
    return replace(draft, notes=_clause(library, draft.notes, "/notes"), lines=lines)


def _clause(library: ClauseLibrary, note: str | None, field: str) -> str | None:
    try:
        return library.text_of(note)
    except KeyError as error:
        known = sorted(library.clauses)
        raise bad_field(
            field,
            f"The clause library has no clause {error.args[0]!r}.",
            allowed=[f"{CLAUSE}{id_}" for id_ in known],
            nearest=nearest(str(error.args[0]), known) or None,
        ) from None


def draft_problems(tx: Tx, draft: Draft, buyer: AccountFacts | None) -> list[CpqError]:
    """The problems of the draft apart from its lines."""
    return [*account_problems(tx, draft.account_id, buyer), *_term_problems(tx, draft), *_set_problems(draft)]


def validity_problems(draft: Draft, today: date) -> list[CpqError]:
    """A last valid day that is over already, or so far off that it must be a mistake."""
    latest = today + timedelta(days=VALIDITY_DAYS_MAX)
    if draft.valid_until is None or today <= draft.valid_until <= latest:
        return []
    is_over = draft.valid_until < today
    return [
        CpqError(
            Code.VALIDATION_ERROR,
            f"valid_until is {draft.valid_until}, which is over already; today is {today}."
            if is_over
            else f"valid_until is {draft.valid_until}, which is more than {VALIDITY_DAYS_MAX:,} days from today.",
            field="/valid_until",
            minimum=today.isoformat(),
            maximum=latest.isoformat(),
            hint="Give a day in this range, or leave valid_until out: then it is the standard of the policies.",
        )
    ]


def rate_problems(
    draft: Draft, products: Mapping[str, ProductFacts], unrated: Mapping[str, CpqError]
) -> list[CpqError]:
    """Lines whose price, or that of a component, should be converted into the quote's currency and cannot be."""
    if not unrated:
        return []
    problems = []
    for index, line in enumerate(draft.lines):
        product = products.get(line.product_id)
        inside = parts_with_prices(product, line.attributes) if product else []
        error = next((unrated[id_] for id_ in (line.product_id, *inside) if id_ in unrated), None)
        if error is not None:
            details = {**error.details, "field": f"/line_items/{index}/product_id"}
            problems.append(CpqError(error.code, error.message, **details))
    return problems


def parts_with_prices(product: ProductFacts, choices: Mapping[str, object]) -> list[str]:
    """The components of a bundle that are charged at their own prices."""
    chosen = repository.chosen_components(product, choices)
    fixed = [part.product_id for part in product.for_pricing.components]
    return [*fixed, *(part.product_id for part in chosen if not part.is_included)]


def text_problems(tx: Tx, draft: Draft, buyer: AccountFacts, products: Mapping[str, ProductFacts]) -> list[CpqError]:
    """Texts that the customer would read and that are not for them; those of the clause library are."""
    free = _free_texts(tx, draft, products)
    found = [(at, find_secret(text, buyer.name, customer_names(tx))) for at, _, text in free]
    return [_not_for_customer(at, secret) for at, secret in found if secret]


def with_doubts(tx: Tx, draft: Draft, buyer: AccountFacts, products: Mapping[str, ProductFacts]) -> Draft:
    """The draft with a mark for review at each text with a word that may be another customer's name."""
    free = _free_texts(tx, draft, products)
    custom = {line.product_id for line in draft.custom_lines}
    known = [product.name for id_, product in products.items() if id_ not in custom] if free else []
    usual = {word for name in known for word in name.casefold().split()}
    marks: dict[int | None, list[str]] = {}
    for _, number, text in free:
        word = find_doubt(text, buyer.name, customer_names(tx), usual)
        if word:
            marks.setdefault(number, []).append(
                f"The customer reads {word!r}, which begins the name of another customer."
            )
    if not marks:
        return draft
    lines = tuple(
        line._replace(internal=internal.marked(line.internal, marks.get(line.number, ()))) for line in draft.lines
    )
    return replace(draft, lines=lines, internal=internal.marked(draft.internal, marks.get(None, ())))


def _free_texts(tx: Tx, draft: Draft, products: Mapping[str, ProductFacts]) -> list[tuple[str, int | None, str]]:
    """The texts for the customer that are not from the clause library: their places, lines and words."""
    texts: list[tuple[str, int | None, str]] = [
        ("/notes", None, draft.notes or ""),
        ("/payment_terms", None, "" if _is_code(draft.payment_terms or "") else draft.payment_terms or ""),
        ("/deal_id", None, draft.deal_id or ""),
    ]
    for index, line in enumerate(draft.lines):
        if not (line.notes or line.option_set or line.attributes or line.special):
            continue
        at, number = f"/line_items/{index}", line.number
        texts += [(f"{at}/notes", number, line.notes or ""), (f"{at}/option_set", number, line.option_set or "")]
        if line.custom:
            texts += [(f"{at}/custom/{name}", number, str(value)) for name, value in line.custom.given.items()]
        product = products.get(line.product_id)
        written = product.free_values(line.attributes) if product else line.attributes
        texts += [(f"{at}/attributes/{name}", number, f"{name}\n{value}") for name, value in written.items()]
    free = [(at, number, "\n".join(tx.policies.library.free_lines(text))) for at, number, text in texts if text]
    return [one for one in free if one[2]]


def _is_code(text: str) -> bool:
    """Whether it is a word such as `net_30`, which names nobody."""
    return text.islower() and text.isascii() and text.replace("_", "").isalnum() and len(text) < 16


def _not_for_customer(at: str, secret: Finding) -> CpqError:
    if secret.is_remark:
        message = f"The customer would read {secret.words!r}, which is for the seller."
        hint = "Put remarks into internal_notes, what a person must look at into review, and origins into sources."
    else:
        message = f"The customer would read {secret.words!r}, which is the name of another customer."
        hint = (
            "Leave the name out, or put it into internal_notes. A reference that may be named belongs into the "
            "clause library."
        )
    return CpqError(Code.VALIDATION_ERROR, message, field=at, found=secret.words, hint=hint)


def account_problems(tx: Tx, account_id: str, buyer: AccountFacts | None) -> list[CpqError]:
    """An account that does not exist, is not active, or has no taxes."""
    if buyer is None:
        return [missing_account(tx, account_id)]
    if not buyer.active:
        return [CpqError(Code.CONFLICT, f"Account {buyer.id!r} is not active.", field="/account_id")]
    if buyer.tax_status == "taxable" and not tx.policies.tax_rates(buyer.tax_zone):
        return [
            CpqError(
                Code.CONFLICT,
                f"Account {buyer.id!r} is in the tax zone {buyer.tax_zone!r}, which tax.yaml does not name.",
                field="/account_id",
                nearest=nearest(buyer.tax_zone, sorted(tx.policies.tax)) or None,
                hint="Correct the account's tax_zone, or add the zone with its rates to tax.yaml.",
            )
        ]
    return []


def _term_problems(tx: Tx, draft: Draft) -> list[CpqError]:
    problems = [
        CpqError(
            Code.VALIDATION_ERROR,
            f"The months of a ramp add up to term_months ({draft.months_of(line) or 'not given'}).",
            field=f"/line_items/{index}/ramp",
            expected=draft.months_of(line),
            actual=sum(segment.months for segment in line.ramp),
        )
        for index, line in enumerate(draft.lines)
        if line.ramp and sum(segment.months for segment in line.ramp) != draft.months_of(line)
    ]
    return [*problems, *_quantity_problems(draft), *_end_problems(tx, draft)]


def _quantity_problems(draft: Draft) -> list[CpqError]:
    """The quantity of a line with a ramp must be that of its largest stretch."""
    largest = [pricing_request.largest_quantity(line.quantity, line.ramp) for line in draft.lines]
    return [
        CpqError(
            Code.VALIDATION_ERROR,
            f"The quantity of a line with a ramp is that of its largest stretch, {most:,}, not {line.quantity:,}.",
            field=f"/line_items/{index}/quantity",
            expected=most,
            actual=line.quantity,
            hint=f"Give {most} as quantity, and give each smaller stretch its own quantity.",
        )
        for index, (line, most) in enumerate(zip(draft.lines, largest, strict=True))
        if line.quantity != most
    ]


def _set_problems(draft: Draft) -> list[CpqError]:
    """Option sets are limited because each is priced and stored with all lines that the sets share."""
    names = draft.option_sets
    if len(names) <= OPTION_SETS_MAX:
        return []
    index = next(index for index, line in enumerate(draft.lines) if line.option_set == names[OPTION_SETS_MAX])
    return [
        CpqError(
            Code.VALIDATION_ERROR,
            f"A quote has at most {OPTION_SETS_MAX} option sets, not {len(names)}.",
            field=f"/line_items/{index}/option_set",
            maximum=OPTION_SETS_MAX,
        )
    ]


def _end_problems(tx: Tx, draft: Draft) -> list[CpqError]:
    if draft.end_date is None:
        return []
    if draft.term_months is not None or draft.start_date is None or draft.end_date < draft.start_date:
        return [
            CpqError(
                Code.VALIDATION_ERROR,
                "end_date needs a start_date on or before it, and replaces term_months.",
                field="/end_date",
            )
        ]
    end = draft.end_date + timedelta(days=1)
    if tx.policies.terms.part_periods != "whole_months" or terms.is_whole(draft.start_date, end):
        return []  # Whole weeks are for weekly prices; the pricer refuses them for others.
    whole = terms.whole_months(draft.start_date, end)
    return [
        CpqError(
            Code.VALIDATION_ERROR,
            "The term is not a whole number of months, which terms.yaml requires.",
            field="/end_date",
            allowed=[terms.last_day(draft.start_date, months).isoformat() for months in (whole, whole + 1) if months],
        )
    ]


def _is_simple(product: ProductFacts) -> bool:
    """Whether a line that only gives a quantity of this product needs no check."""
    return product.active and not product.options and all(part.kind != "component" for part in product.relations)


def _check_line(index: int, line: DraftLine, products: Mapping[str, ProductFacts]) -> CheckedLine:
    at = f"/line_items/{index}"
    product = products.get(line.product_id)
    if product is None:
        return CheckedLine([_unknown_product(at, line.product_id)])
    checked = model_of(product).check(line.attributes)
    problems = [
        *_money_problems(at, line, product),
        *_sale_problems(at, line, product, products),
        *_option_problems(at, product, checked),
    ]
    if not product.options:
        return CheckedLine(problems)
    return CheckedLine(problems, {name: configuration.spelled(value) for name, value in checked.choices.items()})


def _unknown_product(at: str, product_id: str) -> CpqError:
    return CpqError(
        Code.NOT_FOUND,
        f"There is no product {product_id!r}.",
        field=f"{at}/product_id",
        next_call=next_call("catalog_search", query=product_id[:64]),
    )


def _money_problems(at: str, line: DraftLine, product: ProductFacts) -> list[CpqError]:
    """Attributes that look like money: they would be stored as notes and change no price."""
    options = {option["name"] for option in product.options}
    return [
        CpqError(
            Code.VALIDATION_ERROR,
            f"{name!r} looks like money, but {product.id} has no such option, so it would change no price.",
            field=f"{at}/attributes/{name}",
            hint="Give a discount as discount_pct of the line; prices and costs come from the catalogue.",
        )
        for name in line.attributes
        if name not in options and name.lower().replace("-", "_").replace(" ", "_") in MONEY_WORDS
    ]


def _sale_problems(
    at: str, line: DraftLine, product: ProductFacts, products: Mapping[str, ProductFacts]
) -> list[CpqError]:
    """Problems of a product, or of its parts, that are no longer sold."""
    search = next_call("catalog_search", category=product.category)
    problems = [
        CpqError(
            Code.CONFLICT,
            f"{product.name} ({product.id}) contains {part.id}, which is no longer sold.",
            field=f"{at}/product_id",
            next_call=search,
        )
        for part in repository.all_parts(product, products, line.attributes)
        if not part.active
    ]
    problems += [
        CpqError(
            Code.CONFLICT,
            f"{product.name} ({product.id}) contains {part.id}, whose components a buyer chooses.",
            field=f"{at}/product_id",
            hint=f"Declare the groups of {part.id} within {product.id}, or sell it on a line of its own.",
        )
        for part in repository.all_parts(product, products, line.attributes)
        if part.choosable
    ]
    if not product.active:
        substitute = next((r.product_id for r in product.relations if r.kind == "substitute"), None)
        problems.append(
            CpqError(
                Code.CONFLICT,
                f"{product.name} ({product.id}) is no longer sold.",
                field=f"{at}/product_id",
                next_call=next_call("catalog_get", product_id=substitute) if substitute else search,
            )
        )
    return problems


def _option_problems(at: str, product: ProductFacts, checked: configuration.Checked) -> list[CpqError]:
    return [
        CpqError(
            Code.CONFIGURATION_INVALID,
            problem.message,
            field=f"{at}/attributes" + (f"/{problem.option}" if problem.option else ""),
            **{name: value for name, value in problem.details().items() if name not in ("message", "option")},
            next_call=next_call("catalog_get", product_id=product.id, include_relationships=True),
        )
        for problem in checked.problems
    ]


def pick_models(
    draft: Draft, request: Request, selection: PriceSelection, products: Mapping[str, ProductFacts]
) -> tuple[Request, list[CpqError]]:
    """The request with the selling model of each line, and the lines that must say which one they mean."""
    known = request.products
    several = {id_ for id_ in known if not selection.is_in_one_way(id_)}
    asked = {
        index
        for index, line in enumerate(draft.lines)
        if line.selling_model and line.product_id in known and not is_kept(line)
    }
    if not several and not asked:
        return request, []
    lines, problems = list(request.lines), []
    for index, line in enumerate(draft.lines):
        if line.product_id not in known or is_kept(line):
            continue
        inside = (*known[line.product_id].components, *lines[index].charged)
        parts = [part.product_id for part in inside if part.product_id in several]
        if index not in asked and line.product_id not in several and not parts:
            continue
        try:
            default = products[line.product_id].default_selling_model
            model = selling_models.pick(selection, line.product_id, line.selling_model, default)
            charged = selection.of(line.product_id, model).charged
            named = charged.selling_model if charged else ""
            models = {
                id_: selling_models.pick_part(selection, id_, named, products[id_].default_selling_model)
                for id_ in parts
            }
        except CpqError as error:
            field = f"/line_items/{index}{error.details['field']}"
            problems.append(CpqError(error.code, error.message, **{**error.details, "field": field}))
        else:
            lines[index] = lines[index]._replace(selling_model=model, part_models=models)
    return request._replace(lines=tuple(lines)), problems


def unpriceable(tx: Tx, draft: Draft, request: Request, selection: PriceSelection) -> list[CpqError]:
    """Every reason why lines cannot be priced, for all option sets at once."""
    lacking = _lacking(request, selection)
    return [*_unpriced(tx, draft, lacking), *_refused_lines(draft, _without(request, lacking), selection)]


def _lacking(request: Request, selection: PriceSelection) -> dict[str, str]:
    """Lines without a price in the quote's currency; the value names the product or component that lacks one."""
    lacking: dict[str, str] = {}
    for line in request.lines:
        product = request.products.get(line.price_key)
        inside = (*product.components, *line.charged) if product else ()
        for part in (line.price_key, *(component.product_id for component in inside)) if product else ():
            if part not in request.products or selection.of(part).charged is None:
                lacking.setdefault(line.id, part)
    return lacking


def _without(request: Request, lacking: Mapping[str, str]) -> Request:
    """The lines that the pricer can take."""
    lines = [line for line in request.lines if line.price_key in request.products and line.id not in lacking]
    return request._replace(lines=tuple(lines))


def _refused_lines(draft: Draft, request: Request, selection: PriceSelection) -> list[CpqError]:
    """The pricer's problems with single lines, each at its place in the draft."""
    places = {str(line.number): index for index, line in enumerate(draft.lines)}
    problems = []
    for error in pricing.refusals(request, selection):
        at = f"/line_items/{places[str(error.details['line'])]}{error.details['field']}"
        details = {name: value for name, value in error.details.items() if name != "line"}
        problems.append(CpqError(error.code, error.message, **{**details, "field": at}))
    return problems


def _unpriced(tx: Tx, draft: Draft, lacking: Mapping[str, str]) -> list[CpqError]:
    """Lines whose product, or a component of it, has no price in the quote's currency: an error, never 0."""
    if not lacking:
        return []
    known = repository.currencies_of(tx, set(lacking.values()))
    return [
        CpqError(
            Code.CURRENCY_MISMATCH,
            f"{lacking[str(line.number)]} has no price in {draft.currency} that is valid today for this account.",
            field=f"/line_items/{index}/product_id",
            currency=draft.currency,
            allowed=known.get(lacking[str(line.number)], []),
            next_call=next_call("catalog_get", product_id=lacking[str(line.number)]),
        )
        for index, line in enumerate(draft.lines)
        if str(line.number) in lacking
    ]


def refuse(problems: Sequence[CpqError], most: int = PROBLEMS_MAX) -> None:
    """Raise one error that lists all problems; nothing was stored yet."""
    if not problems:
        return
    ordered = sorted(problems, key=lambda problem: CODE_ORDER.index(problem.code))
    first = ordered[0]
    more = f" (and {len(ordered) - 1} more)" if len(ordered) > 1 else ""
    listed = [{"code": problem.code.value, "message": problem.message, **problem.details} for problem in ordered[:most]]
    raise CpqError(first.code, first.message + more, **{**first.details, "problems": listed})
