"""Documents in the customer's language: translated texts of the catalogue, frozen with the version that prints them."""

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from cpq.app import recorded_state
from cpq.services.documents import DocumentRequest
from cpq.services.documents.exporter import export
from cpq.services.quotes import replay
from cpq.storage.schema.tables import quote_line
from tests.support import engine, papers
from tests.support.engine import Tools
from tests.support.papers import Paper
from tests.support.quotes import put_into

PUMP: dict[str, Any] = {
    "id": "prod_pump",
    "sku": "PMP-1",
    "name": "Vacuum pump",
    "name.de": "Vakuumpumpe",
    "description": "Runs dry.",
    "description.de": "Läuft trocken.",
    "product_type": "configurable",
    "category": "pumps",
    "options": {
        "hue": {
            "type": "enum",
            "values": ["red", "blue"],
            "values.de": {"red": "Rot"},
            "label": "Colour",
            "label.de": "Farbe",
            "label.de-CH": "Farbton",
        }
    },
}
KIT = {
    "id": "prod_kit",
    "sku": "KIT-1",
    "name": "Pump kit",
    "product_type": "bundle",
    "category": "pumps",
    "relationships": [{"kind": "component", "product_id": "prod_pump"}],
}
WORDS = {
    "untranslated": ("Vacuum pump", "Runs dry.", "Pumps", "Colour: red", "1 × Vacuum pump"),
    "de": ("Vakuumpumpe", "Läuft trocken.", "Pumpen", "Farbe: Rot", "1 × Vakuumpumpe"),
    "de_CH": ("Vakuumpumpe", "Läuft trocken.", "Pumpen", "Farbton: Rot", "1 × Vakuumpumpe"),
}


def pump_quote(tools: Tools) -> str:
    engine.import_dicts(tools.app, "categories", {"id": "pumps", "name": "Pumps", "name.de": "Pumpen"})
    engine.import_dicts(tools.app, "products", PUMP, KIT)
    prices = [{"product_id": id_, "price_book": "list", "currency": "USD", "unit_price": "900"} for id_ in SOLD]
    engine.import_dicts(tools.app, "prices", *prices)
    lines: list[dict[str, Any]] = [{"product_id": id_, "quantity": 1} for id_ in SOLD]
    lines[0]["attributes"] = {"hue": "red"}
    return papers.quoted(tools, *lines)


SOLD = (PUMP["id"], KIT["id"])


def rename(tools: Tools, **names: str) -> None:
    """Change the translations of the product."""
    bare = {name: value for name, value in PUMP.items() if "." not in name}
    changes = {f"name.{tag}": name for tag, name in names.items()}
    assert engine.import_dicts(tools.app, "products", bare | changes).updated["products"] == 1


def exported(tools: Tools, quote_id: str, form: str = "html", **asked: Any) -> str:
    request = DocumentRequest(quote_id, **{"template": "detailed", **asked})
    call = tools.app.new_call()
    return tools.app.read_unaudited(call, lambda tx: export(tx, request, form, papers.design()))


def test_a_german_document_says_the_german_names_of_products_categories_and_options(tools: Tools):
    """For de_AT the texts in German, for de_CH its own where there are some, for French those of the catalogue."""
    quote_id = pump_quote(tools)
    for locale, said in (
        ("de_AT", "de"),
        ("de_CH", "de_CH"),
        ("de", "de"),
        ("fr", "untranslated"),
        (None, "untranslated"),
    ):
        page = exported(tools, quote_id, locale=locale)
        others = {word for words in WORDS.values() for word in words} - {*WORDS[said]}
        assert [word for word in WORDS[said] if word not in page.replace("\xa0:", ":")] == [], locale
        assert [word for word in others if word in page] == [], locale
    assert "<cbc:Name>Vakuumpumpe</cbc:Name>" in exported(tools, quote_id, "ubl", locale="de_DE")
    assert ",Vakuumpumpe," in exported(tools, quote_id, "csv", locale="de")
    assert ",Vacuum pump," in exported(tools, quote_id, "csv")
    assert tools("quote_get", quote_id=quote_id)["line_items"][0]["product_name"] == "Vacuum pump"


def test_a_sent_document_stays_to_the_byte_when_a_translation_changes(sqlite_tools: Tools):
    """Also one that is printed in that language for the first time says the name that the version has."""
    tools, quote_id = sqlite_tools, pump_quote(sqlite_tools)
    put_into(tools.app, quote_id, "sent")
    before = tools("quote_pdf", quote_id=quote_id, locale="de_DE")
    content = Path(before["file_path"]).read_bytes()
    assert "Vakuumpumpe" in Paper.of(before).text
    rename(tools, de="Sauger", fr="Pompe")
    after = tools("quote_pdf", quote_id=quote_id, locale="de_DE")
    assert (after["checksum"], Path(after["file_path"]).read_bytes()) == (before["checksum"], content)
    assert tools("quote_verify_pdf", document=before["checksum"])["is_current_approved"]
    assert "Vakuumpumpe" in exported(tools, quote_id, locale="de_AT", template="compact")
    assert "Pompe" not in exported(tools, quote_id, locale="fr", template="compact")
    (proof, *_) = tools.app.read_unaudited(tools.app.new_call(), lambda tx: list(replay.replay_stored(tx, quote_id)))
    assert (proof.has_same_catalog, proof.version) == (False, 1)
    assert "Sauger" in exported(tools, papers.quoted(tools, {"product_id": SOLD[0], "quantity": 1}), locale="de")


def test_a_line_of_before_translations_prints_its_own_name(tools: Tools):
    quote_id = pump_quote(tools)

    def forget(tx: Any) -> dict[str, Any]:
        tx.connection.execute(sa.update(quote_line).where(tx.own(quote_line)).values(product_names={}))
        recorded_state.rebase(tx, quote_id)
        return {}

    engine.write(tools.app, forget)
    page = exported(tools, quote_id, locale="de", template="compact")
    assert ("Vacuum pump" in page, "Vakuumpumpe" in page) == (True, False)


def test_translations_leave_the_price_and_its_fingerprint_alone(tools: Tools):
    quote_id = pump_quote(tools)
    before = tools("quote_price", quote_id=quote_id)["fingerprint"]
    rename(tools, de="Sauger", ja="ポンプ")
    assert tools("quote_price", quote_id=quote_id)["fingerprint"] == before
