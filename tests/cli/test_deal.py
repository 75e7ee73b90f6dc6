"""A person does a whole deal on the command line: create, edit, price, request, decide, send, accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cpq.base.settings import Settings
from tests.cli.conftest import Ran, Run

ACME = "acct_acme_001"


class Person:
    """Types commands on one store and reads their answers as JSON."""

    def __init__(self, run: Run, store: Settings, name: str = "rita") -> None:
        self._run, self._store, self.name = run, store, name

    def types(self, *arguments: object) -> Ran:
        where = ["--home", str(self._store.home)]
        where += ["--database-url", self._store.database_url] if self._store.database_url else []
        return self._run(*where, *arguments)

    def does(self, *arguments: object) -> dict[str, Any]:
        ran = self.types(*arguments, "--as", self.name, "--json")
        assert ran.code == 0, ran.out + ran.err
        return dict(json.loads(ran.out))

    def fails(self, *arguments: object) -> dict[str, Any]:
        ran = self.types(*arguments, "--as", self.name, "--json")
        assert ran.code == 1
        return dict(json.loads(ran.out)["error"])

    def reads(self, *arguments: object) -> dict[str, Any]:
        return dict(json.loads(self.types(*arguments, "--json").out))


@pytest.fixture
def rita(empty_home: Path, run: Run, store: Settings) -> Person:
    rita = Person(run, store)
    for name, role in (("rita", "sales_rep"), ("dana", "sales_manager"), ("lea", "legal")):
        assert rita.types("token", "grant", "--name", name, "--role", role).code == 0
    return rita


@pytest.fixture
def priced(rita: Person) -> str:
    """The worked example: 150 seats at 10 USD a year, with 10 % off."""
    made = rita.does("quote", "create", "--account", ACME, "--line", "prod_pro_v2:150", "--term-months", 12)
    rita.does("quote", "price", made["quote_id"], "--discount", 10)
    return str(made["quote_id"])


def test_a_person_finishes_a_deal_on_the_command_line_alone(rita: Person):
    made = rita.does(
        "quote",
        "create",
        "--account",
        ACME,
        "--line",
        "prod_pro_v2:100",
        "--line",
        "prod_pro_v2:7",
        "--term-months",
        12,
    )
    quote_id = made["quote_id"]
    assert [line["quantity"] for line in made["line_items"]] == [100, 7]
    edited = rita.does("quote", "edit", quote_id, "--change", "1:150", "--remove", 2, "--notes", "As we agreed.")
    assert edited["total"] == 1500
    assert rita.does("quote", "edit", quote_id, "--valid-until", "2026-12-01")["valid_until"] == "2026-12-01"
    assert rita.fails("quote", "edit", quote_id, "--valid-until", "2020-12-01")["details"]["field"] == "/valid_until"
    assert rita.does("quote", "edit", quote_id, "--clear", "valid_until")["valid_until"] == "2026-12-16"
    priced = rita.does("quote", "price", quote_id, "--discount", 10)
    assert (priced["pricing"]["total"], priced["stored"], priced["approval_required"]) == (1350, True, True)
    refused = rita.fails("quote", "send", quote_id)
    assert refused["next_command"] == f"cpq quote request {quote_id} --why TEXT --as rita"
    asked = rita.does("quote", "request", quote_id, "--why", "Third order this year.")
    assert (asked["quote_status"], asked["approver_role"]) == ("pending_approval", "sales_manager")
    shown = rita.reads("approvals", "show", asked["approval_id"])
    approve = ["approvals", "approve", asked["approval_id"], "--as", "dana", "--fingerprint", shown["fingerprint"]]
    assert rita.types(*approve).code == 0
    assert rita.does("quote", "send", quote_id)["status"] == "sent"
    assert rita.does("quote", "accept", quote_id)["status"] == "accepted"
    found = rita.reads("quote", "show", quote_id)
    assert found["quote"]["status"] == "accepted"
    assert found["quote"]["created_by"] == "human:rita"
    assert found["quote"]["notes"] == "As we agreed."
    assert found["pricing"]["total"] == 1350


def test_a_deal_shows_what_to_type_next_until_it_ends(rita: Person):
    ran = rita.types(
        "quote", "create", "--account", ACME, "--line", "prod_pro_v2:150", "--term-months", 12, "--as", "rita"
    )
    commands = []
    while "Next: " in ran.out:
        typed = ran.out.rpartition("cpq ")[2].split("\n")[0].replace("TEXT", "Why.")
        commands.append(" ".join(typed.split()[:2]))
        ran = rita.types(*typed.split())
        assert ran.code == 0, ran.err
    assert commands == ["quote price", "quote send", "quote accept"]
    assert "accepted" in ran.out


def test_a_quote_is_created_from_a_file_and_options_replace_its_terms(rita: Person, tmp_path: Path):
    template = tmp_path / "renewal.yaml"
    template.write_text(
        "account_id: acct_harbor_002\nterm_months: 24\nline_items:\n"
        "- {product_id: prod_pro_v2, quantity: 20, discount_pct: 2.5}\n",
        encoding="utf-8",
    )
    made = rita.does("quote", "create", "--from", template, "--account", ACME, "--line", "prod_pro_v2:5")
    assert made["account_id"] == ACME
    assert [(line["quantity"], line["discount_pct"]) for line in made["line_items"]] == [(20, 2.5), (5, 0)]
    found = rita.reads("quote", "show", made["quote_id"])
    assert found["quote"]["term_months"] == 24


def test_the_same_key_creates_one_quote(rita: Person):
    create = ["quote", "create", "--account", ACME, "--line", "prod_pro_v2:3", "--term-months", 12, "--key", "monday"]
    first, second = rita.does(*create), rita.does(*create)
    assert (first["replayed"], second["replayed"]) == (False, True)
    assert first["quote_id"] == second["quote_id"]
    create[5] = "prod_pro_v2:4"
    assert rita.fails(*create)["code"] == "CONFLICT"


def test_every_problem_of_a_new_quote_is_named_and_nothing_is_stored(rita: Person):
    before = rita.reads("quote", "list")["pagination"]["total"]
    ran = rita.types(
        "quote", "create", "--account", "acct_acme", "--line", "prod_pro:1", "--line", "none:2", "--as", "rita"
    )
    assert ran.code == 1
    assert "/line_items/0/product_id: There is no product 'prod_pro'." in ran.err
    assert "/line_items/1/product_id: There is no product 'none'." in ran.err
    assert rita.reads("quote", "list")["pagination"]["total"] == before


@pytest.mark.parametrize("step", ["send", "cancel", "edit", "clone", "request --why Please.", "withdraw", "revise"])
def test_nobody_sells_without_the_right(rita: Person, priced: str, step: str):
    name, *rest = step.split()
    refused = Person(rita._run, rita._store, "lea").fails("quote", name, priced, *rest)
    assert refused["code"] == "FORBIDDEN"
    assert rita.reads("quote", "show", priced)["quote"]["status"] == "draft"


def test_a_request_is_withdrawn_and_the_quote_revised(rita: Person, priced: str):
    rita.does("quote", "request", priced, "--why", "Please.")
    assert "Withdrawn: sales_manager." in rita.does("quote", "withdraw", priced)["message"]
    assert rita.fails("quote", "withdraw", priced)["next_command"] == f"cpq quote show {priced}"


def test_a_step_on_a_version_that_moved_on_is_refused(rita: Person, priced: str):
    refused = rita.fails("quote", "cancel", priced, "--version", 2)
    assert (refused["code"], refused["next_command"]) == ("CONFLICT", f"cpq quote show {priced}")


@pytest.mark.parametrize(("step", "status"), [("decline", "declined"), ("cancel", "cancelled")])
def test_a_sent_quote_is_declined_or_cancelled_with_a_reason(rita: Person, step: str, status: str):
    made = rita.does("quote", "create", "--account", ACME, "--line", "prod_pro_v2:3", "--term-months", 12)
    rita.does("quote", "price", made["quote_id"])
    rita.does("quote", "send", made["quote_id"])
    assert rita.does("quote", step, made["quote_id"], "--reason", "They chose another.")["status"] == status
    assert rita.reads("quote", "show", made["quote_id"])["reason"] == "They chose another."


def test_a_clone_goes_to_another_account(rita: Person, priced: str):
    other = rita.reads("quote", "list")["items"][0]["account_id"]
    cloned = rita.does("quote", "clone", priced, "--account", other)
    assert cloned["quote_id"] != priced
    assert cloned["line_items"][0]["quantity"] == 150


@pytest.mark.parametrize("line", ["prod_pro_v2", "prod_pro_v2:", ":3"])
def test_a_line_that_is_not_understood_says_how_to_type_it(rita: Person, line: str):
    ran = rita.types("quote", "create", "--account", ACME, "--line", line, "--as", "rita")
    assert ran.code == 2
    assert "PRODUCT:QUANTITY[:DISCOUNT][@MODEL], for example prod_pro_v2:150:5 or prod_pro_v2:150@yearly" in ran.err


def test_a_clone_and_an_edit_take_another_currency(rita: Person, priced: str):
    copy = rita.does("quote", "clone", priced, "--currency", "eur")
    assert copy["currency"] == "EUR"
    rita.does("quote", "edit", copy["quote_id"], "--currency", "USD")
    assert rita.reads("quote", "show", copy["quote_id"])["quote"]["currency"] == "USD"


def test_a_currency_that_does_not_exist_is_refused_by_its_option(rita: Person, priced: str):
    assert rita.fails("quote", "clone", priced, "--currency", "XXQ")["details"]["field"] == "--currency"


def test_a_typed_line_names_its_selling_model(rita: Person, priced: str):
    model = rita.reads("quote", "show", priced)["option_sets"][0]["lines"][0]["selling_model"]
    made = rita.does("quote", "create", "--account", ACME, "--line", f"prod_pro_v2:3:5@{model}", "--term-months", 12)
    assert [(line["selling_model"], line["quantity"]) for line in made["line_items"]] == [(model, 3)]
    refused = rita.fails("quote", "edit", made["quote_id"], "--change", "1:4@weekly")
    assert "weekly" in refused["message"]


def test_a_new_quote_shows_its_number_beside_its_id(rita: Person):
    ran = rita.types(
        "quote", "create", "--account", ACME, "--line", "prod_pro_v2:3", "--term-months", 12, "--as", "rita"
    )
    assert ran.out.startswith("Quote 20"), ran.out
    assert "(Q-" in ran.out.splitlines()[0]
