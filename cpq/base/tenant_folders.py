"""The folders of tenants in a setting, such as `acme=/srv/acme/docs, beta=/srv/beta/docs`."""

from __future__ import annotations

import re
from pathlib import Path

MAIN_TENANT = "main"
"""The tenant of callers that no token assigns to another one."""


def read_tenant_folders(text: str) -> dict[str, Path]:
    """The folder of each tenant but `main`; ValueError says what is wrong with the text."""
    folders: dict[str, Path] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        tenant, _, folder = (side.strip() for side in part.partition("="))
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tenant) or not folder:
            raise ValueError(f"{part!r} is not a tenant and its folder, such as acme=/srv/acme/docs")
        if tenant == MAIN_TENANT or tenant in folders:
            raise ValueError(f"{tenant!r} has a folder already")
        folders[tenant] = Path(folder)
    return folders


def checked(text: str) -> str:
    read_tenant_folders(text)
    return text
