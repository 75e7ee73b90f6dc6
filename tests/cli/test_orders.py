"""Orders by the command line (A-01, A-02): shown, and exported as JSON, CSV and UBL."""

import csv
import io
import json
from decimal import Decimal
from pathlib import Path

from tests.cli.conftest import Run, SignIn


def accepted(run: Run, signs_in: SignIn) -> str:
    """The number of the order of an accepted quote."""
    signs_in("rita", "sales_rep")
    line = ("--account", "acct_acme_001", "--line", "prod_pro_v2:150", "--term-months", 12)
    quote_id = json.loads(run("quote", "create", *line, "--as", "rita", "--json").out)["quote_id"]
    answers = [run("quote", step, quote_id, "--as", "rita", "--json") for step in ("price", "send", "accept")]
    assert [answer.code for answer in answers] == [0, 0, 0], answers
    return str(json.loads(answers[-1].out)["order_number"])


def test_a01_an_order_is_shown_and_exported(home: Path, run: Run, signs_in: SignIn):
    number = accepted(run, signs_in)
    shown = run("order", "show", number)
    assert shown.code == 0, shown.err
    for text in (number, "Pro Plan", "1,500.00", "before tax"):
        assert text in shown.out, text
    whole = json.loads(run("order", "show", number, "--json").out)
    assert whole["order"]["net"] == 1500
    assert json.loads(run("order", "export", number).out)["schedule"] == whole["schedule"]
    (row,) = csv.DictReader(io.StringIO(run("order", "export", number, "--format", "csv").out))
    assert (row["order"], row["what"], Decimal(row["amount"])) == (number, "sold", Decimal(1500))
    file = home.parent / "order.xml"
    written = run("order", "export", number, "--format", "ubl", "--output", file)
    assert written.code == 0, written.err
    assert f"<cbc:ID>{number}</cbc:ID>" in file.read_text()


def test_a01_an_order_that_nobody_made_is_named(home: Path, run: Run):
    missing = run("order", "show", "SO-2026-999999")
    assert missing.code == 1
    assert "There is no order 'SO-2026-999999'." in missing.err
