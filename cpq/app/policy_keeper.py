"""Keeps the policies of a folder loaded: a changed file is used within a second, a broken one changes nothing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.base.late_modules import LateModule

if TYPE_CHECKING:
    from cpq.app import policy_files
    from cpq.app.policy_files import Loaded, Stamp
    from cpq.domain.policy.policy_set import PolicySet
else:
    policy_files = LateModule("cpq.app.policy_files")

log = logging.getLogger("cpq.policy")

LOOK_SECONDS = 0.5
HASH_SHOWN = 12
"""How much of a hash people see."""

RETRY_SECONDS = 30
"""When to try again after a person has to give a server other policies."""

REST_SECONDS = 0.2
"""Minimum age of a file before it is read, because saving it may not be finished."""


class PolicyKeeper:
    """The last valid policies of a folder, read on first use. Fails only when there never were any."""

    def __init__(self, directory: Path, effects: Effects, deciders: Collection[str] | None = None) -> None:
        """`deciders` are the roles that may decide; no other role can be asked for approval."""
        self.directory = directory
        self._deciders = deciders
        self.problem: CpqError | None = None
        """Why the current files cannot be used, while their last valid state is in use."""
        self.elsewhere: str | None = None
        """The hash of the policies in force, while this process has others and must not decide."""
        self.loaded: Loaded | None = None
        """The policies in use with their files, if they come from the folder."""
        self._effects = effects
        self._lock = threading.Lock()
        self._stamp: Stamp | None = None
        self._current: PolicySet | None = None
        self._next_look = effects.monotonic()

    def current(self) -> PolicySet:
        """The policies as of half a second ago or less."""
        # One caller reads the changed files; meanwhile the others use the policies already loaded, if any.
        is_due = self._current is None or self._effects.monotonic() >= self._next_look
        if is_due and self._lock.acquire(blocking=self._current is None):
            try:
                if self._current is None:
                    self._current = self._first()
                elif self._effects.monotonic() >= self._next_look:
                    self._look()
                self._next_look = self._effects.monotonic() + LOOK_SECONDS
            finally:
                self._lock.release()
        assert self._current is not None, "or the load has failed"
        return self._current

    def in_force(self) -> Callable[[], PolicySet]:
        """Gives the policies of this moment; reads them only when asked, if nobody needed them before.

        UNAVAILABLE while others are in force than this process has.
        """
        self.refresh()
        found = self._current

        def deciding() -> PolicySet:
            policies = self.current() if found is None else found
            if self.elsewhere is not None:
                raise self.not_deciding()
            return policies

        return deciding

    @property
    def next_step(self) -> str:
        """What the operator does about policies that are in force elsewhere."""
        return "Install the same version of Quotewright on every server, then run `cpq policy adopt`."

    def not_deciding(self) -> CpqError:
        """The refusal of everything that needs policies, while others are in force than this process has."""
        in_force, mine = (self.elsewhere or "")[:HASH_SHOWN], self.current().content_hash[:HASH_SHOWN]
        return CpqError(
            Code.UNAVAILABLE,
            f"This server does not decide: the policies {in_force} are in force, and it has {mine}.",
            hint=f"Try again, another server may answer. {self.next_step}",
            retry_after_seconds=RETRY_SECONDS,
        )

    def refresh(self) -> None:
        """Read changed files, if the policies are in use at all: many commands never need them."""
        if self._current is not None:
            self.current()

    def state(self) -> str:
        """`ok`, or what is wrong with the folder and what is in use instead. Looks at the folder now."""
        in_use = self.current()
        if self.problem is None:
            return "ok"
        stored = "" if self.loaded else f", {in_use.content_hash[:HASH_SHOWN]}, as a server stored it"
        return f"broken, the last good ones are in use{stored}: {self.problem.message}"

    def fall_back(self, stored: PolicySet, problem: CpqError) -> None:
        """Begin with a stored set, because the folder has this problem; it is used as soon as it has none."""
        self._current = stored
        self._note(problem)

    def _first(self) -> PolicySet:
        self._stamp = policy_files.stamp(self.directory)
        return self._load()

    def _load(self) -> PolicySet:
        self.loaded = policy_files.load_with_texts(self.directory, self._deciders)
        return self.loaded.policies

    def _look(self) -> None:
        try:
            changed = self._changed()
        except CpqError as error:
            self._note(error)
            return
        except Exception as error:
            # A file that makes the loader fail is treated like one that it refuses, and reported the same way.
            log.exception("policies could not be read")
            message = f"The policies could not be read: {type(error).__name__}."
            self._note(CpqError(Code.CONFIGURATION_INVALID, message, setting="CPQ_POLICIES_DIR"))
            return
        if changed is not None:
            self._current, self.problem = changed, None
            log.info("policies reloaded", extra={"hash": changed.content_hash[:HASH_SHOWN]})

    def _changed(self) -> PolicySet | None:
        """The policies of files that changed since the last look; None when they did not."""
        found: Stamp | None = None
        try:
            found = policy_files.stamp(self.directory)
            if found == self._stamp:
                return None
            if self._is_being_written(found):
                found = self._stamp
                return None
            return self._load()
        finally:
            # Also kept for unusable files: they are read again when they change, not on every check.
            self._stamp = found

    def _is_being_written(self, found: Stamp) -> bool:
        now = self._effects.now().timestamp()
        return any(0 <= now - changed_ns / 1e9 < REST_SECONDS for _, _, changed_ns, _, _ in found)

    def _note(self, error: CpqError) -> None:
        is_news = self.problem is None or self.problem.message != error.message
        self.problem = error
        if is_news:
            log.error("policies are broken, the last good ones stay in use", extra={"problem": error.message})
