"""The pages of a folder, kept in step with its files: only changed files are read again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from cpq.base.clock import Effects
from cpq.base.memory import give_back
from cpq.base.tenant_folders import MAIN_TENANT
from cpq.retrieval.docs.pages import Page, chunks_of, page_of
from cpq.retrieval.search import folder_files
from cpq.retrieval.search.folder_corpus import FolderCorpus
from cpq.retrieval.search.folder_files import Stamp, UnreadableError
from cpq.retrieval.search.vector_repository import Progress, no_progress

log = logging.getLogger("cpq.docs")

SUFFIXES = (".md", ".markdown")
SKIPPED = ("node_modules", "__pycache__")
BATCH_PAGES = 500
LOOK_SECONDS_MAX = 0.25
FEW_FILES = 20
"""Up to this many changed files, a call waits for another thread's reading: an author wants to find a new page."""

SETTLED_SECONDS = 0.05
"""A file that changed this shortly before it was read may change again without a new time stamp."""

_FIRST_MOMENT = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LAST_MOMENT = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class State:
    """The pages and problems at one moment; replaced as a whole."""

    pages: Mapping[str, Page] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    indexed_at: datetime | None = None


class PageFolder(FolderCorpus):
    """The corpus of a folder of pages. One thread at a time updates it; the others use the last state."""

    def __init__(self, root: Path, effects: Effects, tenant_id: str = MAIN_TENANT) -> None:
        super().__init__("docs", root, effects, tenant_id)
        self.state = State()
        self.started_at = effects.monotonic()
        self._files_being_read = 0
        self._stamps: dict[str, Stamp | None] = {}

    def look(self) -> None:
        self.refresh()

    def refresh(self, progress: Progress = no_progress) -> State:
        """The state with every change of the files so far, unless another thread is reading many changed files.

        A call waits for the first reading, and a moment for a reading of a few files. A file that cannot be read keeps
        its last good page.
        """
        is_first = self.state.indexed_at is None
        is_long = self._files_being_read > FEW_FILES
        if self._lock.acquire(timeout=-1 if is_first else 0 if is_long else LOOK_SECONDS_MAX):
            try:
                self._update(progress)
            finally:
                self._files_being_read = 0
                self._lock.release()
        return self.state

    def _update(self, progress: Progress) -> None:
        try:
            found = folder_files.scan(self.root, SUFFIXES, skipped=SKIPPED)
        except OSError as error:
            self._note({"": f"the folder cannot be opened: {error.strerror}; the last good state is used"})
            return
        changed = [path for path, stamp in found.files.items() if self._stamps.get(path) != stamp]
        gone = [
            path
            for path in self._stamps
            if path not in found.files and path not in found.problems and not found.may_still_hold(path)
        ]
        known = {path: problem for path, problem in self.state.problems.items() if path in found.files}
        problems = known | found.problems
        self._files_being_read = len(changed)
        before, is_first = self.revision, self.state.indexed_at is None
        for start in range(0, max(len(changed), 1), BATCH_PAGES):
            batch = changed[start : start + BATCH_PAGES]
            self._change(batch, gone if start == 0 else [], found.files, problems)
            progress(start + len(batch), len(changed))
        self._note(problems)
        if is_first or self.revision != before:
            self.state = replace(self.state, indexed_at=self._effects.now())
        if len(changed) >= BATCH_PAGES:
            give_back()

    def _change(self, paths: list[str], gone: list[str], stamps: Mapping[str, Stamp], problems: dict[str, str]) -> None:
        """Read these files, put their pages in place of the old ones, and update `problems`."""
        fresh: dict[str, Page] = {}
        read: dict[str, Stamp | None] = {}
        for path in paths:
            now = self._effects.now().timestamp()
            problems.pop(path, None)
            try:
                text, problem = folder_files.read_text(self.root, path)
            except UnreadableError as error:
                problems[path] = f"{error}; the last good state is used" if path in self.state.pages else str(error)
                read[path] = stamps[path]
                continue
            modified, changed = stamps[path].modified_ns / 1e9, stamps[path].changed_ns / 1e9
            page = page_of(path, text, _moment(modified), problem)
            if page.problem:
                problems[path] = page.problem
            # The difference may be negative: clocks differ, and archives carry any time.
            is_settled = min(abs(now - modified), abs(now - changed)) > SETTLED_SECONDS
            read[path] = stamps[path] if is_settled else None
            if path not in self.state.pages or page != self.state.pages[path]:
                fresh[path] = page
        if fresh or gone:
            # A page without text is a page, but has no passages.
            emptied = [path for path, page in fresh.items() if not page.total_chars]
            self.corpus.change([chunk for page in fresh.values() for chunk in chunks_of(page)], [*gone, *emptied])
            self.revision += 1
            kept = {path: page for path, page in self.state.pages.items() if path not in gone}
            self.state = replace(self.state, pages=kept | fresh)
        # Stamps change last, so that a failure above makes the next look read these files again.
        for path in gone:
            del self._stamps[path]
        self._stamps |= read

    def _note(self, problems: Mapping[str, str]) -> None:
        for path in problems.keys() - self.state.problems.keys():
            log.info("a page cannot be used as it is", extra={"page": path, "problem": problems[path]})
        if problems != self.state.problems:
            self.state = replace(self.state, problems=dict(problems))


def _moment(seconds: float) -> datetime:
    """A file may carry any time; a date has a year of four digits."""
    return datetime.fromtimestamp(min(max(seconds, _FIRST_MOMENT), _LAST_MOMENT), UTC)
