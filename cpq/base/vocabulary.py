"""The industry's words for search, from `vocabulary.yaml`: synonyms, opposites, phrases and units."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_READ: dict[str, Any] = yaml.load(Path(__file__).with_name("vocabulary.yaml").read_bytes(), _LOADER)  # noqa: S506

SYNONYMS: tuple[tuple[str, ...], ...] = tuple(tuple(group) for group in _READ["synonyms"])
OPPOSITES: tuple[tuple[str, str], ...] = tuple((one, other) for one, other in _READ["opposites"])
PHRASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), word) for word, pattern in _READ["phrases"].items()
)
UNITS: tuple[str, ...] = tuple(_READ["units"])
UNIT_NAMES: dict[str, str] = _READ["unit_names"]
