"""product_configure, and what quote_create and quote_update say of an invalid configuration."""

from typing import Any

import pytest

from cpq.domain.configuration import solver
from cpq.domain.configuration.solver import configurator, encoded_model, kernel
from cpq.services.catalog import configurators
from tests.support.engine import Tools, import_dicts, product_row
from tests.support.quotes import ACME, SEATS, new_quote, stored

SERIES = "prod_qvs_series"
BROKEN: dict[str, Any] = {"hp": 150, "voltage": "208", "outdoor": True}
TOO_MUCH_VOLTAGE = "hp=150 and voltage='208': 208 V is not offered above 60 HP."


def configure(tools: Tools, attributes: Any, **arguments: Any) -> dict[str, Any]:
    return tools("product_configure", product_id=SERIES, attributes=attributes, **arguments)


def test_a_conflict_is_explained_and_the_nearest_configuration_keeps_what_matters_most(tools: Tools):
    before = stored(tools.app)
    answer = configure(tools, BROKEN, account_id=ACME)
    assert stored(tools.app) == before
    assert (answer["outcome"], answer["unfinished"]) == ("conflict", [])
    assert answer["conflicts"][0]["message"] == TOO_MUCH_VOLTAGE
    best = answer["configurations"][0]
    assert best["attributes"] == {"hp": 150, "voltage": "460", "outdoor": True, "cfm": 748, "dryer_cfm": 800}
    assert best["changes"] == [{"option": "voltage", "before": "208", "after": "460"}]
    assert best["added"] == ["cfm", "dryer_cfm"]
    other = answer["configurations"][1]
    assert [change["option"] for change in other["changes"]] == ["hp"]
    options = {option["option"]: option for option in answer["options"]}
    assert set(options) == {"hp", "voltage"}
    assert options["hp"]["possible"] == [25, 40, 50, 60]
    (own, other_voltage) = options["voltage"]["excluded"]
    assert own == {
        "values": ["208"],
        "possibility": "after_change",
        "why": "hp=150: 208 V is not offered above 60 HP.",
        "instead": ["hp"],
    }
    assert (other_voltage["values"], other_voltage["why"]) == (["230"], "hp=150: 230 V is not offered above 75 HP.")


def test_the_price_of_a_configuration_is_that_of_the_quote_line(tools: Tools):
    answer = configure(tools, {"hp": 100, "dryer": "desiccant"}, account_id=ACME, quantity=3)
    assert answer["outcome"] == "incomplete"
    for found in answer["configurations"]:
        line = {"product_id": SERIES, "quantity": 3, "attributes": found["attributes"]}
        created = tools("quote_create", account_id=ACME, line_items=[line])["line_items"][0]
        assert found["price"]["subtotal"] == created["subtotal"]
        assert found["price"]["unit_price"] == created["unit_price"]


def test_a_valid_configuration_is_answered_with_itself(tools: Tools):
    answer = configure(tools, {"psi": 100, "outdoor": True})
    assert (answer["outcome"], answer["conflicts"], answer["problems"]) == ("valid", [], [])
    assert [found["attributes"] for found in answer["configurations"]] == [{"psi": 100, "outdoor": True}]
    assert answer["configurations"][0]["price"] is None
    assert "account_id" in answer["price_note"]


def test_reasons_are_given_for_what_is_asked_for(tools: Tools):
    """Each reason is a search of its own; which values are possible is not."""
    (short,) = [one for one in configure(tools, {"hp": 100})["options"] if one["option"] == "voltage"]
    (full,) = configure(tools, {"hp": 100}, options=["voltage"])["options"]
    assert [one["why"] for one in short["excluded"]] == [None]
    assert all("is not offered above" in one["why"] for one in full["excluded"])
    assert short["possible"] == full["possible"]
    assert short["excluded"][0]["values"] == [value for one in full["excluded"] for value in one["values"]]


def test_what_is_locked_stays_and_what_cannot_stay_has_a_conflict(tools: Tools):
    answer = configure(tools, BROKEN, locked=["voltage"])
    assert all(found["attributes"]["voltage"] == "208" for found in answer["configurations"])
    assert answer["configurations"][0]["attributes"]["hp"] == 60
    stuck = configure(tools, BROKEN, locked=["voltage", "hp"])
    assert (stuck["configurations"], stuck["conflicts"][0]["message"]) == ([], TOO_MUCH_VOLTAGE)


@pytest.mark.parametrize(
    ("goal", "dryer"), [("default", "refrigerated"), ("cheapest", "none"), ("preferred", "refrigerated")]
)
def test_a_goal_keeps_every_choice(tools: Tools, goal: str, dryer: str):
    answer = configure(tools, {"hp": 150}, goal=goal, account_id=ACME)
    (found,) = answer["configurations"]
    assert (found["changes"], found["configuration"]["hp"], found["configuration"]["dryer"]) == ([], 150, dryer)
    assert configure(tools, BROKEN, goal=goal)["configurations"] == []


