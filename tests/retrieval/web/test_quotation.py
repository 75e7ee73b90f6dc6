"""Which sentence or row of a passage is quoted for a question."""

from collections.abc import Sequence

from cpq.retrieval.search.embedding import installed_embedder
from cpq.retrieval.search.vectors import similarity
from cpq.retrieval.web.rules.questions import asked_words
from cpq.retrieval.web.rules.quotation import best_quotation, quotations

TABLE = """The data of both models.

| Model | Noise  | Power |
|-------|--------|-------|
| QMB25 | 79 dBA | 25 hp |
| QMB30 | 81 dBA | 30 hp |"""


def quoted(text: str, question: str) -> str | None:
    embedder = installed_embedder()
    assert embedder

    def near(texts: Sequence[str]) -> list[float]:
        return [similarity(embedder.query(question), embedder.query(each)) for each in texts]

    return best_quotation(text, asked_words(question), near)


def test_a_row_is_quoted_with_the_head_of_its_table():
    row = "| Model | Noise  | Power |\n| QMB30 | 81 dBA | 30 hp |"
    assert quoted(TABLE, "What is the noise of the QMB30?") == row
    assert all(line in TABLE for line in row.split("\n"))


def test_a_sentence_that_says_it_in_other_words_is_quoted():
    text = (
        "Our machine hall is open on weekdays. At full load it makes 75 decibels of noise at one metre. "
        "The machine is painted blue."
    )
    question = "How loud is the machine?"
    assert quoted(text, question) == "At full load it makes 75 decibels of noise at one metre."
    assert best_quotation(text, asked_words(question)) == "Our machine hall is open on weekdays."


def test_without_a_word_or_a_meaning_in_common_nothing_is_quoted():
    assert quoted("Zebras graze. Giraffes browse in the savannah.", "torque of the valve cover bolts") is None
    assert best_quotation("Zebras graze. Giraffes browse.", {"torqu"}) is None


def test_every_sentence_row_and_line_of_code_can_be_quoted_and_nothing_else():
    text = f"One. Two!\n\n{TABLE}\n\n```py\nsend(quote)\n```\n一つ目。二つ目。\n---\n{'x' * 700}"
    assert list(quotations(text)) == [
        "One.",
        "Two!",
        "The data of both models.",
        "| Model | Noise  | Power |\n| QMB25 | 79 dBA | 25 hp |",
        "| Model | Noise  | Power |\n| QMB30 | 81 dBA | 30 hp |",
        "send(quote)",
        "一つ目。",
        "二つ目。",
    ]
