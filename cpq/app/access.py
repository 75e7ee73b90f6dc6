"""Who may do what: principals, roles, the permission table, and bearer tokens of which only a hash is kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field, nearest
from cpq.base.text import clean_identifier
from cpq.storage.schema import principal as principal_table
from cpq.storage.schema import token as token_table
from cpq.storage.statements import AnyRow

PrincipalKind = Literal["agent", "human"]


class Permission(StrEnum):
    """What a tool, a page or a command needs. One word each, so that the table stays readable."""

    READ = "read"
    QUOTE = "quote"
    REQUEST_APPROVAL = "request_approval"
    WITHDRAW = "withdraw"
    DECIDE = "decide"
    SEE_MARGIN = "see_margin"
    SEE_CUSTOMERS = "see_customers"
    ADMINISTER = "administer"


class Role(StrEnum):
    AGENT = "agent"
    SALES_REP = "sales_rep"
    SALES_MANAGER = "sales_manager"
    DEAL_DESK = "deal_desk"
    VP_SALES = "vp_sales"
    FINANCE = "finance"
    LEGAL = "legal"
    ADMIN = "admin"


_SELL = frozenset(
    {
        Permission.READ,
        Permission.QUOTE,
        Permission.REQUEST_APPROVAL,
        Permission.WITHDRAW,
        Permission.SEE_CUSTOMERS,
    }
)
_DECIDE = frozenset({Permission.READ, Permission.DECIDE, Permission.SEE_MARGIN})

PERMISSIONS: dict[Role, frozenset[Permission]] = {
    Role.AGENT: _SELL,
    Role.SALES_REP: _SELL,
    Role.SALES_MANAGER: _SELL | _DECIDE,
    Role.DEAL_DESK: _SELL | _DECIDE,
    Role.VP_SALES: _SELL | _DECIDE,
    Role.FINANCE: _DECIDE,
    Role.LEGAL: frozenset({Permission.READ, Permission.DECIDE}),
    Role.ADMIN: frozenset(Permission) - {Permission.QUOTE, Permission.REQUEST_APPROVAL, Permission.DECIDE},
}
"""The one table of rights; `cpq token roles` prints it."""


DECIDERS = frozenset(role.value for role, rights in PERMISSIONS.items() if Permission.DECIDE in rights)
"""The roles that approvals can be asked of."""


@dataclass(frozen=True)
class Principal:
    """Somebody who calls: a person, or a program that acts for one."""

    name: str
    kind: PrincipalKind
    roles: frozenset[Role]
    tenant_id: str = "main"

    @property
    def caller(self) -> str:
        """How audit and quotes name it: `agent:mcp`, `human:dana`."""
        return f"{self.kind}:{self.name}"

    def may(self, permission: Permission) -> bool:
        return any(permission in PERMISSIONS[role] for role in self.roles)


def may(tx: Tx, permission: Permission) -> bool:
    """Whether the caller may, by the token that was presented."""
    return any(permission in PERMISSIONS[Role(role)] for role in tx.roles)


LOCAL_AGENT = Principal("mcp", "agent", frozenset({Role.AGENT}))
"""The operator's own process over stdio, and whoever holds the shared token."""

OPERATOR = Principal("operator", "human", frozenset({Role.ADMIN}))
"""Whoever runs `cpq` on the machine itself."""

ENGINE = Principal("engine", "agent", frozenset({Role.ADMIN}))
"""What the engine does by itself: quotes whose time is over, events to be delivered."""

