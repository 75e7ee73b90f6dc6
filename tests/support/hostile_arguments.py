"""Makes arguments for any tool from its input schema: valid ones, and those of a broken or ill-meaning client."""

import random
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from decimal import Decimal
from typing import Any

MEGABYTE = 1_000_000

KNOWN: dict[str, list[Any]] = {
    "query": ["pro plan", "QMB30", "air", "compresor", "dryer 100", "plan-pro-001", "rotary screw", "a", "é"],
    "category": ["saas", "compressors", "dryers", "nothing"],
    "product_id": ["prod_pro_v2", "prod_qmb30", "prod_bdl_qmb30", "prod_none"],
    "page": [1, 1, 2, 1000],
    "document": ["sha256:" + "0" * 64, "JVBERi0xLjcKJSVFT0Y="],
    "account_id": ["acct_acme_001", "acct_rheinstahl_010", "acct_none"],
    "currency": ["USD", "usd", "EUR", "CLF"],
    "approver_role": ["sales_manager", "legal"],
    "role": ["sales_manager", "vp_sales"],
    "attributes": [{}, {}, {"billing": "annual"}],
    "end_date": [None, None, None, "2027-01-31"],
    "ramp": [[], [], [], [{"months": 12, "uplift_pct": 3}]],
    "starts_at": [None, "2026-11-16T09:00:00Z"],
    "file_path": ["terms/payment.md", "./terms/warranty.md"],
    "heading_path": ["Payment terms > Standard", "Warranty and returns > Returns"],
    "file_filter": [None, "terms/*", "**/*.md"],
    "prefix": [None, "terms"],
    "tags": [[], ["terms"], ["documentation", "policy"]],
    "until": ["2026-12-01T18:00:00Z"],
    "url": ["http://10.0.0.1/", ["http://127.0.0.1:1/x", "http://[::1]/"]],
    "source_url": ["https://vendor.example/", "http://127.0.0.1/x?y=1"],
    "source_urls": [["https://vendor.example/", "http://10.0.0.1:8080/"]],
    "model": ["QMB30", "rs30", "none"],
    "models": [["QMB30"], ["qmb30", "RS30"], ["none"]],
    "specs": [[], [{"spec": "noise_dba", "max": 75}], [{"spec": "voltage", "is": "460"}]],
    **{f"{name}_min": [None, 5] for name in ("hp", "cfm", "psi")},
    **{f"{name}_max": [None, 300] for name in ("hp", "cfm", "psi")},
}
"""What arguments of these names are in a valid call, so that it finds something."""

SYNTAX = [
    '" OR 1=1 --',
    "'; DROP TABLE product; --",
    "' OR ''='",
    "%",
    "_",
    "\\",
    "\\'",
    "'",
    '"',
    '""',
    '"unbalanced',
    "*",
    "a*",
    "^a",
    "NEAR(",
    "NEAR(a b, 2)",
    "AND",
    "a AND",
    "NOT a",
    "a OR OR b",
    "terms: a",
    "{terms} : a",
    "-terms:a",
    "a + b",
    "(",
    ")",
    "((((((",
    ":*",
    "a:*",
    "& | ! <->",
    "a & !b",
    "a <-> b",
    "a <2> b",
    "'a':*ABCD",
    "!!!a",
    "{{7*7}}",
    "${7*7}",
    "{% for x in y %}",
    "{0.__class__}",
    "%s %(x)s %n",
    "../../etc/passwd",
    "..\\..\\x",
    "%2e%2e%2f",
    "file:///etc/passwd",
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "(a+)+$",
    "null",
    "true",
    "[1]",
    '{"a": 1}',
]

SCRIPTS = [
    "空气压缩机",
    "コンプレッサー",
    "압축기",
    "مضخة هواء",
    "מדחס",
    "हवा पम्प",
    "👩‍🔧🏽",
    "😀" * 50,
    "ﷺ" * 200,
    "ﬁ" * 200,
    "İıſẞ",
    "１２３",
    "²³¼",
    "ʼʻ",
    "𒐫𒐖",
    "e\u0301",
    "\u0301",
    "Z" + "\u0301" * 30,
    "a" + "\u0316\u0301" * 60,
    "\u202edlo\u202c",
    "a\u200bb",
    "\u00ad",
    "\ufeff",
    "\u2028",
    "\U000e0041",
    "\U0010ffff",
]

