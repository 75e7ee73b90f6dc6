"""The closed language of conditions: a few forms of Python's expressions, typed against the declared facts."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice, pairwise
from typing import Any, NamedTuple

from cpq.base.errors import nearest
from cpq.domain.policy.language.nodes import (
    Arithmetic,
    Choice,
    Comparison,
    Declared,
    Fact,
    Fold,
    Folding,
    Junction,
    Kind,
    Literal,
    Members,
    Membership,
    Node,
    Not,
    Order,
    depth,
    walk,
)

LENGTH_MAX = 2000
TOKENS_MAX = 400
DEPTH_MAX = 40
TEXT_MAX = 200
DIGITS_MAX = 30
WORDS_TOLD_MAX = 10
SIZE_MAX = 2000
NAMED_DEPTH_MAX = 100
"""Parts and depth of a condition with its named conditions inserted."""


@dataclass(frozen=True)
class Scope:
    """The words that a condition may use. Before pricing there is one `line`; afterwards there are `lines` to fold.

    `broken` are named conditions whose problem was already reported, so that their use is not reported as well.
    """

    facts: Mapping[str, Declared]
    line_facts: Mapping[str, Declared]
    attributes: Mapping[str, Declared] = field(default_factory=dict)
    defined: Mapping[str, Node] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    has_line: bool = False
    has_lines: bool = True


class ExpressionError(Exception):
    """A problem of an expression, its offset in characters, and similar known words."""

    def __init__(self, message: str, offset: int = 0, near: list[str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.near = near or []


def read(text: str, scope: Scope) -> Node:
    """The expression as a typed tree; ExpressionError with the place and the reason of a fault."""
    tokenize(text)
    return _Reader(scope, text).read(_parse(text))


def read_condition(text: str, scope: Scope) -> Node:
    return _of_kind(read(text, scope), Kind.BOOLEAN, "a condition is true or false")


def read_number(text: str, scope: Scope) -> Node:
    return _of_kind(read(text, scope), Kind.NUMBER, "a number is expected")


def names_in(text: str) -> list[tuple[str, int]]:
    """Every bare word of the expression with its place; named conditions refer to each other by these."""
    tokens = tokenize(text)
    after_dot = {tokens[index + 1].offset for index in range(len(tokens) - 1) if tokens[index].text == "."}
    return [(token.text, token.offset) for token in tokens if token.kind == "word" and token.offset not in after_dot]


def canonical(text: str) -> str:
    """The expression in a standard layout, which is shown and hashed."""
    words = [token.text.replace("_", "") if token.kind == "number" else token.text for token in tokenize(text)]
    return words[0] + "".join(word if _is_glued(last, word) else f" {word}" for last, word in pairwise(words))


def _is_glued(last: str, word: str) -> bool:
    return last in "([{." or word in ")]},." or (word == "(" and last in _FOLDS)


class Token(NamedTuple):
    kind: str
    text: str
    offset: int


def tokenize(text: str) -> list[Token]:
    """Refuses everything that is not part of the language before Python's own parser sees the text."""
    if len(text) > LENGTH_MAX:
        raise ExpressionError(f"an expression has at most {LENGTH_MAX} characters", LENGTH_MAX)
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ExpressionError(_unreadable(text, position), position)
        kind = str(found.lastgroup)
        if kind != "blank":
            token = Token(kind, found[0], position)
            _check_token(token, tokens)
            tokens.append(token)
        position = found.end()
    if not tokens:
        raise ExpressionError("the expression is empty")
    return tokens


def _check_token(token: Token, before: list[Token]) -> None:
    if len(before) >= TOKENS_MAX:
        raise ExpressionError(f"an expression has at most {TOKENS_MAX} words; name a part of it", token.offset)
    if token.kind == "text" and len(token.text) > TEXT_MAX + 2:
        raise ExpressionError(f"a text has at most {TEXT_MAX} characters", token.offset)
    if token.kind == "number" and len(token.text) > DIGITS_MAX:
        raise ExpressionError(f"a number has at most {DIGITS_MAX} digits", token.offset)
    if not before:
        return
    last = before[-1]
    touches = last.offset + len(last.text) == token.offset
    values = {"word", "number", "text"}
    if touches and last.kind in values and token.kind in values:
        raise ExpressionError(f"{last.text} and {token.text} need a blank or an operator between them", token.offset)
    if last.kind == token.kind == "text":
        raise ExpressionError("two texts follow each other; is a comma missing?", token.offset)


def _unreadable(text: str, position: int) -> str:
    character = text[position]
    if character in "'\"":
        return "a text is not closed, or holds a backslash or a line end"
    hints = {"#": "; write comments in YAML", "=": "; equality is written ==", "&": "; write and", "|": "; write or"}
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return f"{shown} has no meaning here{hints.get(character, '')}"


