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
    "R-01": "retrieval: filter first, then rank; nothing that passes is lost",
    "R-02": "retrieval: failures are the envelope, an empty result is a success",
    "R-03": "retrieval: order is score, then a stable key; the same question, the same bytes",
    "R-04": "retrieval: local vectors; without the model words decide, and the answer says so",
    "R-05": "retrieval: text is marked as data and returned whole; vectors stay inside",
    "R-06": "retrieval: numbers clamp, blank queries fail",
    "R-07": "retrieval: reads never wait for a re-index",
    "C2.01": "equipment, past_quotes: read-only toolsets that stand alone",
    "C2.02": "search_equipment: minimum and maximum of each number",
    "C2.03": "get_product: an unknown model is an error",
    "C2.04": "get_specs: one row for each model",
    "C2.05": "search_past_quotes: quotes for similar projects",
    "C2.06": "get_quote: a past quote with its lines",
    "C2.07": "search_line_items: the line, its score, its source",
    "C2.08": "filters come first, for any filter and any k",
    "C2.09": "without a filter everything is ranked",
    "C2.10": "unknown lubrication never passes for a match",
    "C2.11": "search_line_items: the category filter",
    "C2.12": "confidence bands with fixed bounds",
    "C2.13": "all probable_miss reads as a failed retrieval",
    "C2.14": "a block of characteristics for each category",
    "C2.15": "the house template, part by part",
    "C2.16": "the draft conventions",
    "C2.17": "no match is an empty result",
    "C2.18": "fewer rows than asked for are not padded",
    "C2.19": "concurrent searches",
    "C2.20": "an unusable model is a clear error",
    "C2.21": "long descriptions are returned whole",
    "C2.22": "a small corpus never answers with nothing although it has data",
    "C2.23": "golden: 100HP oilless food grade",
    "C2.24": "golden: the complete spec of the QMB30",
    "C2.25": "golden: nonsense finds nothing",
}

_KINDS = {"q": "Q-", "r": "R-", "c2_": "C2."}
_NUMBERS = re.compile(r"^test_((?:(?:q|r|c2_)\d\d[a-z]?_)+)")
_NUMBER = re.compile(r"(q|r|c2_)(\d\d[a-z]?)_")


def proofs() -> dict[str, list[str]]:
    """For each behaviour the tests that carry its number in their name."""
    found: dict[str, list[str]] = {number: [] for number in BEHAVIOURS}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (match := _NUMBERS.match(node.name)):
                for kind, number in _NUMBER.findall(match[1]):
                    name = f"{path.relative_to(TESTS)}::{node.name}"
                    found.setdefault(f"{_KINDS[kind]}{number}", []).append(name)
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
