"""Each tenant has policies, documents' design, pages and settings of its own, and only those in use are in memory."""

import gc
import shutil
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpq.app import App
from cpq.base import tenant_settings
from cpq.base.errors import CpqError
from cpq.base.settings import Settings, shipped
from cpq.services import documents
from tests.support.engine import StillEffects, Tools, add_tenant, open_app
from tests.support.quotes import ACME, SEATS
from tests.support.tenants import add_tenant_with_sample, of

SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVowMTIzNDU="


@pytest.fixture
def app(store: Settings, clock: StillEffects) -> Iterator[App]:
    """With settings of the main tenant that no other one may see."""
    own = {"webhooks": "main=https://main.example", "webhook_secret": SECRET, "web_allowed_hosts": "wiki.main"}
    app = open_app(store.model_copy(update={**own, "tenants_loaded_max": 3}), clock)
    yield app
    app.close()


def folder_of(app: App, tenant_id: str) -> Path:
    folder = tenant_settings.folder_of(app.settings, tenant_id)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def give_policies(app: App, tenant_id: str, days: int) -> None:
    """The shipped policies, with another term."""
    folder = folder_of(app, tenant_id) / "policies"
    if not folder.exists():
        shutil.copytree(shipped("policies"), folder)
    file = folder / "terms.yaml"
    lines = file.read_text(encoding="utf-8").splitlines()
    changed = [f"validity_days: {days}" if line.startswith("validity_days:") else line for line in lines]
    assert changed != lines
    file.write_text("\n".join(changed) + "\n", encoding="utf-8")


def test_a_tenant_decides_by_its_own_policies(app: App, clock: StillEffects):
    for name in ("acme", "beta"):
        add_tenant(app, name)
    give_policies(app, "acme", 17)
    clock.advance(seconds=2)

    def days(tenant_id: str) -> int:
        return app.read_unaudited(app.new_call(of(tenant_id)), lambda tx: tx.policies.terms.validity_days)

    shipped_days = app.policies.current().terms.validity_days
    assert [days(name) for name in ("main", "acme", "beta")] == [shipped_days, 17, shipped_days]
    give_policies(app, "acme", 19)
    clock.advance(seconds=5)
    app.tenants.refresh("acme")
    assert [days(name) for name in ("main", "acme", "beta")] == [shipped_days, 19, shipped_days]


def test_broken_policies_of_a_tenant_stop_that_tenant_only(app: App, clock: StillEffects):
    acme, beta = add_tenant_with_sample(app, "acme"), add_tenant_with_sample(app, "beta")
    give_policies(app, "acme", 17)
    (folder_of(app, "acme") / "policies" / "terms.yaml").write_text("nonsense", encoding="utf-8")
    clock.advance(seconds=2)
    assert acme.error("quote_create", account_id=ACME, line_items=[SEATS])["code"] == "CONFIGURATION_INVALID"
    assert acme("catalog_search", query="tank")["items"]
    for tools in (beta, Tools(app)):
        tools("quote_create", account_id=ACME, line_items=[SEATS])


def test_documents_of_a_tenant_have_its_own_name_and_those_without_one_not_that_of_main(app: App, clock: StillEffects):
    add_tenant(app, "acme")
    folder = folder_of(app, "acme") / "templates"
    shutil.copytree(shipped("pdf_templates"), folder)
    branding = folder / "branding.yaml"
    name = documents.design_of(app.settings).brand.company.name
    branding.write_text(branding.read_text(encoding="utf-8").replace(name, "Walrus Works"), encoding="utf-8")
    app.settings = app.settings.model_copy(update={"templates_dir": folder})
    sellers = [documents.design_of(app.of(one).settings).brand.company.name for one in ("main", "acme", "beta")]
    assert sellers == ["Walrus Works", "Walrus Works", name]


def test_settings_of_a_tenant_are_few_and_none_is_taken_over_that_leads_elsewhere(app: App, clock: StillEffects):
    add_tenant(app, "acme")
    acme = app.of("acme").settings
    assert (acme.webhook_list, acme.webhook_keys, acme.web_allowed_hosts, acme.chunks_dir) == ((), (), "", None)
    file = folder_of(app, "acme") / ".env"
    file.write_text(f"CPQ_QUOTE_LINES_MAX=1\nCPQ_WEBHOOKS=https://acme.example\nCPQ_WEBHOOK_SECRET={SECRET}\n")
    clock.advance(seconds=2)
    acme = app.of("acme").settings
    assert (acme.quote_lines_max, [one.url for one in acme.webhook_list]) == (1, ["https://acme.example"])
    assert app.settings.quote_lines_max == 500
    lines = [{**SEATS, "quantity": number} for number in (1, 2)]
    refused = Tools(app, principal=of("acme")).error("quote_create", account_id=ACME, line_items=lines)
    assert (refused["code"], refused["details"]["maximum"]) == ("VALIDATION_ERROR", 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CPQ_HOME=/tmp", "CPQ_HOME is not a setting of a tenant"),
        ("CPQ_DATABASE_URL=sqlite:///x", "CPQ_DATABASE_URL is not a setting of a tenant"),
        ("CPQ_POLICIES_DIR=/srv/main", "CPQ_POLICIES_DIR is not a setting of a tenant"),
        ("CPQ_QUOTE_LINES_MAX=many", "'many' is not a whole number"),
        ("CPQ_WEBHOOKS=https://acme.example", "CPQ_WEBHOOK_SECRET is not"),
    ],
)
def test_an_unusable_file_of_settings_stops_its_tenant_only(sqlite_app: App, text: str, reason: str):
    add_tenant(sqlite_app, "acme")
    (folder_of(sqlite_app, "acme") / ".env").write_text(text)
    refused = Tools(sqlite_app, principal=of("acme")).error("quote_list")
    assert (refused["code"], reason in refused["message"]) == ("UNAVAILABLE", True)
    assert Tools(sqlite_app)("quote_list")["items"] == []


def test_only_the_tenants_that_were_asked_for_last_are_in_memory(app: App):
    """Of 40 tenants with policies and a search each, three are held; the others are garbage."""
    seen = []
    for number in range(40):
        add_tenant(app, f"t{number}")
        give_policies(app, f"t{number}", number + 1)
        Tools(app, principal=of(f"t{number}"))("search_equipment", query="tank")
        loaded = app.tenants.get(app.settings, f"t{number}")
        assert loaded.policies.current().terms.validity_days == number + 1
        seen.append(weakref.ref(loaded.policies.current()))
        del loaded
        assert len(app.tenants) <= 3
    gc.collect()
    assert [number for number, one in enumerate(seen) if one() is not None] == [37, 38, 39]
    again = app.tenants.get(app.settings, "t0")
    assert (again.policies.current().terms.validity_days, len(app.tenants)) == (1, 3)


def test_a_name_that_is_no_id_never_becomes_a_path(sqlite_app: App):
    for name in ("../main", "..", "/etc", "a/b", "A", ""):
        with pytest.raises(CpqError) as refused:
            sqlite_app.of(name)
        assert refused.value.code == "NOT_FOUND"
