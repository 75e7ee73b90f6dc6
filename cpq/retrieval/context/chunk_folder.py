"""The chunk files of a folder: loaded again as a whole when they changed and writing has stopped."""

from __future__ import annotations

import hashlib
import logging
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from cpq.base import vocabulary
from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.base.memory import give_back
from cpq.domain.catalog import spelling, words
from cpq.retrieval.context import chunks
from cpq.retrieval.context.chunks import DimensionError, MalformedError, Packed, packed, read_file, searchable
from cpq.retrieval.search import (
    folder_files,
    index,
    index_columns,
    lexicon,
    mapped_file,
    packed_texts,
    postings,
    segment_file,
    sequences,
    spellings,
)
from cpq.retrieval.search.folder_corpus import FolderCorpus
from cpq.retrieval.search.folder_files import Listing, Stamp, UnreadableError
from cpq.retrieval.search.index import Chunk
from cpq.retrieval.search.installed_model import MODEL
from cpq.retrieval.search.mapped_file import Mapped

log = logging.getLogger("cpq.context")

QUIET_SECONDS = 0.5
"""How long no file may change before a load: an indexer writes several files in turn."""

LOOK_SECONDS = 0.1
KEPT_FROM = 1_000
"""Fewer chunks are read again at every start."""

KEEP_SECONDS = 300.0
"""How long after an index was stored a changed one is stored again."""

STEP_SECONDS = 0.5
"""How long a look goes on with the first reading of many files."""

FILE_BYTES_MAX = 1024**3
BATCH_CHUNKS = 2_000
SKIPPED_SHOWN_MAX = 5

Packs = dict[str, Packed]


