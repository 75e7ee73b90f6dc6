"""Watches every statement that the product sends in this process: on a tenant's table it must name the tenant."""

import re
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from cpq.storage.schema import metadata
from cpq.storage.statements import driver_cursor

ROOT = Path(__file__).parent.parent.parent
PRODUCT = (str(ROOT / "cpq"), str(ROOT / "mcp_facade"))
TESTS = str(ROOT / "tests")

OVER_ALL_TENANTS = {
    "cpq/app/tenant_registry.py": {"listed"},
    "cpq/app/tokens.py": {"has_tokens"},
    "cpq/services/approvals/repository.py": {"tenants_overdue", "tenants_with_held_due"},
    "cpq/services/backups/snapshot.py": {"save"},
    "cpq/services/backups/database_copy.py": {"copy"},
    "cpq/services/backups/restoration.py": {"restore"},
    "cpq/services/backups/target.py": {"tenants"},
    "cpq/services/catalog/word_index.py": {"clear", "forget", "index", "tenants"},
    "cpq/services/documents/repository.py": {"tenants"},
    "cpq/services/events/claims.py": {"due_elsewhere"},
    "cpq/services/tenant_removal.py": {"_only_its_documents"},
    "cpq/services/quotes/expiry.py": {"_tenants_over"},
    "cpq/services/agreements/renewals.py": {"_tenants_due"},
}
"""The only functions that read over all tenants: whose token or work it is must be found before the tenant is known.
Backups and copies are of all tenants, and only the operator makes them.
`index` and `forget` delete by row numbers, which they have read by tenant; `index` counts them over all."""

TABLES = {*metadata.tables, "search_key", "catalog_index"}

_NAMED = r'"?(\w+)"?(?:\s+AS\s+"?(\w+)"?)?'
_REFERENCES = re.compile(rf"\b(FROM|JOIN|UPDATE|INTO)\s+({_NAMED}(?:,\s*{_NAMED})*)")
_NAME = re.compile(_NAMED)
_EQUALS = re.compile(r"(?:(\w+)\.)?\btenant_id\s*=\s*(?:(\w+)\.tenant_id\b|(\?|%\(\w+\)s|:\w+))")
_MATCH = re.compile(r"\bcatalog_index MATCH\b")
_TERM = re.compile(r'"([^"]*)"')
_SCOPED = re.compile(r"[a-z2-7]{8}[sntx]")
"""SQLite's word index has no tenant; each of its terms begins with the scope of one, then the kind of word."""

_harmless: set[str] = set()
found: list[str] = []
"""What was sent without its tenant since the last look."""


def is_of_one_tenant(statement: str, values: Any = None) -> bool:
    """Whether each reference to a table is bound to the tenant that is given, directly or through a join."""
    references: Counter[str] = Counter()
    for keyword, names, *_ in _REFERENCES.findall(statement):
        for name, alias in _NAME.findall(names):
            if name in TABLES and keyword == "INTO":
                columns = statement.partition("(")[2].partition(")")[0]
                if "tenant_id" not in re.split(r"[\s,]+", columns):
                    return False
            elif name in TABLES:
                references[alias or name] += 1
    if _MATCH.search(statement):
        del references["catalog_index"]
        if values is not None and not _is_of_one_scope(values):
            return False
    bound: Counter[str] = Counter()
    groups = {name: {name} for name in references}
    given_to: set[str] = set()
    for left, right, given in _EQUALS.findall(statement):
        sides = {left, right} - {""} if left else set(references)  # A bare column is of the only table that has one.
        bound.update(sides)
        together = set().union(*(groups.get(name, {name}) for name in sides))
        groups |= dict.fromkeys(together, together)
        if given:
            given_to |= sides
    return all(bound[name] >= count and groups[name] & given_to for name, count in references.items())


def is_given_once(statement: str, values: Any) -> bool:
    """Whether the tenants that a statement gives for its tables are the same one."""
    tenants = set()
    for equals in _EQUALS.finditer(statement):
        place = equals[3]
        if place == "?" and isinstance(values, tuple):
            tenants.add(values[statement[: equals.start(3)].count("?")])
        elif place and place.startswith("%(") and isinstance(values, dict):
            tenants.add(values[place[2:-2]])
    return len(tenants) <= 1


def _is_of_one_scope(values: Any) -> bool:
    terms = [term for value in values if isinstance(value, str) for term in _TERM.findall(value)]
    return bool(terms) and all(map(_SCOPED.match, terms)) and len({term[:8] for term in terms}) == 1


def watch() -> None:
    """From now on note each statement that is sent, by SQLAlchemy's cursors and by our own."""
    event.listen(sa.Engine, "before_cursor_execute", lambda _connection, _cursor, text, values, *_: _look(text, values))
    enter = driver_cursor.__enter__

    def watched(self: Any) -> Any:
        _look(self._text)
        return enter(self)

    driver_cursor.__enter__ = watched  # type: ignore[method-assign] # It sends what SQLAlchemy's events do not show.


def _look(statement: str, values: Any = None) -> None:
    if statement not in _harmless:
        if not is_of_one_tenant(statement, values):
            _note(statement)
        elif not _MATCH.search(statement):
            _harmless.add(statement)
    if statement.count("tenant_id") > 1 and not is_given_once(statement, values):
        _note(statement)


def _note(statement: str) -> None:
    if sender := _sender():
        found.append(f"{sender}: {statement}")


def _sender() -> str | None:
    """The function of the product that sent it; None for a test's own statement and for those that may."""
    frame: FrameType | None = sys._getframe(1)
    sender = None
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(TESTS) and path != __file__ and sender is None:
            return None
        if path.startswith(PRODUCT):
            place = str(Path(path).relative_to(ROOT))
            if frame.f_code.co_name in OVER_ALL_TENANTS.get(place, ()) or place.startswith("cpq/storage/migrations"):
                return None
            sender = sender or (f"{place}:{frame.f_lineno}" if not place.startswith("cpq/storage") else None)
        frame = frame.f_back
    return sender