def _parse(text: str) -> ast.expr:
    # Line ends count as blanks, so that an author may break an expression anywhere.
    flat = "".join(" " if character in "\r\n\t" else character for character in text)
    start = len(flat) - len(flat.lstrip())
    try:
        return ast.parse(flat.lstrip(), mode="eval").body
    except SyntaxError as error:
        offset = start + (error.offset or len(flat)) - 1
        raise ExpressionError(f"not an expression: {error.msg}", min(offset, len(text))) from None
    except (MemoryError, RecursionError, ValueError):
        raise ExpressionError("nested too deeply") from None


class _Reader:
    """Converts Python's tree into nodes, and refuses every form that is not listed here."""

    def __init__(self, scope: Scope, text: str) -> None:
        self._scope = scope
        self._lead = len(text) - len(text.lstrip())
        self._source = text.lstrip().encode()
        self._in_fold = False
        self._depth = 0

    def read(self, tree: ast.expr) -> Node:
        node = self._node(tree)
        if sum(1 for _ in islice(walk(node), SIZE_MAX + 1)) > SIZE_MAX:
            raise ExpressionError(f"with its named conditions it has more than {SIZE_MAX} parts")
        if depth(node) > NAMED_DEPTH_MAX:
            raise ExpressionError(f"with its named conditions it is nested more than {NAMED_DEPTH_MAX} levels deep")
        return node

    def _node(self, tree: ast.expr) -> Node:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._fault(tree, f"nested more than {DEPTH_MAX} levels deep")
        reader = _FORMS.get(type(tree))
        if reader is None:
            raise self._fault(tree, f"{_FORM_NAMES.get(type(tree), type(tree).__name__)} is not part of the language")
        node = reader(self, tree)
        self._depth -= 1
        return node

    def _constant(self, tree: ast.Constant) -> Node:
        if isinstance(tree.value, bool):
            return Literal(tree.value, Kind.BOOLEAN)
        if isinstance(tree.value, str):
            return Literal(tree.value, Kind.TEXT)
        if isinstance(tree.value, int | float):
            # From the source text, because Python has already read 0.1 as a binary float.
            written = self._source[tree.col_offset : tree.end_col_offset].decode()
            if _TOKEN.fullmatch(written):
                return Literal(Decimal(written), Kind.NUMBER)
        raise self._fault(tree, "a value is a number such as 0.5, a text, true or false")

    def _name(self, tree: ast.Name) -> Node:
        scope, name = self._scope, tree.id
        if name in ("true", "false"):
            return Literal(name == "true", Kind.BOOLEAN)
        if name in scope.defined:
            return scope.defined[name]
        if name in scope.facts:
            return Fact(name, scope.facts[name].kind)
        if name == "line":
            raise self._fault(tree, "line is used with a fact of it, as in line.quantity")
        if name == "lines":
            raise self._fault(tree, "lines are only folded, as in any(line.discount > 20 for line in lines)")
        near = nearest(name, [*scope.facts, *scope.defined, *(f"line.{fact}" for fact in scope.line_facts)])
        hint = f"; of a line it is line.{name}" if name in scope.line_facts else ""
        raise self._fault(tree, f"there is no fact {name}{hint}", [f"line.{name}"] if hint else near)

    def _attribute(self, tree: ast.Attribute) -> Node:
        owner = tree.value
        if isinstance(owner, ast.Name) and owner.id == "line":
            self._require_line(tree)
            return self._declared(tree, "line.", tree.attr, self._scope.line_facts)
        is_attribute = isinstance(owner, ast.Attribute) and owner.attr == "attributes"
        if is_attribute and isinstance(owner.value, ast.Name) and owner.value.id == "line":  # type: ignore[attr-defined] # Checked.
            self._require_line(tree)
            return self._declared(tree, "line.attributes.", tree.attr, self._scope.attributes)
        raise self._fault(tree, "only line. has parts: line.quantity, line.attributes.export_controlled")

    def _declared(self, tree: ast.Attribute, prefix: str, name: str, known: Mapping[str, Declared]) -> Node:
        if name not in known:
            hint = " (declare it under attributes in terms.yaml)" if prefix == "line.attributes." else ""
            near = [prefix + word for word in nearest(name, known)]
            raise self._fault(tree, f"there is no fact {prefix}{name}{hint}", near)
        return Fact(prefix + name, known[name].kind, known[name].absent)

    def _require_line(self, tree: ast.expr) -> None:
        if not (self._in_fold or self._scope.has_line):
            raise self._fault(tree, "line is known only in a fold, as in any(line.discount > 20 for line in lines)")

    def _unary(self, tree: ast.UnaryOp) -> Node:
        if isinstance(tree.op, ast.Not):
            return Not(self._typed(tree.operand, Kind.BOOLEAN, "not"))
        if not isinstance(tree.op, ast.USub):
            raise self._fault(tree, "of the signs only not and - are known")
        operand = self._typed(tree.operand, Kind.NUMBER, "-")
        if isinstance(operand, Literal):
            assert isinstance(operand.value, Decimal)
            return Literal(operand.value.copy_negate() if operand.value else operand.value, Kind.NUMBER)
        return Arithmetic("-", Literal(Decimal(0), Kind.NUMBER), operand)

    def _binary(self, tree: ast.BinOp) -> Node:
        operator = _ARITHMETIC.get(type(tree.op))
        if operator is None:
            raise self._fault(tree, "of arithmetic only + - * / are known")
        left = self._typed(tree.left, Kind.NUMBER, operator)
        right = self._typed(tree.right, Kind.NUMBER, operator)
        if operator == "/" and isinstance(right, Literal) and right.value == 0:
            raise self._fault(tree.right, "this always divides by zero")
        return Arithmetic(operator, left, right)  # type: ignore[arg-type] # One of the four.

    def _junction(self, tree: ast.BoolOp) -> Node:
        word = "and" if isinstance(tree.op, ast.And) else "or"
        return Junction(word, tuple(self._typed(part, Kind.BOOLEAN, word) for part in tree.values))  # type: ignore[arg-type] # One of the two.

    def _compare(self, tree: ast.Compare) -> Node:
        trees = [tree.left, *tree.comparators]
        nodes = [self._node(part) for part in trees]
        for index in range(len(tree.ops)):
            for one, other in ((index, index + 1), (index + 1, index)):
                self._require_words(nodes[one], trees[other])
        parts = [
            self._comparison(operator, trees[index + 1], nodes[index], nodes[index + 1])
            for index, operator in enumerate(tree.ops)
        ]
        return parts[0] if len(parts) == 1 else Junction("and", tuple(parts))

    def _require_words(self, fact: Node, tree: ast.expr) -> None:
        """A text that the fact can never have is a spelling mistake: the condition would silently never be true."""
        if not isinstance(fact, Fact):
            return
        known = self._scope.line_facts if fact.is_of_line else self._scope.facts
        declared = None if fact.is_attribute else known.get(fact.name.removeprefix("line."))
        for part in tree.elts if isinstance(tree, ast.Set | ast.List | ast.Tuple) else (tree,):
            word = part.value if isinstance(part, ast.Constant) else None
            if declared and declared.words and isinstance(word, str) and word not in declared.words:
                few = sorted(declared.words) if len(declared.words) <= WORDS_TOLD_MAX else []
                codes = "a code in capital letters" if all(map(str.isupper, declared.words)) else "another word"
                allowed = f"one of {', '.join(few)}" if few else codes
                raise self._fault(part, f"{fact.name} is never {word}: it is {allowed}", _near(word, declared.words))

    def _comparison(self, operator: ast.cmpop, tree: ast.expr, left: Node, right: Node) -> Node:
        if isinstance(operator, ast.In | ast.NotIn):
            member = self._membership(tree, left, right)
            return member if isinstance(operator, ast.In) else Not(member)
        order = _ORDERS.get(type(operator))
        if order is None:
            raise self._fault(tree, "values are compared with < <= > >= == != in")
        if Kind.TEXTS in (left.kind, right.kind) or Kind.NUMBERS in (left.kind, right.kind):
            raise self._fault(tree, "a set is only asked whether it holds a value, with in")
        if left.kind is not right.kind:
            raise self._fault(tree, f"a {left.kind} cannot be compared with a {right.kind}")
        if order not in ("==", "!=") and left.kind is not Kind.NUMBER:
            raise self._fault(tree, f"only numbers are ordered, and this is a {left.kind}")
        return Comparison(order, left, right)

    def _membership(self, tree: ast.expr, item: Node, members: Node) -> Node:
        wanted = {Kind.TEXTS: Kind.TEXT, Kind.NUMBERS: Kind.NUMBER}.get(members.kind)
        if wanted is None:
            raise self._fault(tree, f'in needs a set such as {{"EUR", "GBP"}}, and this is a {members.kind}')
        if item.kind is not wanted:
            raise self._fault(tree, f"a {item.kind} cannot be in a {members.kind}")
        return Membership(item, members)

    def _members(self, tree: ast.Set | ast.List | ast.Tuple) -> Node:
        nodes = [self._node(element) for element in tree.elts]
        kinds = {node.kind for node in nodes}
        if not all(isinstance(node, Literal) for node in nodes) or kinds not in ({Kind.TEXT}, {Kind.NUMBER}):
            raise self._fault(tree, "a set lists texts, or numbers, and at least one")
        kind = Kind.TEXTS if kinds == {Kind.TEXT} else Kind.NUMBERS
        return Members(frozenset(node.value for node in nodes if isinstance(node, Literal)), kind)

    def _choice(self, tree: ast.IfExp) -> Node:
        test = self._typed(tree.test, Kind.BOOLEAN, "if")
        then, otherwise = self._node(tree.body), self._node(tree.orelse)
        if then.kind is not otherwise.kind:
            raise self._fault(tree.orelse, f"one branch is a {then.kind}, the other a {otherwise.kind}")
        return Choice(test, then, otherwise, then.kind)

    def _call(self, tree: ast.Call) -> Node:
        name = tree.func.id if isinstance(tree.func, ast.Name) else ""
        if name not in _FOLDS:
            raise self._fault(tree, f"the only calls are {', '.join(_FOLDS)} over lines", nearest(name, _FOLDS))
        is_fold = len(tree.args) == 1 and not tree.keywords and isinstance(tree.args[0], ast.GeneratorExp)
        if not is_fold:
            raise self._fault(tree, f"write {name}(… for line in lines)")
        return self._fold(tree.args[0], name)  # type: ignore[arg-type] # Both checked above.

    def _fold(self, tree: ast.GeneratorExp, function: Folding) -> Node:
        if self._in_fold or not self._scope.has_lines:
            raise self._fault(
                tree, "a fold inside a fold" if self._in_fold else "the lines are not known before pricing"
            )
        [loop, *more] = tree.generators
        is_plain = isinstance(loop.target, ast.Name) and isinstance(loop.iter, ast.Name) and not loop.is_async
        names = (loop.target.id, loop.iter.id) if is_plain else ()  # type: ignore[attr-defined] # Checked in is_plain.
        if more or names != ("line", "lines"):
            raise self._fault(loop.target, "a fold reads exactly: for line in lines")
        self._in_fold = True
        kind = Kind.BOOLEAN if function in ("any", "all", "count") else Kind.NUMBER
        body = self._typed(tree.elt, kind, function)
        filters = tuple(self._typed(part, Kind.BOOLEAN, "if") for part in loop.ifs)
        self._in_fold = False
        where = None if not filters else filters[0] if len(filters) == 1 else Junction("and", filters)
        return Fold(function, body, where, Kind.BOOLEAN if function in ("any", "all") else Kind.NUMBER)

    def _typed(self, tree: ast.expr, kind: Kind, user: str) -> Node:
        node = self._node(tree)
        if node.kind is not kind:
            raise self._fault(tree, f"{user} takes a {kind}, and this is a {node.kind}")
        return node

    def _offset(self, tree: ast.expr) -> int:
        return self._lead + len(self._source[: tree.col_offset].decode())

    def _fault(self, tree: ast.expr, message: str, near: list[str] | None = None) -> ExpressionError:
        return ExpressionError(message, self._offset(tree), near)


