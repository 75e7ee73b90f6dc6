"""What a tenant may be called, and the folders of tenants in a setting: `acme=/srv/acme/docs, beta=/srv/beta/docs`."""

from __future__ import annotations

import re
from pathlib import Path

MAIN_TENANT = "main"
"""The tenant of callers that no token assigns to another one."""

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
ID_RULE = "the id of a tenant has 1 to 40 small letters a to z, digits and -, and does not begin with -"
"""One spelling for each, and a name that is safe as a folder."""


def is_tenant_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def checked_id(text: str) -> str:
    """The id of a tenant as a setting; ValueError when it cannot be one."""
    if not is_tenant_id(text):
        raise ValueError(ID_RULE)
    return text


def read_tenant_folders(text: str) -> dict[str, Path]:
    """The folder of each tenant but `main`; ValueError says what is wrong with the text."""
    folders: dict[str, Path] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        tenant, _, folder = (side.strip() for side in part.partition("="))
        if not is_tenant_id(tenant) or not folder:
            raise ValueError(f"{part!r} is not a tenant and its folder, such as acme=/srv/acme/docs")
        if tenant == MAIN_TENANT or tenant in folders:
            raise ValueError(f"{tenant!r} has a folder already")
        folders[tenant] = Path(folder)
    return folders


def checked(text: str) -> str:
    read_tenant_folders(text)
    return text
