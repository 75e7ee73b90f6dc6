"""A corpus made of tables, on both databases: built once, kept in step, its vectors kept for good."""

import threading
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

import pytest
import sqlalchemy as sa

from cpq.app import App, corpus_changes
from cpq.app.access import ENGINE
from cpq.app.transaction import Tx
from cpq.retrieval.search import table_source, vector_repository
from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.search.index import Chunk, Where
from cpq.retrieval.search.scores import ITEMS
from cpq.retrieval.search.table_source import Source
from cpq.storage.schema.tables import product, search_vector
from tests.support import engine
from tests.support.engine import open_app

T = TypeVar("T")
NAMES = ["prod_qmb30", "prod_pro_v2"]


def gather(tx: Tx, ids: Collection[str] | None) -> Iterator[Chunk]:
    wanted = tx.own_among(product.c.id, NAMES if ids is None else ids) & (
        product.c.active == sa.literal(True, product.c.active.type)
    )
    for row in tx.connection.execute(sa.select(product.c.id, product.c.name, product.c.description).where(wanted)):
        yield Chunk(row.id, row.id, row.description, row.name)


SOURCE = Source("test", ITEMS, gather)


def corpus_of(app: App) -> Corpus:
    return look(app, lambda tx: table_source.current(tx, SOURCE))


def look(app: App, work: Callable[[Tx], T]) -> T:
    return app.read_unaudited(app.new_call(ENGINE), work)


def rename(app: App, product_id: str, **values: object) -> None:
    def work(tx: Tx) -> dict:
        tx.connection.execute(sa.update(product).where(product.c.id == product_id).values(**values))
        corpus_changes.touch(tx, "test", [product_id])
        return {}

    engine.write(app, work)


def stored_vectors(app: App) -> int:
    with app.database.reading() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(search_vector)) or 0


def test_a_corpus_is_built_when_it_is_first_asked_for_and_then_kept(app: App):
    corpus = corpus_of(app)
    assert corpus.documents() == set(NAMES)
    assert corpus_of(app) is corpus


def test_a_change_is_found_by_the_next_search(app: App):
    corpus = corpus_of(app)
    rename(app, "prod_qmb30", name="Marzipan machine")
    assert corpus_of(app) is corpus
    assert [hit.id for hit in corpus.search("marzipan", limit=3).hits] == ["prod_qmb30"]
    rename(app, "prod_qmb30", active=False)
    assert corpus_of(app).documents() == {"prod_pro_v2"}


def test_a_change_that_is_rolled_back_is_never_found(app: App):
    def work(tx: Tx) -> dict:
        corpus_changes.touch(tx, "test", ["prod_qmb30"])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.write(app, work)
    assert look(app, lambda tx: corpus_changes.generation(tx, "test")) == 0


def test_more_changes_than_are_listed_mean_everything(app: App):
    many = [f"d{n}" for n in range(corpus_changes.LISTED_MAX + 1)]
    app.upkeep(app.new_call(ENGINE), lambda tx: corpus_changes.touch(tx, "test", many))
    assert look(app, lambda tx: corpus_changes.since(tx, "test", 0)) is None
    assert corpus_of(app).documents() == set(NAMES)


def test_vectors_are_reckoned_once_and_outlive_the_process(app: App):
    corpus = corpus_of(app)
    seen: list[tuple[int, int]] = []
    made = vector_repository.embed(app, app.new_call(ENGINE), corpus, progress=lambda *figures: seen.append(figures))
    assert (made, seen) == (2, [(0, 2), (2, 2)])
    before = corpus.search("belt drive", limit=2)
    again = open_app(app.settings)
    fresh = corpus_of(again)
    assert fresh.missing() == []
    assert fresh.search("belt drive", limit=2) == before
    assert before.mode == "hybrid"
    again.close()


def test_damaged_and_lost_vectors_are_computed_again(app: App):
    corpus = corpus_of(app)
    vector_repository.embed(app, app.new_call(ENGINE), corpus)
    before = corpus.search("belt drive", limit=2)

    def damage(tx: Tx) -> dict:
        names = sorted(tx.connection.scalars(sa.select(search_vector.c.text_hash)))
        damaged = sa.update(search_vector).where(search_vector.c.text_hash == names[0]).values(vector=b"\0\0")
        tx.connection.execute(damaged)
        tx.connection.execute(sa.delete(search_vector).where(search_vector.c.text_hash == names[1]))
        return {}

    engine.write(app, damage)
    for missing in (2, 0):
        again = open_app(app.settings)
        found = corpus_of(again)
        assert len(found.missing()) == missing
        assert [hit.id for hit in found.search("belt drive", limit=2).hits][:1] == [before.hits[0].id]
        assert vector_repository.embed(again, again.new_call(ENGINE), found) == missing
        assert found.search("belt drive", limit=2) == before
        assert look(again, lambda tx: table_source.progress(tx, SOURCE)) == (2, 2)
        again.close()


