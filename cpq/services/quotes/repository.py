"""The rows of a quote: reads an aggregate in a fixed number of queries, and writes a version whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, next_call
from cpq.base.text import canonical_json, plain_json
from cpq.domain.pricing import result as pricing_result
from cpq.domain.pricing.request import Segment
from cpq.domain.pricing.result import PricedQuote
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.domain.quotes.lifecycle import status_at
from cpq.services.quotes.composition import Composition
from cpq.storage.columns import JsonText
from cpq.storage.schema import account, quote, quote_line, quote_pricing, quote_version
from cpq.storage.statements import AnyRow, Statement
from cpq.storage.tenants import of_tenant


@dataclass(frozen=True)
class Quote:
    """The root with one of its versions and that version's lines."""

    root: AnyRow
    version: AnyRow
    lines: Sequence[AnyRow]
    status: str
    """As it is now: a quote whose last valid day is over has expired, whatever was stored."""

    @property
    def id(self) -> str:
        return str(self.root.id)

    def as_draft(self, **changes: Any) -> Draft:
        """What was asked, to be asked again with changes."""
        version = self.version
        asked = {
            "account_id": self.root.account_id,
            "currency": self.root.currency,
            "deal_id": version.deal_id,
            "term_months": version.term_months,
            "start_date": version.start_date,
            "end_date": version.end_date if version.term_months is None else None,
            "payment_terms": version.payment_terms,
            "notes": version.notes,
            "requested_discount": version.requested_discount,
            "option_set": version.option_set,
            "lines": tuple(_as_line(row) for row in self.lines),
        }
        return Draft(**{**asked, **changes})


def find(tx: Tx, quote_id: str) -> Quote | None:
    """A quote to be changed, if there is one."""
    mine = tx.own(quote) & (quote.c.id == quote_id)
    is_known = tx.connection.scalar(sa.select(quote.c.id).where(mine)) is not None
    return load(tx, quote_id, for_update=True) if is_known else None


def load(
    tx: Tx, quote_id: str, *, version: int | None = None, for_update: bool = False, with_lines: bool = True
) -> Quote:
    """A quote with its current version, or another one; NOT_FOUND when there is none."""
    query = sa.select(quote, account.c.name.label("account_name"), account.c.time_zone).join(
        account, of_tenant(account, quote.c.tenant_id) & (account.c.id == quote.c.account_id)
    )
    query = query.where(tx.own(quote), quote.c.id == quote_id)
    root = tx.connection.execute(query.with_for_update(of=quote) if for_update else query).one_or_none()
    if root is None:
        raise CpqError(
            Code.NOT_FOUND, f"There is no quote {quote_id!r}.", field="/quote_id", next_call=next_call("quote_list")
        )
    wanted = version or root.version
    chosen = tx.connection.execute(sa.select(quote_version).where(*_mine(tx, quote_version, quote_id, wanted)))
    found = chosen.one_or_none()
    if found is None:
        raise CpqError(
            Code.NOT_FOUND,
            f"Quote {quote_id} has no version {wanted}.",
            field="/version",
            maximum=max(statuses(tx, quote_id)),
        )
    its_lines = lines(tx, quote_id, wanted) if with_lines else ()
    return Quote(root, found, its_lines, status_at(root.status, root.expires_at, tx.now))


def statuses(tx: Tx, quote_id: str) -> dict[int, str]:
    """The status of every version, as stored."""
    mine = tx.own(quote_version) & (quote_version.c.quote_id == quote_id)
    rows = tx.connection.execute(sa.select(quote_version.c.version, quote_version.c.status).where(mine))
    return {row.version: row.status for row in rows}


def lines(tx: Tx, quote_id: str, version: int) -> Sequence[AnyRow]:
    """The lines of a version in their order."""
    mine = _mine(tx, quote_line, quote_id, version)
    return tx.connection.execute(sa.select(quote_line).where(*mine).order_by(quote_line.c.number)).all()


def pricings(tx: Tx, quote_id: str, version: int) -> list[AnyRow]:
    """What the version's prices were reckoned from and what came out, a row for each option set."""
    mine = _mine(tx, quote_pricing, quote_id, version)
    return list(tx.connection.execute(sa.select(quote_pricing).where(*mine).order_by(quote_pricing.c.option_set)))


def result_of(record: AnyRow) -> PricedQuote:
    return pricing_result.load(record.result)


def add_quote(tx: Tx, quote_id: str, composed: Composition) -> None:
    """A new quote with its first version."""
    draft = composed.draft
    root = {
        "tenant_id": tx.tenant_id,
        "id": quote_id,
        "account_id": draft.account_id,
        "deal_id": draft.deal_id,
        "currency": draft.currency,
        "version": 1,
        "edit": 1,
        "status": "draft",
        "total": composed.priced.total,
        "valid_until": composed.valid_until,
        "expires_at": composed.expires_at,
        "created_at": tx.now,
        "created_by": tx.caller,
    }
    _ADD_QUOTE.run(tx.connection, **root)
    add_version(tx, quote_id, 1, composed, priced_at=None, before=None)


