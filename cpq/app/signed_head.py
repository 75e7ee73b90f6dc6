"""The signed head of the audit chain: kept elsewhere, it shows whether anything before it was cut off or rewritten."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cpq.app.audit import GENESIS
from cpq.base.audit_key import COMMAND, FILE, AuditKey
from cpq.base.errors import Code, CpqError
from cpq.base.text import plain_json

SIGNED = "audit head"
"""What the signature of a head is for."""


@dataclass(frozen=True)
class SignedHead:
    """The last sealed entry of a tenant at a moment, and the signature of the key."""

    tenant_id: str
    seq: int
    hash: str
    at: str
    signature: str = ""

    @property
    def _text(self) -> str:
        return plain_json([self.tenant_id, self.seq, self.hash, self.at])

    def signed(self, key: AuditKey) -> SignedHead:
        return SignedHead(self.tenant_id, self.seq, self.hash, self.at, key.sign(SIGNED, self._text))

    def require_signed(self, key: AuditKey, tenant_id: str) -> None:
        """CONFLICT when the key has not signed this head, or it is another tenant's."""
        if not key.has_signed(SIGNED, self._text, self.signature):
            raise CpqError(
                Code.CONFLICT,
                "The signature of the head is not by the key: somebody changed the file, or it is of another key.",
                hint="Use the file as `cpq audit head` wrote it, with the key of that time among the keys.",
            )
        if self.tenant_id != tenant_id:
            raise CpqError(Code.CONFLICT, f"The head is of the tenant {self.tenant_id}, not of {tenant_id}.")

    def written(self) -> dict[str, Any]:
        return asdict(self)


def read_head(given: Mapping[str, Any]) -> SignedHead:
    """The head from its JSON; VALIDATION_ERROR when it is something else."""
    names = SignedHead.__dataclass_fields__.keys()
    kinds = {name: int if name == "seq" else str for name in names}
    if given.keys() != names or any(type(given[name]) is not kinds[name] for name in names):
        raise _strange()
    head = SignedHead(**given)
    if head.seq < 0 or not re.fullmatch(rf"[0-9a-f]{{{len(GENESIS)}}}", head.hash):
        raise _strange()
    return head


def key_for_heads(key: AuditKey | None) -> AuditKey:
    if key is None:
        raise CpqError(
            Code.VALIDATION_ERROR,
            "A head is signed with a key, and there is no key.",
            field=FILE,
            hint=f"Set {FILE} or {COMMAND}; or compare an unsigned head with `cpq audit verify --expect`.",
        )
    return key


def _strange() -> CpqError:
    return CpqError(
        Code.VALIDATION_ERROR, "The file is not a head of the audit chain.", hint="`cpq audit head` writes one."
    )
