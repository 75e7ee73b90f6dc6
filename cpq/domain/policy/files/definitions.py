"""Named conditions: each is read after those it refers to; a circle or a reserved name is a problem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cpq.domain.policy.language.nodes import Node
from cpq.domain.policy.language.parser import NAMED_DEPTH_MAX, ExpressionError, Scope, names_in, read
from cpq.domain.yaml_source import Document, Problem

WORDS = {"line", "lines", "true", "false", "any", "all", "sum", "min", "max", "count"}


def with_definitions(
    scope: Scope, files: Iterable[tuple[Document, Mapping[str, str]]], problems: list[Problem]
) -> Scope:
    """The scope with the named conditions of the files' `define:` sections."""
    texts: dict[str, tuple[Document, str]] = {}
    for document, defined in files:
        for name, text in defined.items():
            if name in scope.facts or name in texts or name in WORDS:
                message = f"{name} is already {'defined' if name in texts else 'a word of the language'}"
                problems.append(document.problem_at_name(("define", name), message))
            else:
                texts[name] = document, text
    definitions = _Definitions(scope, texts, problems)
    for name in texts:
        definitions.define(name, ())
    return replace(scope, defined=definitions.nodes, broken=frozenset(definitions.broken))


class _Definitions:
    def __init__(self, scope: Scope, texts: Mapping[str, tuple[Document, str]], problems: list[Problem]) -> None:
        self._scope = scope
        self._texts = texts
        self._problems = problems
        self.nodes: dict[str, Node] = {}
        self.broken: set[str] = set()

    def define(self, name: str, trail: tuple[str, ...]) -> None:
        """Reads a condition and all it refers to; `trail` is the path of names to it."""
        if name in self.nodes or name in self.broken:
            return
        document, text = self._texts[name]
        try:
            if name in trail:
                raise ExpressionError(f"refers to itself: {' → '.join((*trail[trail.index(name) :], name))}")
            if len(trail) > NAMED_DEPTH_MAX:
                raise ExpressionError(f"refers to others more than {NAMED_DEPTH_MAX} levels deep")
            words = {word for word, _ in names_in(text) if word in self._texts}
            for word in sorted(words):
                self.define(word, (*trail, name))
            if words & self.broken:
                self.broken.add(name)
            else:
                self.nodes[name] = read(text, replace(self._scope, defined=self.nodes))
        except ExpressionError as error:
            self._problems.append(document.problem(("define", name), error.message, error.near, error.offset))
            self.broken.add(name)