def _near(word: str, words: frozenset[str]) -> list[str]:
    return [word.upper()] if word.upper() in words else nearest(word, sorted(words))


def _of_kind(node: Node, kind: Kind, message: str) -> Node:
    if node.kind is not kind:
        raise ExpressionError(f"{message}, and this is a {node.kind}")
    return node


_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]+)
    |(?P<number>[0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<text>"[^"\\\r\n]*"|'[^'\\\r\n]*')
    |(?P<sign><=|>=|==|!=|[-<>+*/()\[\]{},.])""",
    re.VERBOSE,
)
_FOLDS: tuple[str, ...] = ("any", "all", "sum", "min", "max", "count")
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_ORDERS: dict[type[ast.cmpop], Order] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_FORMS: dict[type[ast.expr], Callable[[_Reader, Any], Node]] = {
    ast.Constant: _Reader._constant,
    ast.Name: _Reader._name,
    ast.Attribute: _Reader._attribute,
    ast.UnaryOp: _Reader._unary,
    ast.BinOp: _Reader._binary,
    ast.BoolOp: _Reader._junction,
    ast.Compare: _Reader._compare,
    ast.Set: _Reader._members,
    ast.List: _Reader._members,
    ast.Tuple: _Reader._members,
    ast.IfExp: _Reader._choice,
    ast.Call: _Reader._call,
}
_FORM_NAMES: dict[type[ast.expr], str] = {
    ast.Subscript: "an index",
    ast.Lambda: "a function",
    ast.ListComp: "a list comprehension",
    ast.SetComp: "a set comprehension",
    ast.GeneratorExp: "a loop outside of any, all, sum, min, max, count",
    ast.Dict: "a mapping",
    ast.Starred: "unpacking",
    ast.Await: "await",
}
