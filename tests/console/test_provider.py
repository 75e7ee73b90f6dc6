"""Signing in by a company's provider: a real one on this machine, over HTTP, and one that lies."""

import shutil
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from cpq.app import tokens
from cpq.app.access import Principal
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.base.settings import read_settings
from cpq.console import oidc
from cpq.console.site import AT_ONCE_MAX
from tests.support import engine, oidc_provider
from tests.support.approvals import ask, priced_quote
from tests.support.console import WAIT_SECONDS, Console, form_token, serving
from tests.support.oidc_provider import CLIENT, SECRET, Provider

DAY_SECONDS = 86_400

LIES: dict[str, Any] = {
    "another issuer": {"iss": "https://evil.example"},
    "another audience": {"aud": "somebody-else"},
    "another client": {"azp": "somebody-else"},
    "another attempt": {"nonce": "0" * 64},
    "no attempt": {"nonce": None},
    "over": {"exp": int(time.time()) - DAY_SECONDS},
    "not yet": {"iat": int(time.time()) + DAY_SECONDS},
    "no end": {"exp": None},
    "nobody": {"email": None},
    "not a word": {"email": ["dana@example.com"]},
    "an address that was not verified": {"email_verified": False},
    "an address of which nothing is said": {"email_verified": None},
    "several clients, and none that asked": {"aud": [CLIENT, "somebody-else"]},
    "several clients, and another that asked": {"aud": [CLIENT, "somebody-else"], "azp": "somebody-else"},
    "an invisible twin": {"email": "dana\u200b@example.com"},
}


@pytest.fixture(scope="module")
def company() -> Iterator[Provider]:
    with oidc_provider.running() as running:
        yield running


@contextmanager
def at(company: Provider, template: Path, home: Path, **changed: Any) -> Iterator[Console]:
    """A console that asks the company's provider, and knows dana."""
    shutil.copy(template, home / "quotewright.db")
    given: dict[str, Any] = {"oidc_issuer": company.issuer, "oidc_client_id": CLIENT, "oidc_client_secret": SECRET}
    with serving(read_settings({}, home=home, **given, **changed)) as running:
        running.grant("dana@example.com", "sales_manager")
        yield running


@pytest.fixture
def console(company: Provider, sqlite_template: Path, tmp_path: Path) -> Iterator[Console]:
    company.lies, company.discovery, company.signer, company.algorithm = {}, {}, company.key, "RS256"
    company.sender = None
    with at(company, sqlite_template, tmp_path) as running:
        yield running


def come_back(visitor: httpx2.Client, path: str = "/console/oidc/start") -> httpx2.Response:
    """To the provider and back, as a browser goes."""
    out = visitor.get(path)
    assert out.status_code == 303, out.text
    return visitor.get(way_back(out))


def way_back(out: httpx2.Response) -> str:
    """Where the provider sends a browser that was sent to it."""
    return httpx2.get(out.headers["location"], follow_redirects=False, timeout=WAIT_SECONDS).headers["location"]


def test_a_person_of_the_company_with_a_role_gets_in(console: Console):
    visitor = console.visitor()
    assert "Sign in with your company account" in visitor.get("/console/sign-in").text
    answer = come_back(visitor, "/console/oidc/start?next=/console/quotes")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/quotes")
    page = visitor.get("/console/queue")
    assert "<bdi>dana@example.com</bdi>" in page.text
    assert "Sales manager" in page.text


