"""`--example` of every import, and `copy` of policies and templates: what a new user starts from."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpq.cli.import_ import import_
from tests.cli.conftest import Run

KINDS = {
    "catalog": "catalog.yaml",
    "accounts": "accounts.csv",
    "prices": "prices.csv",
    "quotes": "quotes.csv",
    "guides": "guides.yaml",
    "uvl": "model.uvl",
    "salesforce": "export",
}
"""Every kind of import, in an order in which the examples follow each other."""


def test_the_examples_of_all_imports_load_into_an_empty_database(empty_home: Path, run: Run):
    assert set(import_.list_commands(None)) == set(KINDS)  # type: ignore[arg-type] # It does not look at the context.
    run("init")
    run("import", "catalog", "--example", "catalog.csv")
    assert run("import", "catalog", "catalog.csv").code == 0
    for kind, file in KINDS.items():
        said = run("import", kind, "--example", file).out
        assert said == f"Wrote an example to {file}. Change it, then: cpq import {kind} {file}\n"
        ran = run("import", kind, file)
        assert (ran.code, "warning" in ran.err) == (0, False), ran.err
    assert run("import", "quotes", "--example", "old.csv", "--history").code == 0
    assert run("import", "quotes", "--history", "old.csv").code == 0
    assert "8,328.50 USD" in run("quote", "price", "LINA-1").out


@pytest.mark.parametrize(
    ("kind", "target", "said"),
    [
        ("catalog", "catalog.txt", "catalog.txt must end in .csv or .yaml"),
        ("salesforce", "export.csv", "the example is a folder, so export.csv has no ending"),
        ("prices", "there.csv", "there.csv exists already, and is not replaced"),
        ("prices", "missing/prices.csv", "No such file or directory"),
    ],
)
def test_an_example_that_cannot_be_written_is_refused(empty_home: Path, run: Run, kind: str, target: str, said: str):
    Path("there.csv").write_text("mine")
    ran = run("import", kind, "--example", target)
    assert said in " ".join(ran.err.split())
    assert (ran.code == 0, Path("there.csv").read_text()) == (False, "mine")
    assert [path.name for path in Path().iterdir()] == ["there.csv"]


@pytest.mark.parametrize(("group", "file"), [("policy", "approvals.yaml"), ("templates", "branding.yaml")])
def test_a_copied_folder_is_whole_and_replaces_nothing(empty_home: Path, run: Run, group: str, file: str):
    ran = run(group, "copy", "mine")
    assert ran.code == 0
    assert f"_DIR={Path('mine').absolute()}" in ran.out
    Path("mine", file).write_text("changed")
    again = run(group, "copy", "mine")
    assert (again.code, "not empty; nothing was copied" in again.err) == (2, True)
    assert Path("mine", file).read_text() == "changed"


@pytest.mark.parametrize(("group", "variable"), [("policy", "CPQ_POLICIES_DIR"), ("templates", "CPQ_TEMPLATES_DIR")])
def test_what_is_copied_is_what_is_in_use(
    empty_home: Path, run: Run, monkeypatch: pytest.MonkeyPatch, group: str, variable: str
):
    assert run(group, "copy", "first").code == 0
    Path("first", "note.txt").write_text("ours")
    monkeypatch.setenv(variable, "first")
    assert run(group, "copy", "second").code == 0
    assert Path("second", "note.txt").read_text() == "ours"
    assert "is inside first" in run(group, "copy", "first/third").err
