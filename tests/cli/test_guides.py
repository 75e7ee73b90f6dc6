"""`cpq import guides` and `cpq export guides`: out and in again without a change, and faults with their place."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run, query
from tests.support.engine import SAMPLE


def test_an_exported_file_is_imported_without_a_change(home: Path, tmp_path: Path, run: Run):
    file = tmp_path / "guides.yaml"
    exported = run("export", "guides", "--output", file)
    assert (exported.code, exported.err.strip()) == (0, "Exported 1 guides.")
    again = json.loads(run("import", "guides", file, "--json").out)
    assert (again["created"], again["updated"], again["unchanged"]) == ({"guides": 0}, {"guides": 0}, {"guides": 1})
    file.write_text(file.read_text(encoding="utf-8").replace("id: compressed_air", "id: air"), encoding="utf-8")
    assert json.loads(run("import", "guides", file, "--json").out)["created"] == {"guides": 1}
    assert query(home, "SELECT id FROM guide ORDER BY id") == [("air",), ("compressed_air",)]


def test_every_problem_is_shown_with_line_and_column_and_nothing_changes(home: Path, tmp_path: Path, run: Run):
    file = tmp_path / "guides.yaml"
    text = (SAMPLE / "guides.yaml").read_text(encoding="utf-8")
    file.write_text(text.replace("oil-flooded", "wet").replace("at_least: psi", "at_least: pssi"), encoding="utf-8")
    before = query(home, "SELECT content_hash FROM guide")
    ran = run("import", "guides", file)
    assert ran.code == 1
    assert [line.split()[:2] for line in ran.err.splitlines() if line.strip()[:1].isdigit()] == [
        ["24", "33"],
        ["34", "39"],
    ]
    assert "did you mean psi?" in ran.err
    assert query(home, "SELECT content_hash FROM guide") == before


def test_a_file_that_is_no_text_or_too_large_is_refused(home: Path, tmp_path: Path, run: Run):
    file = tmp_path / "guides.yaml"
    file.write_bytes(b"guides: \xff")
    assert "is not UTF-8 text" in run("import", "guides", file).err
    file.write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    assert "such a file has at most 4 MB" in run("import", "guides", file).err
    file.write_text("guides:" + " [" * 1000)
    assert "nested more than 12 levels deep" in run("import", "guides", file).err
