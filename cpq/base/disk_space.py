"""The free space where the data is: below a limit nothing more is stored, while it can still be read and mended."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError

LOOK_SECONDS = 3.0
"""How long a look at the disk counts."""

RETRY_SECONDS = 60
MEGABYTE = 1_000_000


def shortage(free_bytes: int, least_megabytes: int) -> str | None:
    """What is wrong with this much free space, in words; None when it is enough. With 0 there is no limit."""
    if free_bytes >= least_megabytes * MEGABYTE:
        return None
    return f"{free_bytes // MEGABYTE:,} MB of the disk are free, fewer than {least_megabytes:,} MB"


def free_bytes(folder: Path) -> int:
    """The free space of the disk on which the folder is, or will be."""
    absolute = folder.absolute()
    return shutil.disk_usage(next(one for one in (absolute, *absolute.parents) if one.is_dir())).free


class DiskSpace:
    """Looks at the disk now and then, and refuses to store where it is nearly full."""

    def __init__(
        self, folder: Path, least_megabytes: int, effects: Effects, look: Callable[[Path], int] = free_bytes
    ) -> None:
        self._folder = folder
        self._least = least_megabytes
        self._effects = effects
        self._look = look
        self._until = 0.0
        self._found: str | None = None

    @property
    def problem(self) -> str | None:
        """The shortage in words, as of a few seconds ago."""
        if not self._least:
            return None
        now = self._effects.monotonic()
        if now >= self._until:
            self._found = shortage(self._look(self._folder), self._least)
            self._until = now + LOOK_SECONDS
        return self._found

    def require_room(self) -> None:
        """UNAVAILABLE where the disk is nearly full."""
        if (problem := self.problem) is not None:
            raise CpqError(
                Code.UNAVAILABLE,
                f"Nothing is stored now: {problem}. Nothing was changed.",
                hint="The operator makes room on the disk of CPQ_HOME, or moves it; reads still work.",
                retry_after_seconds=RETRY_SECONDS,
            )
