"""The shape of the code: who imports whom, what stays pure, what has one owner, and how large things may grow."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import measure

ROOT = Path(__file__).parent.parent
FILES = sorted(path for package in ("cpq", "mcp_facade") for path in (ROOT / package).rglob("*.py"))
NAMES = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in FILES}

LAYERS = ("base", "domain", "storage", "app", "services", "retrieval")
"""Folders of `cpq`, lowest first: a folder imports only the ones before it. All others are edges, which import any of
these and never each other."""

EDGES = ("cpq.cli", "cpq.console", "mcp_facade")
MEETING_PLACE = "mcp_facade.__main__"
"""The one module that knows two edges: it puts the console's pages into the HTTP server."""

ARROWS = {
    ("configuration", "catalog"),
    ("configuration", "quotes"),
    ("quotes", "catalog"),
    ("quotes", "events"),
    ("quotes", "orders"),
    ("orders", "events"),
    ("guided_selling", "catalog"),
    ("agreements", "orders"),
    ("agreements", "quotes"),
    ("agreements", "events"),
    ("approvals", "quotes"),
    ("approvals", "catalog"),
    ("approvals", "events"),
    ("documents", "quotes"),
    ("documents", "catalog"),
    ("documents", "orders"),
    ("backups", "catalog"),
    ("backups", "documents"),
}
"""Which subject of `cpq.services` may import which other."""

_PURE = ("errors", "late_modules", "money", "rounding", "row_problems", "text", "vocabulary", "written_numbers")
PURE_BASE = {f"cpq.base.{name}" for name in _PURE}
"""What of `cpq.base` the rules may use; the vocabulary is read once, when it is imported."""

IMPURE_MODULES = {"sqlalchemy", "logging", "os", "time", "random", "pathlib", "socket", "subprocess", "threading"}

OWNERS = {
    "mcp": {"mcp_facade.server", "mcp_facade.stdio", "mcp_facade.demo"},
    "mcp_types": {"mcp_facade.server", "mcp_facade.stdio"},
    "weasyprint": {"cpq.services.documents.rendering"},
    "uuid": {"cpq.base.clock"},
    "random": {"cpq.base.clock"},
    "secrets": {"cpq.base.clock"},
    "alembic": {"cpq.storage.migrations"},
    "http": {"cpq.services.events.http_post", "cpq.retrieval.web.fetcher"},
    "httpx2": {"cpq.console.oidc"},
    "jwt": {"cpq.console.oidc"},
    "selectolax": {"cpq.retrieval.web.rules.html_markdown"},
    "pypdfium2": {"cpq.retrieval.web.pdf"},
    "pysat": {"cpq.domain.configuration.solver.kernel"},
}
"""Packages that one file may import, so that they can be replaced there."""

CALLS = {
    ("datetime", "now"): {"cpq.base.clock"},
    ("time", "sleep"): {"cpq.base.clock"},
    ("time", "time"): set(),
}

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
BLANKET_EXCEPTS = {
    *("mcp_facade.registry", "cpq.cli", "cpq.console"),
    *("cpq.base.background", "cpq.app.policy_keeper", "cpq.app.audit"),
}
"""One for each edge, and three that nobody would start again: background work, the reading of changed policies, and
the record of calls."""


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


def layer(module: str) -> int:
    """How high a module stands; edges stand above all folders, and above them the place where two edges meet."""
    parts = module.split(".")
    if module == MEETING_PLACE:
        return len(LAYERS) + 1
    if module == "cpq":
        return -1
    return LAYERS.index(parts[1]) if parts[0] == "cpq" and parts[1] in LAYERS else len(LAYERS)


def edge(module: str) -> str:
    return next((name for name in EDGES if module == name or module.startswith(f"{name}.")), "")


def subject(module: str) -> str:
    """The subject of a module of `cpq.services`; empty for what the subjects share."""
    parts = module.split(".")
    is_package = parts[:2] == ["cpq", "services"] and len(parts) > 2 and (ROOT / "cpq/services" / parts[2]).is_dir()
    return parts[2] if is_package else ""


def test_every_file_stands_in_a_layer_or_an_edge(path: Path):
    assert layer(NAMES[path]) < len(LAYERS) or NAMES[path] == MEETING_PLACE or edge(NAMES[path])


def test_imports_point_inwards(path: Path):
    own = NAMES[path]
    for module, line in imports(path):
        if module.split(".")[0] not in ("cpq", "mcp_facade"):
            continue
        allowed = layer(module) < layer(own) or (layer(module) == layer(own) and edge(module) == edge(own))
        assert allowed, f"line {line}: {own} imports {module}, which stands above it or in another edge"


def test_subjects_import_each_other_only_along_the_arrows(path: Path):
    own = subject(NAMES[path])
    for module, line in imports(path):
        other = subject(module)
        assert not own or other in ("", own) or (own, other) in ARROWS, f"line {line}: {own} imports {other}"


