"""robots.txt, as RFC 9309 reads it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.retrieval.web.rules.robots import NOTHING, Rule, read_robots

TEXT = """
# a comment
User-agent: *
Disallow: /

User-Agent: other
User-agent: Quotewright   # us
Disallow: /private
Allow: /private/open$
Disallow: /*.pdf$
Disallow: /caf%C3%A9
Crawl-delay: 2.5
Sitemap: https://example.com/sitemap.xml
"""


@pytest.mark.parametrize(
    ("target", "is_allowed"),
    [
        ("/", True),
        ("/private", False),
        ("/private/x", False),
        ("/private/open", True),
        ("/private/open2", False),
        ("/a/b.pdf", False),
        ("/a/b.pdf?x", True),
        ("/café", False),
        ("/robots.txt", True),
    ],
)
def test_the_longest_rule_of_our_own_group_decides(target: str, is_allowed: bool):
    assert read_robots(TEXT).allows(target) is is_allowed


def test_a_delay_is_whole_seconds_and_bounded():
    assert read_robots(TEXT).delay_seconds == 3
    assert read_robots("User-agent: *\nCrawl-delay: 99999").delay_seconds == 30
    assert read_robots("User-agent: *\nCrawl-delay: soon").delay_seconds == 0


def test_the_group_of_everybody_holds_for_us_when_there_is_none_of_our_own():
    rules = read_robots("User-agent: googlebot\nDisallow:\n\nUser-agent: *\nDisallow: /x")
    assert (rules.allows("/y"), rules.allows("/x/y")) == (True, False)


def test_of_two_rules_as_long_the_one_that_allows_wins():
    assert read_robots("User-agent: *\nDisallow: /a\nAllow: /a").allows("/a")


def test_nothing_said_is_everything_allowed_and_nothing_is_nothing():
    assert read_robots("").allows("/x")
    assert read_robots("Disallow: /").allows("/x")
    assert not NOTHING.allows("/x")


def test_names_that_are_repeated_do_not_repeat_the_rules():
    text = "User-agent: *\nUser-agent: other\n" * 2 + "Disallow: /x\nDisallow: /y\n"
    assert read_robots(text).rules == (Rule("/x", allows=False), Rule("/y", allows=False))
    assert len(read_robots("User-agent: *\n" * 3000 + "Disallow: /x\n" * 3000).rules) == 2000


@given(st.text(alphabet="/ab*$", max_size=12), st.text(alphabet="/ab", max_size=12))
def test_a_pattern_matches_as_its_regular_expression_would(pattern: str, target: str):
    written = "/" + pattern
    is_whole = written.endswith("$")
    expression = re.escape(written.removesuffix("$")).replace(r"\*", ".*") + ("$" if is_whole else "")
    allowed = read_robots(f"User-agent: *\nDisallow: {written}").allows("/" + target)
    assert allowed is (re.match(expression, "/" + target) is None)
