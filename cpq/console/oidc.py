"""Sign-in through a company's OpenID Connect provider: authorization code with PKCE, and a checked ID token."""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2
import jwt
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from cpq.app import sessions
from cpq.app.access import ENGINE, Principal
from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.base.settings import LOOPBACK, Settings
from cpq.base.text import clean_identifier
from cpq.console.sign_in import Entrance, own_path
from cpq.console.site import Site

BACK = "/console/oidc/back"
COOKIE = "cpq_oidc"
COOKIE_SECONDS = 600
ANSWER_BYTES_MAX = 512 * 1024
TIMEOUT_SECONDS = 10.0
REFRESH_SECONDS = 3600.0
RETRY_SECONDS = 30.0
LEEWAY_SECONDS = 60
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Signatures with a key that only the provider has; no shared secret, and no unsigned tokens."""

ADDRESSES = ("email", "preferred_username", "upn")
"""Claims that are compared without case."""


class Provider:
    """The provider's metadata and keys; read when first needed, and again when a key is unknown."""

    def __init__(self, settings: Settings, effects: Effects) -> None:
        self._settings = settings
        self._effects = effects
        self._lock = threading.Lock()
        self._known: dict[str, Any] = {}
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._read_at = 0.0
        self._failed_at = 0.0
        self._failure: CpqError | None = None

    def address(self, name: str) -> str:
        """An endpoint of the provider."""
        with self._lock:
            if not self._known or self._effects.monotonic() - self._read_at > REFRESH_SECONDS:
                self._refresh()
            return str(self._known[name])

    def claims(self, id_token: str, nonce: str) -> Mapping[str, Any]:
        """The claims of a token that this provider signed for this client, recently, and for this attempt."""
        try:
            key = self._key(jwt.get_unverified_header(id_token).get("kid"))
            claims: dict[str, Any] = jwt.decode(
                id_token,
                key,
                algorithms=ALGORITHMS,
                audience=self._settings.oidc_client_id,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iat", "aud", "iss", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise _refused(f"its token does not hold ({type(error).__name__})") from None
        if str(claims["iss"]).rstrip("/") != self._settings.oidc_issuer:
            raise _refused("its token comes from another issuer")
        # A token for several clients must name the one that asked for it.
        is_shared = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", "" if is_shared else self._settings.oidc_client_id) != self._settings.oidc_client_id:
            raise _refused("its token is for another client")
        if not _is_same(str(claims.get("nonce", "")), nonce):
            raise _refused("its token is for another attempt")
        return claims

    def require_sender(self, issuer: str | None) -> None:
        """Refuse an answer that another provider sent here (RFC 9207), so that no code goes to the wrong one."""
        with self._lock:
            is_always_named = self._known.get("authorization_response_iss_parameter_supported") is True
        if issuer is None and is_always_named:
            raise _refused("its answer does not name its sender")
        if issuer is not None and issuer.rstrip("/") != self._settings.oidc_issuer:
            raise _refused("its answer comes from another issuer")

    def exchange(self, code: str, verifier: str, back: str) -> str:
        """The ID token for a code."""
        settings = self._settings
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back, "code_verifier": verifier}
        auth = (settings.oidc_client_id, settings.oidc_client_secret) if settings.oidc_client_secret else None
        if auth is None:
            form["client_id"] = settings.oidc_client_id
        answer = _ask("POST", self.address("token_endpoint"), data=form, auth=auth)
        if not isinstance(answer.get("id_token"), str):
            raise _refused("it gave no ID token")
        return str(answer["id_token"])

    def _key(self, kid: str | None) -> jwt.PyJWK:
        self.address("jwks_uri")
        with self._lock:
            # An unknown key may be new; the pause keeps forged tokens from causing a request each.
            if kid not in self._keys and self._effects.monotonic() - self._read_at > RETRY_SECONDS:
                self._refresh()
            if kid in self._keys:
                return self._keys[kid]
            if kid is None and len(self._keys) == 1:
                return next(iter(self._keys.values()))
        raise _refused("its token is signed with a key that it does not publish")

    def _refresh(self) -> None:
        """Read metadata and keys again. After a failure, pause before the next attempt; what is known stays in use."""
        if self._failure is None or self._effects.monotonic() - self._failed_at > RETRY_SECONDS:
            try:
                self._read()
                self._failure = None
            except CpqError as error:
                self._failure, self._failed_at = error, self._effects.monotonic()
        if self._failure is not None and not self._known:
            raise CpqError(self._failure.code, self._failure.message, **self._failure.details)

    def _read(self) -> None:
        found = _ask("GET", f"{self._settings.oidc_issuer}/.well-known/openid-configuration")
        if str(found.get("issuer", "")).rstrip("/") != self._settings.oidc_issuer:
            raise _refused("it calls itself by another name than CPQ_OIDC_ISSUER")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            _require_safe(str(found.get(name, "")))
        keys = _ask("GET", str(found["jwks_uri"])).get("keys")
        read: dict[str | None, jwt.PyJWK] = {}
        for one in keys if isinstance(keys, list) else []:
            if isinstance(one, dict) and one.get("use", "sig") == "sig" and one.get("kty") != "oct":
                try:
                    read[one.get("kid")] = jwt.PyJWK(one)
                except jwt.PyJWTError:
                    continue  # A token signed with an unknown kind of key is refused anyway.
        self._known, self._keys, self._read_at = found, read, self._effects.monotonic()


