"""Turns HTML into PDF/A-3 and PDF/UA with WeasyPrint, with the same bytes everywhere. Only workers import it.

WeasyPrint finds fonts through fontconfig, which reads FONTCONFIG_FILE once; the parent process sets it.
"""

from __future__ import annotations

import gc
import logging
import re
import xml.etree.ElementTree as Xml
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import md5
from pathlib import Path
from typing import Any

import uharfbuzz
from weasyprint import CSS, HTML, Attachment, Document
from weasyprint.pdf import fonts as pdf_fonts
from weasyprint.text.fonts import FontConfiguration
from weasyprint.urls import URLFetcher, URLFetcherResponse

from cpq.base.text import canonical_json
from cpq.services.documents.design import Design, load_design
from cpq.services.documents.html import Composed, compose
from cpq.services.documents.ubl import order_xml, quotation_xml

PAGES_MAX = 2_000
MISSING_SHOWN_MAX = 20
DROPPED_TABLES = ("BASE", "DSIG", "EBDT", "EBLC", "EBSC", "GPOS", "GSUB", "JSTF", "LTSH", "PCLT", "SVG ")
ASSET_TYPES = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg"}

Progress = Callable[[int, str], None]
"""Called with the number of pages laid out so far, and the current stage."""


class TooLargeError(Exception):
    """The document has more pages than a document may have."""


@dataclass(frozen=True)
class Rendered:
    pdf: bytes
    pages: int
    missing: str
    """Characters that no font has; they show as boxes."""


class Renderer:
    """One per process: fonts and style sheets are read once, because each load leaks memory and takes time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fonts = FontConfiguration()
        self._styles: dict[str, CSS] = {}

    def render(self, job: Mapping[str, Any], progress: Progress) -> Rendered:
        """The document that the job asks for: `content`, `template`, `locale` and `stamp`."""
        design = load_design(self.folder)
        progress(0, "composing")
        composed = compose(design, job["content"], job["template"], job["locale"], job["stamp"])
        # The millions of boxes of a document contain no cycles, so garbage collection only costs time.
        gc.disable()
        try:
            with _Watch(progress):
                return self._lay_out(design, composed, job["content"], progress)
        finally:
            gc.enable()

    def _lay_out(self, design: Design, composed: Composed, content: Mapping[str, Any], progress: Progress) -> Rendered:
        fetcher = AssetFetcher(design.folder / "assets")
        html = HTML(string=composed.html, base_url="asset:", url_fetcher=fetcher)
        document = html.render(font_config=self.fonts, stylesheets=[self._style(composed.style, fetcher)])
        pages = len(document.pages)
        if pages > PAGES_MAX:
            raise TooLargeError(f"{pages:,} pages")
        progress(pages, "writing")
        _claim_accessibility(document)
        pdf = document.write_pdf(
            finisher=_finish,
            pdf_variant="pdf/a-3a",
            attachments=_attachments(design, content, fetcher),
        )
        assert isinstance(pdf, bytes)
        missing = sorted({chr(code) for font in document.fonts.values() for code in font.missing})
        return Rendered(pdf, pages, "".join(missing[:MISSING_SHOWN_MAX]))

    def _style(self, text: str, fetcher: AssetFetcher) -> CSS:
        if text not in self._styles:
            if len(self._styles) >= 64:
                self._styles.clear()
            self._styles[text] = CSS(string=text, font_config=self.fonts, url_fetcher=fetcher, base_url="asset:")
        return self._styles[text]


class AssetFetcher(URLFetcher):  # type: ignore[misc] # WeasyPrint has no types.
    """Reads files of the folder `assets` by name, and nothing else: no other file, no network, no data URLs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(allowed_protocols=("asset",), allow_redirects=False)
        self._known = {path.name: path for path in folder.iterdir() if path.suffix in ASSET_TYPES}

    def fetch(self, url: str, headers: object = None) -> URLFetcherResponse:
        path = self._known.get(url.removeprefix("asset:")) if url.startswith("asset:") else None
        if path is None:
            raise ValueError("documents read nothing but the seller's own pictures")
        return URLFetcherResponse(url, path.read_bytes(), {"Content-Type": ASSET_TYPES[path.suffix]})


