"""`cpq policy` on folders that are right, wrong and hostile: what a person sees, and what the exit code says."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cpq.app.policy_files import load
from cpq.base.settings import shipped
from tests.cli.conftest import Run


@pytest.fixture
def folder(empty_home: Path, tmp_path: Path) -> Path:
    """A copy of the shipped policies, to be changed."""
    return shutil.copytree(shipped("policies"), tmp_path / "mine")


def edit(folder: Path, file: str, old: str, new: str) -> Path:
    text = (folder / file).read_text(encoding="utf-8")
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


def test_policies_that_hold_are_counted(folder: Path, run: Run):
    ran = run("policy", "check", folder)
    assert ran.code == 0
    assert "No problems: 12 ladders of 17 steps, 12 rules, 2 pricing rules, 23 tax zones; 81 cases." in ran.out
    assert load(folder).content_hash[:12] in ran.out
    assert json.loads(run("policy", "check", folder, "--json").out) == {
        "valid": True,
        "hash": load(folder).content_hash,
        "cases": 81,
        "problems": [],
    }


def test_every_problem_is_told_with_its_file_line_and_column(folder: Path, run: Run):
    edit(folder, "approvals.yaml", "when: margin < 10", "when: margn < 10")
    edit(folder, "discounts.yaml", "above: 20", "above: 2")
    ran = run("policy", "check", folder)
    assert ran.code == 1
    line = 1 + (folder / "approvals.yaml").read_text(encoding="utf-8").split("margn")[0].count("\n")
    assert f"{folder / 'approvals.yaml'}:{line}:11: there is no fact margn (did you mean margin " in ran.out
    assert f"{folder / 'discounts.yaml'}:" in ran.out
    assert ran.out.endswith(f"\n{len(ran.out.splitlines()) - 2} problems.\n")
    told = json.loads(run("policy", "check", folder, "--json").out)
    assert told["valid"] is False
    assert {problem["file"] for problem in told["problems"]} == {"approvals.yaml", "discounts.yaml"}
    assert told["problems"][0]["nearest"][0] == "margin"


def test_a_file_of_cases_that_cannot_be_read_is_a_problem_too(folder: Path, run: Run):
    edit(folder, "discounts_test.yaml", "facts: {lines", "fakts: {lines")
    ran = run("policy", "check", folder)
    assert ran.code == 1
    assert f"{folder / 'discounts_test.yaml'}:6:" in ran.out
    assert run("policy", "test", folder).code == 1


def test_the_policies_in_use_are_meant_when_none_are_named(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    assert load(shipped("policies")).content_hash[:12] in run("policy", "check").out
    edit(folder, "terms.yaml", "validity_days: 30", "validity_days: 31")
    monkeypatch.setenv("CPQ_POLICIES_DIR", str(folder))
    assert load(folder).content_hash[:12] in run("policy", "check").out
    assert f"{folder}, {load(folder).content_hash[:12]}" in run("policy", "show").out


def test_cases_are_run_like_tests(folder: Path, run: Run):
    ran = run("policy", "test", folder)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "approvals_test.yaml ............................................",
        "discounts_test.yaml ..........",
        "pricing_test.yaml .....",
        "tax_test.yaml ............",
        "terms_test.yaml ..........",
        "",
        "81 passed in 5 files.",
    ]
    named = run("policy", "test", folder, "-v").out
    assert "PASSED discounts_test.yaml:5: five percent needs nobody\n" in named
    assert named.count("PASSED") == 81


def test_a_case_that_fails_says_what_came_instead(folder: Path, run: Run):
    edit(folder, "discounts.yaml", "above: 5\n", "above: 4\n")
    ran = run("policy", "test", folder)
    assert ran.code == 1
    assert "discounts_test.yaml FF........" in ran.out
    assert f"FAILED {folder / 'discounts_test.yaml'}:5: five percent needs nobody\n" in ran.out
    assert "    expected none, got discount_cap_sales_manager\n" in ran.out
    assert ran.out.endswith("\n2 failed, 79 passed in 5 files.\n")
    told = run("policy", "test", folder, "--json")
    assert told.code == 1
    report = json.loads(told.out)
    assert (report["passed"], report["failed"], len(report["cases"])) == (79, 2, 81)
    assert [case["name"] for case in report["cases"] if not case["passed"]] == [
        "five percent needs nobody",
        "the demo quote, ten percent",
    ]


def test_no_cases_are_no_success(folder: Path, run: Run):
    for path in folder.glob("*_test.yaml"):
        path.unlink()
    ran = run("policy", "test", folder)
    assert ran.code == 1
    assert "There are no cases" in ran.out
    assert run("policy", "check", folder).code == 0


def test_a_set_is_shown_in_tables(folder: Path, run: Run):
    out = run("policy", "show", folder).out
    for line in (
        "discount_cap_sales_manager       line.discount above 5 up to 20  ",
        "finance         orthogonal           beside the others, whenever it is needed",
        "standard_payment_terms   net_30",
        "US-TX                          5                   0                 6.25",
        "US-GA-FULTON             state 0             state 0   state 4 + county 3",
    ):
        assert line in out
    told = json.loads(run("policy", "show", folder, "--json").out)
    assert told["policies"][0] == {
        "policy": "discount_cap_sales_manager",
        "applies when": "line.discount above 5 up to 20",
        "severity": "approval_required",
        "role": "sales_manager",
    }
    assert {"currency": "EUR", "worth in USD": "1.08"} in told["rates"]


def test_a_set_without_pricing_rules_is_shown(folder: Path, run: Run):
    (folder / "pricing.yaml").write_text("{}", encoding="utf-8")
    assert "What changes a price before any discount\nnothing\n" in run("policy", "show", folder).out


def test_a_difference_is_told_with_what_was_and_what_is(folder: Path, run: Run):
    edit(folder, "discounts.yaml", "above: 20\n", "above: 15.5\n")
    edit(folder, "approvals.yaml", "  - id: export_control_legal", "  - id: export_legal")
    ran = run("policy", "diff", shipped("policies"), folder)
    assert ran.code == 0
    rows = [line.split() for line in ran.out.splitlines()]
    assert ["changed", "step", "discount_cap_vp_sales", "above", "20", "15.5"] in rows
    assert [row[:3] for row in rows if row[:1] in (["added"], ["removed"])] == [
        ["removed", "rule", "export_control_legal"],
        ["added", "rule", "export_legal"],
    ]
    assert ran.out.endswith("\n3 changes.\n")
    told = json.loads(run("policy", "diff", shipped("policies"), folder, "--json").out)
    assert told["hashes"] == {"old": load(shipped("policies")).content_hash, "new": load(folder).content_hash}
    assert told["changes"][-1] == {
        "kind": "changed",
        "what": "step discount_cap_vp_sales",
        "field": "above",
        "before": "20",
        "after": "15.5",
    }


def test_the_same_rules_in_another_layout_are_no_difference(folder: Path, run: Run):
    edit(folder, "approvals.yaml", "when: margin < 10", "when:   margin   <   10")
    edit(folder, "discounts.yaml", "ladders:", "# Written anew.\nladders:")
    assert run("policy", "diff", shipped("policies"), folder).out == "No difference.\n"
    edit(folder, "approvals.yaml", "margin   <   10", "10 > margin")
    assert "1 change." in run("policy", "diff", shipped("policies"), folder).out
    edit(folder, "approvals.yaml", "10 > margin", "margin < 10")
    edit(folder, "terms.yaml", "attributes:", "attributes:\n  spare: {type: text}")
    assert (
        "only names of conditions or declared attributes do" in run("policy", "diff", shipped("policies"), folder).out
    )


def missing(folder: Path) -> None:
    shutil.rmtree(folder)


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def a_pipe(folder: Path) -> None:
    (folder / "discounts.yaml").unlink()
    os.mkfifo(folder / "discounts.yaml")


def a_folder_inside(folder: Path) -> None:
    (folder / "discounts.yaml").unlink()
    (folder / "discounts.yaml").mkdir()


def a_link_to_itself(folder: Path) -> None:
    (folder / "discounts.yaml").unlink()
    (folder / "discounts.yaml").symlink_to("discounts.yaml")


def a_link_to_nowhere(folder: Path) -> None:
    (folder / "discounts.yaml").unlink()
    (folder / "discounts.yaml").symlink_to("gone.yaml")


def endless(folder: Path) -> None:
    (folder / "discounts.yaml").unlink()
    (folder / "discounts.yaml").symlink_to("/dev/zero")


def huge(folder: Path) -> None:
    (folder / "discounts.yaml").write_text("#" * (5 * 1024**2), encoding="utf-8")


def crowded(folder: Path) -> None:
    for number in range(1_001):
        (folder / f"{number}.yaml").touch()


def strange_names(folder: Path) -> None:
    (folder / "disc\x1b[31mounts.yaml").write_text("{}", encoding="utf-8")


def binary(folder: Path) -> None:
    (folder / "discounts.yaml").write_bytes(b"\x80\xff" * 100)


def nested(folder: Path) -> None:
    (folder / "discounts.yaml").write_text("[" * 100_000, encoding="utf-8")


def circular(folder: Path) -> None:
    edit(folder, "discounts.yaml", "ladders:", "define: {one: two, two: three, three: one}\nladders:")


def multiplying(folder: Path) -> None:
    text = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
    (folder / "discounts.yaml").write_text(text, encoding="utf-8")


HOSTILE: dict[Callable[[Path], None], str] = {
    missing: "There is no folder of policies 'mine'.",
    empty: "the file approvals.yaml is missing",
    a_pipe: "it is not a file",
    a_folder_inside: "it is not a file",
    a_link_to_itself: "cannot be read: Too many levels of symbolic links",
    a_link_to_nowhere: "cannot be read: No such file or directory",
    endless: "it is not a file",
    huge: "such a file has at most 4 MB",
    crowded: "has more than 1,000 files",
    strange_names: "is not a policy file",
    binary: "not UTF-8 text",
    nested: "nested more than 12 levels deep",
    circular: "refers to itself: one → two → three → one",
    multiplying: "anchors and aliases are not allowed",
}


@pytest.mark.parametrize("spoil", HOSTILE, ids=lambda spoil: spoil.__name__)
def test_a_hostile_folder_gets_a_message(folder: Path, run: Run, spoil: Callable[[Path], None]):
    spoil(folder)
    for command in (["check"], ["test"], ["show"], ["diff", shipped("policies")], ["simulate"]):
        ran = run("policy", *command, folder)
        said = ran.out + ran.err
        assert ran.code == 1
        assert HOSTILE[spoil] in said
        assert str(folder) in said
        assert "unexpected" not in said
        assert "\x1b" not in said
        failure = json.loads(run("policy", *command, folder, "--json").out)
        assert "error" in failure or failure["problems"]


def test_a_name_no_folder_can_have_gets_a_message(empty_home: Path, run: Run):
    ran = run("policy", "check", "a" * 5_000)
    assert ran.code in (1, 2)
    assert "File name too long" in ran.err
    assert run("policy", "check", shipped("policies") / "tax.yaml").code == 2


def test_a_folder_that_may_not_be_read_gets_a_message(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # The tests may run as somebody who may read everything.
    ran = run("policy", "check", folder)
    assert (ran.code, f"Directory '{folder}' is not readable." in ran.err) == (2, True)


def test_a_role_that_nobody_can_hold_is_told_with_its_place(tmp_path: Path, run: Run):
    folder = shutil.copytree(shipped("policies"), tmp_path / "mine")
    edit(folder, "approvals.yaml", "deal_desk", "deal_dsk")
    ran = run("policy", "check", folder)
    assert ran.code == 1
    told = "approvals.yaml:5:31: deal_dsk is not a role that can decide (did you mean deal_desk?)"
    assert told in ran.out + ran.err
