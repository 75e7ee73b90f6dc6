"""A relay between the engine and a PostgreSQL server, on unix sockets: it can refuse, fall silent and lose answers."""

import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.postgres import OWNER, PORT, Cluster


class Relay:
    """Passes everything on until it is told otherwise."""

    def __init__(self, server: Path, folder: Path) -> None:
        self._server, self._own = str(server / f".s.PGSQL.{PORT}"), str(folder / f".s.PGSQL.{PORT}")
        self._folder = folder
        self._listener: socket.socket | None = None
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self.silence: Callable[[bytes], bool] = lambda _sent: False
        """Whether a connection falls silent at these bytes of the client: they and all later answers are lost."""
        self.is_sent_on = False
        """Whether the server still gets the bytes at which a connection falls silent."""
        self.fell_silent = threading.Semaphore(0)
        self._goes_on = threading.Event()

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://{OWNER}@/{database}?host={self._folder}&port={PORT}&connect_timeout=60"

    def open(self) -> None:
        Path(self._own).unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self._own)
        self._listener.listen(64)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def refuse(self) -> None:
        """End all connections, and take no new ones until `open`."""
        if self._listener is not None:
            Path(self._own).unlink(missing_ok=True)
            self._listener.shutdown(socket.SHUT_RDWR)  # Closing alone does not end an `accept`.
            self._listener.close()
            self._listener = None
        with self._lock:
            ended, self._pairs = self._pairs, []
        for end in (end for pair in ended for end in pair):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def go_on(self) -> None:
        """Deliver what silent connections have held back."""
        self._goes_on.set()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client = listener.accept()[0]
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            with self._lock:
                self._pairs.append((client, server))
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        watched = selectors.DefaultSelector()
        watched.register(client, selectors.EVENT_READ, client)
        watched.register(server, selectors.EVENT_READ, server)
        with client, server, watched, suppress(OSError):  # Either side may have gone: that is what a relay is for.
            while True:
                for key, _ in watched.select():
                    end: socket.socket = key.data
                    sent = end.recv(65536)
                    if not sent:
                        return
                    if end is client and self.silence(sent):
                        if self.is_sent_on:
                            server.sendall(sent)
                        self.fell_silent.release()
                        self._goes_on.wait()
                        if not self.is_sent_on:
                            server.sendall(sent)
                        continue
                    (server if end is client else client).sendall(sent)


@contextmanager
def relay(cluster: Cluster, folder: Path) -> Iterator[Relay]:
    """A relay in front of the cluster; the folder is short, because the path of a socket has about 100 characters."""
    made = Relay(cluster.directory, folder)
    made.open()
    try:
        yield made
    finally:
        made.go_on()
        made.refuse()
