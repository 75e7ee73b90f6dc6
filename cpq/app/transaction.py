"""`Tx`: one transaction of one tenant at one moment, in which a use case runs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.app.access import Permission, Principal
from cpq.app.call import Retrieval
from cpq.base.audit_key import AuditKey
from cpq.base.clock import Effects
from cpq.base.settings import Settings
from cpq.storage.statements import among, listed
from cpq.storage.tenants import of_tenant

if TYPE_CHECKING:
    from cpq.app.recorded_state import Recorded
    from cpq.domain.policy.policy_set import PolicySet


class UnpreparedError(Exception):
    """What the work needs is not in the caches of this process, and takes too long to read while others wait.

    The transaction ends without a change, `prepare` runs in a read of its own, and the work begins again.
    """

    def __init__(self, prepare: Callable[[Tx], object]) -> None:
        super().__init__("not prepared")
        self.prepare = prepare


@dataclass(frozen=True)
class Tx:
    """One transaction with its caller, their tenant and one moment; a use case runs in it."""

    connection: Connection
    principal: Principal
    """The caller with the roles of the presented token, not of other tokens of the same person."""
    now: datetime
    effects: Effects
    settings: Settings
    load_policies: Callable[[], PolicySet]
    kept: dict[Any, Any] = field(default_factory=dict)
    """Caches of this process between transactions, such as search indexes; never the source of truth."""

    audit_key: AuditKey | None = None
    """Signs the states in the audit entries; see `recorded_state`."""

    sizes: list[int] = field(default_factory=list)
    """The bytes of large values that it stores, for the caller's share of a day."""

    afterwards: list[Callable[[Tx], None]] = field(default_factory=list)
    """Counts to store at its end, of a read in a transaction of their own. The answer waits for them."""

    changes: dict[str, dict[str, str | None]] = field(default_factory=dict)
    """The parts that it changes, by subject, for the state in the audit entry; see `recorded_state`."""

    records: dict[str, Recorded | None] = field(default_factory=dict)
    """The recorded states of the subjects that it has locked."""

    retrieved: list[Retrieval] = field(default_factory=list)
    """The search of the call, for the record of queries; see `Call.retrieved`."""

    begun: set[str] = field(default_factory=set)
    """The subjects whose record begins in it, with everything that is to be on record."""

    unsigned: set[str] = field(default_factory=set)
    """Those of them that have more than what it wrote, so that the key does not sign them."""

    @cached_property
    def policies(self) -> PolicySet:
        """The policies in force, the same for the whole transaction."""
        return self.load_policies()

    @property
    def tenant_id(self) -> str:
        return self.principal.tenant_id

    @property
    def caller(self) -> str:
        """The caller as stored: `agent:mcp`, `human:dana`."""
        return self.principal.caller

    @property
    def roles(self) -> frozenset[str]:
        return self.principal.roles

    @property
    def sees_margin(self) -> bool:
        return self.principal.may(Permission.SEE_MARGIN)

    def new_id(self, prefix: str) -> str:
        return self.effects.new_id(prefix)

    def own(self, table: sa.FromClause) -> sa.ColumnElement[bool]:
        """Rows of the caller's tenant."""
        return of_tenant(table, self.tenant_id)

    def own_among(self, column: sa.Column[Any], values: Collection[str]) -> sa.ColumnElement[bool]:
        """Rows of the caller's tenant whose column is one of the values."""
        bound: sa.BindParameter[Any] = sa.bindparam(None, listed(self.connection, values), unique=True)
        return self.own(column.table) & among(self.connection.dialect.name, column, bound)
