"""Principals and their bearer tokens in the database; only a hash of a token is stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.app import recorded_rights, recorded_state
from cpq.app.access import GUARDED, Permission, Principal, PrincipalKind, Role
from cpq.app.recorded_state import RIGHTS, Part
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field, nearest
from cpq.base.tenant_folders import MAIN_TENANT, is_tenant_id
from cpq.base.text import clean_identifier
from cpq.storage.schema import tables
from cpq.storage.statements import AnyRow
from cpq.storage.tenants import of_tenant

NO_SECRET = "-"  # noqa: S105 - the mark of none
"""In place of the hash: the token has no secret. Its holder has the role and signs in by other means."""

RECOVERY = "token_recover"
"""In the audit record, the operation and the subject of a token that was made for a lost administrator."""

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
    tx: Tx,
    *,
    name: str,
    role: str,
    kind: PrincipalKind | None = None,
    days: int | None = None,
    owner: str | None = None,
) -> tuple[TokenSummary, str]:
    """A new token and its secret, which is shown only once. The role belongs to the token and ends with it.

    The owner is the person behind a program: what it makes is theirs.
    """
    principal = _enrol(tx, name, _role(role), kind)
    if owner is not None:
        principal = replace(principal, acts_for=_owner(tx, principal, owner))
    secret = tx.effects.new_secret()
    summary = _add_token(tx, principal, role, _hash(secret), days)
    named = summary.id if tx.tenant_id == MAIN_TENANT else f"{tx.tenant_id}.{summary.id}"
    return summary, f"qw_{named}_{secret}"


def grant(tx: Tx, *, name: str, role: str, days: int | None = None) -> TokenSummary:
    """A role for a person, without a secret: for people who use only the console and call no tool."""
    return _add_token(tx, _enrol(tx, name, _role(role), "human"), role, NO_SECRET, days)


def add_name(tx: Tx, *, name: str, person: str) -> str:
    """Make `name` another name of a known person, who has one name from now on, however they sign in; returns it.

    What was made under either name counts as theirs.
    """
    person = _known_person(tx, "/person", person)
    name = _enrol(tx, name, Role.SALES_REP, "human").name
    column = tables.principal.c
    if name == person or tx.connection.scalar(sa.select(sa.exists().where(_mine(tx), column.person == name))):
        raise CpqError(Code.CONFLICT, f"{name!r} is a name that others belong to already.", field="/name")
    if person_of(tx, name) not in (name, person):
        raise CpqError(Code.CONFLICT, f"{name!r} is another name of {person_of(tx, name)!r} already.", field="/name")
    tx.connection.execute(sa.update(tables.principal).where(_mine(tx), column.name == name).values(person=person))
    recorded_state.note(tx, RIGHTS, "principal", name)
    return person


def person_of(tx: Tx, name: str) -> str:
    """The one name of the caller of this name: the same, where it is no other name of somebody."""
    found = tx.connection.execute(sa.select(tables.principal).where(_mine(tx), tables.principal.c.name == name.strip()))
    row = found.one_or_none()
    if row is None or row.person is None:
        return name.strip()
    recorded_rights.require(tx, tx.tenant_id, {Part("principal", row.name): row})
    return str(row.person)


def other_names(tx: Tx) -> dict[str, str]:
    """The person behind each other name; most stores have none."""
    column = tables.principal.c
    query = sa.select(column.name, column.person).where(_mine(tx), column.person.is_not(None))
    return {row.name: row.person for row in tx.connection.execute(query)}


def revoke_token(tx: Tx, token_id: str) -> None:
    """Make the token invalid. Revoking twice changes nothing."""
    found = tx.connection.execute(
        sa.update(tables.token)
        .where(tx.own(tables.token), tables.token.c.id == token_id)
        .values(
            revoked_at=sa.func.coalesce(
                tables.token.c.revoked_at, sa.bindparam("now", tx.now, type_=tables.token.c.revoked_at.type)
            )
        )
    )
    if not found.rowcount:
        raise CpqError(Code.NOT_FOUND, f"There is no token {token_id!r}.", hint="`cpq token list` shows them.")
    recorded_state.note(tx, RIGHTS, "token", token_id)


def list_tokens(tx: Tx) -> list[TokenSummary]:
    rows = tx.connection.execute(
        _tokens().where(tx.own(tables.token)).order_by(tables.token.c.created_at, tables.token.c.id)
    )
    return [_summary(row) for row in rows]


def has_tokens(connection: Connection) -> bool:
    """True once a named caller exists in any tenant, so that anonymous callers are refused.

    A revoked token counts: taking the last caller's rights away must not give them to everybody.
    """
    return bool(connection.scalar(sa.select(sa.exists().where(tables.token.c.secret_hash != NO_SECRET))))


def is_protected(connection: Connection, tenant_id: str) -> bool:
    """The same for one tenant: whether a secret is needed to act as somebody there."""
    has_secret = of_tenant(tables.token, tenant_id) & (tables.token.c.secret_hash != NO_SECRET)
    return bool(connection.scalar(sa.select(sa.exists().where(has_secret))))


def verify_token(tx: Tx, presented: str) -> Principal | None:
    """The caller whose token this is, or None. A wrong secret takes the same time to compare, whatever it is.

    The token names its tenant, `qw_acme.tok-…`, unless it is the main one, so that only that tenant is asked.
    CONFLICT when somebody changed the token in the database, for example its role.
    """
    prefix, _, rest = presented.partition("_")
    named, _, secret = rest.partition("_")
    tenant_id, _, token_id = named.rpartition(".")
    if prefix != "qw" or not token_id or not secret or (tenant_id and not is_tenant_id(tenant_id)):
        return None
    mine = of_tenant(tables.token, tenant_id or MAIN_TENANT) & (tables.token.c.id == token_id)
    row = tx.connection.execute(_tokens().where(mine)).one_or_none()
    expected = row.secret_hash if row else _hash("")
    if not hmac.compare_digest(expected, _hash(secret)) or row is None:
        return None
    summary = _summary(row)
    if not summary.is_open(tx.now):
        return None
    recorded_rights.require(tx, row.tenant_id, _stored(row))
    return summary.principal


def act_as(tx: Tx, presented: str, name: str) -> Principal:
    """The caller of this name, with the administrator who acts for them if it is not their own secret."""
    found = find_principal(tx, name)
    return found.signed_by(require_secret(tx, presented, name))


def require_secret(tx: Tx, presented: str, name: str) -> Principal | None:
    """FORBIDDEN unless a valid token of this caller or of an administrator is presented; returns its holder.

    A shell on the machine is no proof of who types. Before the first token no secret exists that could be asked for.
    """
    if not is_protected(tx.connection, tx.tenant_id):
        return None
    holder = verify_token(tx, presented)
    is_theirs = holder is not None and (holder.name == person_of(tx, name) or holder.may(Permission.ADMINISTER))
    if holder is None or holder.tenant_id != tx.tenant_id or not is_theirs:
        raise CpqError(
            Code.FORBIDDEN,
            f"To act as {name!r}, a valid token of {name!r} or of an administrator is needed."
            + (" The given one is not valid." if presented and holder is None else ""),
            hint="Set CPQ_TOKEN, name a file with `cpq --token-file FILE …`, or type it when asked. "
            "`cpq token create --name NAME --role admin` makes one.",
        )
    return holder


def is_guarded(tx: Tx, name: str, role: str, *, is_person: bool) -> bool:
    """Whether only an administrator gives this name this role: to a person, or to who decides or administers already.

    A program that could make itself a person could close marks for review and record that a customer accepted.
    Any secret of a person proves who they are, so that a smaller role for an approver is guarded as well. A token of
    an administrator counts after its end: revoking it must not give the right to everybody with a shell.
    """
    mine = tx.own(tables.token)
    administrators = mine & (tables.token.c.role == Role.ADMIN) & (tables.token.c.secret_hash != NO_SECRET)
    if not tx.connection.scalar(sa.select(sa.exists().where(administrators))):
        return False
    held = tx.connection.scalars(sa.select(tables.token.c.role).where(mine, _of_person(tx, name)))
    return is_person or not GUARDED.isdisjoint({role, *held})


def require_administrator(tx: Tx, presented: str, role: str) -> Principal:
    """The administrator whose valid token is presented; else FORBIDDEN."""
    holder = verify_token(tx, presented)
    if holder is None or holder.tenant_id != tx.tenant_id or not holder.may(Permission.ADMINISTER):
        raise CpqError(
            Code.FORBIDDEN,
            f"To give the role {role!r} here, a valid token of an administrator is needed."
            + (" The given one is not valid." if presented and holder is None else ""),
            hint="Set CPQ_TOKEN, name a file with `cpq --token-file FILE …`, or type it when asked. If all tokens of "
            "administrators are lost: `cpq token create --name NAME --role admin --recover`, which everybody will see.",
        )
    return holder


def find_principal(tx: Tx, name: str) -> Principal:
    """A principal with the roles of all its valid tokens, and the owner that the newest of them names."""
    mine = tx.own(tables.token) & _of_person(tx, name)
    oldest_first = _tokens().where(mine).order_by(tables.token.c.created_at, tables.token.c.id)
    rows = [row for row in tx.connection.execute(oldest_first) if _summary(row).is_open(tx.now)]
    recorded_rights.require(tx, tx.tenant_id, {part: one for row in rows for part, one in _stored(row).items()})
    open_ones = [_summary(row).principal for row in rows]
    if not open_ones:
        raise CpqError(
            Code.NOT_FOUND, f"There is no principal {name!r} with a token.", hint="`cpq token create` makes one."
        )
    roles = frozenset[Role]().union(*(principal.roles for principal in open_ones))
    owners = [principal.acts_for for principal in open_ones if principal.acts_for]
    token_ids = frozenset[str]().union(*(principal.token_ids for principal in open_ones))
    return replace(open_ones[0], roles=roles, acts_for=owners[-1] if owners else None, token_ids=token_ids)


def require_open(tx: Tx) -> None:
    """FORBIDDEN when a token that the caller's rights rest on has ended since the call began, as while it waited."""
    wanted = tx.principal.token_ids
    if not wanted:
        return
    token = tables.token.c
    is_open = token.revoked_at.is_(None) & (token.expires_at.is_(None) | (token.expires_at > tx.effects.now()))
    mine = tx.own(tables.token) & token.id.in_(sorted(wanted))
    if tx.connection.scalar(sa.select(sa.func.count()).where(mine, is_open)) != len(wanted):
        raise CpqError(
            Code.FORBIDDEN,
            f"A token of {tx.caller} was revoked or ran out while the call waited. Nothing was changed.",
            hint="Sign in again, or use a token that is valid; `cpq token list` shows them.",
        )


