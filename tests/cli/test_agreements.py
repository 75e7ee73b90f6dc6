"""`cpq agreements`: what customers own, what is due, proof from the orders, and orders for quotes of old."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, SignIn, query

BUILT = ("sales_order", "agreement_order", "agreement", "order_counter")


@pytest.fixture
def sold(home: Path, run: Run, signs_in: SignIn) -> str:
    """The agreement of an accepted quote."""
    signs_in("rita", "sales_rep")
    made = json.loads(
        run(
            *("quote", "create", "--account", "acct_acme_001", "--line", "prod_pro_v2:150"),
            *("--term-months", 12, "--as", "rita", "--json"),
        ).out
    )
    for step in ("price", "send", "accept"):
        done = run("quote", step, made["quote_id"], "--as", "rita", "--json")
        assert done.code == 0, done
    (row,) = query(home, "SELECT id FROM agreement WHERE account_id = 'acct_acme_001' ORDER BY created_at DESC LIMIT 1")
    return str(row[0])


def forget_orders(home: Path, run: Run) -> None:
    """As a database from before orders existed has it: accepted quotes, and no order on record."""
    for table in BUILT:
        query(home, f"DELETE FROM {table}")
    for (quote_id,) in query(home, "SELECT id FROM quote WHERE status = 'accepted'"):
        assert run("audit", "baseline", "--accept", quote_id).code == 0


def answer(run: Run, *arguments: object) -> Any:
    ran = run("agreements", *arguments, "--json")
    assert ran.code == 0, ran
    return json.loads(ran.out)


def test_a10_a11_agreements_are_listed_and_shown_on_any_day(sold: str, run: Run):
    listed = run("agreements", "list", "--account", "acct_acme_001", "--status", "active")
    assert (listed.code, sold in listed.out, "1,500.00" in listed.out) == (0, True, True)
    assert "build" not in listed.out
    shown = answer(run, "show", sold)
    assert (shown["agreement"]["arr"], shown["lines"][0]["quantity"]) == (1500, 150)
    after = run("agreements", "show", sold, "--as-of", "2099-01-01")
    assert "ended on 2099-01-01" in after.out
    assert "Nothing of this agreement is owned" in after.out
    assert run("agreements", "show", "A-none").code == 1
    assert run("agreements", "list", "--account", "nobody").code == 1


def test_a17_due_lists_renewals_by_the_days_that_are_asked_for(sold: str, run: Run):
    by_policy = answer(run, "due")
    assert (by_policy["renewal_days"], sold in str(by_policy["renewals"])) == (90, False)
    ahead = answer(run, "due", "--days", 400, "--account", "acct_acme_001")
    assert [one["agreement_id"] for one in ahead["renewals"]] == [sold]
    assert (ahead["renewals"][0]["arr"], ahead["notices"]) == (1500, [])
    assert "days left" in run("agreements", "due", "--days", 400).out


def test_a10_verify_names_the_column_that_differs_from_the_orders(home: Path, sold: str, run: Run):
    assert run("agreements", "verify").out.startswith("Proven: ")
    query(home, "UPDATE agreement SET yearly = 1, ends_on = '2031-01-01' WHERE id = ?", sold)
    ran = run("agreements", "verify", sold)
    assert (ran.code, "yearly" in ran.out, "ends_on" in ran.out) == (1, True, True)
    found = json.loads(run("agreements", "verify", "--json").out)
    assert {(one["agreement_id"], one["column"]) for one in found["differences"]} == {
        (sold, "ends_on"),
        (sold, "yearly"),
    }


def test_a01_build_makes_the_orders_of_old_quotes_once_and_as_they_would_have_been(home: Path, sold: str, run: Run):
    columns = "quote_id, version, kind, net, total, effective_on, accepted_at, accepted_by, evidence, fingerprint"
    statement = f"SELECT {columns} FROM sales_order ORDER BY quote_id"
    before = query(home, statement)
    forget_orders(home, run)
    waiting = len(before)
    note = run("agreements", "list").out
    assert "no order yet" in note
    assert "cpq agreements build" in note
    assert "cpq agreements build" in run("agreements", "show", sold).err
    built = answer(run, "build")
    assert built == {"built": waiting, "unknown": [], "refused": [], "waiting": 0}
    assert query(home, statement) == before
    assert answer(run, "build")["built"] == 0
    assert run("agreements", "verify").code == 0
    assert run("audit", "verify", "--state").code == 0
    assert "build" not in run("agreements", "list").out


def test_a01_build_says_where_nobody_recorded_the_acceptance(home: Path, sold: str, run: Run):
    forget_orders(home, run)
    ((quote_id,),) = query(home, "SELECT id FROM quote WHERE status = 'accepted' ORDER BY created_at DESC LIMIT 1")
    query(home, "DELETE FROM event_delivery")
    query(home, "DELETE FROM event WHERE subject = ?", quote_id)
    query(home, "UPDATE audit_entry SET operation = 'quote_older' WHERE operation = 'quote_accept'")
    built = answer(run, "build")
    assert built["unknown"] == [quote_id]
    ((by, evidence),) = query(home, "SELECT accepted_by, evidence FROM sales_order WHERE quote_id = ?", quote_id)
    assert (by, "not on record" in evidence) == ("unknown", True)


@pytest.mark.usefixtures("sold")
def test_revenue_is_that_of_today_by_currency(run: Run):
    found = answer(run, "revenue")
    assert found["days"][-1]["arr"]["USD"] >= 1500
    assert (found["is_whole"], len(found["days"]) in (12, 13)) == (True, True)
    shown = run("agreements", "revenue")
    assert (shown.code, "USD" in shown.out) == (0, True)
