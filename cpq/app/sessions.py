"""Console sign-in: single-use links and expiring sessions; only hashes of both are stored.

With a key outside the database, each secret carries the key's signature for its person: a row that somebody wrote into
the database, or gave another name, signs nobody in.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from cpq.app import tokens
from cpq.app.access import Permission, Principal
from cpq.app.recorded_state import StateDiffersError
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.storage.schema import tables

LINK_MINUTES = 15
LINK_MINUTES_MAX = 24 * 60
SESSION_HOURS = 12
"""Even an active session ends after a working day."""

_LINK, _SESSION = "sign-in link", "console session"
"""What a signature is for."""

TOUCH_SECONDS = 60
"""Minimum interval between updates of `seen_at`, so that not every page view is a write."""


@dataclass(frozen=True)
class Session:
    """A signed-in person with their current roles."""

    principal: Principal
    secret: str
    seen_at: datetime

    @property
    def form_token(self) -> str:
        """The anti-forgery token of every form. It is derived from the secret and does not reveal it."""
        return derived("form", self.secret)


def new_link(tx: Tx, name: str, *, minutes: int = LINK_MINUTES) -> str:
    """A code that signs this person in once, within `minutes`."""
    principal = person(tx, name)
    code = _new_secret(tx, _LINK, principal.name)
    row = {"tenant_id": tx.tenant_id, "code_hash": _hash(code), "principal_name": principal.name}
    values = {**row, "created_at": tx.now, "expires_at": tx.now + timedelta(minutes=minutes)}
    tx.connection.execute(sa.insert(tables.sign_in_link).values(values))
    return code


def who_enters(tx: Tx, code: str) -> Principal:
    """The person a link would sign in; FORBIDDEN when it is no longer valid. The link stays unused."""
    row = tx.connection.execute(sa.select(tables.sign_in_link).where(_link(tx, code))).one_or_none()
    if row is None or not _is_signed(tx, _LINK, row.principal_name, code):
        raise _closed()
    return person(tx, row.principal_name)


def enter(tx: Tx, code: str) -> Session:
    """Use up a link and begin a session. Of two callers with the same link, only one gets a session."""
    used = tx.connection.execute(sa.update(tables.sign_in_link).where(_link(tx, code)).values(used_at=tx.now))
    if used.rowcount != 1:
        raise _closed()
    mine = tx.own(tables.sign_in_link) & (tables.sign_in_link.c.code_hash == _hash(code))
    name = str(tx.connection.scalar(sa.select(tables.sign_in_link.c.principal_name).where(mine)))
    if not _is_signed(tx, _LINK, name, code):
        raise _closed()
    return begin(tx, name)


def begin(tx: Tx, name: str) -> Session:
    """A session for an authenticated person. Expired sessions and links are deleted as well."""
    principal = person(tx, name)
    secret = _new_secret(tx, _SESSION, principal.name)
    for table in (tables.console_session, tables.sign_in_link):
        tx.connection.execute(sa.delete(table).where(tx.own(table), table.c.expires_at <= tx.now))
    row = {"tenant_id": tx.tenant_id, "secret_hash": _hash(secret), "principal_name": principal.name}
    until = tx.now + timedelta(hours=SESSION_HOURS)
    tx.connection.execute(
        sa.insert(tables.console_session).values(**row, created_at=tx.now, seen_at=tx.now, expires_at=until)
    )
    return Session(principal, secret, tx.now)


def find(tx: Tx, secret: str, *, idle_minutes: int) -> Session | None:
    """The session of a cookie, if it is still valid and the person still holds a role."""
    idle_since = tx.now - timedelta(minutes=idle_minutes)
    is_good = (tables.console_session.c.expires_at > tx.now) & (tables.console_session.c.seen_at > idle_since)
    row = tx.connection.execute(sa.select(tables.console_session).where(_session(tx, secret), is_good)).one_or_none()
    if row is None or not _is_signed(tx, _SESSION, row.principal_name, secret):
        return None
    try:
        return Session(person(tx, row.principal_name), secret, row.seen_at)
    except CpqError:
        return None


def touch(tx: Tx, secret: str) -> None:
    """Record that the session is in use."""
    tx.connection.execute(sa.update(tables.console_session).where(_session(tx, secret)).values(seen_at=tx.now))


def end(tx: Tx, secret: str) -> None:
    """End the session of a cookie. Ending twice changes nothing."""
    tx.connection.execute(sa.delete(tables.console_session).where(_session(tx, secret)))


def person(tx: Tx, name: str) -> Principal:
    """The principal of a person who may use the console: a human with a role. FORBIDDEN for all others."""
    try:
        principal = tokens.find_principal(tx, name)
    except StateDiffersError:
        raise
    except CpqError:
        principal = None
    if principal is None or not principal.is_person or not principal.may(Permission.READ):
        raise CpqError(
            Code.FORBIDDEN,
            f"There is no person {name!r} with a role here.",
            hint=f"An administrator can run `cpq token grant --name {name} --role sales_manager`.",
        )
    return principal


def tenant_of(presented: str) -> str:
    """The tenant that a code or a cookie claims; the lookup verifies it."""
    return presented.partition(".")[0][:64] or "main"


def derived(purpose: str, secret: str) -> str:
    """Another secret, derived from this one for one purpose."""
    return hashlib.sha256(f"{purpose}\0{secret}".encode(errors="surrogatepass")).hexdigest()


def _new_secret(tx: Tx, kind: str, name: str) -> str:
    secret = f"{tx.tenant_id}.{tx.effects.new_secret()}"
    return f"{secret}.{tx.audit_key.sign(kind, f'{name}.{secret}')}" if tx.audit_key else secret


def _is_signed(tx: Tx, kind: str, name: str, presented: str) -> bool:
    """Whether the key of this process, if it has one, signed the secret for this person."""
    secret, _, signature = presented.rpartition(".")
    return tx.audit_key is None or tx.audit_key.has_signed(kind, f"{name}.{secret}", signature)


def _link(tx: Tx, code: str) -> sa.ColumnElement[bool]:
    return sa.and_(
        tx.own(tables.sign_in_link),
        tables.sign_in_link.c.code_hash == _hash(code),
        tables.sign_in_link.c.used_at.is_(None),
        tables.sign_in_link.c.expires_at > tx.now,
    )


def _session(tx: Tx, secret: str) -> sa.ColumnElement[bool]:
    return tx.own(tables.console_session) & (tables.console_session.c.secret_hash == _hash(secret))


def _closed() -> CpqError:
    return CpqError(
        Code.FORBIDDEN,
        "This link has been used or has expired.",
        hint="Ask for a new one: `cpq console link --user NAME`.",
    )


def _hash(secret: str) -> str:
    return derived("stored", secret)
