"""Agreements under rivals: of the changes of one agreement one holds, and history is built once."""

import os
import signal
from contextlib import closing
from itertools import count
from multiprocessing.connection import Connection
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App, Command
from cpq.app.access import OPERATOR, Permission
from cpq.base.settings import Settings
from cpq.services import agreements, orders
from cpq.services.agreements.history import BATCH
from cpq.storage.schema import tables
from tests.services.quotes.test_races import PROCESS, WAIT_SECONDS, Ask, race, race_processes, receive, the_winner
from tests.support.approvals import decide, follow, person
from tests.support.engine import Tools, open_app, row_counts
from tests.support.quotes import SEATS, record_again, sent_quote, watched_statements

DAY = "2027-06-01"
BUILT = (tables.agreement_order, tables.sales_order, tables.agreement, tables.order_counter)


def sold(tools: Tools, **terms: Any) -> dict[str, Any]:
    return tools.seller(
        "quote_accept", quote_id=sent_quote(tools, start_date="2026-12-01", **terms), expected_version=1
    )


def amendment(agreement_id: str, line_id: str, quantity: int) -> Ask:
    change = {"action": "set_quantity", "line_id": line_id, "quantity": quantity}
    return "agreement_amend", {"agreement_id": agreement_id, "effective_date": DAY, "changes": [change]}


def sent(app: App, tools: Tools, ask: Ask) -> Ask:
    """The acceptance of a change that everybody approved and the customer has."""
    quote_id = tools(ask[0], **ask[1])["quote_id"]
    if roles := tools("quote_price", quote_id=quote_id)["required_roles"]:
        answer = tools("approval_request", quote_id=quote_id, justification="x")
        for role in roles:
            decide(person(app, f"{role}-{quote_id.lower()}", role), answer, role)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    return "quote_accept", {"quote_id": quote_id, "expected_version": 1}


def line_of(tools: Tools, agreement_id: str) -> str:
    line_id: str = tools("agreement_get", agreement_id=agreement_id, as_of=DAY)["lines"][0]["line_id"]
    return line_id


def assert_proven(app: App) -> None:
    """Everything that is stored of agreements follows from their orders, and every accepted quote has one order."""
    found = app.read_unaudited(app.new_call(OPERATOR), agreements.verify)
    assert found["differences"] == []
    with app.database.reading() as connection:
        quotes = sorted(connection.scalars(sa.select(tables.sales_order.c.quote_id)))
        accepted = sa.select(tables.quote.c.id).where(tables.quote.c.status == "accepted")
        assert quotes == sorted(connection.scalars(accepted))


def test_a15_of_amendments_accepted_at_once_one_holds_and_the_others_are_made_again_from_it(app: App):
    tools = Tools(app)
    id_ = sold(tools)["agreement_id"]
    line_id = line_of(tools, id_)
    asks = [sent(app, tools, amendment(id_, line_id, 200 + n)) for n in range(4)]
    answers = race(tools.seller, asks)
    winner = the_winner(answers)
    assert tools("agreement_get", agreement_id=id_, as_of=DAY)["lines"][0]["quantity"] == 200 + winner
    assert_proven(app)
    loser = (winner + 1) % 4
    error = answers[loser]["error"]
    assert (error["details"]["expected_sequence"], error["details"]["sequence"]) == (1, 2)
    assert [one["order_id"] for one in error["details"]["orders_since"]] == [answers[winner]["order_id"]]
    again = follow(tools, error)
    assert (again["lines"][0]["quantity_before"], again["lines"][0]["quantity_after"]) == (200 + winner, 200 + loser)
    roles = tools("quote_price", quote_id=again["quote_id"])["required_roles"]
    if not roles:
        tools("quote_send", quote_id=again["quote_id"], expected_version=1)
        tools.seller("quote_accept", quote_id=again["quote_id"], expected_version=1)
        assert tools("agreement_get", agreement_id=id_, as_of=DAY)["lines"][0]["quantity"] == 200 + loser
    assert_proven(app)


def test_a15_of_amendments_accepted_by_processes_at_once_one_holds(store: Settings):
    with closing(open_app(store)) as app:
        tools = Tools(app)
        id_ = sold(tools)["agreement_id"]
        line_id = line_of(tools, id_)
        asks = [[sent(app, tools, amendment(id_, line_id, 200 + n))] for n in range(3)]
        winner = the_winner(race_processes(store, asks))
        assert tools("agreement_get", agreement_id=id_, as_of=DAY)["lines"][0]["quantity"] == 200 + winner
        assert_proven(app)


