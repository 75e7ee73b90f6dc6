"""`cpq import quotes`: files of quotes become drafts, all or nothing, and a second time changes nothing."""

from __future__ import annotations

import csv
import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from cpq.base.settings import Settings, read_settings
from tests.cli.conftest import Run, query
from tests.support.engine import Tools, open_app, row_counts

HEADER = [
    "id",
    "account_id",
    "currency",
    "term_months",
    "start_date",
    "product_id",
    "quantity",
    "discount_pct",
    "notes",
]
FIRST = ["A-1", "acct_acme_001", "usd", "12", "2026-12-01"]
CSV_ROWS = [
    [*FIRST, "prod_pro_v2", "150", "10", "Seats"],
    ["A-1", "", "", "", "", "prod_qmb15", "1", "", ""],
    ["A-2", "acct_groeb_002", "", "", "", "prod_pro_v2", "3", "", ""],
]
WHOLE = [
    {
        "id": "A-1",
        "account_id": "acct_acme_001",
        "currency": "usd",
        "term_months": 12,
        "start_date": "2026-12-01",
        "line_items": [
            {"product_id": "prod_pro_v2", "quantity": 150, "discount_pct": 10, "notes": "Seats"},
            {"product_id": "prod_qmb15", "quantity": 1},
        ],
    },
    {"id": "A-2", "account_id": "acct_groeb_002", "line_items": [{"product_id": "prod_pro_v2", "quantity": 3}]},
]


def csv_of(rows: list[list[str]], header: list[str] = HEADER) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([header, *rows])
    return text.getvalue()


TEXTS = {
    "quotes.csv": csv_of(CSV_ROWS),
    "quotes.json": json.dumps(WHOLE),
    "named.json": json.dumps({"quotes": WHOLE}),
    "quotes.yaml": yaml.safe_dump({"quotes": WHOLE}),
    "quotes.jsonl": "\n".join(map(json.dumps, WHOLE)),
    "lines.jsonl": "\n".join(
        json.dumps({name: cell for name, cell in zip(HEADER, row, strict=True) if cell}) for row in CSV_ROWS
    ),
}


@pytest.fixture
def imported(home: Path, tmp_path: Path, run: Run) -> Any:
    """Writes a file and imports it; the report, or the problems by line and field."""

    def work(text: str, name: str = "quotes.csv") -> Any:
        (tmp_path / name).write_text(text, encoding="utf-8")
        ran = run("import", "quotes", tmp_path / name, "--json")
        report = json.loads(ran.out)
        assert ran.code == (1 if "error" in report else 0)
        if "error" not in report:
            return report["created"].get("quotes", 0), report["updated"].get("quotes", 0), report["unchanged"]["quotes"]
        return [(p["line"], p["field"], p["message"]) for p in report["error"]["details"]["problems"]]

    return work


def stored(home: Path) -> list[Any]:
    columns = "quote_id, number, product_id, quantity, discount_pct, notes, regular, net"
    return query(home, f"SELECT {columns} FROM quote_line ORDER BY quote_id, number")


def rows_of(home: Path) -> dict[str, int]:
    app = open_app(read_settings({}, home=home))
    try:
        return row_counts(app, but=("audit_entry", "audit_head", "idempotency"))
    finally:
        app.close()


@pytest.mark.parametrize("name", TEXTS)
def test_every_format_makes_the_same_drafts_and_a_second_time_changes_nothing(home: Path, imported: Any, name: str):
    assert imported(TEXTS[name], name) == (2, 0, 0)
    lines = stored(home)
    assert lines == [
        ("A-1", 1, "prod_pro_v2", 150, 10_000_000, "Seats", 1_500_000_000, 1_350_000_000),
        ("A-1", 2, "prod_qmb15", 1, 0, None, 9_480_000_000, 9_480_000_000),
        ("A-2", 1, "prod_pro_v2", 3, 0, None, 30_000_000, 30_000_000),
    ]
    edits = query(home, "SELECT id, status, version, edit FROM quote ORDER BY id")
    assert edits == [("A-1", "draft", 1, 1), ("A-2", "draft", 1, 1)]
    assert imported(TEXTS[name], name) == (0, 0, 2)
    assert stored(home) == lines
    assert query(home, "SELECT id, status, version, edit FROM quote ORDER BY id") == edits


def test_files_go_in_on_either_database_and_their_prices_are_proven(store: Settings, tmp_path: Path, run: Run):
    cpq = partial(run, "--home", store.home, "--database-url", store.database_url)
    (tmp_path / "quotes.csv").write_text(TEXTS["quotes.csv"])
    report = json.loads(cpq("import", "quotes", tmp_path / "quotes.csv", "--json").out)
    again = json.loads(cpq("import", "quotes", tmp_path / "quotes.csv", "--json").out)
    assert (report["created"], again["unchanged"]) == ({"quotes": 2}, {"quotes": 2})
    assert cpq("quote", "replay", "--all").code == 0


