"""Who may do what: callers, their roles, and the one table of permissions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from cpq.base.tenant_folders import MAIN_TENANT

PrincipalKind = Literal["agent", "human", "customer"]
"""A customer has no token: they are known by the link that was sent to them."""


class Permission(StrEnum):
    """The right that a tool, a page or a command requires."""

    READ = "read"
    QUOTE = "quote"
    REQUEST_APPROVAL = "request_approval"
    WITHDRAW = "withdraw"
    DECIDE = "decide"
    SEE_MARGIN = "see_margin"
    SEE_CUSTOMERS = "see_customers"
    SEE_QUERIES = "see_queries"
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
    Role.DEAL_DESK: _SELL | _DECIDE | {Permission.SEE_QUERIES},
    Role.VP_SALES: _SELL | _DECIDE,
    Role.FINANCE: _DECIDE,
    Role.LEGAL: frozenset({Permission.READ, Permission.DECIDE}),
    Role.ADMIN: frozenset(Permission) - {Permission.QUOTE, Permission.REQUEST_APPROVAL, Permission.DECIDE},
}
"""The one table of rights; `cpq token roles` prints it."""


GUARDED = frozenset(role for role, rights in PERMISSIONS.items() if rights & {Permission.DECIDE, Permission.ADMINISTER})
"""The roles that only an administrator gives, once there is one."""

DECIDERS = frozenset(role.value for role, rights in PERMISSIONS.items() if Permission.DECIDE in rights)
"""The roles that can be asked for approval."""


@dataclass(frozen=True)
class Caller:
    """A caller as named in audit entries, quotes and votes; as text `agent:mcp` or `human:dana`."""

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


def acted_for(signature: str) -> str:
    """The caller in whose name an entry of the audit record was made."""
    return signature.rpartition(_ACTING_FOR)[2]


_ACTING_FOR = " acting for "


@dataclass(frozen=True)
class Principal:
    """An authenticated caller: a person, or a program that acts for one."""

    name: str
    kind: PrincipalKind
    roles: frozenset[Role]
    tenant_id: str = MAIN_TENANT
    acts_for: str | None = None
    """The person who owns this program, by its token."""
    token_ids: frozenset[str] = field(default=frozenset(), compare=False)
    """The tokens that these rights rest on; none for the callers that are built in."""
    acted_by: str | None = None
    """The caller whose secret was presented, where it is not this one's: `human:alex` acts in the name of this one."""

    @property
    def owner(self) -> str | None:
        """The seller behind this caller, who owns the quotes it makes: the person, or the person behind a program."""
        return self.name if self.is_person else self.acts_for

    @property
    def caller(self) -> str:
        """The name in audit entries and quotes: the text of a `Caller`."""
        return str(Caller(self.kind, self.name))

    @property
    def signature(self) -> str:
        """The caller as the audit record names it: `human:alex acting for human:dana`."""
        return f"{self.acted_by}{_ACTING_FOR}{self.caller}" if self.acted_by else self.caller

    def signed_by(self, holder: Principal | None) -> Principal:
        """The same caller with the holder of the secret that was presented; the rights end with that token, too."""
        if holder is None:
            return self
        acted_by = holder.caller if holder.caller != self.caller else None
        return replace(self, acted_by=acted_by, token_ids=self.token_ids | holder.token_ids)

    @property
    def is_person(self) -> bool:
        return self.kind == "human"

    @property
    def only_sells(self) -> bool:
        """Whether this is a program that can only make and send quotes, which a shell on the machine can do as well."""
        return not self.is_person and not self.roles & GUARDED

    def may(self, permission: Permission) -> bool:
        return any(permission in PERMISSIONS[role] for role in self.roles)


LOCAL_AGENT = Principal("mcp", "agent", frozenset({Role.AGENT}))
"""The operator's own process over stdio, and holders of the shared token."""

OPERATOR = Principal("operator", "human", frozenset({Role.ADMIN}))
"""The person who runs `cpq` on the machine itself."""

ENGINE = Principal("engine", "agent", frozenset({Role.ADMIN}))
"""The engine's own work: it ends expired quotes and delivers events."""
