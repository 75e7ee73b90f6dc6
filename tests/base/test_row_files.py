"""Rows out of CSV, JSON, JSON Lines and YAML: the same values, the right lines, and no way to hurt the reader."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpq.base import row_files
from cpq.base.errors import Code, CpqError
from cpq.base.row_files import DEPTH_MAX, read_rows
from cpq.base.row_problems import SourceRow

SAME = {
    "rows.csv": 'id,unit_price,tiers,name\np1,1.10,"[{""up_to"": 5}]","Two\nlines"\np2,20,,Plain\n',
    "rows.json": """[
      {"id": "p1", "unit_price": "1.10", "tiers": [{"up_to": 5}], "name": "Two\\nlines"},

      {"id": "p2", "unit_price": "20",
       "name": "Plain"}
    ]""",
    "rows.jsonl": '{"id": "p1", "unit_price": "1.10", "tiers": [{"up_to": 5}], "name": "Two\\nlines"}\n\n'
    '{"id": "p2", "unit_price": "20", "name": "Plain"}\n',
    "rows.yaml": '- {id: p1, unit_price: "1.10", tiers: [{up_to: 5}], name: "Two\\nlines"}\n'
    "# A remark.\n- id: p2\n  unit_price: '20'\n  name: Plain\n",
    "rows.yml": '\n- id: p1\n  unit_price: "1.10"\n  tiers: [{up_to: 5}]\n  name: "Two\\nlines"\n'
    "- {id: p2, unit_price: '20', name: Plain}\n",
}
LINES = {"rows.csv": [2, 4], "rows.json": [2, 4], "rows.jsonl": [1, 3], "rows.yaml": [1, 3], "rows.yml": [2, 6]}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.integers(-(10**20), 10**20) | st.decimals(-(10**9), 10**9, places=5)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
json_rows = st.lists(st.dictionaries(texts, json_values, max_size=4), max_size=4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def read(folder: Path, name: str, content: str | bytes, section: str = "products") -> list[SourceRow]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_rows(path, section))


def values(folder: Path, name: str, content: str | bytes) -> list[dict[str, Any]]:
    return [row.values for row in read(folder, name, content)]


def refusal(folder: Path, name: str, content: str | bytes) -> str:
    with pytest.raises(CpqError) as caught:
        read(folder, name, content)
    assert caught.value.code is Code.VALIDATION_ERROR
    assert caught.value.details["field"] == "FILE"
    return caught.value.message.removeprefix(name).removeprefix(", ")


@pytest.mark.parametrize("name", SAME)
def test_every_format_gives_the_same_rows_each_with_its_line(folder: Path, name: str):
    rows = read(folder, name, SAME[name], "prices")
    assert [row.values for row in rows] == [
        {"id": "p1", "unit_price": "1.10", "tiers": [{"up_to": 5}], "name": "Two\nlines"},
        {"id": "p2", "unit_price": "20", "name": "Plain"},
    ]
    assert {row.section for row in rows} == {"prices"}
    assert [row.line for row in rows] == LINES[name]


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("change", [lambda t: "\ufeff" + t, lambda t: t.replace("\n", "\r\n")], ids=["bom", "crlf"])
def test_a_byte_order_mark_and_windows_line_ends_change_nothing(folder: Path, name: str, change: Any):
    rows = read(folder, name, change(SAME[name]))
    assert [row.values["id"] for row in rows] == ["p1", "p2"]
    assert [row.line for row in rows] == LINES[name]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.yaml", "categories:\n- id: c\n\nproducts:\n- id: p1\n- id: p2\n"),
        ("rows.json", '{"categories": [\n{"id": "c"}\n],\n"products": [\n{"id": "p1"},\n{"id": "p2"}]}'),
    ],
)
def test_a_file_may_name_its_sections(folder: Path, name: str, content: str):
    rows = read(folder, name, content, "prices")
    assert [(row.section, row.line, row.values["id"]) for row in rows] == [
        ("categories", 2, "c"),
        ("products", 5, "p1"),
        ("products", 6, "p2"),
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.csv", "id,name\n"),
        ("rows.csv", "id,name\n\n\n"),
        ("rows.json", "[]"),
        ("rows.json", " {} \n"),
        ("rows.json", '{"products": [ ]}'),
        ("rows.yaml", "# Nothing yet.\n"),
        ("rows.yaml", "[]"),
        ("rows.yaml", "products: []"),
    ],
)
def test_a_file_without_rows_has_none(folder: Path, name: str, content: str):
    assert read(folder, name, content) == []


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff", "\ufeff\r\n"])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rows.csv", "a row with the column names, then one row per record"),
        ("rows.json", "a list of JSON objects"),
        ("rows.jsonl", "a JSON object on each line"),
        ("rows.yaml", "a list of rows"),
        ("rows.yml", "a list of rows"),
    ],
)
def test_an_empty_file_is_refused_with_what_is_expected(folder: Path, name: str, expected: str, content: str):
    with pytest.raises(CpqError) as error:
        read(folder, name, content)
    assert error.value.message == f"{name} is empty; expected products: {expected}"


def test_a_csv_row_after_quoted_line_ends_knows_where_it_starts(folder: Path):
    rows = read(folder, "rows.csv", 'id,"na\nme"\na,"1\n2\n3"\n\nb,x\n"c",""\n')
    assert [(row.values["id"], row.line) for row in rows] == [("a", 3), ("b", 7), ("c", 8)]


def test_csv_columns_with_a_dot_are_collected_and_blank_cells_are_absent(folder: Path):
    content = "id, spec.hp ,attribute.model,name\np1,30,QMB30,[Boxed]\np2, ,,{x}\n"
    assert values(folder, "rows.csv", content) == [
        {"id": "p1", "specs": {"hp": "30"}, "attributes": {"model": "QMB30"}, "name": "[Boxed]"},
        {"id": "p2", "name": "{x}"},
    ]


def test_a_csv_cell_of_json_is_read_exactly_and_one_that_is_not_stays_text(folder: Path):
    content = 'id,tiers\n1,"[1.10, {""x"": 2}]"\n2,[1\n3,"{""x"": 1, ""x"": 2}"\n4,"[NaN]"\n5,' + "[" * 100_000 + "\n"
    read_back = [row["tiers"] for row in values(folder, "rows.csv", content)]
    assert read_back[:4] == [[Decimal("1.10"), {"x": 2}], "[1", '{"x": 1, "x": 2}', "[NaN]"]
    assert read_back[4] == "[" * 100_000


def test_a_csv_row_with_more_cells_than_names_says_so(folder: Path):
    assert values(folder, "rows.csv", "id\na,b,c\n") == [{"id": "a", "more cells than the header has names": 2}]


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(rows=json_rows, indent=st.sampled_from([None, 1, "\t"]), ascii_only=st.booleans())
def test_any_json_reads_as_it_was_written(tmp_path: Path, rows: list[dict], indent: Any, ascii_only: bool):
    text = json.dumps(rows, indent=indent, ensure_ascii=ascii_only, default=str)
    expected = json.loads(text)
    assert values(tmp_path, "rows.json", text) == expected
    assert values(tmp_path, "named.json", f'{{"products":\n{text}\n}}') == expected
    lines = "\n".join(json.dumps(row, ensure_ascii=ascii_only, default=str) for row in rows)
    assert not rows or values(tmp_path, "rows.jsonl", lines) == expected


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(st.dictionaries(texts, texts, min_size=1), min_size=1, max_size=6), gap=st.sampled_from(["", "\n"])
)
def test_every_json_row_knows_its_line(tmp_path: Path, rows: list[dict], gap: str):
    text = "[" + gap + f",{gap}".join(json.dumps(row, indent=1) for row in rows) + gap + "]"
    expected, line = [], 1 + len(gap)
    for row in rows:
        expected.append(line)
        line += json.dumps(row, indent=1).count("\n") + len(gap)
    assert [row.line for row in read(tmp_path, "rows.json", text)] == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (r'"\/"', "/"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\u0041\t\n\\\""', 'A\t\n\\"'),
        ('"😀 ü"', "😀 ü"),
        ('"' + "x" * 100_000 + '"', "x" * 100_000),
        ("1e5", Decimal("1E+5")),
        ("1E400", Decimal("1E+400")),
        ("-0", 0),
        ("-0.0", Decimal("-0.0")),
        ("1.10", Decimal("1.10")),
        ("12345678901234567890", 12345678901234567890),
        ("0.1234567890123456789", Decimal("0.1234567890123456789")),
        ('"no"', "no"),
        ('"017"', "017"),
        ('"2026-01-31"', "2026-01-31"),
        ("true", True),
        ("null", None),
        ('{"a": {"": []}}', {"a": {"": []}}),
    ],
)
@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl"])
def test_json_values_are_exact(folder: Path, name: str, written: str, expected: object):
    row = f'{{"a":\t{written}}}'
    [found] = values(folder, name, f"[{row}]" if name == "rows.json" else row)
    assert found["a"] == expected
    assert type(found["a"]) is type(expected)
    assert str(found["a"]) == str(expected)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1.10", Decimal("1.10")),
        ("30", 30),
        ("-5", -5),
        ("0", 0),
        ("1.5e+3", Decimal("1.5E+3")),
        ("0.000001", Decimal("0.000001")),
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("017", "017"),
        ("08", "08"),
        ("0x1F", "0x1F"),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("12:30:45", "12:30:45"),
        (".nan", ".nan"),
        ("-.inf", "-.inf"),
        ("1e5", "1e5"),
        ("2026-01-31", "2026-01-31"),
        ("9" * 5000, "9" * 5000),
        ("'30'", "30"),
        ('"true"', "true"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("'null'", "null"),
        ("!!str 5", "5"),
        ("!!int '5'", "5"),
        ("!!python/object/apply:os.system [ls]", ["ls"]),
        ("!secret x", "x"),
        ('"\\0"', "\0"),
        ("=", "="),
        ("<<", "<<"),
    ],
)
def test_yaml_guesses_only_what_is_unmistakable(folder: Path, written: str, expected: object):
    [found] = values(folder, "rows.yaml", f"- a: {written}\n")
    assert found["a"] == expected
    assert type(found["a"]) is type(expected)
    assert str(found["a"]) == str(expected)


def test_a_yaml_bomb_of_aliases_is_refused(folder: Path):
    levels = "".join(f"  x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]\n" for n in range(1, 8))
    assert refusal(folder, "rows.yaml", f"- x0: &x0 [lol]\n{levels}") == "line 2: anchors and aliases are not allowed"


@pytest.mark.parametrize(
    ("content", "line"),
    [("- &a [*a]\n", 1), ("- {a: &x 1}\n- {b: *x}\n", 2), ("- &r {a: 1}\n- *r\n", 2), ("a: &r [{b: 1}]\nc: *r\n", 2)],
)
def test_no_alias_is_followed(folder: Path, content: str, line: int):
    assert refusal(folder, "rows.yaml", content).startswith(f"line {line}: ")


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 5_000, 100_000])
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("rows.yaml", "- {}\n- a: ", ""),
        ("rows.json", '[{},\n{"a": ', "}]"),
        ("rows.jsonl", '{}\n{"a": ', "}"),
    ],
)
def test_bottomless_nesting_is_refused_and_does_not_end_the_process(
    folder: Path, name: str, before: str, after: str, depth: int
):
    assert refusal(folder, name, before + nested(depth) + after) == "line 2: nested more than 32 levels deep"


@pytest.mark.parametrize(
    "content", ["- " * 100_000, "{a: " * 100_000, "- {a: " * 50_000, "? " * 100_000, "- a: {b: [" + "{c: [" * 50_000]
)
def test_bottomless_yaml_that_never_closes_is_refused(folder: Path, content: str):
    assert refusal(folder, "rows.yaml", content).startswith("line 1: ")


@pytest.mark.parametrize("name", ["rows.yaml", "rows.json", "rows.jsonl"])
def test_nesting_that_is_allowed_is_read(folder: Path, name: str):
    row = '{"a": ' + nested(DEPTH_MAX - 1) + "}"
    [found] = values(folder, name, row if name == "rows.jsonl" else f"[{row}]")
    assert json.dumps(found["a"]) == nested(DEPTH_MAX - 1)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("rows.yaml", "- id: a\n  name: x\n  id: b\n", "line 3: 'id' is given twice"),
        ("rows.yaml", "- {id: a,\n   b: {c: 1, c: 2}}\n", "line 2: 'c' is given twice"),
        ("rows.yaml", "products: []\nproducts: []\n", "line 2: 'products' is given twice"),
        ("rows.yaml", "- ? [a, b]\n  : 1\n", "line 1: a name must be a single word or text"),
        ("rows.yaml", "- id: a\n- id: 'b\n", "line 3: found unexpected end of stream"),
        ("rows.yaml", "- id: a\n- id: @b\n", "line 2: found character that cannot start any token"),
        ("rows.yaml", "- id: a\n---\n- id: b\n", "line 2: a second document begins"),
        ("rows.yaml", "- id: a\n- b\n", "line 2: a row must be a mapping of names to values"),
        ("rows.yaml", "products:\n  a: 1\n", "line 2: expected a list of rows"),
        ("rows.yaml", "just text\n", "line 1: neither a list of rows nor named lists of rows"),
        ("rows.yaml", "- id: a\n- id: b\0\n", "line 2: control characters are not allowed"),
        ("rows.yaml", "- id: é\n- id: \x07\n", "line 2: control characters are not allowed"),
        ("rows.json", '[{"id": 1,\n"id": 2}]', "line 1: 'id' is given twice"),
        ("rows.json", '{"a": [],\n"a": []}', "line 2: 'a' is given twice"),
        ("rows.json", '[{"a": 1},\n{"a": NaN}]', "line 2: NaN is not a number"),
        ("rows.json", '[{"a": -Infinity}]', "line 1: -Infinity is not a number"),
        ("rows.json", '[{"a": 1},\n{"a": ' + "9" * 5000 + "}]", "line 2: a number has too many digits"),
        ("rows.json", '[{"a": 1e9999999999999999999}]', "line 1: 1e9999999999999999999 is out of range"),
        ("rows.json", '[{"a": 1},\n{"a": "x}]', "line 2: Unterminated string starting at"),
        ("rows.json", '[{"a": 1},\n{"a": "x\ny"}]', "line 2: Invalid control character at"),
        ("rows.json", '[{"a": 1}\n{"a": 2}]', "line 2: expected , or ]"),
        ("rows.json", '[{"a": 1},\n]', "line 2: Expecting value"),
        ("rows.json", '[{"a": 1}', "line 1: expected , or ]"),
        ("rows.json", '[{"a": 1}]\n[]', "line 2: there is text after the end"),
        ("rows.json", '[{"a": 1},\n5]', "line 2: a row must be a mapping of names to values"),
        ("rows.json", '{"a":\n5}', "line 2: expected a list of rows"),
        ("rows.json", '{"a": [],\n}', "line 2: Expecting value"),
        ("rows.json", "{1: []}", "line 1: expected a name"),
        ("rows.json", '{"a" []}', "line 1: expected :"),
        ("rows.json", "5", "line 1: expected [ or {"),
        ("rows.json", '[{"a": 1}]\0', "line 1: there is text after the end"),
        ("rows.jsonl", '{"a": 1}\n{"a": 1, "a": 2}', "line 2: 'a' is given twice"),
        ("rows.jsonl", '{"a": 1}\n{"a": Infinity}', "line 2: Infinity is not a number"),
        ("rows.jsonl", '{"a": 1}\n{"a": 1} x', "line 2: Extra data"),
        ("rows.jsonl", '{"a": 1}\n{"a": ' + "9" * 5000 + "}", "line 2: a number has too many digits"),
        ("rows.jsonl", '{"a": 1}\n\n{"a"', "line 3: Expecting ':' delimiter"),
        ("rows.jsonl", "[1]\n", "line 1: a row must be a mapping of names to values"),
        ("rows.csv", 'a,b\n1,2\n3,"x\n4,5\n', "line 4: unexpected end of data"),
        ("rows.csv", 'a,b\n1,2\n"x"y,3\n', "line 3: ',' expected after '\"'"),
        ("rows.csv", "a,b,a\n1,2,3\n", "line 1: two columns have the same name"),
        ("rows.csv", "a\n" + "x" * 1_000_001 + "\n", "line 2: field larger than field limit (1000000)"),
        ("rows.csv", "specs,spec.hp\nabc,1\n", "line 2: spec.hp is also given by the column specs"),
        (
            "rows.csv",
            'id,specs,spec.hp\na,,1\nb,"{""hp"": 2}",1\n',
            "line 3: spec.hp is also given by the column specs",
        ),
    ],
)
def test_a_broken_file_is_refused_with_its_line(folder: Path, name: str, content: str, reason: str):
    assert refusal(folder, name, content) == reason


@pytest.mark.parametrize("name", ["rows.csv", "rows.json", "rows.jsonl", "rows.yaml"])
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le"])
def test_a_wrong_encoding_is_refused(folder: Path, name: str, encoding: str):
    text = {"rows.csv": "id\n{}a\né\n", "rows.yaml": "- id: a\n{}\n- id: é\n"}.get(
        name, '{{"id": "a"}}\n{}\n{{"id": "é"}}\n'
    )
    reason = refusal(folder, name, text.format("").encode(encoding))
    assert reason.startswith("line ")


@pytest.mark.parametrize("name", ["rows.csv", "rows.json", "rows.jsonl", "rows.yaml"])
def test_a_byte_that_is_not_utf_8_is_named_with_its_line_however_far_down(folder: Path, name: str):
    start, row = {"rows.csv": ("id\n", "a"), "rows.yaml": ("", "- id: a")}.get(name, ("", '{"id": "a"}'))
    content = start + f"{row}\n" * 50_000 + "\n"
    broken = content.encode() + row.replace("a", "é").encode("latin-1")
    assert refusal(folder, name, broken) == f"line {content.count(chr(10)) + 1}: not UTF-8 text"


def test_text_with_nul_is_left_to_the_field_that_refuses_it(folder: Path):
    assert values(folder, "rows.csv", "a,b\n1,x\0y\n") == [{"a": "1", "b": "x\0y"}]
    assert values(folder, "rows.jsonl", '{"a": "\\u0000"}') == [{"a": "\0"}]


def test_only_files_that_exist_and_have_a_known_ending_are_read(folder: Path):
    with pytest.raises(CpqError, match=r"^there is no file none\.csv$"):
        list(read_rows(folder / "none.csv", "products"))
    (folder / "folder.csv").mkdir()
    with pytest.raises(CpqError, match=r"^there is no file folder\.csv$"):
        list(read_rows(folder / "folder.csv", "products"))
    with pytest.raises(CpqError, match=r"^there is no file "):
        list(read_rows(folder / "nul\0.csv", "products"))
    assert refusal(folder, "rows.xls", "x") == " is not one of .csv, .xlsx, .jsonl, .json, .yaml, .yml"


def test_endings_may_be_in_capitals(folder: Path):
    assert values(folder, "ROWS.CSV", "id\na\n") == [{"id": "a"}]


@pytest.mark.parametrize("name", ["rows.json", "rows.yaml"])
def test_a_file_that_is_read_whole_has_a_limit(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_files, "WHOLE_FILE_BYTES_MAX", 10)
    assert "use CSV or JSON Lines" in refusal(folder, name, "[" + " " * 10 + "]")


@pytest.mark.parametrize("name", SAME)
def test_progress_only_rises_and_ends_within_the_whole(folder: Path, name: str):
    path = folder / name
    path.write_text(SAME[name], encoding="utf-8", newline="")
    seen: list[tuple[int, int]] = []
    list(read_rows(path, "products", lambda done, total: seen.append((done, total))))
    assert seen == sorted(seen)
    assert all(0 <= done <= total for done, total in seen)
    assert len({total for _, total in seen}) == 1
