"""PURE. Chooses the next link to follow, by the words it shares with what is still to be found. Rules, not a model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass
from functools import cached_property

from cpq.retrieval.search.lexicon import terms
from cpq.retrieval.web.rules.addresses import read_address
from cpq.retrieval.web.rules.page import Link

PROMISING = 0.2
"""A link must name about a fifth of the question by weight; less is a guess."""

NAVIGATION_WORTH = 0.6
OTHER_SITE_WORTH = 0.7
DEPTH_WORTH = 0.9
PATH_LENGTH_MAX = 300
"""Characters of an address that are read; the rest is not written for people."""

_NOT_A_PAGE = re.compile(
    r"\.(?:jpe?g|png|gif|webp|svg|ico|css|js|mjs|json|xml|rss|atom|zip|gz|tgz|bz2|xz|7z|exe|dmg|msi|apk|iso|mp[34]|m4a|"
    r"avi|mov|webm|woff2?|ttf|eot|docx?|xlsx?|pptx?)$",
    re.IGNORECASE,
)
_NOT_ABOUT_IT = re.compile(
    r"(?:^|[/_.?&=-])(?:log-?in|sign-?(?:in|up)|register|logout|account|cart|checkout|basket|privacy|cookies?|imprint|"
    r"impressum|terms(?:-of-(?:use|service))?|legal|careers?|jobs|share|print|feed|rss|tag|author|wp-admin|edit|history)(?:$|[/_.?&=-])",
    re.IGNORECASE,
)
_SOCIAL = ("facebook.com", "twitter.com", "x.com", "linkedin.com", "instagram.com", "youtube.com", "t.me", "reddit.com")


@dataclass(frozen=True)
class Candidate:
    """A link that could be followed, and the page with the link."""

    link: Link
    parent_url: str
    depth: int
    """Depth of the linked page; requested pages have 0."""

    @cached_property
    def words(self) -> tuple[Set[str], Set[str]]:
        """The terms of its text, and those that only its address has; cached, because every choice needs them."""
        path = self.link.url.partition("://")[2].partition("/")[2][:PATH_LENGTH_MAX]
        in_text = terms(self.link.text)
        return in_text, terms(re.sub(r"[/_.?&=%+-]+", " ", path)) - in_text


def choose(
    candidates: Iterable[Candidate], wanted: Collection[str], visited: Collection[str], depth_max: int
) -> Candidate | None:
    """The most promising link, or None. Of equal links the first one."""
    best: Candidate | None = None
    most = 0.0
    sites: dict[str, str] = {}
    for candidate in candidates:
        link = candidate.link
        if link.url in visited or candidate.depth > depth_max or not _may_lead_on(link.url):
            continue
        worth = _worth(candidate, wanted, sites)
        if worth >= PROMISING and worth > most:
            best, most = candidate, worth
    return best


def _worth(candidate: Candidate, wanted: Collection[str], sites: dict[str, str]) -> float:
    """The share of the wanted terms in its text and address, lower for menus, other sites and depth."""
    asked = set(wanted)
    if not asked:
        return 0.0
    link = candidate.link
    in_text, in_address = candidate.words
    named = len(asked & in_text) + 0.5 * len(asked & in_address)
    worth = named / min(len(asked), 4)
    worth *= NAVIGATION_WORTH if link.is_navigation else 1
    worth *= OTHER_SITE_WORTH if _site(link.url, sites) != _site(candidate.parent_url, sites) else 1
    return round(min(1.0, worth) * DEPTH_WORTH ** (candidate.depth - 1), 4)


def _site(url: str, known: dict[str, str]) -> str:
    if url not in known:
        known[url] = read_address(url).host.removeprefix("www.")
    return known[url]


def _may_lead_on(url: str) -> bool:
    host, _, path = url.partition("://")[2].partition("/")
    if _NOT_A_PAGE.search(path.partition("?")[0]) or _NOT_ABOUT_IT.search(f"/{path}"):
        return False
    return not any(host == name or host.endswith(f".{name}") for name in _SOCIAL)
