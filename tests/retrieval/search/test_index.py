"""The index against a brute-force reading of the same passages: filters, order, changes."""

import math
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.search.english import may_be_meaningful
from cpq.retrieval.search.index import Chunk, Found, Index, Where
from cpq.retrieval.search.lexicon import terms
from cpq.retrieval.search.passage_vectors import text_hash
from cpq.retrieval.search.scores import (
    ALSO_SHARE,
    ANALOG,
    ITEMS,
    LIKELY_GOOD,
    PROBABLE_MISS,
    PROSE,
    Scale,
    as_quoted,
    confidence,
    density,
    weight,
)
from cpq.retrieval.search.sequences import Sequences, hashed
from cpq.retrieval.search.vectors import DIMENSIONS, Vector, quantised

WORDS = ["pump", "oilless", "dryer", "tank", "filter", "scroll", "100", "valve"]
TAGS = ["kind=pump", "kind=dryer", "new"]

numbers = st.integers(0, 9).map(float) | st.decimals(0, 9, places=1)
barely = st.sampled_from(["0", "1e-20", "-1e-20", "1e-6", "-1e-6"]).map(Decimal)
chunks = st.lists(
    st.builds(
        Chunk,
        id=st.integers(0, 60).map(lambda n: f"c{n:02}"),
        document_id=st.integers(0, 15).map(lambda n: f"d{n}"),
        text=st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join),
        title=st.sampled_from(["", *WORDS]),
        tags=st.frozensets(st.sampled_from(TAGS)),
        numbers=st.dictionaries(st.sampled_from(["hp", "cfm"]), numbers),
        also=st.lists(st.lists(st.sampled_from(WORDS), max_size=2).map(" ".join), max_size=2),
    ),
    max_size=40,
    unique_by=lambda chunk: chunk.id,
)
bound = st.none() | st.integers(0, 9) | st.builds(lambda one, other: one + other, st.decimals(0, 9, places=1), barely)
bounds = st.tuples(bound, bound)
filters = st.builds(
    Where,
    numbers=st.dictionaries(st.sampled_from(["hp", "cfm", "none"]), bounds, max_size=2),
    all_tags=st.lists(st.sampled_from(TAGS), max_size=2),
    any_tags=st.lists(st.lists(st.sampled_from([*TAGS, "unknown"]), max_size=2), max_size=1),
    documents=st.none() | st.frozensets(st.integers(0, 15).map(lambda n: f"d{n}")),
)
inflected = st.sampled_from([*WORDS, "scrolls", "scrolling", "filters", "valves", "not", "oil-free", "oilfree"])
spelt_chunks = st.lists(
    st.builds(
        Chunk,
        id=st.integers(0, 60).map(lambda n: f"c{n:02}"),
        document_id=st.integers(0, 5).map(lambda n: f"d{n}"),
        text=st.lists(inflected, max_size=3).map(" ".join),
        is_prose=st.booleans(),
    ),
    max_size=10,
    unique_by=lambda chunk: chunk.id,
)
misspelt = st.sampled_from(["scrrolls", "scrolll", "scroling", "fliters", "vallve", "oillfree", "unheard"])
queries = st.lists(st.sampled_from([*WORDS, "unheard"]), min_size=1, max_size=3).map(" ".join)


def vector_of(text: str) -> Vector:
    """A made-up meaning: the same for the same text, near for texts that share words."""
    total = np.full(DIMENSIONS, 0.01, np.float32)
    for term in terms(text):
        total += np.random.default_rng(int.from_bytes(text_hash(term), "big") % 2**32).standard_normal(
            DIMENSIONS, np.float32
        )
    return quantised(total / np.float32(math.sqrt(float(total @ total))))


def vectors_of(passages: Iterable[Chunk]) -> dict[bytes, Vector]:
    return {text_hash(text): vector_of(text) for chunk in passages for text in chunk.texts}


def index_of(passages: Iterable[Chunk]) -> Index:
    index = Index().changed(passages, with_vectors=True)
    index.fill(vectors_of(passages))
    return index


