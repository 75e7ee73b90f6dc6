"""The search core: passages, words and vectors, hard filters, one ranking, confidence bands.

How to use it:
1. A corpus is a set of `Chunk`s (index.py): id, document_id, title, text, tags, numbers, payload. The index keeps
   neither title nor text; `payload` comes back with every hit, so put provenance and what you show into it.
2. From files: subclass `FolderCorpus` (folder_corpus.py) and call `self.corpus.change(chunks, removed=[…])` when files
   changed. Documents are replaced whole; a change never blocks a search.
3. From tables: describe a `Source` and call `table_source.current(tx, source)` for each search. Code that changes the
   tables calls `corpus_changes.touch(tx, "name", document_ids)` in the same transaction.
4. `found = corpus.search(query, limit=5, where=Where(all_tags=["kind=oilless"], numbers={"hp": (100, 100)}))`.
   Filters come first and are exact; hits are ordered by score, then id, with confidence, similarity, coverage, payload.
   `Where(documents=[…])` searches only some documents; `found.mode` is `hybrid` when vectors counted, else `lexical`.
5. Words are found at once, vectors follow. `vector_repository.load(tx, corpus)` loads stored vectors, and
   `vector_repository.embed(app, call, corpus, progress=…)` computes and stores the others in batches, and resumes after
   a kill; `corpus.embed()` does it in memory alone. Without the extra `semantic` these do nothing, and words decide.
6. passages.py: `split` cuts long text without losing a character, `excerpt` shows why a text was found.
"""

import os

# One thread for linear algebra: several wait for each other (embedding.py). numpy reads the variable when it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
