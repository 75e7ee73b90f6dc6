"""Documents for tests: sample quotes made through the tools, and what can be read off the finished pages."""

import io
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import pikepdf
import pypdfium2
from babel.numbers import parse_decimal
from PIL import Image

from cpq.app import App
from cpq.base.settings import shipped
from cpq.base.text import canonical_json
from cpq.services.documents.content import gather
from cpq.services.documents.design import Design, load_design
from cpq.services.quotes import repository
from tests.support import engine
from tests.support.engine import Tools

TEMPLATES_FOLDER = shipped("pdf_templates")
SKU_60 = "ACME-" + "X" * 50 + "-0001"
WORDS_3000 = "It is so. " * 1000
HOSTILE = """<script>alert(1)</script><img src="file:///etc/passwd"><b onclick=x>& {{ 7 * 7 }} {% raw %} &amp; ']]>"""

MACHINES = (
    {"product_id": "prod_qmb30", "quantity": 2, "notes": "Painted RAL 5010."},
    {"product_id": "prod_pro_v2", "quantity": 150, "discount_pct": 2},
    {"product_id": "prod_bdl_shop15", "quantity": 1},
    {"product_id": "prod_svc_install", "quantity": 3},
    {"product_id": "prod_dr125", "quantity": 1},
    {"product_id": "prod_tk240v", "quantity": 1},
)

PLAIN = tuple(
    {"product_id": id_, "quantity": number}
    for number, id_ in enumerate(("prod_qmb30", "prod_dr125", "prod_tk240v", "prod_dr75"), 1)
)
"""Machines without notes, options or installation."""

_MARKS = re.compile("[\u2066-\u2069\u200e\u200f\u061c\u200b\ufffe]")


def design() -> Design:
    return load_design(TEMPLATES_FOLDER.absolute())


def quoted(tools: Tools, *lines: dict[str, Any], discount: Any = 0, **terms: Any) -> str:
    """The id of a priced draft."""
    given = {"account_id": "acct_acme_001", "term_months": 12, "line_items": list(lines or MACHINES), **terms}
    quote_id = tools("quote_create", **given)["quote_id"]
    tools("quote_price", quote_id=quote_id, requested_discount_pct=discount)
    return quote_id


BY_USE = "USE-"
"""Begins the codes of products that are charged by use, whose lines have no quantity."""


