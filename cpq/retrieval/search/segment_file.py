"""Stores a segment of an index in a file, and maps it again: its passages then take hardly any memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cpq.retrieval.search import mapped_file
from cpq.retrieval.search.index import Segment
from cpq.retrieval.search.packed_texts import Arrays, Texts
from cpq.retrieval.search.passage_vectors import PassageVectors
from cpq.retrieval.search.postings import Postings
from cpq.retrieval.search.sequences import Sequences
from cpq.retrieval.search.spellings import Spellings

Content = bytes | memoryview
"""The payload of a document in the file; the passages of a document share it."""


def write(path: Path, segment: Segment, content_of: Callable[[Any], Content], about: Any) -> None:
    """Store a segment in which every passage has one text, and none waits for its vector."""
    vectors = segment.vectors
    assert not vectors.missing
    assert not len(vectors.owners)
    firsts = segment.starts.tolist()
    arrays = {
        **Texts.arrays("ids", segment.ids),
        **Texts.arrays("documents", (segment.documents[row] for row in firsts)),
        **Texts.arrays("contents", (content_of(segment.payloads[row]) for row in firsts)),
        **{f"number {name}": column for name, column in segment.numbers.items()},
        "starts": segment.starts,
        "ranks": segment.ranks,
        "hashes": vectors.hashes.view(np.uint8).reshape(-1, vectors.hashes.itemsize),
        "lengths": segment.lengths,
        "digits": vectors.digits,
        "scales": vectors.scales,
        **segment.postings.arrays(),
        **segment.sequences.arrays(),
        **segment.spellings.arrays(),
    }
    mapped_file.write(path, arrays, about)


def mapped(arrays: Arrays, payload_of: Callable[[str, memoryview], Any]) -> Segment:
    """The segment of a file; `payload_of` makes the payload of a document from its id and its content."""
    segment = Segment((), with_vectors=False)
    names, contents = Texts.of(arrays, "documents"), Texts.of(arrays, "contents")
    payloads = [payload_of(name, contents.content(place)) for place, name in enumerate(names)]
    count = len(arrays["lengths"])
    of_document = np.repeat(np.arange(len(names)), np.diff(arrays["starts"], append=count)).tolist()
    documents = list(names)
    segment.ids = Texts.of(arrays, "ids")
    segment.documents = [documents[place] for place in of_document]
    segment.payloads = [payloads[place] for place in of_document]
    segment.numbers = {name[7:]: column for name, column in arrays.items() if name.startswith("number ")}
    segment.starts, segment.ranks = arrays["starts"], arrays["ranks"]
    segment.lengths = arrays["lengths"]
    segment.vectors = PassageVectors.mapped(arrays["hashes"].reshape(-1), arrays["digits"], arrays["scales"])
    segment.postings = Postings.mapped(arrays)
    segment.sequences = Sequences.mapped(arrays)
    segment.spellings = Spellings.mapped(arrays)
    return segment
