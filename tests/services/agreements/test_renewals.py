"""Renewals that are due (A-17): who is told, and once."""

from contextlib import closing
from typing import Any

import sqlalchemy as sa

from cpq.app import App
from cpq.app.access import ENGINE
from cpq.base.settings import Settings
from cpq.services import agreements
from cpq.storage.schema import tables
from tests.support.approvals import person
from tests.support.engine import StillEffects, open_app
from tests.support.quotes import sent_quote


def told(app: App) -> list[Any]:
    event = tables.event
    query = sa.select(event.c.subject, event.c.body).where(event.c.name == "agreement.renewal_due")
    with app.database.reading() as connection:
        return [tuple(row) for row in connection.execute(query.order_by(event.c.created_at, event.c.id))]


def test_a17_a_renewal_is_told_once_for_each_end_a_set_number_of_days_before(store: Settings, clock: StillEffects):
    with closing(open_app(store, clock)) as app:
        seller = person(app, "rita", "sales_rep")
        quote_id = sent_quote(seller)
        sold = seller("quote_accept", quote_id=quote_id, expected_version=1)
        id_ = sold["agreement_id"]
        assert agreements.sweep(app) == 0
        clock.advance(days=300)
        assert [agreements.sweep(app), agreements.sweep(app)] == [1, 0]
        ((subject, body),) = told(app)
        owned = seller("agreement_get", agreement_id=id_)["agreement"]
        assert (subject, body["agreement_id"], body["end_date"]) == (id_, id_, owned["end_date"])
        assert (body["arr"], body["currency"], body["account_id"]) == (1500, "USD", "acct_acme_001")
        renewal = seller("agreement_renew", agreement_id=id_)
        seller("quote_price", quote_id=renewal["quote_id"])
        seller("quote_send", quote_id=renewal["quote_id"], expected_version=1)
        seller("quote_accept", quote_id=renewal["quote_id"], expected_version=1)
        assert agreements.sweep(app) == 0, "it ends a year later now"
        clock.advance(days=365)
        assert agreements.sweep(app) == 1
        first, second = (body["end_date"] for _, body in told(app))
        assert first == owned["end_date"] < second


def test_a17_a_line_without_an_end_is_due_by_its_notice(store: Settings, clock: StillEffects):
    with closing(open_app(store, clock)) as app:
        seller = person(app, "rita", "sales_rep")
        line = {"product_id": "prod_rent_rs100", "quantity": 1, "selling_model": "evergreen"}
        sold = seller("quote_accept", quote_id=sent_quote(seller, line, start_date="2027-01-01"), expected_version=1)
        clock.advance(days=100)
        found = app.read_unaudited(app.new_call(ENGINE), lambda tx: agreements.due(tx, days=60))
        assert [one["agreement_id"] for one in found["notices"]] == [sold["agreement_id"]]
        (notice,) = found["notices"]
        assert (notice["period_start"] - notice["notice_date"]).days == found["notice_days"] == 30
        assert (notice["period_start"].day, notice["notice_date"] >= found["as_of"]) == (1, True)
        assert found["renewals"] == []
