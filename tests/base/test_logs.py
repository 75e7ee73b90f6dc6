"""Log lines: how many of a kind are written."""

from __future__ import annotations

import logging

from cpq.base.logs import Sparse


def test_a_flood_of_lines_is_counted_and_not_written():
    sparse = Sparse(per_minute=3)
    records = [logging.makeLogRecord({"created": 120 + second}) for second in range(65)]
    passed = [record for record in records if sparse.filter(record)]
    assert [record.created for record in passed] == [120, 121, 122, 180, 181, 182]
    assert [getattr(record, "left_out", 0) for record in passed] == [0, 0, 0, 57, 0, 0]
