"""Only `transitions` moves a quote, and it leaves alone what a move is not about."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from cpq.app import App, Tx
from cpq.base.errors import Code, CpqError
from cpq.domain.quotes.lifecycle import Move, QuoteStatus, VersionStatus
from cpq.services.quotes import repository, transitions
from tests.support.engine import Tools, write
from tests.support.quotes import new_quote

ROOT = Path(__file__).parents[3]
WRITERS = {"cpq/services/quotes/repository.py", "cpq/services/quotes/transitions.py"}


def test_nobody_else_writes_the_rows_of_a_quote():
    names = {"update_root", "update_version", "add_version", "replace_version"}
    statements = re.compile(r"\b(?:update|insert|delete)\((?:tables\.)?quote(?:_version)?\)")
    for package in ("cpq", "mcp_facade"):
        for path in (ROOT / package).rglob("*.py"):
            if str(path.relative_to(ROOT)) in WRITERS:
                continue
            text = path.read_text(encoding="utf-8")
            nodes = list(ast.walk(ast.parse(text)))
            used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
            used |= {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
            assert not used & names, path
            assert not statements.search(text), path


def test_moves_in_turn_are_one_edit(app: App):
    quote_id = new_quote(Tools(app))

    def work(tx: Tx) -> dict[str, Any]:
        before = repository.load(tx, quote_id, for_update=True)
        after = transitions.apply(tx, before, Move.SUBMIT, Move.APPROVE)
        assert after.edit == before.edit + 1
        assert (after.status, after.version.status) == (QuoteStatus.APPROVED, VersionStatus.APPROVED)
        assert (after.current_version, after.version.reason) == (before.current_version, None)
        return {}

    write(app, work)


def test_a_move_that_the_table_does_not_have_changes_nothing(app: App):
    quote_id = new_quote(Tools(app))

    def work(tx: Tx) -> dict[str, Any]:
        before = repository.load(tx, quote_id, for_update=True)
        with pytest.raises(CpqError) as refused:
            transitions.apply(tx, before, Move.SEND, Move.APPROVE)
        assert refused.value.code is Code.CONFLICT
        assert repository.load(tx, quote_id) == before
        return {}

    write(app, work)
