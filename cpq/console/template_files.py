"""Templates and static files, read once. Everything that comes from data is escaped."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from cpq import __version__
from cpq.base.text import shown
from cpq.console.formats import (
    ZONE,
    a_role,
    coded,
    day,
    fine,
    measured,
    moment,
    money,
    named,
    number,
    percent,
    seconds,
    short,
    span,
    spelled,
    unit_price,
    who,
    words,
)

HERE = Path(__file__).parent
UTC = ZoneInfo("UTC")
FOREVER = "public, max-age=31536000, immutable"


class Typed(str):
    """The value of a field of a form, which is sent back as it is."""

    __slots__ = ()


def _printed(value: object) -> object:
    """What a page prints: text of others shows the characters that hide in it. Markup was made of such text before."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup | Typed) else value


class Templates:
    """The templates and static files, read once."""

    def __init__(self) -> None:
        self.environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            finalize=_printed,
        )
        filters = (a_role, coded, day, fine, measured, moment, money, named, number, percent, seconds, short, span)
        self.environment.filters |= {
            function.__name__: function for function in (*filters, spelled, unit_price, who, words)
        }
        self.environment.filters["typed"] = Typed
        self._files = {path.name: path.read_bytes() for path in (HERE / "static").iterdir()}
        stamps = {name: hashlib.sha256(content).hexdigest()[:12] for name, content in self._files.items()}
        self.environment.globals |= {
            "static": lambda name: f"/console/static/{name}?v={stamps[name]}",
            "link": link,
            "product_version": __version__,
        }

    def render(self, template: str, **values: Any) -> str:
        """The page, with times in the zone of its reader."""
        zone: ZoneInfo = values.pop("zone", UTC)
        token = ZONE.set(zone)
        try:
            return self.environment.get_template(template).render(values, zone=zone.key)
        finally:
            ZONE.reset(token)

    def text(self, name: str) -> str:
        """A static file as text, for a page that has it inside."""
        return self._files[name].decode()

    def file(self, request: Request) -> Response:
        """A static file by its name."""
        name = request.path_params["name"]
        if name not in self._files:
            return Response("There is no such file.", 404, media_type="text/plain")
        kind = mimetypes.guess_type(name)[0] or "text/plain"
        return Response(self._files[name], media_type=kind, headers={"Cache-Control": FOREVER})


def link(path: str, given: Mapping[str, Any] | None = None, **changed: Any) -> str:
    """A console address with these parameters; empty ones are left out."""
    values = {name: value for name, value in {**(given or {}), **changed}.items() if value not in (None, "")}
    return f"{path}?{urlencode(values)}" if values else path
