"""Fetches one page over HTTP: resolves the name once, checks every address, and connects to a checked address.

Redirects are followed here, so that each step is checked like the first. No proxy is used and no cookie stored.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from cpq import __version__
from cpq.base.clock import Effects
from cpq.retrieval.web.rules.addresses import Address, is_allowed, is_port_usual, is_public, joined

REDIRECTS_MAX = 5
CONNECT_SECONDS = 5.0
FETCH_SECONDS = 20.0
"""For one page, with redirects and slow bytes, without the wait for its turn."""

ADDRESSES_MAX = 16
WATCH_SECONDS = 0.05
CHUNK_BYTES = 65_536
MEMBERS_MAX = 1000
"""Concatenated gzip members, which count as one file."""

REDIRECTS = (301, 302, 303, 307, 308)

_GZIP_START = b"\x1f"
_ACCEPT = "text/html,application/xhtml+xml,application/pdf;q=0.9,text/markdown;q=0.9,text/plain;q=0.8,*/*;q=0.1"


class FetchError(Exception):
    """Why a page could not be fetched, in words without any content of the other side."""

    def __init__(
        self, reason: str, *, is_refused: bool = False, is_late: bool = False, status: int | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.is_refused = is_refused
        """True when nothing was requested, because the address is never fetched."""
        self.is_late = is_late
        """True when nothing was requested, because the turn comes too late: the page itself has not failed."""


@dataclass(frozen=True)
class Known:
    """The validators of a page, so that an unchanged page is not sent again."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True)
class Fetched:
    """The response: a page, or the answer that it has not changed."""

    address: Address
    """The address after redirects."""

    status: int
    content_type: str
    body: bytes
    known: Known

    @property
    def is_unchanged(self) -> bool:
        return self.status == 304


class Fetcher:
    """Fetches pages within limits. One per engine; its only state is the operator's list of allowed hosts."""

    def __init__(self, effects: Effects, *, allowed_hosts: frozenset[str], bytes_max: int) -> None:
        self._effects = effects
        self._allowed_hosts = allowed_hosts
        self._bytes_max = bytes_max

    def fetch(
        self,
        address: Address,
        *,
        known_of: Callable[[Address], Known] = lambda _address: Known(),
        before_each: Callable[[Address], None] = lambda _address: None,
        may_go_on: Callable[[], bool] = lambda: True,
        cut_bytes: int | None = None,
    ) -> Fetched:
        """Fetch the page at an address, or with `cut_bytes` only its beginning.

        `known_of` and `before_each` are called for every step, also after a redirect: `known_of` returns the validators
        of that page, `before_each` waits for the turn of a machine that may be asked.
        """
        deadline = self._effects.monotonic() + FETCH_SECONDS
        for _ in range(REDIRECTS_MAX + 1):
            known = known_of(address)
            machines = self._checked(address, deadline, may_go_on)
            asked = self._effects.monotonic()
            before_each(address)
            deadline += self._effects.monotonic() - asked  # The wait for a turn is not the other side's slowness.
            limit = cut_bytes or self._bytes_max
            exchange = _Exchange(machines, address, limit, deadline, self._effects, may_go_on)
            answer = exchange.run(known, is_cut=cut_bytes is not None)
            if answer.moved_to is None:
                return answer.fetched
            target = joined(address, answer.moved_to)
            if target is None:
                raise FetchError("it redirects to something that is no web address", is_refused=True)
            address = target
        raise FetchError(f"it redirects more than {REDIRECTS_MAX} times")

    def _checked(self, address: Address, deadline: float, may_go_on: Callable[[], bool]) -> list[tuple[int, str]]:
        """Every machine of the name, as family and numeric address. All must be public, or none is used."""
        is_named = is_allowed(address, self._allowed_hosts)
        if not is_named and not is_port_usual(address):
            raise FetchError(f"port {address.port} is not one of a web server", is_refused=True)
        machines = self._looked_up(address, deadline, may_go_on)
        if not is_named and not all(is_public(machine) for _, machine in machines):
            raise FetchError("its host is on a private network", is_refused=True)
        return machines[:ADDRESSES_MAX]

    def _looked_up(self, address: Address, deadline: float, may_go_on: Callable[[], bool]) -> list[tuple[int, str]]:
        """Runs in its own thread, which may be abandoned: a name lookup of the system cannot be cancelled."""
        found: dict[tuple[int, str], None] = {}

        def look_up() -> None:
            with suppress(OSError, UnicodeError):
                answers = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
                found.update(dict.fromkeys((int(family), str(where[0])) for family, _, _, _, where in answers))

        search = threading.Thread(target=look_up, daemon=True)
        search.start()
        while search.is_alive():
            search.join(WATCH_SECONDS)
            if search.is_alive() and (self._effects.monotonic() >= deadline or not may_go_on()):
                raise FetchError(f"its host was not found within {FETCH_SECONDS:g} seconds")
        if not found:
            raise FetchError("its host was not found")
        return list(found)


