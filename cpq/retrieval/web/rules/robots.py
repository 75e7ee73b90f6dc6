"""PURE. robots.txt by RFC 9309: the groups for our name, the longest matching rule, `*` and `$`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

AGENT = "quotewright"
ROBOTS_BYTES_MAX = 500 * 1024
"""The minimum that the RFC requires to read; the rest of a longer file is ignored."""

RULES_MAX = 2000
DELAY_SECONDS_MAX = 30
_LINE = re.compile(r"\s*([a-z-]+)\s*:\s*([^#]*)", re.IGNORECASE)


@dataclass(frozen=True)
class Rule:
    pattern: str
    allows: bool


@dataclass(frozen=True)
class Robots:
    """What a site allows us, and the pause it wants between two requests."""

    rules: tuple[Rule, ...] = ()
    delay_seconds: int = 0

    def allows(self, target: str) -> bool:
        """The longest matching rule decides; of two equally long ones, the one that allows."""
        if target == "/robots.txt":
            return True
        wanted = _plain(target)
        fitting = [(len(rule.pattern), rule.allows) for rule in self.rules if _fits(rule.pattern, wanted)]
        return max(fitting, default=(0, True))[1]


EVERYTHING = Robots()
NOTHING = Robots((Rule("/", allows=False),))


def read_robots(text: str) -> Robots:
    """The rules for us: of groups with our name, else of `*`. Unknown lines are skipped."""
    groups: dict[str, list[tuple[str, str]]] = {}
    names: set[str] = set()
    is_naming = False
    for line in text.removeprefix("\ufeff").splitlines():
        found = _LINE.match(line)
        if not found:
            continue
        key, value = found[1].lower(), found[2].strip()
        if key == "user-agent":
            name = value.lower()
            names = names if is_naming else set()
            if name == "*" or (name and AGENT.startswith(name)):
                names.add(name)
            is_naming = True
        elif key in ("allow", "disallow", "crawl-delay"):
            is_naming = False
            for name in names:
                group = groups.setdefault(name, [])
                if len(group) < RULES_MAX:
                    group.append((key, value))
    ours = [name for name in groups if name != "*"]
    lines = [line for name in ours or ["*"] for line in groups.get(name, ())]
    rules = [Rule(_plain(value), key == "allow") for key, value in lines if key != "crawl-delay" and value]
    delays = [_seconds(value) for key, value in lines if key == "crawl-delay"]
    return Robots(tuple(rules[:RULES_MAX]), max(delays, default=0))


def _fits(pattern: str, target: str) -> bool:
    """`*` matches any run, a final `$` the end. Matched part by part, so that no pattern is slow."""
    is_whole = pattern.endswith("$")
    first, *others = pattern.removesuffix("$").split("*")
    if not target.startswith(first):
        return False
    if not others:
        return not is_whole or target == first
    place = len(first)
    last = others.pop()
    for part in others:
        found = target.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return target.endswith(last) and len(target) - len(last) >= place if is_whole else target.find(last, place) >= 0


def _plain(path: str) -> str:
    """Percent-encoded in one way, so that `/caf%C3%A9` and `/café` are equal."""
    return quote(unquote_to_bytes(path), safe="/?:@!$&'*+,;=~-._")


def _seconds(value: str) -> int:
    """Whole seconds, rounded up."""
    found = re.fullmatch(r"([0-9]{1,6})(\.[0-9]{1,6})?", value)
    return min(int(found[1]) + bool(found[2]), DELAY_SECONDS_MAX) if found else 0
