"""What else is offered or sold to the same deal and account, so that a deal does not get smaller by being split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.money import from_micro
from cpq.base.text import digest
from cpq.domain.policy.facts import EXACT, NO_OTHERS, QUOTE_FACTS, OtherQuotes
from cpq.domain.quotes.lifecycle import QuoteStatus, VersionStatus
from cpq.domain.quotes.quote import Quote
from cpq.storage.columns import Timestamp
from cpq.storage.schema import tables
from cpq.storage.statements import Statement, wait_in_turn
from cpq.storage.tenants import of_tenant


def other_quotes(tx: Tx, quote: Quote, deal_id: str | None) -> OtherQuotes:
    """The values of the other quotes, in one query: open ones, and accepted ones that were valid not long ago.

    Of a quote the largest version counts that is open: while a revision waits, the customer can still accept the one
    before it. Drafts do not count, because nobody was offered them. A quote without a deal belongs to the deal of all
    such quotes of its account. Where no policy reads them, they are not looked up.
    """
    if DEAL.isdisjoint(tx.policies.reads):
        return NO_OTHERS
    found = _OTHERS.rows(
        tx.connection,
        tenant=tx.tenant_id,
        mine=quote.id,
        account=quote.account_id,
        deal=deal_id,
        now=tx.now,
        since=tx.now - timedelta(days=max(tx.policies.terms.deal_days, RECENT_DAYS)),
        since_deal=tx.now - timedelta(days=tx.policies.terms.deal_days),
        since_recent=tx.now - timedelta(days=RECENT_DAYS),
    )
    if not found:
        return NO_OTHERS
    rates = tx.policies.terms.rates
    of_deal = [(row[1], *row[2:4]) for row in found]
    of_account = [(row[1], *row[4:6]) for row in found if row[0]]
    recent = [(row[1], *row[6:8]) for row in found if row[0]]
    given_back = [(row[1], row[8], 0) for row in found if row[0]]
    return OtherQuotes(
        *_together(of_deal, rates),
        *_together(of_account, rates),
        *_together(recent, rates),
        _together(given_back, rates)[1],
    )


def hold_deal(tx: Tx, quote: Quote) -> None:
    """Let one quote of a deal or account be submitted or sent at a time, so that each sees the one before it.

    SQLite has one writer anyway. Sorted, because two who hold one and wait for the other would never end.
    """
    if tx.connection.dialect.name != "postgresql" or DEAL.isdisjoint(tx.policies.reads):
        return
    names = [("account", quote.account_id), *([("deal", quote.version.deal_id)] if quote.version.deal_id else [])]
    keys = {int(digest([tx.tenant_id, *name])[:15], 16) for name in names}
    for key in sorted(keys):
        wait_in_turn(tx.connection, key)


RECENT_DAYS = 90
"""For facts that say so in their names."""

DEAL = frozenset(name for name in QUOTE_FACTS if name.startswith(("deal_", "account_")))
"""Facts that need a look at other quotes."""


def _together(
    rows: Iterable[tuple[str, int | None, int | None]], rates: Mapping[str, Decimal]
) -> tuple[Decimal | None, Decimal | None]:
    """The sums of gross and net in the policy's currency; unknown when a currency has no rate."""
    gross, net = Decimal(0), Decimal(0)
    for currency, one_net, discount in rows:
        if one_net is None or discount is None:
            continue  # None of them counts.
        if currency not in rates:
            return None, None
        gross += EXACT.multiply(from_micro(int(one_net) + int(discount)), rates[currency])
        net += EXACT.multiply(from_micro(int(one_net)), rates[currency])
    return gross, net


