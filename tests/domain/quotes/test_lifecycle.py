"""Statuses of quotes and versions: which there are, and which end by themselves."""

from datetime import UTC, datetime, timedelta

import pytest

from cpq.domain.quotes.lifecycle import EXPIRING, QuoteStatus, VersionStatus, status_at

LAST = datetime(2026, 3, 1, tzinfo=UTC)


def test_a_version_can_have_every_status_of_a_quote_and_two_more():
    assert [*QuoteStatus, "rejected", "superseded"] == [status.value for status in VersionStatus]


@pytest.mark.parametrize("status", [*QuoteStatus, *VersionStatus])
def test_only_what_can_expire_has_expired_from_its_last_moment_on(status: QuoteStatus):
    after = type(status).EXPIRED if status in ("approved", "sent") else status
    assert status_at(status, LAST, LAST - timedelta(microseconds=1)) is status
    assert status_at(status, LAST, LAST) is after


def test_a_sweep_looks_for_what_can_expire():
    assert EXPIRING == (QuoteStatus.APPROVED, QuoteStatus.SENT)
