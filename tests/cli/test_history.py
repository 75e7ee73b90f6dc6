"""`cpq import quotes --history` and `cpq search`, as an operator types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cpq.retrieval.search import embedding, installed_model
from tests.cli.conftest import Run, query

CSV = """id,customer,project,quoted_on,currency,outcome,quote_notes,category,description,quantity,unit_price,model
H-1,Toffee Ltd,Toffee line,2020-02-03,EUR,won,Kept,Puller,"Toffee puler, 3 HP",2,1200.50,TP3
H-1,,,,,,,Freight,"Freight, prepaid",1,,
H-2,Nougat Inc,Nougat line,2021-04-05,USD,lost,,Mixer,Nougat mixer,1,99,
"""
LINES = "SELECT quote_id, number, category, description, quantity, unit_price, model FROM past_line ORDER BY 1, 2"


def as_json(text: str) -> str:
    """The same quotes, whole."""
    first = {"category": "Puller", "description": "Toffee puler, 3 HP", "quantity": 2, "unit_price": "1200.50"}
    return json.dumps(
        [
            {
                "id": "H-1",
                "customer": "Toffee Ltd",
                "project": "Toffee line",
                "quoted_on": "2020-02-03",
                "currency": "EUR",
                "outcome": "won",
                "notes": "Kept",
                "line_items": [
                    {**first, "model": "TP3"},
                    {"category": "Freight", "description": "Freight, prepaid", "quantity": 1},
                ],
            },
            {
                "id": "H-2",
                "customer": "Nougat Inc",
                "project": "Nougat line",
                "quoted_on": "2021-04-05",
                "outcome": "lost",
                "line_items": [{"category": "Mixer", "description": "Nougat mixer", "unit_price": 99}],
            },
        ]
    )


@pytest.fixture
def ready(empty_home: Path, run: Run) -> Path:
    assert run("init").code == 0
    return empty_home


@pytest.mark.parametrize(("name", "text"), [("past.csv", CSV), ("past.json", as_json(CSV))])
def test_history_is_kept_word_for_word_and_a_second_time_changes_nothing(ready: Path, run: Run, name: str, text: str):
    Path(name).write_text(text, encoding="utf-8")
    assert "past quotes         2         0           0" in run("import", "quotes", "--history", name).out
    assert query(ready, LINES) == [
        ("H-1", 1, "Puller", "Toffee puler, 3 HP", 2, 1_200_500_000, "TP3"),
        ("H-1", 2, "Freight", "Freight, prepaid", 1, None, None),
        ("H-2", 1, "Mixer", "Nougat mixer", 1, 99_000_000, None),
    ]
    assert "past quotes         0         0           2" in run("import", "quotes", "--history", name).out
    assert query(ready, "SELECT count(*) FROM quote") == [(0,)]
    Path(name).write_text(text.replace("Nougat mixer", "Better mixer"), encoding="utf-8")
    report = json.loads(run("import", "quotes", "--history", name, "--json").out)
    assert (report["updated"], report["unchanged"]) == ({"past_quotes": 1}, {"past_quotes": 1})


@pytest.mark.parametrize(
    ("before", "after", "line", "field"),
    [
        ("2020-02-03", "yesterday", 2, "quoted_on"),
        ("Nougat mixer,1,99,", ",1,99,", 4, "description"),
        ("1200.50", "-3", 2, "unit_price"),
        (",won,", ",sold,", 2, "outcome"),
        ("H-2,Nougat Inc", "H-1,Nougat Inc", 4, "customer"),
        ("quantity,", "quantitty,", 2, "quantitty"),
    ],
)
def test_one_bad_row_and_nothing_is_imported(ready: Path, run: Run, before: str, after: str, line: int, field: str):
    assert before in CSV
    Path("past.csv").write_text(CSV.replace(before, after), encoding="utf-8")
    ran = run("import", "quotes", "--history", "past.csv", "--json")
    assert ran.code == 1
    problems = json.loads(ran.out)["error"]["details"]["problems"]
    assert (line, field) in [(problem["line"], problem["field"]) for problem in problems]
    assert query(ready, "SELECT count(*) FROM past_quote") == [(0,)]


def test_a_number_that_is_a_quote_of_our_own_is_refused(home: Path, run: Run):
    Path("drafts.csv").write_text("id,account_id,product_id,quantity\nH-2,acct_acme_001,prod_pro_v2,1\n")
    assert run("import", "quotes", "drafts.csv").code == 0
    Path("past.csv").write_text(CSV, encoding="utf-8")
    ran = run("import", "quotes", "--history", "past.csv")
    assert ran.code == 1
    assert "is a quote of this system" in ran.err


def test_a_number_of_the_history_is_refused_for_a_quote_of_our_own(home: Path, run: Run):
    """Else a search would find one quote and show the other."""
    known = query(home, "SELECT min(id) FROM past_quote")[0][0]
    Path("drafts.csv").write_text(f"id,account_id,product_id,quantity\n{known},acct_acme_001,prod_pro_v2,1\n")
    ran = run("import", "quotes", "drafts.csv", "--json")
    assert ran.code == 1
    (problem,) = json.loads(ran.out)["error"]["details"]["problems"]
    assert (problem["line"], problem["field"]) == (2, "id")
    assert "imported history" in problem["message"]
    assert query(home, "SELECT count(*) FROM quote") == [(0,)]


def test_the_sample_has_a_history_to_learn_from(home: Path):
    assert query(home, "SELECT count(*) FROM past_quote")[0][0] >= 300
    assert query(home, "SELECT count(*) FROM past_line")[0][0] >= 1_500


def test_search_for_people(home: Path, run: Run):
    found = run("search", "find", "100HP", "oilless", "food", "grade").out
    assert "likely_good" in found
    assert "Groeb Honey Packing" in found
    assert "QMB30 Rotary Screw" in run("search", "find", "--in", "equipment", "QMB30").out
    assert "Tri-County Hospital" in run("search", "find", "--in", "quotes", "hospital", "--top", "2").out
    nothing = run("search", "find", "duplex", "--category", "vacum system")
    assert "Did you mean vacuum system?" in nothing.err


def test_the_vectors_of_chunk_files_are_made_and_forgotten_too(ready: Path, run: Run, monkeypatch):
    monkeypatch.setenv("CPQ_CHUNKS_DIR", str(ready / "chunks"))
    assert [row["corpus"] for row in json.loads(run("search", "index", "--json").out)["corpora"]][-1] == "web"
    (ready / "chunks").mkdir()
    for text, forgotten in (("toffee", 0), ("nougat", 1)):
        (ready / "chunks" / "a.json").write_text(json.dumps([{"id": "a", "text": text}]))
        last = json.loads(run("search", "index", "--json").out)["corpora"][-1]
        assert last == {"corpus": "context", "passages": 1, "made": 1, "forgotten": forgotten}


def test_vectors_are_made_once_and_forgotten_with_their_texts(ready: Path, run: Run):
    Path("past.csv").write_text(CSV, encoding="utf-8")
    run("import", "quotes", "--history", "past.csv")
    first = json.loads(run("search", "index", "--json").out)
    made = {row["corpus"]: (row["passages"], row["made"], row["forgotten"]) for row in first["corpora"]}
    assert made == {"equipment": (0, 0, 0), "past_lines": (3, 3, 0), "past_quotes": (2, 2, 0), "web": (0, 0, 0)}
    Path("past.csv").write_text(CSV.replace("Nougat mixer", "Better mixer"), encoding="utf-8")
    run("import", "quotes", "--history", "past.csv")
    again = json.loads(run("search", "index", "--json").out)
    made = {row["corpus"]: (row["passages"], row["made"], row["forgotten"]) for row in again["corpora"]}
    assert made == {"equipment": (0, 0, 0), "past_lines": (3, 1, 1), "past_quotes": (2, 1, 1), "web": (0, 0, 0)}


def test_vectors_of_texts_without_names_are_made_and_kept_too(ready: Path, run: Run):
    """For those who may not see names: the mixer is described by another customer's."""
    Path("past.csv").write_text(CSV.replace("Nougat mixer", "Mixer as at Toffee Ltd"), encoding="utf-8")
    run("import", "quotes", "--history", "past.csv")
    for made in (4, 0):
        rows = json.loads(run("search", "index", "--json").out)["corpora"]
        lines = next(row for row in rows if row["corpus"] == "past_lines")
        assert (lines["passages"], lines["made"], lines["forgotten"]) == (3, made, 0)


