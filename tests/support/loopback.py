"""Keeps the tests on this machine: a connection to any other is refused before it is made, a name is not looked up.

And keeps a port of it for a server that a test is about to start.
"""

import ipaddress
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ADDRESS_PLACE = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1}
_LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname")
_OURS = (None, "", "localhost", "localhost.localdomain", socket.gethostname())


class OutsideError(Exception):
    """No OSError, so that nothing takes it for a network that is merely down."""


def stay() -> None:
    """From now on, and for the life of the process: Python tells its audit hooks of every connection."""
    sys.addaudithook(_refuse_outside)
    for name in list(os.environ):
        if name.lower() in ("http_proxy", "https_proxy", "all_proxy"):
            del os.environ[name]  # A proxy of the machine would be asked for its own servers, too.


@contextmanager
def kept_port(port: int = 0) -> Iterator[int]:
    """A free port that nobody else is given meanwhile. Until a server of ours takes it, connections are refused.

    It is bound but not listened on: the system chooses no such port, and whoever names it may still have it.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", port))
        yield int(holder.getsockname()[1])


def _refuse_outside(event: str, arguments: tuple[Any, ...]) -> None:
    if not event.startswith("socket."):
        return
    if event in _LOOKUPS:
        host = arguments[0].decode() if isinstance(arguments[0], bytes) else arguments[0]
        if host not in _OURS and not _is_numeric(host):
            raise socket.gaierror(socket.EAI_NONAME, f"tests look up no name: {host}")
        return
    address = arguments[_ADDRESS_PLACE[event]] if event in _ADDRESS_PLACE else None
    if isinstance(address, tuple) and not _is_here(address[0]):
        raise OutsideError(f"a test wanted to talk to {address[0]}")


def _is_here(host: str) -> bool:
    if host in _OURS or host in ("0.0.0.0", "::"):  # What stands for every address of this machine.
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _is_numeric(host: str) -> bool:
    """By the system's own reading, which knows `0x7f.1` and `127.1`; it asks nobody."""
    try:
        socket.inet_aton(host)
    except OSError:
        try:
            ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return False
    return True