def test_only_the_draft_that_differs_is_changed_and_wants_to_be_priced_again(home: Path, imported: Any):
    imported(TEXTS["quotes.csv"])
    app = open_app(read_settings({}, home=home))
    Tools(app)("quote_price", quote_id="A-1", requested_discount_pct=5)
    app.close()
    assert imported(TEXTS["quotes.csv"]) == (0, 0, 2)
    changed = [row[:] for row in CSV_ROWS]
    changed[0][6] = "200"
    assert imported(csv_of(changed)) == (0, 1, 1)
    assert query(home, "SELECT quantity FROM quote_line WHERE quote_id = 'A-1'") == [(200,), (1,)]
    assert query(home, "SELECT requested_discount, priced_at FROM quote_version WHERE quote_id = 'A-1'") == [
        (5_000_000, None)
    ]
    total = query(home, "SELECT q.total, v.total FROM quote q JOIN quote_version v ON v.quote_id = q.id LIMIT 1")
    assert total[0][0] == total[0][1] == 10_716_000_000


def test_g11_a_last_valid_day_of_a_file_holds_until_the_file_has_another(home: Path, imported: Any):
    def days() -> list[Any]:
        return query(home, "SELECT valid_until, requested_valid_until FROM quote_version WHERE quote_id = 'A-2'")

    def text(day: str, quantity: str) -> str:
        row = ["A-2", "acct_groeb_002", "prod_pro_v2", quantity, day]
        return csv_of([row], ["id", "account_id", "product_id", "quantity", "valid_until"])

    assert imported(text("2026-12-24", "3")) == (1, 0, 0)
    assert days() == [("2026-12-24", "2026-12-24")]
    assert imported(text("2026-12-24", "3")) == (0, 0, 1)
    assert imported(text("", "3")) == (0, 0, 1)
    assert imported(text("", "4")) == (0, 1, 0)
    assert days() == [("2026-12-24", "2026-12-24")]
    [(line, field, reason)] = imported(text("2020-12-24", "4"))
    assert (line, field) == (2, "valid_until")
    assert "is over already" in reason
    assert imported(text("2026-12-31", "4")) == (0, 1, 0)
    assert days() == [("2026-12-31", "2026-12-31")]


def test_a_quote_that_was_sent_is_left_alone_or_refused(home: Path, imported: Any):
    text = csv_of([CSV_ROWS[2]])
    imported(text)
    app = open_app(read_settings({}, home=home))
    Tools(app)("quote_price", quote_id="A-2")
    Tools(app)("quote_send", quote_id="A-2", expected_version=1)
    app.close()
    assert imported(text) == (0, 0, 1)
    before = stored(home)
    reason = "A-2 is sent and differs from the file; revise it, or remove it from the file"
    assert imported(text.replace(",3,", ",4,")) == [(2, "id", reason)]
    assert stored(home) == before


def test_a_quote_keeps_its_account_and_currency(home: Path, imported: Any):
    imported(csv_of([CSV_ROWS[2]]))
    moved = [["A-2", "acct_acme_001", "", "", "", "prod_pro_v2", "3", "", ""]]
    assert imported(csv_of(moved)) == [(2, "account_id", "is acct_groeb_002 and cannot change: A-2 exists already")]


def test_every_bad_row_is_listed_with_its_line_and_reason_and_nothing_changes(home: Path, imported: Any):
    bad = [
        ["A-3", "acct_acme_001", "", "0", "2026-02-30", "prod_pro_v2", "0", "", ""],
        ["A-3", "", "", "", "", "prod_pro_v2", "1.2345", "", ""],
        ["A-3", "", "", "", "", "prod_pro_v2", "1", "101", ""],
        ["A-3", "", "", "", "", "", "1", "0.0000001", ""],
        ["A-4", "", "XXX", "", "", "prod_pro_v2", "1", "", ""],
    ]
    before = rows_of(home)
    assert [(line, field) for line, field, _ in imported(csv_of([*CSV_ROWS, *bad]))] == [
        (5, "term_months"),
        (5, "start_date"),
        (5, "quantity"),
        (6, "quantity"),
        (7, "discount_pct"),
        (8, "product_id"),
        (8, "discount_pct"),
        (9, "account_id"),
        (9, "currency"),
    ]
    assert rows_of(home) == before


