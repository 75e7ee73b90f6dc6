"""Reads the text of a PDF in a process of its own, because a PDF is a program that a stranger wrote.

`python -m cpq.retrieval.web.pdf` reads the file from stdin and writes JSON. A crash, a loop or a flood ends there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import pypdfium2

try:
    import resource
except ImportError:  # Not on Windows, where only the time limit applies.
    resource = None  # type: ignore[assignment]

PAGES_MAX = 500
CHARACTERS_MAX = 5_000_000
CPU_SECONDS_MAX = 20
WAIT_SECONDS_MAX = 30
MEMORY_BYTES_MAX = 1 << 30
_ENVIRONMENT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "LANG", "LC_ALL")
"""The variables that the child process needs; never tokens or passwords."""


@dataclass(frozen=True)
class PdfText:
    title: str
    pages: tuple[str, ...]
    is_whole: bool
    """False when the file has more pages or text than the limits."""


def read_pdf(body: bytes) -> PdfText:
    """The text of each page. ValueError when it is not a PDF that can be read within the limits."""
    # -P: a file in the current folder never replaces one of our modules.
    command = [sys.executable, "-P", "-m", "cpq.retrieval.web.pdf"]
    known = {name: value for name, value in os.environ.items() if name in _ENVIRONMENT}
    try:
        ran = subprocess.run(  # noqa: S603 - our own interpreter and module; the file goes in by stdin
            command, input=body, capture_output=True, timeout=WAIT_SECONDS_MAX, check=True, env=known
        )
        answer = json.loads(ran.stdout)
    except (subprocess.SubprocessError, OSError, ValueError):
        raise ValueError("the PDF cannot be read") from None
    return PdfText(answer["title"], tuple(answer["pages"]), answer["is_whole"])


def main() -> None:
    """The child process: sets limits first, then reads the file."""
    _limit()
    document = pypdfium2.PdfDocument(sys.stdin.buffer.read())
    pages: list[str] = []
    size = 0
    for number in range(min(len(document), PAGES_MAX)):
        text = document[number].get_textpage().get_text_bounded()
        pages.append(text[: CHARACTERS_MAX - size])
        size += len(text)
        if size >= CHARACTERS_MAX:
            break
    title = document.get_metadata_dict().get("Title", "")
    is_whole = len(pages) == len(document) and size <= CHARACTERS_MAX
    json.dump({"title": title, "pages": pages, "is_whole": is_whole}, sys.stdout)


def _limit() -> None:
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS_MAX, CPU_SECONDS_MAX))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
