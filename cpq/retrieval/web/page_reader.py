"""Reads a response as a page: detects its type and encoding, and splits it into blocks."""

from __future__ import annotations

import codecs
import re
from itertools import islice
from typing import Literal

from cpq.retrieval.web.fetcher import Fetched, FetchError
from cpq.retrieval.web.pdf import read_pdf
from cpq.retrieval.web.rules.addresses import Address, joined
from cpq.retrieval.web.rules.html_markdown import convert
from cpq.retrieval.web.rules.link_text import MARKDOWN_LINK
from cpq.retrieval.web.rules.page import (
    BLOCKS_MAX,
    LINKS_MAX,
    REFERENCES_MAX,
    TITLE_LENGTH_MAX,
    Block,
    Link,
    Page,
    line,
    seen,
)

Kind = Literal["html", "markdown", "text", "pdf"]

_CHARSETS = re.compile(
    r"utf-?8|utf-?16(-?[lb]e)?|us-ascii|ascii|latin-?1|iso-?8859-?\d{1,2}|windows-?125\d|cp125\d|koi8-[ru]|gb(k|2312|18030)"
    r"|big5(-hkscs)?|shift[_-]?jis|sjis|euc-(jp|kr)|iso-2022-jp|macintosh|ibm866|cp866"
)
"""The encodings that browsers know. Python knows more; some are not text encodings, or slow."""

_MEANT = {
    "latin1": "windows-1252",
    "iso88591": "windows-1252",
    "iso88599": "windows-1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shiftjis": "cp932",
    "sjis": "cp932",
    "euckr": "cp949",
}
"""The encoding that browsers use for a name, which is often a larger one; pages are written for browsers."""

_META = re.compile(rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:-]{2,30})", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_:-]{2,30})", re.IGNORECASE)
_LOOKS_LIKE_HTML = re.compile(
    rb"\s*(?:<!--.{0,2000}?-->\s*)?<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE | re.DOTALL
)
_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_SNIFFED_BYTES = 4096
_BINARY_SHARE = 0.02


def read_page(fetched: Fetched) -> tuple[Page, Kind]:
    """The page, by its content and not by its header alone. FetchError when it cannot be read."""
    kind = kind_of(fetched.content_type, fetched.body)
    if kind == "pdf":
        return _pdf_page(fetched.body), kind
    text = decoded(fetched.body, fetched.content_type, is_html=kind == "html")
    if kind == "html":
        return convert(text, fetched.address), kind
    if kind == "markdown":
        return markdown_page(text, fetched.address), kind
    return _text_page(text), kind


def kind_of(content_type: str, body: bytes) -> Kind:
    """Servers send wrong types, so the first bytes count too."""
    mime = content_type.partition(";")[0].strip().lower()
    start = body[:_SNIFFED_BYTES]
    if start.lstrip()[:5] == b"%PDF-":
        return "pdf"
    if not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and _is_binary(start):
        raise FetchError("it is neither text nor a PDF")
    if _LOOKS_LIKE_HTML.match(start.removeprefix(codecs.BOM_UTF8)) or mime in ("text/html", "application/xhtml+xml"):
        return "html"
    if mime in ("text/markdown", "text/x-markdown"):
        return "markdown"
    if mime.startswith("text/") or mime in ("", "application/json", "application/xml", "application/octet-stream"):
        return "text"
    raise FetchError("it is of a type that is not read: pages, text and PDF are")