def search(index: Index, query: str, **options) -> Found:
    return index.search(query, vector_of(query), scale=options.pop("scale", PROSE), **options)


def passes(chunk: Chunk, where: Where) -> bool:
    for name, (low, high) in where.numbers.items():
        number = Decimal(str(chunk.numbers[name])) if name in chunk.numbers else None
        if number is None or (low is not None and number < low) or (high is not None and number > high):
            return False
    return (
        set(where.all_tags) <= set(chunk.tags)
        and all(set(group) & set(chunk.tags) for group in where.any_tags)
        and (where.documents is None or chunk.document_id in where.documents)
    )


def quoted(scores: np.ndarray, text: str, query: str) -> np.ndarray:
    """With the lift of a passage that holds the whole query word for word."""
    words, phrase = text.split(), query.split()
    times = sum(words[place : place + len(phrase)] == phrase for place in range(len(words)))
    dense = density(np.array([times]), np.array([len(words)]))
    return as_quoted(scores, (dense + 1) / 2 * (times > 0), 1.0)


def brute_force(passages: list[Chunk], query: str, where: Where, limit: int) -> list[tuple[str, float]]:
    """Every passage that passes, scored alone by the written formula, sorted."""
    held = {chunk.id: terms(chunk.read) for chunk in passages}
    more = {chunk.id: {term for text in chunk.also for term in terms(text)} for chunk in passages}
    asked = list(dict.fromkeys(query.split()))
    shares = {
        word: weight(min(sum(word in of for of in [*held.values(), *more.values()]), len(passages)), len(passages))
        for word in (next(iter(terms(typed))) for typed in asked)
    }
    vector = vector_of(query)
    found = []
    for chunk in passages:
        if not passes(chunk, where):
            continue
        worth = {word: 1 if word in held[chunk.id] else ALSO_SHARE * (word in more[chunk.id]) for word in shares}
        covered = sum(share * worth[word] for word, share in shares.items()) / sum(shares.values())
        in_title = sum(share for word, share in shares.items() if word in terms(chunk.title)) / sum(shares.values())
        covered = 0.9 * covered + 0.1 * in_title
        others = [vector_of(text) for text in chunk.texts]
        dots = [int(vector.digits.astype(np.int64) @ other.digits.astype(np.int64)) for other in others]
        cosine = max(dot * float(np.float32(other.scale)) for dot, other in zip(dots, others, strict=True))
        cosine *= vector.scale
        score = float(quoted(PROSE.of_hybrid(np.array([cosine]), np.array([covered])), chunk.read, query)[0])
        found.append((chunk.id, round(score, 4)))
    if where.is_open and (any(score > 0 for _, score in found) or not may_be_meaningful(query)):
        found = [hit for hit in found if hit[1] > 0]
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:limit]


@given(chunks, queries, filters, st.integers(1, 50))
def test_r01_c2_08_filters_are_exact_for_any_filter_and_any_k(passages, query, where, limit):
    found = search(index_of(passages), query, where=where, limit=limit)
    expected = brute_force(passages, query, where, limit)
    assert found.eligible == sum(passes(chunk, where) for chunk in passages)
    assert [hit.id for hit in found.hits] == [id_ for id_, _ in expected]
    assert all(abs(hit.score - score) < 2e-4 for hit, (_, score) in zip(found.hits, expected, strict=True))


@given(chunks, chunks, st.frozensets(st.integers(0, 15).map(lambda n: f"d{n}")), queries)
def test_r03_changes_step_by_step_and_a_rebuild_give_the_same_answer(before, after, removed, query):
    after = [replace(chunk, id="n" + chunk.id) for chunk in after]
    changed = index_of(before).changed(after, removed, with_vectors=True)
    changed.fill(vectors_of(after))
    gone = removed | {chunk.document_id for chunk in after}
    whole = [*(chunk for chunk in before if chunk.document_id not in gone), *after]
    assert search(changed, query, limit=50) == search(index_of(whole), query, limit=50)
    assert set(changed.documents()) == {chunk.document_id for chunk in whole}


