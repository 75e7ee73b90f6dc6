"""The voice: plain English in code, messages, pages and documents. These words made readers stop and translate."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

WORDS = {
    "reckon": "compute, price, count",
    "told": "shown, published, said in the answer",
    "tell": "show, publish, say",
    "tells": "shows, publishes, says",
    "said": "name the thing",
    "whoever": "everybody who, the caller who",
    "whom": "say who does it",
    "so many": "a number, this many",
    "anew": "again",
    "dear": "expensive",
    "in vain": "without effect",
    "as what": "how, in which role",
    "is none": "is not one",
    "of which": "start a new sentence",
    "for ever": "always",
    "lent": "delegated",
    "speak": "applies, is violated",
    "speaks": "applies, is violated",
    "farthest": "highest",
}
"""What to avoid, and what to write instead."""

AVOIDED = re.compile(r"\b(reckon\w*|" + "|".join(word for word in WORDS if word != "reckon") + r")\b", re.IGNORECASE)

ALLOWED = ("is None", " is none %}", "raw.tell()", "tell me")
"""Python and Jinja, and what a caller may ask."""

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "cpq/DECISIONS.md", "policies/README.md")
FILES = sorted(
    [path for folder in ("cpq", "mcp_facade") for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".html")]
    + list((ROOT / "cpq" / "guide").glob("*.md"))
    + [ROOT / name for name in (*DOCUMENTS, "pdf_templates/README.md")]
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_text_is_written_in_plain_words(path: Path):
    found = [
        f"line {number}: {match[0]!r} (write: {WORDS.get(match[0].lower(), WORDS['reckon'])})"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for match in AVOIDED.finditer(_without_allowed(line))
    ]
    assert not found, "\n".join(found)


def _without_allowed(line: str) -> str:
    for words in ALLOWED:
        line = line.replace(words, "")
    return line
