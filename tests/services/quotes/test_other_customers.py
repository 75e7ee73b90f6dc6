"""The names of many customers are read while no other call waits for its turn to write."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import pytest

from cpq.app import App
from cpq.domain.quotes.customer_names import Names
from cpq.services.quotes import other_customers
from tests.support.engine import Tools, import_dicts
from tests.support.quotes import SEATS, new_quote

OTHER = {
    "id": "acct_zorn",
    "name": "Zornheim Pneumatik",
    "segment": "smb",
    "region": "emea",
    "country": "DE",
    "tax_zone": "eu",
}


def test_many_names_are_read_outside_of_the_transaction_that_needs_them(app: App, monkeypatch: pytest.MonkeyPatch):
    # By thread: the audit record is written in the background.
    writing, begin, read = Counter[int](), app.database.writing, list[int]()

    @contextmanager
    def counted(*arguments: Any) -> Iterator[Any]:
        with begin(*arguments) as connection:
            writing[get_ident()] += 1
            try:
                yield connection
            finally:
                writing[get_ident()] -= 1

    class Watched(Names):
        def add(self, customers: Any) -> None:
            read.append(writing[get_ident()])
            super().add(customers)

    monkeypatch.setattr(app.database, "writing", counted)
    monkeypatch.setattr(other_customers, "Names", Watched)
    monkeypatch.setattr(other_customers, "AT_ONCE_MAX", 0)
    tools = Tools(app)
    import_dicts(app, "accounts", OTHER)
    new_quote(tools, {**SEATS, "notes": "As agreed on the phone."})
    assert read == [0]
    new_quote(tools, {**SEATS, "notes": "As agreed in writing."})
    assert read == [0], "they are kept"
    import_dicts(app, "accounts", {**OTHER, "id": "acct_new", "name": "Quellmann Drucklufttechnik"})
    line = {**SEATS, "notes": "As for Quellmann Drucklufttechnik."}
    error = tools.error("quote_create", account_id="acct_acme_001", term_months=12, line_items=[line])
    assert (error["code"], "Quellmann" in error["message"]) == ("VALIDATION_ERROR", True)
    assert read == [0, 0], "a new one is read alone"