def test_what_a_quote_of_it_needs_and_what_goes_with_it_is_named(sqlite_tools: Tools):
    station = sqlite_tools("product_configure", product_id="prod_bdl_air_station", attributes={}, account_id=ACME)
    (plan,) = station["also_needed"]
    assert (plan["is_required"], plan["message"]) == (False, "Every compressor station has one service plan.")
    assert [(one["product_id"], one["quantity"]) for one in plan["add"]] == [("prod_svc_plan_basic", 1)]
    options = {"size": {"type": "integer", "values": [1, 2], "default": 1}}
    needs = [{"kind": "requires", "product_id": SERIES, "quantity": 2}]
    row = product_row(id="needy", sku="NDY-1", product_type="configurable", options=options, relationships=needs)
    import_dicts(sqlite_tools.app, "products", row)
    (needed,) = sqlite_tools("product_configure", product_id="ndy-1", attributes={})["also_needed"]
    assert needed["is_required"]
    assert [(one["product_id"], one["quantity"]) for one in needed["add"]] == [(SERIES, 2)]


@pytest.mark.parametrize(
    ("attributes", "more", "message"),
    [
        (
            {"voltage": "480"},
            {},
            (
                "The product does not take these choices. voltage is one of '208', '230', '460', '575', not '480'. "
                "configurations[0] is the nearest valid one."
            ),
        ),
        (
            {"volt": "208", "hp": 100},
            {},
            (
                "The product does not take these choices. There is no option 'volt'. Did you mean voltage? "
                "configurations[0] is the nearest valid one."
            ),
        ),
        (
            {"voltage": "480"},
            {"locked": ["voltage"]},
            (
                "The product does not take these choices. voltage is one of '208', '230', '460', '575', not '480'. "
                "No valid configuration keeps what is locked."
            ),
        ),
        (
            {"hp": 100, "voltage": "208"},
            {"goal": "cheapest"},
            (
                "The choices cannot stand together. hp=100 and voltage='208': 208 V is not offered above 60 HP. "
                "A goal keeps every choice: leave it out for the nearest valid configurations."
            ),
        ),
    ],
)
def test_the_message_says_what_is_wrong_and_what_to_do(
    sqlite_tools: Tools, attributes: dict[str, Any], more: dict[str, Any], message: str
):
    assert configure(sqlite_tools, attributes, **more)["message"] == message


def test_a_product_without_options_keeps_what_a_line_of_it_would_keep(sqlite_tools: Tools):
    answer = sqlite_tools("product_configure", product_id="prod_qmb30", attributes={"tag": "K-7"}, account_id=ACME)
    assert (answer["outcome"], answer["configurations"][0]["attributes"]) == ("valid", {"tag": "K-7"})
    assert answer["configurations"][0]["changes"] == []
    line = {"product_id": "prod_qmb30", "quantity": 1, "attributes": {"tag": "K-7"}}
    created = sqlite_tools("quote_create", account_id=ACME, line_items=[line])["line_items"][0]
    assert answer["configurations"][0]["price"]["subtotal"] == created["subtotal"]


def test_names_that_the_product_does_not_have_are_named(tools: Tools):
    error = tools.error("product_configure", product_id=SERIES, attributes={}, locked=["volts"])
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/locked")
    assert tools.error("product_configure", product_id="prod_none", attributes={})["code"] == "NOT_FOUND"
    assert (
        tools.error("product_configure", product_id=SERIES, attributes={}, goal="best")["details"]["field"] == "/goal"
    )
    assert (
        tools.error("product_configure", product_id=SERIES, attributes={}, account_id="acct_none")["code"]
        == "NOT_FOUND"
    )
    answer = configure(tools, {"volts": "208"})
    assert answer["problems"][0].startswith("There is no option 'volts'.")
    assert answer["configurations"][0]["changes"] == [{"option": "volts", "before": "208", "after": None}]


def test_a_quote_refuses_an_invalid_configuration_and_offers_the_nearest_valid_one(tools: Tools):
    lines = [
        SEATS,
        {"product_id": SERIES, "quantity": 2, "attributes": BROKEN},
        {"product_id": SERIES, "quantity": 1, "attributes": {"hp": 75, "voltage": "208"}},
    ]
    error = tools.error("quote_create", account_id=ACME, line_items=lines)
    details = error["details"]
    assert (error["code"], details["conflicts"][0]) == ("CONFIGURATION_INVALID", TOO_MUCH_VOLTAGE)
    assert details["valid_attributes"]["voltage"] == "460"
    call = details["next_call"]
    assert call["tool"] == "quote_create"
    created = tools(call["tool"], **call["arguments"])
    assert [line["quantity"] for line in created["line_items"]] == [SEATS["quantity"], 2, 1]


