"""The fields of each policy file: the loader checks by them, and the editors' schema is generated from them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    Tag,
    model_validator,
)

from cpq.base.money import MINOR_DIGITS
from cpq.base.rounding import Rounding
from cpq.base.text import clean_line
from cpq.domain.field_types import TimeZone
from cpq.domain.policy.free_text import TERMS_WORDS
from cpq.domain.policy.policy_kinds import VALIDITY_DAYS_MAX, PartPeriods, Severity, TaxCode, TaxRounding

RULES_MAX = 5000
STEPS_MAX = 50
TAXES_MAX = 5
BOUND_MAX = 10**15


def _formula(value: object) -> object:
    """YAML reads `when: true` and `over: 5` as values, but they are expressions."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:f}" if isinstance(value, Decimal) else value


def _number(value: object) -> object:
    if isinstance(value, bool | float):
        raise ValueError("is not an exact number")
    return value


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite() or value.copy_abs() > BOUND_MAX or int(value.as_tuple().exponent) < -12:
        raise ValueError("is a number with at most 12 decimals, not beyond a quadrillion")
    return value


def _fine(value: Decimal) -> Decimal:
    """A number with the decimals of the pricer."""
    if int(value.as_tuple().exponent) < -6:
        raise ValueError("is a number with at most 6 decimals")
    return value


def _currency(code: str) -> str:
    if code not in MINOR_DIGITS:
        raise ValueError("is not an ISO 4217 currency code")
    return code


def _hours(text: str) -> str:
    if not text[:5] < text[6:] <= "24:00":
        raise ValueError("is a span of a day, such as 09:00-17:00")
    return text


def _day(text: str) -> str:
    if date.fromisoformat(text).isoformat() != text:
        raise ValueError("is a day such as 2026-12-25")
    return text


Name = Annotated[str, Field(max_length=100), AfterValidator(clean_line)]
Message = Annotated[str, Field(max_length=500), AfterValidator(clean_line)]
Clause = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(clean_line)]
TermsWord = Annotated[str, Field(min_length=2, max_length=64), AfterValidator(clean_line)]
Id = Annotated[str, Field(max_length=64, pattern=r"^[a-z][a-z0-9_]*$")]
Word = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")]
Zone = Annotated[str, Field(max_length=64, pattern=r"^[A-Z]{2}(-[A-Z0-9]{1,8}){0,2}$|^[A-Z]{2}-\*$")]
Formula = Annotated[str, BeforeValidator(_formula), Field(max_length=2000, examples=["discount > 20"])]
Number = Annotated[Decimal, BeforeValidator(_number), AfterValidator(_finite)]
Fine = Annotated[Number, AfterValidator(_fine)]
Rate = Annotated[Fine, Field(ge=0, le=100)]
Priority = Annotated[int, Field(ge=-1000, le=1000, description="larger numbers come first")]
Currency = Annotated[str, AfterValidator(_currency)]
Hours = Annotated[str, Field(pattern=r"^[0-2][0-9]:[0-5][0-9]-[0-2][0-9]:[0-5][0-9]$"), AfterValidator(_hours)]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), AfterValidator(_day)]


class Shape(BaseModel):
    # Built when a policy file is first read: most commands read none.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class OutcomeShape(Shape):
    """The outcome when the condition is true or unknown."""

    severity: Severity = Field(description="warning, approval_required (then a role), or block")
    role: Id | None = Field(None, description="the approver; one of the roles of approvals.yaml")
    message: Message | None = Field(None, description="may hold {actual} and {threshold}")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.severity is Severity.APPROVAL_REQUIRED) != (self.role is not None):
            raise ValueError("a role goes with approval_required, and only with it")
        left = (self.message or "").replace("{actual}", "").replace("{threshold}", "")
        if "{" in left or "}" in left:
            raise ValueError("a message may hold {actual} and {threshold}, and no other braces")
        return self


class RuleShape(Shape):
    """A condition over the priced quote, and its outcome."""

    id: Id
    name: Name | None = Field(None, description="the id in words, when left out")
    when: Formula = Field(description="the rule is violated when this is true or unknown")
    then: OutcomeShape
    priority: Priority = 0
    threshold: Number | None = Field(None, description="shown with the violation; read from the condition if left out")
    actual: Formula | None = Field(None, description="the number shown beside the threshold")


