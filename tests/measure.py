"""Measures how easily a stranger finds their way in the code: `python -m tests.measure [FOLDER]`.

The numbers are those of the renovation: names, statuses as text, rows without a type, filters by hand, logic in package
files, cycles, code that only tests use, and how many files one call passes. `test_tidy` holds the cheap ones.
"""

import ast
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cpq.base.settings import read_settings
from tests.support import engine

ROOT = Path(__file__).parent.parent
PACKAGES = ("cpq", "mcp_facade")

_ROLES = """commands repository views events expiry importer exporter file_rows replay
catalog quotes quote approvals documents audit health search web docs context equipment past_quotes console deals
insight queue policy policies figures accounts account demo retrieval agreements agreement orders order"""
ROLES = frozenset(_ROLES.split())
"""Module names that repeat on purpose: a role that is the same in every service, or a subject seen by another layer."""

_STATUSES = """draft pending_approval approved sent accepted declined expired cancelled rejected superseded
pending kept withdrawn"""
STATUSES = frozenset(_STATUSES.split())
STATUS_OWNERS = (
    "domain/quotes/lifecycle.py",
    "domain/approvals/approval_request.py",
    "domain/agreements/agreement.py",
    "storage/schema/",
)
TENANT_FILTER = r"\.tenant_id == (?:tx\.|self\.)?tenant_id\b"


def files(root: Path = ROOT) -> list[Path]:
    return sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))


def gerunds(root: Path = ROOT) -> list[str]:
    """Modules that are named by what they happen to be doing."""
    return [str(path.relative_to(root)) for path in files(root) if path.stem.endswith("ing")]