@pytest.mark.parametrize("rival", ["agreement_cancel", "agreement_renew"])
def test_a15_of_an_amendment_and_what_ends_or_renews_its_base_one_holds(app: App, rival: str):
    tools = Tools(app)
    id_ = sold(tools)["agreement_id"]
    given = {"agreement_cancel": {"effective_date": DAY, "reason": "x"}, "agreement_renew": {"start_date": DAY}}
    asks = [
        sent(app, tools, amendment(id_, line_of(tools, id_), 200)),
        sent(app, tools, (rival, {"agreement_id": id_, **given[rival]})),
    ]
    answers = race(tools.seller, asks)
    winner = the_winner(answers)
    error = answers[1 - winner]["error"]
    assert error["details"]["next_call"]["tool"] == ("agreement_amend", rival)[1 - winner]
    again = tools.reply(error["details"]["next_call"]["tool"], error["details"]["next_call"]["arguments"]).body
    if winner == 1 and rival == "agreement_cancel":
        assert again["error"]["details"]["status"] == "cancelled", "nothing is left to amend"
    else:
        assert again["outcome"] == "created"
    assert_proven(app)


def test_a13_two_renewals_that_share_an_agreement_do_not_both_hold(app: App):
    tools = Tools(app)
    one, two, three = (sold(tools)["agreement_id"] for _ in range(3))
    asks = [
        sent(app, tools, ("agreement_renew", {"agreement_id": into, "also": [also]}))
        for into, also in ((one, two), (two, three), (three, one))
    ]
    answers = race(tools.seller, asks)
    winner = the_winner(answers)
    into, also = ((one, two), (two, three), (three, one))[winner]
    assert tools("agreement_get", agreement_id=also)["agreement"]["renewed_into"] == into
    assert_proven(app)


def test_a01_an_acceptance_that_is_repeated_makes_one_order(app: App):
    """Twins at once, and once more by a client whose answer was lost: it learns that it is accepted."""
    tools = Tools(app)
    ask: Ask = ("quote_accept", {"quote_id": sent_quote(tools), "expected_version": 1})
    answers = race(tools.seller, [ask] * 6)
    order_id = answers[the_winner(answers)]["order_id"]
    lost = tools.seller.error(ask[0], **ask[1])
    assert (lost["code"], lost["details"]["status"]) == ("CONFLICT", "accepted")
    assert (lost["details"]["order_id"], row_counts(app)["sales_order"]) == (order_id, 1)
    assert follow(tools, lost)["order"]["id"] == order_id
    assert_proven(app)


def forget_orders(app: App) -> None:
    """As a database from before orders existed has it: accepted quotes, and no order on record."""
    with app.database.writing(app.effects.monotonic() + 60) as connection:
        for table in BUILT:
            connection.execute(sa.delete(table))
        accepted = list(connection.scalars(sa.select(tables.quote.c.id).where(tables.quote.c.status == "accepted")))
    for quote_id in accepted:
        record_again(app, quote_id)


def build(settings: Settings, halt_at: int, channel: Connection) -> None:
    """One process: builds the history when told to; at one of its orders it says so, and waits to be killed."""
    app = open_app(settings)
    made = count(1)

    def see(statement: str) -> None:
        if statement.startswith("INSERT INTO sales_order") and next(made) == halt_at:
            channel.send("halted")
            signal.pause()

    def write(work: Any) -> Any:
        return app.write(app.new_call(OPERATOR), Command("agreements_build", Permission.ADMINISTER), work).answer

    channel.send("ready")
    channel.recv()
    with watched_statements(see):
        channel.send(agreements.build(write, 0, lambda _done, _total: None))
    app.close()


def test_a01_history_is_built_once_by_two_at_once_after_one_was_killed_halfway(store: Settings):
    with closing(open_app(store)) as app:
        tools, number = Tools(app), BATCH + 5
        line = {**SEATS, "quantity": 1}
        for _ in range(number):
            quote_id = sent_quote(tools, line)
            tools.seller("quote_accept", quote_id=quote_id, expected_version=1)
        forget_orders(app)
        pipes = [PROCESS.Pipe() for _ in range(3)]
        halts = (BATCH + 3, 0, 0)
        workers = [
            PROCESS.Process(target=build, args=(store, halt_at, theirs))
            for halt_at, (_, theirs) in zip(halts, pipes, strict=True)
        ]
        for worker in workers:
            worker.start()
        ours = [mine for mine, _ in pipes]
        assert [receive(mine) for mine in ours] == ["ready"] * 3
        ours[0].send("go")
        assert receive(ours[0]) == "halted"
        assert workers[0].pid is not None
        os.kill(workers[0].pid, signal.SIGKILL)
        workers[0].join(WAIT_SECONDS)
        assert row_counts(app)["sales_order"] == BATCH, "the first part is there, the second is not"
        for mine in ours[1:]:
            mine.send("go")
        built = [receive(mine) for mine in ours[1:]]
        for worker in workers[1:]:
            worker.join(WAIT_SECONDS)
        assert sum(one["built"] for one in built) == number - BATCH
        assert [one["refused"] for one in built] == [[], []]
        assert app.read_unaudited(app.new_call(OPERATOR), orders.waiting) == 0
        assert_proven(app)