def many_lines(tools: Tools, count: int, currency: str = "USD") -> list[dict[str, Any]]:
    """Lines of different products of many categories, some with a discount."""
    ids: list[str] = []
    for category in ("dryers", "filters", "tanks", "accessories", "services", "controls"):
        page = tools("catalog_search", category=category, limit=100)
        items = [item for item in page["items"] if not item["sku"].startswith(BY_USE)]
        ids += [item["id"] for item in items if item["product_type"] in ("simple", "service")][: count // 5 + 2]
    chosen = [ids[number % len(ids)] for number in range(count)]
    return [
        {"product_id": id_, "quantity": 1 + number % 7, "discount_pct": (0, 0, 4)[number % 3]}
        for number, id_ in enumerate(chosen)
    ]


def add_arabic(tools: Tools) -> str:
    """A product with a name and a description in Arabic that contain codes, figures with units and an address."""
    names = {
        "name": "Dryer SKU-12 (A), 30 HP",
        "name.ar": "مجفف هواء SKU-12 (A) بقدرة 30 HP",
        "description": "Dries air.",
        "description.ar": "ضغط 100 psi (6.9 bar)، معتمد ISO 8573-1 (C++)، انظر a-b@c.example.",
    }
    product = {"id": "prod_arabic", "sku": "SKU-12 (A)", "category": "arabic", **names}
    engine.import_dicts(tools.app, "categories", {"id": "arabic", "name": "Dryers", "name.ar": "مجففات (SKU)"})
    engine.import_dicts(tools.app, "products", product)
    price = {"product_id": "prod_arabic", "price_book": "list", "currency": "USD", "unit_price": "99.95"}
    engine.import_dicts(tools.app, "prices", price)
    return "prod_arabic"


def add_long_sku(tools: Tools) -> str:
    """A product whose code is as long as a code may sensibly be."""
    engine.import_dicts(
        tools.app,
        "products",
        {
            "id": "prod_long",
            "sku": SKU_60,
            "name": "Tank with a long code",
            "category": "tanks",
            "description": HOSTILE,
        },
    )
    engine.import_dicts(
        tools.app,
        "prices",
        {"id": "price_long", "product_id": "prod_long", "price_book": "list", "currency": "USD", "unit_price": "99.95"},
    )
    return "prod_long"


@dataclass(frozen=True)
class Cell:
    """A run of text on a page, in points from the lower left corner."""

    page: int
    left: float
    bottom: float
    right: float
    top: float
    text: str


@dataclass(eq=False)
class Paper:
    """A finished document."""

    pdf: bytes
    locale: str

    @classmethod
    def of(cls, answer: dict[str, Any]) -> "Paper":
        return cls(Path(answer["file_path"]).read_bytes(), answer["locale"])

    @cached_property
    def pages(self) -> list[str]:
        document = pypdfium2.PdfDocument(self.pdf)
        texts = [plain(page.get_textpage().get_text_range()) for page in document]
        document.close()
        return texts

    @property
    def text(self) -> str:
        return "\n".join(self.pages)

    @cached_property
    def cells(self) -> list[Cell]:
        document = pypdfium2.PdfDocument(self.pdf)
        found = []
        for number, page in enumerate(document):
            texts = page.get_textpage()
            for index in range(texts.count_rects()):
                left, bottom, right, top = texts.get_rect(index)
                said = plain(texts.get_text_bounded(left, bottom, right, top)).strip()
                found.append(Cell(number, left, bottom, right, top, said))
        document.close()
        return [cell for cell in found if cell.text]

    def seen(self) -> str:
        """The first page letter by letter from left to right, as the eye sees it, without blanks."""
        document = pypdfium2.PdfDocument(self.pdf)
        texts = document[0].get_textpage()
        letters = []
        for index in range(texts.count_chars()):
            left, bottom, _, _ = texts.get_charbox(index, loose=True)
            letters.append((-round(bottom), left, texts.get_text_range(index, 1)))
        document.close()
        return plain("".join(letter for _, _, letter in sorted(letters) if letter.strip()))

    def picture(self, page: int, scale: float = 0.5) -> Image.Image:
        document = pypdfium2.PdfDocument(self.pdf)
        picture: Image.Image = document[page].render(scale=scale).to_pil().convert("L")
        document.close()
        return picture

    def opened(self) -> pikepdf.Pdf:
        return pikepdf.open(io.BytesIO(self.pdf))

    def attached(self, name: str) -> bytes:
        with self.opened() as pdf:
            return pdf.attachments[name].get_file().read_bytes()

    @property
    def content(self) -> dict[str, Any]:
        return json.loads(self.attached("quote.json"), parse_float=Decimal)

    def number(self, text: str) -> Decimal:
        """A figure as this locale writes it; of several, as `10% -150.00`, the last."""
        digits = re.sub(r"[^\d.,’\-]", "", re.split(r"[%٪]", text)[-1])
        return parse_decimal(digits, locale=self.locale)

    def lines(self) -> list[dict[str, Decimal]]:
        """The figures of each line, as a reader finds them: in its row, below the headings of the columns."""
        tongue = design().tongue(self.locale)
        names = ("quantity", "unit_price", "discount", "amount")
        found = []
        for cell in self.columns(tongue.label("amount")):
            row = self.row_of(cell)
            if not row[0].text.isdigit() or len(row) < 5:
                continue
            heads = {name: self._head(cell.page, tongue.label(name)) for name in names}
            figures = {
                name: next((self.number(one.text) for one in row[1:] if head and abs(one.right - head) < 3), Decimal(0))
                for name, head in heads.items()
            }
            found.append({"number": self.number(row[0].text), **figures})
        return found

    def _head(self, page: int, label: str) -> float | None:
        return next((cell.right for cell in self.cells if cell.page == page and cell.text == label), None)

    def columns(self, heading: str) -> list[Cell]:
        """What stands below a heading and ends where it ends, down to the end of the table on each page."""
        cells = self.cells
        heads = [cell for cell in cells if cell.text == heading]
        return [
            cell
            for cell in cells
            for head in heads
            if cell.page == head.page and cell.top < head.bottom and abs(cell.right - head.right) < 3
        ]

    def row_of(self, cell: Cell) -> list[Cell]:
        """What stands in the same row, from left to right."""
        same = [other for other in self.cells if other.page == cell.page and abs(other.top - cell.top) < 4]
        return sorted(same, key=lambda other: other.left)


def plain(text: str) -> str:
    """Without marks of direction, and with the line ends of this world."""
    return _MARKS.sub("", text).replace("\r\n", "\n").replace("\u2002", " ")


def overlaps(cells: list[Cell]) -> list[tuple[Cell, Cell]]:
    """Texts that are printed over each other, but for a hair."""
    found = []
    for page in {cell.page for cell in cells}:
        letters = [cell for cell in cells if cell.page == page and cell.top - cell.bottom > 3]  # Marks sit on letters.
        rows = sorted(letters, key=lambda cell: (-round(cell.top), cell.left))
        found += [
            (one, other)
            for one, other in pairwise(rows)
            if abs(one.top - other.top) < 1 and one.right > other.left + 1 and one.left < other.right - 1
        ]
    return found


def totals_of(paper: Paper) -> list[Decimal]:
    """The figures of the block of totals, from the subtotal down to the total."""
    tongue = design().tongue(paper.locale)
    cells = paper.cells
    last = next(cell for cell in reversed(cells) if cell.text == tongue.label("total"))
    first = next(
        cell
        for cell in cells
        if cell.page == last.page and abs(cell.left - last.left) < 3 and cell.text in _first_labels(paper)
    )
    rows = [
        cell for cell in cells if cell.page == last.page and abs(cell.left - last.left) < 3 and first.top >= cell.top
    ]
    return [paper.number(paper.row_of(cell)[-1].text) for cell in rows if cell.top >= last.bottom]


def _first_labels(paper: Paper) -> tuple[str, str]:
    tongue = design().tongue(paper.locale)
    return (tongue.label("subtotal"), tongue.label("net_total"))


def sums(paper: Paper, start: str) -> list[Decimal]:
    """The figures of the rows that begin with these words."""
    return [paper.number(paper.row_of(cell)[-1].text) for cell in paper.cells if cell.text.startswith(start)]


def job(app: App, quote_id: str, template: str = "standard", locale: str = "en_US") -> bytes:
    """What a worker is told to make of a quote."""
    content = app.read_unaudited(
        app.new_call(), lambda tx: gather(tx, repository.load(tx, quote_id), template, design(), None, locale)
    )
    return canonical_json({"content": content, "template": template, "locale": locale, "stamp": None}).encode()
