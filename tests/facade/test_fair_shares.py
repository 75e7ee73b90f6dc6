"""Places for calls: how a caller who sends many leaves room for others."""

from __future__ import annotations

import threading

import anyio
import anyio.to_thread
import pytest

from cpq.base.errors import Code, CpqError
from mcp_facade import fair_shares
from mcp_facade.fair_shares import FairShares, RefusalPause

pytestmark = pytest.mark.anyio


def shares(**changed: float) -> FairShares:
    given = {"places": 3, "per_caller": 2, "waiting_max": 4, "wait_seconds": 60.0, **changed}
    return FairShares(**given)  # type: ignore[arg-type] # Whole numbers but for the seconds.


async def test_a_caller_with_many_calls_leaves_a_place_for_others():
    places = shares()
    for _ in range(2):
        await places.take("greedy")
    with anyio.move_on_after(0):
        await places.take("greedy")
    await places.take("other")
    assert places.running == 3


async def test_freed_places_go_to_the_callers_in_turn():
    places = shares(places=1, per_caller=1)
    order: list[str] = []
    await places.take("first")

    async def wait(caller: str) -> None:
        await places.take(caller)
        order.append(caller)
        places.give_back(caller)

    async with anyio.create_task_group() as tasks:
        for caller in ("greedy", "greedy", "greedy", "other", "third"):
            tasks.start_soon(wait, caller)
        await anyio.wait_all_tasks_blocked()
        places.give_back("first")
    assert order == ["greedy", "other", "third", "greedy", "greedy"]
    assert places.running == 0


async def test_too_many_waiting_calls_are_told_to_come_back():
    places = shares(per_caller=1, waiting_max=1)
    await places.take("greedy")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(places.take, "greedy")
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(CpqError, match="1 calls of this caller run and 1 wait already") as refused:
            await places.take("greedy")
        tasks.cancel_scope.cancel()
    assert refused.value.code is Code.UNAVAILABLE


async def test_a_call_that_leaves_while_it_waits_takes_no_place():
    places = shares(places=1, per_caller=1)
    await places.take("first")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(places.take, "leaves")
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    places.give_back("first")
    assert places.running == 0
    await places.take("other")


async def test_places_given_back_by_many_threads_are_never_lost():
    places = shares(places=5, per_caller=3, waiting_max=1000)
    most = 0
    lock = threading.Lock()
    at_once = 0

    async def call(caller: str) -> None:
        nonlocal most, at_once
        await places.take(caller)
        with lock:
            at_once += 1
            most = max(most, at_once)

        def work() -> None:
            nonlocal at_once
            with lock:
                at_once -= 1
            places.give_back(caller)

        await anyio.to_thread.run_sync(work)

    async with anyio.create_task_group() as tasks:
        for number in range(300):
            tasks.start_soon(call, f"caller {number % 4}")
    assert places.running == 0
    assert most <= 5


async def is_held(pause: RefusalPause, caller: str) -> bool:
    with anyio.move_on_after(0.05) as scope:
        await pause.wait(caller)
    return scope.cancelled_caught


async def test_a_caller_who_goes_on_after_refusals_is_answered_later_and_others_at_once(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(fair_shares, "REFUSAL_SECONDS", 3600)
    pause = RefusalPause()
    monkeypatch.setattr(fair_shares, "REFUSALS_FREE", 10**9)
    with anyio.fail_after(60):
        for _ in range(100):
            await pause.wait("t/busy")
    monkeypatch.setattr(fair_shares, "REFUSALS_FREE", 0)
    assert await is_held(pause, "t/busy")


async def test_refusals_of_a_caller_do_not_hold_all_connections(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fair_shares, "REFUSAL_SECONDS", 3600)
    monkeypatch.setattr(fair_shares, "REFUSALS_FREE", 0)
    monkeypatch.setattr(fair_shares, "REFUSALS_HELD", 2)
    pause = RefusalPause()
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(pause.wait, "t/busy")
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(60):
            await pause.wait("t/busy")
        assert await is_held(pause, "t/other")
        tasks.cancel_scope.cancel()


async def test_refusals_that_wait_together_are_not_answered_together(monkeypatch: pytest.MonkeyPatch):
    """Thirty that end at once would be thirty new requests at once, and others would wait for all of them."""
    monkeypatch.setattr(fair_shares, "REFUSALS_FREE", 0)
    seconds = list[float]()

    async def sleep(how_long: float) -> None:
        seconds.append(how_long)
        await anyio.sleep_forever()

    monkeypatch.setattr(anyio, "sleep", sleep)
    pause = RefusalPause()
    async with anyio.create_task_group() as tasks:
        for _ in range(30):
            tasks.start_soon(pause.wait, "t/busy")
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert (len(set(seconds)), min(seconds)) == (30, fair_shares.REFUSAL_SECONDS)
