"""A web site on this machine: a few hundred linked pages, and pages that redirect, loop, drip, break off and lie."""

import gzip
import hashlib
import ssl
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

PATIENCE_SECONDS = 120
MODELS = 200

Answer = tuple[int, dict[str, str], bytes]

_HTML = {"Content-Type": "text/html; charset=utf-8"}


@dataclass
class Website:
    """Serves `pages` by path. A page is its HTML, or a whole answer of status, headers and body."""

    pages: dict[str, str | Answer] = field(default_factory=dict)
    robots: str | None = ""
    has_etags: bool = True
    asked: list[str] = field(default_factory=list)
    """Every request, as its path; with ` 304` behind it when nothing had to be sent."""
    released: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def encrypt(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"http://{self.host}{path}"

    def count(self) -> Counter[str]:
        """How often each page was asked for, robots.txt aside."""
        return Counter(path for path in self.asked if not path.startswith("/robots.txt"))

    def answer(self, path: str, known: str | None) -> Answer:
        if path == "/robots.txt":
            return (
                (404, {}, b"") if self.robots is None else (200, {"Content-Type": "text/plain"}, self.robots.encode())
            )
        page = self.pages.get(path)
        if page is None:
            return 404, _HTML, b"<h1>Not found</h1>"
        if not isinstance(page, str):
            return page
        body = page.encode()
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if self.has_etags and known == etag:
            return 304, {"ETag": etag}, b""
        return 200, {**_HTML, **({"ETag": etag} if self.has_etags else {})}, body


def vendor() -> dict[str, str | Answer]:
    """A maker of compressors: an overview, a page for each model, a service manual, and chatter around them."""
    links = "".join(f'<li><a href="/models/{n}.html">Model AX{n} rotary compressor</a></li>' for n in range(MODELS))
    pages: dict[str, str | Answer] = {
        "/": page(
            "Acme Air",
            f"<p>Acme Air makes rotary compressors for workshops and plants.</p><ul>{links}</ul>"
            '<p><a href="/service/oil.html">Oil change intervals and service manual</a></p>'
            '<p><a href="/warranty.html">Warranty conditions</a> · <a href="/login">Log in</a></p>',
        ),
        "/service/oil.html": page(
            "Service manual",
            "<h2>Oil change</h2><p>Change the compressor oil every 4000 hours or once a year. "
            "Use only synthetic oil of grade ISO 46.</p>"
            "<h2>Filters</h2><p>The intake filter lasts 2000 hours.</p>"
            '<p><a href="/service/kits.html">Service kits</a></p>',
        ),
        "/service/kits.html": page("Service kits", "<p>The kit SK-9 holds oil, both filters and a belt.</p>"),
        "/warranty.html": page(
            "Warranty", "<p>The warranty lasts five years on the air end, two years on the rest.</p>"
        ),
    }
    for n in range(MODELS):
        following = (
            f'<p>See also <a href="/models/{(n + 1) % MODELS}.html">the next model AX{(n + 1) % MODELS}</a>.</p>'
        )
        specs = f"<tr><th>Power</th><td>{n + 5} hp</td></tr><tr><th>Noise</th><td>{60 + n % 20} dBA</td></tr>"
        pages[f"/models/{n}.html"] = page(
            f"AX{n}", f"<p>The AX{n} is a rotary compressor of {n + 5} hp.</p><table>{specs}</table>{following}"
        )
    return pages


def page(title: str, body: str) -> str:
    nav = '<nav><a href="/">Home</a> <a href="/warranty.html">Warranty</a></nav>'
    main = f"<main><h1>{title}</h1>{body}</main>"
    return f"<!doctype html><html><head><title>{title}</title></head><body>{nav}{main}</body></html>"


def packed(body: bytes) -> Answer:
    return 200, {**_HTML, "Content-Encoding": "gzip"}, gzip.compress(body)


def moved(to: str, status: int = 302) -> Answer:
    return status, {"Location": to}, b""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with suppress(OSError):
            super().process_request_thread(request, client_address)


def _handler(site: Website) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path
            status, headers, body = site.answer(path, self.headers.get("If-None-Match"))
            site.asked.append(f"{path} 304" if status == 304 else path)
            how = headers.get("X-How", "")
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "Content-Length" not in headers and how != "endless":
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):
                self.send_body(how, body)

        def send_body(self, how: str, body: bytes) -> None:
            if how == "endless":
                while not site.released.is_set():
                    self.wfile.write(body)
            elif how == "drip":
                for byte in body:
                    if site.released.wait(0.05):
                        return
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
            elif how == "hang":
                site.released.wait(PATIENCE_SECONDS)
            else:
                self.wfile.write(body)

        def log_message(self, format: str, *_: object) -> None:
            """Quiet."""

    return Handler
