"""Every statement names its tenant; what the suite watches for, and that it would notice."""

import pytest
import sqlalchemy as sa

from cpq.app import App
from cpq.app.transaction import Tx
from cpq.domain.catalog.words import scope_code
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
    sa.text("SELECT count(*) FROM catalog_index WHERE tenant_id = :tenant AND terms @@ CAST(:match AS tsquery)"),
    sa.text("SELECT count(*) FROM catalog_index WHERE catalog_index MATCH :match"),
    sa.select(tables.quote)
    .join(tables.quote_version, tables.quote_version.c.tenant_id == tables.quote.c.tenant_id)
    .join(tables.account, tables.account.c.tenant_id == tables.quote_version.c.tenant_id)
    .where(tables.account.c.tenant_id == "main"),
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
    sa.text("SELECT count(*) FROM catalog_index WHERE terms @@ CAST(:match AS tsquery)"),
    sa.select(tables.quote, tables.token.c.id)
    .join(tables.account, tables.account.c.tenant_id == tables.quote.c.tenant_id)
    .where(tables.token.c.tenant_id == "main"),
    sa.select(tables.quote)
    .join(tables.account, tables.account.c.id == tables.quote.c.account_id)
    .where(tables.quote.c.tenant_id == "main"),
]


@pytest.mark.parametrize("statement", OF_ONE)
def test_a_statement_that_names_its_tenant_passes(statement: sa.ClauseElement):
    assert is_of_one_tenant(str(statement))


@pytest.mark.parametrize("statement", OF_ALL)
def test_a_statement_that_does_not_is_noticed(statement: sa.ClauseElement):
    assert not is_of_one_tenant(str(statement))


def test_the_word_index_of_sqlite_is_searched_by_terms_of_one_tenant():
    search, term, other = "SELECT 1 FROM catalog_index WHERE catalog_index MATCH ?", scope_code("main"), scope_code("b")
    assert is_of_one_tenant(search, (f'("{term}ntank" * NOT "{term}x")',))
    for match in (f'("{term}ntank" OR "{other}ntank")', '"tank"', '"compressor" *', ""):
        assert not is_of_one_tenant(search, (match,))


def test_tables_of_two_given_tenants_are_noticed():
    statement = "SELECT 1 FROM quote, account WHERE quote.id = ? AND quote.tenant_id = ? AND account.tenant_id = ?"
    assert tenant_watch.is_given_once(statement, ("Q-1", "main", "main"))
    assert not tenant_watch.is_given_once(statement, ("Q-1", "main", "other"))
    statement = "SELECT 1 FROM quote, account WHERE quote.tenant_id = %(a)s AND account.tenant_id = %(b)s"
    assert tenant_watch.is_given_once(statement, {"a": "main", "b": "main"})
    assert not tenant_watch.is_given_once(statement, {"a": "main", "b": "other"})


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
