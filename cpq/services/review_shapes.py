"""The read shapes of what people decide by: the queue, a quote under review, what changed, and the figures."""

from __future__ import annotations

from datetime import date, datetime

from typing_extensions import TypedDict

from cpq.services.views import Amount, Pagination, PendingApproval, PolicyViolation, QuoteDetail, TaxGroupView


class WaterfallStage(TypedDict):
    """What a stage did to the quote as a whole. A level is where the amount stands, a step by how much it changed."""

    stage: str
    is_level: bool
    amount: Amount


class QuoteReview(QuoteDetail):
    """What somebody who has to decide about a version wants to know of it."""

    fingerprint: str
    latest_version: int
    requested_discount_pct: Amount
    discount_pct: Amount
    """All discounts together, off the regular price."""
    margin_pct: Amount | None
    """None when a cost is not known, and for callers who may not see margins."""
    waterfall: list[WaterfallStage]
    tax_groups: list[TaxGroupView]
    option_sets: list[str]
    other_totals: list[Amount]
    """Of the alternatives that are not selected."""
    policy_violations: list[PolicyViolation]
    policy_hash: str
    versions: dict[int, str]


class FieldChange(TypedDict):
    field: str
    before: object
    after: object


class LineChange(TypedDict):
    """A line that came, went or changed; the fields are named where it changed."""

    number: int
    product_name: str
    kind: str
    changes: list[FieldChange]


class VersionComparison(TypedDict):
    quote_id: str
    before: int
    after: int
    currency: str
    terms: list[FieldChange]
    totals: list[FieldChange]
    lines: list[LineChange]
    lines_total: int


class QueueItem(PendingApproval):
    """A request that waits, with what helps to decide where to look first."""

    account_id: str
    discount_pct: Amount
    margin_pct: Amount | None
    is_escalated: bool
    acts_as: str | None
    """As what the caller may decide it; None when it is somebody else's."""


class QueueCounts(TypedDict):
    own: int
    """Of the caller's roles, escalated to them, or where they stand in."""
    lent: int
    all: int


class Queue(TypedDict):
    items: list[QueueItem]
    pagination: Pagination
    counts: QueueCounts
    stamp: str


class Opening(TypedDict):
    """A request of the current version that is not decided, and whether the caller could decide it now."""

    approval_id: str
    approver_role: str
    acts_as: str | None
    rejects_as: str | None
    """Also where they may do no more than that: whom a maker has lent a role cannot approve."""
    why_not: str | None
    waits_for: str | None
    requested_by: str
    justification: str
    requested_at: datetime
    expires_at: datetime
    fingerprint: str


class StatusFigure(TypedDict):
    status: str
    count: int
    value: Amount
    """In the policies' currency."""


class TurnaroundFigure(TypedDict):
    role: str
    count: int
    median_minutes: int


class DiscountFigure(TypedDict):
    """How many quotes have a discount above `above`, up to the next step; `role` is who has to approve there."""

    above: Amount | None
    up_to: Amount | None
    role: str | None
    count: int


class OutcomeFigure(TypedDict):
    since: date
    accepted: int
    declined: int
    expired: int


class Figures(TypedDict):
    days: int
    currency: str
    pipeline: list[StatusFigure]
    without_rate: list[str]
    """Currencies whose quotes are counted but have no value."""
    turnaround: list[TurnaroundFigure]
    slow_minutes: int | None
    """Nine of ten of all decisions were made within this."""
    discounts: list[DiscountFigure]
    outcomes: list[OutcomeFigure]