def _others() -> sa.Select[*tuple[Any, ...]]:
    """By whether they are of the account and by currency: net and discount of the deal, of all, and of 90 days, and
    what changes of agreements gave back in these.

    The version that the customer has keeps its deal, whatever a revision in the making says.
    """
    root, version = tables.quote.c, tables.quote_version.c
    account, deal = sa.bindparam("account", type_=sa.Text), sa.bindparam("deal", type_=sa.Text)
    now, since = sa.bindparam("now", type_=Timestamp), sa.bindparam("since", type_=Timestamp)
    is_lately = version.expires_at > sa.bindparam("since_deal", type_=Timestamp)
    in_deal = is_lately & version.deal_id.is_not_distinct_from(deal)
    is_recent = version.expires_at > sa.bindparam("since_recent", type_=Timestamp)
    in_account = sa.case((root.account_id == account, 1), else_=0).label("in_account")
    back = sa.func.coalesce(version.credit, sa.literal_column("0"))
    # What another change gives back makes no deal smaller, nor what it sells beside.
    net, off = version.subtotal - version.discount_total + back, version.discount_total
    together = (version.tenant_id == root.tenant_id) & (version.quote_id == root.id)
    each = (
        sa.select(
            in_account,
            version.currency,
            sa.func.max(sa.case((in_deal, net))).label("deal_net"),
            sa.func.max(sa.case((in_deal, off))).label("deal_off"),
            sa.func.max(sa.case((is_lately, net))).label("net"),
            sa.func.max(sa.case((is_lately, off))).label("off"),
            sa.func.max(sa.case((is_recent, net))).label("recent_net"),
            sa.func.max(sa.case((is_recent, off))).label("recent_off"),
            sa.func.max(sa.case((is_recent, back))).label("recent_back"),
        )
        .join_from(tables.quote, tables.quote_version, together)
        .where(
            of_tenant(tables.quote, sa.bindparam("tenant")),
            root.id.in_(_near(account, deal, since)),
            root.expires_at > since,
            root.id != sa.bindparam("mine"),
            _was_submitted(),
            _counts(tables.quote_version, now),
            version.expires_at > since,
        )
        .group_by(root.id, root.account_id, version.currency)
        .subquery()
    )
    sums = (sa.func.sum(each.c[name]) for name in _SUMS)
    return sa.select(each.c.in_account, each.c.currency, *sums).group_by(each.c.in_account, each.c.currency)


_SUMS = ("deal_net", "deal_off", "net", "off", "recent_net", "recent_off", "recent_back")


def _near(
    account: sa.ColumnElement[Any], deal: sa.ColumnElement[Any], since: sa.ColumnElement[Any]
) -> sa.CompoundSelect[*tuple[str]]:
    """The quotes of the account, and those with any version in the deal, whatever deal their current one has.

    Each half has an index; a condition with `or` would read all quotes on PostgreSQL.
    """
    root, version = tables.quote, tables.quote_version
    of_account = sa.select(root.c.id).where(of_tenant(root, sa.bindparam("tenant")), root.c.account_id == account)
    of_deal = sa.select(version.c.quote_id).where(of_tenant(version, sa.bindparam("tenant")), version.c.deal_id == deal)
    of_account = of_account.where(root.c.expires_at > since, _was_submitted())
    return sa.union(of_account, of_deal.where(version.c.expires_at > since))


def _was_submitted() -> sa.ColumnElement[bool]:
    """Most other quotes are drafts that were never submitted: they are left out first."""
    root = tables.quote.c
    return (root.status != QuoteStatus.DRAFT.value) | (root.version > sa.literal_column("1"))


def _counts(versions: sa.FromClause, now: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Whether a version is open or accepted."""
    status, lapses_at = versions.c.status, versions.c.lapses_at
    is_waiting = lapses_at.is_(None) | (lapses_at > now)
    is_open = (status == VersionStatus.APPROVED.value) | (status == VersionStatus.SENT.value)
    is_open |= (status == VersionStatus.PENDING_APPROVAL.value) & is_waiting
    return (is_open & (versions.c.expires_at > now)) | (status == VersionStatus.ACCEPTED.value)


_OTHERS = Statement(lambda _dialect: _others())
