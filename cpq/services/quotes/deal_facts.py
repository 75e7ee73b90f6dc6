"""What else is offered or sold to the same deal and account, so that a deal does not get smaller by being split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.money import from_micro
from cpq.domain.policy.facts import EXACT, NO_OTHERS, OtherQuotes
from cpq.domain.quotes.lifecycle import QuoteStatus, VersionStatus
from cpq.domain.quotes.quote import Quote
from cpq.storage.columns import Timestamp
from cpq.storage.schema import tables
from cpq.storage.statements import Statement
from cpq.storage.tenants import of_tenant


def other_quotes(tx: Tx, quote: Quote, deal_id: str | None) -> OtherQuotes:
    """The values of the other quotes, in one query: open ones, and accepted ones that were valid not long ago.

    Of a quote the last version counts that was submitted; drafts do not, because nobody was offered them. A quote
    without a deal belongs to the deal of all such quotes of its account.
    """
    found = _OTHERS.rows(
        tx.connection,
        tenant=tx.tenant_id,
        mine=quote.id,
        account=quote.account_id,
        deal=deal_id,
        now=tx.now,
        since=tx.now - timedelta(days=tx.policies.terms.deal_days),
    )
    if not found:
        return NO_OTHERS
    rates = tx.policies.terms.rates
    of_deal, of_account = ([row for row in found if row[column]] for column in (0, 1))
    return OtherQuotes(*_together(of_deal, rates), *_together(of_account, rates))


def _together(
    rows: Iterable[tuple[int, int, str, int, int]], rates: Mapping[str, Decimal]
) -> tuple[Decimal | None, Decimal | None]:
    """The sums of gross and net in the policy's currency; unknown when a currency has no rate."""
    gross, net = Decimal(0), Decimal(0)
    for _, _, currency, subtotal, discount in rows:
        if currency not in rates:
            return None, None
        gross += EXACT.multiply(from_micro(int(subtotal)), rates[currency])
        net += EXACT.multiply(from_micro(int(subtotal) - int(discount)), rates[currency])
    return gross, net


def _others() -> sa.Select[*tuple[int, int, str, int, int]]:
    """By whether they are of the deal and of the account, and by currency. The version that the customer
    has keeps its deal, whatever a revision in the making says."""
    root, version = tables.quote.c, tables.quote_version.c
    account, deal = sa.bindparam("account", type_=sa.Text), sa.bindparam("deal", type_=sa.Text)
    now, since = sa.bindparam("now", type_=Timestamp), sa.bindparam("since", type_=Timestamp)
    in_deal = sa.case((version.deal_id.is_not_distinct_from(deal), 1), else_=0).label("in_deal")
    in_account = sa.case((root.account_id == account, 1), else_=0).label("in_account")
    later = tables.quote_version.alias()
    is_last = ~sa.exists().where(
        later.c.tenant_id == version.tenant_id,
        later.c.quote_id == version.quote_id,
        later.c.version > version.version,
        _counts(later.c, now),
    )
    together = (version.tenant_id == root.tenant_id) & (version.quote_id == root.id)
    return (
        sa.select(
            in_deal,
            in_account,
            version.currency,
            sa.func.sum(version.subtotal),
            sa.func.sum(version.discount_total),
        )
        .join_from(tables.quote, tables.quote_version, together)
        .where(
            of_tenant(tables.quote, sa.bindparam("tenant")),
            (root.account_id == account) | (root.deal_id == deal),
            root.expires_at > since,
            root.id != sa.bindparam("mine"),
            # Most others are drafts that were never submitted.
            (root.status != QuoteStatus.DRAFT.value) | (root.version > sa.literal_column("1")),
            _counts(version, now),
            version.expires_at > since,
            is_last,
        )
        .group_by("in_deal", "in_account", version.currency)
    )


def _counts(version: sa.ReadOnlyColumnCollection[str, Any], now: sa.ColumnElement[datetime]) -> sa.ColumnElement[bool]:
    """Whether a version is open or accepted. One whose time is over does not hide an earlier one that was sent."""
    status = version.status
    is_waiting = version.lapses_at.is_(None) | (version.lapses_at > now)
    is_open = (status == VersionStatus.APPROVED.value) | (status == VersionStatus.SENT.value)
    is_open |= (status == VersionStatus.PENDING_APPROVAL.value) & is_waiting
    return (is_open & (version.expires_at > now)) | (status == VersionStatus.ACCEPTED.value)


_OTHERS = Statement(lambda _dialect: _others())
