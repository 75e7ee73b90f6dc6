"""A search that takes too long says so, and threads that ask at once do not disturb each other."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cpq.app import App
from tests.support import engine
from tests.support.engine import Tools

HOLES = 11


def pigeons(app: App, id_: str) -> None:
    """One pigeon more than there are holes: nothing shows quickly that they do not fit."""
    names = [f"p{place}" for place in range(HOLES + 1)]
    options = {name: {"type": "integer", "min": 1, "max": HOLES, "default": 1} for name in names}
    rules = [
        {
            "id": f"R{one}-{other}-{hole}",
            "say": "A hole has one pigeon.",
            "forbid": {names[one]: hole, names[other]: hole},
        }
        for one in range(len(names))
        for other in range(one)
        for hole in range(1, HOLES + 1)
    ]
    engine.import_dicts(
        app, "products", engine.product_row(id=id_, product_type="configurable", options=options, rules=rules)
    )


def test_a_search_that_takes_too_long_answers_with_what_is_proven(app: App, tools: Tools):
    pigeons(app, "pigeons")
    answer: dict[str, Any] = tools("product_configure", product_id="pigeons", attributes={"p0": 2})
    assert answer["outcome"] == "TIMEOUT"
    assert "conflicts" in answer["unfinished"]
    assert answer["configurations"] == []
    assert answer["problems"] == ["A hole has one pigeon."], "what the defaults break is known without a search"
    assert "see `problems`" in answer["message"]


def test_two_threads_that_ask_at_once_get_the_answers_of_one(app: App, tools: Tools):
    asked = [{"hp": hp, "voltage": "208"} for hp in (25, 75, 100, 150)]

    def ask(attributes: dict[str, Any]) -> dict[str, Any]:
        return tools("product_configure", product_id="prod_qvs_series", attributes=attributes)

    alone = [ask(attributes) for attributes in asked]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ask, asked * 2)) == alone * 2
