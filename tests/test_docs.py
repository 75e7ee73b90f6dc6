"""What the documents say about the product is true. `python -m tests.generate` writes the generated parts."""

import ast
import json
import re

import pytest

from mcp_facade.registry import Tool
from mcp_facade.toolsets import ALL_TOOLS
from tests import attacks, contract, generate, ledger
from tests.promises import PROMISES

DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "cpq/DECISIONS.md", "policies/README.md"]
DOCUMENTS += ["pdf_templates/README.md", "pdf_templates/fonts/README.md"]
DOCUMENTS += [str(path.relative_to(generate.ROOT)) for path in sorted(generate.GUIDE.glob("*.md"))]
REFRESH = "run `python -m tests.generate` and review the diff"


@pytest.mark.parametrize("name", generate.guide_tables())
def test_the_tables_of_the_guide_equal_the_code(name: str):
    text = (generate.GUIDE / f"{name}.md").read_text(encoding="utf-8")
    assert generate.with_tables(text, {name: generate.guide_tables()[name]}) == text, REFRESH


def test_the_policies_are_described_as_the_code_reads_them():
    text = (generate.POLICIES / "README.md").read_text(encoding="utf-8")
    assert generate.with_tables(text, generate.policy_tables()) == text, REFRESH
    assert (generate.POLICIES / "schema.json").read_text(encoding="utf-8") == generate.policy_schema(), REFRESH


def test_the_figures_of_the_readme_are_those_of_the_tables():
    text = " ".join((generate.ROOT / "README.md").read_text(encoding="utf-8").split())
    figures = {name: int(found) for name, found in _figures(text).items()}
    held = [one for group in attacks.ATTACKS.values() for one in group]
    assert len(held) >= figures["attacks"]
    assert len({name for one in held for name in one.tests}) >= figures["tests"]
    assert len(contract.BEHAVIOURS) >= figures["behaviours"]
    outcomes = [one.outcome for one in ledger.cases()]
    assert (len(outcomes), outcomes.count(ledger.SAME), outcomes.count(ledger.WRONG)) == (
        figures["examples"],
        figures["same"],
        figures["wrong"],
    )


def _figures(text: str) -> dict[str, str]:
    patterns = {
        "attacks": r"More than (\d+) attacks",
        "tests": r"more than (\d+) tests",
        "behaviours": r"more than (\d+) behaviours",
        "examples": r"Of (\d+) published examples",
        "same": r"(\d+) come out the same",
        "wrong": r"(\d+) do not add up",
    }
    return {name: re.search(pattern, text)[1] for name, pattern in patterns.items()}  # type: ignore[index] # It is there.


def test_the_readme_is_read_in_one_go():
    assert len((generate.ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


@pytest.mark.parametrize("tool", ALL_TOOLS, ids=lambda tool: tool.name)
def test_q10_a_tool_is_described_as_its_snapshot_says(tool: Tool):
    path = generate.SNAPSHOTS / f"{tool.name}.json"
    assert path.read_text(encoding="utf-8") == generate.snapshot(tool), REFRESH


def test_there_is_no_snapshot_of_a_tool_that_is_gone():
    assert {path.stem for path in generate.SNAPSHOTS.glob("*.json")} == {tool.name for tool in ALL_TOOLS}


def test_the_contract_table_shows_what_has_no_test_yet():
    path = generate.ROOT / "tests" / "CONTRACT.md"
    assert path.read_text(encoding="utf-8") == contract.table(), REFRESH


def test_every_attack_names_tests_that_exist_where_they_run():
    named = {name for group in attacks.ATTACKS.values() for one in group for name in one.tests}
    assert sorted(named - attacks.proofs().keys()) == []
    assert all(one.tests for group in attacks.ATTACKS.values() for one in group)
    shown = {name for group in PROMISES.values() for one in group for name in one.tests}
    assert {name for name in shown - attacks.proofs().keys() if not name.startswith(attacks.BENCH)} == set()
    parts = (generate.ROOT / "tests" / "bench" / "__main__.py").read_text(encoding="utf-8")
    assert [part for part in attacks.measured() if f'"{part}": ' not in parts] == []
    assert (generate.ROOT / "tests" / "ATTACKS.md").read_text(encoding="utf-8") == attacks.table(), REFRESH


def test_every_number_in_a_test_name_is_one_of_the_contract():
    assert set(contract.proofs()) == set(contract.BEHAVIOURS)


def test_tool_descriptions_stay_within_a_budget_of_tokens():
    """Every agent pays for these on every turn; four characters are about one token.

    The budget grew from 1,300 with the arguments that the contract added to a line: `selling_model`, fine quantities,
    what is for the seller alone, items of no catalogue, a price, an amount off, dates of its own, and what it commits
    to where it is charged by use; and to the quote: its last valid day.
    quote_update has them three times: for the quote, and for new and changed lines.
    """
    for tool in ALL_TOOLS:
        described = json.dumps([tool.description, tool.input_schema])
        assert len(described) / 4 < (2_320 if tool.name == "quote_update" else 1_800), tool.name


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_name_no_machine_and_no_missing_file(name: str):
    text = (generate.ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r"/(work|root|home)/", text)
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (generate.ROOT / name).parent.joinpath(target).exists(), target


def decided_where() -> list[tuple[str, str, str]]:
    """The rows of "Where is ... decided?" in CONTRIBUTING.md."""
    text = (generate.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.findall(r"^\| ([^|`]+) \| `([\w/]+\.py)` \| `([\w.]+)` \|$", text, re.MULTILINE)


def test_the_map_has_a_row_for_every_question_a_stranger_asks():
    assert len(decided_where()) >= 25


@pytest.mark.parametrize("row", decided_where(), ids=lambda row: row[0].replace(" ", "_"))
def test_the_map_names_what_exists(row: tuple[str, str, str]):
    _, path, symbol = row
    body = ast.parse((generate.ROOT / path).read_text(encoding="utf-8")).body
    for name in symbol.split("."):
        found = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name]
        assert found, f"{path} has no {symbol}"
        body = found[0].body