def test_a_killed_run_goes_on_where_it_stopped(app: App, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vector_repository, "BATCH", 1)
    corpus = corpus_of(app)

    def stop(done: int, _total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vector_repository.embed(app, app.new_call(ENGINE), corpus, progress=stop)
    assert stored_vectors(app) == 1
    again = open_app(app.settings)
    assert vector_repository.embed(again, again.new_call(ENGINE), corpus_of(again)) == 1
    assert stored_vectors(again) == 2
    again.close()


def test_the_progress_counts_texts_with_a_stored_vector(app: App, monkeypatch: pytest.MonkeyPatch):
    def progress() -> tuple[int, int]:
        return look(app, lambda tx: table_source.progress(tx, SOURCE))

    assert progress() == (0, 2)
    assert not app.kept
    vector_repository.embed(app, app.new_call(ENGINE), corpus_of(app), limit=1)
    assert progress() == (1, 2)
    vector_repository.embed(app, app.new_call(ENGINE), corpus_of(app))
    assert progress() == (2, 2)
    rename(app, "prod_qmb30", name="Marzipan machine")
    assert progress() == (1, 2)
    monkeypatch.setattr(vector_repository, "MODEL", "another")
    assert progress() == (0, 2)


FOREIGN = (
    *("Druckluftbehälter verzinkt", "bomba de vacío de paletas", "Pumpe", "sprężarka", "компрессор", "压缩机"),
    *("4711", "CMP-9999", "ISO 8573-1", "kW"),
)
"""Other languages, numbers, names and units that no product has."""


@pytest.mark.parametrize("with_vectors", [False, True])
def test_c2_22_a_small_corpus_answers_whatever_means_something_or_has_a_condition(app: App, with_vectors: bool):
    corpus = corpus_of(app)
    if with_vectors:
        vector_repository.embed(app, app.new_call(ENGINE), corpus)
    for asked in ("does anybody here sell a compressor for my garage?", "belt", "30 HP"):
        found = corpus.search(asked, limit=5)
        assert (found.mode, found.eligible) == ("hybrid" if with_vectors else "lexical", 2)
        assert found.hits[0].id == "prod_qmb30"
    for asked in ("equipment that inflates tyres", "something for the dentist"):
        hits = corpus.search(asked, limit=5).hits
        assert {hit.id for hit in hits} == set(NAMES)
        assert {hit.confidence for hit in hits} == {"probable_miss"}
    for asked in FOREIGN:
        assert {hit.confidence for hit in corpus.search(asked, limit=5).hits} == {"probable_miss"}
    for asked in ("zzyzx qqwx", "zxcv bnmq", "the and of", "?!"):
        assert corpus.search(asked, limit=5).hits == []
    for asked in ("equipment that inflates tyres", "zzyzx"):
        within = Where(documents=NAMES)
        assert {hit.id for hit in corpus.search(asked, limit=5, where=within).hits} == set(NAMES)


def test_only_what_changed_is_embedded_again(app: App):
    vector_repository.embed(app, app.new_call(ENGINE), corpus_of(app))
    rename(app, "prod_qmb30", name="Marzipan machine")
    assert vector_repository.embed(app, app.new_call(ENGINE), corpus_of(app)) == 1


def test_what_another_process_or_variant_has_embedded_is_taken_over(app: App, monkeypatch: pytest.MonkeyPatch):
    other = open_app(app.settings)
    variant = SOURCE._replace(variant="other")
    corpora = [
        (app, corpus_of(app)),
        (other, corpus_of(other)),
        (app, look(app, lambda tx: table_source.current(tx, variant))),
    ]
    monkeypatch.setattr(vector_repository, "BATCH", 1)
    assert [vector_repository.embed(one, one.new_call(ENGINE), corpus) for one, corpus in corpora] == [2, 0, 0]
    answers = [corpus.search("belt drive", limit=2) for _, corpus in corpora]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0].mode == "hybrid"
    other.close()


def test_r07_a_search_does_not_wait_for_a_long_refresh(app: App):
    corpus = corpus_of(app)
    rename(app, "prod_qmb30", name="Marzipan machine")
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with corpus.lock:
            held.set()
            release.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    before = corpus_of(app).search("marzipan", limit=3).hits
    assert {(hit.coverage, hit.confidence) for hit in before} == {(0, "probable_miss")}
    release.set()
    thread.join()
    assert [hit.id for hit in corpus_of(app).search("marzipan", limit=3).hits] == ["prod_qmb30"]


def test_r07_where_a_loop_follows_no_search_waits_for_a_change_of_everything(app: App):
    many = [f"d{n}" for n in range(corpus_changes.LISTED_MAX + 1)]
    table_source.embed_round(app, [SOURCE])
    corpus = corpus_of(app)
    rename(app, "prod_qmb30", name="Marzipan machine")
    assert corpus_of(app).search("marzipan", limit=3).hits[0].coverage > 0
    rename(app, "prod_qmb30", name="Nougat machine")
    app.upkeep(app.new_call(ENGINE), lambda tx: corpus_changes.touch(tx, "test", many))
    assert not any(hit.coverage for hit in corpus_of(app).search("nougat", limit=3).hits)
    table_source.embed_round(app, [SOURCE])
    assert corpus_of(app) is corpus
    assert corpus.search("nougat", limit=3).hits[0].coverage > 0


def test_c2_19_r07_many_threads_search_while_documents_change(sqlite_app: App):
    """C2.19, R-07: every answer is that of some whole state, old or new, and nobody fails."""
    corpus = Corpus("threads", ITEMS)
    corpus.change([Chunk(f"{n}", f"{n}", f"pump {n % 7} of batch 0") for n in range(300)])
    failures: list[object] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            found = corpus.search("pump of batch", limit=300)
            if len(found.hits) != 300:
                failures.append(len(found.hits))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for batch in range(1, 30):
        corpus.change([Chunk(f"{n}", f"{n}", f"pump {n % 7} of batch {batch}") for n in range(batch, 300, 11)])
    stop.set()
    for reader in readers:
        reader.join()
    assert failures == []


def test_vectors_of_texts_that_are_gone_can_be_forgotten(app: App):
    corpus = corpus_of(app)
    vector_repository.embed(app, app.new_call(ENGINE), corpus)
    rename(app, "prod_qmb30", active=False)
    assert app.upkeep(app.new_call(ENGINE), lambda tx: vector_repository.forget(tx, corpus_of(app))) == 1
    assert stored_vectors(app) == 1
    assert corpus_of(app).missing() == []
