"""The state that each audit entry leads to: digests of the rows it changed, checked before anybody relies on them.

An entry about a quote carries a digest of every part of it: the quote, its versions, lines, prices, approvals, votes,
links and documents. Parts that a call did not change keep the digest of the entry before, so that a row which somebody
changed in the database differs from its record until a person accepts it.

With a key outside the database, the state is signed together with its entry, and a state without the signature is
relied on by nobody: who can write the database could take a signature away as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from cpq.app.audit import Entry, contents
from cpq.app.transaction import Tx
from cpq.base.audit_key import COMMAND, FILE
from cpq.base.errors import Code, CpqError
from cpq.base.state_digest import row_digest, rows_digest
from cpq.base.text import digest, plain_json, read_json
from cpq.storage.columns import as_stored
from cpq.storage.schema import tables
from cpq.storage.statements import Statement, wait_in_turn
from cpq.storage.tenants import of_tenant

Rows = Sequence[Sequence[object]]

Parts = dict[str, str]
"""A digest for each part, such as `quote.status`, `quote_line/2` or `approval/apr-1`."""

_STATUS = {
    "quote": ("version", "edit", "status", "lapses_at"),
    "quote_version": ("status", "reason", "lapses_at", "edited_by"),
}
"""Columns with a digest of their own: a changed status and changed terms are different findings."""

OF_VERSION = ("quote_version", "quote_line", "quote_pricing")
"""Tables with a part for each version; the number of the version follows the name."""

APPROVALS = ("approval", "approval_vote", "held_decision")
RELIED_ON = ("quote_line", "quote_pricing", *APPROVALS)
"""What a version that goes to a customer rests on, besides the quote and the version itself."""

BY_ROW = (*APPROVALS, "acceptance_link", "document", "sales_order")
"""Tables with a part for each row; the key of the row follows the name."""

SIGNED = "audit state"
"""What the signature of a state is for."""

RIGHTS = "rights"
"""The subject of the entries about tokens, the callers they belong to, and delegations."""

CATALOG = "catalog"
"""The subject of the entries about products, prices and accounts; see `recorded_sets`."""

BASELINE = "audit_baseline"
"""The operation that records states as they are stored, and changes nothing."""

RIGHTS_TABLES = ("token", "principal", "delegation")

_KEYS = {"approval_vote": ("approval_id", "caller"), "principal": ("name",)}


class Part(NamedTuple):
    """What is read at once: a table, and the version or the row of it."""

    table: str
    key: str | None = None

    @classmethod
    def parse(cls, name: str) -> Part:
        table, _, key = name.partition("/")
        return cls(table, key or None)

    @property
    def name(self) -> str:
        return self.table if self.key is None else f"{self.table}/{self.key}"


class StateDiffersError(CpqError):
    """Somebody changed rows in the database that a call is about to rely on."""


@dataclass(frozen=True)
class Recorded:
    """The state of a subject as its last entry has it. Entries about one subject are numbered from 1."""

    number: int
    parts: Parts
    entry: Entry
    signature: str | None = None
    checked: set[Part] = field(default_factory=set)
    """What this transaction has compared with the stored rows."""


def note(tx: Tx, subject: str, table: str, key: object = None) -> None:
    """Note that this transaction changes a part of a quote or of the rights; it is read when the entry is written."""
    tx.changes.setdefault(subject, {})[table if key is None else f"{table}/{key}"] = None


def note_rows(tx: Tx, quote_id: str, part: Part, rows: Iterable[Sequence[object]]) -> None:
    """Note a part that was just written, all of its rows with every column in the order of the table."""
    tx.changes.setdefault(quote_id, {}).update(written(part, rows))


def note_read(tx: Tx, quote_id: str, rows: Mapping[Part, Rows]) -> None:
    """Take the digests of changed parts from rows that were read after the change."""
    changed = tx.changes.get(quote_id, {})
    for part, found in rows.items():
        if part.name in changed:
            del changed[part.name]
            changed.update(written(part, found))


def begin(tx: Tx, quote_id: str) -> None:
    """Note that this transaction creates the quote, so that nothing is on record about it."""
    tx.records[quote_id] = None
    tx.begun.add(quote_id)


def rebase(tx: Tx, subject: str) -> None:
    """Record the quote or the rights as they are stored now, whatever the record says."""
    forget(tx, subject)
    for part in _all_parts(tx, subject):
        note(tx, subject, *part)


def forget(tx: Tx, subject: str) -> None:
    """Begin a new state of the subject in this transaction, numbered after the one on record and without its parts."""
    known = on_record(tx, subject, for_update=True)
    tx.records[subject] = replace(known, parts={}) if known else None
    tx.begun.add(subject)


def entries(tx: Tx, entry: Entry) -> Iterator[Entry]:
    """The entry of a call with the state it leads to, and one more for every other subject that it changed.

    The first state of a subject from before states were recorded has all of its parts. The key signs it only if there
    is nothing besides what this call wrote, and signs no state after one that nobody relies on.
    """
    if entry.subject is None and tx.changes:
        entry = replace(entry, subject=min(tx.changes))
    if entry.subject not in tx.changes:
        yield entry
    for subject in sorted(tx.changes):
        own = entry if subject == entry.subject else _besides(tx, entry, subject)
        before = latest(tx, subject, for_update=True)
        number, parts = (before.number, before.parts) if before else (0, {})
        parts, is_sound = _after(tx, subject, parts), subject not in tx.unsigned
        if subject not in tx.begun:
            if before is None:
                changed, parts = parts, read_all(tx, subject)
                is_sound = changed == parts
            else:
                is_sound = may_rely_on(tx, before)
        if before:  # The clocks of two servers differ, and the later entry is found by its time.
            own = replace(own, at=max(own.at, before.entry.at + timedelta(microseconds=1)))
        yield _with_state(tx, own, {"number": number + 1, "parts": parts}, is_sound=is_sound)


def _with_state(tx: Tx, entry: Entry, state: dict[str, Any], *, is_sound: bool) -> Entry:
    entry = replace(entry, state=plain_json(state))
    if tx.audit_key is None or not is_sound:
        return entry
    return replace(entry, state=plain_json({**state, "signature": tx.audit_key.sign(SIGNED, _signed_text(entry))}))


def _signed_text(entry: Entry) -> str:
    return plain_json(contents(entry))


def is_signed(tx: Tx, known: Recorded) -> bool:
    """Whether the key of this process has signed the state, as it is in this entry."""
    if tx.audit_key is None or known.signature is None:
        return False
    unsigned = replace(known.entry, state=plain_json({"number": known.number, "parts": known.parts}))
    return tx.audit_key.has_signed(SIGNED, _signed_text(unsigned), known.signature)


def _besides(tx: Tx, entry: Entry, subject: str) -> Entry:
    """An entry for the state of a subject that the entry of the call is not about."""
    return replace(entry, id=tx.new_id("au-"), operation="state_record", subject=subject, answer=None)


def latest(tx: Tx, subject: str, *, for_update: bool = False) -> Recorded | None:
    """The state that was recorded last; None for a quote from before states were recorded.

    CONFLICT when it is not signed by the key, or is signed and this process has no key.
    """
    if subject in tx.records:
        return tx.records[subject]
    known = on_record(tx, subject, for_update=for_update)
    if known is not None and not may_rely_on(tx, known):
        tx.records.pop(subject, None)
        raise unsigned(tx, subject, known)
    return known


def lock(tx: Tx, subject: str) -> None:
    """Lock the subject for a change that relies on nothing, such as a failure; a plain state stays plain."""
    (latest if tx.audit_key is None else on_record)(tx, subject, for_update=True)


def on_record(tx: Tx, subject: str, *, for_update: bool = False) -> Recorded | None:
    """The state that was recorded last, whether it is signed or not."""
    if subject in tx.records:
        return tx.records[subject]
    if for_update and tx.connection.dialect.name != "sqlite":
        _lock_subject(tx, subject)
    rows = _LATEST.rows(tx.connection, tenant_id=tx.tenant_id, subject=subject)
    known = parse(Entry(*rows[0])) if rows else None
    if for_update:
        tx.records[subject] = known
    return known


def may_rely_on(tx: Tx, known: Recorded) -> bool:
    """Whether the state is signed by the key, or is plain in a process without one."""
    return is_signed(tx, known) if tx.audit_key else known.signature is None


def unsigned(tx: Tx, subject: str, known: Recorded | None) -> StateDiffersError:
    """The refusal of a state that nobody relies on, or of none at all."""
    if tx.audit_key is None:
        reason, hint = "is signed, and this process has no key", f"Set {FILE} or {COMMAND} as for the servers."
    elif known is None or known.signature is None:
        reason = "is not signed; it is from before the key, or somebody changed it in the database"
        hint = "The operator runs `cpq audit verify --state`, then `cpq audit baseline`, which signs what is whole."
    else:
        reason, hint = "has a signature that is not by the key", "The operator runs `cpq audit verify --state`."
    return StateDiffersError(
        Code.CONFLICT,
        f"The audit record of {subject} {reason}. Nothing was done.",
        differing=["audit_entry"],
        hint=hint,
    )


def _lock_subject(tx: Tx, subject: str) -> None:
    """Let calls that record a state of the subject wait for each other: a document is issued without a lock on its
    quote."""
    if not _LOCK.rows(tx.connection, tenant_id=tx.tenant_id, id=subject):
        wait_in_turn(tx.connection, int(digest([tx.tenant_id, "state", subject])[:15], 16))


def require(
    tx: Tx,
    quote_id: str,
    *versions: int,
    also: Collection[str] = (),
    for_update: bool = False,
    rows: Mapping[Part, Rows] | None = None,
) -> None:
    """CONFLICT when the quote, some versions or other parts of it differ from the record; `rows` are read already.

    A quote from before states were recorded passes, unless there is a key; `cpq audit verify --state` counts those.
    """
    known = latest(tx, quote_id, for_update=for_update)
    if known is None:
        if tx.audit_key and quote_id not in tx.changes:
            raise unsigned(tx, quote_id, None)
        return
    by_version = ("quote_version", *(table for table in also if table in OF_VERSION))
    wanted = [Part("quote"), *(Part(table, str(version)) for version in versions for table in by_version)]
    wanted += [Part.parse(name) for name in also if name not in OF_VERSION]
    changed = tx.changes.get(quote_id, ())
    differing = []
    for part in wanted:
        if part not in known.checked:
            known.checked.add(part)
            found = written(part, rows[part]) if rows and part in rows else read(tx, quote_id, part)
            differing += differences(_of(known.parts, part), found)
    if differing and (differing := [name for name in differing if not any(is_of(name, one) for one in changed)]):
        raise StateDiffersError(
            Code.CONFLICT,
            f"Quote {quote_id} is not as the audit record has it; somebody changed it in the database: "
            f"{', '.join(map(described, differing))}. Nothing was done.",
            field="/quote_id",
            differing=differing,
            hint="The operator runs `cpq audit verify --state`, and mends the rows or accepts them with "
            "`cpq audit baseline`.",
        )


def differences(recorded: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """The parts that are changed, missing or not on record."""
    return sorted(name for name in recorded.keys() | found.keys() if recorded.get(name) != found.get(name))


def described(name: str) -> str:
    """A part for a person: `quote_version/2.terms` is the terms in the row of version 2."""
    table, _, key = name.partition("/")
    table, _, group = table.partition(".")
    if table in OF_VERSION:
        key, _, group = key.partition(".")
        key = f"version {key}"
    groups = {"status": "status columns", "terms": "terms, texts or amounts"}
    return " ".join(filter(None, (table, key, f"({groups[group]})" if group else "")))


def read(tx: Tx, quote_id: str, part: Part) -> Parts:
    """The digests of a part as it is stored now."""
    values: dict[str, Any] = {"tenant_id": tx.tenant_id}
    if part.table in OF_VERSION:
        values["version"] = int(part.key or 0)
    elif part.key is not None:
        values["the_id"] = part.key
    statement = _statement(part.table, by_row="the_id" in values)
    if part.table not in RIGHTS_TABLES:
        values["quote_id"] = quote_id
    return written(part, statement.rows(tx.connection, **values))


def read_all(tx: Tx, subject: str) -> Parts:
    """The digests of all parts of a quote or of the rights, as they are stored now."""
    return {name: one for part in _all_parts(tx, subject) for name, one in read(tx, subject, part).items()}


def _all_parts(tx: Tx, subject: str) -> list[Part]:
    if subject == RIGHTS:
        return [Part(table) for table in RIGHTS_TABLES]
    version = tables.quote_version
    numbers = sa.select(version.c.version).where(tx.own(version), version.c.quote_id == subject)
    of_versions = [Part(table, str(one)) for one in tx.connection.scalars(numbers) for table in OF_VERSION]
    return [Part("quote"), *map(Part, BY_ROW), *of_versions]


def written(part: Part, rows: Iterable[Any]) -> Parts:
    """The digests of a part from its rows, with all columns in the order of the table."""
    table, key = part
    if table in _STATUS:
        return {f"{part.name}.{group}": one for row in rows for group, one in _groups(table, row)}
    if table in BY_ROW or table in RIGHTS_TABLES:
        keys = _key_columns(table)
        return {f"{table}/{_joined(keys(row))}": row_digest(row) for row in rows}
    # After tenant, quote and version comes the rest of the key; databases sort texts differently.
    ordered = sorted(rows, key=itemgetter(3))
    return {f"{table}/{key}": rows_digest(ordered)} if ordered else {}


def _joined(key: str | tuple[str, ...]) -> str:
    return key if isinstance(key, str) else "/".join(key)


def _groups(table: str, row: Any) -> Iterator[tuple[str, str]]:
    for group, pick in _group_columns(table).items():
        yield group, row_digest(pick(row))


def parse(entry: Entry) -> Recorded:
    """The state in an entry that has one."""
    state = read_json(entry.state or "{}")
    return Recorded(state["number"], state["parts"], entry, state.get("signature"))


def _after(tx: Tx, subject: str, parts: Parts) -> Parts:
    """The parts of a subject after the changes of this transaction."""
    after = dict(parts)
    for name, written_digest in tx.changes[subject].items():
        if written_digest is not None:
            after[name] = written_digest
            continue
        part = Part.parse(name)
        for old in _of(after, part):
            del after[old]
        after |= read(tx, subject, part)
    return after


def _of(parts: Parts, part: Part) -> Parts:
    """The recorded digests that `read` gives for a part."""
    whole, inside = part.name, _inside(part)
    return {name: one for name, one in parts.items() if name == whole or name.startswith(inside)}


def is_of(name: str, whole: str) -> bool:
    """Whether a digest is of a part."""
    return name == whole or name.startswith(_inside(Part.parse(whole)))


@lru_cache(maxsize=1024)
def _inside(part: Part) -> tuple[str, ...]:
    """How the names of what belongs to a part begin. Names of callers may have dots: only tables with a status have a
    dot of ours."""
    whole, joints = part.name, "." if part.table in _STATUS else ""
    if part.key is None or part.table == "approval_vote":
        joints += "/"
    return tuple(whole + joint for joint in joints)


@cache
def _group_columns(table: str) -> dict[str, itemgetter[Any]]:
    status = [place for place, column in enumerate(_table(table).c) if column.name in _STATUS[table]]
    terms = [place for place in range(len(_table(table).c)) if place not in status]
    return {"status": itemgetter(*status), "terms": itemgetter(*terms)}


@cache
def _key_columns(table: str) -> itemgetter[Any]:
    names = [column.name for column in _table(table).c]
    return itemgetter(*(names.index(name) for name in _KEYS.get(table, ("id",))))


@cache
def _table(name: str) -> sa.Table:
    found: sa.Table = getattr(tables, name)
    return found


@cache
def _statement(table: str, *, by_row: bool) -> Statement:
    return Statement(lambda dialect: _query(dialect, _table(table), by_row=by_row))


def _query(dialect: str, table: sa.Table, *, by_row: bool) -> sa.Select[Any]:
    """All columns of a part, as they are stored."""
    query = sa.select(*(as_stored(dialect, column) for column in table.c))
    query = query.where(of_tenant(table, sa.bindparam("tenant_id")))
    if table is tables.quote:
        return query.where(table.c.id == sa.bindparam("quote_id"))
    if table is tables.approval_vote:
        approval = tables.approval
        query = query.where(of_tenant(approval, sa.bindparam("tenant_id")), approval.c.id == table.c.approval_id)
        query = query.where(approval.c.quote_id == sa.bindparam("quote_id"))
    elif table.name not in RIGHTS_TABLES:
        query = query.where(table.c.quote_id == sa.bindparam("quote_id"))
    if table.name in OF_VERSION:
        query = query.where(table.c.version == sa.bindparam("version"))
    return query.where(table.c[_KEYS.get(table.name, ("id",))[0]] == sa.bindparam("the_id")) if by_row else query


def _latest(_dialect: str) -> sa.Select[Any]:
    entry = tables.audit_entry
    mine = of_tenant(entry, sa.bindparam("tenant_id")) & (entry.c.subject == sa.bindparam("subject"))
    query = sa.select(*(entry.c[one.name] for one in fields(Entry))).where(mine, entry.c.state.is_not(None))
    return query.order_by(entry.c.at.desc(), entry.c.id.desc()).limit(sa.literal_column("1"))


def _lock(_dialect: str) -> sa.Select[Any]:
    mine = of_tenant(tables.quote, sa.bindparam("tenant_id")) & (tables.quote.c.id == sa.bindparam("id"))
    return sa.select(tables.quote.c.id).where(mine).with_for_update()


_LATEST = Statement(_latest)
_LOCK = Statement(_lock)
