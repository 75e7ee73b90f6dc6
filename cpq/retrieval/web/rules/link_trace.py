"""PURE. The path of an answer through linked pages, drawn as a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Step:
    """One followed page: what it added, how long it took, or why it failed."""

    url: str
    parent_url: str
    depth: int
    chunks: int
    score_before: float
    score_after: float
    milliseconds: int
    failure: str | None = None
    stop_reason: str | None = None
    """Why the answer stopped; on the last step only."""


def trace_lines(seed_url: str, steps: Sequence[Step]) -> list[str]:
    """The common start of the addresses once, then the tree; addresses on other sites in full."""
    base = _base([seed_url, *(step.url for step in steps if _is_same_site(step.url, seed_url))])
    first = steps[0].score_before if steps else 0.0
    lines = [f"Base: {base}", "", f"{_short(seed_url, base)} (seed, score: {first:.2f} → {first:.2f})"]
    parents = [_parent(seed_url, steps, number) for number in range(len(steps))]

    def draw(parent: int | None, indent: str) -> None:
        below = [number for number, found in enumerate(parents) if found == parent]
        for number in below:
            step = steps[number]
            is_last = number == below[-1]
            lines.append(f"{indent}{'└── ' if is_last else '├── '}{_node(step, seed_url, base)}")
            inner = indent + ("    " if is_last else "│   ")
            if step.stop_reason:
                lines.append(f"{inner}[stopped: {step.stop_reason}]")
            draw(number, inner)

    draw(None, "")
    return lines


def _parent(seed_url: str, steps: Sequence[Step], number: int) -> int | None:
    """The earlier step that led to this one; only earlier ones, so that pages that link to each other make a tree.

    None is the seed, also for steps from a page outside the tree, such as a second requested page.
    """
    url = steps[number].parent_url
    return None if url == seed_url else next((at for at in range(number) if steps[at].url == url), None)


def _node(step: Step, seed_url: str, base: str) -> str:
    is_external = not _is_same_site(step.url, seed_url)
    facts = ["external"] if is_external else []
    facts += [f"depth {step.depth}"]
    if step.failure is None:
        facts += [f"+{step.chunks} chunks", f"score: {step.score_before:.2f} → {step.score_after:.2f}"]
    facts.append(f"{step.milliseconds}ms")
    failed = f" [failed: {step.failure}]" if step.failure else ""
    return f"{step.url if is_external else _short(step.url, base)} ({', '.join(facts)}){failed}"


def _base(urls: Sequence[str]) -> str:
    """The common beginning of all addresses of the site, cut at a slash."""
    paths = [url.partition("?")[0].split("/")[:-1] for url in urls]
    common = takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False))
    return "".join(f"{parts[0]}/" for parts in common)


def _short(url: str, base: str) -> str:
    return "/" + url[len(base) :] if url.startswith(base) else url


def _is_same_site(url: str, other: str) -> bool:
    return urlsplit(url).netloc == urlsplit(other).netloc
