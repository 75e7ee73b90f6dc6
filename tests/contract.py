"""The numbered behaviours of the contract, and which tests prove them."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent

BEHAVIOURS = {
    "Q-01": "a failure is the envelope, whatever failed",
    "Q-02": "codes are few; an internal error leaks nothing and can be found by its trace id",
    "Q-03": "errors name the field, what is allowed, and the next call",
    "Q-04": "a policy breach is not an error",
    "Q-05": "identifiers are trimmed, blank ones refused",
    "Q-06": "money is exact from the JSON text and back",
    "Q-07": "timestamps are ISO-8601 UTC, dates ISO dates",
    "Q-08": "pages: defaults, cap, true totals, exact has_more",
    "Q-09": "numbers, booleans and arrays sent as text are understood",
    "Q-10": "every tool is fully described; structured content equals text",
    "Q-11": "idempotency keys",
    "Q-12": "one audit record for every invocation",
    "Q-13": "catalog_search: query or category; filters before paging",
    "Q-14": "catalog_search: any order, prefixes, codes, typing errors; stable order",
    "Q-15": "catalog_search: include_relationships is ignored",
    "Q-16": "catalog_get: attributes, prices, specs, relationships, options",
    "Q-17": "quote_create: line ids and order",
    "Q-18": "quote_create: bounds of its arguments",
    "Q-19": "quote_create: all problems together; nothing stored on error",
    "Q-20": "quote_create: line attributes and notes come back",
    "Q-21": "quote_create: the worked example",
    "Q-22": "quote_get: pricing absent or complete",
    "Q-23": "quote_get: names, dates, creator",
    "Q-24": "quote_price: requested discount and what the policy sees",
    "Q-25": "quote_price: everything re-adds",
    "Q-26": "quote_price: the worked example",
    "Q-27": "quote_price: deterministic",
    "Q-27a": "quote_price: stored only in draft",
    "Q-28": "quote_price: approval_required and severities",
    "Q-29": "quote_list: filters, order, unknown status",
    "Q-30": "approval_request: justification and expiry",
    "Q-31": "approval_request: when it is a conflict",
    "Q-32": "approval_request: bound to version and price",
    "Q-33": "approval_status: derived state",
    "Q-34": "approval_pending: order, count, bound total",
    "Q-35": "quote_pdf: a real file, the same bytes",
    "Q-36": "quote_pdf: stamped while it may not go out",
}

_NUMBER = re.compile(r"^test_q(\d\d[a-z]?)_")


def proofs() -> dict[str, list[str]]:
    """For each behaviour the tests that carry its number in their name."""
    found: dict[str, list[str]] = {number: [] for number in BEHAVIOURS}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (match := _NUMBER.match(node.name)):
                found.setdefault(f"Q-{match[1]}", []).append(f"{path.relative_to(TESTS)}::{node.name}")
    return found


def table() -> str:
    """The table in tests/CONTRACT.md."""
    rows = ["| behaviour | says | tests |", "|---|---|---|"]
    for number, tests in proofs().items():
        names = "<br>".join(f"`{name.split('::')[1]}`" for name in tests) or "**none yet**"
        rows.append(f"| {number} | {BEHAVIOURS[number]} | {names} |")
    missing = [number for number, tests in proofs().items() if not tests]
    head = "# Which tests prove which behaviour of the contract\n\nWritten by `python -m tests.docs`.\n\n"
    return head + "\n".join(rows) + f"\n\nWithout a test yet ({len(missing)}): {', '.join(missing) or 'none'}.\n"
