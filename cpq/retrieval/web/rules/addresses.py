"""PURE. Web addresses: the one spelling of each, which may be fetched, and which machines are never contacted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import quote, urljoin, urlsplit

from cpq.base.errors import CpqError, bad_field

URL_LENGTH_MAX = 2000
HOST_LENGTH_MAX = 253
PORTS = {"http": 80, "https": 443}

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_PATH_SAFE = "/:@!$&'*+,;=~-._"
_QUERY_SAFE = "/?:@!$'*+,;=&~-._"
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""No other part of IPv6 is assigned to the public internet."""

_NEVER_ASKED = tuple(map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "3fff::/20")))
"""Protocol assignments, old 6to4 relays, the internal network of a large cloud, and documentation addresses."""

_TRACKING = re.compile(r"utm_[a-z]+|gclid|fbclid|mc_[ce]id")
_STRAY = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BREAKS = re.compile(r"[\t\r\n]")
_NEVER = re.compile(r"[\x00-\x20\x7f\\]")


@dataclass(frozen=True)
class Address:
    """A web address in its one spelling: lower-case ASCII host, no default port, no user, no fragment."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query, as in the request."""

    @property
    def url(self) -> str:
        return self.origin + self.target

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """The host as in the Host header and the address bar."""
        return self.written_host if self.port == PORTS[self.scheme] else self.host_and_port

    @property
    def written_host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def host_and_port(self) -> str:
        return f"{self.written_host}:{self.port}"

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


def read_address(text: str, field: str = "/url") -> Address:
    """The address in a text; VALIDATION_ERROR names the field and what is allowed."""
    stripped = text.strip()
    if len(stripped) > URL_LENGTH_MAX:
        raise bad_field(field, f"The address is longer than {URL_LENGTH_MAX} characters.", maximum=URL_LENGTH_MAX)
    if _NEVER.search(stripped):
        raise _unreadable(field)
    try:
        parts = urlsplit(stripped)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _unreadable(field) from None
    scheme = parts.scheme.lower()
    if scheme not in PORTS:
        raise bad_field(field, "Only http and https addresses are fetched.", allowed=[f"{name}://…" for name in PORTS])
    if "@" in parts.netloc:
        raise bad_field(field, "The address holds a user name; pages behind a login are not fetched.")
    if port == 0:
        raise _unreadable(field)
    query = _query(parts.query)
    target = _written(parts.path or "/", _PATH_SAFE) + (f"?{query}" if query else "")
    address = Address(scheme, _host(host, field), port or PORTS[scheme], target)
    if len(address.url) > URL_LENGTH_MAX:  # Letters outside ASCII take three times the space and more.
        raise bad_field(field, f"The address is longer than {URL_LENGTH_MAX} characters.", maximum=URL_LENGTH_MAX)
    return address


def joined(base: Address, reference: str) -> Address | None:
    """The target of a link on a page; None when it is not a web address we fetch."""
    try:
        return read_address(urljoin(base.url, _BREAKS.sub("", reference).strip().replace(" ", "%20")))
    except (CpqError, ValueError):
        return None


def is_public(address: str) -> bool:
    """True when a resolved address is a machine of the public internet, in any notation."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(_is_global(each) for each in (found, *_inner(found)))


def read_allowed(text: str) -> frozenset[str]:
    """The hosts of a comma-separated list, each with or without `:port`, in the spelling of `Address`."""
    found = set()
    for part in filter(None, map(str.strip, text.split(","))):
        address = read_address(f"http://{part}/", "CPQ_WEB_ALLOWED_HOSTS")
        found.add(address.host_and_port if re.search(r":\d+$", part) else address.written_host)
    return frozenset(found)


def is_allowed(address: Address, allowed: frozenset[str]) -> bool:
    """True when the operator allowed this host, so that it may be private and on any port."""
    return address.written_host in allowed or address.host_and_port in allowed


def is_port_usual(address: Address) -> bool:
    """Web servers use 80, 443 or a high port; a request to another port below 1024 could misuse another service."""
    return address.port in PORTS.values() or address.port >= 1024


def _inner(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    """The IPv4 addresses inside an IPv6 address: mapped, compatible, 6to4, Teredo, NAT64."""
    if isinstance(address, IPv4Address):
        return []
    inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _COMPATIBLE or address in _NAT64:
        inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [each for each in inner if each is not None]


def _is_global(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address) and (address.ipv4_mapped or address in _NAT64):
        return True  # The inner address decides.
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    if any(address in network for network in _NEVER_ASKED):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _host(host: str, field: str) -> str:
    if ":" in host:
        try:
            address = IPv6Address(host)
        except ValueError:
            raise _unreadable(field) from None
        if address.scope_id is None:
            return str(address)
        raise _unreadable(field)  # It names an interface of this machine.
    if len(host) > HOST_LENGTH_MAX:  # The library would need long to refuse it.
        raise _unreadable(field)
    try:
        name = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        raise _unreadable(field) from None
    name = name.lower().removesuffix(".")
    if not name or len(name) > HOST_LENGTH_MAX or not all(map(_LABEL.fullmatch, name.split("."))):
        raise _unreadable(field)
    return name


def _written(text: str, safe: str) -> str:
    """Percent-encoded; dots, also as `%2e`, are resolved as in a browser."""
    encoded = quote(_STRAY.sub("%25", text), safe=safe + "%")
    encoded = encoded.replace("%2e", ".").replace("%2E", ".")
    if "/." not in encoded:
        return encoded
    kept: list[str] = []
    parts = encoded.split("/")
    for part in parts[1:]:
        if part == "..":
            kept = kept[:-1]
        elif part != ".":
            kept.append(part)
    end = "/" if parts[-1] in (".", "..") and kept else ""
    return "/" + "/".join(kept) + end


def _query(text: str) -> str:
    """The query without parameters that only track visitors; otherwise a page would be stored under many addresses."""
    kept = [part for part in text.split("&") if not _TRACKING.fullmatch(part.partition("=")[0].lower())]
    return quote(_STRAY.sub("%25", "&".join(kept)), safe=_QUERY_SAFE + "%")


def _unreadable(field: str) -> CpqError:
    return bad_field(
        field, "This is not a web address that can be read.", hint="Write it out, such as https://example.com/page."
    )
