"""The deals toolset: accounts, and a quote from its draft to the customer's answer. Agents read the docstrings."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.domain.guided_selling.dialogue import STATE_LENGTH_MAX
from cpq.domain.pricing.selling_models import in_one_word
from cpq.domain.quotes.draft_changes import CLEARABLE
from cpq.domain.quotes.special_terms import CLEARABLE as CLEARABLE_OF_LINE
from cpq.services import catalog, configuration, quotes
from cpq.services.catalog.accounts import AccountDetail, AccountPage
from cpq.services.guided_selling import commands
from cpq.services.guided_selling.views import GuidedSelling
from cpq.services.quotes.quote_check import QuoteCheck, check_given, check_quote
from cpq.services.quotes.views import CreatedQuote, QuoteMoved
from mcp_facade.arguments import (
    LIMIT_DEFAULT,
    LINES_MAX,
    Attributes,
    Currency,
    Day,
    FineQuantity,
    Flag,
    Identifier,
    Justification,
    Key,
    Limit,
    Listed,
    Money,
    Months,
    Notes,
    Page,
    Part,
    Percentage,
    SearchText,
    UsedQuantity,
    Version,
    Word,
    capped,
    require_one,
)
from mcp_facade.choices import one_of
from mcp_facade.line_arguments import (
    AnyText,
    CommitmentOfLine,
    CustomChange,
    InternalNotes,
    LineItem,
    RampStep,
    Review,
    SentLine,
    Sources,
    arranged,
    aside,
    require_sold,
)
from mcp_facade.registry import tool

QuoteId = Annotated[Identifier, Field(description="The quote.")]
ExpectedVersion = Annotated[
    Version, Field(description="The `version` you last read; if the quote has another one now, the call is refused.")
]
ExpectedEdit = Annotated[
    Version | None, Field(description="The `edit` you last read; also refuses the call if the same draft has changed.")
]
Reason = Annotated[Annotated[Notes, Field(max_length=2000)] | None, Field(description="The reason, in one sentence.")]


_PLAIN = ("quantity", "discount_pct", "attributes", "notes")


class LineChange(Part):
    """Fields to set on one line; omitted fields keep their value."""

    line_id: Identifier
    quantity: FineQuantity | None = None
    discount_pct: Percentage | None = None
    attributes: Attributes | None = None
    notes: Annotated[Notes | None, Field(description="Shown to the customer below the line.")] = None
    selling_model: Annotated[Word | None, AnyText] = None
    billing_period: Annotated[Word | None, AnyText] = None
    custom: Annotated[CustomChange | None, WithJsonSchema({"type": "object"})] = None
    discount_amount: Money | None = None
    unit_price: Money | None = None
    price_reason: Justification | None = None
    start_date: Day | None = None
    term_months: Months | None = None
    end_date: Day | None = None
    commitment: CommitmentOfLine = None
    expected_quantity: UsedQuantity | None = None
    ramp: Annotated[
        Annotated[list[RampStep], Field(max_length=60)] | None, Field(description="Replaces the whole ramp."), Listed
    ] = None
    clear: Annotated[
        list[Annotated[Word, WithJsonSchema({"type": "string", "enum": list(CLEARABLE_OF_LINE)})]],
        Field(max_length=len(CLEARABLE_OF_LINE), description="Terms of the line to take back."),
        Listed,
    ] = []  # noqa: RUF012
    internal_notes: InternalNotes = None
    sources: Sources = None
    review: Review = None

    def as_change(self) -> tuple[str, dict[str, Any]]:
        values = {name: value for name in _PLAIN if (value := getattr(self, name)) is not None}
        if model := in_one_word(self.selling_model, self.billing_period):
            values["selling_model"] = model
        if self.ramp is not None:
            values["ramp"] = tuple(step.as_segment() for step in self.ramp)
        if given := aside(self.internal_notes, self.sources, self.review):
            values["internal"] = given
        if special := {**dict.fromkeys(self.clear), **arranged(self)}:
            values["special"] = special
        return self.line_id, values


@tool(title="Search accounts", toolset="deals", needs=Permission.READ)
def account_search(
    tx: Tx,
    *,
    query: Annotated[SearchText, Field(description="Words of the name or the id; default: all accounts.")] = None,
    active_only: Annotated[Flag, Field(description="Exclude closed accounts.")] = True,
    country: Annotated[Word | None, Field(description="Only accounts in this country, for example `DE`.")] = None,
    currency: Annotated[
        Currency | None, Field(description="Only accounts whose own currency this is, for example `EUR`.")
    ] = None,
    limit: Limit = LIMIT_DEFAULT,
    page: Page = 1,
) -> AccountPage:
    """Find the customer to quote for. Every word must occur in the name or the id; results are ordered by name."""
    return catalog.search_accounts(
        tx,
        query=query,
        active_only=active_only,
        limit=capped(limit),
        page=page,
        country=country,
        currency=currency,
    )


@tool(title="Get an account", toolset="deals", needs=Permission.READ, subject="account_id")
def account_get(
    tx: Tx, *, account_id: Annotated[Identifier, Field(description="The `id` of an account from account_search.")]
) -> AccountDetail:
    """Read one account: its address, currency, price book, tax status, language and time zone."""
    return catalog.get_account(tx, account_id)


@tool(title="Configure a product", toolset="deals", needs=Permission.READ, subject="product_id")
def product_configure(
    tx: Tx,
    *,
    product_id: Annotated[Identifier, Field(description="A configurable product of catalog_search.")],
    attributes: Annotated[Attributes, Field(description="Choices so far, by option; may be few or wrong.")] = {},  # noqa: B006
    account_id: Annotated[Identifier | None, Field(description="The customer; needed for prices.")] = None,
    currency: Annotated[Currency | None, Field(description="Default: the account's own.")] = None,
    quantity: Annotated[int, Field(ge=1, le=1_000_000, description="For the price.")] = 1,
    selling_model: Annotated[Word | None, Field(description="For the price, of a product with several.")] = None,
    goal: Annotated[
        Word | None,
        Field(
            description="`default`, `cheapest` or `preferred` (most advice followed): keep every choice, fill the rest."
        ),
        WithJsonSchema({"type": "string", "enum": [goal.value for goal in configuration.Goal]}),
    ] = None,
    locked: Annotated[list[Word], Field(max_length=100, description="Options whose choice must stay."), Listed] = [],  # noqa: B006
    options: Annotated[
        list[Word] | None,
        Field(
            max_length=200,
            description="Options to list with their values, and why not others. Default: the first 60, with reasons "
            "for those of the first conflict.",
        ),
        Listed,
    ] = None,
) -> configuration.ConfigurationView:
    """Check, repair or complete the options of a product before quoting it. Stores nothing.

    `outcome` says whether the choices are valid as given; `conflicts` why not, each as few choices and rules as say it.
    `configurations` are valid ones, nearest first, or by `goal` the best that keeps your choices: send the `attributes`
    of one as `attributes` of a quote line. `options` lists what each option can be if only it changes, and for
    those you name in `options` why not more. Add `locked` for what the customer insists on. Prices are those of
    quote_create.
    """
    return configuration.configure(
        tx,
        product_id,
        attributes,
        account_id=account_id,
        currency=currency,
        quantity=quantity,
        goal=None if goal is None else one_of(configuration.Goal, goal, "/goal"),
        locked=locked,
        options=options,
        selling_model=selling_model,
    )


@tool(title="Find products by questions", toolset="deals", needs=Permission.READ)
def guided_selling(
    tx: Tx,
    *,
    guide: Annotated[Identifier | None, Field(description="The guide to begin; without a state, lists them.")] = None,
    state: Annotated[
        Annotated[str, Field(max_length=STATE_LENGTH_MAX)] | None,
        Field(description="The `state` of the last answer, unchanged."),
    ] = None,
    answers: Annotated[
        Attributes,
        Field(
            description='Answers by question id: the id of an option, a number, or "skip". `{"flow": "10 m³/min"}`. '
            "An answer to an earlier question replaces it."
        ),
    ] = {},  # noqa: B006
    account_id: Annotated[
        Identifier | None, Field(description="The customer, for the prices and quotes of the next calls.")
    ] = None,
) -> GuidedSelling:
    """Find products for a customer who does not know them: questions one at a time, and products with reasons.

    Call it without arguments for the guides, with `guide` for the first question, then with `state` and `answers`; all
    answers may come in one call. Answers narrow the catalogue exactly: what is unknown of a product never matches.
    Answers that leave no product are refused, and `changes` has the other answers that leave some. After the last
    question `products` has the best first, each with `reasons`, the options to start with, and its `next_call`.
    """
    return commands.ask(tx, guide_id=guide, state=state, answers=answers, account_id=account_id)


@tool(title="Change a draft", toolset="deals", needs=Permission.QUOTE, writes=True, subject="quote_id")
def quote_update(
    tx: Tx,
    *,
    quote_id: QuoteId,
    expected_version: ExpectedVersion,
    expected_edit: ExpectedEdit = None,
    add_lines: Annotated[list[LineItem], Field(max_length=LINES_MAX, description="New lines."), Listed] = [],  # noqa: B006
    change_lines: Annotated[list[LineChange], Field(max_length=LINES_MAX, description="Lines to change."), Listed] = [],  # noqa: B006
    remove_lines: Annotated[
        list[Identifier], Field(max_length=LINES_MAX, description="Ids of lines to remove."), Listed
    ] = [],  # noqa: B006
    currency: Currency | None = None,
    deal_id: Identifier | None = None,
    term_months: Months | None = None,
    start_date: Day | None = None,
    end_date: Annotated[Day | None, Field(description="Last day of the term, instead of term_months.")] = None,
    valid_until: Annotated[Day | None, Field(description="Last day to accept it; cleared: by the policies.")] = None,
    payment_terms: Word | None = None,
    notes: Notes | None = None,
    internal_notes: InternalNotes = None,
    sources: Sources = None,
    review: Review = None,
    clear: Annotated[
        list[Annotated[Word, WithJsonSchema({"type": "string", "enum": list(CLEARABLE)})]],
        Field(max_length=len(CLEARABLE), description="Terms to clear."),
        Listed,
    ] = [],  # noqa: B006
) -> QuoteMoved:
    """Change lines, terms, currency or notes of a draft. Omitted arguments change nothing; lines keep their ids.

    `internal_notes` and `sources` of the quote or a line, as in quote_create, are replaced and keep the price; `review`
    adds marks, and a changed line opens its marks again.

    The amounts are recalculated, but the draft counts as priced only after the next quote_price. A submitted, approved
    or sent quote cannot be changed: quote_revise opens its next version.
    """
    require_sold(add_lines, "/add_lines")
    terms = {
        "currency": currency,
        "deal_id": deal_id,
        "term_months": term_months,
        "start_date": start_date,
        "end_date": end_date,
        "valid_until": valid_until,
        "payment_terms": payment_terms,
        "notes": notes,
    }
    changes = quotes.Changes(
        terms={name: value for name, value in terms.items() if value is not None},
        clear=clear,
        add_lines=[line.as_draft(0) for line in add_lines],
        change_lines=[line.as_change() for line in change_lines],
        remove_lines=remove_lines,
        internal=aside(internal_notes, sources, review),
    )
    return quotes.update(tx, quote_id, changes, expected_version=expected_version, expected_edit=expected_edit)


@tool(title="Check a quote across its lines", toolset="deals", needs=Permission.READ)
def quote_check(
    tx: Tx,
    *,
    quote_id: Annotated[Identifier | None, Field(description="A quote; or give line_items.")] = None,
    line_items: Annotated[
        list[SentLine], Field(max_length=LINES_MAX, description="Lines that are not stored yet."), Listed
    ] = [],  # noqa: B006
    account_id: Annotated[
        Identifier | None, Field(description="With line_items: the customer, so that only what has a price is offered.")
    ] = None,
) -> QuoteCheck:
    """Check what the products of a quote need and exclude, and the rules over its lines, such as a dryer for the air.

    `violations` must be repaired before the quote can be sent: each says what is missing, of what, and `repair`.
    `suggestions` are recommended only. `next_call` repairs all violations at once; nothing is changed by this call.
    """
    require_one({"quote_id": quote_id, "line_items": line_items or None}, is_required=True)
    if quote_id is not None:
        return check_quote(tx, quote_id)
    require_sold(line_items, "/line_items")
    given = [line.sent for line in line_items]
    return check_given(tx, [line.as_draft(0) for line in line_items], given, account_id)


@tool(title="Revise a quote", toolset="deals", needs=Permission.QUOTE, writes=True, subject="quote_id")
def quote_revise(
    tx: Tx, *, quote_id: QuoteId, expected_version: ExpectedVersion, expected_edit: ExpectedEdit = None
) -> QuoteMoved:
    """Open the next version of a quote as a draft, with the same lines and terms at today's prices.

    A `valid_until` that was given stays, unless it is over. A sent version stays valid until the new one is sent;
    cancelling the new one leaves the sent one unchanged. Next: change the draft with quote_update, then price it with
    quote_price.
    """
    return quotes.revise(tx, quote_id, expected_version=expected_version, expected_edit=expected_edit)


@tool(title="Clone a quote", toolset="deals", needs=Permission.QUOTE, writes=True, makes_new=True, subject="quote_id")
def quote_clone(
    tx: Tx,
    *,
    quote_id: QuoteId,
    account_id: Annotated[Identifier | None, Field(description="Another customer; default: the same one.")] = None,
    currency: Annotated[
        Currency | None, Field(description="Another currency, ISO 4217; default: that of the quote.")
    ] = None,
    idempotency_key: Key = None,
) -> CreatedQuote:
    """Create a new draft with the lines and terms of a quote in any status, at today's prices.

    Line discounts are copied; the discount on the whole quote, `valid_until` and the approvals are not.
    """
    return quotes.clone(tx, quote_id, account_id=account_id, currency=currency, idempotency_key=idempotency_key)


@tool(
    title="Cancel a quote",
    toolset="deals",
    needs=Permission.QUOTE,
    writes=True,
    is_destructive=True,
    subject="quote_id",
)
def quote_cancel(
    tx: Tx,
    *,
    quote_id: QuoteId,
    expected_version: ExpectedVersion,
    expected_edit: ExpectedEdit = None,
    reason: Reason = None,
) -> QuoteMoved:
    """Cancel the current version of an open quote.

    If an earlier version was sent, that one becomes current again; otherwise the quote is closed for good.
    """
    return quotes.cancel(tx, quote_id, expected_version=expected_version, expected_edit=expected_edit, reason=reason)


@tool(title="Close marks for review", toolset="deals", needs=Permission.QUOTE, writes=True, subject="quote_id")
def quote_review(
    tx: Tx,
    *,
    quote_id: QuoteId,
    expected_version: ExpectedVersion,
    expected_edit: ExpectedEdit = None,
    line_id: Annotated[Identifier | None, Field(description="Only the marks of this line; default: all.")] = None,
) -> QuoteMoved:
    """Record that a person has looked at what is marked for review (`review` of quote_get). Agents cannot do this.

    While a mark is open, quote_pdf and quote_send are refused.
    """
    return quotes.close_review(
        tx, quote_id, expected_version=expected_version, expected_edit=expected_edit, line_id=line_id
    )


@tool(title="Mark a quote as sent", toolset="deals", needs=Permission.QUOTE, writes=True, subject="quote_id")
def quote_send(
    tx: Tx, *, quote_id: QuoteId, expected_version: ExpectedVersion, expected_edit: ExpectedEdit = None
) -> QuoteMoved:
    """Record that the current version was sent to the customer; an earlier sent version becomes superseded.

    The version must be priced and complete. If it needs approval, it must be approved first: approval_request.
    """
    return quotes.send(tx, quote_id, expected_version=expected_version, expected_edit=expected_edit)


@tool(title="Record acceptance", toolset="deals", needs=Permission.QUOTE, writes=True, subject="quote_id")
def quote_accept(
    tx: Tx,
    *,
    quote_id: QuoteId,
    expected_version: Annotated[Version, Field(description="The version that the customer accepted.")],
    option_set: Annotated[
        Word | None, Field(description="The accepted alternative, when the quote has several.")
    ] = None,
    evidence: Annotated[
        Justification | None, Field(description="How the customer accepted: `PO 4711`. The order shows it.")
    ] = None,
) -> QuoteMoved:
    """Record that the customer accepted the version sent to them, by the end of its last valid day.

    A person records it; an agent may only where the policies allow it. If there are several option sets, one is
    accepted and the others become void. A superseded version cannot be accepted.
    """
    return quotes.accept(tx, quote_id, expected_version=expected_version, option_set=option_set, evidence=evidence)


@tool(title="Record a refusal", toolset="deals", needs=Permission.QUOTE, writes=True, subject="quote_id")
def quote_decline(
    tx: Tx,
    *,
    quote_id: QuoteId,
    expected_version: Annotated[Version, Field(description="The version that the customer declined.")],
    reason: Reason = None,
) -> QuoteMoved:
    """Record that the customer declined the version sent to them. quote_revise can open another version."""
    return quotes.decline(tx, quote_id, expected_version=expected_version, reason=reason)


TOOLS = (
    account_search,
    account_get,
    product_configure,
    guided_selling,
    quote_update,
    quote_check,
    quote_revise,
    quote_clone,
    quote_cancel,
    quote_review,
    quote_send,
    quote_accept,
    quote_decline,
)
