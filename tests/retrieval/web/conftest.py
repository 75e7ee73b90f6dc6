"""What the tests of the web toolset share: a site on this machine, and a fetcher that may ask it."""

from collections.abc import Iterator

import pytest

from cpq.base.clock import Effects
from cpq.retrieval.web.fetcher import Fetcher
from tests.support.website import Website


@pytest.fixture
def site() -> Iterator[Website]:
    with Website() as running:
        yield running


@pytest.fixture
def fetcher(site: Website) -> Fetcher:
    """Allowed to ask the site by its number, and no other private machine."""
    return Fetcher(Effects(), allowed_hosts=frozenset({site.host}), bytes_max=100_000)
