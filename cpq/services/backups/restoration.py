"""Restores a backup into an empty database: checked first, then loaded in one transaction, then brought up to date."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from cpq.app import App
from cpq.base.errors import Code, CpqError
from cpq.base.private_folder import make_private
from cpq.base.text import canonical_json, fingerprint
from cpq.services import documents
from cpq.services.backups import target
from cpq.services.backups.archive import Reader
from cpq.services.backups.snapshot import AUDIT_KEY, FORMAT, SIGNED_AS
from cpq.services.backups.target import Progress
from cpq.services.catalog import index_repair
from cpq.storage import migrations, portable_rows
from cpq.storage.portable_rows import TableShape
from cpq.storage.schema import SCHEMA_VERSION

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_DOCUMENT = re.compile(r"documents/([0-9a-f]{64})\.pdf")
_FOLDERS = ("policies", "templates")
_KINDS = {"plain", "whole", "moment", "day", "flag", "bytes"}


@dataclass(frozen=True)
class Restored:
    """What was restored, and what the backup says of itself."""

    checksum: str
    made_at: str
    product_version: str
    schema_version: str
    parts: int
    bytes: int
    rows: dict[str, int]
    documents: int
    missing_documents: list[str]
    audit_heads: list[dict[str, Any]]
    was_there: bool
    """The database held exactly this backup already; only files were added."""
    signature: str
    """`right`, `none`, or `not checked` without a key."""
    folders: list[str]
    """Where policies, templates and the audit key were put."""


def restore(app: App, path: Path, progress: Progress) -> Restored:
    """Load a backup, all of it or nothing. CONFLICT names the part that is damaged, or what is in the way."""
    reader = Reader(path)
    try:
        manifest = reader.manifest
        signature = _require_ours(app, reader)
        shapes = [_shape(reader, table) for table in manifest["tables"]]
        total = 2 * reader.size
        done = _require_whole(reader, progress, total)
        _require_room_for_files(app, reader)
        _require_schema_of(app, manifest["schema_version"])
        with target.filling(app, shapes) as connection:
            found = target.filled(connection, shapes)
            was_there = bool(found)
            if was_there and not _is_the_same(connection, shapes, manifest):
                hint = "Restore into an empty home or database: give another --home or --database-url."
                raise target.not_empty(app, found, hint=hint)
            for shape, table in zip(shapes, manifest["tables"], strict=True):
                if not was_there:
                    loaded = target.load(connection, shape, reader.lines(table["part"]))
                    if (loaded.rows, loaded.text) != (table["rows"], table["digest"]):
                        raise CpqError(Code.CONFLICT, f"The rows of {shape.name} are not those of the manifest.")
                done += reader.parts[table["part"]]["bytes"]
                progress(done, total)
            folders = _restore_files(app, reader, progress, done, total)  # Before the commit: no row without its file.
        if manifest["schema_version"] != SCHEMA_VERSION:
            migrations.upgrade(app.settings)
        index_repair.rebuild(app)
    finally:
        reader.close()
    return Restored(
        checksum=manifest["checksum"],
        made_at=manifest["made_at"],
        product_version=manifest["product_version"],
        schema_version=manifest["schema_version"],
        parts=len(reader.parts),
        bytes=reader.size,
        rows={table["name"]: table["rows"] for table in manifest["tables"]},
        documents=sum(bool(_DOCUMENT.fullmatch(name)) for name in reader.parts),
        missing_documents=manifest["missing_documents"],
        audit_heads=manifest["audit_heads"],
        was_there=was_there,
        signature=signature,
        folders=folders,
    )


def _require_ours(app: App, reader: Reader) -> str:
    """Refuse what this version cannot read, and what the key of this installation has not signed."""
    manifest = reader.manifest
    if manifest.get("format") != FORMAT or not migrations.knows(str(manifest.get("schema_version"))):
        raise CpqError(
            Code.CONFLICT,
            f"The backup is of version {manifest.get('product_version')} with migration "
            f"{manifest.get('schema_version')}, which this version does not know ({SCHEMA_VERSION}).",
            hint="Install the version of Quotewright that made it, or a newer one.",
        )
    signed = {name: value for name, value in manifest.items() if name not in ("checksum", "signature")}
    if fingerprint(signed) != manifest.get("checksum"):
        raise reader.refused("the part manifest.json is not as it was written")
    signature = manifest.get("signature")
    if app.audit_key is None or signature is None:
        return "none" if signature is None else "not checked"
    if not app.audit_key.has_signed(SIGNED_AS, canonical_json(signed), str(signature)):
        raise CpqError(
            Code.CONFLICT,
            "The signature of the manifest is not by the audit key of this installation.",
            hint="Give the key of the installation that made the backup, or no key: then only checksums are compared.",
        )
    return "right"


def _shape(reader: Reader, table: dict[str, Any]) -> TableShape:
    """The table as it was then. Its names become SQL, so they are held to what a name may be."""
    shape = TableShape(str(table["name"]), tuple((str(name), str(kind)) for name, kind in table["columns"]))
    is_sound = all(map(_NAME.fullmatch, (shape.name, *shape.names))) and {kind for _, kind in shape.columns} <= _KINDS
    if not is_sound or table["part"] not in reader.parts:
        raise CpqError(Code.CONFLICT, f"The manifest describes the table {shape.name!r} in a way that cannot be.")
    return shape


def _require_whole(reader: Reader, progress: Progress, total: int) -> int:
    done = 0
    reader.require_no_more()
    for name, part in reader.parts.items():
        document = _DOCUMENT.fullmatch(name)
        if document and document[1] != part["sha256"]:
            raise CpqError(Code.CONFLICT, f"The part {name} is not the document of its name.")
        reader.require_whole(name)
        done += part["bytes"]
        progress(done, total)
    return done


def _require_schema_of(app: App, version: str) -> None:
    """Bring an empty database to the migration of the backup; its tables are as they were then."""
    found = app.schema_version()
    if found is None:
        migrations.upgrade(app.settings, version)
    elif found != version:
        app.require_schema(exactly=True)
        with app.database.reading() as connection:
            rows = target.filled(connection, portable_rows.shapes())
        if rows:
            raise target.not_empty(app, rows, hint="Restore into an empty home or database.")
        migrations.downgrade(app.settings, version)


def _is_the_same(connection: Any, shapes: list[TableShape], manifest: dict[str, Any]) -> bool:
    return all(
        portable_rows.digest(connection, shape).text == table["digest"]
        for shape, table in zip(shapes, manifest["tables"], strict=True)
    )


def _files(app: App, reader: Reader) -> Iterator[tuple[str, Path]]:
    """The parts that become files of the home beside the documents; CONFLICT for a name that leads elsewhere."""
    for name in reader.parts:
        parts = PurePosixPath(name).parts
        if parts[0] in _FOLDERS:
            if ".." in parts or "\\" in name or "\0" in name or len(parts) < 2 or name.startswith("/"):
                raise CpqError(Code.CONFLICT, f"The part {name!r} has a name that cannot be.")
            yield name, app.settings.home.absolute().joinpath(*parts)
        elif name == AUDIT_KEY:
            yield name, app.settings.home.absolute() / AUDIT_KEY


def _require_room_for_files(app: App, reader: Reader) -> None:
    for name, path in _files(app, reader):
        if path.exists() and (not path.is_file() or path.read_bytes() != reader.content(name)):
            raise CpqError(
                Code.CONFLICT,
                f"{path} is there already and differs from the backup. Nothing was changed.",
                hint="Restore into an empty home: give another --home.",
            )


def _restore_files(app: App, reader: Reader, progress: Progress, done: int, total: int) -> list[str]:
    store = documents.Store(app.settings.home)
    for name in reader.parts:
        if document := _DOCUMENT.fullmatch(name):
            if store.read(document[1]) is None:
                with store.incoming(reader.content(name)):
                    pass
            progress(done := done + reader.parts[name]["bytes"], total)
    places = dict[str, None]()
    for name, path in _files(app, reader):
        _write(path, reader.content(name))
        places[str(app.settings.home.absolute() / PurePosixPath(name).parts[0])] = None
    return list(places)


def _write(path: Path, content: bytes) -> None:
    """Write a file of the operator whole or not at all."""
    if path.exists():
        return
    make_private(path.parent)
    descriptor, name = tempfile.mkstemp(prefix=".incoming-", dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    Path(name).replace(path)