def add_version(
    tx: Tx, quote_id: str, version: int, composed: Composition, *, priced_at: datetime | None, before: AnyRow | None
) -> None:
    """A new version, made after the one `before`: whoever had a hand in that one has a hand in this one."""
    edited_by = [] if before is None else sorted({*before.edited_by, before.created_by})
    mine = {"tenant_id": tx.tenant_id, "quote_id": quote_id, "version": version}
    row = {
        **mine,
        "status": "draft",
        "reason": None,
        **_terms(composed),
        "priced_at": priced_at,
        "created_at": tx.now,
        "created_by": tx.caller,
        "edited_by": edited_by,
    }
    _ADD_VERSION.run(tx.connection, **row)
    _add_parts(tx, mine, composed)


def replace_version(tx: Tx, found: Quote, composed: Composition, *, priced_at: datetime | None) -> None:
    """Write a draft version anew; only drafts are, so what was submitted stays as it was. Who does it is noted."""
    quote_id, version = found.id, found.version.version
    edited_by = sorted({*found.version.edited_by, tx.caller})
    for table in (quote_line, quote_pricing):
        tx.connection.execute(sa.delete(table).where(*_mine(tx, table, quote_id, version)))
    changed = sa.update(quote_version).where(*_mine(tx, quote_version, quote_id, version))
    tx.connection.execute(changed.values(**_terms(composed), priced_at=priced_at, edited_by=edited_by))
    _add_parts(tx, {"tenant_id": tx.tenant_id, "quote_id": quote_id, "version": version}, composed)


def move(tx: Tx, found: Quote, **changes: Any) -> None:
    """Change the root, and count the change: whoever read the quote before can tell that it moved."""
    mine = tx.own(quote) & (quote.c.id == found.id)
    tx.connection.execute(sa.update(quote).where(mine).values(edit=found.root.edit + 1, **changes))


def settle(tx: Tx, found: Quote, version: int, composed: Composition) -> Quote:
    """Bring the root in line with the version that was just written, and read it again."""
    move(
        tx,
        found,
        version=version,
        status="draft",
        deal_id=composed.draft.deal_id,
        total=composed.priced.total,
        valid_until=composed.valid_until,
        expires_at=composed.expires_at,
    )
    return load(tx, found.id)


def move_version(tx: Tx, quote_id: str, version: int, **changes: Any) -> None:
    mine = _mine(tx, quote_version, quote_id, version)
    tx.connection.execute(sa.update(quote_version).where(*mine).values(**changes))


def choose_amounts(tx: Tx, quote_id: str, version: int, priced: PricedQuote) -> None:
    """Give lines what they cost in the chosen option set: one that all sets share may cost something else in each."""
    names = ("list_amount", "regular", "net", "cost")
    change = sa.update(quote_line).where(
        *_mine(tx, quote_line, quote_id, version), quote_line.c.number == sa.bindparam("line_number")
    )
    change = change.values({name: sa.bindparam(f"new_{name}") for name in names})
    rows = [
        {f"new_{name}": getattr(line, name) for name in names} | {"line_number": int(line.id)} for line in priced.lines
    ]
    tx.connection.execute(change, rows)


def _terms(composed: Composition) -> dict[str, Any]:
    draft, priced = composed.draft, composed.priced
    return {
        "deal_id": draft.deal_id,
        "term_months": draft.term_months,
        "start_date": draft.start_date,
        "end_date": composed.end_date,
        "payment_terms": composed.payment_terms,
        "notes": draft.notes,
        "option_set": composed.sets[0].name or None,
        "requested_discount": draft.requested_discount,
        "subtotal": priced.subtotal,
        "discount_total": priced.discount_total,
        "tax_total": priced.tax_total,
        "total": priced.total,
        "tax_note": priced.tax_note,
        "fingerprint": composed.fingerprint,
        "hashes": JsonText(plain_json(composed.hashes)),
        "valid_until": composed.valid_until,
        "expires_at": composed.expires_at,
    }


def _add_parts(tx: Tx, mine: Mapping[str, Any], composed: Composition) -> None:
    priced_lines, products = composed.priced_lines, composed.products
    rows = []
    for line in composed.draft.lines:
        priced = priced_lines[line.number]
        # Every column of the table, in its order.
        rows.append(
            (
                *mine.values(),
                line.number,
                line.product_id,
                products[line.product_id].name,
                line.quantity,
                line.discount_pct,
                canonical_json(line.attributes) if line.attributes else "{}",
                line.notes,
                line.option_set,
                canonical_json(line.ramp) if line.ramp else "[]",
                priced.billing_period,
                priced.tax_category,
                priced.list_amount,
                priced.regular,
                priced.net,
                priced.cost,
            )
        )
    _ADD_LINES.run_many(tx.connection, rows)
    for one in composed.sets:
        _ADD_PRICING.run(tx.connection, **mine, option_set=one.name, request=one.request_json, result=one.result_json)


_ADD_QUOTE = Statement(lambda _dialect: sa.insert(quote))
_ADD_VERSION = Statement(lambda _dialect: sa.insert(quote_version))
_ADD_LINES = Statement(lambda _dialect: sa.insert(quote_line))
_ADD_PRICING = Statement(lambda _dialect: sa.insert(quote_pricing))


def _as_line(row: AnyRow) -> DraftLine:
    ramp = tuple(Segment(*segment) for segment in row.ramp)
    return DraftLine(
        row.number,
        row.product_id,
        row.quantity,
        row.discount_pct,
        row.attributes,
        row.notes,
        row.option_set,
        ramp,
    )


def _mine(tx: Tx, table: sa.Table, quote_id: str, version: int) -> tuple[sa.ColumnElement[bool], ...]:
    return tx.own(table), table.c.quote_id == quote_id, table.c.version == version