def test_imports_stand_at_the_top(path: Path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = [part.lineno for part in ast.walk(node) if isinstance(part, ast.Import | ast.ImportFrom)]
            assert not inner, f"line {inner[0]}: an import inside a function"


@pytest.mark.parametrize("module", [name for name in NAMES.values() if name.startswith("cpq.domain")])
def test_rules_are_pure_by_path(module: str):
    """No database, file, clock, thread, log or setting below `cpq/domain`."""
    path = next(path for path, name in NAMES.items() if name == module)
    touched = {name.split(".")[0] for name, _ in imports(path)} & IMPURE_MODULES
    ours = {name for name, _ in imports(path) if name.startswith("cpq.base.")} - PURE_BASE
    assert not touched | ours
    opens = [node.lineno for node in ast.walk(tree(path)) if isinstance(node, ast.Name) and node.id == "open"]
    assert not opens


def test_a_package_file_only_exports(path: Path):
    """Logic in `__init__.py` is where nobody looks for it."""
    if path.name == "__init__.py":
        kinds = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign)
        body = tree(path).body
        blocks = [node for node in body if isinstance(node, ast.If)]
        assert all(isinstance(node, kinds) for node in body if node not in blocks)
        assert all(isinstance(node, ast.ImportFrom) for block in blocks for node in block.body), "an export, made late"


def test_a_package_exports_no_name_of_one_of_its_modules(path: Path):
    """The module, once imported, would stand where a name that is exported late belongs."""
    late = [node for node in tree(path).body if isinstance(node, ast.If)] if path.name == "__init__.py" else []
    imports_ = [node for block in late for node in block.body if isinstance(node, ast.ImportFrom)]
    exported = {alias.name for node in imports_ for alias in node.names}
    assert not exported & {other.stem for other in path.parent.glob("*.py")}


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
            assert NAMES[path] in ("cpq.app", "cpq.storage.engine"), f"line {node.lineno}: {node.attr}"


def test_money_never_passes_through_a_float(path: Path):
    """`float` is for seconds, for search scores, and for the one function that writes numbers on the wire."""
    allowed = NAMES[path].startswith("cpq.retrieval.search") or NAMES[path] in ("cpq.base.text", "cpq.base.settings")
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
    """A store made at one time must not be looked at by a clock that stands at another."""
    own = {"support", "bench", "conformance"}
    for path in (ROOT / "tests").rglob("*.py"):
        if path.relative_to(ROOT / "tests").parts[0] in own:
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module in ("cpq.app", "cpq.app.app"):
                assert "open_app" not in [alias.name for alias in node.names], f"{path.name}, line {node.lineno}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "App":
                assert len(node.args) == 2, f"{path.name}, line {node.lineno}: without a clock"


PROCESSES = {"embedding", "rendering", "rounding", "signing", "spelling"}
"""Modules that are named by a process that everybody knows by that name."""


def test_a_module_is_a_noun_or_a_role():
    assert {Path(path).stem for path in measure.gerunds()} <= PROCESSES


def test_a_module_name_means_one_thing():
    assert measure.shared_names() == {}


def test_packages_do_not_import_each_other_in_a_circle():
    assert measure.cycles() == []


def test_statuses_are_members_of_their_enum():
    found = measure.status_literals()
    assert len(found) < 30, "\n".join(found)


def test_rows_without_a_type_stay_rare():
    assert len(measure.occurrences(r"\bAnyRow\b")) < 25


def test_one_helper_filters_by_tenant():
    assert {place.partition(":")[0] for place in measure.occurrences(measure.TENANT_FILTER)} <= {
        "cpq/storage/tenants.py",
        "cpq/app/audit.py",  # Compares entries in memory.
    }


def test_nothing_is_there_for_tests_alone():
    assert measure.unused() == []


def test_what_nothing_uses_is_noticed(tmp_path: Path):
    (tmp_path / "cpq").mkdir()
    lines = [
        "import click",
        "USED, IDLE_NUMBER = 1, 2",
        "IDLE = 3",
        "def idle(): ...",
        "def main(): return Kept().used",
    ]
    lines += [
        "class Kept:",
        " @property",
        " def used(self): return [USED, main, Command]",
        " def idle_method(self): ...",
    ]
    lines += ["class Command(click.Group):", " def get_command(self): 'click calls it, idle too'"]
    (tmp_path / "cpq" / "made.py").write_text("\n".join(lines))
    names = [place.partition(" ")[2] for place in measure.unused(tmp_path)]
    assert sorted(names) == ["IDLE", "IDLE_NUMBER", "idle", "idle_method"]


def test_the_top_level_is_what_was_agreed():
    agreed = {"cpq", "mcp_facade", "policies", "pdf_templates", "migrations", "tests", "pyproject.toml", "README.md"}
    agreed |= {"Makefile", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "requirements.lock", "requirements-dev.lock"}
    agreed |= {"Dockerfile", "compose.yaml", "server.json"}
    assert {path.name for path in ROOT.iterdir() if not path.name.startswith(".")} == agreed
