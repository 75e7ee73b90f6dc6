"""Views of a product's configuration: whether choices are valid, why not, the nearest valid ones, what is possible."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.described import Described
from cpq.base.errors import Code, CpqError, bad_field, nearest, next_call
from cpq.base.money import Amount, amount
from cpq.domain.configuration import Checked, Model
from cpq.domain.configuration.options import Scalar
from cpq.domain.configuration.solver import Configurator, Conflict, Domain, Goal, Possibility, Suggestion, Suggestions
from cpq.domain.quotes.draft import OWN_CURRENCY, Draft, DraftLine
from cpq.domain.quotes.lifecycle import local_day
from cpq.services.catalog import repository
from cpq.services.catalog.accounts import missing_account
from cpq.services.catalog.configurators import Surcharges, configurator_of, model_hash, surcharges_of
from cpq.services.catalog.repository import ProductFacts
from cpq.services.quotes.composition import compose
from cpq.services.quotes.quote_check import Companion, companions

ALTERNATIVES = 3
SHOWN_OPTIONS_MAX = 60
"""More options than this are shown only where they are asked for: each costs time and space."""


class ChangedOption(TypedDict):
    option: str
    before: Any
    after: Annotated[Any, Described("null: leave it out.")]


class ConfiguredPrice(TypedDict):
    currency: str
    quantity: Amount
    unit_price: Annotated[Amount, Described("Before discounts, for one billing period.")]
    subtotal: Amount
    selling_model: str


class ConfiguredProduct(TypedDict):
    attributes: Annotated[dict[str, Any], Described("Send these as `attributes` of the line.")]
    configuration: Annotated[dict[str, Any], Described("Every option with its value, defaults included.")]
    changes: list[ChangedOption]
    added: Annotated[list[str], Described("Options that you left open and that cannot keep their default.")]
    needs: Annotated[list[str], Described("Texts that only the customer can give.")]
    advice: Annotated[list[str], Described("Recommendations that it does not follow.")]
    price: ConfiguredPrice | None


class ConflictView(TypedDict):
    message: str
    choices: dict[str, Any]
    rules: list[str]


class ExcludedValues(TypedDict):
    values: Annotated[list[Any], Described("A range of numbers is [first, last].")]
    possibility: Annotated[str, Described("`after_change` (change the options in `instead`), `never` or `unknown`.")]
    why: Annotated[str | None, Described("null: not asked. Name the option in `options` for its reasons.")]
    instead: list[str]


class OptionView(TypedDict):
    option: str
    label: str | None
    chosen: Any
    possible: Annotated[list[Any], Described("If only this option changes. A range of numbers is [first, last].")]
    excluded: list[ExcludedValues]
    may_be_left_out: bool


class ConfigurationView(TypedDict):
    product_id: str
    product_name: str
    outcome: Annotated[
        str,
        Described(
            "`valid`: as given, with defaults. `incomplete`: open options need other values. `conflict`. `TIMEOUT`."
        ),
    ]
    message: str
    problems: Annotated[
        list[str], Described("Choices that no option takes, values that are missing; where not searched, broken rules.")
    ]
    conflicts: list[ConflictView]
    configurations: Annotated[list[ConfiguredProduct], Described("Valid ones, the best first.")]
    also_needed: Annotated[list[Companion], Described("What a quote of configurations[0] alone lacks, or should have.")]
    options: Annotated[list[OptionView], Described("In a conflict those that can mend it alone, or those asked for.")]
    unfinished: Annotated[list[str], Described("What took too long: `conflicts`, `configurations`, `options`.")]
    price_note: str | None
    model_hash: Annotated[str, Described("The options and rules that this answer follows.")]


def configure(
    tx: Tx,
    product_id: str,
    choices: Mapping[str, Any],
    *,
    account_id: str | None = None,
    currency: str | None = None,
    quantity: int = 1,
    goal: Goal | None = None,
    locked: Collection[str] = (),
    options: Collection[str] | None = None,
    selling_model: str | None = None,
) -> ConfigurationView:
    """Check choices, explain what is wrong, and find valid configurations: nothing is stored. A SKU does for the id.

    Without a goal those nearest to the choices; with one the best that keeps every choice. `options` are those to show
    with every reason; without them the reasons are for what the first conflict names, because each takes time.
    """
    facts = repository.gather(tx, [product_id], account_id=account_id, currency=currency or "")
    if product_id not in facts.products and (by_sku := repository.ids_by_sku(tx, [product_id])):
        product_id = by_sku[product_id]
        facts = repository.gather(tx, [product_id], account_id=account_id, currency=currency or "")
    if account_id and facts.buyer is None:
        raise missing_account(tx, account_id)
    product = _product(product_id, facts.products)
    model = repository.model_of(product)
    _require_known(model, locked, "/locked")
    _require_known(model, options or (), "/options")
    day = local_day(tx.now, facts.buyer.time_zone).isoformat() if facts.buyer else ""
    surcharges = surcharges_of(product, facts.buyer, day, selling_model or "")
    line = DraftLine(1, product.id, quantity, selling_model=selling_model)
    if not model.options:
        return _only_checked(tx, product, choices, line, (account_id, currency), "The product has no options.")
    try:
        configurator = configurator_of(product, surcharges)
    except CpqError as too_large:
        return _only_checked(tx, product, choices, line, (account_id, currency), too_large.message)
    verdict = configurator.check(choices)
    found = _found(configurator, choices, surcharges, goal, locked)
    shown = options if options is not None else list(model.options)[:SHOWN_OPTIONS_MAX]
    conflicts = verdict.conflicts or ((found.conflict,) if found.conflict else ())
    explained = options if options is not None else [c.option for conflict in conflicts[:1] for c in conflict.choices]
    domains = configurator.domains(choices, options=shown, reasons=explained)
    late = {
        "conflicts": verdict.is_timed_out,
        "configurations": found.is_timed_out,
        "options": domains.is_timed_out,
    }
    unfinished = [name for name, is_late in late.items() if is_late]
    prices, note = _prices(tx, line, account_id, currency, found.found)
    outcome = _outcome(verdict.is_valid, verdict.can_be_completed)
    views = [_option(model, domain, choices) for domain in domains.domains]
    problems = _problems(outcome, verdict.checked)
    return {
        "product_id": product.id,
        "product_name": product.name,
        "outcome": outcome,
        "message": " ".join(_sentences(outcome, conflicts, problems, found, goal, locked, unfinished)),
        "problems": problems,
        "conflicts": [_conflict(conflict) for conflict in conflicts],
        "configurations": [
            _configured(suggestion, price) for suggestion, price in zip(found.found, prices, strict=True)
        ],
        "also_needed": _also_needed(tx, line, account_id, found.found),
        "options": [view for view in views if view["possible"] or options is not None or outcome != "conflict"],
        "unfinished": unfinished,
        "price_note": note,
        "model_hash": model_hash(product),
    }


def _only_checked(
    tx: Tx,
    product: ProductFacts,
    choices: Mapping[str, Any],
    line: DraftLine,
    buyer: tuple[str | None, str | None],
    why: str,
) -> ConfigurationView:
    """Of a product without options, or of a model that is too large to search, whether the choices are valid."""
    model = repository.model_of(product)
    checked = model.check(choices)
    is_valid = not checked.problem_count
    outcome = "valid" if is_valid else Code.TIMEOUT.value if model.options else "conflict"
    unsearched = ["options"] if is_valid else ["conflicts", "configurations", "options"]
    same = Suggestion(checked.choices, choices, (), (), 0, (), checked.advice)
    found = [same] if is_valid else []
    prices, note = _prices(tx, line, *buyer, found)
    return {
        "product_id": product.id,
        "product_name": product.name,
        "outcome": outcome,
        "message": f"{'The configuration is valid as given.' if is_valid else 'It is not valid as given.'} {why}",
        "problems": [problem.message for problem in checked.problems],
        "conflicts": [],
        "configurations": [_configured(one, price) for one, price in zip(found, prices, strict=True)],
        "also_needed": _also_needed(tx, line, buyer[0], found),
        "options": [],
        "unfinished": unsearched if model.options else [],
        "price_note": note,
        "model_hash": model_hash(product),
    }


def _product(product_id: str, products: Mapping[str, ProductFacts]) -> ProductFacts:
    product = products.get(product_id)
    if product is None:
        search = next_call("catalog_search", query=product_id)
        raise CpqError(Code.NOT_FOUND, f"There is no product {product_id!r}.", field="/product_id", next_call=search)
    return product


def _require_known(model: Model, names: Iterable[str], field: str) -> None:
    for name in names:
        if name not in model.options:
            known = list(model.options)
            raise bad_field(
                field, f"The product has no option {name!r}.", allowed=known[:50], nearest=nearest(name, known) or None
            )


def _found(
    configurator: Configurator,
    choices: Mapping[str, Any],
    surcharges: Surcharges,
    goal: Goal | None,
    locked: Collection[str],
) -> Suggestions:
    if goal is not None:
        return configurator.complete(choices, goal=goal, surcharges=surcharges)
    return configurator.nearest(choices, locked=locked, surcharges=surcharges, count=ALTERNATIVES)


def _outcome(is_valid: bool, can_be_completed: bool | None) -> str:
    if is_valid:
        return "valid"
    if can_be_completed is None:
        return Code.TIMEOUT.value
    return "incomplete" if can_be_completed else "conflict"


def _problems(outcome: str, checked: Checked) -> list[str]:
    """What no rule between options says, which `conflicts` explain better; where nothing was proven, rules as well."""
    has_rules = outcome == Code.TIMEOUT.value
    by_rule = {problem.message for problem in checked.problems if problem.rule_id and not has_rules}
    return list(dict.fromkeys(problem.message for problem in checked.problems if problem.message not in by_rule))


def _sentences(
    outcome: str,
    conflicts: Sequence[Conflict],
    problems: Sequence[str],
    found: Suggestions,
    goal: Goal | None,
    locked: Collection[str],
    unfinished: Collection[str],
) -> Iterator[str]:
    """What the choices are, why, and what to do."""
    if outcome == "valid":
        yield "The configuration is valid as given."
        return
    if outcome == Code.TIMEOUT.value:
        yield "The search took too long. What is listed is proven; nothing else was found out."
        yield from ["With defaults for what is open the choices are not valid: see `problems`."] if problems else []
        return
    own = [one for one in conflicts if not any(choice.is_default for choice in one.choices)]
    if outcome == "incomplete" and conflicts:
        yield f"The choices can stand, but not with the defaults of the other options. {conflicts[0].words()}"
    elif outcome == "incomplete":
        yield f"The choices can stand, but a value is missing. {' '.join(problems[:1])}"
    elif own or not problems:
        yield " ".join(["The choices cannot stand together.", *(one.words() for one in own[:1])])
    else:
        yield f"The product does not take these choices. {problems[0]}"
    if "conflicts" in unfinished:
        yield "The search for every reason took too long."
    if found.found:
        yield from ["configurations[0] is the nearest valid one."] if outcome == "conflict" and goal is None else []
    elif goal is not None:
        yield "A goal keeps every choice: leave it out for the nearest valid configurations."
    elif "configurations" not in unfinished:
        yield "No valid configuration keeps what is locked." if locked else "No configuration of it is valid."


def _conflict(conflict: Conflict) -> ConflictView:
    return {
        "message": conflict.words(),
        "choices": {choice.option: choice.value for choice in conflict.choices},
        "rules": [blame.say for blame in conflict.blames],
    }


def _configured(suggestion: Suggestion, price: ConfiguredPrice | None) -> ConfiguredProduct:
    return {
        "attributes": dict(suggestion.given),
        "configuration": dict(suggestion.choices),
        "changes": [{"option": c.option, "before": c.before, "after": c.after} for c in suggestion.changes],
        "added": [choice.option for choice in suggestion.added],
        "needs": list(suggestion.needs),
        "advice": list(suggestion.advice),
        "price": price,
    }


def _also_needed(tx: Tx, line: DraftLine, account_id: str | None, found: Sequence[Suggestion]) -> list[Companion]:
    if not found or found[0].needs:
        return []
    return companions(tx, line._replace(attributes=dict(found[0].given)), account_id)


def _option(model: Model, domain: Domain, choices: Mapping[str, Any]) -> OptionView:
    possible: list[Scalar | list[Scalar]] = []
    excluded: dict[tuple[object, ...], ExcludedValues] = {}
    for answer in domain.values:
        shown = answer.value if answer.up_to is None else [answer.value, answer.up_to]
        if answer.possibility is Possibility.NOW:
            possible.append(shown)
            continue
        why = answer.why.without(domain.option).words() if answer.why else None
        alike = excluded.setdefault(
            (answer.possibility, why, answer.instead),
            {"values": [], "possibility": answer.possibility.value, "why": why, "instead": list(answer.instead)},
        )
        alike["values"].append(shown)
    return {
        "option": domain.option,
        "label": model.options[domain.option].row.label,
        "chosen": choices.get(domain.option),
        "possible": possible,
        "excluded": list(excluded.values()),
        "may_be_left_out": domain.may_be_left_out,
    }


def _prices(
    tx: Tx, line: DraftLine, account_id: str | None, currency: str | None, found: Iterable[Suggestion]
) -> tuple[list[ConfiguredPrice | None], str | None]:
    """The price of each configuration by the pricer, which alone knows amounts; else why it is missing."""
    prices: list[ConfiguredPrice | None] = []
    note = None if account_id else "Give account_id for the price: it depends on the customer."
    for suggestion in found:
        price: ConfiguredPrice | None = None
        if account_id and not suggestion.needs:
            draft = Draft(account_id, currency or OWN_CURRENCY, (line._replace(attributes=dict(suggestion.given)),))
            try:
                composed = compose(tx, draft)
            except CpqError as error:
                note = error.message
            else:
                priced = composed.priced_lines[1]
                price = {
                    "currency": composed.draft.currency,
                    "quantity": priced.quantity,
                    "unit_price": amount(priced.base_unit_price),
                    "subtotal": amount(priced.regular),
                    "selling_model": composed.selling_models[1],
                }
        prices.append(price)
    return prices, note