@given(
    st.lists(chunks, max_size=6).flatmap(lambda steps: st.tuples(st.just(steps), queries))
    | st.tuples(st.lists(spelt_chunks, max_size=8), misspelt)
)
def test_r03_many_small_changes_end_in_few_segments_and_the_same_answer(case):
    """Whatever stood there before: no word of a passage that is gone is kept, or taken for one that is meant."""
    steps, query = case
    index = Index()
    kept: dict[str, Chunk] = {}
    for number, passages in enumerate(steps):
        passages = [replace(chunk, id=f"{number}{chunk.id}") for chunk in passages]
        index = index.changed(passages, with_vectors=True)
        index.fill(vectors_of(passages))
        fresh = {chunk.document_id for chunk in passages}
        kept = {id_: chunk for id_, chunk in kept.items() if chunk.document_id not in fresh}
        kept |= {chunk.id: chunk for chunk in passages}
    assert search(index, query, limit=99) == search(index_of(list(kept.values())), query, limit=99)
    assert len(index._parts) <= 6


def test_an_index_that_is_edited_forgets_the_words_that_are_gone():
    index = Index().changed([Chunk(f"c{n}", f"d{n}", f"kept{n}") for n in range(8)], with_vectors=False)
    for number in range(200):
        index = index.changed(
            [Chunk("x", f"d{number % 8}", f"gone{'abcdefghij'[number % 10] * number}")], with_vectors=False
        )
    assert sum(len(list(segment.postings.terms())) for segment, _ in index._parts) <= 8 * 8


@given(chunks, queries)
def test_c2_18_the_first_hits_do_not_depend_on_how_many_are_asked_for(passages, query):
    index = index_of(passages)
    whole = search(index, query, limit=100).hits
    for limit in (1, 3, 10):
        assert search(index, query, limit=limit).hits == whole[:limit]


def test_readers_keep_the_index_they_have():
    """R-07: a change makes another index; the one in use stays as it was."""
    old = index_of([Chunk("a", "a", "oilless pump")])
    before = search(old, "pump", limit=5)
    new = old.changed([Chunk("b", "b", "another pump")], ["a"], with_vectors=True)
    assert search(old, "pump", limit=5) == before
    assert [hit.id for hit in search(new, "pump", limit=5).hits] == ["b"]


def test_only_texts_that_changed_want_a_vector_again():
    index = index_of([Chunk("a#1", "a", "oilless pump"), Chunk("a#2", "a", "scroll")])
    changed = index.changed([Chunk("a#1", "a", "oilless pump"), Chunk("a#2", "a", "dryer")], with_vectors=True)
    assert list(changed.missing()) == [text_hash("dryer")]


def test_a_text_that_moves_to_another_document_keeps_its_vector():
    index = index_of([Chunk("a#1", "a", "oilless pump")])
    assert list(index.changed([Chunk("b#1", "b", "oilless pump")], ["a"], with_vectors=True).missing()) == []


def test_nobody_waits_for_the_vectors_of_texts_that_are_gone():
    twins = [Chunk("a", "a", "tank"), Chunk("b", "b", "tank"), Chunk("c", "c", "scroll"), Chunk("d", "d", "valve")]
    index = Index().changed(twins, with_vectors=True)
    changed = index.changed([Chunk("c", "c", "dryer")], ["a"], with_vectors=True)
    assert {name: changed.text(name) for name in changed.missing()} == {
        text_hash(text): text for text in ("tank", "dryer", "valve")
    }
    assert text_hash("tank") not in set(changed.changed((), ["b"], with_vectors=True).missing())


def test_a_passage_is_as_near_as_the_nearest_of_its_texts():
    passages = [Chunk("a", "a", "oilless scroll", also=["dentist"]), Chunk("b", "b", "pump"), Chunk("c", "c", "tank")]
    index = index_of(passages)
    assert [(hit.id, hit.similarity) for hit in search(index, "dentist", limit=1).hits] == [("a", 1.0)]
    moved = index.changed([replace(passages[0], document_id="z", also=["dentist", "clinic"])], ["a"], with_vectors=True)
    assert [moved.text(name) for name in moved.missing()] == ["clinic"]
    assert moved.waiting() == 1