class StepShape(Shape):
    """One step: above a bound (or under it), up to the next step."""

    id: Id
    name: Name | None = Field(None, description="the id in words, when left out")
    above: Number | None = Field(None, description="the step begins above this; exactly this is still the step before")
    up_to: Number | None = Field(None, description="must meet the next step's `above`; may be left out")
    under: Number | None = Field(None, description="in a falling ladder: the step begins under this")
    down_to: Number | None = Field(None, description="must meet the next step's `under`; may be left out")
    then: OutcomeShape

    @model_validator(mode="after")
    def _one_direction(self) -> Self:
        if (self.above is None) == (self.under is None):
            raise ValueError("a step has either above or under")
        if (self.up_to is not None and self.above is None) or (self.down_to is not None and self.under is None):
            raise ValueError("up_to goes with above, and down_to with under")
        return self


class LadderShape(Shape):
    """Steps over one number. Only the highest step reached applies."""

    id: Id
    over: Formula = Field(description="a number; over a fact of the lines the worst line counts")
    where: Formula | None = Field(None, description="limits the ladder to quotes or lines that match this")
    priority: Priority = 0
    steps: tuple[StepShape, ...] = Field(min_length=1, max_length=STEPS_MAX)


class GuardsShape(Shape):
    """Named conditions, rules and ladders."""

    define: dict[Id, Formula] = Field(default_factory=dict, description="conditions with a name, for use in others")
    rules: tuple[RuleShape, ...] = Field((), max_length=RULES_MAX)
    ladders: tuple[LadderShape, ...] = Field((), max_length=RULES_MAX)


class EscalationShape(Shape):
    """A role that may also decide after a request has waited for some hours."""

    to: Id
    after_hours: int = Field(ge=0, le=8760, description="counted from the request, like the role's time limit")


class TimeLimitShape(Shape):
    """How long a role has to answer a request."""

    hours: int = Field(ge=1, le=8760, description="by the clock, or open hours of a calendar")
    calendar: Id | None = Field(None, description="one of the calendars of approvals.yaml")


class CalendarShape(Shape):
    """The hours in which people work."""

    time_zone: TimeZone = Field(description="such as Europe/Berlin")
    hours: dict[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], tuple[Hours, ...]] = Field(
        min_length=1, description="open hours by weekday, in order: `mon: [09:00-12:00, 13:00-17:00]`"
    )
    holidays: tuple[Day, ...] = Field((), max_length=1000, description="days without hours: 2026-12-25")

    @model_validator(mode="after")
    def _sound(self) -> Self:
        for day, spans in self.hours.items():
            if not spans:
                raise ValueError(f"{day} has no hours; leave it out")
            if any(later[:5] < earlier[6:] for earlier, later in pairwise(spans)):
                raise ValueError(f"the hours of {day} overlap or are out of order")
        if len(set(self.holidays)) < len(self.holidays):
            raise ValueError("a holiday is named twice")
        return self


class RolesShape(Shape):
    commercial: tuple[Id, ...] = Field(min_length=1, max_length=20, description="lowest authority first")
    orthogonal: tuple[Id, ...] = Field((), max_length=20, description="asked in parallel with the commercial chain")
    ask: Literal["highest", "each"] = Field(
        "highest", description="which commercial roles are asked: only the highest, or each in turn"
    )
    quorum: dict[Id, Literal["one", "all", "majority"] | Annotated[int, Field(ge=1, le=100)]] = Field(
        default_factory=dict,
        description="how many people of a role have to approve: one (default), all, majority, or a number",
    )
    backup: dict[Id, Id] = Field(
        default_factory=dict, description="who may decide for a role that nobody holds; never of less authority"
    )
    escalate_to: dict[Id, EscalationShape] = Field(
        default_factory=dict, description="who may also decide after a while; never of less authority"
    )
    time_limit: dict[Id, TimeLimitShape] = Field(
        default_factory=dict,
        description="how long a role has to answer; others have approval_expiry_hours of terms.yaml",
    )
    keep: dict[Id, StrictBool] = Field(
        default_factory=dict,
        description="false: asked again for every version, even if the customer gets no more than it approved",
    )
    keep_approvals: StrictBool = Field(
        True, description="false: every role is asked again for every version, whatever changed"
    )

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        roles = (*self.commercial, *self.orthogonal)
        if len(set(roles)) < len(roles):
            raise ValueError("a role is named twice")
        return self


class DiscountsShape(GuardsShape):
    """discounts.yaml: the limits of discounts, and the approvals beyond them."""


class ApprovalsShape(GuardsShape):
    """approvals.yaml: the roles, and other reasons for approval."""

    roles: RolesShape
    calendars: dict[Id, CalendarShape] = Field(
        default_factory=dict, max_length=100, description="business hours for the time limits of roles"
    )


