"""Keeps the policies that people adopted in use, whatever the folder says (CPQ_POLICIES_ADOPT=manual)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.engine import Connection

from cpq.app import policy_store
from cpq.app.policy_keeper import HASH_SHOWN, PolicyKeeper
from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.base.tenant_folders import MAIN_TENANT

if TYPE_CHECKING:
    from cpq.domain.policy.policy_set import PolicySet

Reading = Callable[[], AbstractContextManager[Connection]]


class AdoptedPolicies(PolicyKeeper):
    """The policies that were adopted last, as stored. The folder is only compared with them."""

    def __init__(
        self,
        directory: Path,
        effects: Effects,
        deciders: Collection[str] | None,
        *,
        reading: Reading,
        tenant_id: str = MAIN_TENANT,
    ) -> None:
        super().__init__(directory, effects, deciders)
        self._folder = PolicyKeeper(directory, effects, deciders)
        self._reading = reading
        self._tenant_id = tenant_id

    def state(self) -> str:
        """`ok`, or that a changed folder waits for adoption. Looks at the folder now."""
        in_use = self.current().content_hash
        if self.problem is not None:
            return f"the adopted ones cannot be read, {in_use[:HASH_SHOWN]} stays in use: {self.problem.message}"
        try:
            found = self._folder.current().content_hash
            if self._folder.problem is not None:
                raise self._folder.problem
        except CpqError as problem:
            return f"the folder is broken, {in_use[:HASH_SHOWN]} stays in use as adopted: {problem.message}"
        if found == in_use:
            return "ok"
        return (
            f"the folder has changed to {found[:HASH_SHOWN]}, which waits for `cpq policy adopt`; "
            f"{in_use[:HASH_SHOWN]} stays in use"
        )

    def _first(self) -> PolicySet:
        with self._reading() as connection:
            stored = policy_store.adopted(connection, self._tenant_id)
        if stored is None:
            raise CpqError(
                Code.CONFIGURATION_INVALID,
                "No policies are adopted yet, and CPQ_POLICIES_ADOPT is manual.",
                hint="Review the folder (`cpq policy show`), then run `cpq policy adopt`.",
                setting="CPQ_POLICIES_ADOPT",
            )
        return policy_store.rebuilt(stored, self._deciders)

    def _changed(self) -> PolicySet | None:
        with self._reading() as connection:
            found = policy_store.adopted_hash(connection, self._tenant_id)
        if self._current is None or found != self._current.content_hash:
            self.elsewhere = found  # Until they are read: others decide by them already.
            policies = self._first()
            self.elsewhere = None
            return policies
        self.elsewhere = None
        return self._current if self.problem else None  # The database gives them again.