def test_a_text_is_kept_until_it_has_its_vector():
    index = Index().changed([Chunk("a", "a", "tank", title="Big"), Chunk("b", "b", "pump")], with_vectors=True)
    wanted = text_hash("Big\ntank")
    assert index.text(wanted) == "Big\ntank"
    index.fill({wanted: vector_of("Big\ntank")})
    assert (index.text(wanted), index.text(text_hash("pump"))) == (None, "pump")


def test_a_text_without_a_word_waits_for_its_vector_like_any_other():
    index = Index().changed([Chunk("a", "a", "")], with_vectors=True)
    assert [index.text(name) for name in index.missing()] == [""]


def test_r03_of_very_many_equals_the_first_ids_come_first():
    names = [f"c{n * 37 % 500:03}" for n in range(500)]
    index = Index().changed([Chunk(name, f"d{n % 7}", "tank") for n, name in enumerate(names)], with_vectors=False)
    index = index.changed([Chunk("c0005", "late", "tank")], with_vectors=False)
    for query in ("tank", "unheard"):
        hits = index.search(query, None, scale=PROSE, limit=4, where=Where(is_lenient=True)).hits
        assert [hit.id for hit in hits] == ["c000", "c0005", "c001", "c002"]


def test_a_passage_without_a_vector_is_ranked_by_its_words():
    index = Index().changed([Chunk("a", "a", "oilless pump"), Chunk("b", "b", "tank")], with_vectors=True)
    index.fill({text_hash("tank"): vector_of("tank")})
    hits = search(index, "oilless pump", limit=5).hits
    assert (hits[0].id, hits[0].similarity, hits[0].confidence) == ("a", None, LIKELY_GOOD)


def test_r07_a_vector_that_arrives_during_a_search_is_seen_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch):
    """R-07: half of it would make a good passage a probable miss."""
    index = Index().changed([Chunk("a", "a", "oilless pump"), Chunk("b", "b", "tank")], with_vectors=True)
    index.fill({text_hash("tank"): vector_of("tank")})
    before = search(index, "oilless pump", limit=5)
    real = np.matmul

    def late(*arguments, **options):
        products = real(*arguments, **options)
        index.fill({text_hash("oilless pump"): vector_of("oilless pump")})
        return products

    monkeypatch.setattr(np, "matmul", late)
    assert search(index, "oilless pump", limit=5) == before
    monkeypatch.undo()
    assert search(index, "oilless pump", limit=5).hits[0].similarity == pytest.approx(1, abs=0.01)


def test_r04_without_vectors_words_decide_and_the_mode_says_so():
    index = Index().changed([Chunk("a", "a", "oilless pump"), Chunk("b", "b", "tank")], with_vectors=False)
    found = index.search("pump", None, scale=ITEMS, limit=5)
    assert ([hit.id for hit in found.hits], found.mode) == (["a"], "lexical")


def test_c2_25_nonsense_finds_nothing_and_with_a_filter_only_probable_misses():
    index = index_of([Chunk("a", "a", "oilless pump", tags=["new"]), Chunk("b", "b", "tank")])
    assert search(index, "xqzwv flurbl", limit=5, scale=ITEMS).hits == []
    kept = search(index, "xqzwv flurbl", limit=5, scale=ITEMS, where=Where(all_tags=["new"])).hits
    assert [(hit.id, hit.confidence) for hit in kept] == [("a", PROBABLE_MISS)]


def test_typing_errors_are_forgiven_and_named():
    index = Index().changed([Chunk("a", "a", "reciprocating pump"), Chunk("b", "b", "tank")], with_vectors=False)
    found = index.search("recipricating", None, scale=ITEMS, limit=5)
    assert [hit.id for hit in found.hits] == ["a"]
    assert found.corrections == {"recipricating": "reciprocating"}