def decoded(body: bytes, content_type: str, *, is_html: bool) -> str:
    """The text: by byte-order mark, header, then the page's declaration; an encoding that does not fit is ignored."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    names = [found[1] for found in [_CHARSET.search(content_type)] if found]
    if is_html:
        # A page whose own declaration can be read as ASCII is not in UTF-16.
        declared = [found[1].decode() for found in [_META.search(body[:_SNIFFED_BYTES])] if found]
        names += ["utf-8" if name.lower().startswith("utf-16") else name for name in declared]
    for name in [*map(_meant, filter(_is_known, map(str.lower, names))), "utf-8"]:
        try:
            return body.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    # A few broken bytes do not make a UTF-8 page another encoding.
    replaced = body.decode("utf-8", "replace")
    if replaced.count("\ufffd") * 100 < len(replaced) and any(map(_is_utf8, names)):
        return replaced
    return body.decode("windows-1252", "replace")


def markdown_page(text: str, base: Address) -> Page:
    """Markdown is kept as it is; only its blocks are separated."""
    blocks: list[Block] = []
    for part in _markdown_parts(seen(text)):
        heading = _HEADING.fullmatch(part)
        if heading:
            blocks.append(Block("heading", line(_unclosed(heading[2]), TITLE_LENGTH_MAX), len(heading[1])))
        elif _FENCE.match(part):
            blocks.append(Block("code", part))
        else:
            blocks.append(Block("table" if part.lstrip().startswith("|") else "text", part))
    title = next((block.text for block in blocks if block.kind == "heading"), "")
    links = _markdown_links(text, base)
    return Page(title, tuple(blocks[:BLOCKS_MAX]), links=links)


def _unclosed(text: str) -> str:
    """A heading without its closing signs; a sign attached to a word belongs to the word, as in `C#`."""
    heading = text.rstrip()
    bare = heading.rstrip("#")
    return bare.rstrip() if bare[-1:].isspace() else heading


def _markdown_parts(text: str) -> list[str]:
    """Paragraphs, headings and whole fences, up to the limit of a page."""
    parts: list[str] = []
    gathered: list[str] = []
    fence = ""

    def end() -> None:
        if any(each.strip() for each in gathered):
            parts.append("\n".join(gathered).strip("\n"))
        gathered.clear()

    for each in text.splitlines():
        if len(parts) >= BLOCKS_MAX:
            return parts
        found = _FENCE.match(each)
        if fence:
            gathered.append(each)
            if found and found[1].startswith(fence) and not each.strip().strip(found[1][0]):
                end()
                fence = ""
        elif found:
            end()
            gathered.append(each)
            fence = found[1]
        elif _HEADING.fullmatch(each):
            end()
            parts.append(each)
        elif each.strip():
            gathered.append(each)
        else:
            end()
    end()
    return parts


def _markdown_links(text: str, base: Address) -> tuple[Link, ...]:
    found: dict[str, Link] = {}
    for label, reference in islice(map(re.Match.groups, MARKDOWN_LINK.finditer(text)), REFERENCES_MAX):
        address = joined(base, reference) if not reference.startswith("#") else None
        if address:
            found.setdefault(address.url, Link(address.url, line(label, 200)))
        if len(found) == LINKS_MAX:
            break
    return tuple(found.values())


def _text_page(text: str) -> Page:
    parts = [part.strip("\n") for part in re.split(r"\n[ \t]*\n", seen(text.replace("\r\n", "\n").replace("\r", "\n")))]
    blocks = tuple(Block("text", part) for part in parts if part.strip())
    title = line(blocks[0].text.split("\n", 1)[0], TITLE_LENGTH_MAX) if blocks else ""
    return Page(title, blocks[:BLOCKS_MAX])


def _pdf_page(body: bytes) -> Page:
    try:
        found = read_pdf(body)
    except ValueError as error:
        raise FetchError(str(error)) from None
    blocks: list[Block] = []
    for number, text in enumerate(found.pages, 1):
        paragraphs = [part for part in _text_page(text).blocks if part.text.strip()]
        if paragraphs:
            blocks += [Block("heading", f"Page {number}", 1), *paragraphs]
    first = next((block.text.split("\n", 1)[0] for block in blocks if block.kind == "text"), "")
    warning = None if found.is_whole else "The PDF is longer than what is read of one."
    return Page(line(found.title or first, TITLE_LENGTH_MAX), tuple(blocks[:BLOCKS_MAX]), warning=warning)


def _is_known(name: str) -> bool:
    return bool(_CHARSETS.fullmatch(name))


def _meant(name: str) -> str:
    return _MEANT.get(name.replace("-", "").replace("_", ""), name)


def _is_utf8(name: str) -> bool:
    return name.lower() in ("utf-8", "utf8")


def _is_binary(start: bytes) -> bool:
    control = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in start)
    return b"\0" in start or control > len(start) * _BINARY_SHARE
