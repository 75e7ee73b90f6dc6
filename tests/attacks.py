"""The attacks that were tried on the product as a table, with the tests that hold each so and where they run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.attacks_on_deals import ON_DEALS
from tests.attacks_on_systems import ON_SYSTEMS
from tests.promises import PROMISES

TESTS = Path(__file__).parent
ATTACKS = {**ON_DEALS, **ON_SYSTEMS}


class Proof(NamedTuple):
    """Where a test is, and how it runs."""

    file: str
    databases: str
    run: str


def table() -> str:
    """The page tests/ATTACKS.md."""
    known = proofs()
    parts = [
        "# Which test holds which attack",
        "Written by `python -m tests.generate`. `make test` runs the suite, `make proof` the long tests.",
    ]
    for subject, attacks in ATTACKS.items():
        rows = ["| tried | now | tests | on | run by |", "|---|---|---|---|---|"]
        for one in attacks:
            found = [known[name] for name in one.tests]
            cells = (
                one.tried,
                one.now,
                "<br>".join(f"`{name}`" for name in one.tests),
                "<br>".join(proof.databases for proof in found),
                "<br>".join(proof.run for proof in found),
            )
            rows.append(f"| {' | '.join(cells)} |")
        parts += [f"## {subject}", "\n".join(rows)]
    parts.append("# Which test shows which promise")
    for subject, promises in PROMISES.items():
        rows = ["| promised | shown by | on | run by |", "|---|---|---|---|"]
        for promise in promises:
            found = [known.get(name, MEASURED) for name in promise.tests]
            shown = (
                promise.promised,
                "<br>".join(f"`{_command(name)}`" for name in promise.tests),
                "<br>".join(proof.databases for proof in found),
                "<br>".join(proof.run for proof in found),
            )
            rows.append(f"| {' | '.join(shown)} |")
        parts += [f"## {subject}: promises", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def summary() -> str:
    """The attacks without the names of the tests, for the guide."""
    parts = []
    for subject, group in ATTACKS.items():
        rows = [f"| {one.tried} | {one.now} | {len(one.tests)} |" for one in group]
        parts += [f"## {subject}", "\n".join(["| tried | now | tests |", "|---|---|---|", *rows])]
    return "\n\n".join(parts)


def _command(name: str) -> str:
    """A test by its name, and a part of the bench as it is run."""
    return name.replace(BENCH, "python -m tests.bench --only ")


def measured() -> set[str]:
    """The parts of the bench that promises name."""
    names = {name for group in PROMISES.values() for one in group for name in one.tests}
    return {name.removeprefix(BENCH) for name in names if name.startswith(BENCH)}


BENCH = "bench "
MEASURED = Proof("bench", "both", "bench")


@cache
def proofs() -> dict[str, Proof]:
    """Every test by its name; a name that several files have is not among them."""
    found: dict[str, list[Proof]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        fixtures = _fixtures(path)
        for node in _functions(path):
            if node.name.startswith("test_"):
                run = "proof" if "pytest.mark.proof" in map(ast.unparse, node.decorator_list) else "suite"
                proof = Proof(str(path.relative_to(TESTS)), _databases(_needs(node), fixtures), run)
                found.setdefault(node.name, []).append(proof)
    return {name: proofs[0] for name, proofs in found.items() if len(proofs) == 1}


def _databases(needs: set[str], fixtures: dict[str, set[str]]) -> str:
    """By the fixtures that a test takes, and those that they take."""
    reached, ahead = set[str](), list(needs)
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead += fixtures.get(name, ())
    if reached & {"store", "empty_store"}:
        return "both"
    if reached & {"cluster", "postgres_template"} and not reached & {"sqlite_template", "empty_home"}:
        return "PostgreSQL"
    return "SQLite" if reached & {"sqlite_template", "empty_home", "sample_home"} else "none"


def _fixtures(path: Path) -> dict[str, set[str]]:
    """What each fixture takes that a test of this file can see; the nearest of a name counts."""
    folders = [folder for folder in reversed(path.parents) if folder.is_relative_to(TESTS)]
    places = [*(folder / "conftest.py" for folder in folders), path]
    return {
        node.name: _needs(node)
        for place in places
        if place.exists()
        for node in _functions(place)
        if any("fixture" in ast.unparse(one) for one in node.decorator_list)
    }


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _needs(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The arguments, and fixtures that are named in decorators."""
    words = {
        part.value
        for decorator in node.decorator_list
        for part in ast.walk(decorator)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }
    return {argument.arg for argument in node.args.args} | words
