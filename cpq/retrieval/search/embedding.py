"""Embeds texts as vectors with all-MiniLM-L6-v2, from the package of the extra `semantic`.

The model is 22 MB of int8 weights in an ONNX file. numpy computes its six layers and gives the same vectors as ONNX
Runtime within 1e-5, in half the memory (cpq/DECISIONS.md). Texts are embedded one at a time, because batches change the
last bits. The word pieces are BERT's (Apache-2.0).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cpq.base import word_list
from cpq.base.errors import Code, CpqError
from cpq.retrieval.search.installed_model import REINSTALL, fault_of, model_file
from cpq.retrieval.search.minilm import Floats, Network
from cpq.retrieval.search.onnx_file import read_tensors
from cpq.retrieval.search.vectors import TINY, Vector, quantised
from cpq.retrieval.search.wordpiece import Tokenizer

CACHED_QUERIES_MAX = 2_000
QUERY_PARTS_MAX = 4
"""About as much of a query as its words are read of (lexicon.py)."""

TOGETHER = 8
"""Texts for which a layer of the model is expanded once."""


@cache
def installed_embedder() -> Embedder | None:
    """The model of this process; None without the extra `semantic`, and then search uses words alone."""
    file = model_file()
    return Embedder(file) if file else None


class Embedder:
    """Embeds texts. The first call loads the model; safe for many threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._network: Network | None = None
        self._tokenizer: Tokenizer | None = None
        self._queries: OrderedDict[tuple[tuple[int, ...], ...], Vector] = OrderedDict()
        """By the token ids that the model reads, part by part."""

    def query(self, text: str) -> Vector:
        """The vector of a query, with a cache of recent ones: agents repeat their queries.

        A query that is too long for the model is read in parts, and their mean counts: its question may come last.
        """
        network, tokenizer = self._load()
        parts = tokenizer.parts(text, QUERY_PARTS_MAX)
        read = tuple(map(tuple, parts))
        with self._lock:
            if read in self._queries:
                self._queries.move_to_end(read)
                return self._queries[read]
        vector = quantised(_mean(network.run_all(parts)))
        self._keep({read: vector})
        return vector

    def short_texts(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of short texts that are compared with a query: cached with the queries, computed together."""
        network, tokenizer = self._load()
        keys = [(tuple(tokenizer.ids(text)),) for text in texts]
        with self._lock:
            found = {key: self._queries[key] for key in keys if key in self._queries}
        fresh = [key for key in dict.fromkeys(keys) if key not in found]
        for start in range(0, len(fresh), TOGETHER):
            part = fresh[start : start + TOGETHER]
            found.update(zip(part, map(quantised, network.run_all([list(ids) for (ids,) in part])), strict=True))
        self._keep({key: found[key] for key in fresh})
        return [found[key] for key in keys]

    def _keep(self, vectors: Mapping[tuple[tuple[int, ...], ...], Vector]) -> None:
        with self._lock:
            self._queries.update(vectors)
            while len(self._queries) > CACHED_QUERIES_MAX:
                self._queries.popitem(last=False)

    def passage(self, text: str) -> Vector:
        """The vector of a text; a text without tokens has the vector of the empty text."""
        return self.passages([text])[0]

    def passages(self, texts: Sequence[str]) -> list[Vector]:
        """The vector of each text, the same as of that text alone, and sooner than one by one."""
        network, tokenizer = self._load()
        made: list[Vector] = []
        for start in range(0, len(texts), TOGETHER):
            part = texts[start : start + TOGETHER]
            made += map(quantised, network.run_all([tokenizer.ids(text) for text in part]))
        return made

    def unit(self, text: str) -> Floats:
        """The vector before it is rounded to bytes."""
        network, tokenizer = self._load()
        return network.run(tokenizer.ids(text))

    def _load(self) -> tuple[Network, Tokenizer]:
        with self._lock:
            if self._network is None or self._tokenizer is None:
                # With several threads, numpy's linear algebra takes eight times as long on a busy machine. The
                # environment variable set in `__init__.py` does nothing when numpy was loaded before.
                threadpool_limits(1, user_api="blas")
                self._tokenizer = shipped_tokenizer()
                self._network = Network(_read_weights(self._path))
            return self._network, self._tokenizer


def _mean(units: list[Floats]) -> Floats:
    """The unit vector between unit vectors; of one, itself to the last bit."""
    if len(units) == 1:
        return units[0]
    total: Floats = np.stack(units).sum(axis=0)
    mean: Floats = total / max(float(np.sqrt(total @ total)), TINY)
    return mean


@cache
def shipped_tokenizer() -> Tokenizer:
    return Tokenizer(word_list.places())


def _read_weights(path: Path) -> dict[str, NDArray[Any]]:
    """The weights by name; UNAVAILABLE when the file is not the expected one."""
    if fault := fault_of(path):
        raise CpqError(Code.UNAVAILABLE, fault, hint=f"Reinstall it: {REINSTALL}")
    return read_tensors(path)
