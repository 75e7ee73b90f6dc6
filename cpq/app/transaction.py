"""`Tx`: what a use case works in, one transaction of one tenant at one moment."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.base.clock import Effects
from cpq.base.settings import Settings
from cpq.domain.policy.policy_set import PolicySet
from cpq.storage.statements import among, listed


@dataclass(frozen=True)
class Tx:
    """What a use case works in: one transaction, one tenant, one moment, one caller."""

    connection: Connection
    tenant_id: str
    now: datetime
    caller: str
    effects: Effects
    settings: Settings
    policies: PolicySet
    sees_margin: bool = False
    roles: frozenset[str] = frozenset()
    """What the caller is here: the roles of the token that was presented, not of others that the same person holds."""
    kept: dict[Any, Any] = field(default_factory=dict)
    """What this process keeps in memory between transactions, search indexes for one; never the truth."""

    def new_id(self, prefix: str) -> str:
        return self.effects.new_id(prefix)


def mine_among(tx: Tx, column: sa.Column[Any], values: Collection[str]) -> sa.ColumnElement[bool]:
    """Rows of the caller's tenant whose column is one of the values."""
    bound: sa.BindParameter[Any] = sa.bindparam(None, listed(tx.connection, values), unique=True)
    return (column.table.c.tenant_id == tx.tenant_id) & among(tx.connection.dialect.name, column, bound)
