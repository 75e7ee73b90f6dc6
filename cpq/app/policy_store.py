"""The sets of policies that servers have used and people have adopted, stored with the texts of their files."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.base.errors import Code, CpqError
from cpq.base.late_modules import LateModule
from cpq.base.tenant_folders import MAIN_TENANT
from cpq.base.text import canonical_json, read_json
from cpq.storage.schema.tables import policy_set
from cpq.storage.tenants import of_tenant
from cpq.storage.upsert import upsert

if TYPE_CHECKING:
    from cpq.app.policy_files import Loaded
    from cpq.app.transaction import Tx
    from cpq.domain.policy.files import builder
    from cpq.domain.policy.policy_set import PolicySet
else:
    builder = LateModule("cpq.domain.policy.files.builder")


class StoredSet(NamedTuple):
    content_hash: str
    files: str
    """JSON of the texts by name; may be anything, until `rebuilt` has read it."""
    used_at: datetime
    adopted_at: datetime | None
    adopted_by: str | None


def adopted(connection: Connection, tenant_id: str = MAIN_TENANT) -> StoredSet | None:
    """The set that was adopted last."""
    return _newest(connection, tenant_id, policy_set.c.adopted_at)


def adopted_hash(connection: Connection, tenant_id: str = MAIN_TENANT) -> str | None:
    """The hash of `adopted`, without its files."""
    found: str | None = connection.scalar(_ordered(_HASH, tenant_id, policy_set.c.adopted_at))
    return found


def last_used(connection: Connection, tenant_id: str = MAIN_TENANT) -> StoredSet | None:
    """The set that a server was the last to begin with or change to."""
    return _newest(connection, tenant_id, policy_set.c.used_at)


def last_used_hash(connection: Connection, tenant_id: str = MAIN_TENANT) -> str | None:
    """The hash of `last_used`, without its files."""
    found: str | None = connection.scalar(_ordered(_HASH, tenant_id, policy_set.c.used_at))
    return found


def was_used(connection: Connection, content_hash: str, tenant_id: str = MAIN_TENANT) -> bool:
    """Whether a server has ever used a set with this content."""
    mine = of_tenant(policy_set, tenant_id) & (policy_set.c.content_hash == content_hash)
    return connection.scalar(sa.select(policy_set.c.content_hash).where(mine)) is not None


def rebuilt(stored: StoredSet, deciders: Collection[str] | None) -> PolicySet:
    """The policies of a stored set. Refused, unless their content still has the hash that they were stored under."""
    try:
        texts = read_json(stored.files)
        is_of_files = isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values())
        policies = builder.build(texts, deciders) if is_of_files else None
    except (ValueError, CpqError):
        policies = None
    if policies is not None and policies.content_hash == stored.content_hash:
        return policies
    raise CpqError(
        Code.CONFIGURATION_INVALID,
        f"The stored policies {stored.content_hash} are refused: their files have another content now.",
        hint="Somebody changed them in the database, or another version of Quotewright reads them differently. "
        "Review the folder of policies, then run `cpq policy adopt`.",
    )


def keep(connection: Connection, loaded: Loaded, now: datetime, tenant_id: str = MAIN_TENANT) -> None:
    """Store the set that a server uses, if it is not the one that was stored last."""
    last = last_used(connection, tenant_id)
    files = canonical_json(loaded.texts)
    if last is None or (last.content_hash, last.files) != (loaded.policies.content_hash, files):
        used_at = _after(now, last and last.used_at)
        _store(connection, tenant_id, loaded.policies.content_hash, files=files, used_at=used_at)


def adopt(tx: Tx, loaded: Loaded) -> bool:
    """Make a set the one in force; False when it is that already, and then nothing is changed."""
    last, used = adopted(tx.connection, tx.tenant_id), last_used(tx.connection, tx.tenant_id)
    if is_in_force(last, used, loaded):
        return False
    _store(
        tx.connection,
        tx.tenant_id,
        loaded.policies.content_hash,
        files=canonical_json(loaded.texts),
        used_at=_after(tx.now, used and used.used_at),
        adopted_at=_after(tx.now, last and last.adopted_at),
        adopted_by=tx.caller,
    )
    return True


def is_in_force(last: StoredSet | None, used: StoredSet | None, loaded: Loaded) -> bool:
    """Whether the set was adopted last, and no server has brought another one into use since."""
    is_used = used is not None and used.content_hash == loaded.policies.content_hash
    return is_used and last is not None and is_same(last, loaded)


def is_same(stored: StoredSet, loaded: Loaded) -> bool:
    """Whether the stored set has this content, and its files are still those."""
    if stored.content_hash != loaded.policies.content_hash:
        return False
    try:
        rebuilt(stored, None)
    except CpqError:
        return False
    return True


def _newest(connection: Connection, tenant_id: str, moment: sa.Column[datetime]) -> StoredSet | None:
    columns = [policy_set.c[name] for name in StoredSet._fields]
    row = connection.execute(_ordered(sa.select(*columns), tenant_id, moment)).first()
    return None if row is None else StoredSet(*row)


def _ordered(found: sa.Select[Any], tenant_id: str, moment: sa.Column[datetime]) -> sa.Select[Any]:
    mine = of_tenant(policy_set, tenant_id) & moment.is_not(None)
    return found.where(mine).order_by(moment.desc(), policy_set.c.content_hash).limit(1)


_HASH = sa.select(policy_set.c.content_hash)


def _after(now: datetime, last: datetime | None) -> datetime:
    """Now, but later than the last time: what comes last is last, even when the clock was set back."""
    return now if last is None else max(now, last + timedelta(microseconds=1))


def _store(connection: Connection, tenant_id: str, content_hash: str, **values: object) -> None:
    changes = {name: sa.literal(value, policy_set.c[name].type) for name, value in values.items()}
    statement = upsert(connection.dialect.name, policy_set, changes)
    connection.execute(statement.values(tenant_id=tenant_id, content_hash=content_hash, **values))
