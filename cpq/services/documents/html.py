"""Turns content into HTML and a style sheet: sandboxed Jinja, everything escaped, nothing undefined."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import segno
from jinja2 import FileSystemLoader, StrictUndefined, TemplateError, TemplateSyntaxError, select_autoescape
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from cpq.base.errors import Code, CpqError
from cpq.base.settings import shipped
from cpq.services.documents.design import Design
from cpq.services.documents.page_contents import DocumentView, present
from cpq.services.documents.scan_code import code_text


@dataclass(frozen=True)
class Composed:
    """A document before layout."""

    html: str
    style: str
    view: DocumentView


def compose(design: Design, content: Mapping[str, Any], template: str, locale: str, stamp: str | None) -> Composed:
    """The HTML of a document. Only the seller's files are templates; content is never evaluated."""
    try:
        return _compose(design, content, template, locale, stamp)
    except (TemplateError, KeyError) as error:
        place = f"{error.name}, line {error.lineno}: " if isinstance(error, TemplateSyntaxError) else ""
        raise CpqError(
            Code.UNAVAILABLE,
            f"The template {template} cannot be used: {place}{error}",
            hint="Correct it, or unset CPQ_TEMPLATES_DIR to use those that come with Quotewright.",
        ) from error


def whole(composed: Composed) -> str:
    """One file for a browser, with its style sheet inside."""
    return composed.html.replace("</head>", f"<style>\n{composed.style}</style>\n</head>", 1)


def style_of(design: Design, template: str, view: DocumentView) -> str:
    environment = _environment(design.folder, design.digest)
    values = {
        "colours": design.brand.colours,
        "paper": view.paper,
        "language": view.tongue.language,
        "is_rtl": view.tongue.is_rtl,
        "has_stamp": bool(view.stamp),
        "has_discount": view.has_discount,
        "has_code": bool(design.brand.verify_url),
    }
    parts = [environment.get_template("styles/base.css").render(values)]
    if (design.folder / "styles" / f"{template}.css").is_file():
        parts.append(environment.get_template(f"styles/{template}.css").render(values))
    return "\n".join(parts)


def _compose(design: Design, content: Mapping[str, Any], template: str, locale: str, stamp: str | None) -> Composed:
    view = present(design, content, locale, stamp, template)
    environment = _environment(design.folder, design.digest)
    logo = Markup(_file(design.folder, design.digest, design.brand.logo))  # noqa: S704 - the seller's own file
    html = environment.get_template(f"{template}.html").render(
        doc=view,
        t=view.tongue.label,
        own=view.tongue.text,
        side=lambda text: Markup(' dir="ltr"') if view.tongue.side(text) else "",
        logo=logo,
        logo_name=design.brand.logo,
        qr=_qr(view, code_text(design.brand.verify_url, content["quote"])) if design.brand.verify_url else "",
        template=template,
    )
    return Composed(html, style_of(design, template, view), view)


def _qr(view: DocumentView, text: str) -> Markup:
    picture = io.BytesIO()
    code = segno.make(text, error="m", micro=False)
    code.save(picture, kind="svg", xmldecl=False, svgns=True, title=view.tongue.label("scan"), border=0, omitsize=True)
    return Markup(picture.getvalue().decode())  # noqa: S704 - drawn here; segno escapes the title


@lru_cache(maxsize=4)
def _environment(folder: Path, _digest: str) -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader([folder, shipped("pdf_templates")]),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.tests["a_partial"] = lambda name: (folder / "categories" / f"{Path(str(name)).name}.html").is_file()
    return environment


@lru_cache(maxsize=8)
def _file(folder: Path, _digest: str, name: str) -> str:
    path = folder / "assets" / name
    return path.read_text(encoding="utf-8") if path.suffix == ".svg" else ""
