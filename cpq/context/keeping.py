"""The chunk files of a folder: read again when they change and rest, swapped as a whole, the last good state kept."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Mapping
from pathlib import Path

from cpq.context.chunks import ContextChunk, DimensionError, MalformedError, Packed, packed, read_file, searchable
from cpq.effects import Effects
from cpq.errors import Code, CpqError
from cpq.memory import give_back
from cpq.search import folders
from cpq.search.corpus import Corpus, new_corpus
from cpq.search.folders import Listing, Stamp, UnreadableError
from cpq.search.index import Chunk
from cpq.search.scoring import PROSE

log = logging.getLogger("cpq.context")

QUIET_SECONDS = 0.5
"""An indexer writes several files, one shortly after the other."""

LOOK_SECONDS = 0.1
FILE_BYTES_MAX = 1024**3
BATCH_CHUNKS = 10_000

Digests = dict[str, bytes]


class ContextKeeper:
    """Safe for many threads. Searches never wait: they have the last good state until the next one is complete."""

    def __init__(self, root: Path, effects: Effects) -> None:
        self.root = root
        self.corpus: Corpus = new_corpus("context", PROSE)
        self.revision = 0
        self.reloads = 0
        self.problem: str | None = None
        """Why the files as they are now are not used, while an earlier state of them is."""
        self._effects = effects
        self._lock = threading.Lock()
        self._is_loaded = False
        self._seen: dict[str, Stamp] = {}
        self._loaded: dict[str, Stamp] = {}
        self._digests: dict[str, Digests] = {}
        self._quiet_at: float | None = None

    def load(self) -> None:
        """The first time: read all files, skip malformed ones with a warning. CpqError when the folder is missing."""
        if self._is_loaded:
            return
        with self._lock:
            if not self._is_loaded:
                found = self._scan()
                for name in found.files:
                    self._load_first(name)
                self._seen = self._loaded = dict(found.files)
                self._is_loaded = True
                self.revision += 1
                give_back()

    def look(self) -> None:
        """Notice files that were written or are new, and load them once nothing was written for a while.

        Removing a file is not enough: an indexer that replaces its files may do that for a moment.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            found = self._scan()
            now = self._effects.monotonic()
            if any(self._seen.get(name) != stamp for name, stamp in found.files.items()):
                self._seen = dict(found.files)
                self._quiet_at = now + QUIET_SECONDS
            elif self._quiet_at is not None and now >= self._quiet_at:
                self._quiet_at = None
                self._reload(found)
        except CpqError as error:
            self._note(error.message)
        finally:
            self._lock.release()

    def _scan(self) -> Listing:
        try:
            return folders.scan(self.root, (".json",))
        except OSError as error:
            raise CpqError(
                Code.UNAVAILABLE,
                f"CPQ_CHUNKS_DIR: the folder {self.root} cannot be opened: {error.strerror}.",
                hint="Make it with `cpq context index DIR`, or leave the toolset context out of CPQ_TOOLSETS.",
            ) from None

    def _load_first(self, name: str) -> None:
        try:
            chunks = self._read(name)
        except DimensionError as error:
            raise CpqError(
                Code.UNAVAILABLE,
                f"The chunk file {name} {error}.",
                hint="Make the chunks anew with `cpq context index DIR`.",
            ) from None
        except (MalformedError, UnreadableError) as error:
            log.warning("a chunk file is skipped", extra={"file": name, "reason": str(error)})
            return
        self._digests[name] = {}
        batch: list[Chunk] = []
        for pack, group in packed(name, chunks):
            self._digests[name][pack.document_id] = _digest(pack)
            batch += searchable(pack, group)
            if len(batch) >= BATCH_CHUNKS:
                self.corpus.change(batch)
                batch = []
        self.corpus.change(batch)

    def _reload(self, found: Listing) -> None:
        """All that changed, or nothing: half of what an indexer wrote is no state."""
        fresh: list[Chunk] = []
        digests: dict[str, Digests] = {}
        for name, stamp in found.files.items():
            if self._loaded.get(name) == stamp:
                digests[name] = self._digests.get(name, {})
                continue
            try:
                chunks = self._read(name)
            except (MalformedError, UnreadableError) as error:
                self._note(f"{name} {error}")
                return
            before, digests[name] = self._digests.get(name, {}), {}
            for pack, group in packed(name, chunks):
                digests[name][pack.document_id] = digest = _digest(pack)
                if before.get(pack.document_id) != digest:
                    fresh += searchable(pack, group)
        removed = _documents(self._digests) - _documents(digests)
        if fresh or removed:
            self.corpus.change(fresh, removed)
            self.revision += 1
        self._loaded, self._digests = dict(found.files), digests
        self.problem = None
        self.reloads += 1
        if fresh:
            del fresh
            give_back()
        log.info("context reloaded", extra={"files": len(digests), "chunks": len(self.corpus)})

    def _read(self, name: str) -> list[ContextChunk]:
        return read_file(folders.read_bytes(self.root, name, FILE_BYTES_MAX))

    def _note(self, problem: str) -> None:
        if problem != self.problem:
            log.error("chunk files cannot be used, the last good state stays", extra={"problem": problem})
        self.problem = problem


def _digest(pack: Packed) -> bytes:
    return hashlib.blake2b(pack.content, digest_size=16).digest()


def _documents(digests: Mapping[str, Digests]) -> set[str]:
    return {document for of_file in digests.values() for document in of_file}
