"""The quotes toolset, in the order an agent uses it. Docstrings are product text: agents read them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, WithJsonSchema

from cpq.app import Outcome
from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.domain.quotes import internal
from cpq.domain.quotes.lifecycle import QuoteStatus
from cpq.retrieval import nearest_products
from cpq.services import approvals, catalog, documents, quotes
from cpq.services.approvals.requests import ApprovalRequested
from cpq.services.approvals.views import ApprovalStatus, PendingApprovals
from cpq.services.catalog.views import CatalogPage, ProductDetail
from cpq.services.documents import EVERY_TEMPLATE, DocumentRequest
from cpq.services.documents.views import QuotePdf
from cpq.services.quotes.quote_pages import QuotePage
from cpq.services.quotes.views import CreatedQuote, PricedQuoteView, QuoteDetail
from mcp_facade.arguments import (
    LIMIT_DEFAULT,
    LINES_MAX,
    Currency,
    Day,
    Flag,
    Identifier,
    Ignored,
    Justification,
    Key,
    Limit,
    Listed,
    Money,
    Months,
    Notes,
    Page,
    Percentage,
    SearchText,
    Version,
    Word,
    capped,
    require_one,
)
from mcp_facade.line_arguments import (
    InternalNotes,
    LineItem,
    Review,
    Sources,
    aside,
    require_sold,
)
from mcp_facade.registry import Job, tool

CatalogLocale = Annotated[
    Word | None,
    Field(description="Texts in this language where translated: `de`, `de_AT`. Default: as in the catalogue."),
]


@tool(title="Search the catalogue", toolset="quotes", needs=Permission.READ)
def catalog_search(
    tx: Tx,
    *,
    query: Annotated[
        SearchText,
        Field(
            description="Words in any order, a SKU or a model; the last word may be incomplete. `pro plan`, `QMB30`."
        ),
    ] = None,
    category: Annotated[
        SearchText, Field(description="Only products of this category, for example `saas` or `compressors`.")
    ] = None,
    active_only: Annotated[Flag, Field(description="Exclude products that are no longer sold.")] = True,
    limit: Limit = LIMIT_DEFAULT,
    page: Page = 1,
    locale: CatalogLocale = None,
    include_relationships: Annotated[  # noqa: ARG001 - the contract accepts and ignores it
        Ignored, Field(description="Accepted and ignored; use catalog_get.")
    ] = None,
) -> CatalogPage:
    """Find products to quote. Start here: every quote line needs a product id from this search.

    Give `query`, `category`, or both. Exact codes come first, then products whose name has all words, then the rest;
    small typing errors are tolerated. If no product has all words, the nearest ones are listed and `matched` is
    `meaning`: they may be something else. A category alone lists all its products. `pagination.total` is the exact
    number of hits. Prices are not included; use `catalog_get`. An empty result is not an error: `hint` says what to try
    next. Amounts in other units (`75 kW`) are searched in those of the products; `conversions` says how.
    """
    return nearest_products.search(
        tx, query=query, category_id=category, active_only=active_only, limit=capped(limit), page=page, locale=locale
    )


@tool(title="Get a product", toolset="quotes", needs=Permission.READ, subject="product_id")
def catalog_get(
    tx: Tx,
    *,
    product_id: Annotated[Identifier, Field(description="The `id` of a product from catalog_search.")],
    include_relationships: Annotated[
        Flag,
        Field(description="Also return related products, configurable options, and the rules between options."),
    ] = False,
    locale: CatalogLocale = None,
    currency: Annotated[
        Currency | None,
        Field(description="Only prices in this currency, also derived ones. Default: all stored ones."),
    ] = None,
) -> ProductDetail:
    """Read one product in full: specs with units, attributes, and its list prices by price book and currency.

    A product may be sold in several ways, by the month or by the year: the `selling_model` of a line is `pick_with`
    of its price; left out, `default_selling_model` decides, and without one quote_create asks.

    Set `include_relationships` before you quote a `configurable` product or a `bundle`: the answer then lists the
    options that a line's attributes may set, what the product requires or excludes, and a bundle's components. List
    prices are for orientation; quote_price computes what a customer pays. `converted_into` lists currencies for which
    a price book derives a price from this one; with `currency` you see it, and `derived_from` says how.
    """
    return catalog.get(tx, product_id, include_relationships=include_relationships, locale=locale, currency=currency)


@tool(title="Create a quote", toolset="quotes", needs=Permission.QUOTE, writes=True, makes_new=True)
def quote_create(
    tx: Tx,
    *,
    account_id: Annotated[Identifier, Field(description="The customer, for example `acct_acme_001`.")],
    line_items: Annotated[
        list[LineItem],
        Field(min_length=1, max_length=LINES_MAX, description="The lines of the quote, in order."),
        Listed,
    ],
    deal_id: Annotated[Identifier | None, Field(description="Your own reference to the opportunity.")] = None,
    currency: Annotated[
        Currency | None, Field(description="ISO 4217, for example `EUR`. Default: the account's own.")
    ] = None,
    term_months: Annotated[
        Months | None,
        Field(description="How long recurring prices run. Without it, each is charged for one billing period."),
    ] = None,
    start_date: Annotated[Day | None, Field(description="First day of the term, `2026-03-01`.")] = None,
    end_date: Annotated[
        Day | None, Field(description="Last day of the term, instead of term_months; requires start_date.")
    ] = None,
    valid_until: Annotated[Day | None, Field(description="Last day to accept it. Default: by the policies.")] = None,
    notes: Annotated[Notes | None, Field(description="Shown to the customer; or `clause:ID` of the library.")] = None,
    payment_terms: Annotated[
        Word | None, Field(description="For example `net_30`, the standard; others may need approval.")
    ] = None,
    internal_notes: InternalNotes = None,
    sources: Sources = None,
    review: Review = None,
    idempotency_key: Key = None,
) -> CreatedQuote:
    """Create a draft quote for an account, with one line per product.

    Product ids come from catalog_search. For a `configurable` product, `attributes` sets its options (catalog_get with
    include_relationships lists them); omitted options take their defaults. `unit_price` and `subtotal` in the answer
    are before discounts and for the whole term. A recurring line also has `unit_price_per_period`, the price for one
    `billing_period`, and `periods`, the number charged: a text such as `12 16/31` where no decimal is exact. If there
    is a problem, nothing is stored and `details.problems` lists all of them. Read `warnings`: what the products still
    require of each other, or a currency that is not the account's. Customers read `notes`; `internal_notes`, `sources`
    and `review` are for the seller. Next: quote_price.
    """
    require_sold(line_items, "/line_items")
    draft = quotes.Draft(
        account_id=account_id,
        currency=currency or quotes.OWN_CURRENCY,
        lines=tuple(line.as_draft(number) for number, line in enumerate(line_items, 1)),
        deal_id=deal_id,
        term_months=term_months,
        start_date=start_date,
        end_date=end_date,
        valid_until=valid_until,
        payment_terms=payment_terms,
        notes=notes,
        internal=internal.changed(None, aside(internal_notes, sources, review)),
    )
    quotes.require_few_lines(draft.lines, tx.settings.quote_lines_max, "/line_items")
    return quotes.create(tx, draft, idempotency_key=idempotency_key)


@tool(title="Get a quote", toolset="quotes", needs=Permission.READ, subject="quote_id")
def quote_get(
    tx: Tx,
    *,
    quote_id: Annotated[Identifier, Field(description="The `quote_id` or `number` from quote_create.")],
    include_pricing: Annotated[Flag, Field(description="Also return the totals and the tax groups.")] = True,
    version: Annotated[Version | None, Field(description="An earlier version; default: the current one.")] = None,
) -> QuoteDetail:
    """Read a quote: its current terms, dates, status, lines and totals.

    A line's `unit_price` is for the whole term, `unit_price_per_period` for one `billing_period`; `periods` says how
    many. `requested_discount_pct` is the discount on the whole quote that is in force; each line's `discount_pct`
    includes it, and `line_discount_pct` is the line's own. `priced_at` is null until quote_price has priced the current
    version. `valid_until` includes the whole of that day in the account's time zone. Tools that change a quote take
    `version` and `edit` back as `expected_version` and `expected_edit`. Past quotes are read with get_quote.
    """
    return quotes.get(tx, quote_id, include_pricing=include_pricing, version=version)


@tool(title="Price a quote", toolset="quotes", needs=Permission.QUOTE, writes=True, subject="quote_id")
def quote_price(
    tx: Tx,
    *,
    quote_id: Annotated[Identifier, Field(description="The quote to price.")],
    requested_discount_pct: Annotated[
        Percentage | None,
        Field(
            description="A discount on the whole quote, on top of the line discounts. Default: the one stored with the "
            "quote stays; 0 takes it back."
        ),
    ] = None,
    requested_discount_amount: Annotated[
        Money | None, Field(description="The same as an amount without tax, instead of the percentage.")
    ] = None,
    target_total: Annotated[
        Money | None,
        Field(description="The total with tax to reach: the smallest discount that gets there or below is taken."),
    ] = None,
    dry_run: Annotated[Flag, Field(description="Only show this price: store nothing, in any status.")] = False,
) -> PricedQuoteView:
    """Price a quote exactly and check it against the policies.

    A draft stores the result (`stored` is true), unless `dry_run` is set. A quote in any other status is only evaluated
    and stays unchanged; `message` and `next_call` then say how to store the price. `requested_discount_pct` in the
    answer is the one in force. Pricing a rejected draft opens a new version with this price. A policy violation is not
    an error: `policy_violations` lists it with the role that must approve; then call approval_request. Pricing twice
    changes nothing. `unit_price` is for the whole term after discounts, `unit_price_per_period` for one billing period.
    `tax_groups` has one row for each tax category code (S, Z, E, AE, K, G, O) and rate in percent, and of several taxes
    for each (`tax_name`).
    Give one of `requested_discount_pct`, `requested_discount_amount` and `target_total`; `pricing.total` says what
    was reached.
    """
    given = {
        "requested_discount_pct": requested_discount_pct,
        "requested_discount_amount": requested_discount_amount,
        "target_total": target_total,
    }
    require_one(given)
    return quotes.price(
        tx,
        quote_id,
        requested_discount=requested_discount_pct,
        requested_amount=requested_discount_amount,
        target_total=target_total,
        dry_run=dry_run,
    )


@tool(title="List quotes", toolset="quotes", needs=Permission.READ)
def quote_list(
    tx: Tx,
    *,
    account_id: Annotated[Identifier | None, Field(description="Only quotes for this account.")] = None,
    status: Annotated[
        Annotated[Word, WithJsonSchema({"type": "string", "enum": [status.value for status in QuoteStatus]})] | None,
        Field(description="Only quotes with this status."),
    ] = None,
    owner: Annotated[Word | None, Field(description="Only quotes of this seller, by name: `dana`.")] = None,
    limit: Limit = LIMIT_DEFAULT,
    page: Page = 1,
) -> QuotePage:
    """List quotes, newest first. Filters combine; `pagination.total` is the exact number of hits."""
    return quotes.list_quotes(tx, account_id=account_id, status=status, owner=owner, limit=capped(limit), page=page)


@tool(
    title="Ask for approval",
    toolset="quotes",
    needs=Permission.REQUEST_APPROVAL,
    writes=True,
    subject="quote_id",
)
def approval_request(
    tx: Tx,
    *,
    quote_id: Annotated[Identifier, Field(description="A quote that quote_price has priced.")],
    justification: Annotated[
        Justification, Field(description="Why this deal deserves approval; the approver decides on these words.")
    ],
    approver_role: Annotated[
        Word | None,
        Field(description="A role to ask besides those that the policies require. Default: only those."),
    ] = None,
) -> ApprovalRequested:
    """Submit the current version of a quote for approval. A person decides; you cannot, and waiting approves nothing.

    It asks every role in `required_roles` of quote_price; leave `approver_role` out unless the user wants somebody
    else to look at it, too. The request is bound to this version and its price, and the quote cannot be changed while
    it is pending. `also_requested` lists the other roles. An earlier approval that still covers this version is `kept`
    and not requested again. Next: approval_status, until nothing is pending.
    """
    return approvals.request(tx, quote_id, justification=justification, role=approver_role)


@tool(title="Get the state of approval", toolset="quotes", needs=Permission.READ, subject="quote_id")
def approval_status(
    tx: Tx, *, quote_id: Annotated[Identifier, Field(description="The quote that was submitted.")]
) -> ApprovalStatus:
    """Read the approval status of a quote's current version: `rejected`, `pending_approval`, `approved` or `none`.

    `can_proceed` is true when the quote may go to the customer: every role that the policies require has approved, and
    nothing is pending, rejected or marked for review. `missing_roles` still have to be asked. If nobody decided in
    time, the request is in `expired_requests`, `reason` says so, and the quote is a draft again at the same price:
    approval_request asks again. A role that was asked besides the policies holds the quote until it decides or
    approval_withdraw takes the request back; its silence does not release the quote.
    After a rejection, read `reason`, then price the quote again to open a new version.
    """
    return approvals.status(tx, quote_id)


@tool(title="List open approvals", toolset="quotes", needs=Permission.READ)
def approval_pending(
    tx: Tx,
    *,
    approver_role: Annotated[Word | None, Field(description="Only requests to this role.")] = None,
    limit: Limit = LIMIT_DEFAULT,
) -> PendingApprovals:
    """List the approval requests that wait for a decision, oldest first. `total` is their exact number.

    `quote_total` and `fingerprint` belong to the price that the request is bound to. If `waits_for` names a role, that
    role decides first.
    """
    return approvals.pending(tx, role=approver_role, limit=capped(limit))


@tool(title="Make the PDF", toolset="quotes", needs=Permission.READ, writes=True, subject="quote_id")
def quote_pdf(
    job: Job,
    *,
    quote_id: Annotated[Identifier, Field(description="The quote to print.")],
    template: Annotated[
        Annotated[Word, WithJsonSchema({"type": "string", "enum": list(EVERY_TEMPLATE)})],
        Field(
            description="The layout; `comparison` shows option sets side by side, `order_confirmation` "
            "the order of an accepted quote with its billing schedule."
        ),
    ] = "standard",
    locale: Annotated[
        Word | None, Field(description="Language, or language and country: `de`, `fr_CA`. Default: the account's.")
    ] = None,
    version: Annotated[Version | None, Field(description="An earlier version; default: the current one.")] = None,
) -> QuotePdf:
    """Create the PDF of a quote and return where it is. The same version always gives the same bytes.

    A version that may not go to the customer (`can_proceed` of approval_status is false) is stamped DRAFT / NOT
    APPROVED on every page, and `stamp` says so. The file also contains the quote as JSON and as UBL. `resource_uri` is
    the same document as an MCP resource. Next: quote_send, once it has gone out.
    """
    request = DocumentRequest(quote_id, template, locale, version)
    made = documents.issue(job.app, job.call, job.record, request, job.progress)
    answer: QuotePdf = job.note(made) if isinstance(made, Outcome) else made  # type: ignore[assignment] # Of that shape.
    return answer


TOOLS = (
    catalog_search,
    catalog_get,
    quote_create,
    quote_get,
    quote_price,
    quote_list,
    approval_request,
    approval_status,
    approval_pending,
    quote_pdf,
)
