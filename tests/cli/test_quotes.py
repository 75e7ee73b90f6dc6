"""`cpq quote`: what a person sees of quotes, and the proof that their prices are what was reckoned."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cpq.base.settings import Settings, read_settings, shipped
from tests.cli.conftest import Run, query
from tests.support.engine import Tools, import_dicts, open_app

SEATS = {"product_id": "prod_pro_v2", "quantity": 150}
MACHINE = {"product_id": "prod_qmb15", "quantity": 1}


@pytest.fixture
def tools(home: Path) -> Iterator[Tools]:
    """An agent at work on the same data."""
    app = open_app(read_settings({}, home=home))
    yield Tools(app)
    app.close()


def worked_example(tools: Tools, **terms: Any) -> str:
    terms = {"account_id": "acct_acme_001", "term_months": 12, "start_date": "2026-12-01", **terms}
    quote_id = tools("quote_create", line_items=[SEATS], **terms)["quote_id"]
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    return quote_id


def with_options(tools: Tools) -> str:
    """Two alternatives, and a machine that belongs to both."""
    lines = [{**SEATS, "option_set": "large"}, {**SEATS, "quantity": 7, "option_set": "small"}, MACHINE]
    quote_id = tools("quote_create", account_id="acct_acme_001", line_items=lines)["quote_id"]
    tools("quote_price", quote_id=quote_id)
    return quote_id


def cells(out: str, first: str) -> list[str]:
    """The words of the first line of a table that starts like this."""
    return next(line.split() for line in out.splitlines() if line.split()[:1] == [first])


def column(out: str, heading: str) -> list[int]:
    """Where the cells under a heading end."""
    lines = out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.rstrip().endswith(heading))
    body = lines[start + 2 :]
    ends = body.index("") if "" in body else len(body)
    return [len(line.rstrip()) for line in body[:ends]]


def test_a_quote_is_shown_with_lines_totals_dates_and_hashes(home: Path, tools: Tools, run: Run):
    quote_id = worked_example(tools, notes="Call first.", deal_id="D-7")
    ran = run("quote", "show", quote_id)
    assert ran.code == 0
    assert "Acme Corp (acct_acme_001)" in ran.out
    assert "12 months, 2026-12-01 to 2027-11-30" in ran.out
    assert "1 of 1, edit 2" in ran.out
    assert "Call first." in ran.out
    assert cells(ran.out, "deal") == ["deal", "D-7"]
    assert cells(ran.out, "1")[3:5] == ["prod_pro_v2", "150"]
    assert " ".join(cells(ran.out, "1")[5:]) == "10.00 a year × 1 year 1,500.00 150.00 10 1,350.00"
    hashes = json.loads(query(home, "SELECT hashes FROM quote_version")[0][0])
    assert all(f"{name} hash" in ran.out and value in ran.out for name, value in hashes.items())


def test_the_totals_that_are_shown_add_up(home: Path, tools: Tools, run: Run):
    out = run("quote", "show", worked_example(tools, account_id="acct_lonestar_004")).out
    assert "tax S (saas): 5 % of 1,350.00" in out
    block = out[out.index("\nsubtotal ") :].strip().split("\n\n")[0]
    amounts = [Decimal(line.split()[-1].replace(",", "")) for line in block.splitlines()]
    assert amounts == [1500, -150, Decimal("67.5"), Decimal("1417.5")]
    several = run("quote", "show", worked_example(tools, account_id="acct_laurentide_009")).out
    assert "GST S (saas): 5 % of 1,350.00" in several
    assert "QST S (saas): 9.975 % of 1,350.00" in several
    assert sum(amounts[:-1]) == amounts[-1]


def test_the_trace_shows_each_step_of_the_waterfall_aligned(home: Path, tools: Tools, run: Run):
    quote_id = worked_example(tools)
    plain, traced = run("quote", "show", quote_id).out, run("quote", "show", quote_id, "--trace").out
    assert "quote discount" not in plain
    assert ["quote", "discount", "10", "%", "requested_discount_pct", "1,350.00"] in [
        line.split() for line in traced.splitlines()
    ]
    assert len(set(column(traced[traced.index("according to") - 60 :], "amount"))) == 1


def test_a_price_is_explained_from_list_to_total_with_the_reasons(home: Path, tools: Tools, run: Run):
    quote_id = worked_example(tools, account_id="acct_lonestar_004")
    out = run("quote", "explain", quote_id).out
    shown = [line.split() for line in out.splitlines()]
    for row in (["list", "1,500.00"], ["quote", "discount", "-150.00"], ["net", "1,350.00"], ["tax", "67.50"]):
        assert row in shown
    assert ["total", "1,417.50"] in shown
    assert ["quote", "discount", "10", "%", "requested_discount_pct", "1,350.00"] in shown
    assert "- A discount of 10 % is above 5 %." in out
    told = json.loads(run("quote", "explain", quote_id, "--json").out)
    assert told["waterfall"][-1] == {"stage": "total", "is_level": True, "amount": 1417.5}
    assert told["option_sets"][0]["lines"][0]["steps"]
    plain = tools("quote_create", account_id="acct_acme_001", line_items=[SEATS])["quote_id"]
    assert "No policy asks for an approval." in run("quote", "explain", plain).out
    assert "option set small" in run("quote", "explain", with_options(tools)).out
    assert run("quote", "explain", "Q-none").code == 1


def test_two_versions_are_compared(home: Path, tools: Tools, run: Run):
    quote_id = tools("quote_create", account_id="acct_acme_001", line_items=[SEATS, MACHINE])["quote_id"]
    tools("quote_price", quote_id=quote_id)
    first = run("quote", "diff", quote_id)
    assert first.code == 1
    assert "is the first" in first.err
    tools("quote_send", quote_id=quote_id, expected_version=1)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    assert "Nothing that a customer would see is different from version 1 to 2." in run("quote", "diff", quote_id).out
    removed, seats = (line["line_id"] for line in tools("quote_get", quote_id=quote_id)["line_items"][::-1])
    changes = {"change_lines": [{"line_id": seats, "quantity": 100}], "remove_lines": [removed]}
    tank = {"product_id": "prod_tk240v", "quantity": 1}
    tools("quote_update", quote_id=quote_id, expected_version=2, add_lines=[tank], notes="Two docks.", **changes)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=3)
    told = json.loads(run("quote", "diff", quote_id, "--from", 1, "--to", 2, "--json").out)
    out = run("quote", "diff", quote_id).out
    rows = [line.split("  ") for line in out.splitlines()]
    found = {first: [cell.strip() for cell in rest if cell.strip()] for first, *rest in rows}
    assert found["total"] == ["10,980.00", "2,890.60"]
    assert found["requested discount"] == ["0 %", "3 %"]
    assert found["notes"] == ["-", "Two docks."]
    assert found["line 1, Pro Plan: quantity"] == ["150", "100"]
    assert [cells for name, cells in found.items() if name.startswith("line 2")] == [["9,480.00", "removed"]]
    assert [cells for name, cells in found.items() if name.startswith("line 3")] == [["not there", "1,920.60"]]
    assert "9 differences from version 1 to 2." in out
    assert (told["before"], told["after"], len(told["lines"])) == (1, 2, 3)
    missing = run("quote", "diff", quote_id, "--to", 9)
    assert missing.code == 1
    assert "has no version 9." in missing.err


def test_each_option_set_is_shown_with_totals_of_its_own(home: Path, tools: Tools, run: Run):
    out = run("quote", "show", with_options(tools)).out
    assert "Option set large, selected:" in out
    assert "Option set small:" in out
    assert [line.split()[-1] for line in out.splitlines() if line.startswith("total ")] == ["10,980.00", "9,550.00"]


def test_an_earlier_version_is_shown_as_it_was(home: Path, tools: Tools, run: Run):
    quote_id = tools("quote_create", account_id="acct_acme_001", line_items=[SEATS])["quote_id"]
    tools("quote_price", quote_id=quote_id)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    now, then = run("quote", "show", quote_id), run("quote", "show", quote_id, "--version", 1)
    assert cells(now.out, "status") == ["status", "draft"]
    assert "1 of 2" in then.out
    assert cells(then.out, "status") == ["status", "sent"]
    missing = run("quote", "show", quote_id, "--version", 3)
    assert missing.code == 1
    assert "has no version 3" in missing.err


def test_the_record_as_json_has_the_steps_only_when_asked(home: Path, tools: Tools, run: Run):
    quote_id = worked_example(tools)
    plain = json.loads(run("quote", "show", quote_id, "--json").out)
    traced = json.loads(run("quote", "show", quote_id, "--json", "--trace").out)
    assert plain["quote"]["id"] == quote_id
    assert plain["pricing"]["total"] == plain["option_sets"][0]["total"] == 1350
    assert "steps" not in plain["option_sets"][0]["lines"][0]
    assert traced["option_sets"][0]["lines"][0]["steps"][-1] == {
        "stage": "quote discount",
        "part": None,
        "source": "requested_discount_pct",
        "value": 10,
        "unit": "percent",
        "amount": 1350,
    }


def test_a_draft_is_priced_and_checked_as_the_tool_does_it(home: Path, tools: Tools, run: Run):
    quote_id = tools("quote_create", account_id="acct_acme_001", line_items=[SEATS])["quote_id"]
    assert cells(run("quote", "show", quote_id).out, "priced")[1:] == ["not", "yet"]
    ran = run("quote", "price", quote_id)
    assert (ran.code, ran.err) == (0, "")
    assert cells(ran.out, "total") == ["total", "1,500.00", "USD"]
    assert f"\nNo approval is needed. Next: `cpq export quote {quote_id} --output {quote_id}.pdf`,\n" in ran.out
    assert ran.out.endswith(f": cpq quote send {quote_id} --as NAME\n")
    ran = run("quote", "price", quote_id, "--discount", "10%")
    assert cells(ran.out, "total") == ["total", "1,350.00", "USD"]
    assert cells(ran.out, "approval_required")[1:3] == ["sales_manager", "discount_cap_sales_manager"]
    assert f"Next: cpq quote request {quote_id} --why TEXT --as NAME\n" in ran.out
    again = json.loads(run("quote", "price", quote_id, "--json").out)  # The discount stays as it was asked for.
    assert (again["outcome"], again["pricing"]["total"], again["approval_required"]) == ("no_change", 1350, True)
    assert {**again, "replayed": False} == tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    assert query(home, "SELECT DISTINCT caller, outcome FROM audit_entry WHERE operation = 'quote_price'")[0] == (
        "human:operator",
        "OK",
    )


def test_a_price_is_shown_to_the_cent_and_no_further(home: Path, tools: Tools, run: Run):
    quote_id = tools("quote_create", account_id="acct_acme_001", line_items=[{**SEATS, "quantity": 1}])["quote_id"]
    assert cells(run("quote", "price", quote_id, "--discount", "3").out, "total") == ["total", "9.70", "USD"]


def test_a_quote_that_was_submitted_is_only_evaluated(home: Path, tools: Tools, run: Run):
    quote_id = worked_example(tools)
    tools("approval_request", quote_id=quote_id, justification="They grow.")
    ran = run("quote", "price", quote_id, "--discount", "2.5")
    assert ran.code == 0
    assert cells(ran.out, "total") == ["total", "1,462.50", "USD"]
    assert "Nothing was stored: the quote is pending_approval" in ran.out
    assert cells(run("quote", "show", quote_id).out, "total") == ["total", "1,350.00"]
    assert cells(run("quote", "price", quote_id).out, "total") == ["total", "1,350.00", "USD"]


@pytest.mark.parametrize("given", ["101", "-1", "ten", "nan", "1e400", "0.0000001"])
def test_a_discount_that_is_none_is_not_understood(home: Path, tools: Tools, run: Run, given: str):
    quote_id = worked_example(tools)
    ran = run("quote", "price", quote_id, f"--discount={given}")
    assert (ran.code, "is not a number from 0 to 100" in ran.err) == (2, True)
    assert cells(run("quote", "show", quote_id).out, "total") == ["total", "1,350.00"]


PAST = "A past quote, found by search_past_quotes, is read with get_quote."


def test_pricing_a_quote_that_is_not_there_says_so(home: Path, run: Run):
    ran = run("quote", "price", "Q-none")
    assert (ran.code, ran.err) == (1, f"Error: There is no quote 'Q-none'.\n{PAST}\nNext: cpq quote list\n")


@pytest.mark.parametrize("mistyped", ["acct_acme_01", "acct_acmee_001", "act_acme_001", "acme", "Acme Corp"])
def test_an_account_that_is_not_there_is_told_with_the_one_that_was_meant(home: Path, run: Run, mistyped: str):
    assert run("quote", "list", "--account", "acct_acme_001").out == "0 of 0 quotes.\n"
    ran = run("quote", "list", "--account", mistyped)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines()[0] == f"Error: There is no account {mistyped!r}."
    assert ran.err.splitlines()[1].startswith("Did you mean acct_acme_001")
    nobody = run("quote", "list", "--account", "%_'")
    assert (nobody.code, "Did you mean" in nobody.err) == (1, False)


def test_quotes_are_listed_newest_first_with_the_digits_of_their_currency(home: Path, tools: Tools, run: Run):
    ids = [worked_example(tools), with_options(tools)]
    ran = run("quote", "list")
    assert [line.split()[0] for line in ran.out.splitlines() if line.startswith("Q-")] == ids[::-1]
    assert "1,350.00   USD" in ran.out
    assert "2 of 2 quotes." in ran.out
    second = run("quote", "list", "--limit", 1, "--page", 2)
    assert ids[0] in second.out
    assert ids[1] not in second.out
    assert "1 of 2 quotes; --page 2 has more." in run("quote", "list", "--limit", 1).out


def test_the_list_is_filtered_by_account_and_status(home: Path, tools: Tools, run: Run):
    quote_id = worked_example(tools)
    found = json.loads(run("quote", "list", "--account", "acct_acme_001", "--status", "draft", "--json").out)
    assert [item["id"] for item in found["items"]] == [quote_id]
    assert run("quote", "list", "--status", "sent").out == "0 of 0 quotes.\n"
    assert run("quote", "list", "--account", "acct_groeb_002").out == "0 of 0 quotes.\n"
    wrong = run("quote", "list", "--status", "darft")
    assert wrong.code == 1
    assert "Did you mean draft" in wrong.err


@pytest.mark.parametrize("command", ["show", "replay"])
def test_a_quote_that_is_not_there_is_told(home: Path, run: Run, command: str):
    ran = run("quote", command, "Q-none")
    assert ran.code == 1
    assert "There is no quote 'Q-none'." in ran.err


def test_every_version_is_proven_on_either_database(store: Settings, run: Run):
    app = open_app(store)
    tools = Tools(app)
    quote_id, optional = worked_example(tools), with_options(tools)
    tools("quote_send", quote_id=optional, expected_version=1)
    tools("quote_revise", quote_id=optional, expected_version=1)
    app.close()
    cpq = partial(run, "--home", store.home, "--database-url", store.database_url)
    ran = cpq("quote", "replay", optional, "--json")
    assert ran.code == 0
    report = json.loads(ran.out)
    assert [(proof["version"], proof["status"], proof["option_sets"]) for proof in report["proofs"]] == [
        (1, "sent", 2),
        (2, "draft", 2),
    ]
    whole = json.loads(cpq("quote", "replay", "--all", "--json").out)
    assert whole == {
        "quotes": 2,
        "versions": 3,
        "lines": 7,
        "catalog_moved_on": 0,
        "policies_moved_on": 0,
        "proofs": [],
    }
    assert "Proven: 1 version of 1 quote, 1 line." in cpq("quote", "replay", quote_id).out


def test_an_accepted_alternative_is_proven_though_another_was_selected_when_it_was_hashed(
    home: Path, tools: Tools, run: Run
):
    quote_id = with_options(tools)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    tools.seller("quote_accept", quote_id=quote_id, expected_version=1, option_set="small")
    assert query(home, "SELECT option_set, total FROM quote_version") == [("small", 9_550_000_000)]
    assert run("quote", "replay", quote_id).code == 0


def test_a_catalogue_that_moved_on_is_no_fault(home: Path, tools: Tools, run: Run):
    quote_id = worked_example(tools)
    row = {"id": "prod_pro_v2", "sku": "PLAN-PRO-001", "name": "Pro Plan, renamed", "category": "saas"}
    import_dicts(tools.app, "products", row)
    ran = run("quote", "replay", quote_id)
    assert ran.code == 0
    assert "Changed since, which is no error: 1 of another catalogue." in ran.out
    proof = json.loads(run("quote", "replay", quote_id, "--json").out)["proofs"][0]
    assert (proof["has_same_catalog"], proof["has_same_policies"]) == (False, True)


def test_policies_that_moved_on_are_no_fault(
    home: Path, tools: Tools, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    quote_id = worked_example(tools)
    folder = shutil.copytree(shipped("policies"), tmp_path / "policies")
    terms = (folder / "terms.yaml").read_text(encoding="utf-8")
    (folder / "terms.yaml").write_text(terms.replace("validity_days: 30", "validity_days: 31"), encoding="utf-8")
    monkeypatch.setenv("CPQ_POLICIES_DIR", str(folder))
    ran = run("quote", "replay", quote_id)
    assert ran.code == 0
    assert "Changed since, which is no error: 1 under other policies." in ran.out


TAMPERINGS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a line of the result": (
        "UPDATE quote_pricing SET result = replace(result, ',1350000000,10000000,', ',1349000000,10000000,')",
        {"line": "1", "differing": "net", "stored": 1349, "computed": 1350},
        "The new result matches the hash, so the stored result was changed.",
    ),
    "the request": (
        "UPDATE quote_pricing SET request = replace(request, '\"quantity\":150', '\"quantity\":151')",
        {"differing": "hashes.request"},
        "The request is not the one that was hashed.",
    ),
    "the hash of the result": (
        'UPDATE quote_version SET hashes = replace(hashes, \'"result":"\', \'"result":"0\')',
        {"differing": "hashes.result"},
        "",
    ),
    "the fingerprint": ("UPDATE quote_version SET fingerprint = 'f'", {"differing": "fingerprint", "stored": "f"}, ""),
    "the total": (
        "UPDATE quote_version SET total = total - 1000000, subtotal = subtotal - 1000000",
        {"differing": "subtotal", "stored": 1499, "computed": 1500},
        "",
    ),
    "a line": (
        "UPDATE quote_line SET net = net - 10000",
        {"line": "1", "differing": "net", "stored": 1349.99, "computed": 1350},
        "",
    ),
    "the lines": ("DELETE FROM quote_line", {"differing": "lines", "stored": [], "computed": [1]}, ""),
    "the record of the price": (
        "DELETE FROM quote_pricing",
        {"differing": "option sets", "stored": [], "computed": [""]},
        "",
    ),
}


@pytest.mark.parametrize("what", TAMPERINGS)
def test_a_stored_price_that_was_changed_is_told_by_line_and_field(home: Path, tools: Tools, run: Run, what: str):
    statement, told, why = TAMPERINGS[what]
    quote_id = worked_example(tools)
    assert run("quote", "replay", "--all").code == 0
    query(home, statement)
    ran = run("quote", "replay", "--all", "--json")
    error = json.loads(ran.out)["error"]
    assert ran.code == 1
    assert (error["code"], error["details"]["quote_id"], error["details"]["version"]) == ("CONFLICT", quote_id, 1)
    assert {name: error["details"][name] for name in told} == told
    assert error["details"].get("hint", "") == why
    spoken = run("quote", "replay", quote_id)
    assert spoken.code == 1
    assert f"Quote {quote_id}, version 1" in spoken.err
    assert f"{told['differing']} is stored as" in spoken.err


@pytest.mark.parametrize("arguments", [[], ["Q-1", "--all"]], ids=["neither", "both"])
def test_a_replay_is_of_one_quote_or_of_all(home: Path, run: Run, arguments: list[str]):
    ran = run("quote", "replay", *arguments)
    assert ran.code == 2
    assert "Give the id of a quote, or --all." in ran.err


@pytest.mark.parametrize(
    ("terms", "words"),
    [({"term_months": 12}, "4,900.00 a month × 12 months"), ({}, "4,900.00 a month, for one month")],
)
def test_a_rental_is_shown_by_the_month_and_never_58800_monthly(
    home: Path, tools: Tools, run: Run, terms: dict[str, Any], words: str
):
    rent = {"product_id": "prod_rent_rs100", "quantity": 2}
    quote_id = tools("quote_create", account_id="acct_acme_001", line_items=[rent], **terms)["quote_id"]
    out = run("quote", "show", quote_id).out
    assert words in out
    assert "58,800" not in out
    assert "monthly" not in out


def test_a_dry_run_shows_a_price_and_stores_nothing(home: Path, tools: Tools, run: Run):
    quote_id = worked_example(tools)
    ran = run("quote", "price", quote_id, "--discount", "2.5", "--dry-run")
    assert cells(ran.out, "total") == ["total", "1,462.50", "USD"]
    assert "Nothing was stored: this was a dry run." in ran.out
    assert cells(run("quote", "show", quote_id).out, "total") == ["total", "1,350.00"]


def test_a_quote_is_shown_priced_and_exported_by_its_number(home: Path, tools: Tools, run: Run):
    quote_id = worked_example(tools)
    (item,) = json.loads(run("quote", "list", "--json").out)["items"]
    for command in (["show"], ["price", "--dry-run"], ["explain"]):
        assert quote_id in run("quote", command[0], item["number"], *command[1:]).out
    assert "version of 1 quote" in run("quote", "replay", item["number"]).out
    assert run("export", "quote", item["number"], "--format", "csv").out.splitlines()[1].startswith(item["number"])


def test_tables_and_refusals_show_what_a_text_hides(home: Path, tools: Tools, run: Run):
    quote_id = worked_example(tools, notes="Pay 10\u202e00\u200b now \U000e0041")
    shown = run("quote", "show", quote_id)
    assert "Pay 10\\u202e00\\u200b now \\U000e0041" in shown.out
    refused = run("quote", "show", "Q-\u202e1")
    assert "\u202e" not in refused.out + refused.err
    assert refused.code != 0
