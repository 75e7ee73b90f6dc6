"""Checks a YAML file that people write against a model, and reports every problem with file, line and column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from cpq.base.errors import nearest
from cpq.domain.yaml_source import Document, Path, Problem


@dataclass(frozen=True)
class File:
    """The readable part of a file; faulty items are left out, so the others keep their original place."""

    document: Document
    shape: BaseModel
    kept: Mapping[str, list[int]]

    def path(self, section: str, index: int) -> tuple[str, int]:
        return section, self.kept[section][index]


def read_shape(document: Document, shape: type[BaseModel], problems: list[Problem]) -> File | None:
    """The file as its shape. Rules that do not fit are reported and left out, so that the rest is checked too."""
    plain = document.root.plain()
    kept = {section: list(range(len(plain[section]))) for section in plain if isinstance(plain[section], list)}
    try:
        return File(document, shape.model_validate(plain), kept)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    problems += [_shape_problem(document, shape, found) for found in _one_per_choice(document, errors)]
    faulty = {tuple(found["loc"][:2]) for found in errors}
    strange = {
        str(found["loc"][0]) for found in errors if found["type"] == "extra_forbidden" and len(found["loc"]) == 1
    }
    plain = {name: part for name, part in plain.items() if name not in strange}
    for section in kept.keys() & plain.keys():
        kept[section] = [index for index in kept[section] if (section, index) not in faulty]
        plain[section] = [plain[section][index] for index in kept[section]]
    try:
        return File(document, shape.model_validate(plain), kept)
    except ValidationError:
        return None


def _one_per_choice(document: Document, errors: list[Any]) -> Iterable[Any]:
    """For a value of several possible types, only the problems of the first type."""
    seen: set[Path] = set()
    for error in errors:
        path = document.known_part(error["loc"])
        is_choice = len(path) < len(error["loc"]) and error["type"] != "missing"
        if not is_choice or path not in seen:
            yield error
        seen.add(path)


def _shape_problem(document: Document, shape: type[BaseModel], error: Any) -> Problem:
    path, kind = _place(document, error["loc"]), error["type"]
    written = path if kind == "missing" else document.known_part(path)
    name = next((str(part) for part in reversed(written) if isinstance(part, str)), document.file)
    if kind == "extra_forbidden":
        near = nearest(name, _field_names(shape))
        return document.problem_at_name(path, f"there is no field {name} here", near)
    if kind == "missing":
        return document.problem(path[:-1], f"the field {name} is missing")
    if kind in ("literal_error", "enum"):
        allowed = re.findall(r"'([^']*)'", str(error["ctx"]["expected"]))
        near = nearest(str(error["input"]), allowed)
        return document.problem(path, f"{name} is one of {', '.join(allowed)}", near)
    message = str(error["ctx"]["error"]) if kind == "value_error" else str(error["msg"]).lower()
    return document.problem(path, f"{name}: {message}")


def _place(document: Document, location: Path) -> Path:
    """The location without the names of the forms that a value may have, which the document does not contain."""
    place: Path = ()
    for number, part in enumerate(location, 1):
        if number == len(location) or document.known_part((*place, part)) == (*place, part):
            place = (*place, part)
    return place


def _field_names(shape: type[BaseModel]) -> set[str]:
    """Every name that may be used anywhere in the file."""
    names: set[str] = set()
    for name, field in shape.model_fields.items():
        names.add(name)
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                names |= _field_names(part)
    return names