def test_what_only_the_catalogue_knows_is_told_for_every_quote_and_line(home: Path, imported: Any):
    rows = [
        ["B-1", "acct_acme_001", "", "", "", "prod_nowhere", "1", "", ""],
        ["B-1", "", "", "", "", "prod_pro_v2", "1", "", ""],
        ["B-1", "", "", "", "", "prod_elsewhere", "1", "", ""],
        ["B-2", "acct_nobody", "", "", "", "prod_pro_v2", "1", "", ""],
        ["B-3", "acct_acme_001", "CHF", "", "", "prod_pro_v2", "1", "", ""],
        ["B-4", "acct_acme_001", "", "", "", "prod_pro_v2", "1.5", "", ""],
    ]
    before = rows_of(home)
    assert imported(csv_of([*CSV_ROWS, *rows])) == [
        (5, "product_id", "There is no product 'prod_nowhere'."),
        (7, "product_id", "There is no product 'prod_elsewhere'."),
        (8, "account_id", "There is no account 'acct_nobody'."),
        (9, "product_id", "prod_pro_v2 has no price in CHF that is valid today for this account."),
        (10, "quantity", "The quantity must be whole for Pro Plan (prod_pro_v2), not 1.5."),
    ]
    assert rows_of(home) == before


def test_more_bad_lines_than_a_tool_lists_are_all_listed(home: Path, imported: Any):
    rows = [["C-1", "acct_acme_001", "", "", "", f"prod_none_{n}", "1", "", ""] for n in range(120)]
    assert [line for line, _, _ in imported(csv_of(rows))] == list(range(2, 122))


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            [CSV_ROWS[0], ["A-1", "acct_groeb_002", "", "", "", "prod_pro_v2", "1", "", ""]],
            (3, "account_id", "is 'acct_groeb_002' here and 'acct_acme_001' on line 2 of the same quote"),
        ),
        (
            [CSV_ROWS[0], CSV_ROWS[2], [*FIRST, "prod_pro_v2", "1", "", ""]],
            (4, "id", "'A-1' is in this file twice; the lines of a quote must be together"),
        ),
        ([["", *CSV_ROWS[0][1:]]], (2, "id", "Field required")),
        (
            [["../x", *CSV_ROWS[0][1:]]],
            (2, "id", "is made of letters, digits and _ . : - and starts with a letter or a digit"),
        ),
    ],
    ids=["two accounts", "apart", "no id", "odd id"],
)
def test_rows_that_do_not_belong_together_are_refused(
    home: Path, imported: Any, rows: list[list[str]], problem: tuple[int, str, str]
):
    assert imported(csv_of(rows)) == [problem]
    assert query(home, "SELECT count(*) FROM quote") == [(0,)]


def test_a_wrong_line_does_not_hide_what_else_is_wrong_in_its_quote(home: Path, imported: Any):
    lines = [{"product_id": "prod_pro_v2", "quantity": 0}, {"product_id": "p", "quantity": 1}]
    quote = {"id": "D-1", "account_id": "acct_nobody", "currency": "dollars", "line_items": lines}
    again = {"id": "D-1", "account_id": "acct_acme_001", "line_items": [{"product_id": "prod_pro_v2"}]}
    problems = {(field, message) for _, field, message in imported(json.dumps([quote, again]), "quotes.json")}
    assert problems == {
        ("currency", "is not an ISO 4217 currency code"),
        ("line_items.0.quantity", "Input should be greater than 0"),
        ("account_id", "There is no account 'acct_nobody'."),
        ("line_items.1.product_id", "There is no product 'p'."),
        ("line_items.0.quantity", "Field required"),
        ("id", "'D-1' is in this file twice; the lines of a quote must be together"),
    }


def test_problems_inside_a_whole_quote_name_the_line_item(home: Path, imported: Any):
    text = '[\n {"id": "D-1", "account_id": "acct_acme_001", "line_items": [{"product_id": "p", "quantity": 0}]}]'
    assert imported(text, "quotes.json") == [(2, "line_items.0.quantity", "Input should be greater than 0")]
    text = text.replace(": 0}", ": 1}")
    assert imported(text, "quotes.json") == [(2, "line_items.0.product_id", "There is no product 'p'.")]
    text = '[{"id": "D-1", "account_id": "acct_acme_001", "line_items": []}]'
    assert imported(text, "quotes.json") == [(1, "row", "a quote has at least one line in line_items")]


def test_an_unknown_column_is_told_the_nearest_known_one(home: Path, imported: Any):
    header = ["id", "account_id", "product_id", "quanttiy"]
    found = imported(csv_of([["A-1", "acct_acme_001", "prod_pro_v2", "1"]], header))
    assert (2, "quanttiy", "is not a known field; did you mean quantity?") in found


def test_a_section_of_something_else_is_refused(home: Path, imported: Any):
    assert imported('{"quots": [{"id": "A-1"}, {"id": "A-2"}]}', "quotes.json") == [(1, "quots", "is not quotes")]


