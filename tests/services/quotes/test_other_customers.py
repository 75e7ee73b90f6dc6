"""The names of many customers are read while no other call waits for its turn to write."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cpq.app import App
from cpq.domain.quotes.customer_names import Names
from cpq.services.quotes import other_customers
from tests.support.engine import Tools, import_dicts, import_history
from tests.support.quotes import SEATS, counted_statements, new_quote, sent_quote

OTHER = {
    "id": "acct_zorn",
    "name": "Zornheim Pneumatik",
    "segment": "smb",
    "region": "emea",
    "country": "DE",
    "tax_zone": "eu",
}


def test_many_names_are_read_outside_of_the_transaction_that_needs_them(app: App, monkeypatch: pytest.MonkeyPatch):
    begin, read = app.database.writing, list[int]()
    writing = dict.fromkeys([threading.get_ident()], 0)

    @contextmanager
    def counted(*arguments: Any) -> Iterator[Any]:
        mine = threading.get_ident()  # Audit entries of reads are written by another thread at any time.
        with begin(*arguments) as connection:
            writing[mine] = writing.get(mine, 0) + 1
            try:
                yield connection
            finally:
                writing[mine] -= 1

    class Watched(Names):
        def add(self, customers: Any) -> None:
            read.append(writing[threading.get_ident()])
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


def test_names_are_not_read_again_after_a_quote_was_sent_but_after_an_import_of_history(app: App, tmp_path: Path):
    tools = Tools(app)
    sent_quote(tools, SEATS, notes="As agreed on the phone.")
    with counted_statements() as run:
        new_quote(tools, SEATS, notes="As agreed in writing.")
    assert not [one for one in run if "past_quote.customer" in one or ("account.name" in one and "DISTINCT" in one)]
    (tmp_path / "history.csv").write_text(
        "id,customer,project,quoted_on,currency,category,description,quantity,unit_price\n"
        "P26-9,Quellmann Drucklufttechnik,Hall 3,2026-01-05,USD,Compressor,A compressor,1,100\n"
    )
    import_history(app, tmp_path / "history.csv")
    text = "As for Quellmann Drucklufttechnik."
    error = tools.error("quote_create", account_id="acct_acme_001", term_months=12, line_items=[SEATS], notes=text)
    assert (error["code"], "Quellmann" in error["message"]) == ("VALIDATION_ERROR", True)
