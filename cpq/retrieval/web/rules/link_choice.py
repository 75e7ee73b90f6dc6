"""PURE. Chooses the next link to follow, by the words and the meaning it shares with what is still to be found."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

from cpq.retrieval.search.lexicon import stem, terms
from cpq.retrieval.web.rules.addresses import read_address
from cpq.retrieval.web.rules.page import Link, names

PROMISING = 0.2
"""A link must name about a fifth of the question by weight; less is a guess."""

NEAR_FROM, NEAR_TO = 0.22, 0.62
"""The similarity of a link that has nothing to do with the question, and of one that names it in other words."""

ASKED_FOR_WORTH = 0.5
"""The least worth of a page such as the terms of use when the question asks for it."""

NAVIGATION_WORTH = 0.6
OTHER_SITE_WORTH = 0.7
DEPTH_WORTH = 0.9
PATH_LENGTH_MAX = 300
"""Characters of an address that are read; the rest is not written for people."""

TOPIC_WORDS_MAX = 16
TOPICS_MAX = 60
"""Links that are compared by meaning for one choice: half a second of one core when all are new."""

_NOT_A_PAGE = re.compile(
    r"\.(?:jpe?g|png|gif|webp|svg|ico|css|js|mjs|json|xml|rss|atom|zip|gz|tgz|bz2|xz|7z|exe|dmg|msi|apk|iso|mp[34]|m4a|"
    r"avi|mov|webm|woff2?|ttf|eot|docx?|xlsx?|pptx?)$",
    re.IGNORECASE,
)
_NEVER = names(
    "login log-in signin sign-in signup sign-up register logout account cart checkout basket share print feed rss edit"
    " wp-admin"
)
_SELDOM_ASKED = (
    (
        "terms conditions terms-of-use terms-of-service terms-and-conditions legal agb disclaimer tos",
        "terms conditions legal law liability contract jurisdiction refund return cancel license indemnity haftung agb",
    ),
    (
        "privacy privacy-policy cookie cookies gdpr datenschutz",
        "privacy cookie data personal gdpr tracking datenschutz",
    ),
    (
        "imprint impressum",
        "imprint impressum company address vat registered director owner contact phone email headquarters",
    ),
    ("career careers job jobs", "career job vacancy work employ apprentice salary hire position"),
    ("tag author history", "tag author history written founded wrote changed"),
)
"""Pages by words of their address, and the words of a question that asks for them; otherwise they are not followed."""

_ASKED_FOR = {place: frozenset(map(stem, asked.split())) for places, asked in _SELDOM_ASKED for place in places.split()}
_SOCIAL = ("facebook.com", "twitter.com", "x.com", "linkedin.com", "instagram.com", "youtube.com", "t.me", "reddit.com")
_PLACE = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*")
_WORDS_ONLY = re.compile(r"[^\W\d_]+")
_HOLLOW = names(
    "here more details read click link this learn page view see info weiter mehr hier download index html htm php aspx"
    " en de"
)
"""Words of links that do not say where they lead."""


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
        in_text = terms(self.link.text)
        return in_text, terms(self._path) - in_text

    @cached_property
    def topic(self) -> str:
        """The words of its text and address, without numbers, so that a list of models has one topic."""
        words = (*_WORDS_ONLY.findall(self.link.text), *_WORDS_ONLY.findall(self._path))
        named = {word.lower(): word for word in reversed(words) if word.lower() not in _HOLLOW}
        return " ".join(list(reversed(named.values()))[:TOPIC_WORDS_MAX])

    @property
    def _path(self) -> str:
        path = self.link.url.partition("://")[2].partition("/")[2][:PATH_LENGTH_MAX]
        return re.sub(r"[/_.?&=%+-]+", " ", path)


def choose(
    candidates: Iterable[Candidate],
    wanted: Collection[str],
    visited: Collection[str],
    depth_max: int,
    nearness: Mapping[str, float] | None = None,
) -> Candidate | None:
    """The most promising link, or None. Of equal links the first one. `nearness` is the similarity of each topic."""
    ranked = ranking(candidates, wanted, visited, depth_max, nearness or {})
    return next((candidate for worth, candidate in ranked if worth >= PROMISING), None)


def topics(
    candidates: Iterable[Candidate], wanted: Collection[str], visited: Collection[str], depth_max: int
) -> list[str]:
    """The topics to compare by meaning: of the links with the most words of the question, then of the first ones."""
    ranked = ranking(candidates, wanted, visited, depth_max, {})
    found = dict.fromkeys(candidate.topic for _, candidate in ranked if candidate.topic)
    return list(found)[:TOPICS_MAX]


def ranking(
    candidates: Iterable[Candidate],
    wanted: Collection[str],
    visited: Collection[str],
    depth_max: int,
    nearness: Mapping[str, float],
) -> list[tuple[float, Candidate]]:
    """The links that may be followed, best first, each with its worth of 0 to 1."""
    asked = frozenset(wanted)
    sites: dict[str, str] = {}
    found = [
        (_worth(candidate, asked, sites, nearness.get(candidate.topic, 0.0)), candidate)
        for candidate in candidates
        if candidate.link.url not in visited
        and candidate.depth <= depth_max
        and _may_lead_on(candidate.link.url, asked)
    ]
    return sorted(found, key=lambda each: (-each[0], each[1].link.is_navigation))


def _worth(candidate: Candidate, asked: Set[str], sites: dict[str, str], near: float) -> float:
    """The share of the wanted terms in its text and address, or its nearness if that is more; lower for menus, other
    sites and depth."""
    link = candidate.link
    in_text, in_address = candidate.words
    named = len(asked & in_text) + 0.5 * len(asked & in_address)
    by_words = named / min(len(asked), 4) if asked else 0.0
    by_meaning = (near - NEAR_FROM) / (NEAR_TO - NEAR_FROM)
    worth = min(1.0, max(by_words, by_meaning, ASKED_FOR_WORTH if _is_asked_for(link.url, asked) else 0.0))
    worth *= NAVIGATION_WORTH if link.is_navigation else 1
    worth *= OTHER_SITE_WORTH if _site(link.url, sites) != _site(candidate.parent_url, sites) else 1
    return round(worth * DEPTH_WORTH ** (candidate.depth - 1), 4)


def _site(url: str, known: dict[str, str]) -> str:
    if url not in known:
        known[url] = read_address(url).host.removeprefix("www.")
    return known[url]


def _may_lead_on(url: str, asked: Set[str]) -> bool:
    host, _, path = url.partition("://")[2].partition("/")
    if _NOT_A_PAGE.search(path.partition("?")[0]):
        return False
    places = _places(url)
    if places & _NEVER or (places & _ASKED_FOR.keys() and not _is_asked_for(url, asked)):
        return False
    return not any(host == name or host.endswith(f".{name}") for name in _SOCIAL)


def _is_asked_for(url: str, asked: Set[str]) -> bool:
    return any(asked & _ASKED_FOR[place] for place in _places(url) & _ASKED_FOR.keys())


@lru_cache(maxsize=10_000)
def _places(url: str) -> frozenset[str]:
    """The words of an address behind its host, alone and as they are joined by hyphens."""
    found = _PLACE.findall(url.partition("://")[2].partition("/")[2].lower())
    return frozenset(chain(found, *(each.split("-") for each in found)))