def test_a_quantity_that_is_not_the_largest_of_the_ramp_is_told_by_its_row(imported: Any):
    header = ["id", "account_id", "term_months", "product_id", "quantity", "ramp"]
    rows = [
        ["E-1", "acct_acme_001", "12", "prod_pro_v2", "7", '[{"months": 12}]'],
        ["E-1", "", "", "prod_pro_v2", "1000000", '[{"months": 12, "quantity": 1}]'],
        ["E-1", "", "", "prod_qmb15", "1", '[{"months": 12}]'],
    ]
    assert imported(csv_of(rows, header)) == [
        (3, "quantity", "The quantity of a line with a ramp is that of its largest stretch, 1, not 1,000,000."),
        (4, "ramp", "prod_qmb15 has a one-time price, and a ramp is for prices that recur."),
    ]


def test_options_ramps_and_both_kinds_of_notes_come_from_a_csv(home: Path, run: Run, imported: Any):
    header = ["id", "account_id", "term_months", "quote_notes", "product_id", "quantity", "notes", "option_set", "ramp"]
    ramp = '[{"months": 6, "quantity": 3}, {"months": 6, "uplift_pct": 5}]'
    rows = [
        ["E-1", "acct_acme_001", "12", "To all", "prod_pro_v2", "7", "", "slow", ramp],
        ["E-1", "", "", "", "prod_pro_v2", "9", "To the line", "fast", ""],
    ]
    assert imported(csv_of(rows, header)) == (1, 0, 0)
    shown = json.loads(run("quote", "show", "E-1", "--json").out)
    assert shown["quote"]["notes"] == "To all"
    assert [(line["notes"], line["option_set"]) for line in shown["line_items"]] == [
        (None, "slow"),
        ("To the line", "fast"),
    ]
    assert [one["total"] for one in shown["option_sets"]] == [51.75, 90]
    assert imported(csv_of(rows, header)) == (0, 0, 1)


def test_options_of_a_product_are_columns_and_are_checked(home: Path, imported: Any):
    header = ["id", "account_id", "product_id", "quantity", "attribute.colour_of_the_moon"]
    (configurable,) = query(home, "SELECT id FROM product WHERE options <> '[]' AND active ORDER BY id LIMIT 1")[0]
    found = imported(csv_of([["F-1", "acct_acme_001", configurable, "1", "green"]], header))
    assert (found[0][0], found[0][1]) == (2, "attribute.colour_of_the_moon")


def test_what_products_still_require_is_a_warning(home: Path, tmp_path: Path, run: Run):
    rows = [["G-1", "acct_acme_001", "", "", "", "prod_gw_eth", "1", "", ""]]
    (tmp_path / "quotes.csv").write_text(csv_of(rows))
    ran = run("import", "quotes", tmp_path / "quotes.csv")
    assert ran.code == 0
    assert ran.out.splitlines()[-2].split() == ["quotes", "1", "0", "0"]
    assert ran.err == "warning: G-1: prod_gw_eth requires prod_app_monitor in the quote.\n"


def test_what_was_imported_is_checked_by_the_policies_with_the_command_that_the_summary_names(
    home: Path, tmp_path: Path, run: Run
):
    (tmp_path / "quotes.csv").write_text(TEXTS["quotes.csv"])
    ran = run("import", "quotes", tmp_path / "quotes.csv")
    assert ran.out.splitlines()[-1].startswith("Next: `cpq quote price ID` ")
    priced = json.loads(run("quote", "price", "A-1", "--json").out)
    assert [one["policy_id"] for one in priced["policy_violations"]] == ["discount_cap_sales_manager"]
    assert "Next:" not in run("import", "quotes", tmp_path / "quotes.csv").out


def test_ten_thousand_lines_are_a_quote_and_one_more_is_not(home: Path, run: Run, imported: Any):
    rows = [["H-1", "acct_acme_001", "", "", "", "prod_pro_v2", str(1 + n % 50), "", ""] for n in range(10_000)]
    assert imported(csv_of([*rows, rows[0]])) == [(2, "line_items", "a quote has at most 10,000 lines, not 10,001")]
    assert imported(csv_of(rows)) == (1, 0, 0)
    assert query(home, "SELECT count(*), min(number), max(number) FROM quote_line") == [(10_000, 1, 10_000)]
    assert query(home, "SELECT total FROM quote") == [(sum(10 * (1 + n % 50) for n in range(10_000)) * 1_000_000,)]
    assert imported(csv_of(rows)) == (0, 0, 1)
    assert run("quote", "replay", "H-1").code == 0


def test_the_limit_through_the_tool_stays(home: Path):
    app = open_app(read_settings({}, home=home))
    line = {"product_id": "prod_pro_v2", "quantity": 1}
    error = Tools(app).error("quote_create", account_id="acct_acme_001", line_items=[line] * 501)
    app.close()
    assert (error["code"], error["details"]["field"], error["details"]["maximum"]) == (
        "VALIDATION_ERROR",
        "/line_items",
        500,
    )
    assert "cpq import quotes" in error["details"]["hint"]
