"""A webhook receiver on this machine that can be told to fail, hang, drip, break off, or be away."""

import base64
import hashlib
import hmac
import json
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.support import loopback

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Delivery:
    """One request as it came in."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> dict[str, Any]:
        return json.loads(self.body)

    def is_signed(self, key: bytes = KEY) -> bool:
        """As the page of the Standard Webhooks scheme says, written a second time."""
        signed = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        given = [part.removeprefix("v1,") for part in self.headers["webhook-signature"].split(" ")]
        return any(hmac.compare_digest(expected, one) for one in given)


Plan = Callable[[Delivery], str]


@dataclass
class Receiver:
    """Answers each delivery by `plan`, keeps all of them, and knows whether two copies of one were here at once."""

    plan: Plan = lambda _delivery: "200"
    received: list[Delivery] = field(default_factory=list)
    accepted: list[Delivery] = field(default_factory=list)
    met_itself: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    port: int = 0
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        self._here: list[str] = []
        self._kept = ExitStack()
        self._changed = threading.Condition()
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}/hook?source=cpq"

    def __enter__(self) -> Self:
        self.come_back()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self.go_away()
        self._kept.close()

    def come_back(self) -> None:
        """Listen, on the same port as before if there was one."""
        self._server = _Server(("127.0.0.1", self.port), _handler(self))
        self._kept.close()
        self.port = self._server.server_address[1]
        if self.tls:
            # The handshake is the handler's, so that a caller who hangs up in it does not stop the server.
            self._server.socket = self.tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def go_away(self) -> None:
        """From now on the connection is refused. The port stays ours until the end."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
            self._kept.enter_context(loopback.kept_port(self.port))

    def wait_for(self, count: int) -> None:
        """Return when so many deliveries have arrived."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.received) >= count, PATIENCE_SECONDS)

    def arrive(self, delivery: Delivery) -> str:
        with self._changed:
            if delivery.id in self._here:
                self.met_itself.append(delivery.id)
            self._here.append(delivery.id)
            self.received.append(delivery)
            self._changed.notify_all()
        return self.plan(delivery)

    def leave(self, delivery: Delivery) -> None:
        with self._changed:
            self._here.remove(delivery.id)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with suppress(OSError):  # The other side, or the test, may close a socket that is being answered.
            super().process_request_thread(request, client_address)


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            delivery = Delivery({name.lower(): value for name, value in self.headers.items()}, body)
            how = receiver.arrive(delivery)
            if how == "200":
                receiver.accepted.append(delivery)  # Before the other side can hear of it, and a test can ask.
            with suppress(OSError):
                self.answer(how)
            receiver.leave(delivery)

        def do_GET(self) -> None:
            receiver.received.append(Delivery({"webhook-id": "followed a redirect"}, b"{}"))

        def answer(self, how: str) -> None:
            raw = _RAW.get(how)
            if how in ("hang", "late"):
                receiver.released.wait(PATIENCE_SECONDS)
                raw = _RAW["200"] if how == "late" else None
            if how == "drip":
                while not receiver.released.wait(0.02):
                    self.connection.sendall(b"HTTP/1.1 200 OK\r\nx-a: b\r\n"[:1])
            if raw is not None:
                self.connection.sendall(raw)
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, format: str, *_: object) -> None:
            """Quiet."""

    return Handler


_RAW = {
    "200": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "202 without a body": b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
    "200 that breaks off": b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\nhalf",
    "500": b"HTTP/1.1 500 Oops\r\ncontent-length: 11\r\n\r\nno \x1b[31mway",
    "503 and a time": b"HTTP/1.1 503 Later\r\nretry-after: 600\r\ncontent-length: 0\r\n\r\n",
    "503 and nonsense": b"HTTP/1.1 503 Later\r\nretry-after: 99999999999\r\ncontent-length: 0\r\n\r\n",
    "close": b"",
    "200 that breaks off early": b"HTTP/1.1 200 OK\r\ncontent-le",
    "garbage": b"\x00\xff\r\n\r\n",
    "redirect": b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n",
    "endless line": b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000 + b"\r\n\r\n",
    "endless body": b"HTTP/1.1 500 Oops\r\n\r\n" + b"z" * 3_000_000,
}
