"""Events of orders and agreements as a webhook gets them (A-01, A-17): whole, and once, whoever sweeps and restarts."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest

from cpq.base.settings import Settings
from cpq.services import agreements
from cpq.services.events import delivery
from tests.support.approvals import person
from tests.support.engine import StillEffects, Tools, open_app, patient
from tests.support.quotes import sent_quote
from tests.support.webhook_receiver import SECRET, Receiver

START, DAY = "2026-12-01", "2027-06-01"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def hooked(store: Settings, receiver: Receiver) -> Settings:
    return store.model_copy(update={"webhooks": f"crm={receiver.url}", "webhook_secret": SECRET})


def heard(receiver: Receiver, name: str) -> list[dict[str, Any]]:
    """The events of a kind by their order; those of different quotes come in any."""
    found = [one.event for one in receiver.accepted if one.event["type"] == name]
    return sorted(found, key=lambda one: str(one["data"].get("number", one["data"].get("sequence"))))


def sold(tools: Tools) -> dict[str, Any]:
    return tools("quote_accept", quote_id=sent_quote(tools, start_date=START), expected_version=1)


def test_a01_an_order_is_published_whole_and_its_agreement_as_it_is_now(
    hooked: Settings, receiver: Receiver, clock: StillEffects
):
    with closing(open_app(hooked, clock)) as app:
        seller = person(app, "rita", "sales_rep")
        moved = sold(seller)
        line_id = seller("agreement_get", agreement_id=moved["agreement_id"], as_of=DAY)["lines"][0]["line_id"]
        change = {"action": "set_quantity", "line_id": line_id, "quantity": 200}
        given = {"agreement_id": moved["agreement_id"], "effective_date": DAY, "changes": [change]}
        quote_id = seller("agreement_amend", **given)["quote_id"]
        seller("quote_price", quote_id=quote_id)
        seller("quote_send", quote_id=quote_id, expected_version=1)
        amended = seller("quote_accept", quote_id=quote_id, expected_version=1)
        delivery.deliver_due(app)
        created, changed = heard(receiver, "order.created"), heard(receiver, "agreement.changed")
        for event, done in zip(created, (moved, amended), strict=True):
            order = seller("order_get", order_id=done["order_id"], include_schedule=True)
            body = event["data"]
            assert {**order["order"], "order_id": order["order"]["id"]}.items() >= {
                name: body[name] for name in ("order_id", "number", "kind", "net", "total", "quote_id", "currency")
            }.items()
            assert (body["lines"], body["schedule"]) == (order["lines"], order["schedule"])
            assert sum(Decimal(str(due["amount"])) for due in body["schedule"]) == Decimal(str(body["net"]))
        assert [one["data"]["kind"] for one in changed] == ["new", "amendment"]
        assert [(one["data"]["sequence"], one["data"]["arr"]) for one in changed] == [(1, 1500), (2, 2000)]
        assert {one["data"]["agreement_id"] for one in changed} == {moved["agreement_id"]}


def test_a17_a_renewal_is_published_once_by_several_workers_and_after_a_restart(
    hooked: Settings, receiver: Receiver, clock: StillEffects
):
    with closing(open_app(hooked, clock)) as app:
        id_ = sold(person(app, "rita", "sales_rep"))["agreement_id"]
        clock.advance(days=300)
        with closing(open_app(hooked, clock)) as other, patient(), ThreadPoolExecutor(4) as pool:
            list(pool.map(agreements.sweep, [app, other, app, other]))
        delivery.deliver_due(app)
    with closing(open_app(hooked, clock)) as app:
        assert agreements.sweep(app) == 0
        clock.advance(days=1)
        assert agreements.sweep(app) == 0, "nor on the next day"
        delivery.deliver_due(app)
    (event,) = heard(receiver, "agreement.renewal_due")
    assert (event["subject"], event["data"]["agreement_id"]) == (id_, id_)
    assert (event["data"]["end_date"], event["data"]["renewal_start"]) == ("2027-11-30", "2027-12-01")
    assert (event["data"]["arr"], event["data"]["currency"]) == (1500, "USD")
