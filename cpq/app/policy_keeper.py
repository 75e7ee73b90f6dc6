"""Keeps the policies of a folder at hand: a changed file is picked up within a second, a broken one changes nothing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from pathlib import Path

from cpq.app.policy_files import Stamp, load, stamp
from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.domain.policy.policy_set import PolicySet

log = logging.getLogger("cpq.policy")

LOOK_SECONDS = 0.5
REST_SECONDS = 0.2
"""So long ago a file must have been written before it is read: whoever saves one may not have finished."""


class PolicyKeeper:
    """The last good policies of a folder, read when they are first asked for. Fails only when there never were any."""

    def __init__(self, directory: Path, effects: Effects, deciders: Collection[str] | None = None) -> None:
        """`deciders` are the roles that somebody can hold and decide by; no other may be asked for approval."""
        self.directory = directory
        self._deciders = deciders
        self.problem: CpqError | None = None
        """Why the files as they are now cannot be used, while an earlier state of them still is."""
        self._effects = effects
        self._lock = threading.Lock()
        self._stamp: Stamp | None = None
        self._current: PolicySet | None = None
        self._next_look = effects.monotonic()

    def current(self) -> PolicySet:
        """The policies as of half a second ago or less."""
        # One caller reads what changed; meanwhile the others go on with what there is, if there is any.
        is_due = self._current is None or self._effects.monotonic() >= self._next_look
        if is_due and self._lock.acquire(blocking=self._current is None):
            try:
                if self._current is None:
                    self._stamp = stamp(self.directory)
                    self._current = load(self.directory, self._deciders)
                elif self._effects.monotonic() >= self._next_look:
                    self._look()
                self._next_look = self._effects.monotonic() + LOOK_SECONDS
            finally:
                self._lock.release()
        assert self._current is not None, "or the load has failed"
        return self._current

    def _look(self) -> None:
        found: Stamp | None = None
        try:
            found = stamp(self.directory)
            if found == self._stamp:
                return
            if self._is_being_written(found):
                found = self._stamp
                return
            self._current = load(self.directory, self._deciders)
        except CpqError as error:
            self._note(error)
            return
        except Exception as error:
            # A file over which the loader stumbles is as harmless as one that it refuses, and shows as long.
            log.exception("policies could not be read")
            message = f"The policies could not be read: {type(error).__name__}."
            self._note(CpqError(Code.CONFIGURATION_INVALID, message, setting="CPQ_POLICIES_DIR"))
            return
        finally:
            # Also of files that cannot be used: they are looked at again when they change, not at every look.
            self._stamp = found
        self.problem = None
        log.info("policies reloaded", extra={"hash": self._current.content_hash[:12]})

    def _is_being_written(self, found: Stamp) -> bool:
        now = self._effects.now().timestamp()
        return any(0 <= now - changed_ns / 1e9 < REST_SECONDS for _, _, changed_ns, _, _ in found)

    def _note(self, error: CpqError) -> None:
        is_news = self.problem is None or self.problem.message != error.message
        self.problem = error
        if is_news:
            log.error("policies are broken, the last good ones stay in use", extra={"problem": error.message})