NO_SECRET = "-"  # noqa: S105 - the mark of none
"""Stands for the hash of a token that nobody can present: its holder has the role, and signs in by other means."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]*")
RESERVED_NAMES = ["mcp", "operator", "engine", "anonymous"]


@dataclass(frozen=True)
class TokenSummary:
    id: str
    principal: Principal
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    def is_open(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)


def create_token(
    tx: Tx, *, name: str, role: str, kind: PrincipalKind | None = None, days: int | None = None
) -> tuple[TokenSummary, str]:
    """A new token and its secret, which is shown this once. The role belongs to the token and ends with it."""
    principal = _enrol(tx, name, _role(role), kind)
    secret = tx.effects.new_secret()
    summary = _add_token(tx, principal, role, _hash(secret), days)
    return summary, f"qw_{summary.id}_{secret}"


def grant(tx: Tx, *, name: str, role: str, days: int | None = None) -> TokenSummary:
    """A role for a person, without a secret: for whoever signs in to the console and calls no tool."""
    return _add_token(tx, _enrol(tx, name, _role(role), "human"), role, NO_SECRET, days)


def revoke_token(tx: Tx, token_id: str) -> None:
    """From now on the token opens nothing. Revoking twice changes nothing."""
    found = tx.connection.execute(
        sa.update(token_table)
        .where(token_table.c.tenant_id == tx.tenant_id, token_table.c.id == token_id)
        .values(
            revoked_at=sa.func.coalesce(
                token_table.c.revoked_at, sa.bindparam("now", tx.now, type_=token_table.c.revoked_at.type)
            )
        )
    )
    if not found.rowcount:
        raise CpqError(Code.NOT_FOUND, f"There is no token {token_id!r}.", hint="`cpq token list` shows them.")


def list_tokens(tx: Tx) -> list[TokenSummary]:
    rows = tx.connection.execute(
        _tokens().where(token_table.c.tenant_id == tx.tenant_id).order_by(token_table.c.created_at, token_table.c.id)
    )
    return [_summary(row) for row in rows]


def has_tokens(connection: Connection) -> bool:
    """True when any named caller exists, so that an anonymous one is no longer welcome."""
    is_open = token_table.c.revoked_at.is_(None) & (token_table.c.secret_hash != NO_SECRET)
    return bool(connection.scalar(sa.select(sa.exists().where(is_open))))


def verify_token(connection: Connection, presented: str, now: datetime) -> Principal | None:
    """The principal behind a presented token, or None. The comparison takes the same time for every wrong secret."""
    prefix, _, rest = presented.partition("_")
    token_id, _, secret = rest.partition("_")
    if prefix != "qw" or not token_id or not secret:
        return None
    row = connection.execute(_tokens().where(token_table.c.id == token_id)).one_or_none()
    expected = row.secret_hash if row else _hash("")
    if not hmac.compare_digest(expected, _hash(secret)) or row is None:
        return None
    summary = _summary(row)
    return summary.principal if summary.is_open(now) else None


def find_principal(tx: Tx, name: str) -> Principal:
    """A principal with the roles of all its tokens that still open."""
    mine = (token_table.c.tenant_id == tx.tenant_id) & (token_table.c.principal_name == name.strip())
    summaries = [_summary(row) for row in tx.connection.execute(_tokens().where(mine))]
    open_ones = [summary.principal for summary in summaries if summary.is_open(tx.now)]
    if not open_ones:
        raise CpqError(
            Code.NOT_FOUND, f"There is no principal {name!r} with a token.", hint="`cpq token create` makes one."
        )
    return replace(open_ones[0], roles=frozenset().union(*(principal.roles for principal in open_ones)))


def holders(tx: Tx, role: str) -> list[str]:
    """The names of the people who hold a role by a token that still opens, in order."""
    mine = (token_table.c.tenant_id == tx.tenant_id) & (token_table.c.role == role)
    summaries = [_summary(row) for row in tx.connection.execute(_tokens().where(mine))]
    people = {one.principal.name for one in summaries if one.is_open(tx.now) and one.principal.kind == "human"}
    return sorted(people)


def people(tx: Tx, permission: Permission) -> list[str]:
    """The names of the people who may do something, in order."""
    mine = token_table.c.tenant_id == tx.tenant_id
    summaries = [_summary(row) for row in tx.connection.execute(_tokens().where(mine))]
    able = {one.principal for one in summaries if one.is_open(tx.now) and one.principal.may(permission)}
    return sorted({principal.name for principal in able if principal.kind == "human"})


def _add_token(tx: Tx, principal: Principal, role: str, secret_hash: str, days: int | None) -> TokenSummary:
    summary = TokenSummary(
        tx.new_id("tok-"), principal, tx.now, tx.now + timedelta(days=days) if days else None, revoked_at=None
    )
    tx.connection.execute(
        sa.insert(token_table).values(
            tenant_id=tx.tenant_id,
            id=summary.id,
            principal_name=principal.name,
            role=role,
            secret_hash=secret_hash,
            created_at=tx.now,
            expires_at=summary.expires_at,
        )
    )
    return summary


def _enrol(tx: Tx, name: str, role: Role, kind: PrincipalKind | None) -> Principal:
    try:
        name = clean_identifier(name)
    except ValueError as error:
        raise bad_field("/name", f"name {error}") from None
    if len(name) > 64:
        raise bad_field("/name", "name has at most 64 characters", maximum=64)
    if name.lower() in RESERVED_NAMES:
        raise bad_field("/name", f"{name!r} is the name of a built-in caller; choose another", reserved=RESERVED_NAMES)
    wanted = kind or ("agent" if role is Role.AGENT else "human")
    known = tx.connection.scalar(
        sa.select(principal_table.c.kind).where(
            principal_table.c.tenant_id == tx.tenant_id, principal_table.c.name == name
        )
    )
    if known is None:
        _require_own_name(tx, name)
        values = {"tenant_id": tx.tenant_id, "name": name, "kind": wanted, "created_at": tx.now}
        tx.connection.execute(sa.insert(principal_table).values(values))
    elif known != wanted:
        raise CpqError(Code.CONFLICT, f"{name!r} is already known as {known}; a principal does not change its kind.")
    return Principal(name, wanted, frozenset({role}), tx.tenant_id)


def _require_own_name(tx: Tx, name: str) -> None:
    """A new name is written in one way only, so that nobody can pass for somebody else, or for two people."""
    if not _NAME.fullmatch(name):
        plain = unicodedata.normalize("NFKC", name).casefold()
        near = [plain] if _NAME.fullmatch(plain) else None
        raise bad_field("/name", "name has small letters a to z, digits and . _ - @ only", nearest=near)
    mine = principal_table.c.tenant_id == tx.tenant_id
    alike = sa.select(principal_table.c.name).where(mine, sa.func.lower(principal_table.c.name) == name)
    other = tx.connection.scalar(alike.limit(1))
    if other is not None:
        raise CpqError(Code.CONFLICT, f"{other!r} is known already and differs only by case.", field="/name")


def _role(word: str) -> Role:
    try:
        return Role(word)
    except ValueError:
        known = [role.value for role in Role]
        raise bad_field(
            "/role", f"{word!r} is not a role; known: {', '.join(known)}", allowed=known, nearest=nearest(word, known)
        ) from None


def _tokens() -> sa.Select[*tuple[Any, ...]]:
    return sa.select(token_table, principal_table.c.name, principal_table.c.kind).join(
        principal_table,
        (principal_table.c.tenant_id == token_table.c.tenant_id)
        & (principal_table.c.name == token_table.c.principal_name),
    )


def _summary(row: AnyRow) -> TokenSummary:
    principal = Principal(row.name, row.kind, frozenset({Role(row.role)}), row.tenant_id)
    return TokenSummary(row.id, principal, row.created_at, row.expires_at, row.revoked_at)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
