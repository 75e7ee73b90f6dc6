"""The store of documents: one file each, named by its checksum, written whole or not at all."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cpq.base.errors import Code, CpqError
from cpq.base.private_folder import make_private

log = logging.getLogger("cpq.documents")


def checksum_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Store:
    """The folder `documents` in CPQ_HOME."""

    def __init__(self, home: Path) -> None:
        self.folder = home.absolute() / "documents"

    def path(self, checksum: str) -> Path:
        return self.folder / checksum[:2] / f"{checksum}.pdf"

    def read(self, checksum: str) -> bytes | None:
        """The document, if the file exists and its checksum is right."""
        try:
            content = self.path(checksum).read_bytes()
        except OSError:
            return None
        return content if checksum_of(content) == checksum else None

    @contextmanager
    def incoming(self, content: bytes) -> Iterator[None]:
        """Write the document to a temporary file, and keep it only if the body of the `with` succeeds."""
        target = self.path(checksum_of(content))
        with _named_faults():
            make_private(target.parent)
            descriptor, name = tempfile.mkstemp(prefix=".incoming-", dir=target.parent)
        try:
            with _named_faults(), os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            yield
            with _named_faults():
                Path(name).replace(target)
        finally:
            Path(name).unlink(missing_ok=True)


@contextmanager
def _named_faults() -> Iterator[None]:
    """A full disk or a folder without rights is no fault of the call; the operator learns what to mend."""
    try:
        yield
    except OSError as error:
        log.error("a document could not be stored", extra={"reason": str(error)})
        raise CpqError(
            Code.UNAVAILABLE,
            f"The document could not be stored: {os.strerror(error.errno or 0)}.",
            hint="The operator makes the folder `documents` in CPQ_HOME writable and leaves room on its disk.",
            retry_after_seconds=30,
        ) from error
