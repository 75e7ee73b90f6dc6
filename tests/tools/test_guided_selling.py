"""Guided selling as an agent uses it: one question at a time, resumable, with products and reasons at the end."""

import json
from typing import Any

import pytest

from cpq.app import App
from cpq.base.errors import CpqError
from tests.support import engine
from tests.support.engine import Tools, row_counts
from tests.support.quotes import ACME

GUIDE = "compressed_air"
ANSWERS = {"use": "food", "flow": 40, "pressure": 100, "demand": "even", "voltage": "v460", "place": "room"}


def sent(tools: Tools, call: dict[str, Any]) -> dict[str, Any]:
    return tools(call["tool"], **call["arguments"])


def test_without_arguments_the_guides_are_listed_with_their_first_call(tools: Tools):
    (guide,) = tools("guided_selling")["guides"]
    assert (guide["id"], guide["questions"]) == (GUIDE, 7)
    begun = sent(tools, guide["next_call"])
    assert begun["question"]["id"] == "use"
    assert begun["candidates"] == 59


def test_questions_are_asked_one_at_a_time_with_a_reason_and_what_each_answer_leaves(tools: Tools):
    answer = tools("guided_selling", guide=GUIDE)
    asked, candidates = [], [answer["candidates"]]
    while "question" in answer:
        question = answer["question"]
        asked.append(question["id"])
        assert question["ask"].endswith("?")
        assert question["why"]
        given = ANSWERS[question["id"]]
        answer = tools("guided_selling", state=answer["state"], answers={question["id"]: given})
        candidates.append(answer["candidates"])
        if "options" in question:
            assert {one["id"]: one["leaves"] for one in question["options"]}[given] == answer["candidates"]
    assert asked == list(ANSWERS)  # The heat of a machine for food is no use in this guide.
    assert candidates == sorted(candidates, reverse=True)
    assert [one["product_id"] for one in answer["products"][:2]] == ["prod_psl15", "prod_psl20"]
    first = answer["products"][0]
    assert first["reasons"][:4] == [
        "food_grade is true: Food, drinks or drugs.",
        "lubrication is oilless: Food, drinks or drugs.",
        "cfm is 45.6: at least 40 cfm.",
        "psi is 116: at least 100 psi.",
    ]


def test_all_answers_in_one_call_give_the_same_as_one_by_one(tools: Tools):
    at_once = tools("guided_selling", guide=GUIDE, answers=ANSWERS)
    answer = tools("guided_selling", guide=GUIDE)
    for name, given in ANSWERS.items():
        answer = tools("guided_selling", state=answer["state"], answers={name: given})
    assert at_once == answer


def test_every_result_meets_every_answer_as_the_catalogue_has_it(tools: Tools):
    for product in tools("guided_selling", guide=GUIDE, answers=ANSWERS)["products"]:
        detail = tools("catalog_get", product_id=product["product_id"], include_relationships=True)
        have = {**detail["attributes"], **{name: spec["value"] for name, spec in detail["specs"].items()}}
        have |= product["attributes"]
        assert have["lubrication"] in ("oilless", "oil-free")
        assert have["food_grade"] is True
        assert have["cfm"] >= 40
        assert have["psi"] >= 100
        assert (have["phase"], have["voltage"]) in (("3", "460"), ("3", "230/460"))


def test_a_number_may_come_in_another_unit_and_is_converted_exactly(tools: Tools):
    metric = tools("guided_selling", guide=GUIDE, answers={"flow": "10 m³/min"})
    assert metric["candidates"] == tools("guided_selling", guide=GUIDE, answers={"flow": "353.146667"})["candidates"]
    assert metric["answered"][0]["in_words"] == "10 m³/min"
    again = tools("guided_selling", state=metric["state"])
    assert (again["state"], again["candidates"]) == (metric["state"], metric["candidates"])


def test_answers_that_leave_nothing_say_which_one_to_change_and_the_call_does_it(tools: Tools):
    before = tools("guided_selling", guide=GUIDE, answers={"use": "food"})
    error = tools.error("guided_selling", state=before["state"], answers={"place": "outdoors"})
    assert error["code"] == "CONFLICT"
    assert error["details"]["conflict"] == ["use", "place"]
    assert "«What is the air for? Food, drinks or drugs»" in error["message"]
    assert [change["question"] for change in error["details"]["changes"]] == ["use", "place"]
    for change in error["details"]["changes"]:
        assert sent(tools, change["next_call"])["candidates"] == change["leaves"] > 0
    assert error["details"]["next_call"] == error["details"]["changes"][0]["next_call"]