def test_typing_errors_are_forgiven_beside_a_word_of_any_length():
    index = Index().changed([Chunk("a", "a", "reciprocating " + "a" * 40_000)], with_vectors=False)
    found = index.search("recipricating", None, scale=ITEMS, limit=5)
    assert found.corrections == {"recipricating": "reciprocating"}


def test_c2_10_what_has_no_value_never_passes_a_filter_on_it():
    index = index_of([Chunk("a", "a", "pump", tags=["lubrication=oilless"]), Chunk("b", "b", "pump")])
    found = search(index, "pump", limit=5, where=Where(all_tags=["lubrication=oilless"]))
    assert [hit.id for hit in found.hits] == ["a"]


def test_the_opposite_of_what_is_asked_for_is_the_tempting_wrong_answer():
    """C2.23: an oil-flooded machine shares nearly all words with the oilless one, and must not answer for it."""
    passages = [
        Chunk("flooded", "a", "100 HP oil-flooded rotary screw, food grade lubricant, food grade air"),
        Chunk("right", "b", "Two 50 HP oilless scroll machines for food grade air"),
        Chunk("both", "c", "100 HP, oilless or oil-flooded as ordered, food grade"),
    ]
    hits = search(index_of(passages), "100HP oilless food grade", limit=5, scale=ITEMS).hits
    assert [hit.id for hit in hits] == ["both", "right", "flooded"]
    assert hits[2].confidence == PROBABLE_MISS
    asked_both = search(index_of(passages), "100HP oilless or oil flooded food grade", limit=5, scale=ITEMS).hits
    assert asked_both[0].score > 0.7
    assert {hit.id for hit in asked_both if hit.confidence == LIKELY_GOOD} >= {"flooded", "both"}


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("compressor, not oilless", ["flooded", "oilless"]),
        ("compressor, not oil-flooded", ["oilless", "flooded"]),
        ("compressor without oil", ["oilless", "flooded"]),
        ("non-lubricated compressor", ["oilless", "flooded"]),
        ("lubricated compressor", ["flooded", "oilless"]),
    ],
)
def test_c2_13_what_is_denied_is_a_tempting_wrong_answer_too(query: str, order: list[str]):
    """C2.13: the words and the meaning of a denied thing are those of the thing; its band says that it is a miss."""
    passages = [Chunk("flooded", "a", "Oil lubricated compressor"), Chunk("oilless", "b", "Non-lubricated compressor")]
    hits = search(index_of(passages), query, limit=5, scale=ITEMS).hits
    assert [hit.id for hit in hits] == order
    assert [hit.confidence == PROBABLE_MISS for hit in hits] == [False, True]


def test_at_least_so_much_denies_nothing():
    passages = [Chunk("a", "a", "Oil-less scroll, 100 HP")]
    assert search(index_of(passages), "scroll of not less than 100 HP", limit=1, scale=ITEMS).hits[0].score > 0.7


def test_c2_12_a_thing_of_another_size_is_an_analogue_at_best():
    """C2.12: nearly all words are there, but it is not what was asked for."""
    sizes = {"hundred": "Oilless scroll compressor, 100 HP", "forty": "Oilless scroll compressor, 40 HP"}
    index = index_of([Chunk(name, name, text) for name, text in sizes.items()])
    found = search(index, "100HP oilless scroll compressor", limit=2, scale=ITEMS).hits
    assert [(hit.id, hit.confidence) for hit in found] == [("hundred", LIKELY_GOOD), ("forty", ANALOG)]
    too_much = search(index, "1000 horsepower oilless scroll compressor", limit=2, scale=ITEMS).hits
    assert {hit.confidence for hit in too_much} == {ANALOG}


