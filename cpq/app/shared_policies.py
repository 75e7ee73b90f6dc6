"""Servers of one PostgreSQL database never decide by different policies: the set that came into use last counts."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from cpq.app import policy_store
from cpq.app.policy_keeper import HASH_SHOWN, PolicyKeeper
from cpq.base.clock import Effects
from cpq.base.tenant_folders import MAIN_TENANT

if TYPE_CHECKING:
    from cpq.app.policy_files import Loaded
    from cpq.domain.policy.policy_set import PolicySet

Reading = Callable[[], AbstractContextManager[Connection]]


class SharedPolicies(PolicyKeeper):
    """The policies of a folder, which decide only while they are the set that came into use last.

    A server brings its set into use when it begins with one that the database has not seen, or when its folder changes
    while it runs. A set that was replaced does not come back by a start: an old server that is started again would
    bring old rules back. `cpq policy adopt` brings any set into use.
    """

    def __init__(
        self,
        directory: Path,
        effects: Effects,
        deciders: Collection[str] | None,
        *,
        reading: Reading,
        bring_into_use: Callable[[Loaded], None],
        tenant_id: str = MAIN_TENANT,
    ) -> None:
        super().__init__(directory, effects, deciders)
        self._reading = reading
        self._bring_into_use = bring_into_use
        self._tenant_id = tenant_id
        self.is_server = self._has_changed = False
        self._stored: Loaded | None = None

    def begin_to_serve(self) -> None:
        """From now on its new sets come into use; a command only compares its folder."""
        self.is_server = True
        self._compare(self.current())

    def state(self) -> str:
        """Also which policies are in force instead. Looks at the folder now."""
        found = super().state()
        if self.elsewhere is None:
            return found
        return f"{self.not_deciding().message} {self.next_step}"

    def _first(self) -> PolicySet:
        found = super()._first()
        self._compare(found)
        return found

    def _look(self) -> None:
        before = self._current
        super()._look()
        assert self._current is not None, "or there is nothing to look at again"
        self._has_changed |= self._current is not before
        self._compare(self._current)

    def _compare(self, mine: PolicySet) -> None:
        """Find out which set is in force, and bring a new one of this server into use."""
        try:
            with self._reading() as connection:
                in_force = policy_store.last_used_hash(connection, self._tenant_id)
                is_in_force = in_force in (None, mine.content_hash)
                is_new = not is_in_force and not policy_store.was_used(connection, mine.content_hash, self._tenant_id)
            if self._may_store(mine) and (is_in_force or is_new or self._has_changed):
                assert self.loaded is not None, "or it may not store them"
                self._bring_into_use(self.loaded)
                self._stored, is_in_force = self.loaded, True
        except sa.exc.SQLAlchemyError:
            return  # The call itself needs the same database, and fails if it does not answer.
        self._has_changed = False
        self.elsewhere = None if is_in_force else in_force

    def _may_store(self, mine: PolicySet) -> bool:
        is_from_folder = self.loaded is not None and self.loaded.policies is mine
        return self.is_server and is_from_folder and self.loaded is not self._stored

    @property
    def next_step(self) -> str:
        mine = self.current().content_hash[:HASH_SHOWN]
        return (
            "Give every server the same files in CPQ_POLICIES_DIR; "
            f"`cpq policy adopt` where {mine} lies brings that set into use."
        )