def test_answers_that_no_single_change_repairs_name_those_to_skip(tools: Tools):
    answers = {"use": "food", "flow": 20000, "pressure": 600, "place": "outdoors"}
    error = tools.error("guided_selling", guide=GUIDE, answers=answers)
    assert error["details"]["changes"] == []
    assert sent(tools, error["details"]["next_call"])["candidates"] > 0


def test_an_earlier_answer_can_be_changed_and_answers_to_questions_no_longer_asked_go(tools: Tools):
    done = tools("guided_selling", guide=GUIDE, answers={"use": "workshop", "place": "room", "heat": "wanted"})
    assert [one["question"] for one in done["answered"]] == ["use", "place", "heat"]
    changed = tools("guided_selling", state=done["state"], answers={"use": "clean"})
    assert [one["question"] for one in changed["answered"]] == ["use", "place"]
    error = tools.error("guided_selling", state=changed["state"], answers={"heat": "wanted"})
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/answers/heat")


def test_a_skipped_question_narrows_nothing(tools: Tools):
    skipped = tools("guided_selling", guide=GUIDE, answers={"use": "skip", "flow": "skip"})
    assert skipped["candidates"] == 59
    assert skipped["question"]["id"] == "pressure"


def test_a_state_that_was_changed_is_refused(tools: Tools):
    state = tools("guided_selling", guide=GUIDE, answers={"use": "food"})["state"]
    for broken in (state.replace("food", "clean"), state[:-1], state + " ", "x", "~", ";~" + "0" * 8, "é" * 100):
        error = tools.error("guided_selling", state=broken)
        assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/state")
        assert "guides" in sent(tools, error["details"]["next_call"])


def test_a_state_of_a_guide_that_has_changed_is_refused_with_its_answers(app: App, tools: Tools):
    state = tools("guided_selling", guide=GUIDE, answers={"use": "food"})["state"]
    text = (engine.SAMPLE / "guides.yaml").read_text(encoding="utf-8")
    engine.import_guides(app, text.replace("What is the air for?", "What do you use the air for?"))
    error = tools.error("guided_selling", state=state, answers={"flow": 10})
    assert (error["code"], error["details"]["field"]) == ("CONFLICT", "/state")
    assert error["details"]["answers"] == {"use": "food"}
    assert sent(tools, error["details"]["next_call"])["question"]["ask"] == "What do you use the air for?"


@pytest.mark.parametrize(
    ("answers", "field", "message"),
    [
        ({"use": "fod"}, "/answers/use", "use is one of food, clean, workshop or skip."),
        ({"use": 5}, "/answers/use", "use is one of food, clean, workshop or skip."),
        ({"uze": "food"}, "/answers", "compressed_air has no question 'uze'."),
        ({"flow": "much"}, "/answers/flow", "flow is a number of cfm, or a text such as `100 cfm`."),
        ({"flow": True}, "/answers/flow", "flow is a number of cfm, or a text such as `100 cfm`."),
        ({"flow": "3 bar"}, "/answers/flow", "flow is in cfm, and 3 bar cannot be converted into it."),
        ({"flow": 0}, "/answers/flow", "flow is at least 1 cfm."),
        ({"flow": "600 m³/min"}, "/answers/flow", "flow is at most 20000 cfm."),
    ],
)
def test_an_answer_that_cannot_be_read_is_refused_with_what_is_allowed(sqlite_tools: Tools, answers, field, message):
    error = sqlite_tools.error("guided_selling", guide=GUIDE, answers=answers)
    assert (error["code"], error["details"]["field"], error["message"]) == ("VALIDATION_ERROR", field, message)


def test_answers_without_a_guide_and_a_state_of_another_guide_are_refused(sqlite_tools: Tools):
    assert sqlite_tools.error("guided_selling", answers={"use": "food"})["details"]["field"] == "/state"
    state = sqlite_tools("guided_selling", guide=GUIDE)["state"]
    assert sqlite_tools.error("guided_selling", guide="other", state=state)["details"]["allowed"] == [GUIDE]
    assert sqlite_tools.error("guided_selling", guide="compresed_air")["details"]["nearest"] == [GUIDE]


