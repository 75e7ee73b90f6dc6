"""Who may do what: callers, their roles, and the one table of permissions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

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
class Caller:
    """Somebody as audit entries, quotes and votes name them; as text `agent:mcp`, `human:dana`."""

    kind: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Caller:
        kind, _, name = text.partition(":")
        return cls(kind, name)

    @classmethod
    def person(cls, name: str) -> Caller:
        return cls("human", name)

    @property
    def is_person(self) -> bool:
        return self.kind == "human"

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True)
class Principal:
    """Somebody who calls: a person, or a program that acts for one."""

    name: str
    kind: PrincipalKind
    roles: frozenset[Role]
    tenant_id: str = "main"

    @property
    def caller(self) -> str:
        """How audit and quotes name it: the text of a `Caller`."""
        return str(Caller(self.kind, self.name))

    @property
    def is_person(self) -> bool:
        return self.kind == "human"

    def may(self, permission: Permission) -> bool:
        return any(permission in PERMISSIONS[role] for role in self.roles)


LOCAL_AGENT = Principal("mcp", "agent", frozenset({Role.AGENT}))
"""The operator's own process over stdio, and whoever holds the shared token."""

OPERATOR = Principal("operator", "human", frozenset({Role.ADMIN}))
"""Whoever runs `cpq` on the machine itself."""

ENGINE = Principal("engine", "agent", frozenset({Role.ADMIN}))
"""What the engine does by itself: quotes whose time is over, events to be delivered."""
