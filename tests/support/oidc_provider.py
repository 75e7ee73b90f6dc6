"""A small OpenID Connect provider on this machine, which can be told to misbehave."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

CLIENT = "console"
SECRET = "a secret of the client"


class Provider:
    """Signs in whoever `claims` says, without asking; `lies` change what its tokens say."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.claims: dict[str, Any] = {"email": "dana@example.com", "email_verified": True}
        self.lies: dict[str, Any] = {}
        self.discovery: dict[str, Any] = {}
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.signer: Any = self.key
        self.algorithm = "RS256"
        self.sender: str | None = None
        """The issuer that the answer to a browser names."""
        self.asked: dict[str, dict[str, str]] = {}
        """What came with each code that was given out."""

    def configuration(self) -> dict[str, Any]:
        paths = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        found = {"issuer": self.issuer, **{name: f"{self.issuer}/{path}" for name, path in paths.items()}}
        return {**found, **self.discovery}

    def keys(self) -> dict[str, Any]:
        return {"keys": [{**RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True), "kid": "one", "use": "sig"}]}

    def authorize(self, asked: dict[str, str]) -> str:
        code = f"code-{len(self.asked)}"
        self.asked[code] = asked
        answer = {"code": code, "state": asked["state"], **({} if self.sender is None else {"iss": self.sender})}
        return f"{asked['redirect_uri']}?{urlencode(answer)}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any]:
        """Only for the client itself, only with the verifier, and only once."""
        expected = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        assert authorization == f"Basic {expected}"
        asked = self.asked.pop(form["code"])
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert asked["code_challenge"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        assert asked["redirect_uri"] == form["redirect_uri"]
        now = int(time.time())
        body = {"iss": self.issuer, "aud": CLIENT, "sub": "1", "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        said = {name: value for name, value in {**body, **self.claims, **self.lies}.items() if value is not None}
        key = self.signer
        return {"id_token": jwt.encode(said, key, algorithm=self.algorithm, headers={"kid": "one"}), "token_type": "x"}


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            self.send_response(303)
            self.send_header("Location", self.provider.authorize(asked))
            self.end_headers()
            return
        known = {"/.well-known/openid-configuration": self.provider.configuration, "/keys": self.provider.keys}
        self._answer(known[parts.path]())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self._answer(self.provider.token(form, self.headers.get("authorization", "")))

    def log_message(self, *_: Any) -> None:
        """Tests print nothing."""

    def _answer(self, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def running() -> Iterator[Provider]:
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    handler.provider = Provider(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined] # Just made.
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield handler.provider  # type: ignore[attr-defined] # Just set.
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
