"""Every statement names its tenant; what the suite watches for, and that it would notice."""

import pytest
import sqlalchemy as sa

from cpq.app import App
from cpq.app.transaction import Tx
from cpq.services import catalog
from cpq.services.catalog import repository
from cpq.storage.schema import tables
from cpq.storage.statements import Statement
from tests.support import tenant_watch
from tests.support.quotes import ACME
from tests.support.tenant_watch import is_of_one_tenant

OF_ONE = [
    sa.select(tables.quote).where(tables.quote.c.tenant_id == "main"),
    sa.select(tables.quote)
    .join(tables.account, tables.account.c.tenant_id == tables.quote.c.tenant_id)
    .where(tables.quote.c.tenant_id == "main"),
    sa.select(tables.quote.c.id, tables.account.c.id).where(
        tables.quote.c.tenant_id == "main", tables.account.c.tenant_id == "main"
    ),
    sa.update(tables.quote).where(tables.quote.c.tenant_id == "main").values(status="sent"),
    sa.insert(tables.audit_head).values(tenant_id="main", seq=0, hash=""),
    sa.text("SELECT row FROM search_key WHERE tenant_id = :tenant"),
    sa.text("SELECT 1 FROM alembic_version"),
]
OF_ALL = [
    sa.select(tables.quote),
    sa.select(tables.quote.c.tenant_id).where(tables.quote.c.id == "Q-1"),
    sa.select(tables.quote).join(tables.account, tables.account.c.tenant_id == tables.quote.c.tenant_id),
    sa.select(tables.quote.c.id, tables.account.c.id).where(tables.quote.c.tenant_id == "main"),
    sa.select(tables.quote).where(
        tables.quote.c.tenant_id == "main", tables.quote.c.account_id.in_(sa.select(tables.account.c.id))
    ),
    sa.update(tables.quote).values(status="sent"),
    sa.delete(tables.token).where(tables.token.c.id == "tok-1"),
    sa.text("INSERT INTO audit_head (seq, hash) VALUES (0, '')"),
]


@pytest.mark.parametrize("statement", OF_ONE)
def test_a_statement_that_names_its_tenant_passes(statement: sa.ClauseElement):
    assert is_of_one_tenant(str(statement))


@pytest.mark.parametrize("statement", OF_ALL)
def test_a_statement_that_does_not_is_noticed(statement: sa.ClauseElement):
    assert not is_of_one_tenant(str(statement))


def test_what_the_product_sends_is_watched_on_both_ways(sqlite_app: App, monkeypatch: pytest.MonkeyPatch):
    """A condition that is forgotten shows, in a statement of SQLAlchemy and in one that is compiled once."""
    monkeypatch.setattr(Tx, "own", lambda _tx, _table: sa.true())
    forgetful = Statement(
        lambda _dialect: sa.select(tables.catalog_revision.c.revision).order_by(sa.bindparam("tenant"))
    )
    monkeypatch.setattr(repository, "_REVISION", forgetful)

    def work(tx: Tx) -> str:
        catalog.get_account(tx, ACME)
        return repository.revision_of(tx)

    assert sqlite_app.read_unaudited(sqlite_app.new_call(), work)
    noticed = [place.partition(":")[0] for place in tenant_watch.found]
    tenant_watch.found.clear()
    assert noticed == ["cpq/services/catalog/accounts.py", "cpq/services/catalog/repository.py"]