class ChunkFolder(FolderCorpus):
    """The corpus of a folder of chunk files. Searches never wait: they use the last good state."""

    def __init__(self, root: Path, effects: Effects, kept_in: Path | None = None) -> None:
        super().__init__("context", root, effects)
        name = hashlib.sha256(os.fsencode(root.absolute())).hexdigest()[:16]
        self._kept = kept_in / f"context-{name}.index" if kept_in else None
        """The file for the index of many chunks."""
        self._kept_revision: int | None = None
        self._next_keep = -math.inf
        self.reloads = 0
        self._problem: str | None = None
        """Why the present files are not used, and an earlier state is."""
        self._skipped: dict[str, str] = {}
        self._is_loaded = False
        self._first: Iterator[None] | None = None
        """The first reading, as far as it is."""
        self._seen: dict[str, Stamp] = {}
        self._refused: dict[str, str] = {}
        """Files that could not be used at the last look, and why."""
        self._loaded: dict[str, Stamp] = {}
        self._packs: dict[str, Packs] = {}
        self._quiet_at: float | None = None

    @property
    def warning(self) -> str | None:
        """What an answer may miss; None when all files are used."""
        if self._problem:
            return f"The newest chunk files cannot be used, the last good state answers: {self._problem}"
        if self._skipped:
            skipped = "; ".join(f"{name} {reason}" for name, reason in islice(self._skipped.items(), SKIPPED_SHOWN_MAX))
            return f"{len(self._skipped)} of the chunk files cannot be used: {skipped}"
        return None

    @property
    def is_read(self) -> bool:
        return self._is_loaded

    @property
    def progress(self) -> str | None:
        """While files are being read for the first time: how far that is."""
        return None if self._is_loaded else f"{len(self.corpus):,} chunks are read so far, the others follow"

    def load(self, seconds: float = math.inf) -> None:
        """Read all files on the first call; skip malformed ones with a warning. CpqError when the folder is missing.

        What is not read after `seconds` is left to the looks of a server, and answers come from what is there.
        """
        if self._is_loaded or (self.is_watched and self._first is not None):
            return
        until = self._effects.monotonic() + seconds
        with self._lock:
            self._go_on(until)

    def _go_on(self, until: float) -> None:
        """Read on for the first time, up to this moment or the end."""
        if self._is_loaded:
            return
        if self._first is None:
            self._first = self._read_all(self._scan())
        while next(self._first, self) is not self:
            if self._effects.monotonic() >= until:
                return

    def _read_all(self, found: Listing) -> Iterator[None]:
        """Read all files for the first time, and rest after each part of them."""
        if self._restore(found):
            return
        for name in sorted(found.files):
            packs: Packs = {}
            self._packs[name] = packs
            try:
                for part, passages in _batches(self._packs_of(name)):
                    packs |= {pack.document_id: pack for pack in part}
                    self.corpus.change(passages)
                    yield
            except (MalformedError, UnreadableError) as error:
                if isinstance(error, DimensionError) and not self.is_watched:
                    raise CpqError(
                        Code.UNAVAILABLE,
                        f"The chunk file {name} {error}.",
                        hint="Make the chunks again with `cpq context index DIR`.",
                    ) from None
                self.corpus.change((), removed=packs.keys())
                packs.clear()
                self._skip({name: str(error)})
        self._skip(found.problems)
        self._finish(found)
        give_back()

    def _finish(self, found: Listing) -> None:
        self._seen = self._loaded = dict(found.files)
        self._refused = found.problems
        self._is_loaded = True
        self.revision += 1

    def settle(self) -> None:
        """Store the index of many chunks, and use it from its file: the next start is quick, and memory is spared."""
        is_known = self._kept_revision == self.revision or self._problem or self._skipped
        if self._kept is None or is_known or len(self.corpus) < KEPT_FROM:
            return
        now = self._effects.monotonic()
        if now < self._next_keep or not self._lock.acquire(blocking=False):
            return
        try:
            self._next_keep = now + KEEP_SECONDS
            self.corpus.keep(self._kept, lambda pack: pack.content, self._about(self._loaded))
            kept = mapped_file.read(self._kept)
            if kept is not None and kept.about == self._about(self._loaded):
                self._use(kept)
        finally:
            self._lock.release()
        give_back()

    def _restore(self, found: Listing) -> bool:
        """Use the stored index if it is of exactly these files, and was made by this version for this model."""
        kept = mapped_file.read(self._kept) if self._kept else None
        if kept is None or found.problems or kept.about != self._about(found.files):
            return False
        self._use(kept)
        self._finish(found)
        self._kept_revision = self.revision
        return True

    def _use(self, kept: Mapped) -> None:
        packs: dict[str, Packs] = {name: {} for name in kept.about["files"]}

        def payload_of(document_id: str, content: memoryview) -> Packed:
            pack = Packed(document_id, content)
            packs[document_id.partition("\0")[0]][document_id] = pack
            return pack

        self.corpus.use(kept.arrays, payload_of)
        self._packs = packs
        self._kept_revision = self.revision

    def _about(self, files: Mapping[str, Stamp]) -> dict[str, Any]:
        """What a stored index must have been made of, as it comes back from JSON."""
        made_by = [_code(), MODEL if self.corpus.embedder else None]
        return {"made_by": made_by, "files": {name: list(stamp) for name, stamp in files.items()}}

    def look(self) -> None:
        """Notice new and changed files, and load them when nothing was written for QUIET_SECONDS.

        A removed file alone does not start a load: an indexer that replaces its files may remove them for a moment.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            if not self._is_loaded:
                self._go_on(self._effects.monotonic() + STEP_SECONDS)
                return
            found = self._scan()
            now = self._effects.monotonic()
            is_new = any(self._seen.get(name) != stamp for name, stamp in found.files.items())
            if is_new or found.problems != self._refused:
                self._seen, self._refused = dict(found.files), found.problems
                self._quiet_at = now + QUIET_SECONDS
            elif self._quiet_at is not None and now >= self._quiet_at:
                self._quiet_at = None
                self._reload(found)
        except CpqError as error:
            self._seen = {}  # When the folder is back, all its files count as new.
            self._note(error.message)
        finally:
            self._lock.release()

    def _scan(self) -> Listing:
        try:
            return folder_files.scan(self.root, (".json",))
        except OSError as error:
            raise CpqError(
                Code.UNAVAILABLE,
                f"CPQ_CHUNKS_DIR: the folder {self.root} cannot be opened: {error.strerror}.",
                hint="Make it with `cpq context index DIR`, or leave the toolset context out of CPQ_TOOLSETS.",
            ) from None

    def _skip(self, files: Mapping[str, str]) -> None:
        for name, reason in files.items():
            if self._skipped.get(name) != reason:
                log.warning("a chunk file is skipped", extra={"file": name, "reason": reason})
        self._skipped |= files

    def _reload(self, found: Listing) -> None:
        """Load all changed files or none: a part of what an indexer wrote is not a valid state."""
        for name, known in self._packs.items():
            is_there = name in found.problems or found.may_still_hold(name)
            if known and is_there and name not in found.files:
                self._note(f"{name} {found.problems.get(name, 'is in a folder that cannot be used')}")
                return
        packs: dict[str, Packs] = {}
        for name, stamp in found.files.items():
            try:
                packs[name] = self._packs[name] if self._loaded.get(name) == stamp else self._read(name)
            except (MalformedError, UnreadableError) as error:
                self._note(f"{name} {error}")
                return
        before, after = _documents(self._packs), _documents(packs)
        fresh = [pack for document, pack in after.items() if before.get(document) != pack]
        removed = before.keys() - after.keys()
        if fresh or removed:
            self.corpus.change_in_parts(_parts(fresh), removed)
            self.revision += 1
        self._skipped = {
            name: reason
            for name, reason in self._skipped.items()
            if name in found.problems or (name in found.files and found.files[name] == self._loaded.get(name))
        }
        self._skip(found.problems)
        self._loaded, self._packs = dict(found.files), packs
        self._problem = None
        self.reloads += 1
        give_back()
        log.info("context reloaded", extra={"files": len(packs), "chunks": len(self.corpus)})

    def _read(self, name: str) -> Packs:
        """The packs of a file; an unchanged pack stays the same object."""
        before = self._packs.get(name, {})
        packs: Packs = {}
        for pack in self._packs_of(name):
            known = before.get(pack.document_id)
            packs[pack.document_id] = known if known == pack else pack
        return packs

    def _packs_of(self, name: str) -> Iterator[Packed]:
        return packed(name, read_file(folder_files.read_bytes(self.root, name, FILE_BYTES_MAX)))

    def _note(self, problem: str) -> None:
        if problem != self._problem:
            log.error("chunk files cannot be used, the last good state stays", extra={"problem": problem})
        self._problem = problem


@cache
def _code() -> str:
    """Changes with every rule about what an index holds."""
    modules = (chunks, index, index_columns, lexicon, packed_texts, postings, segment_file, sequences, spelling)
    sources = [Path(str(module.__file__)).read_bytes() for module in (*modules, spellings, vocabulary, words)]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


def _documents(packs: Mapping[str, Packs]) -> Packs:
    return {document: pack for of_file in packs.values() for document, pack in of_file.items()}


def _parts(packs: Iterable[Packed]) -> Iterator[list[Chunk]]:
    """The passages of these packs, in batches, at least one."""
    yield from (passages for _, passages in _batches(packs))
    yield []


def _batches(packs: Iterable[Packed]) -> Iterator[tuple[list[Packed], list[Chunk]]]:
    """The packs and their passages, in batches."""
    part: list[Packed] = []
    passages: list[Chunk] = []
    for pack in packs:
        part.append(pack)
        passages += searchable(pack)
        if len(passages) >= BATCH_CHUNKS:
            yield part, passages
            part, passages = [], []
    if part:
        yield part, passages