def test_without_the_model_search_goes_by_words_and_says_so(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(installed_model, "PACKAGE", "a_package_that_is_not_there")
    embedding.installed_embedder.cache_clear()
    try:
        ran = run("search", "index")
        assert ran.code == 0
        assert "Words only" in ran.err
        assert json.loads(run("search", "find", "oilless", "--json").out)["mode"] == "lexical"
        assert "by words" in run("doctor").out
    finally:
        embedding.installed_embedder.cache_clear()


def test_queries_show_what_was_searched_for_and_what_is_often_not_found(home: Path, run: Run):
    for words in (("oilless", "compressor"), ("zxqv", "wkjh"), ("ZXQV", "wkjh")):
        run("search", "find", *words)
    shown = run("search", "queries").out
    assert [line.split()[2:5] for line in shown.splitlines()[2:]] == [
        ["human:operator", "search_find", "ZXQV"],
        ["human:operator", "search_find", "zxqv"],
        ["human:operator", "search_find", "oilless"],
    ]
    failed = json.loads(run("search", "queries", "--failed", "--json").out)
    assert [(one["query"], one["hits"]) for one in failed["items"]] == [("ZXQV wkjh", 0), ("zxqv wkjh", 0)]
    often = run("search", "queries", "--frequent").out.splitlines()[2:]
    assert [line.split()[:4] for line in often] == [["2", "search_find", "zxqv", "wkjh"]]
