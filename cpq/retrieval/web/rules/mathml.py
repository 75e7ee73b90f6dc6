"""PURE. Converts MathML to LaTeX: from the author's source, else from the structure, else as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DEPTH_MAX = 50
LATEX_LENGTH_MAX = 4000

_OPERATORS = {
    "−": "-", "×": r"\times ", "÷": r"\div ", "⋅": r"\cdot ", "·": r"\cdot ", "±": r"\pm ", "≤": r"\le ", "≥": r"\ge ",
    "≠": r"\ne ", "≈": r"\approx ", "∞": r"\infty ", "∑": r"\sum ", "∏": r"\prod ", "∫": r"\int ", "∂": r"\partial ",
    "√": r"\sqrt ", "→": r"\to ", "∈": r"\in ", "∀": r"\forall ", "∃": r"\exists ", "\u2061": "", "\u2062": " ",
}  # fmt: skip
_GREEK_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi"
    " omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
)
_GREEK = dict(zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ", _GREEK_NAMES.split(), strict=True))


def latex(node: Any) -> str:
    """`$…$`, or `$$…$$` for a formula on its own line; empty for an empty element."""
    attributes = node.attributes
    source = " ".join((attributes.get("alttext") or "").split()) or _annotation(node) or _written(node, 0)
    source = " ".join(source.split())[:LATEX_LENGTH_MAX].replace("$", r"\$")
    if not source:
        return ""
    is_display = attributes.get("display") == "block" or attributes.get("mode") == "display"
    return f"$${source}$$" if is_display else f"${source}$"


def _annotation(node: Any) -> str:
    """The TeX source that a converter left beside the formula."""
    for found in node.css("annotation"):
        if "tex" in (found.attributes.get("encoding") or "").lower():
            return str(found.text(deep=True))
    return ""


def _written(node: Any, depth: int) -> str:
    if depth > DEPTH_MAX:
        return str(node.text(deep=True))
    tag = node.tag
    if tag == "-text":
        return "".join(_symbol(letter) for letter in (node.text_content or "")[:LATEX_LENGTH_MAX])
    if tag in ("annotation", "annotation-xml", "mspace", "-comment"):
        return ""
    parts = [_written(child, depth + 1) for child in node.iter(include_text=True)]
    if tag in _SHAPES:
        # Blanks between elements are not arguments.
        arguments = [part for part in parts if part.strip()]
        wanted, write = _SHAPES[tag]
        if len(arguments) == wanted:
            return write(arguments)
    if tag == "msqrt":
        return rf"\sqrt{{{''.join(parts).strip()}}}"
    if tag == "mtext":
        return rf"\text{{{' '.join(''.join(parts).split())}}}"
    if tag == "mfenced":
        return f"({', '.join(part for part in parts if part.strip())})"
    if tag == "mtable":
        rows = r" \\ ".join(part for part in parts if part.strip())
        return rf"\begin{{matrix}}{rows}\end{{matrix}}"
    if tag in ("mtr", "mlabeledtr"):
        return " & ".join(part for part in parts if part.strip())
    return "".join(parts)


_SHAPES: dict[str, tuple[int, Callable[[list[str]], str]]] = {
    "mfrac": (2, lambda parts: rf"\frac{{{parts[0].strip()}}}{{{parts[1].strip()}}}"),
    "msup": (2, lambda parts: f"{parts[0].strip()}^{{{parts[1].strip()}}}"),
    "msub": (2, lambda parts: f"{parts[0].strip()}_{{{parts[1].strip()}}}"),
    "msubsup": (3, lambda parts: f"{parts[0].strip()}_{{{parts[1].strip()}}}^{{{parts[2].strip()}}}"),
    "munder": (2, lambda parts: f"{parts[0].strip()}_{{{parts[1].strip()}}}"),
    "mover": (2, lambda parts: f"{parts[0].strip()}^{{{parts[1].strip()}}}"),
    "munderover": (3, lambda parts: f"{parts[0].strip()}_{{{parts[1].strip()}}}^{{{parts[2].strip()}}}"),
    "mroot": (2, lambda parts: rf"\sqrt[{parts[1].strip()}]{{{parts[0].strip()}}}"),
}


def _symbol(letter: str) -> str:
    if letter in _GREEK:
        return f"\\{_GREEK[letter]} "
    return _OPERATORS.get(letter, letter)
