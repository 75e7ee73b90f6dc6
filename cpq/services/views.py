"""The one read shape of each thing, for tools, console, command line and PDF alike."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any, NotRequired

from typing_extensions import TypedDict

from cpq.base.money import from_micro


class Pagination(TypedDict):
    total: int
    page: int
    per_page: int
    has_more: bool


class ProductSummary(TypedDict):
    id: str
    sku: str
    name: str
    description: str
    product_type: str
    category: str
    active: bool


class CatalogPage(TypedDict):
    items: list[ProductSummary]
    pagination: Pagination
    hint: NotRequired[str]


class PriceTier(TypedDict):
    up_to: int | None
    unit_price: Decimal
    flat_fee: Decimal


class ListPrice(TypedDict):
    price_book: str
    currency: str
    unit_price: Decimal
    billing_period: str
    tier_mode: str
    tiers: list[PriceTier]
    package_size: int | None
    valid_from: date | None
    valid_to: date | None
    option_surcharges: dict[str, dict[str, Decimal]]


class Spec(TypedDict):
    value: Decimal | str
    unit: str | None


class RelatedProduct(TypedDict):
    kind: str
    product_id: str
    name: str | None
    quantity: int


class ProductDetail(TypedDict):
    id: str
    sku: str
    name: str
    description: str
    product_type: str
    category: str
    attributes: dict[str, Any]
    active: bool
    created_at: datetime
    updated_at: datetime
    specs: dict[str, Spec]
    prices: list[ListPrice]
    relationships: NotRequired[list[RelatedProduct]]
    options: NotRequired[list[dict[str, Any]]]
    rules: NotRequired[list[str]]


def pagination(total: int, page: int, per_page: int) -> Pagination:
    return {"total": total, "page": page, "per_page": per_page, "has_more": page * per_page < total}


Amount = Decimal | int
"""Exact: a whole number where it is one."""


class CreatedLine(TypedDict):
    line_id: str
    product_id: str
    product_name: str
    quantity: int
    unit_price: Amount
    discount_pct: Amount
    subtotal: Amount


class CreatedQuote(TypedDict):
    quote_id: str
    version: int
    edit: int
    status: str
    account_id: str
    currency: str
    idempotency_key: str | None
    line_items: list[CreatedLine]
    created_at: datetime
    warnings: list[str]
    outcome: str
    message: str


class QuoteHeader(TypedDict):
    id: str
    version: int
    edit: int
    account_id: str
    account_name: str
    deal_id: str | None
    status: str
    reason: str | None
    """Why it was cancelled, declined or superseded, or which option sets are void."""
    currency: str
    term_months: int | None
    start_date: date | None
    end_date: date | None
    valid_until: date
    payment_terms: str
    notes: str | None
    option_set: str | None
    tax_note: str | None
    created_at: datetime
    created_by: str


class QuoteLine(CreatedLine):
    discount_amount: Amount
    line_total: Amount
    billing_period: str
    attributes: dict[str, Any]
    notes: str | None
    option_set: str | None
    ramp: NotRequired[list[RampSegment]]


class RampSegment(TypedDict):
    months: int
    quantity: int | None
    uplift_pct: Amount


class Totals(TypedDict):
    subtotal: Amount
    discount_total: Amount
    tax_total: Amount
    total: Amount
    priced_at: datetime | None


class QuoteDetail(TypedDict):
    quote: QuoteHeader
    line_items: list[QuoteLine]
    pricing: NotRequired[Totals]


class WaterfallStep(TypedDict):
    """What a stage did to a line: the amount after it, what decided, and by how much of which unit."""

    stage: str
    part: str | None
    source: str | None
    value: Amount | None
    unit: str | None
    amount: Amount


class TracedLine(TypedDict):
    number: int
    product_id: str
    product_name: str
    quantity: int
    billing_period: str
    unit_price: Amount
    subtotal: Amount
    discount_pct: Amount
    discount_amount: Amount
    line_total: Amount
    steps: list[WaterfallStep]


class TaxGroupView(TypedDict):
    category: str
    rate_pct: Amount
    base: Amount
    tax: Amount


class PricedSet(TypedDict):
    """One alternative of a quote, or the whole of it: lines, taxes and totals, which add up."""

    option_set: str | None
    is_selected: bool
    subtotal: Amount
    discount_total: Amount
    tax_total: Amount
    total: Amount
    tax_groups: list[TaxGroupView]
    lines: list[TracedLine]


class QuoteRecord(QuoteDetail):
    """A version of a quote with all that is on record about its price."""

    latest_version: int
    version_status: str
    reason: str | None
    requested_discount_pct: Amount
    fingerprint: str
    hashes: dict[str, str]
    option_sets: list[PricedSet]


class LinePrice(TypedDict):
    line_id: str
    product_id: str
    product_name: str
    quantity: int
    base_unit_price: Amount
    unit_price: Amount
    subtotal_before_discount: Amount
    discount_pct: Amount
    discount_amount: Amount
    line_total: Amount


class PolicyViolation(TypedDict):
    policy_id: str
    policy_name: str
    severity: str
    description: str
    threshold: Amount | None
    actual: Amount | None
    required_approver_role: str | None


class OptionSetTotals(TypedDict):
    option_set: str
    is_selected: bool
    subtotal: Amount
    discount_total: Amount
    tax_total: Amount
    total: Amount
    line_pricing: list[LinePrice]


class PricedQuoteView(TypedDict):
    quote_id: str
    version: int
    edit: int
    status: str
    pricing: Totals
    line_pricing: list[LinePrice]
    approval_required: bool
    policy_violations: list[PolicyViolation]
    stored: bool
    outcome: str
    fingerprint: str
    option_sets: NotRequired[list[OptionSetTotals]]


class QuoteSummary(TypedDict):
    id: str
    version: int
    account_id: str
    account_name: str
    status: str
    currency: str
    total: Amount
    valid_until: date
    created_at: datetime


class QuotePage(TypedDict):
    items: list[QuoteSummary]
    pagination: Pagination


class QuoteMoved(TypedDict):
    """What every other change of a quote answers."""

    quote_id: str
    version: int
    edit: int
    status: str
    total: Amount
    currency: str
    valid_until: date
    outcome: str
    message: str
    warnings: NotRequired[list[str]]


class AlsoRequested(TypedDict):
    """Another role that the policies ask for; a kept one need not decide again."""

    approval_id: str
    approver_role: str
    status: str
    reason: str | None


class ApprovalRequested(TypedDict):
    approval_id: str
    quote_id: str
    version: int
    status: str
    approver_role: str
    requested_by: str
    justification: str
    created_at: datetime
    expires_at: datetime
    reason: str | None
    """Why an earlier approval was kept, or is asked for again."""
    waits_for: str | None
    """The role whose turn comes first."""
    also_requested: list[AlsoRequested]
    quote_status: str
    fingerprint: str
    outcome: str
    message: str


class PendingRequest(TypedDict):
    approval_id: str
    status: str
    approver_role: str
    waits_for: str | None
    requested_at: datetime
    expires_at: datetime


class ApprovalStatus(TypedDict):
    quote_id: str
    version: int
    current_status: str
    pending_requests: list[PendingRequest]
    can_proceed: bool
    required_roles: list[str]
    missing_roles: list[str]
    """Those the policies ask for and that are neither asked nor have approved."""
    reason: str | None
    """What the one who rejected it said."""


class PendingApproval(TypedDict):
    approval_id: str
    quote_id: str
    version: int
    account_name: str
    quote_total: Amount
    currency: str
    approver_role: str
    waits_for: str | None
    escalates_to: str | None
    is_escalated: bool
    requested_by: str
    justification: str
    requested_at: datetime
    expires_at: datetime
    fingerprint: str


class PendingApprovals(TypedDict):
    items: list[PendingApproval]
    total: int


class ApprovalDecided(TypedDict):
    approval_id: str
    quote_id: str
    version: int
    status: str
    """Of the request: approved, rejected, or pending while others of the role have to approve too."""
    approver_role: str
    decided_by: str
    acted_as: str
    decided_at: datetime
    approvals: int
    approvals_needed: int
    quote_status: str
    outcome: str
    message: str


class ApprovalWithdrawn(TypedDict):
    approval_id: str
    quote_id: str
    version: int
    status: str
    approver_role: str
    quote_status: str
    outcome: str
    message: str


class Vote(TypedDict):
    by: str
    acted_as: str
    decision: str
    comment: str | None
    at: datetime


class ApprovalRecord(TypedDict):
    """A request with all that is on record about it."""

    approval_id: str
    quote_id: str
    version: int
    approver_role: str
    status: str
    reason: str | None
    quorum: str
    quote_total: Amount
    fingerprint: str
    policy_hash: str
    justification: str
    requested_by: str
    requested_at: datetime
    expires_at: datetime
    escalates_to: str | None
    escalates_at: datetime | None
    is_escalated: bool
    kept_from: str | None
    decided_by: str | None
    decided_at: datetime | None
    comment: str | None
    votes: list[Vote]


class ApprovalHistory(TypedDict):
    quote_id: str
    version: int
    quote_status: str
    currency: str
    items: list[ApprovalRecord]


class PreviewedStep(TypedDict):
    approver_role: str
    would_be: str
    """asked, kept, pending, approved or missing."""
    waits_for: str | None
    approvals_needed: int
    approvers: list[str]
    """The people of the role who could decide it now."""
    reasons: list[str]


class ApprovalPreview(TypedDict):
    quote_id: str
    version: int
    status: str
    approval_required: bool
    is_blocked: bool
    steps: list[PreviewedStep]
    policy_violations: list[PolicyViolation]


class DelegationView(TypedDict):
    delegation_id: str
    role: str
    from_principal: str
    to_principal: str
    starts_at: datetime
    ends_at: datetime
    account_id: str | None
    quote_id: str | None
    outcome: str
    message: str


class QuotePdf(TypedDict):
    quote_id: str
    version: int
    pdf_generated: bool
    document_id: str
    file_path: str
    file_name: str
    """What a person would call the file."""
    file_size_bytes: int
    checksum: str
    """`sha256:` and 64 hexadecimal digits, of the bytes of the file."""
    pages: int
    template_used: str
    locale: str
    stamp: str | None
    """Why it may not go to a customer: not_approved, expired or cancelled; null when it may."""
    fingerprint: str
    resource_uri: str
    warnings: list[str]
    generated_at: datetime
    outcome: str
    message: str


class VerifiedPdf(TypedDict):
    verdict: str
    """issued: these are the bytes of a document of ours; altered: they were, once; unknown: they never were."""
    checksum: str
    is_current_approved: bool
    """Whether it is of the current version, unstamped, and that version is approved or needs no approval."""
    message: str
    quote_id: str | None
    version: int | None
    current_version: int | None
    version_status: str | None
    template: str | None
    locale: str | None
    stamp: str | None
    fingerprint: str | None
    total: Amount | None
    currency: str | None
    issued_at: datetime | None


class AccountSummary(TypedDict):
    id: str
    name: str
    segment: str
    region: str
    country: str
    currency: str
    active: bool


class AccountPage(TypedDict):
    items: list[AccountSummary]
    pagination: Pagination


class AccountDetail(AccountSummary):
    tax_zone: str
    tax_status: str
    tax_note: str | None
    locale: str
    time_zone: str
    price_book: str
    contact: str | None
    address: str | None
    created_at: datetime
    updated_at: datetime


def amount(micro: int) -> Amount:
    """Whole millionths as a number: 10000000 is 10."""
    whole, rest = divmod(micro, 1_000_000)
    return from_micro(micro) if rest else whole