def test_a_change_of_a_quote_offers_the_nearest_valid_configuration(tools: Tools):
    quote_id = new_quote(tools, {"product_id": SERIES, "quantity": 1})
    change = {"line_id": f"{quote_id}-ql-1", "attributes": BROKEN}
    error = tools.error("quote_update", quote_id=quote_id, expected_version=1, change_lines=[change])
    assert error["code"] == "CONFIGURATION_INVALID"
    call = error["details"]["next_call"]
    assert call["tool"] == "quote_update"
    tools(call["tool"], **call["arguments"])
    line = tools("quote_get", quote_id=quote_id)["line_items"][0]
    assert line["attributes"]["voltage"] == "460"


def test_a_name_that_no_option_has_is_not_dropped_from_a_quote(tools: Tools):
    line = {"product_id": SERIES, "quantity": 1, "attributes": {**BROKEN, "horsepower": 150}}
    error = tools.error("quote_create", account_id=ACME, line_items=[line])
    assert error["code"] == "CONFIGURATION_INVALID"
    assert "valid_attributes" not in error["details"]
    assert error["details"]["next_call"]["tool"] == "catalog_get"


def test_other_quotes_are_written_while_the_options_of_a_refused_one_are_searched(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
):
    created: list[str] = []
    search = solver.Configurator.nearest

    def nearest(*given: Any, **named: Any) -> solver.Suggestions:
        created.append(new_quote(tools, SEATS))
        return search(*given, **named)

    monkeypatch.setattr(solver.Configurator, "nearest", nearest)
    line = {"product_id": SERIES, "quantity": 1, "attributes": BROKEN}
    error = tools.error("quote_create", account_id=ACME, line_items=[line, line])
    assert len(created) == 2
    valid = [one["valid_attributes"] for one in error["details"]["problems"] if "valid_attributes" in one]
    assert [one["voltage"] for one in valid] == ["460", "460"]


def test_the_lines_of_a_refused_quote_share_the_work_of_one_question(tools: Tools, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(configurator, "PROPAGATIONS_MAX", 2_000)
    line = {"product_id": SERIES, "quantity": 1, "attributes": BROKEN}
    error = tools.error("quote_create", account_id=ACME, line_items=[line] * 3)
    assert error["code"] == "CONFIGURATION_INVALID"
    problems = [one for one in error["details"]["problems"] if "not_repaired" in one]
    assert len(problems) >= 2
    for problem in problems:
        assert "took too long" in problem["not_repaired"]
        assert problem["next_call"] == {
            "tool": "product_configure",
            "arguments": {"product_id": SERIES, "attributes": BROKEN},
        }
    assert error["details"].get("next_call", {}).get("tool") != "quote_create"


def test_the_choices_of_a_model_that_is_too_large_to_search_are_checked_all_the_same(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(configurators, "_KEPT", configurators._Kept())  # The one of the process keeps refusals, too.
    tried: list[int] = []
    encode = encoded_model.Encoding.__init__

    def counted(*given: Any, **named: Any) -> None:
        tried.append(1)
        encode(*given, **named)

    monkeypatch.setattr(encoded_model.Encoding, "__init__", counted)
    many = {f"n{place}": {"type": "integer", "min": 0, "max": 999, "default": 0} for place in range(3)}
    same = {"left": {"n0": 1}, "op": "==", "right": {"n1": 1, "const": 0}}
    monkeypatch.setattr(encoded_model, "CLAUSES_MAX", 50)
    rules = [{"id": "same", "say": "Both are alike.", "compare": same}]
    row = product_row(id="large", product_type="configurable", options=many, rules=rules)
    import_dicts(tools.app, "products", row)
    price = {"product_id": "large", "price_book": "list", "currency": "USD", "unit_price": 10}
    import_dicts(tools.app, "prices", {**price, "billing_period": "one_time"})
    valid = tools("product_configure", product_id="large", attributes={"n0": 3, "n1": 3}, account_id=ACME)
    assert (valid["outcome"], valid["problems"], valid["unfinished"]) == ("valid", [], ["options"])
    assert valid["configurations"][0]["attributes"] == {"n0": 3, "n1": 3}
    assert "too large a model to search" in valid["message"]
    invalid = tools("product_configure", product_id="large", attributes={"n0": 3})
    assert (invalid["outcome"], invalid["configurations"]) == ("TIMEOUT", [])
    assert any("Both are alike." in problem for problem in invalid["problems"])
    lines = [{"product_id": "large", "quantity": 1, "attributes": {"n0": 3}}] * 4
    error = tools.error("quote_create", account_id=ACME, line_items=lines)
    assert "too large a model to search" in error["details"]["problems"][0]["not_repaired"]
    assert len(tried) == 1


def test_what_is_proven_of_a_conflict_is_said_although_its_list_is_unfinished(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
):
    def stopped(_: object) -> list[solver.Conflict]:
        raise kernel.OutOfEffortError

    monkeypatch.setattr(configurator, "_conflicts", stopped)
    answer = configure(tools, {"hp": 150, "voltage": "208"})
    assert (answer["outcome"], answer["unfinished"]) == ("conflict", ["conflicts"])
    assert "took too long" in answer["message"]
