"""Fixtures for documents: one engine with sample data for all tests that only read what it makes."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cpq.base.clock import Effects
from cpq.base.settings import read_settings
from tests.support import papers
from tests.support.engine import TODAY, StillEffects, Tools, open_app
from tests.support.papers import Paper
from tests.support.quotes import put_into
from tests.tools.conftest import sqlite_tools, tools  # noqa: F401 - fixtures, here too

Papers = Callable[..., Paper]


class SameEffects(StillEffects):
    """The same dates in every run, and ids of two letters that are equally wide: lines break at the same places."""

    def __init__(self) -> None:
        super().__init__(TODAY, step=timedelta(milliseconds=1))
        self._numbers = itertools.count(1)

    def monotonic(self) -> float:
        """Real seconds, because a worker that is given too few of them runs by the real clock."""
        return Effects.monotonic(self)

    def new_id(self, prefix: str) -> str:
        return prefix + f"{next(self._numbers):020b}".translate({ord("0"): "b", ord("1"): "d"})


@pytest.fixture(scope="session")
def desk(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """Tools on a store of their own, which tests may add quotes to."""
    home = tmp_path_factory.mktemp("desk")
    shutil.copy(sqlite_template, home / "quotewright.db")
    app = open_app(read_settings({}, home=home, rate_limit_per_minute=0), SameEffects())
    made = Tools(app)
    papers.add_long_sku(made)
    yield made
    app.close()


@pytest.fixture(scope="session")
def samples(desk: Tools) -> dict[str, str]:
    """Quotes of several kinds and sizes, by name."""

    def alternative(name: str, *ids: str) -> list[dict[str, Any]]:
        return [{"product_id": id_, "quantity": 1, "option_set": name} for id_ in ids]

    sets = [
        {"product_id": "prod_tk240v", "quantity": 1},
        *alternative("Basic", "prod_qmb15", "prod_dr75"),
        *alternative("Plus", "prod_qmb25", "prod_dr125"),
        *alternative("Premium", "prod_qmb30", "prod_dr125", "prod_svc_install"),
    ]
    german = {"account_id": "acct_rheinstahl_010", "currency": "EUR"}
    made = {
        "one": papers.quoted(desk, {"product_id": "prod_pro_v2", "quantity": 150}, discount=5),
        "stamped": papers.quoted(desk, discount=10),
        "mixed": papers.quoted(desk, discount=3, notes="Please note our shutdown.\nDeliver before 1 July."),
        "german": papers.quoted(desk, discount=2, start_date="2026-12-01", deal_id="OPP-77", **german),
        "four": papers.quoted(desk, *papers.PLAIN, discount=2),
        "four_abroad": papers.quoted(desk, *papers.PLAIN, discount=2, **german),
        "twelve": papers.quoted(desk, *papers.many_lines(desk, 12)),
        "sixty": papers.quoted(desk, *papers.many_lines(desk, 60), discount=1),
        "japanese": papers.quoted(desk, account_id="acct_hikari_020", currency="JPY", notes="納期は髙橋様へ。"),
        "arabic": papers.quoted(desk, account_id="acct_emirates_023", discount=1, notes="هاتف: +971 4 555 0142"),
        "scripts": papers.quoted(
            desk, papers.MACHINES[1], notes="汉字简体 繁體 한국어 עברית ไทย हिन्दी Ελληνικά Русский € ₹"
        ),
        "ramp": papers.quoted(desk, {**papers.MACHINES[1], "ramp": [{"months": 6, "quantity": 100}, {"months": 6}]}),
        "sets": papers.quoted(desk, *sets),
        "nasty": papers.quoted(
            desk,
            {"product_id": "prod_long", "quantity": 1_000_000, "notes": papers.WORDS_3000, "discount_pct": 3},
            {"product_id": "prod_pro_v2", "quantity": 1, "notes": papers.HOSTILE},
            notes=papers.HOSTILE,
        ),
    }
    translated = {"product_id": papers.add_arabic(desk), "quantity": 1, "notes": "الطراز QMB-30 (A) عند 5 °C."}
    made["translated"] = papers.quoted(desk, translated, papers.PLAIN[0], account_id="acct_emirates_023")
    for name, quote_id in made.items():
        if name != "stamped":
            put_into(desk.app, quote_id, "sent")
    return made


@pytest.fixture(scope="session")
def paper(desk: Tools, samples: dict[str, str]) -> Papers:
    """The finished document of a sample; the second time it comes from the store."""

    def make(name: str, template: str = "standard", locale: str | None = None) -> Paper:
        asked = {"quote_id": samples[name], "template": template, **({"locale": locale} if locale else {})}
        answer = desk("quote_pdf", **asked)
        assert (answer["stamp"] is not None) == (name == "stamped"), (name, answer["stamp"])
        return Paper.of(answer)

    return make
