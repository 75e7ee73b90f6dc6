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
    "Q-27b": "quote_price: tax groups, and what a period of a recurring line costs",
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
    "R-07": "retrieval: reads never wait for a re-index; what is corrupt keeps its last good state",
    "R-08": "retrieval: paths cannot leave their root",
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

BEHAVIOURS |= {
    "D3.01": "search_docs: passages, score, metadata, total_chunks, query_ms",
    "D3.02": "search_docs: a blank query is refused",
    "D3.03": "search_docs: top_k is clamped to 1 to 20",
    "D3.04": "search_docs: filters come first; one that matches nothing finds nothing",
    "D3.05": "search_docs: no threshold unless one is set",
    "D3.06": "search_docs: order is score, then path",
    "D3.07": "search_docs: patterns, and malformed ones do no harm",
    "D3.08": "search_docs: a very long query works",
    "D3.09": "an empty folder is no error",
    "D3.10": "Markdown comes as it is written",
    "D3.11": "get_page: all sections in order",
    "D3.12": "get_page: the title is the first h1, else the file name",
    "D3.13": "get_page: leading ./ and / do not matter",
    "D3.14": "get_page: absolute paths inside the root only",
    "D3.15": "get_page: an unknown page names the next step",
    "D3.16": "get_page: fifty sections and more",
    "D3.17": "get_section: the whole breadcrumb; every heading can be fetched",
    "D3.18": "get_section: parts are put together",
    "D3.19": "get_section: an unknown section names the next step",
    "D3.20": "get_section: Unicode is compared as it is written",
    "D3.21": "list_pages: outline, size, order",
    "D3.22": "list_pages: a folder with and without its slash",
    "D3.23": "list_pages: nothing to list",
    "D3.24": "get_status: server, index, embedding",
    "D3.25": "get_status: git facts, which never fail",
    "D3.26": "get_status: true counts",
    "D3.27": "a unique phrase is found first",
    "D3.28": "every query tool sees what was just written",
    "D3.29": "calls during a re-index see the old state and do not wait",
    "D3.30": "every error names the next step",
    "D3.31": "people's questions find their section",
    "E3.01": "cortex_search: request and response",
    "E3.02": "cortex_search: vectors never leave the server",
    "E3.03": "cortex_search: chunk types are alternatives",
    "E3.04": "cortex_search: tags must all be there",
    "E3.05": "where tags come from",
    "E3.06": "cortex_search: order by score, the same every time",
    "E3.07": "cortex_search: filters come first",
    "E3.08": "cosine similarity over 384 dimensions",
    "E3.09": "a least score, 0 unless set",
    "E3.10": "files written or new are noticed",
    "E3.11": "half a second of quiet, then one reload",
    "E3.12": "a reload is seen whole or not at all",
    "E3.13": "searches go on during a reload",
    "E3.14": "corrupt or missing files keep the old state",
    "E3.15": "a missing folder fails at the start",
    "E3.16": "a malformed file is skipped at the start",
    "E3.17": "a model that cannot be used fails at the start",
    "E3.18": "vectors of another size fail at the start",
    "E3.19": "a blank query is refused",
    "E3.20": "the limit is clamped",
    "E3.21": "a late embedding is a TIMEOUT",
    "E3.22": "a failed search is an INTERNAL_ERROR",
    "E3.23": "the folder is found as Cortex finds it",
    "E3.24": "signals end the server and its watchers",
    "E3.25": "the tool only reads and stands beside others",
    "E3.26": "queries and passages are embedded each in their way",
}