def test_c2_12_a_model_that_is_asked_for_by_name_is_good_and_another_is_not():
    """C2.12: to vectors one model is like another; the words tell which it is."""
    text = "base mounted rotary screw air compressor with moisture separator and five year airend warranty"
    passages = [Chunk("right", "a", f"Quinmark QMB30 {text}"), Chunk("wrong", "b", f"Quinmark QMB25 {text}, 30 HP")]
    for query in ("QMB30", "Quinmark qmb-30"):
        hits = search(index_of(passages), query, limit=5, scale=ITEMS).hits
        assert [(hit.id, hit.confidence) for hit in hits if hit.confidence == LIKELY_GOOD] == [("right", LIKELY_GOOD)]
    unknown = search(index_of(passages), f"Quinmark QMB77 {text}", limit=5, scale=ITEMS).hits
    assert {hit.confidence for hit in unknown} == {ANALOG}
    apart = index_of([Chunk("right", "a", f"NEMA 4 panel, {text}"), Chunk("wrong", "b", f"NEMA 12 panel, {text}")])
    panels = search(apart, f"NEMA-4 panel, {text}", limit=5, scale=ITEMS).hits
    assert [(hit.id, hit.confidence) for hit in panels] == [("right", LIKELY_GOOD), ("wrong", ANALOG)]


@given(chunks, st.sampled_from(["pump 100 hp", "not oilless pump", "scroll100 valve", "dryer without tank"]))
def test_c2_18_sizes_models_and_denials_keep_one_order(passages, query):
    index = index_of(passages)
    whole = search(index, query, limit=100, scale=ITEMS).hits
    assert [(-hit.score, hit.id) for hit in whole] == sorted((-hit.score, hit.id) for hit in whole)
    assert all(0 <= hit.score <= 1 for hit in whole)
    assert search(index, query, limit=3, scale=ITEMS).hits == whole[:3]


def test_words_alone_are_found_but_do_not_change_the_meaning():
    plain, coded = Chunk("a", "a", "scroll pump"), Chunk("b", "b", "scroll pump", words="CMP-QMB30")
    index = index_of([plain, coded])
    assert search(index, "qmb30", limit=1).hits[0].id == "b"
    assert text_hash(plain.read) == text_hash(coded.read)


def test_c2_12_bands_have_fixed_bounds():
    labels = [confidence(score) for score in (1.0, 0.7, 0.6999, 0.4, 0.3999, 0.0)]
    assert labels == [LIKELY_GOOD, LIKELY_GOOD, ANALOG, ANALOG, PROBABLE_MISS, PROBABLE_MISS]


def test_c2_09_without_a_filter_everything_is_ranked():
    index = index_of([Chunk("a", "a", "oilless pump"), Chunk("b", "b", "pump"), Chunk("c", "c", "tank")])
    found = search(index, "oilless pump", limit=5)
    assert found.eligible == 3
    assert [hit.id for hit in found.hits][:2] == ["a", "b"]


def test_c2_22_a_corpus_of_one_is_found():
    for text in ("oilless pump", "anything at all about pumps"):
        assert [hit.id for hit in search(index_of([Chunk("a", "a", text)]), "pump", limit=5, scale=ITEMS).hits] == ["a"]


def test_none_is_an_answer_to_who_asks_for_none():
    index = index_of([Chunk("a", "a", "oilless pump", tags=["new"])])
    for where in (Where(), Where(all_tags=["new"])):
        found = search(index, "pump", limit=0, where=where)
        assert (found.hits, found.eligible) == ([], 1)


def test_an_empty_index_answers():
    assert search(Index(), "pump", limit=5).hits == []
    assert search(Index().changed([], ["gone"], with_vectors=True), "pump", limit=5).eligible == 0


def first(query: str, *texts: str, scale: Scale = PROSE) -> str:
    """The text that comes first when all of them mean the same to the vectors."""
    passages = [Chunk(f"c{number}", f"d{number}", text, is_prose=True) for number, text in enumerate(texts)]
    index = Index().changed(passages, with_vectors=True)
    index.fill({text_hash(chunk.read): vector_of("same") for chunk in passages})
    hits = index.search(query, vector_of(query), scale=scale, limit=1, where=Where(is_lenient=True)).hits
    return texts[int(hits[0].id[1:])]


