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
    "cpq/app/tokens.py": {"has_tokens", "verify_token"},
    "cpq/services/approvals/repository.py": {"tenants_overdue"},
    "cpq/services/catalog/word_index.py": {"index"},
    "cpq/services/events/claims.py": {"tenant_due"},
    "cpq/services/quotes/expiry.py": {"_tenants_over"},
}
"""The only functions that read over all tenants: whose token or work it is must be found before the tenant is known.
`index` deletes by row numbers, which it has read by tenant, and counts them over all."""

TABLES = {*metadata.tables, "search_key"}

_NAMED = r'"?(\w+)"?(?:\s+AS\s+"?(\w+)"?)?'
_REFERENCES = re.compile(rf"\b(FROM|JOIN|UPDATE|INTO)\s+({_NAMED}(?:,\s*{_NAMED})*)")
_NAME = re.compile(_NAMED)
_EQUALS = re.compile(r"(?:(\w+)\.)?\btenant_id\s*=\s*(?:(\w+)\.tenant_id\b|(\?|%\(|:))")

_harmless: set[str] = set()
found: list[str] = []
"""What was sent without its tenant since the last look."""


def is_of_one_tenant(statement: str) -> bool:
    """Whether each reference to a table is bound to a tenant, and one of them to a tenant that is given."""
    references: Counter[str] = Counter()
    for keyword, names, *_ in _REFERENCES.findall(statement):
        for name, alias in _NAME.findall(names):
            if name in TABLES and keyword == "INTO":
                columns = statement.partition("(")[2].partition(")")[0]
                if "tenant_id" not in re.split(r"[\s,]+", columns):
                    return False
            elif name in TABLES:
                references[alias or name] += 1
    bound: Counter[str] = Counter()
    is_given = False
    for left, right, given in _EQUALS.findall(statement):
        bound.update({left, right} - {""} if left else references)  # A bare column is of the only table there is.
        is_given = is_given or bool(given)
    return not references or (is_given and all(bound[name] >= count for name, count in references.items()))


def watch() -> None:
    """From now on note each statement that is sent, by SQLAlchemy's cursors and by our own."""
    event.listen(sa.Engine, "before_cursor_execute", lambda _connection, _cursor, text, *_: _look(text))
    enter = driver_cursor.__enter__

    def watched(self: Any) -> Any:
        _look(self._text)
        return enter(self)

    driver_cursor.__enter__ = watched  # type: ignore[method-assign] # It sends what SQLAlchemy's events do not show.


def _look(statement: str) -> None:
    if statement in _harmless:
        return
    if is_of_one_tenant(statement):
        _harmless.add(statement)
    elif sender := _sender():
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
