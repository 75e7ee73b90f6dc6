"""PURE. The outline of a Python file: its symbols, each definition with its docstring, and its constants."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

Function = ast.FunctionDef | ast.AsyncFunctionDef

_LINE_END = re.compile(r"\r\n?|\n")
"""Line ends as Python counts them: a form feed is not one."""


@dataclass(frozen=True)
class Outline:
    package: str
    symbols: str
    definitions: list[tuple[str, str, int, int]]
    """Name, text, first and last line."""
    data: str
    counts: dict[str, Any]


def outline(text: str, module: str) -> Outline | None:
    """None when the text is not Python, or nested too deeply."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        return _outline(tree, _LINE_END.split(text), module)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _outline(tree: ast.Module, lines: list[str], module: str) -> Outline:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    functions = [node for node in tree.body if isinstance(node, Function)]
    imports = sum(isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body)
    constants = list(_constants(tree.body, lines))
    counts = {"imports_count": imports, "types_count": len(classes), "functions_count": len(functions)}
    paragraphs = [f"Package: {module}", ast.get_docstring(tree) or "", f"Imports: {imports}"]
    paragraphs.append(
        _listed("Types", [f"{node.name} (class) (lines {node.lineno}-{node.end_lineno})" for node in classes])
    )
    paragraphs.append(
        _listed("Functions", [f"{_head(node)} (lines {node.lineno}-{node.end_lineno})" for node in functions])
    )
    paragraphs.append(_listed("Constants", [name for name, _ in constants]))
    definitions = [
        (node.name, _definition(node, lines), node.lineno, node.end_lineno or node.lineno)
        for node in tree.body
        if isinstance(node, ast.ClassDef | Function)
    ]
    return Outline(
        module,
        "\n\n".join(filter(None, paragraphs)),
        definitions,
        "\n".join(text for _, text in constants),
        counts,
    )


def _definition(node: ast.ClassDef | Function, lines: list[str]) -> str:
    """The signature as written, with the docstring; for a class also its fields and methods."""
    text = _signature(node, lines)
    if comment := ast.get_docstring(node):
        text += f'\n    """{comment}"""'
    if isinstance(node, ast.ClassDef):
        for part in node.body:
            if isinstance(part, ast.AnnAssign):
                text += f"\n    {ast.unparse(part)}"
            elif isinstance(part, ast.Assign):
                text += "\n" + textwrap.indent(textwrap.dedent(_source(part, lines)), "    ")
            elif isinstance(part, Function):
                text += f"\n    {_head(part)}"
                if comment := ast.get_docstring(part):
                    text += f"  # {comment.splitlines()[0]}"
    return text


def _signature(node: ast.ClassDef | Function, lines: list[str]) -> str:
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    end = max(node.body[0].lineno - 1, node.lineno)
    return textwrap.dedent("\n".join(lines[first - 1 : end])).rstrip()


def _head(node: Function) -> str:
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{kind} {node.name}({ast.unparse(node.args)}){returns}"


def _constants(body: list[ast.stmt], lines: list[str]) -> Iterator[tuple[str, str]]:
    """Names in capitals with their values, and the docstring below them."""
    for node, following in zip_longest(body, body[1:]):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names = [target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()]
        if not names:
            continue
        text = _source(node, lines)
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            text += f"\n{_source(following, lines)}"
        yield names[0], text


def _source(node: ast.stmt, lines: list[str]) -> str:
    return "\n".join(lines[node.lineno - 1 : node.end_lineno])


def _listed(title: str, items: list[str]) -> str:
    return f"{title}:\n" + "\n".join(f"  - {item}" for item in items) if items else ""