NOT_TEXT = ["\0", "a\0b", "\x07", "\x1b[31m", "\x7f", "\x85", "\ud800", "a\udfffb", "\udc00\ud800", "\ufffe", "\uffff"]
BLANK = ["", " ", "\t", "\n", "\r\n", "\u00a0", "\u3000", " " * 300]

NUMBERS = [
    0,
    -1,
    1,
    2**31,
    2**53,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    10**30,
    10**400,
    -(10**400),
    10**5000,
    0.5,
    -0.0,
    1.0,
    1e16,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
    float("-inf"),
    Decimal("1e999"),
    Decimal("NaN"),
    Decimal("1.10"),
]
NUMBERS_AS_TEXT = [
    "1",
    " 1 ",
    "+1",
    "1.0",
    "1e3",
    "1e400",
    "NaN",
    "inf",
    "-0",
    "1_000",
    "0x10",
    "１",
    "9" * 16,
    "9" * 5000,
]
SHAPES: list[Any] = [
    True,
    False,
    None,
    [],
    {},
    [None],
    [[]],
    {"": None},
    [1, "a", None],
    {"a": {"b": [1]}},
    ["a"] * 100,
]

SERVER_OWNED = [
    "tenant_id",
    "tenant",
    "status",
    "version",
    "total",
    "subtotal",
    "unit_price",
    "approved_by",
    "created_at",
    "updated_at",
    "caller",
    "principal",
    "roles",
    "trace_id",
    "replayed",
    "error",
]
STRANGE_NAMES = [
    "",
    " ",
    "0",
    "Query",
    "query ",
    "__class__",
    "$ref",
    "a/b~c",
    "é",
    "\0",
    "\ud800",
    "x" * 300,
    "self",
    "tx",
]


def nested(depth: int, *, as_mapping: bool = False) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if as_mapping else [value]
    return value


