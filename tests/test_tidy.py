"""The shape of the code: who imports whom, what stays pure, what has one owner, and how large things may grow."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted(path for package in ("cpq", "mcp_facade") for path in (ROOT / package).rglob("*.py"))
NAMES = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in FILES}

LAYERS = {
    1: (
        "cpq",
        "cpq.base.errors",
        "cpq.base.money",
        "cpq.base.text",
        "cpq.base.clock",
        "cpq.base.settings",
        "cpq.base.metrics",
        "cpq.base.logs",
        "cpq.base.memory",
        "cpq.base.rate_limit",
    ),
    2: (
        "cpq.configuring",
        "cpq.pricing",
        "cpq.policy",
        "cpq.search.ranking",
        "cpq.search.wording",
        "cpq.search.scoring",
        "cpq.search.spelling",
        "cpq.search.postings",
        "cpq.search.vectors",
        "cpq.search.index",
        "cpq.search.passages",
        "cpq.search.markdown",
        "cpq.search.globs",
        "cpq.docs.pages",
        "cpq.context.chunks",
        "cpq.context.python",
        "cpq.catalog.rows",
        "cpq.catalog.preparing",
        "cpq.approvals.rounds",
        "cpq.approvals.keeping",
        "cpq.documents.localising",
        "cpq.events.signing",
        "cpq.web.rules",
        "mcp_facade.intake",
    ),
    3: (
        "cpq.columns",
        "cpq.db",
        "cpq.schema",
        "cpq.migrating",
        "cpq.policy.loading",
        "cpq.policy.keeping",
        "cpq.base.background",
    ),
    4: (
        "cpq.app",
        "cpq.audit",
        "cpq.health",
        "cpq.access",
        "cpq.sessions",
        "cpq.views",
        "cpq.reviews",
        "cpq.search.changes",
    ),
    5: (
        "cpq.catalog",
        "cpq.search",
        "cpq.equipment",
        "cpq.past_quotes",
        "cpq.corpora",
        "cpq.docs",
        "cpq.context",
        "cpq.events",
        "cpq.quotes",
        "cpq.approvals",
        "cpq.documents",
        "cpq.insight",
        "cpq.figures",
        "cpq.web",
    ),
    6: ("cpq.cli", "cpq.console", "mcp_facade"),
    # The one place that knows two edges: it puts the console's pages into the HTTP server.
    7: ("mcp_facade.__main__",),
}
"""A row imports lower rows; sideways only as `SIDEWAYS` says. The longest matching prefix decides."""

SIDEWAYS = {
    ("cpq.base.settings", "cpq.base.errors"),
    ("cpq.base.rate_limit", "cpq.base.clock"),
    ("cpq.base.rate_limit", "cpq.base.errors"),
    ("cpq.sessions", "cpq.access"),
    ("cpq.reviews", "cpq.views"),
    ("cpq.catalog.preparing", "cpq.catalog.rows"),
    ("cpq.catalog.preparing", "cpq.search.ranking"),
    ("cpq.catalog.preparing", "cpq.configuring"),
    ("cpq.configuring", "cpq.catalog.rows"),
    ("cpq.search.wording", "cpq.search.ranking"),
    ("cpq.search.passages", "cpq.search.wording"),
    ("cpq.search.postings", "cpq.search.ranking"),
    ("cpq.search.postings", "cpq.search.wording"),
    ("cpq.search.index", "cpq.search.postings"),
    ("cpq.search.index", "cpq.search.ranking"),
    ("cpq.search.index", "cpq.search.scoring"),
    ("cpq.search.index", "cpq.search.spelling"),
    ("cpq.search.index", "cpq.search.vectors"),
    ("cpq.search.index", "cpq.search.wording"),
    ("cpq.web.rules", "cpq.search.passages"),
    ("cpq.web.rules", "cpq.search.wording"),
    ("cpq.web", "cpq.search"),
    ("cpq.docs.pages", "cpq.search.index"),
    ("cpq.docs.pages", "cpq.search.markdown"),
    ("cpq.docs.pages", "cpq.search.passages"),
    ("cpq.context.chunks", "cpq.search.index"),
    ("cpq.context.chunks", "cpq.search.markdown"),
    ("cpq.context.chunks", "cpq.search.vectors"),
    ("cpq.docs", "cpq.search"),
    ("cpq.context", "cpq.search"),
    ("cpq.app", "cpq.audit"),
    ("cpq.app", "cpq.access"),
    ("cpq.health", "cpq.app"),
    ("cpq.schema", "cpq.columns"),
    ("cpq.policy.keeping", "cpq.policy.loading"),
    ("cpq.migrating", "cpq.db"),
    ("cpq.approvals.rounds", "cpq.policy"),
    ("cpq.approvals.keeping", "cpq.policy"),
    ("cpq.approvals", "cpq.catalog"),
    ("cpq.approvals", "cpq.quotes"),
    ("cpq.approvals", "cpq.events"),
    ("cpq.documents", "cpq.quotes"),
    ("cpq.documents", "cpq.catalog"),
    ("cpq.equipment", "cpq.search"),
    ("cpq.past_quotes", "cpq.search"),
    ("cpq.corpora", "cpq.search"),
    ("cpq.corpora", "cpq.equipment"),
    ("cpq.corpora", "cpq.past_quotes"),
    ("cpq.corpora", "cpq.web"),
    ("cpq.past_quotes", "cpq.catalog"),
    ("cpq.past_quotes", "cpq.quotes"),
    ("cpq.quotes", "cpq.catalog"),
    ("cpq.quotes", "cpq.events"),
}

PURE = ("cpq.base.money", "cpq.base.text", "cpq.base.errors", *LAYERS[2])
IMPURE_MODULES = {"sqlalchemy", "logging", "os", "time", "random", "pathlib", "socket", "subprocess", "threading"}

OWNERS = {
    "mcp": {"mcp_facade.server", "mcp_facade.demo"},
    "mcp_types": {"mcp_facade.server"},
    "weasyprint": {"cpq.documents.rendering"},
    "uuid": {"cpq.base.clock"},
    "random": {"cpq.base.clock"},
    "secrets": {"cpq.base.clock"},
    "alembic": {"cpq.migrating"},
    "http": {"cpq.events.sending", "cpq.web.fetching"},
    "httpx2": {"cpq.console.oidc"},
    "jwt": {"cpq.console.oidc"},
    "selectolax": {"cpq.web.rules.converting"},
    "pypdfium2": {"cpq.web.pdf"},
}
"""Packages that one file may import, so that they can be replaced there."""

CALLS = {
    ("datetime", "now"): {"cpq.base.clock"},
    ("time", "sleep"): {"cpq.base.clock"},
    ("time", "time"): set(),
}

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
BLANKET_EXCEPTS = {"mcp_facade.registry", "cpq.cli", "cpq.console", "cpq.base.background", "cpq.policy.keeping"}
"""One for each edge, and two that nobody would start again: background work, and the reading of changed policies."""


@pytest.fixture(params=FILES, ids=list(NAMES.values()))
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every imported module, with `from package import module` resolved to the module."""
    known = set(NAMES.values())
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield (whole if whole in known else node.module or ""), node.lineno


