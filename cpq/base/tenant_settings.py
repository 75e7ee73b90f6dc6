"""The settings of a tenant beside the main one: those of the server, with what its folder `CPQ_HOME/tenants/ID` has."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from cpq.base.env_file import read_file
from cpq.base.errors import Code, CpqError, nearest
from cpq.base.settings import SettingError, Settings
from cpq.base.tenant_folders import is_tenant_id, read_tenant_folders

SETTABLE = (
    "CPQ_QUOTE_LINES_MAX",
    "CPQ_QUOTE_TEXT_MAX",
    "CPQ_PDF_LINES_MAX",
    "CPQ_KEY_RETENTION_DAYS",
    "CPQ_SEARCH_SCORE_MIN",
    "CPQ_HIDDEN_CHANGES_PER_QUOTE",
    "CPQ_HIDDEN_CHANGES_PER_DAY",
    "CPQ_WEBHOOKS",
    "CPQ_WEBHOOK_SECRET",
    "CPQ_WEB_ALLOWED_HOSTS",
)
"""What the `.env` of a tenant may have: nothing about the server, the database or other tenants."""

FOLDERS = {"policies_dir": "policies", "templates_dir": "templates", "docs_dir": "docs"}
OWN_TEXTS = ("webhooks", "webhook_secret", "web_allowed_hosts")
"""Never taken over from the main tenant: where its events go, and which private hosts it may ask."""

Stamp = tuple[object, ...]


def folder_of(settings: Settings, tenant_id: str) -> Path:
    assert is_tenant_id(tenant_id), "an id is looked at before it becomes a path"
    return settings.home / "tenants" / tenant_id


def stamp(settings: Settings, tenant_id: str) -> Stamp:
    """Differs when the settings of the tenant may differ; cheap to take."""
    folder = folder_of(settings, tenant_id)
    try:
        status = (folder / ".env").stat()
        written: Stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
    except OSError:
        written = ()
    return (settings, written, *((folder / name).is_dir() for name in FOLDERS.values()))


def settings_of(settings: Settings, tenant_id: str) -> Settings:
    """The settings of a tenant. What it has no folder for comes with the product, and never from the main tenant.

    UNAVAILABLE names what is wrong with its `.env`.
    """
    folder = folder_of(settings, tenant_id)
    given: dict[str, Any] = {**dict.fromkeys(OWN_TEXTS, ""), "chunks_dir": None}
    given |= {field: folder / name if (folder / name).is_dir() else None for field, name in FOLDERS.items()}
    given["docs_dir"] = read_tenant_folders(settings.docs_dirs).get(tenant_id) or given["docs_dir"]
    names = {one.metadata["variable"]: one.name for one in fields(Settings)}
    for variable, value in read_file(folder / ".env").items():
        if variable not in SETTABLE:
            near = nearest(variable, SETTABLE)
            raise _refused(tenant_id, f"{variable} is not a setting of a tenant", near or list(SETTABLE))
        given |= {names[variable]: value} if value else {}
    try:
        made = settings.model_copy(update=given)
    except SettingError as error:
        raise _refused(tenant_id, str(error)) from None
    if made.webhooks and not made.webhook_secret:
        raise _refused(tenant_id, "CPQ_WEBHOOKS is set, but CPQ_WEBHOOK_SECRET is not")
    return made


def _refused(tenant_id: str, reason: str, allowed: list[str] | None = None) -> CpqError:
    return CpqError(
        Code.UNAVAILABLE,
        f"The settings of the tenant {tenant_id!r} cannot be used: {reason}.",
        allowed=allowed,
        hint=f"The operator corrects CPQ_HOME/tenants/{tenant_id}/.env.",
    )
