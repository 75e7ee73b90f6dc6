"""PURE. The way an answer took through linked pages, drawn as a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Step:
    """One page that was followed to: what it brought, how long it took, or why it failed."""

    url: str
    parent_url: str
    depth: int
    chunks: int
    score_before: float
    score_after: float
    milliseconds: int
    failure: str | None = None
    stop_reason: str | None = None
    """On the last step, why it was the last."""


def trace_lines(seed_url: str, steps: Sequence[Step]) -> list[str]:
    """The common start of the addresses once, then the tree; addresses elsewhere stand in full."""
    base = _base([seed_url, *(step.url for step in steps if _is_same_site(step.url, seed_url))])
    first = steps[0].score_before if steps else 0.0
    lines = [f"Base: {base}", "", f"{_short(seed_url, base)} (seed, score: {first:.2f} → {first:.2f})"]
    reached = {step.url for step in steps}

    def draw(parent: str | None, indent: str) -> None:
        # A step whose parent is not in the tree (an extra page that was asked for) hangs on the seed.
        below = [
            s for s in steps if (s.parent_url if s.parent_url in reached else seed_url) == parent and s.url != parent
        ]
        for place, step in enumerate(below):
            is_last = place == len(below) - 1
            lines.append(f"{indent}{'└── ' if is_last else '├── '}{_node(step, seed_url, base)}")
            inner = indent + ("    " if is_last else "│   ")
            if step.stop_reason:
                lines.append(f"{inner}[stopped: {step.stop_reason}]")
            draw(step.url, inner)

    draw(seed_url, "")
    return lines


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
    """What all addresses of the site begin with, cut at a slash."""
    paths = [url.partition("?")[0].split("/")[:-1] for url in urls]
    common = [parts[0] for parts in zip(*paths, strict=False) if len(set(parts)) == 1]
    return "/".join(common) + "/"


def _short(url: str, base: str) -> str:
    return "/" + url[len(base) :] if url.startswith(base) else url


def _is_same_site(url: str, other: str) -> bool:
    return urlsplit(url).netloc == urlsplit(other).netloc
