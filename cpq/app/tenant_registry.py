"""The registry of tenants: who they are, and whether their calls are answered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.app.access import OPERATOR, Principal
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field, nearest
from cpq.base.tenant_folders import ID_RULE, MAIN_TENANT, is_tenant_id
from cpq.base.text import clean_line
from cpq.storage.schema import tables
from cpq.storage.statements import Statement
from cpq.storage.tenants import of_tenant

NAME_MAX = 100
TENANTS = "`cpq tenant list` shows the tenants."


class TenantState(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"


@dataclass(frozen=True)
class Tenant:
    id: str
    name: str
    state: TenantState
    created_at: datetime | None
    """None for `main`, which nobody created."""


MAIN = Tenant(MAIN_TENANT, MAIN_TENANT, TenantState.ACTIVE, None)


class ClosedTenantError(CpqError):
    """The caller's tenant is suspended or does not exist: no door answers, whatever is asked."""


def admit(connection: Connection, principal: Principal, *, writes: bool) -> None:
    """Refuse the calls of a tenant that is suspended or that nobody created; its data stays as it is.

    The operator of the machine may still look after a suspended one. A write holds the row until its end, so that
    nothing is stored for a tenant after it was deleted.
    """
    tenant_id = principal.tenant_id
    if tenant_id == MAIN_TENANT:
        return
    rows = (_HELD if writes else _STATE).rows(connection, tenant=tenant_id)
    if not rows:
        raise unknown(tenant_id)
    if rows[0][0] == TenantState.SUSPENDED and principal.caller != OPERATOR.caller:
        raise suspended(tenant_id)


def unknown(tenant_id: str) -> ClosedTenantError:
    return ClosedTenantError(Code.NOT_FOUND, f"There is no tenant {tenant_id[:40]!r}.", hint=TENANTS)


def suspended(tenant_id: str) -> ClosedTenantError:
    return ClosedTenantError(
        Code.FORBIDDEN,
        f"The tenant {tenant_id!r} is suspended. Nothing was changed, and its data is kept.",
        hint=f"Do not repeat the call. The operator opens it again with `cpq tenant resume {tenant_id}`.",
    )


def exists(connection: Connection, tenant_id: str) -> bool:
    """Whether entries may be stored for this tenant; a write holds its row as `admit` does."""
    return tenant_id == MAIN_TENANT or bool(_HELD.rows(connection, tenant=tenant_id))


def is_served(column: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Whether the tenant in this column is not suspended, for queries over all tenants that look for work."""
    of_it = of_tenant(tables.tenant, column) & (tables.tenant.c.state == TenantState.SUSPENDED)
    return ~sa.exists().where(of_it).correlate(column.table)


def require(connection: Connection, tenant_id: str) -> None:
    """Refuse a tenant that a command or a setting names and that cannot be used, with the nearest known ones."""
    if tenant_id == MAIN_TENANT:
        return
    rows = _STATE.rows(connection, tenant=tenant_id)
    if not rows:
        raise _unknown(connection, tenant_id)
    if rows[0][0] == TenantState.SUSPENDED:
        raise suspended(tenant_id)


def create(tx: Tx, tenant_id: str, name: str) -> Tenant:
    """A new tenant without any data. Ids are unique and never change, because every key begins with them."""
    if not is_tenant_id(tenant_id):
        plain = "".join(one if one.isalnum() and one.isascii() else "-" for one in tenant_id.lower()).strip("-")[:40]
        raise bad_field("/id", ID_RULE, nearest=[plain] if is_tenant_id(plain) else None)
    if tenant_id == MAIN_TENANT or _STATE.rows(tx.connection, tenant=tenant_id):
        raise CpqError(Code.CONFLICT, f"There is a tenant {tenant_id!r} already.", field="/id", hint=TENANTS)
    made = Tenant(tenant_id, _clean_name(name), TenantState.ACTIVE, tx.now)
    row = {"tenant_id": made.id, "name": made.name, "state": made.state.value, "created_at": made.created_at}
    tx.connection.execute(sa.insert(tables.tenant).values(row))
    return made


def listed(connection: Connection) -> list[Tenant]:
    """Every tenant, `main` first."""
    found = connection.execute(sa.select(*_COLUMNS).order_by(tables.tenant.c.tenant_id))
    return [MAIN, *(Tenant(row.tenant_id, row.name, TenantState(row.state), row.created_at) for row in found)]


def find(connection: Connection, tenant_id: str) -> Tenant:
    """The tenant of this id; NOT_FOUND with the nearest ones."""
    if tenant_id == MAIN_TENANT:
        return MAIN
    row = connection.execute(sa.select(*_COLUMNS).where(of_tenant(tables.tenant, tenant_id))).one_or_none()
    if row is None:
        raise _unknown(connection, tenant_id)
    return Tenant(row.tenant_id, row.name, TenantState(row.state), row.created_at)


def set_state(tx: Tx, tenant_id: str, state: TenantState) -> Tenant:
    """Suspend a tenant or open it again. Repeating it changes nothing."""
    if tenant_id == MAIN_TENANT:
        raise bad_field("/id", f"{MAIN_TENANT!r} is the tenant of the installation, and is never suspended or deleted")
    found = find(tx.connection, tenant_id)
    tx.connection.execute(sa.update(tables.tenant).where(of_tenant(tables.tenant, tenant_id)).values(state=state.value))
    return Tenant(found.id, found.name, state, found.created_at)


def require_suspended(tx: Tx, tenant_id: str) -> None:
    """Wait until no write of the tenant is under way, and refuse one that is not suspended."""
    if tenant_id != MAIN_TENANT:
        mine = of_tenant(tables.tenant, tenant_id)
        tx.connection.execute(sa.select(tables.tenant.c.state).where(mine).with_for_update())
    if find(tx.connection, tenant_id).state is not TenantState.SUSPENDED:
        raise CpqError(
            Code.CONFLICT,
            f"The tenant {tenant_id!r} is active. Nothing was deleted.",
            hint=f"`cpq tenant export {tenant_id} FILE`, then `cpq tenant suspend {tenant_id}`, then delete it.",
        )


def _unknown(connection: Connection, tenant_id: str) -> CpqError:
    known = [one.id for one in listed(connection)]
    return CpqError(
        Code.NOT_FOUND,
        f"There is no tenant {tenant_id!r}.",
        field="CPQ_TENANT",
        nearest=nearest(tenant_id, known) or None,
        hint=f"{TENANTS} `cpq tenant create {tenant_id}` makes it.",
    )


def _clean_name(name: str) -> str:
    try:
        cleaned = clean_line(name)
    except ValueError as error:
        raise bad_field("/name", f"name {error}") from None
    if len(cleaned) > NAME_MAX:
        raise bad_field("/name", f"name has at most {NAME_MAX} characters", maximum=NAME_MAX)
    return cleaned


_COLUMNS = (tables.tenant.c.tenant_id, tables.tenant.c.name, tables.tenant.c.state, tables.tenant.c.created_at)
_FIND = sa.select(tables.tenant.c.state).where(of_tenant(tables.tenant, sa.bindparam("tenant")))
_STATE = Statement(lambda _dialect: _FIND)
_HELD = Statement(lambda _dialect: _FIND.with_for_update(key_share=True, read=True))
"""`FOR KEY SHARE`, which writers take beside each other, and a delete waits for. SQLite has one writer anyway."""