class ProviderEntrance:
    """The two pages of sign-in through the provider: out and back."""

    def __init__(self, site: Site, entrance: Entrance) -> None:
        self._site = site
        self._entrance = entrance
        self._provider = Provider(site.app.settings, site.app.effects)
        self._back = site.app.settings.console_address + BACK

    @property
    def _cookie(self) -> str:
        return f"{self._site.cookies.prefix}{COOKIE}"

    def start(self, request: Request, _form: Mapping[str, str]) -> Response:
        """Redirect to the provider. State, nonce and verifier derive from one secret in the browser's cookie."""
        self._entrance.take_try(request)
        secret = self._site.app.effects.new_secret()
        verifier = sessions.derived("verifier", secret)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": self._site.app.settings.oidc_client_id,
            "redirect_uri": self._back,
            "scope": "openid email profile",
            "state": sessions.derived("state", secret),
            "nonce": sessions.derived("nonce", secret),
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint = self._provider.address("authorization_endpoint")
        response = RedirectResponse(f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}", 303)
        target = own_path(request.query_params.get("next", ""))
        self._site.cookies.keep(response, self._cookie, f"{secret}|{target}", COOKIE_SECONDS)
        return response

    def back(self, request: Request, _form: Mapping[str, str]) -> Response:
        """Back from the provider: identify the person, and require a role here."""
        self._entrance.take_try(request)
        try:
            principal, target = self._identified(request)
        except CpqError as error:
            self._entrance.note_refusal(error)
            raise
        response = self._entrance.let_in(request, principal, lambda tx: sessions.begin(tx, principal.name), target)
        self._site.cookies.drop(response, self._cookie)
        return response

    def _identified(self, request: Request) -> tuple[Principal, str]:
        secret, _, target = request.cookies.get(self._cookie, "").partition("|")
        given = request.query_params
        if not secret or not _is_same(given.get("state", ""), sessions.derived("state", secret)):
            raise _refused("this browser did not start it, or took longer than ten minutes")
        self._provider.require_sender(given.get("iss"))
        if "code" not in given:
            raise _refused(f"it answered {given.get('error', 'nothing')[:60]!r}")
        token = self._provider.exchange(given["code"], sessions.derived("verifier", secret), self._back)
        name = self._name(self._provider.claims(token, sessions.derived("nonce", secret)))
        app = self._site.app
        return app.read_unaudited(app.new_call(ENGINE), lambda tx: sessions.person(tx, name)), own_path(target)

    def _name(self, claims: Mapping[str, Any]) -> str:
        settings = self._site.app.settings
        claim = settings.oidc_claim
        value = claims.get(claim)
        if not isinstance(value, str) or len(value) > 64:
            raise _refused(f"its token has no {claim}")
        is_vouched_for = claims.get("email_verified", settings.oidc_trust_email) in (True, "true")
        if claim == "email" and not is_vouched_for:
            raise _refused("the e-mail address is not verified there")
        try:
            # Providers vary the case of an address; no two people have addresses that differ in case alone.
            return clean_identifier(value.lower() if claim in ADDRESSES else value)
        except ValueError:
            raise _refused(f"the {claim} cannot be a name here") from None


def _ask(method: str, address: str, **options: Any) -> dict[str, Any]:
    """The provider's answer as JSON, without redirects or a proxy, limited in time and size."""
    _require_safe(address)
    try:
        with (
            httpx2.Client(timeout=TIMEOUT_SECONDS, follow_redirects=False, trust_env=False) as client,
            client.stream(method, address, headers={"Accept": "application/json"}, **options) as answer,
        ):
            body = b""
            for chunk in answer.iter_bytes():
                body += chunk
                if len(body) > ANSWER_BYTES_MAX:
                    raise _refused("its answer is too large")
            if answer.status_code != 200:
                raise _refused(f"it answered {answer.status_code}")
            found = httpx2.Response(200, content=body).json()
    except (httpx2.HTTPError, ValueError) as error:
        raise CpqError(
            Code.UNAVAILABLE,
            f"The provider cannot be asked just now ({type(error).__name__}).",
            hint="Try again, or sign in by a link.",
        ) from error
    if not isinstance(found, dict):
        raise _refused("its answer is not an object")
    return found


def _is_same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogatepass"), expected.encode())


def _require_safe(address: str) -> None:
    parts = urlsplit(address)
    is_local = parts.hostname in LOOPBACK
    if parts.scheme != "https" and not (parts.scheme == "http" and is_local):
        raise _refused("it names an address that is not https")


def _refused(why: str) -> CpqError:
    return CpqError(
        Code.FORBIDDEN, f"The provider did not sign you in: {why}.", hint="Start again from the sign-in page."
    )
