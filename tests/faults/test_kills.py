"""Processes and servers that are killed under load: nothing is lost, done twice or left half, and agents just go on."""

import random
from pathlib import Path

import pytest

from cpq.base.settings import Settings, read_settings
from tests.faults import invariants
from tests.faults.agents import Crowd
from tests.support import engine, postgres
from tests.support.engine import open_app

AGENTS = 4
KILLS_OF_PROOF = 260


def assert_sound_after(settings: Settings, crowd: Crowd) -> None:
    told = crowd.stop()
    codes = crowd.codes()
    print(f"{crowd.kills} kills, {len(told)} answers, {dict(codes)}")
    assert "INTERNAL_ERROR" not in codes
    app = open_app(settings)
    invariants.assert_all_hold(app, told)
    app.close()


def test_agents_that_are_killed_lose_nothing(store: Settings, tmp_path: Path):
    crowd = Crowd(store, tmp_path, agents=2, seed=1)
    for _ in range(6):
        crowd.kill_one()
    assert_sound_after(store, crowd)


@pytest.mark.proof
def test_very_many_kills_under_load_lose_nothing_on_sqlite(sqlite_template: Path, tmp_path: Path):
    settings = read_settings({}, home=tmp_path)
    settings.sqlite_path.write_bytes(sqlite_template.read_bytes())
    crowd = Crowd(settings, tmp_path, agents=AGENTS, seed=2)
    for _ in range(KILLS_OF_PROOF):
        crowd.kill_one()
    assert_sound_after(settings, crowd)


@pytest.mark.proof
def test_very_many_kills_of_agents_and_of_the_server_lose_nothing_on_postgresql(tmp_path: Path):
    """Every tenth kill ends the server, which recovers from its log."""
    cluster = postgres.start(durable=True)
    try:
        cluster.create_database("kills")
        settings = read_settings({}, home=tmp_path, database_url=cluster.url("kills"))
        engine.fill_with_sample(settings)
        crowd, chance = Crowd(settings, tmp_path, agents=AGENTS, seed=3), random.Random(3)
        for _ in range(KILLS_OF_PROOF):
            if chance.random() < 0.1:
                cluster.crash()
                crowd.kills += 1
            else:
                crowd.kill_one()
        assert_sound_after(settings, crowd)
    finally:
        cluster.stop()