def holders(tx: Tx, role: str) -> list[str]:
    """The names of the people who hold a role by a valid token that nobody changed in the database, sorted."""
    mine = tx.own(tables.token) & (tables.token.c.role == role)
    return sorted({one.name for one in _valid(tx, mine) if one.is_person})


def people(tx: Tx, permission: Permission) -> list[str]:
    """The names of the people who have a permission, sorted."""
    able = [one for one in _valid(tx, tx.own(tables.token)) if one.may(permission)]
    return sorted({principal.name for principal in able if principal.is_person})


def _valid(tx: Tx, mine: sa.ColumnElement[bool]) -> list[Principal]:
    """The holders of valid tokens, without those that differ from the audit record."""
    rows = [row for row in tx.connection.execute(_tokens().where(mine)) if _summary(row).is_open(tx.now)]
    stored = {part: one for row in rows for part, one in _stored(row).items()}
    changed = set(recorded_rights.differing(tx, tx.tenant_id, stored))
    return [_summary(row).principal for row in rows if changed.isdisjoint(part.name for part in _stored(row))]


def _add_token(tx: Tx, principal: Principal, role: str, secret_hash: str, days: int | None) -> TokenSummary:
    summary = TokenSummary(
        tx.new_id("tok-"), principal, tx.now, tx.now + timedelta(days=days) if days else None, revoked_at=None
    )
    tx.connection.execute(
        sa.insert(tables.token).values(
            tenant_id=tx.tenant_id,
            id=summary.id,
            principal_name=principal.name,
            role=role,
            secret_hash=secret_hash,
            owner=principal.acts_for,
            created_at=tx.now,
            expires_at=summary.expires_at,
        )
    )
    recorded_state.note(tx, RIGHTS, "token", summary.id)
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
        sa.select(tables.principal.c.kind).where(tx.own(tables.principal), tables.principal.c.name == name)
    )
    if known is None:
        _require_own_name(tx, name)
        values = {"tenant_id": tx.tenant_id, "name": name, "kind": wanted, "created_at": tx.now}
        tx.connection.execute(sa.insert(tables.principal).values(values))
        recorded_state.note(tx, RIGHTS, "principal", name)
    elif known != wanted:
        raise CpqError(Code.CONFLICT, f"{name!r} is already known as {known}; a principal does not change its kind.")
    return Principal(name, wanted, frozenset({role}), tx.tenant_id)