HUGE = [
    "a" * MEGABYTE,
    "é" * MEGABYTE,
    "\u0301" * MEGABYTE,
    "a" + "\u0301" * (MEGABYTE // 2) + "\u0316" * (MEGABYTE // 2),
    "\0" * MEGABYTE,
    '"' * MEGABYTE,
    "a " * (MEGABYTE // 2),
    " " * MEGABYTE,
    "9" * MEGABYTE,
    [1] * 100_000,
    [{}] * 100_000,
    {str(number): number for number in range(20_000)},
    nested(33),
    nested(100_000),
    nested(100_000, as_mapping=True),
]
"""Made once: a value of this size takes longer to make than to refuse."""

EVERYTHING: list[Any] = [*SYNTAX, *SCRIPTS, *NOT_TEXT, *BLANK, *NUMBERS, *NUMBERS_AS_TEXT, *SHAPES, *HUGE]


def one_by_one(schema: Mapping[str, Any], values: Sequence[Any] = EVERYTHING) -> Iterator[dict[str, Any]]:
    """Each value in every place, alone and with all other arguments; every strange name; each argument missing."""
    whole = Maker(schema, seed=0).valid_arguments()
    least = {name: whole[name] for name in schema.get("required", ())}
    for number, (_, key) in enumerate(places(whole)):
        for value in values:
            spoilt = deepcopy(whole)
            container, _ = places(spoilt)[number]
            container[key] = value
            yield spoilt
            if container is spoilt:
                yield {**least, key: value}
    for name in whole:
        yield {given: value for given, value in whole.items() if given != name}
    for name in (*SERVER_OWNED, *STRANGE_NAMES):
        yield {**whole, name: "x"}
    yield {**whole, **{f"more_{number}": number for number in range(20_000)}}
    yield {}


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place of the value that something else can be put into, as its container and its key there."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [(value, key) for key in keys] + [place for key in keys for place in places(value[key])]


class Maker:
    """An endless source of arguments for one schema; the same seed gives the same arguments."""

    def __init__(self, schema: Mapping[str, Any], seed: int) -> None:
        self._schema = schema
        self._random = random.Random(seed)

    def arguments(self) -> dict[str, Any]:
        """A valid call in one of four; otherwise one with up to three things wrong with it."""
        made = self.valid_arguments(all_of_them=self._chance(0.3))
        if self._chance(0.25):
            return made
        made = self._spoilt(made)
        for _ in range(self._random.randint(0, 2)):
            made = {**made, **self._spoilt(self.valid_arguments())}
        return made

    def valid_arguments(self, *, all_of_them: bool = True) -> dict[str, Any]:
        """What the schema allows."""
        return self._object(self._schema, all_of_them=all_of_them)

    def _spoilt(self, made: dict[str, Any]) -> dict[str, Any]:
        """The arguments with one thing wrong: a value anywhere in them, a name, or something that is missing."""
        spoilt = deepcopy(made)
        inside = places(spoilt)
        container, key = self._random.choice(inside) if inside else (spoilt, self._word())
        kind = self._random.random()
        if kind < 0.6:
            container[key] = self._hostile()
        elif kind < 0.8:
            spoilt[self._random.choice([*self._schema.get("properties", {})] or ["x"])] = self._hostile()
        elif kind < 0.9 and isinstance(container, dict):
            container[self._random.choice([*SERVER_OWNED, *STRANGE_NAMES, self._word()])] = self._hostile()
        elif inside:
            del container[key]
        return spoilt

    def _hostile(self) -> Any:
        if self._chance(0.01):
            return self._random.choice(HUGE)
        if self._chance(0.3):
            return self._mixed_text()
        if self._chance(0.1):
            return nested(self._random.randint(1, 40), as_mapping=self._chance(0.5))
        return self._random.choice(EVERYTHING[: -len(HUGE)])

    def _mixed_text(self) -> str:
        pool = [*SYNTAX, *SCRIPTS, *BLANK, *KNOWN["query"]] if self._chance(0.9) else NOT_TEXT
        return self._random.choice(["", " ", "\t"]).join(self._random.choices(pool, k=self._random.randint(1, 5)))

    def _value(self, name: str, schema: Mapping[str, Any]) -> Any:
        schema = self._resolved(schema)
        if name in KNOWN:
            return self._random.choice(KNOWN[name])
        if "const" in schema or "enum" in schema:
            return self._random.choice(schema.get("enum") or [schema["const"]])
        kinds: dict[str, Callable[[], Any]] = {
            "string": lambda: self._string(schema),
            "integer": lambda: self._random.randint(*self._bounds(schema)),
            "number": lambda: round(self._random.uniform(*self._bounds(schema)), 2),
            "boolean": lambda: self._chance(0.5),
            "null": lambda: None,
            "array": lambda: self._array(name, schema),
            "object": lambda: self._object(schema, all_of_them=True),
        }
        return kinds[self._kind(schema)]()

    def _kind(self, schema: Mapping[str, Any]) -> str:
        kind = schema.get("type", "boolean")
        return str(self._random.choice(kind) if isinstance(kind, list) else kind)

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Follow references, and take one of the alternatives, rather not null."""
        if "$ref" in schema:
            return self._resolved(self._schema["$defs"][schema["$ref"].rsplit("/", 1)[-1]])
        for word in ("anyOf", "oneOf", "allOf"):
            if word in schema:
                real = [part for part in schema[word] if part.get("type") != "null"]
                return self._resolved(self._random.choice(real or schema[word]))
        return schema

    def _string(self, schema: Mapping[str, Any]) -> str:
        if schema.get("format") == "date":
            return f"2026-{self._random.randint(1, 12):02}-{self._random.randint(1, 28):02}"
        longest = min(schema.get("maxLength", 40), 40)
        return "".join(self._random.choices(string.ascii_lowercase, k=self._random.randint(1, longest)))

    def _array(self, name: str, schema: Mapping[str, Any]) -> list[Any]:
        fewest, most = schema.get("minItems", 0), schema.get("maxItems", 4)
        count = self._random.randint(fewest, max(fewest, min(most, 4)))
        return [self._value(name, schema.get("items", {})) for _ in range(count)]

    def _object(self, schema: Mapping[str, Any], *, all_of_them: bool) -> dict[str, Any]:
        required = schema.get("required", ())
        return {
            name: self._value(name, part)
            for name, part in schema.get("properties", {}).items()
            if all_of_them or name in required or self._chance(0.5)
        }

    def _bounds(self, schema: Mapping[str, Any]) -> tuple[int, int]:
        lowest = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
        highest = schema.get("maximum", schema.get("exclusiveMaximum", lowest + 101) - 1)
        return lowest, min(highest, lowest + 100) if self._chance(0.9) else highest

    def _word(self) -> str:
        return "".join(self._random.choices(string.ascii_lowercase, k=6))

    def _chance(self, share: float) -> bool:
        return self._random.random() < share