class _Watch(logging.Handler):
    """Reports the page that WeasyPrint logs."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.INFO)
        self._progress = progress
        self._logger = logging.getLogger("weasyprint.progress")

    def __enter__(self) -> None:
        self._logger.addHandler(self)
        self._logger.setLevel(logging.INFO)

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(logging.CRITICAL)

    def emit(self, record: logging.LogRecord) -> None:
        if found := re.search(r"Page (\d+)$", record.getMessage()):
            if int(found[1]) > PAGES_MAX:
                raise TooLargeError(f"more than {PAGES_MAX:,} pages")
            self._progress(int(found[1]), "laying out")


def _attachments(design: Design, content: Mapping[str, Any], fetcher: AssetFetcher) -> list[Attachment]:
    """The quote as data, sorted by name as a name tree requires."""
    moment = datetime.fromisoformat(content["quote"]["issued_at"])
    xml = ("quotation.xml", quotation_xml(design.brand, content), "UBL Quotation", "Alternative")
    if "order" in content:
        xml = ("order.xml", order_xml(design.brand, content), "UBL Order", "Alternative")
    files = (
        xml,
        ("quote.json", canonical_json(content), "The quote as JSON", "Data"),
    )
    return [
        Attachment(
            string=text,
            name=name,
            description=description,
            created=moment,
            modified=moment,
            relationship=relationship,
            url_fetcher=fetcher,
        )
        for name, text, description, relationship in files
    ]


def _finish(_document: Document, pdf: Any) -> None:
    """Remove duplicates: WeasyPrint 70 lists every attached file twice."""
    if "AF" in pdf.catalog:
        unique = list(dict.fromkeys(pdf.catalog["AF"]))
        pdf.catalog["AF"].clear()
        pdf.catalog["AF"].extend(unique)


_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_UA = "http://www.aiim.org/pdfua/ns/id/"
_EXTENSION = "http://www.aiim.org/pdfa/ns/extension/"
_SCHEMA = "http://www.aiim.org/pdfa/ns/schema#"
_PROPERTY = "http://www.aiim.org/pdfa/ns/property#"


def _claim_accessibility(document: Document) -> None:
    """Declare PDF/UA-1 in the metadata; PDF/A requires a declaration of every foreign property."""
    original = document.metadata.generate_rdf_metadata

    def generate(variant: str, version: int, conformance: str) -> bytes:
        for prefix, uri in (("pdfaExtension", _EXTENSION), ("pdfaSchema", _SCHEMA), ("pdfaProperty", _PROPERTY)):
            Xml.register_namespace(prefix, uri)
        rdf = Xml.fromstring(original(variant, version, conformance))  # noqa: S314 - just written by WeasyPrint
        described = Xml.SubElement(rdf, f"{{{_RDF}}}Description", {f"{{{_RDF}}}about": ""})
        Xml.SubElement(described, f"{{{_UA}}}part").text = "1"
        declared = Xml.SubElement(rdf, f"{{{_RDF}}}Description", {f"{{{_RDF}}}about": ""})
        bag = Xml.SubElement(Xml.SubElement(declared, f"{{{_EXTENSION}}}schemas"), f"{{{_RDF}}}Bag")
        schema = Xml.SubElement(bag, f"{{{_RDF}}}li", {f"{{{_RDF}}}parseType": "Resource"})
        Xml.SubElement(schema, f"{{{_SCHEMA}}}schema").text = "PDF/UA identification schema"
        Xml.SubElement(schema, f"{{{_SCHEMA}}}namespaceURI").text = _UA
        Xml.SubElement(schema, f"{{{_SCHEMA}}}prefix").text = "pdfuaid"
        sequence = Xml.SubElement(Xml.SubElement(schema, f"{{{_SCHEMA}}}property"), f"{{{_RDF}}}Seq")
        part = Xml.SubElement(sequence, f"{{{_RDF}}}li", {f"{{{_RDF}}}parseType": "Resource"})
        for name, text in (
            ("name", "part"),
            ("valueType", "Integer"),
            ("category", "internal"),
            ("description", "Indicates, which part of ISO 14289 standard is followed"),
        ):
            Xml.SubElement(part, f"{{{_PROPERTY}}}{name}").text = text
        written: bytes = Xml.tostring(rdf, encoding="utf-8")
        return written

    document.metadata.generate_rdf_metadata = generate


def _subset(self: Any, to_unicode: Mapping[int, str], _hinting: bool) -> None:
    """Keep only used glyphs, with the bundled HarfBuzz: the system's gives other bytes in each version."""
    if not to_unicode:
        return
    face = uharfbuzz.Face(self.file_content, self.index)
    # First keep the glyph numbers, then cut off all glyphs after the last used one.
    for glyphs, flags in (
        (set(to_unicode), uharfbuzz.SubsetFlags.RETAIN_GIDS),
        (set(range(max(to_unicode) + 1)), uharfbuzz.SubsetFlags.NO_HINTING),
    ):
        wanted = uharfbuzz.SubsetInput()
        wanted.glyph_set.update(glyphs)
        wanted.drop_table_tag_set.update(int.from_bytes(tag.encode(), "big") for tag in DROPPED_TABLES)
        wanted.flags = flags | uharfbuzz.SubsetFlags.DESUBROUTINIZE | uharfbuzz.SubsetFlags.PASSTHROUGH_UNRECOGNIZED
        if self.missing:
            wanted.flags |= uharfbuzz.SubsetFlags.NOTDEF_OUTLINE
        face = uharfbuzz.subset(face, wanted)
    self.file_content = face.blob.data


class _Letters(dict[int, str]):
    """The text of each glyph. WeasyPrint gives the second glyph of a letter no text, but PDF/A requires one."""

    def __setitem__(self, glyph: int, letters: str) -> None:
        super().__setitem__(glyph, letters or "\u200b")


def _named(original: Callable[..., None]) -> Callable[..., None]:
    """Name fonts by family, weight and style: WeasyPrint uses a text that differs between versions of Pango."""

    def init(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        known = f"{self.family} {self.weight} {int(self.style)}"
        letters = md5(known.encode(), usedforsecurity=False).digest()[:6]
        self.to_unicode = _Letters()
        self.hash = "".join(chr(65 + letter % 26) for letter in letters)
        self.name = f"/{self.hash}+{known.replace(' ', '-')}".encode()

    return init


pdf_fonts.Font.subset = _subset
pdf_fonts.Font.__init__ = _named(pdf_fonts.Font.__init__)