@dataclass(frozen=True)
class _Answer:
    fetched: Fetched
    moved_to: str | None


class _Response(http.client.HTTPResponse):
    """Refuses a chunk of negative size, for which the library would read the whole stream at once."""

    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc] # It is there, only not in the stubs.
        if size < 0:
            raise http.client.HTTPException("a chunk of less than nothing")
        return size


class _Exchange:
    """One request and its response, ended by the deadline or by cancellation."""

    def __init__(
        self,
        machines: list[tuple[int, str]],
        address: Address,
        bytes_max: int,
        deadline: float,
        effects: Effects,
        may_go_on: Callable[[], bool],
    ) -> None:
        self._machines = machines
        self._address = address
        self._bytes_max = bytes_max
        self._deadline = deadline
        self._effects = effects
        self._may_go_on = may_go_on
        self._socket: socket.socket | None = None
        self._is_given_up = False
        self._is_over = threading.Event()

    def run(self, known: Known, *, is_cut: bool) -> _Answer:
        connection = http.client.HTTPConnection(self._address.host, self._address.port)
        connection.response_class = _Response
        try:
            connection.sock = self._connected()
            connection.putrequest("GET", self._address.target, skip_host=True, skip_accept_encoding=True)
            for name, value in self._headers(known).items():
                connection.putheader(name, value)
            connection.endheaders()
            with connection.getresponse() as response:
                return self._read(response, is_cut=is_cut)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._failure(error) from None
        finally:
            self._is_over.set()
            connection.close()
            if self._socket is not None:
                self._socket.close()

    def _connected(self) -> socket.socket:
        """A connection to the first machine that answers."""
        failure: OSError = OSError("no address")
        for family, machine in self._machines:
            left = self._left()
            self._socket = socket.socket(family, socket.SOCK_STREAM)
            self._socket.settimeout(min(CONNECT_SECONDS, left))
            try:
                self._socket.connect((machine, self._address.port))
            except OSError as error:
                self._socket.close()
                failure = error
                continue
            self._socket.settimeout(self._left())  # A page may be slower than a handshake.
            threading.Thread(target=self._watch, daemon=True).start()
            return self._socket if self._address.scheme == "http" else self._encrypted(self._socket)
        raise failure

    def _encrypted(self, plain: socket.socket) -> socket.socket:
        """The certificate is checked against the name, although the connection is to a number."""
        try:
            wrapped = _TLS.context.wrap_socket(plain, server_hostname=self._address.host, do_handshake_on_connect=False)
            self._socket = wrapped
            wrapped.do_handshake()
        except ssl.SSLError:
            raise FetchError("its certificate or encryption is not valid") from None
        return wrapped

    def _headers(self, known: Known) -> dict[str, str]:
        headers = {
            "Host": self._address.authority,
            "User-Agent": f"Quotewright/{__version__}",
            "Accept": _ACCEPT,
            "Accept-Encoding": "gzip",
            "Connection": "close",
        }
        if known.etag:
            headers["If-None-Match"] = known.etag
        if known.last_modified:
            headers["If-Modified-Since"] = known.last_modified
        return headers

    def _watch(self) -> None:
        """A socket's time limit starts again with every byte; this limit is for the whole exchange."""
        while not self._is_over.wait(WATCH_SECONDS):
            if self._effects.monotonic() >= self._deadline or not self._may_go_on():
                self._is_given_up = True
                with suppress(OSError, AttributeError):
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # type: ignore[arg-type] # None is handled.
                return

    def _left(self) -> float:
        left = self._deadline - self._effects.monotonic()
        if left <= 0 or not self._may_go_on():
            raise FetchError(f"it did not answer within {FETCH_SECONDS:g} seconds")
        return left

    def _read(self, response: http.client.HTTPResponse, *, is_cut: bool) -> _Answer:
        moved_to = response.getheader("Location") if response.status in REDIRECTS else None
        if response.status not in (200, 304) and moved_to is None:
            raise FetchError(f"it answered with status {response.status}", status=response.status)
        body = b"" if moved_to is not None or response.status == 304 else self._body(response, is_cut=is_cut)
        known = Known(_header(response, "ETag"), _header(response, "Last-Modified"))
        kind = (response.getheader("Content-Type") or "")[:200]
        return _Answer(Fetched(self._address, response.status, kind, body, known), moved_to)

    def _body(self, response: http.client.HTTPResponse, *, is_cut: bool) -> bytes:
        """The whole body, decompressed; neither the sent nor the decompressed size may exceed the limit."""
        packed = _Unpacker(response.getheader("Content-Encoding") or "")
        plain = bytearray()
        promised, sent = 0 if is_cut else response.length or 0, 0
        while max(promised, sent, len(plain)) <= self._bytes_max and (piece := response.read(CHUNK_BYTES)):
            sent += len(piece)
            plain += packed.unpack(piece, self._bytes_max + 1 - len(plain))
        if max(promised, sent, len(plain)) > self._bytes_max:
            if is_cut:
                return bytes(plain[: self._bytes_max])
            raise FetchError(f"it is larger than {self._bytes_max:,} bytes")
        if self._is_given_up:
            raise FetchError(f"it was not complete within {FETCH_SECONDS:g} seconds")
        # `read` with a size does not raise when less arrives than was announced.
        if response.length or not packed.is_complete:
            raise FetchError("it broke off before its end")
        return bytes(plain)

    def _failure(self, error: Exception) -> FetchError:
        if self._is_given_up or isinstance(error, TimeoutError):
            return FetchError(f"it did not answer within {FETCH_SECONDS:g} seconds")
        if isinstance(error, ConnectionRefusedError):
            return FetchError("its host refuses the connection")
        if isinstance(error, http.client.IncompleteRead | ConnectionError):
            return FetchError("it broke off before its end")
        if isinstance(error, http.client.HTTPException | ValueError):
            return FetchError("its answer is not proper HTTP")
        return FetchError("its host cannot be reached")


