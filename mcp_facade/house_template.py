"""The house template and the draft conventions for agents: from the operator's folder, else the shipped one."""

from __future__ import annotations

from pathlib import Path

from cpq.base.errors import Code, CpqError, nearest
from cpq.base.settings import Settings, shipped

PROMPT_NAME = "draft_quote"
PROMPT_TITLE = "Draft a quote from proven text"
PROMPT_DESCRIPTION = "How a draft is put together from past quotes and the catalogue, with the house template."

QUOTE, CONVENTIONS = "quote", "conventions"
_CHARACTERISTICS = "characteristics"


def read(settings: Settings, name: str) -> str:
    """`quote` (the skeleton) or `conventions`."""
    return _read(settings, Path(f"{name}.md"))


def read_characteristics(settings: Settings, category: str) -> str:
    """The block of a category; NOT_FOUND lists the known categories."""
    known = categories(settings)
    if category not in known:
        raise CpqError(
            Code.NOT_FOUND,
            f"There is no block for the category {category!r}. There are: {', '.join(known)}.",
            allowed=known,
            nearest=nearest(category, known) or None,
        )
    return _read(settings, Path(_CHARACTERISTICS) / f"{category}.md")


def categories(settings: Settings) -> list[str]:
    """The categories that have a block."""
    return sorted({path.stem for folder in _folders(settings) for path in (folder / _CHARACTERISTICS).glob("*.md")})


def draft_prompt(settings: Settings, wish: str) -> str:
    """The user's message that starts a draft."""
    about = f"The customer's wish: {wish.strip()}\n\n" if wish.strip() else ""
    blocks = ", ".join(f"template://house/characteristics/{name}" for name in categories(settings))
    return f"""{about}Draft a quote by the conventions below, in the order of the template. Each line gets proven text,
or the block of its category ({blocks}).

{read(settings, CONVENTIONS)}
{read(settings, QUOTE)}"""


def _read(settings: Settings, name: Path) -> str:
    found = next((folder / name for folder in _folders(settings) if (folder / name).is_file()), None)
    if found is None:
        raise CpqError(Code.NOT_FOUND, f"The house template has no {name.as_posix()}.")
    return found.read_text(encoding="utf-8")


def _folders(settings: Settings) -> list[Path]:
    """The folders to search, the operator's own first."""
    own = [settings.templates_dir / "house"] if settings.templates_dir else []
    return [*own, shipped("pdf_templates") / "house"]