def test_with_an_account_the_next_calls_lead_to_a_quote(tools: Tools):
    answers = {**ANSWERS, "use": "workshop", "flow": 300, "demand": "changing", "heat": "wanted"}
    products = tools("guided_selling", guide=GUIDE, answers=answers, account_id=ACME)["products"]
    assert products[0]["attributes"] == {"psi": 100, "voltage": "460", "heat_recovery": True}
    assert {one["next_call"]["tool"] for one in products} == {"product_configure", "quote_create"}
    for product in products:
        answer = sent(tools, product["next_call"])
        if product["next_call"]["tool"] == "product_configure":
            assert answer["outcome"] in ("valid", "incomplete"), "the rules allow what the answers demand"
            line: dict[str, Any] = {"product_id": product["product_id"], "quantity": 1}
            found = answer["configurations"][0]
            assert product["attributes"].items() <= found["configuration"].items()
            line["attributes"] = found["attributes"]
            answer = tools("quote_create", account_id=ACME, line_items=[line])
        assert answer["line_items"][0]["product_id"] == product["product_id"]
    assert tools.error("guided_selling", guide=GUIDE, answers=answers, account_id="nobody")["code"] == "NOT_FOUND"


def test_guides_belong_to_a_tenant_and_inactive_ones_are_not_offered(app: App, tools: Tools):
    text = (engine.SAMPLE / "guides.yaml").read_text(encoding="utf-8")
    engine.import_guides(app, text.replace("    questions:", "    active: false\n    questions:", 1))
    assert tools("guided_selling") == {"guides": []}
    assert tools.error("guided_selling", guide=GUIDE)["code"] == "NOT_FOUND"


FAULTS = [
    (8, 18, "categories: [compressors]", "categories: [compresors]", "there is no category compresors"),
    (
        24,
        32,
        "need: {lubrication: oil-flooded}",
        "need: {lubricaton: oil-flooded}",
        "no product of these categories has",
    ),
    (
        24,
        33,
        "need: {lubrication: oil-flooded}",
        "need: {lubrication: wet}",
        "lubrication is never 'wet'; it is one of",
    ),
    (51, 67, 'need: {phase: "3", voltage: "208"}', 'need: {phase: 3, voltage: "208"}', "phase is never 3; it is"),
    (61, 66, "need: {noise_dba: {max: 72}}", "need: {cooling: {max: 72}}", "cooling is not a number"),
    (29, 39, "at_least: cfm, min: 1", "at_least: cooling, min: 1", "cooling is not a number"),
    (29, 39, "unit: cfm", "unit: psi", "cfm is in CFM or cfm, not in psi"),
    (5, 5, "ask_when: {use: workshop", "ask_when: {heat: workshop", "ask_when of heat names heat, which is no earlier"),
    (
        5,
        5,
        "ask_when: {use: workshop",
        "ask_when: {use: work",
        "ask_when of heat names work, which is no answer to use",
    ),
    (12, 9, "id: clean", "id: food", "an option food is given twice"),
    (19, 13, "id: clean", "id: skip", "skip is the answer of those who do not care"),
    (
        29,
        17,
        "number: {unit: cfm, at_least: cfm,",
        "number: {unit: cfm, at_least: cfm, at_most: cfm,",
        "exactly one of",
    ),
    (14, 9, "why: Oil must", "wy: Oil must", "there is no field wy here"),
    (4, 1, "guides:", "guide:", "there is no field guide here"),
    (13, 14, "ask: What is", "ask: &x What is", "anchors and aliases are not allowed"),
]


@pytest.mark.parametrize(("line", "column", "old", "new", "message"), FAULTS, ids=[fault[-1] for fault in FAULTS])
def test_a_faulty_file_is_refused_with_line_and_column_and_changes_nothing(
    sqlite_app: App, line: int, column: int, old: str, new: str, message: str
):
    text = (engine.SAMPLE / "guides.yaml").read_text(encoding="utf-8")
    assert old in text
    counts = row_counts(sqlite_app)
    with pytest.raises(CpqError) as refused:
        engine.import_guides(sqlite_app, text.replace(old, new, 1))
    assert message in json.dumps(refused.value.details["problems"])
    problems: Any = refused.value.details["problems"]
    assert {problem["file"] for problem in problems} == {"guides.yaml"}
    assert (line, column) in [(problem["line"], problem["column"]) for problem in problems]
    assert row_counts(sqlite_app) == counts


def test_an_import_counts_changes_and_warns_of_answers_without_products(app: App):
    text = (engine.SAMPLE / "guides.yaml").read_text(encoding="utf-8")
    same = engine.import_guides(app, text)
    assert (same.unchanged["guides"], same.created["guides"], same.updated["guides"], same.warnings) == (1, 0, 0, [])
    dead = engine.import_guides(app, text.replace("{noise_dba: {max: 72}}", "{noise_dba: {max: 2}}"))
    assert dead.updated["guides"] == 1
    assert dead.warnings == ["compressed_air: no active product meets the answer people to place"]
