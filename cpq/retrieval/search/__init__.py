"""The search core: passages in, words and vectors, hard filters, one fused ranking, confidence bands.

How to use it:
1. A corpus is a set of `Chunk`s (index.py): id, document_id, title, text, tags, numbers, payload. Title and text are
   searched and then forgotten; `payload` comes back with every hit, so put provenance and what you show in there.
2. From files, chunk files or pages: `corpus = new_corpus("docs", PROSE)` once per process (corpus.py), then
   `corpus.change(chunks, removed=[…])`. Documents are replaced whole; the swap never blocks a reader.
3. From tables: describe a `Source` (storing.py) and take `storing.current(tx, source)` at each search. Whoever changes
   the tables calls `changes.touch(tx, "name", document_ids)` in the same transaction.
4. `found = corpus.search(query, limit=5, where=Where(all_tags=["kind=oilless"], numbers={"hp": (100, 100)}))`.
   Filters come first and are exact; hits are ordered by score, then id, with confidence, similarity, coverage, payload.
   `Where(documents=[…])` keeps to some documents; `found.mode` says whether vectors counted: hybrid or lexical.
5. Vectors: words are found at once, vectors follow. `storing.load_vectors(tx, corpus)` takes over stored ones,
   `storing.embed(app, call, corpus, progress=…)` reckons and keeps the rest in batches and goes on after a kill;
   `corpus.embed()` does it in memory alone. Without the extra `semantic` all this does nothing, and words decide.
6. passages.py: `split` cuts long text without losing a character, `excerpt` shows why a text was found.
"""

import os

# One thread for linear algebra: more only wait for each other here (embedding.py). numpy reads it when it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
