"""`cpq policy simulate`: stored quotes under other policies, told with old and new approvers, and nothing changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from cpq.app import App
from cpq.app.access import Principal, Role
from cpq.app.policy_files import load
from cpq.base.settings import Settings, read_settings, shipped
from cpq.services.quotes import simulation as quote_simulation
from tests.cli.conftest import Run, query
from tests.cli.test_policy import edit
from tests.cli.test_quotes import MACHINE, SEATS, with_options, worked_example
from tests.support.engine import Tools, import_dicts, open_app, row_counts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(shipped("policies"), tmp_path / "mine")


@pytest.fixture
def tools(home: Path) -> Iterator[Tools]:
    app = open_app(read_settings({}, home=home))
    yield Tools(app)
    app.close()


def quote(tools: Tools, percent: int, *lines: dict[str, Any], **terms: Any) -> tuple[str, list[dict[str, Any]]]:
    """A priced quote, and what the policies said of it."""
    quote_id = tools("quote_create", account_id="acct_acme_001", line_items=list(lines or [SEATS]), **terms)["quote_id"]
    return quote_id, tools("quote_price", quote_id=quote_id, requested_discount_pct=percent)["policy_violations"]


def simulated(ran: Any) -> dict[str, Any]:
    assert ran.code == 0, ran.err
    return {change["quote_id"]: change for change in json.loads(ran.out)["changes"]}


def test_a_quote_whose_approvers_change_is_told_with_both_and_why_on_either_database(
    store: Settings, folder: Path, run: Run
):
    app = open_app(store)
    tools = Tools(app)
    small, large = quote(tools, 4)[0], quote(tools, 10)[0]
    counted = row_counts(app)
    edit(folder, "discounts.yaml", "above: 20\n", "above: 8\n")
    cpq = partial(run, "--home", store.home, "--database-url", store.database_url, "policy", "simulate", folder)
    ran = cpq("--against", "stored")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        f"{large}, version 1, draft, acct_acme_001, 1,350.00 USD",
        "    sales_manager → vp_sales",
        "    - discount_cap_sales_manager: A discount of 10 % is above 5 %.",
        "    + discount_cap_vp_sales: A discount of 10 % is above 8 %.",
        "",
        "change            quotes",
        "────────────────────────",
        "other approvers        1",
        "",
        "1 of 2 stored quotes would be decided differently.",
    ]
    told = json.loads(cpq("--json").out)
    assert [change["quote_id"] for change in told["changes"]] == [large]
    assert small not in json.dumps(told)
    assert told["changes"][0]["before"]["approvers"] == [["sales_manager"]]
    assert told["changes"][0]["after"]["approvers"] == [["vp_sales"]]
    assert told["summary"] == {
        "quotes": 2,
        "changed": 1,
        "by_change": {"other approvers": 1},
        "hashes": {"old": load(shipped("policies")).content_hash, "new": load(folder).content_hash},
    }
    assert row_counts(app) == counted
    app.close()


VP, STOP = "severity: approval_required\n          role: vp_sales", "severity: block"


def with_a_stop(folder: Path) -> Path:
    """Blocked above 8 %, so that finance is not asked of more than that any more."""
    path = (
        edit(edit(folder, "discounts.yaml", "above: 20\n", "above: 8\n"), "discounts.yaml", VP, STOP) / "discounts.yaml"
    )
    text = path.read_text(encoding="utf-8")
    path.write_text(text.partition("\n  # Beside")[0] + "\n", encoding="utf-8")
    return folder


CHANGES: dict[str, tuple[Callable[[Path], Path], str, str]] = {
    "now blocked": (
        with_a_stop,
        "sales_manager → blocked",
        "+ discount_cap_vp_sales: A discount of 10 % is above 8 %.",
    ),
    "needs no approval any more": (
        lambda folder: edit(folder, "discounts.yaml", "above: 5\n", "above: 10\n"),
        "sales_manager → nobody",
        "- discount_cap_sales_manager",
    ),
    "more approvers": (
        lambda folder: edit(folder, "discounts.yaml", "above: 30\n", "above: 9.99\n"),
        "sales_manager → sales_manager + finance",
        "+ discount_review_finance: A discount of 10 % is above 9.99 %.",
    ),
    "the same approvers for other reasons": (
        lambda folder: edit(folder, "discounts.yaml", "id: discount_cap_sales_manager", "id: discount_cap_manager"),
        "sales_manager → sales_manager",
        "+ discount_cap_manager",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_changes_are_counted_by_their_kind(home: Path, tools: Tools, folder: Path, run: Run, kind: str):
    change, approvers, why = CHANGES[kind]
    quote(tools, 10)
    change(folder)
    out = run("policy", "simulate", folder).out
    assert f"    {approvers}\n" in out
    assert f"    {why}" in out
    assert f"\n{kind}   " in out
    back = run("policy", "simulate", shipped("policies"), "--old", folder)
    assert f"    {' → '.join(reversed(approvers.split(' → ')))}\n" in back.out


def test_roles_that_are_asked_otherwise_are_a_change_without_a_new_reason(
    home: Path, tools: Tools, folder: Path, run: Run
):
    quote(tools, 25, {**SEATS, "quantity": 20_000})
    edit(folder, "approvals.yaml", "ask: highest", "ask: each")
    out = run("policy", "simulate", folder).out
    assert "    vp_sales → deal_desk, then vp_sales\n" in out
    assert "the same policies apply" in out


def test_a_simulated_decision_is_the_one_that_pricing_gives(home: Path, tools: Tools, folder: Path, run: Run):
    """Options on lines, alternatives, other terms and currencies: what was said then is what is reckoned now."""
    compressor = {"product_id": "prod_qmb30", "quantity": 40}
    tools = Tools(tools.app, principal=Principal("maria", "human", frozenset({Role.SALES_MANAGER})))  # Sees margins.
    priced = dict(
        [
            quote(tools, 10),
            quote(tools, 35, compressor),
            quote(tools, 6, SEATS, compressor, payment_terms="net_90", term_months=24),
            quote(tools, 0, valid_until="2027-01-20"),
            quote(tools, 12, {**SEATS, "option_set": "a"}, {**SEATS, "quantity": 9, "option_set": "b"}, MACHINE),
        ]
    )
    (folder / "discounts.yaml").write_text("{}", encoding="utf-8")
    approvals = (folder / "approvals.yaml").read_text(encoding="utf-8").partition("\nladders:")[0]
    (folder / "approvals.yaml").write_text(approvals, encoding="utf-8")
    changed = simulated(run("policy", "simulate", folder, "--json"))
    assert changed.keys() == priced.keys()
    for quote_id, violations in priced.items():
        names = ("policy_id", "severity", "description", "threshold", "actual")
        assert [[v[name] for name in names] for v in changed[quote_id]["before"]["violations"]] == [
            [v[name] for name in names] for v in violations
        ]
        assert changed[quote_id]["after"] == {"approvers": [], "blocked": False, "violations": []}


def test_a_term_by_its_last_day_is_as_long_as_one_by_months(home: Path, tools: Tools, folder: Path, run: Run):
    by_day = quote(tools, 0, start_date="2026-12-01", end_date="2029-11-30")[0]
    by_months = quote(tools, 0, start_date="2026-12-01", term_months=36)[0]
    short = quote(tools, 0, start_date="2026-12-01", end_date="2027-11-30")[0]
    rule = "{id: long, when: has_term and term_months > 24, then: {severity: approval_required, role: legal}}"
    edit(folder, "approvals.yaml", "rules:\n", f"rules:\n  - {rule}\n")
    changed = simulated(run("policy", "simulate", folder, "--json"))
    assert changed.keys() == {by_day, by_months}
    assert short not in changed


def test_what_was_chosen_on_a_line_is_seen(home: Path, tools: Tools, folder: Path, run: Run):
    edit(folder, "terms.yaml", "attributes:\n", "attributes:\n  billing: {type: text, absent: annual}\n")
    rule = "rules:\n  - id: chosen\n    when: any(line.attributes.billing == 'monthly' for line in lines)\n"
    edit(folder, "discounts.yaml", "ladders:", f"{rule}    then: {{severity: warning}}\n\nladders:")
    monthly = quote(tools, 0, MACHINE, {**SEATS, "attributes": {"billing": "monthly"}})[0]
    quote(tools, 0, SEATS)
    changed = simulated(run("policy", "simulate", folder, "--json"))
    assert changed.keys() == {monthly}
    assert [(v["policy_id"], v["lines"]) for v in changed[monthly]["after"]["violations"]] == [("chosen", ["2"])]


def test_only_the_current_version_is_decided_whatever_its_status(home: Path, tools: Tools, folder: Path, run: Run):
    quote_id = quote(tools, 2)[0]
    tools("quote_send", quote_id=quote_id, expected_version=1)
    cancelled = quote(tools, 2)[0]
    tools("quote_cancel", quote_id=cancelled, expected_version=1, reason="Lost.")
    edit(folder, "discounts.yaml", "above: 5\n", "above: 1\n")
    changed = simulated(run("policy", "simulate", folder, "--json"))
    assert {id_: (one["version"], one["status"]) for id_, one in changed.items()} == {
        quote_id: (1, "sent"),
        cancelled: (1, "cancelled"),
    }
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=0)
    assert simulated(run("policy", "simulate", folder, "--json")).keys() == {cancelled}


def test_pages_and_batches_leave_nothing_out(
    home: Path, tools: Tools, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
):
    ids = {quote(tools, 10, *[SEATS] * (number % 3 + 1))[0] for number in range(7)}
    ids.add(with_options(tools))
    edit(folder, "discounts.yaml", "ladders:", "rules: [{id: all, when: net > 0, then: {severity: warning}}]\nladders:")
    whole = run("policy", "simulate", folder, "--json").out
    assert simulated(run("policy", "simulate", folder, "--json")).keys() == ids
    for page, lines in ((8, 2_000), (3, 2_000), (4, 1), (1, 1)):
        monkeypatch.setattr(quote_simulation, "PAGE", page)
        monkeypatch.setattr(quote_simulation, "BATCH_LINES", lines)
        assert run("policy", "simulate", folder, "--json").out == whole


@pytest.mark.parametrize("count", [1, 6])
def test_a_page_of_many_quotes_takes_as_many_queries_as_one_of_few(home: Path, tools: Tools, folder: Path, count: int):
    for _ in range(count):
        quote(tools, 10, SEATS, MACHINE)
    simulation = quote_simulation.Simulation(load(shipped("policies")), load(folder))
    queries = statements(tools.app, lambda tx: simulation.page(tx, None))
    assert len([text for text in queries if " FROM quote" in text]) == 3
    assert len([text for text in statements(tools.app, lambda tx: simulation.page(tx, None)) if "product" in text]) == 0


def statements(app: App, work: Callable[[Any], Any]) -> list[str]:
    """What SQLAlchemy sent to the database while `work` ran."""
    sent: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        sent.append(" ".join(statement.split()))

    event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        app.read_unaudited(app.new_call(), work)
    finally:
        event.remove(sa.Engine, "before_cursor_execute", note)
    return sent


def test_the_same_policies_change_nothing(home: Path, tools: Tools, run: Run):
    quote(tools, 10)
    ran = run("policy", "simulate", shipped("policies"))
    assert ran.out == "0 of 1 stored quote would be decided differently. The policies are the same.\n"
    empty = json.loads(run("policy", "simulate", shipped("policies"), "--json").out)
    assert (empty["changes"], empty["summary"]["quotes"]) == ([], 1)


def test_an_empty_store_has_nothing_to_change(home: Path, folder: Path, run: Run):
    assert run("policy", "simulate", folder).out.startswith("0 of 0 stored quotes would be decided differently.")


def test_a_rule_that_changes_prices_changes_no_stored_one(home: Path, tools: Tools, folder: Path, run: Run):
    quote_id = worked_example(tools)
    before = query(home, "SELECT total, fingerprint FROM quote_version")
    rule = "rules: [{id: dear, when: 'true', then: {markup: 900}}]"
    (folder / "pricing.yaml").write_text(rule, encoding="utf-8")
    assert run("policy", "simulate", folder).out.startswith("0 of 1 stored quote")
    assert query(home, "SELECT total, fingerprint FROM quote_version") == before
    assert run("quote", "replay", quote_id).code == 0


def test_a_product_that_changed_since_is_seen_as_it_is_now(home: Path, tools: Tools, folder: Path, run: Run):
    quote_id = quote(tools, 0)[0]
    row = {"id": "prod_pro_v2", "sku": "PLAN-PRO-001", "name": "Pro Plan", "category": "tanks"}
    import_dicts(tools.app, "products", row)
    rule = "rules: [{id: tanks, when: '\"tanks\" in categories', then: {severity: warning}}]\nladders:"
    edit(folder, "discounts.yaml", "ladders:", rule)
    assert simulated(run("policy", "simulate", folder, "--json")).keys() == {quote_id}


def test_the_simulation_is_on_record(home: Path, tools: Tools, folder: Path, run: Run):
    assert run("policy", "simulate", folder).code == 0
    found = json.loads(run("audit", "show", "--json").out)
    assert [entry["operation"] for entry in found["items"]].count("policy_simulate") == 1


def test_a_store_that_is_not_there_is_told(empty_home: Path, folder: Path, run: Run):
    ran = run("policy", "simulate", folder)
    assert ran.code == 1
    assert "Run `cpq init`," in ran.err


def test_g07_a_simulation_knows_which_lines_are_charged_by_their_use_and_the_margin_of_their_rates(
    tools: Tools, folder: Path, run: Run
):
    calls = {"product_id": "prod_use_api", "quantity": 1}
    open_, committed, plain = (
        quote(tools, 0, *lines, term_months=12)[0]
        for lines in ([calls], [{**calls, "commitment": {"amount": 500}}], [SEATS])
    )
    rule = "\n  - id: {}\n    when: any({} for line in lines)\n    then: {{severity: approval_required, role: {}}}\n"
    with (folder / "approvals.yaml").open("a") as file:
        file.write(rule.format("use_legal", "line.is_usage", "legal"))
        file.write(rule.format("low_rate", "line.is_usage and line.margin <= 50", "finance"))
    changes = simulated(run("policy", "simulate", folder, "--against", "stored", "--json"))
    assert {id_: [one["policy_id"] for one in change["after"]["violations"]] for id_, change in changes.items()} == {
        open_: ["low_rate", "use_legal"],
        committed: ["use_legal"],
    }
    assert plain not in changes