@pytest.mark.parametrize(
    ("query", "right", "wrong"),
    [
        ("retry_limit", "Set retry_limit to 3.", "The retry has a limit. A limit of each retry, retry by retry."),
        ("retryLimit", "Set opts.retryLimit to 3.", "Set retryLimitMax and retry_limit: the retry limit."),
        ("retrylimit", "Set retryLimit to 3.", "Set the retry and the limit."),
        ("on_header", "def on_header(self)", "def on_header_field(self); def on_header_value(self); on the header"),
        ("agent.close", "Call Agent.close() at last.", "The agent is close. Agent close, close agent."),
        ("AC-100-B", "Order AC-100-B today.", "AC 100 and B, or AC-100 with B-100."),
        ("HTTPServer", "Starts an HTTPServer here.", "An HTTP server, a server of HTTP."),
        ("scrolls", "It scrolls down.", "A scroll, scrolling, scrolled scroll of scroll."),
        (
            "set up the proxy by hand",
            "Now set up the proxy by hand.",
            "Hand the proxy set up by the hand.",
        ),
        ("you need to specify", "What you need to specify first.", "Specify it. We specify what they specify."),
        ("café", "The café opens.", "The cafés open, cafes and cafeteria."),
    ],
)
def test_the_passage_with_the_text_as_written_is_first(query: str, right: str, wrong: str):
    for texts in ((right, wrong), (wrong, right)):
        assert first(query, *texts) == right
        assert first(query, *texts, scale=ITEMS) == right


def test_a_name_in_a_question_counts_more_than_its_parts():
    names = "The option maxSockets bounds the pool."
    assert first("What does maxSockets do?", names, "What do sockets do at most? The max of sockets.") == names


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=6), max_size=30), st.text("abc", min_size=1, max_size=3))
def test_a_phrase_is_counted_within_each_passage_whatever_the_segments(passages: list[list[str]], phrase: str):
    """Few rows are compared alone, many in one go, and merged segments give the same."""
    expected = [sum("".join(words[n:]).startswith(phrase) for n in range(len(words))) for words in passages]
    rows = np.arange(len(passages))
    whole = Sequences.of([hashed(words) for words in passages])
    halves = [[hashed(words) for words in passages[part::2]] for part in (0, 1)]
    merged = Sequences.merged([(Sequences.of(half), np.arange(len(half))) for half in halves])
    assert whole.counts(phrase, rows).tolist() == expected
    assert [int(whole.counts(phrase, rows[row : row + 1])[0]) for row in rows] == expected
    assert merged.counts(phrase, rows).tolist() == expected[0::2] + expected[1::2]


def test_while_vectors_are_made_all_scores_have_one_scale_and_the_answer_says_how_far_that_is():
    """Words decide until nearly all passages have a vector; a few new passages do not change that."""
    passages = [Chunk(f"c{number:02}", f"d{number:02}", f"pump number {number}") for number in range(40)]
    corpus = Corpus("test", ITEMS, StubEmbedder())  # type: ignore[arg-type] # It has what a search needs.
    corpus.change(passages)
    corpus.embed(20)
    half = corpus.search("pump", limit=40)
    assert (half.mode, half.waiting) == ("lexical", "20 of 40 texts can be found by meaning so far")
    assert {hit.similarity for hit in half.hits} == {None}
    corpus.embed(18)
    assert (corpus.search("pump", limit=1).mode, corpus.search("pump", limit=1).waiting) == ("hybrid", None)
    corpus.change([Chunk("c40", "d40", "pump number 40")], ["d00"])
    assert corpus.search("pump", limit=1).mode == "lexical"
    corpus.embed()
    assert corpus.search("pump", limit=1).mode == "hybrid"


class StubEmbedder:
    """Makes vectors of the words, without a model."""

    def query(self, text: str) -> Vector:
        return vector_of(text)

    def passages(self, texts: list[str]) -> list[Vector]:
        return list(map(vector_of, texts))