def test_the_subject_of_a_provider_is_the_person_behind_a_program_and_decides_nothing_that_it_made(
    company: Provider, sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(company, "lies", {"sub": "dana"})
    with at(company, sqlite_template, tmp_path, oidc_claim="sub") as console:
        console.grant("dana", "sales_manager")
        found: list[Principal] = []

        def work(tx: Tx) -> dict[str, Any]:
            tokens.create_token(tx, name="crm-bot", role="agent", owner="dana")
            found.append(tokens.find_principal(tx, "crm-bot"))
            return {}

        engine.write(console.app, work)
        made = ask(bot := engine.Tools(console.app, principal=found[0]), priced_quote(bot))
        visitor = console.visitor()
        assert come_back(visitor).status_code == 303
        address = f"/console/quotes/{made['quote_id']}"
        page = visitor.get(address).text
        assert "<bdi>dana</bdi>" in page
        given = {"approval_id": made["approval_id"], "fingerprint": made["fingerprint"], "version": "1"}
        form = {"form_token": form_token(page), "decision": "approve", "comment": "", **given}
        refused = visitor.post(f"{address}/decide", data=form)
        assert (refused.status_code, "Nobody decides what they asked for" in refused.text) == (403, True)
        assert console.tools("quote_get", quote_id=made["quote_id"])["quote"]["status"] == "pending_approval"


@pytest.mark.parametrize("said", [{"email": "Dana@Example.COM"}, {"aud": [CLIENT, "other"], "azp": CLIENT}])
def test_the_same_person_gets_in_however_the_provider_puts_it(
    console: Console, company: Provider, said: dict[str, Any]
):
    company.lies = said
    visitor = console.visitor()
    assert come_back(visitor).status_code == 303
    assert "<bdi>dana@example.com</bdi>" in visitor.get("/console/queue").text


@pytest.mark.parametrize(("said", "status"), [(None, 303), (False, 403)])
def test_a_provider_that_never_says_so_can_be_trusted(
    company: Provider, sqlite_template: Path, tmp_path: Path, said: bool | None, status: int
):
    company.lies = {"email_verified": said}
    with at(company, sqlite_template, tmp_path, oidc_trust_email=True) as console:
        assert come_back(console.visitor()).status_code == status


def test_who_has_no_role_here_is_told_what_to_ask_for(console: Console, company: Provider):
    company.lies = {"email": "new@example.com"}
    visitor = console.visitor()
    answer = come_back(visitor)
    assert answer.status_code == 403
    assert "cpq token grant --name new@example.com" in answer.text
    assert visitor.get("/console/queue").status_code == 303


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_token_that_lies_lets_nobody_in(console: Console, company: Provider, lie: dict[str, Any]):
    company.lies = lie
    visitor = console.visitor()
    assert come_back(visitor).status_code == 403
    assert visitor.get("/console/queue").status_code == 303


@pytest.mark.parametrize(
    ("sender", "is_promised", "status"),
    [("its own", True, 303), ("its own", False, 303), ("https://evil.example", False, 403), (None, True, 403)],
)
def test_an_answer_that_another_provider_sent_lets_nobody_in(
    console: Console, company: Provider, sender: str | None, is_promised: bool, status: int
):
    company.sender = company.issuer if sender == "its own" else sender
    company.discovery = {"authorization_response_iss_parameter_supported": is_promised}
    assert come_back(console.visitor()).status_code == status


@pytest.mark.parametrize("algorithm", ["HS256", "none", "RS256"])
def test_a_token_that_the_provider_did_not_sign_lets_nobody_in(console: Console, company: Provider, algorithm: str):
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    company.algorithm = algorithm
    company.signer = {"HS256": "x" * 40, "none": None, "RS256": other}[algorithm]
    assert come_back(console.visitor()).status_code == 403


def test_the_answer_to_another_browser_lets_nobody_in(console: Console):
    """Login CSRF: the way back belongs to the browser that went out."""
    out = console.visitor().get("/console/oidc/start")
    back = way_back(out)
    victim = console.visitor()
    assert victim.get(back).status_code == 403
    other = console.visitor()
    other.get("/console/oidc/start")
    assert other.get(back).status_code == 403
    assert other.get("/console/oidc/back?state=%F0%9F%92%A3&code=1").status_code == 403
    assert other.get("/console/oidc/back").status_code == 403


def test_a_way_back_is_taken_once(console: Console):
    visitor = console.visitor()
    out = visitor.get("/console/oidc/start")
    back = way_back(out)
    assert visitor.get(back).status_code == 303
    assert visitor.get(back).status_code == 403


@pytest.mark.parametrize(
    "said",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://evil.example/token"},
        {"jwks_uri": "file:///etc/passwd"},
    ],
)
def test_a_provider_that_points_elsewhere_is_not_followed(console: Console, company: Provider, said: dict[str, Any]):
    company.discovery = said
    assert console.visitor().get("/console/oidc/start").status_code == 403


def test_a_provider_that_is_down_leaves_the_links(sqlite_template: Path, tmp_path: Path):
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    settings = read_settings({}, home=tmp_path, oidc_issuer="http://127.0.0.1:9", oidc_client_id=CLIENT)
    with serving(settings) as console:
        answer = console.visitor().get("/console/oidc/start")
        assert answer.status_code == 503
        assert "sign in by a link" in answer.text
        assert console.signed_in("dana", "sales_manager").get("/console/queue").status_code == 200


def test_a_provider_that_hangs_holds_up_nobody_else(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """More strangers than there are threads wait for it; who is signed in does not, and it is asked once."""
    monkeypatch.setattr(oidc, "TIMEOUT_SECONDS", 10.0 * WAIT_SECONDS)
    shutil.copy(sqlite_template, tmp_path / "quotewright.db")
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(AT_ONCE_MAX) as strangers:
        issuer = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with serving(read_settings({}, home=tmp_path, oidc_issuer=issuer, oidc_client_id=CLIENT)) as console:
            dana = console.signed_in("dana", "sales_manager")
            visitors = [console.visitor() for _ in range(AT_ONCE_MAX)]
            waiting = [strangers.submit(visitor.get, "/console/oidc/start") for visitor in visitors]
            asked, _ = silent.accept()
            assert dana.get("/console/queue").status_code == 200
            assert not any(one.done() for one in waiting)
            asked.close()
            assert {one.result().status_code for one in waiting} == {503}
            silent.setblocking(False)
            with pytest.raises(BlockingIOError):
                silent.accept()


def test_what_is_known_of_a_provider_outlives_its_failure(company: Provider, clock: engine.StillEffects):
    company.discovery = {}
    asking = oidc.Provider(read_settings({}, oidc_issuer=company.issuer, oidc_client_id=CLIENT), clock)
    address = asking.address("token_endpoint")
    company.discovery = {"jwks_uri": "http://127.0.0.1:9/keys", "token_endpoint": f"{company.issuer}/moved"}
    clock.advance(hours=2)
    assert asking.address("token_endpoint") == address
    company.discovery = {"token_endpoint": f"{company.issuer}/moved"}
    assert asking.address("token_endpoint") == address, "not asked again at once"
    clock.advance(minutes=1)
    assert asking.address("token_endpoint") == f"{company.issuer}/moved"
    company.discovery = {}


@pytest.mark.parametrize(
    "given",
    [
        {"oidc_issuer": "http://login.example.com", "oidc_client_id": CLIENT},
        {"oidc_issuer": "https://login.example.com"},
        {"console_url": "http://cpq.example.com"},
        {"console_url": "https://user@cpq.example.com"},
    ],
)
def test_settings_that_cannot_be_safe_are_refused(given: dict[str, Any]):
    with pytest.raises(CpqError):
        read_settings({}, **given)