class AdjustmentShape(Shape):
    """Exactly one of markup, percentage and amount; a negative number makes the price smaller."""

    markup: Annotated[Fine, Field(ge=0, le=10_000)] | None = Field(None, description="percent added, first of all")
    percentage: Annotated[Fine, Field(ge=-100, le=10_000)] | None = Field(None, description="percent, signed")
    amount: Fine | None = Field(None, description="in the quote's currency, signed; last of all")
    base: Literal["list", "running", "unit", "line"] | None = Field(
        None, description="percent of `list` or `running` price (default); amount per `unit` (default) or `line`"
    )
    stacking: Literal["sequential", "best_of"] = Field(
        "sequential",
        description="one after the other, or only the best of all `best_of` rules",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(part is not None for part in (self.markup, self.percentage, self.amount)) != 1:
            raise ValueError("exactly one of markup, percentage, amount")
        bases = ("unit", "line") if self.amount is not None else ("list", "running")
        if self.base is not None and self.base not in bases:
            raise ValueError(f"the base is {' or '.join(bases)}")
        return self


class PricingRuleShape(Shape):
    """A condition over what is known before pricing; `line` is the line being priced."""

    id: Id
    name: Name | None = Field(None, description="the id in words, when left out")
    when: Formula = Field(description="applies only when true; an unknown condition never changes a price")
    then: AdjustmentShape
    priority: Priority = 0


class PricingShape(Shape):
    """pricing.yaml: rules that change a price before any discount."""

    define: dict[Id, Formula] = Field(default_factory=dict, description="conditions with a name, for use in others")
    rules: tuple[PricingRuleShape, ...] = Field((), max_length=RULES_MAX)


class AttributeShape(Shape):
    """An attribute of products that conditions may read as line.attributes.…"""

    type: Literal["text", "number", "boolean"]
    absent: StrictBool | Number | str | None = Field(None, description="its value if a product has none")

    @model_validator(mode="after")
    def _same_kind(self) -> Self:
        kinds = {"text": str, "number": Decimal, "boolean": bool}
        if self.absent is not None and type(self.absent) is not kinds[self.type]:
            raise ValueError(f"absent is a {self.type}")
        return self


class TermsShape(GuardsShape):
    """terms.yaml: validity, rounding, standard payment terms, and currency rates."""

    validity_days: int = Field(ge=1, le=VALIDITY_DAYS_MAX)
    rounding: Rounding = Rounding.HALF_UP
    tax_rounding: TaxRounding = TaxRounding.GROUP
    part_periods: PartPeriods = PartPeriods.WHOLE_MONTHS
    standard_payment_terms: tuple[Word, ...] = Field(min_length=1, max_length=100)
    approval_expiry_hours: int = Field(ge=1, le=8760)
    cost_grid_percent: Annotated[Number, Field(ge=0, le=100)] = Field(
        Decimal(5), description="verdicts rest on costs that are rounded up to points so far apart; 0 is exact"
    )
    deal_days: int = Field(
        90, ge=0, le=3650, description="how long after its last valid day an accepted quote counts for its deal"
    )
    draft_days: int = Field(
        180,
        ge=0,
        le=3650,
        description="a draft that nobody touches expires so long after its last valid day; 0 is never",
    )
    agreement_part_periods: PartPeriods = Field(
        PartPeriods.ACTUAL_DAYS,
        description="how parts of a period are counted when an agreement changes that was sold in whole months",
    )
    billing_day: int = Field(
        0, ge=0, le=28, description="the day of the month on which billing periods begin; 0 is a line's own first day"
    )
    renewal_uplift_percent: Annotated[Number, Field(ge=0, le=100)] = Field(
        Decimal(0), description="by how much a renewal raises prices for which no other uplift was asked"
    )
    renewal_due_days: int = Field(90, ge=0, le=3650, description="how long before its end a renewal is due")
    notice_days: int = Field(
        30, ge=0, le=3650, description="how long before the next period a line without an end must be cancelled"
    )
    agents_may_accept: bool = Field(
        False, description="whether an agent may record that a customer accepted; else a person does"
    )
    currency: Currency = Field(description="the currency of the …_value facts")
    rates: dict[Currency, Annotated[Number, Field(gt=0)]] = Field(
        default_factory=dict, description="the value of one unit of a currency in the policy's currency"
    )
    rates_as_of: Day | None = Field(default=None, description="the day of the rates; price books convert only with one")
    rates_valid_until: Day | None = Field(default=None, description="the last day on which the rates may be used")
    attributes: dict[Id, AttributeShape] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _own_rate(self) -> Self:
        if self.agreement_part_periods is PartPeriods.WHOLE_MONTHS:
            raise ValueError("agreement_part_periods counts parts of a month, so it is one of the other modes")
        if self.rates.get(self.currency, 1) != 1:
            raise ValueError(f"the rate of {self.currency}, the policy's own currency, is 1")
        if self.rates_as_of and self.rates_valid_until and self.rates_as_of > self.rates_valid_until:
            raise ValueError("rates_valid_until is before rates_as_of")
        return self


class CodedRateShape(Shape):
    """A rate with its tax category code, where the code does not follow from the rate."""

    rate: Rate
    code: TaxCode | None = Field(None, description="S above 0 %, else Z, when left out")
    reason: Message | None = Field(None, description="why no tax is charged; needed with E, AE, K, G and O")

    @model_validator(mode="after")
    def _as_en_16931_says(self) -> Self:
        code = self.code or TaxCode.of(self.rate)
        if (code is TaxCode.STANDARD) != (self.rate > 0):
            raise ValueError("S goes with a rate above 0, every other code with 0")
        if (code in (TaxCode.STANDARD, TaxCode.ZERO)) != (self.reason is None):
            raise ValueError("a reason goes with E, AE, K, G and O, and only with them")
        return self


class OneTaxShape(Shape):
    """One of several taxes of a zone. A category that it does not name is free of it."""

    name: Word
    rate: Annotated[
        Annotated[Rate, Tag("number")] | Annotated[dict[Word, Rate], Tag("by category")],
        Discriminator(lambda given: "by category" if isinstance(given, dict) else "number"),
    ] = Field(description="one rate for every category, or one each")
    on_top_of: tuple[Word, ...] = Field((), description="the taxes before it that its base includes")


class SeveralTaxesShape(Shape):
    """The taxes of a zone that charges several on a line, in the order in which they are printed."""

    taxes: tuple[OneTaxShape, ...] = Field(min_length=2, max_length=TAXES_MAX)

    @model_validator(mode="after")
    def _on_top_of_earlier_ones(self) -> Self:
        before: list[str] = []
        for tax in self.taxes:
            if tax.name in before:
                raise ValueError(f"there are two taxes {tax.name}")
            if unknown := [name for name in tax.on_top_of if name not in before]:
                raise ValueError(f"{tax.name} is on top of {unknown[0]}, which is no tax before it")
            before.append(tax.name)
        return self


def _kind_of_rate(given: object) -> str:
    """Which of its forms a rate is in, so that a mistake is reported for that form only."""
    if isinstance(given, CodedRateShape | SeveralTaxesShape):
        return "coded" if isinstance(given, CodedRateShape) else "several"
    if not isinstance(given, dict):
        return "number"
    return "coded" if given.keys() & {"rate", "code"} else "several" if "taxes" in given else "by category"


TaxRateShape = Annotated[
    Annotated[Rate, Tag("number")] | Annotated[CodedRateShape, Tag("coded")], Discriminator(_kind_of_rate)
]


class TaxShape(Shape):
    """tax.yaml: the rate of every zone and tax category, in percent, with a code where it does not follow from it."""

    categories: tuple[Word, ...] = Field(min_length=1, max_length=100)
    zones: dict[
        Zone,
        Annotated[
            Annotated[Rate, Tag("number")]
            | Annotated[CodedRateShape, Tag("coded")]
            | Annotated[SeveralTaxesShape, Tag("several")]
            | Annotated[dict[Word, TaxRateShape], Tag("by category")],
            Discriminator(_kind_of_rate),
        ],
    ] = Field(
        min_length=1,
        max_length=2000,
        description="`US-OH`, or `US-*` for the states not named; one rate, one each, or several taxes",
    )


class ClausesShape(Shape):
    """clauses.yaml: texts for customers that are no free text, and the words of terms. The file may be missing."""

    clauses: dict[Id, Clause] = Field(default_factory=dict, max_length=1000, description="the text of each clause")
    terms_words: tuple[TermsWord, ...] = Field(
        TERMS_WORDS,
        max_length=1000,
        description="whole words, or with * all that begin so; without accents; those of the product, if left out",
    )


FILES: dict[str, type[Shape]] = {
    "discounts.yaml": DiscountsShape,
    "approvals.yaml": ApprovalsShape,
    "terms.yaml": TermsShape,
    "pricing.yaml": PricingShape,
    "tax.yaml": TaxShape,
    "clauses.yaml": ClausesShape,
}
"""Every policy file, in the order of its stage."""

OPTIONAL = ("clauses.yaml",)
"""Files that a folder may do without."""