BEHAVIOURS |= {
    "F3.01": "answer: its arguments; several pages, the first is the seed",
    "F3.02": "search: nothing is fetched, no link followed, no trace",
    "F3.03": "status: the corpus in figures, and each page",
    "F3.04": "brief: the order of its sections",
    "F3.05": "brief: sources by number, each heading once",
    "F3.06": "brief: evidence by score, with what is known of each passage",
    "F3.07": "brief: images only where there are some",
    "F3.08": "brief: the way through links as a tree",
    "F3.09": "brief: figures always, notes under their conditions",
    "F3.10": "brief: citations word for word, with where they stand",
    "F3.11": "budget: what comes first, and what gives way",
    "F3.12": "budget: how many passages are left out is shown",
    "F3.13": "budget: tokens are counted as cl100k_base counts them",
    "F3.14": "progress: every phase is shown",
    "F3.15": "progress: over stdio too; the result is one message",
    "F3.16": "conversion: HTML is converted, Markdown stays",
    "F3.17": "conversion: tables, aligned, spans filled",
    "F3.18": "conversion: listings in fences, with their language",
    "F3.19": "conversion: formulas, the author's own source first",
    "F3.20": "conversion: definition lists",
    "F3.21": "conversion: images with whole addresses",
    "F3.22": "conversion: admonitions",
    "F3.23": "conversion: the rest as paragraphs; what fails is stripped with a warning",
    "F3.24": "failure: [ERROR] in words, not to be answered from memory, and the envelope",
    "F3.25": "failure: a time-out advises to skip expansion",
    "F3.26": "nothing found: the normal layout",
    "F3.27": "part of it failed: the rest is shown as it is",
    "F3.28": "transport: stdio unless set otherwise, in three ways",
    "F3.29": "transport: a bearer token where one is set",
    "F3.30": "settings: names, defaults",
    "F3.31": "one engine for the life of the server",
    "F3.32": "nothing but protocol on stdout",
    "F3.33": "what is logged at which level",
    "F3.34": "many calls at once over HTTP",
}

BEHAVIOURS |= {
    "G-01": "selling models: a line picks one, left out the default decides, else a refusal with choices",
    "G-08": "quantities with up to 3 decimals where the product's unit says so",
    "G-02": "a line of no catalogue has a name and a price, and the deal desk looks at it",
    "G-03": "a price given on a line, with its reason, is a discount to every policy",
    "G-04": "amounts off a line or the quote, and a total to reach",
    "G-05": "a line has its own start, term or end",
    "G-06": "segments of a ramp have their own quantity, price or discount",
    "G-07": "usage lines: rate card on the quote, commitments in the total, estimates apart, minimum and maximum spend",
    "G-09": "several taxes on a line where the zone says so; a group is the tax, the category code and the rate",
    "G-10": "derived currency: where a price book allows it, at a dated rate, rounded by its rule",
    "G-11": "valid_until may be given, and the policies see validity_days",
    "A-01": "accepting a quote makes one order in the same transaction",
    "A-02": "the billing schedule of an order tiles its term and adds up to its net",
    "A-10": "an agreement is what is owned on any day, as a fold of its orders",
    "A-11": "agreements are listed by account, status and end",
    "A-12": "an amendment is the price after less the price before",
    "A-13": "a renewal starts the day after the end, or earlier; several become one",
    "A-14": "a cancellation gives back what the terms of the price say",
    "A-15": "a change lives like any quote, and is void once its agreement has moved",
    "A-16": "the amount due of a change is the difference of the billing schedules",
    "A-17": "a line without an end changes by the period, and its notice dates are listed",
}

_KINDS = {"q": "Q-", "g": "G-", "a": "A-", "r": "R-", "c2_": "C2.", "d3_": "D3.", "e3_": "E3.", "f3_": "F3."}
_NUMBERS = re.compile(r"^test_((?:(?:q|g|a|r|c2_|d3_|e3_|f3_)\d\d[a-z]?_)+)")
_NUMBER = re.compile(r"(q|g|a|r|c2_|d3_|e3_|f3_)(\d\d[a-z]?)_")


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
    head = "# Which tests prove which behaviour of the contract\n\nWritten by `python -m tests.generate`.\n\n"
    return head + "\n".join(rows) + f"\n\nWithout a test yet ({len(missing)}): {', '.join(missing) or 'none'}.\n"


def summary() -> list[list[str]]:
    """The same without the names of the tests, for the guide."""
    proven = proofs()
    rows = [[number, says, str(len(proven[number]))] for number, says in BEHAVIOURS.items()]
    return [["behaviour", "what it says", "tests"], *rows]