class _Tls:
    """Creates the context on first use: it reads all certificates of the machine."""

    @cached_property
    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context()


_TLS = _Tls()


class _Unpacker:
    """Decompresses piece by piece and never more than requested, so that a bomb does no harm."""

    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip"):
            raise FetchError("it is packed in a way that we did not ask for")
        self._inflate = _member() if name.endswith("gzip") else None
        self._members = 1

    def unpack(self, piece: bytes, limit: int) -> bytes:
        if self._inflate is None:
            return piece
        plain = bytearray()
        while piece and len(plain) < limit:
            if self._inflate.eof:
                if not piece.startswith(_GZIP_START):
                    break  # Padding after the end, which every client ignores.
                self._inflate = _member()
                self._members += 1
            try:
                plain += self._inflate.decompress(piece, limit - len(plain))
            except zlib.error:
                raise FetchError("it is packed in a way that cannot be read") from None
            if self._members > MEMBERS_MAX:
                raise FetchError("it is packed in a way that cannot be read")
            piece = self._inflate.unused_data
        return bytes(plain)

    @property
    def is_complete(self) -> bool:
        return self._inflate is None or self._inflate.eof


def _member() -> zlib._Decompress:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


def _header(response: http.client.HTTPResponse, name: str) -> str | None:
    """A header that is sent back later; only when it is short and harmless in a request."""
    value = (response.getheader(name) or "").strip()
    return value if value and len(value) <= 500 and value.isascii() and value.isprintable() else None
