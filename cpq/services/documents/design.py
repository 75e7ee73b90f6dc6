"""The folder of templates: branding, labels by language, and the digest of all its files."""

from __future__ import annotations

import hashlib
import string
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings, shipped
from cpq.services.documents.locale import LANGUAGE_DEFAULT, Tongue, parse_locale

TEMPLATES = ("standard", "compact", "detailed", "comparison", "executive_summary")
"""Of quotes; a seller's folder has each of them."""

ORDER_CONFIRMATION = "order_confirmation"
"""Of the order that an accepted quote became; the shipped one serves a folder that has none."""

EVERY_TEMPLATE = (*TEMPLATES, ORDER_CONFIRMATION)

FILES_MAX = 500
LOOK_SECONDS = 1.0
DESIGNS_MAX = 32
"""Designs in memory. Each tenant may have one."""


def _plain_name(name: str) -> str:
    if Path(name).name != name or name.startswith("."):
        raise ValueError("is the name of a file in assets/")
    return name


def _placeholders(text: str) -> str:
    known = {"payment", "valid_until"}
    found = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    if found - known:
        raise ValueError(f"knows {{payment}} and {{valid_until}}, not {min(found - known)!r}")
    return text


Colour = Annotated[str, Field(pattern=r"^#[0-9a-fA-F]{6}$")]
AssetName = Annotated[str, AfterValidator(_plain_name)]
Term = Annotated[str, AfterValidator(_placeholders)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Contact(_Part):
    name: str
    title: str = ""
    phone: str = ""
    email: str = ""


class Company(_Part):
    name: str
    legal: str
    address: str
    country: Annotated[str, Field(pattern=r"^[A-Z]{2}$")]
    phone: str
    email: str
    website: str
    tax_id: str
    """The one of business documents that programs read."""
    tax_ids: tuple[str, ...] = ()
    """As they are printed, each with its kind."""
    bank: tuple[str, ...] = ()
    contact: Contact | None = None
    signed_by: str


class Office(_Part):
    city: str
    address: str
    phone: str


class Colours(_Part):
    accent: Colour
    ink: Colour
    muted: Colour
    band: Colour


class Installation(_Part):
    """Which products without a scope of supply of their own are installation."""

    category: str
    spec: str
    value: str


class Texts(_Part):
    introduction: str
    installation: str
    work_on_site: str = ""
    exclusions: tuple[str, ...] = ()
    exclusions_of_goods: tuple[str, ...] = ()
    exclusions_without_installation: tuple[str, ...] = ()
    exclusions_without_rigging: tuple[str, ...] = ()
    terms: tuple[Term, ...]
    terms_of_goods: tuple[Term, ...] = ()
    terms_with_freight: tuple[Term, ...] = ()
    general_terms: str = ""
    delivery: str
    about: str


class Brand(_Part):
    """`branding.yaml`."""

    company: Company
    offices: tuple[Office, ...]
    logo: AssetName
    colours: Colours
    paper: Literal["auto", "A4", "Letter"] = "auto"
    verify_url: str = ""
    attributes_shown: tuple[str, ...] = ()
    installation: Installation | None = None
    categories_unshipped: tuple[str, ...] = ()
    texts: Mapping[str, Texts]

    def texts_in(self, language: str) -> Texts:
        return self.texts.get(language) or self.texts[LANGUAGE_DEFAULT]


@dataclass(frozen=True)
class Design:
    """What is the same for every document of a seller."""

    folder: Path
    brand: Brand
    labels: Mapping[str, Mapping[str, Any]]
    digest: str

    def tongue(self, locale: str) -> Tongue:
        parsed = parse_locale(locale)
        return Tongue(locale, self.labels[parsed.language], parsed)


def design_of(settings: Settings) -> Design:
    return load_design((settings.templates_dir or shipped("pdf_templates")).absolute())


def load_design(folder: Path) -> Design:
    """The design, at most a second old; UNAVAILABLE with the name of a missing or invalid file."""
    looked_at, design = _SEEN.get(folder, (0.0, None))
    if design is None or time.monotonic() - looked_at > LOOK_SECONDS:
        design = _look(folder)
        if len(_SEEN) >= DESIGNS_MAX:
            _SEEN.clear()
        _SEEN[folder] = (time.monotonic(), design)
    return design


_SEEN: dict[Path, tuple[float, Design]] = {}


def _look(folder: Path) -> Design:
    try:
        paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
        seen = tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in paths[:FILES_MAX])
    except OSError as error:
        raise _broken(folder, str(error)) from error
    return _load(folder, seen)


@lru_cache(maxsize=DESIGNS_MAX)
def _load(folder: Path, seen: tuple[tuple[str, int, int], ...]) -> Design:
    needed = [folder / "branding.yaml", *(folder / f"{name}.html" for name in TEMPLATES)]
    for path in needed:
        if not path.is_file():
            raise _broken(path, "it is missing")
    if not (folder / "fonts" / "fonts.conf").is_file():
        # Otherwise fontconfig uses the fonts of the machine, and the same quote looks different elsewhere.
        raise _broken(
            folder / "fonts", "there is no fonts.conf in it; copy the folder fonts/ that comes with Quotewright"
        )
    # A label that a seller's own folder does not have yet comes from the shipped one.
    shipped_labels = shipped("pdf_templates") / "labels"
    labels = {
        path.stem: {**_known_labels(shipped_labels, path.stem), **_read(path)}
        for path in sorted((folder / "labels").glob("*.yaml"))
    }
    if LANGUAGE_DEFAULT not in labels:
        raise _broken(folder / "labels" / f"{LANGUAGE_DEFAULT}.yaml", "it is missing")
    try:
        brand = Brand.model_validate(_read(folder / "branding.yaml"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _broken(folder / "branding.yaml", f"{place}: {first['msg']}") from None
    if LANGUAGE_DEFAULT not in brand.texts:
        raise _broken(folder / "branding.yaml", f"texts.{LANGUAGE_DEFAULT} is missing")
    if not (folder / "assets" / brand.logo).is_file():
        raise _broken(folder / "branding.yaml", f"logo: there is no {brand.logo} in assets/")
    return Design(folder, brand, labels, _digest(folder, [Path(name) for name, _, _ in seen]))


def _known_labels(folder: Path, language: str) -> dict[str, Any]:
    path = folder / f"{language}.yaml"
    return _read(path if path.is_file() else folder / f"{LANGUAGE_DEFAULT}.yaml")


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as file:
            values = yaml.safe_load(file)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _broken(path, str(error).replace("\n", " ")) from None
    if not isinstance(values, dict):
        raise _broken(path, "it holds no names and values")
    return values


def _digest(folder: Path, paths: list[Path]) -> str:
    total = hashlib.sha256()
    for path in paths:
        total.update(str(path.relative_to(folder)).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _broken(path: Path, reason: str) -> CpqError:
    return CpqError(
        Code.UNAVAILABLE,
        f"The document templates cannot be used: {path.name}: {reason}",
        hint="Correct the file, or unset CPQ_TEMPLATES_DIR to use those that come with Quotewright.",
    )
