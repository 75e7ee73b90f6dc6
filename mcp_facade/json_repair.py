"""PURE. Makes any JSON text parsable for the SDK, so that a hostile value reaches validation."""

from __future__ import annotations

import re

MESSAGE_BYTES_MAX = 4 * 1024 * 1024
HEAL_BYTES_MAX = 1024 * 1024
DEPTH_MAX = 64
NUMBER_LENGTH_MAX = 400
REFUSED = b'"\\u0000"'
"""A text that no argument accepts; it replaces an unreadable value."""

_ESCAPE = re.compile(
    rb"(?P<whole>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|\\(?!u[dD][89a-fA-F][0-9a-fA-F]{2}).)"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}",
    re.DOTALL,
)
# A string may be unterminated: otherwise the search would start again at every quote inside it.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{\]}]|[0-9.eE+-]+', re.DOTALL)


def heal(text: bytes) -> bytes:
    """The same JSON with half characters, oversized numbers and deep nesting replaced by a refused value.

    For text that a strict parser refused. Text that is not JSON stays invalid, and is refused later.
    """
    return _cut_depth(_ESCAPE.sub(lambda escape: escape["whole"] or rb"\u0000", text))


def _cut_depth(text: bytes) -> bytes:
    """Drop values nested deeper than any tool needs, and oversized numbers; brackets inside strings do not count."""
    kept = []
    depth = position = 0
    for token in _TOKEN.finditer(text):
        start = token[0][:1]
        if depth < DEPTH_MAX:
            kept.append(text[position : token.start()])
        depth += start in b"[{"
        if depth < DEPTH_MAX:
            is_endless = start not in b'"[{]}' and len(token[0]) >= NUMBER_LENGTH_MAX
            kept.append(REFUSED if is_endless else token[0])
        elif depth == DEPTH_MAX and start in b"[{":
            kept.append(REFUSED)
        depth -= start in b"]}"
        position = token.end()
    return b"".join([*kept, text[position:]])