def shared_names(root: Path = ROOT) -> dict[str, list[str]]:
    """Module names that stand for several things."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in files(root):
        if not path.stem.startswith("__") and path.stem not in ROLES:
            places[path.stem].append(str(path.relative_to(root)))
    return {name: found for name, found in places.items() if len(found) > 1}


def status_literals(root: Path = ROOT) -> list[str]:
    """Statuses of quotes and approvals that are written as text outside their owners, docstrings left out."""
    found = []
    for path in files(root):
        if any(owner in path.as_posix() for owner in STATUS_OWNERS):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [
            f"{path.relative_to(root)}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in STATUSES
        ]
    return found


def occurrences(pattern: str, root: Path = ROOT) -> list[str]:
    """Where a pattern stands in the code, by file and line."""
    return [
        f"{path.relative_to(root)}:{number}"
        for path in files(root)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for _ in re.finditer(pattern, line)
    ]


def package_logic(root: Path = ROOT) -> dict[str, int]:
    """Lines of functions and classes in package files."""
    logic = {}
    for path in files(root):
        if path.name == "__init__.py":
            body = ast.parse(path.read_text(encoding="utf-8")).body
            kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
            lines = sum((node.end_lineno or 0) - node.lineno + 1 for node in body if isinstance(node, kinds))
            if lines:
                logic[str(path.relative_to(root))] = lines
    return logic


def cycles(root: Path = ROOT) -> list[str]:
    """Pairs of packages that import each other, directly or through others."""
    arrows: dict[str, set[str]] = defaultdict(set)
    known = {_name(path, root): _package(path, root) for path in files(root)}
    for path in files(root):
        own = _package(path, root)
        for module in _imports(path, set(known)):
            if module in known and known[module] != own and not own.startswith(known[module] + "."):
                arrows[own].add(known[module])
    reach = {package: _reached(package, arrows) for package in list(arrows)}
    return sorted(
        f"{one} <-> {other}" for one in reach for other in reach[one] if one < other and one in reach.get(other, ())
    )


def unused(root: Path = ROOT) -> list[str]:
    """Functions, classes, methods and constants that no line of the product uses, tests and docstrings left out."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files(root)}
    used = {name for tree in trees.values() for name in _used(tree)}
    for folder in ("cpq/console", "pdf_templates", "migrations"):
        for path in (root / folder).rglob("*"):
            if path.suffix in (".html", ".txt") or (path.suffix == ".py" and folder == "migrations"):
                used.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    classes = {node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return [
        f"{path.relative_to(root)}:{line} {name}"
        for path, tree in trees.items()
        for name, line in _defined(tree, classes)
        if name not in used and not name.startswith("__")
    ]


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _used(tree: ast.Module) -> Iterator[str]:
    """Names that code reads, also as text that is a name; what a package exports counts when somebody uses it."""
    exports = {id(part) for node in tree.body if _assigned(node) == ["__all__"] for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in exports:
            yield node.value


def _defined(tree: ast.Module, classes: set[str]) -> Iterator[tuple[str, int]]:
    """What a module defines; a decorator may use what it is given, and a class from elsewhere call what it knows."""
    for node in tree.body:
        yield from ((name, node.lineno) for name in _assigned(node))
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.decorator_list:
            yield node.name, node.lineno
    for kind in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        if all(ast.unparse(base) in classes for base in kind.bases):
            for part in kind.body:
                if isinstance(part, FUNCTIONS) and not {*map(_last_name, part.decorator_list)} - PLAIN_DECORATORS:
                    yield part.name, part.lineno


PLAIN_DECORATORS = {"property", "cached_property", "staticmethod", "classmethod", "contextmanager"}


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    parts = [part for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
    return [part.id for part in parts if isinstance(part.ctx, ast.Store)]


def _last_name(node: ast.expr) -> str:
    return re.split(r"[\[(]", ast.unparse(node))[0].split(".")[-1]


def files_passed() -> dict[str, list[str]]:
    """For four calls of the contract, the files of the product that each one enters."""
    passed: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        settings = read_settings({}, home=Path(folder))
        engine.fill_with_sample(settings)
        app = engine.open_app(settings)
        tools = engine.Tools(app)
        line = {"product_id": "prod_pro_v2", "quantity": 150}
        create = {"account_id": "acct_acme_001", "line_items": [line]}
        warm = tools("quote_create", **create)["quote_id"]
        tools("quote_price", quote_id=warm, requested_discount_pct=10)
        tools("quote_pdf", quote_id=warm)
        quote_id = tools("quote_create", **create)["quote_id"]
        asked = {"quote_id": quote_id, "justification": "They plan more seats.", "approver_role": "sales_manager"}
        calls: list[tuple[str, dict[str, Any]]] = [
            ("quote_create", create),
            ("quote_price", {"quote_id": quote_id, "requested_discount_pct": 10}),
            ("approval_request", asked),
            ("quote_pdf", {"quote_id": quote_id}),
        ]
        for name, arguments in calls:
            passed[name] = _entered(tools, name, arguments)
        app.close()
    return passed


def _entered(tools: Any, name: str, arguments: dict[str, Any]) -> list[str]:
    seen: set[str] = set()

    def watch(frame: Any, event: str, _argument: object) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    sys.setprofile(watch)
    try:
        tools(name, **arguments)
    finally:
        sys.setprofile(None)
    ours = (Path(path) for path in seen)
    return sorted(str(path.relative_to(ROOT)) for path in ours if path.is_relative_to(ROOT) and _is_product(path))


def _is_product(path: Path) -> bool:
    return path.relative_to(ROOT).parts[0] in PACKAGES


def _name(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _package(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).parent.parts)


def _imports(path: Path, known: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in known else node.module or ""


def _reached(package: str, arrows: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(arrows.get(package, ()))
    while waiting:
        other = waiting.pop()
        if other not in seen:
            seen.add(other)
            waiting += arrows.get(other, ())
    return seen


def main(root: Path) -> None:
    named = gerunds(root)
    rows: list[tuple[str, object, str]] = [
        ("modules named by a gerund", f"{len(named)} of {len(files(root))}", "< 10"),
        ("module names with several meanings", len(shared_names(root)), "0"),
        ("statuses as text outside their owners", len(status_literals(root)), "< 30"),
        ("AnyRow", len(occurrences(r"\bAnyRow\b", root)), "< 25"),
        ("tenant filters by hand", len(occurrences(TENANT_FILTER, root)), "1"),
        ("lines of logic in package files", sum(package_logic(root).values()), "0"),
        ("package cycles", len(cycles(root)), "0"),
        ("names that nothing uses", len(unused(root)), "0"),
    ]
    if root == ROOT:
        # Files and the packages they are in. DECISIONS says why there are more files than were wanted.
        wanted = {"quote_create": 24, "quote_price": 26, "approval_request": 24, "quote_pdf": 32}
        for name, entered in files_passed().items():
            packages = len({path.rpartition("/")[0] for path in entered})
            rows.append((f"files that {name} passes", f"{len(entered)} in {packages}", f"<= {wanted[name]} files"))
    width = max(len(row[0]) for row in rows)
    for label, measured, aim in rows:
        print(f"{label:<{width}}  {measured!s:>10}   wanted {aim}")
    for title, found in (("gerunds", named), ("several meanings", shared_names(root)), ("cycles", cycles(root))):
        print(f"\n{title}: {found}")
    print("\nunused:", *unused(root), sep="\n  ")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