def _owner(tx: Tx, principal: Principal, name: str) -> str:
    """The name of a known person."""
    if principal.is_person:
        raise bad_field(
            "/owner", f"{principal.name!r} is a person and owns what they make; only a program has an owner."
        )
    return _known_person(tx, "/owner", name)


def _known_person(tx: Tx, field: str, name: str) -> str:
    """The one name of a known person."""
    people = sa.select(tables.principal.c.name).where(_mine(tx), tables.principal.c.kind == "human")
    known = list(tx.connection.scalars(people))
    if name.strip() not in known:
        raise bad_field(
            field,
            f"There is no person {name!r}.",
            nearest=nearest(name, known) or None,
            hint="`cpq token grant` or `cpq token create` makes a person known.",
        )
    return person_of(tx, name)


def _mine(tx: Tx) -> sa.ColumnElement[bool]:
    return tx.own(tables.principal)


def _of_person(tx: Tx, name: str) -> sa.ColumnElement[bool]:
    """Tokens of the caller of this name, by any of their names."""
    person, column = person_of(tx, name), tables.principal.c
    others = sa.select(column.name).where(_mine(tx), column.person == person)
    return (tables.token.c.principal_name == person) | tables.token.c.principal_name.in_(others)


def _require_own_name(tx: Tx, name: str) -> None:
    """Require one spelling for each name, so that nobody can pass for somebody else, or for two people."""
    if not _NAME.fullmatch(name):
        plain = unicodedata.normalize("NFKC", name).casefold()
        near = [plain] if _NAME.fullmatch(plain) else None
        raise bad_field("/name", "name has small letters a to z, digits and . _ - @ only", nearest=near)
    mine = tx.own(tables.principal)
    alike = sa.select(tables.principal.c.name).where(mine, sa.func.lower(tables.principal.c.name) == name)
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
    added = tables.principal.c.created_at.label("enrolled_at")
    holder = (tables.principal.c.name, tables.principal.c.kind, added, tables.principal.c.person)
    return sa.select(tables.token, *holder).join(
        tables.principal,
        of_tenant(tables.principal, tables.token.c.tenant_id)
        & (tables.principal.c.name == tables.token.c.principal_name),
    )


def _stored(row: AnyRow) -> recorded_rights.Rows:
    """The rows of the token and of its holder."""
    holder = (row.tenant_id, row.name, row.kind, row.enrolled_at, row.person)
    return {Part("token", row.id): row[: len(tables.token.c)], Part("principal", row.name): holder}


def _summary(row: AnyRow) -> TokenSummary:
    name, roles = row.person or row.name, frozenset({Role(row.role)})
    principal = Principal(name, row.kind, roles, row.tenant_id, row.owner, frozenset({row.id}))
    return TokenSummary(row.id, principal, row.created_at, row.expires_at, row.revoked_at)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
