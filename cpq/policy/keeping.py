"""Keeps the policies of a folder at hand: a changed file is picked up within a second, a broken one changes nothing."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from cpq.effects import Effects
from cpq.errors import CpqError
from cpq.policy.loading import load, stamp
from cpq.policy.model import PolicySet

log = logging.getLogger("cpq.policy")

LOOK_SECONDS = 0.5


class PolicyKeeper:
    """The last good policies of a folder. Fails only when there never were any."""

    def __init__(self, directory: Path, effects: Effects) -> None:
        self.directory = directory
        self.problem: CpqError | None = None
        """Why the files as they are now cannot be used, while an earlier state of them still is."""
        self._effects = effects
        self._lock = threading.Lock()
        self._stamp = stamp(directory)
        self._current = load(directory)
        self._next_look = effects.monotonic() + LOOK_SECONDS

    def current(self) -> PolicySet:
        """The policies as of half a second ago or less."""
        if self._effects.monotonic() >= self._next_look:
            with self._lock:
                if self._effects.monotonic() >= self._next_look:
                    self._look()
                    self._next_look = self._effects.monotonic() + LOOK_SECONDS
        return self._current

    def _look(self) -> None:
        try:
            found = stamp(self.directory)
            if found == self._stamp:
                return
            self._stamp = found
            self._current = load(self.directory)
        except CpqError as error:
            self.problem = error
            log.error("policies are broken, the last good ones stay", extra={"problem": error.message})
            return
        self.problem = None
        log.info("policies reloaded", extra={"hash": self._current.content_hash[:12]})
