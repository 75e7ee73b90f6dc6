"""The model on numpy gives what the reference implementations give; the frozen file was made with those."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from cpq.base.errors import Code, CpqError
from cpq.retrieval.search import embedding
from cpq.retrieval.search.vectors import DIMENSIONS, from_bytes
from cpq.retrieval.search.wordpiece import TOKENS_MAX

REFERENCE = json.loads(Path(__file__).with_name("reference_vectors.json").read_text(encoding="utf-8"))
"""Texts with the token ids of the library `tokenizers` and the first numbers of ONNX Runtime's vectors."""


@pytest.fixture(scope="module")
def embedder() -> embedding.Embedder:
    found = embedding.installed_embedder()
    assert found is not None, "the extra `semantic` is part of the development packages"
    return found


@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: case["text"][:20])
def test_texts_become_the_tokens_of_the_reference(case: dict):
    assert embedding.shipped_tokenizer().ids(case["text"]) == case["ids"]


@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: case["text"][:20])
def test_r04_vectors_are_those_of_the_reference(case: dict, embedder: embedding.Embedder):
    unit = embedder.unit(case["text"])
    assert unit.shape == (DIMENSIONS,)
    assert np.abs(unit[: len(case["vector"])] - case["vector"]).max() < 2e-5
    assert abs(float(unit @ unit) - 1) < 1e-5


def test_a_vector_survives_its_way_through_the_database(embedder: embedding.Embedder):
    vector = embedder.passage("belt driven compressor")
    again = from_bytes(vector.to_bytes())
    assert np.array_equal(again.digits, vector.digits)
    assert again.scale == np.float32(vector.scale)


def test_rounding_to_bytes_hardly_moves_a_similarity(embedder: embedding.Embedder):
    texts = ["oilless scroll compressor", "refrigerated air dryer", "annual software licence"]
    for one in texts:
        for other in texts:
            exact = float(embedder.unit(one) @ embedder.unit(other))
            a, b = embedder.passage(one), embedder.passage(other)
            rounded = float(a.digits.astype(np.float32) @ b.digits.astype(np.float32)) * a.scale * b.scale
            assert abs(exact - rounded) < 0.005


def test_a_repeated_query_is_not_computed_again(embedder: embedding.Embedder):
    first = embedder.query("a question that is asked twice")
    assert embedder.query("a question that is asked twice") is first
    assert embedder.query("A question, that is asked twice") is not first


def test_of_a_long_query_nothing_is_remembered_that_is_not_read(embedder: embedding.Embedder):
    first = embedder.query("a long question " * 2_000)
    assert embedder.query("a long question " * 20_000) is first
    assert max(sum(map(len, parts)) for parts in embedder._queries) <= embedding.QUERY_PARTS_MAX * TOKENS_MAX


def test_a_question_at_the_end_of_a_long_query_is_read(embedder: embedding.Embedder):
    """The mail before it fills more than the model reads at once."""
    mail = "Thank you for the pleasant meeting last week, and best wishes to all your colleagues. " * 16
    asked = embedder.passage("The warranty on the airend lasts eight years.")

    def similarity(query: str) -> float:
        vector = embedder.query(query)
        return float(vector.digits.astype(np.float32) @ asked.digits) * vector.scale * asked.scale

    assert similarity(mail + "How long is the warranty on the airend? " * 6) > similarity(mail) + 0.1
    assert np.array_equal(embedder.query("How long?").digits, embedder.passage("How long?").digits)


def test_only_the_last_few_queries_are_remembered(embedder: embedding.Embedder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(embedding, "CACHED_QUERIES_MAX", 2)
    embedder = embedding.Embedder(embedder._path)  # One that nobody has asked anything yet.
    one, two, _, three = [embedder.query(text) for text in ("one", "two", "one", "three")]
    assert (embedder.query("one") is one, embedder.query("three") is three) == (True, True)
    assert embedder.query("two") is not two


def test_c2_20_a_model_file_that_is_not_the_known_one_is_refused(tmp_path: Path):
    (tmp_path / "model.onnx").write_bytes(b"something else")
    with pytest.raises(CpqError) as refused:
        embedding.Embedder(tmp_path / "model.onnx").query("x")
    assert refused.value.code is Code.UNAVAILABLE
    assert "Reinstall" in str(refused.value.details["hint"])


def test_texts_that_are_embedded_together_have_the_vectors_that_each_has_alone(embedder: embedding.Embedder):
    """Also from several threads at once, which must not share the room for a layer."""
    texts = [f"belt driven compressor number {number} {'with dryer ' * number}" for number in range(11)]
    alone = [embedder.passage(text).to_bytes() for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(embedder.passages, [texts, texts[::-1], texts, texts[::-1]]))
    for made, expected in zip(together, [alone, alone[::-1]] * 2, strict=True):
        assert [vector.to_bytes() for vector in made] == expected


def test_short_texts_have_the_vectors_that_each_has_alone(embedder: embedding.Embedder):
    texts = ["Oil change intervals", "", "Lubricant is replaced yearly.", "Oil change intervals"]
    assert [vector.to_bytes() for vector in embedder.short_texts(texts)] == [
        embedder.passage(text).to_bytes() for text in texts
    ]