def place(module: str) -> tuple[int, str] | None:
    """The row of a module and the name by which the table knows it."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        prefix = ".".join(parts[:length])
        for row, names in LAYERS.items():
            if prefix in names and (prefix != "cpq" or len(parts) == 1):
                return row, prefix
    return None


def test_every_file_has_its_row(path: Path):
    assert place(NAMES[path]) is not None, "say in LAYERS where this file belongs"


def test_imports_point_inwards(path: Path):
    row, own = place(NAMES[path]) or (0, "")
    for module, line in imports(path):
        target = place(module)
        if target is None or target[1] == own or module == "cpq":
            continue
        allowed = target[0] < row or (own, target[1]) in SIDEWAYS
        assert allowed, f"line {line}: row {row} ({own}) imports row {target[0]} ({target[1]})"


def test_imports_stand_at_the_top(path: Path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = [part.lineno for part in ast.walk(node) if isinstance(part, ast.Import | ast.ImportFrom)]
            assert not inner, f"line {inner[0]}: an import inside a function"


@pytest.mark.parametrize("module", [name for name in NAMES.values() if (place(name) or (0, ""))[1] in PURE])
def test_pure_modules_touch_nothing_outside(module: str):
    path = next(path for path, name in NAMES.items() if name == module)
    touched = {name.split(".")[0] for name, _ in imports(path)} & IMPURE_MODULES
    assert not touched
    opens = [node.lineno for node in ast.walk(tree(path)) if isinstance(node, ast.Name) and node.id == "open"]
    assert not opens


def test_packages_with_one_owner_are_imported_only_there(path: Path):
    for module, line in imports(path):
        owners = OWNERS.get(module.split(".")[0])
        assert owners is None or NAMES[path] in owners, f"line {line}: {module} belongs to {owners}"


def test_time_comes_from_one_place(path: Path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owners = CALLS.get((node.value.id, node.attr))
            assert owners is None or NAMES[path] in owners, f"line {node.lineno}"


def test_only_the_app_and_the_database_end_transactions(path: Path):
    ends = {"commit", "rollback"}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and node.attr in ends:
            assert NAMES[path] in ("cpq.app", "cpq.db"), f"line {node.lineno}: {node.attr}"


def test_money_never_passes_through_a_float(path: Path):
    """`float` is for seconds, for search scores, and for the one function that writes numbers on the wire."""
    allowed = NAMES[path].startswith("cpq.search") or NAMES[path] == "cpq.base.text"
    calls = [
        node.lineno
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float"
    ]
    assert allowed or not calls


def test_blanket_excepts_stand_only_at_the_edges(path: Path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ExceptHandler):
            is_blanket = node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception")
            place_ = NAMES[path]
            assert not is_blanket or any(place_.startswith(edge) for edge in BLANKET_EXCEPTS), f"line {node.lineno}"


def test_functions_fit_a_screen_and_files_a_sitting(path: Path):
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= FILE_LINES_MAX, f"{lines} lines: make a package of it"
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            length = node.end_lineno - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{node.name} has {length} lines"


def test_a_file_opens_by_saying_what_it_is_for(path: Path):
    text = ast.get_docstring(tree(path)) or ""
    assert text.splitlines()[:1]
    assert text.splitlines()[0].endswith(".")


def test_nothing_is_left_unfinished(path: Path):
    words = ("TODO", "FIXME", "XXX", "NotImplementedError")
    text = path.read_text(encoding="utf-8")
    assert not [word for word in words if word in text]


def test_a_test_opens_the_engine_by_the_clock_of_the_tests_unless_it_asks_for_another():
    """`make.open_app` does; a store made at one time must not be looked at by a clock that stands at another."""
    own = {"make.py", "bench", "conformance"}
    for path in (ROOT / "tests").rglob("*.py"):
        if path.relative_to(ROOT / "tests").parts[0] in own:
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module == "cpq.app":
                assert "open_app" not in [alias.name for alias in node.names], f"{path.name}, line {node.lineno}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "App":
                assert len(node.args) == 2, f"{path.name}, line {node.lineno}: without a clock"


def test_the_top_level_is_what_was_agreed():
    agreed = {"cpq", "mcp_facade", "policies", "pdf_templates", "migrations", "tests", "pyproject.toml", "README.md"}
    agreed |= {"Makefile", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "requirements.lock"}
    assert {path.name for path in ROOT.iterdir() if not path.name.startswith(".")} == agreed
