"""How a question is taken apart, and which link is followed for it. Rules, so tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.retrieval.web.rules.link_choice import Candidate, choose, topics
from cpq.retrieval.web.rules.page import Link
from cpq.retrieval.web.rules.questions import PARTS_MAX, asked_words, is_answered_by, is_known, read_question, telling


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("What does the warranty cover?", ["What does the warranty cover?"]),
        (
            "How often is the oil changed, and what does the warranty cover?",
            [
                "How often is the oil changed, and what does the warranty cover?",
                "How often is the oil changed",
                "what does the warranty cover?",
            ],
        ),
        (
            "Compare the QMB25 with the QMB30 for noise",
            ["Compare the QMB25 with the QMB30 for noise", "the QMB25 for noise", "the QMB30 for noise"],
        ),
        ("belt drive vs direct drive", ["belt drive vs direct drive", "belt drive", "direct drive"]),
        (
            "Find:\n1. the delivery time of dryers\n2. the noise of dryers",
            [
                "Find: 1. the delivery time of dryers 2. the noise of dryers",
                "the delivery time of dryers",
                "the noise of dryers",
            ],
        ),
        ("search and rescue equipment", ["search and rescue equipment"]),
    ],
)
def test_a_question_is_taken_apart_by_rules(query: str, parts: list[str]):
    assert list(read_question(query).parts) == parts


@pytest.mark.parametrize(
    ("query", "intent"),
    [
        ("What is the noise level?", "factual"),
        ("How many hp has it?", "factual"),
        ("How do I change the oil?", "how_to"),
        ("QMB25 versus QMB30", "comparison"),
        ("overview of dryers", "exploratory"),
        ("dryers", "exploratory"),
    ],
)
def test_the_intent_is_inferred_and_a_given_one_holds(query: str, intent: str):
    assert read_question(query).intent == intent
    assert read_question(query, "exploratory").intent == "exploratory"


def test_constraints_ask_for_shapes_or_for_a_further_part():
    question = read_question(
        "dryers", constraints=("must include code examples", "focus on the dew point", "with tables")
    )
    assert (question.wants_code, question.wants_table) == (True, True)
    assert question.parts == ("dryers", "the dew point")


@given(st.text(max_size=400), st.lists(st.text(max_size=60), max_size=4))
def test_every_question_has_a_few_parts_and_the_whole_first(query: str, constraints: list[str]):
    parts = read_question(query, constraints=tuple(constraints)).parts
    assert parts[0] == " ".join(query.split())
    assert 1 <= len(parts) <= PARTS_MAX


def test_what_the_caller_said_itself_is_known():
    said = telling("We know that the warranty lasts five years on the air end.")
    assert is_known("The warranty lasts five years on the air end.", said)
    assert not is_known("The warranty lasts five years on the air end, two on the motor.", said)


WEIGHTS = {"oil": 0.5, "chang": 0.5, "interval": 1.0, "77": 2.0}


@pytest.mark.parametrize(
    ("text", "is_answer"),
    [
        ("The AX77 has an oil change interval of 4000 hours.", True),
        ("Change the oil of the AX77 after this interval.", True),
        ("The oil change interval is 4000 hours.", False),
        ("The AX77 is a machine with oil.", False),
    ],
)
def test_a_passage_answers_with_the_rare_words_and_numbers_of_the_question(text: str, is_answer: bool):
    assert is_answered_by(text, WEIGHTS) is is_answer


def test_words_that_only_ask_need_not_be_in_the_answer():
    assert asked_words("How often must the air-end oil of the AX77 be changed?") == {
        "air",
        "end",
        "oil",
        "ax",
        "77",
        "chang",
    }
    assert asked_words("how often?") == {"often"}


def chosen(
    *links: Link,
    query: str = "oil change interval",
    visited: tuple[str, ...] = (),
    depth: int = 1,
    near: dict[str, float] | None = None,
) -> str | None:
    candidates = [Candidate(link, "https://a.example/", depth) for link in links]
    choice = choose(candidates, telling(query), visited, depth_max=3, nearness=near)
    return choice.link.url if choice else None


def test_the_link_that_names_most_of_what_is_asked_is_followed():
    other = Link("https://a.example/news", "News")
    oil = Link("https://a.example/oil", "Changing the oil")
    interval = Link("https://a.example/i", "Oil change intervals")
    assert chosen(other, oil, interval) == interval.url
    assert chosen(other, oil, interval, visited=(interval.url,)) == oil.url
    assert chosen(other) is None


def test_an_address_tells_what_a_link_without_words_is_about():
    assert chosen(Link("https://a.example/service/oil-change-interval.html", "here")) is not None


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/oil-change.jpg",
        "https://a.example/oil-change.zip",
        "https://a.example/login?next=oil",
        "https://a.example/privacy",
        "https://www.facebook.com/oil-change",
        "https://a.example/oil?share=x",
    ],
)
def test_some_links_are_never_followed(url: str):
    assert chosen(Link(url, "Oil change interval")) is None


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/terms", "What do the terms say about late payment?"),
        ("/legal/", "Which law and jurisdiction apply?"),
        ("/en/terms-of-service.html", "Can I cancel the contract?"),
        ("/privacy-policy", "Which personal data is stored?"),
        ("/impressum", "What is the address of the company?"),
        ("/jobs", "Is there a vacancy for a welder?"),
    ],
)
def test_pages_that_are_seldom_wanted_are_followed_when_they_are_asked_for(path: str, query: str):
    link = Link(f"https://a.example{path}", "Information", is_navigation=True)
    assert chosen(link, query=query) == link.url
    assert chosen(link, query="Information on oil change intervals") is None


def test_a_link_that_means_what_is_asked_for_is_followed():
    """The similarities are those of the model for "How loud is the machine?"."""
    sound = Link("https://a.example/s/12", "Sound and vibration")
    other = Link("https://a.example/s/13", "Home")
    near = {"Sound and vibration s": 0.39, "Home s": 0.19}
    assert chosen(other, sound, query="How loud is it?", near=near) == sound.url
    assert chosen(other, query="How loud is it?", near=near) is None
    assert chosen(other, sound, query="How loud is it?") is None


def test_a_list_of_models_has_one_topic():
    models = [
        Candidate(Link(f"https://a.example/models/{n}.html", f"Model AX{n}"), "https://a.example/", 1)
        for n in range(99)
    ]
    assert topics(models, {"oil"}, (), 3) == ["Model AX models"]


def test_text_links_come_before_menus_other_sites_and_deep_ones():
    here = Link("https://a.example/x", "Oil change")
    menu = Link("https://a.example/y", "Oil change", is_navigation=True)
    away = Link("https://b.example/z", "Oil change")
    assert chosen(menu, away, here) == here.url
    assert chosen(menu, away) == away.url
    assert chosen(here, depth=4) is None
