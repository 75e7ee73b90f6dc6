"""PURE. The network of all-MiniLM-L6-v2 in numpy: token ids in, a unit vector out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpq.retrieval.search.vectors import DIMENSIONS, TINY
from cpq.retrieval.search.wordpiece import TOKENS_MAX

_LAYERS, _HEADS, _HEAD_SIZE, _INNER = 6, 12, 32, 1536
_QUERY_SCALE = np.float32(1 / math.sqrt(_HEAD_SIZE))

Floats = NDArray[np.float32]


class Network:
    """Six layers of attention and two dense steps each, then the mean over all tokens at length 1.

    The matrices stay as bytes in the mapped file, 11 MB instead of 42: a layer is expanded when it is its turn, for all
    texts of a batch.
    """

    def __init__(self, weights: dict[str, NDArray[Any]]) -> None:
        self._words, self._word_scales = (weights[f"inner.embeddings.word_embeddings.weight_{part}"] for part in _PARTS)
        places, place_scales = (weights[f"inner.embeddings.position_embeddings.weight_{part}"] for part in _PARTS)
        kinds = weights["inner.embeddings.token_type_embeddings.weight"]
        self._places: Floats = places[:TOKENS_MAX].astype(np.float32) * place_scales[:TOKENS_MAX] + kinds[0]
        self._norm = _norm_of(weights, "inner.embeddings.LayerNorm")
        # The exporter numbered the matrices in the order they are used, six to a layer.
        numbers = sorted(int(name[4:-2]) for name in weights if name.startswith("val_") and name.endswith("_q"))
        matrices = [_Matrix(weights[f"val_{n}_q"], weights[f"val_{n}_scale"].reshape(-1)) for n in numbers]
        self._rooms: list[_Room] = []
        """One that no thread uses now, if there is one."""
        self._layers = [_Layer(weights, number, matrices[6 * number : 6 * number + 6]) for number in range(_LAYERS)]

    def run(self, ids: list[int]) -> Floats:
        return self.run_all([ids])[0]

    def run_all(self, texts: Sequence[list[int]]) -> list[Floats]:
        """The vector of each text, the same to the last bit as of that text alone."""
        flows = [self._embedded(ids) for ids in texts]
        try:
            room = self._rooms.pop()
        except IndexError:
            room = _Room()
        for layer in self._layers:
            flows = layer.run(flows, room)
        if not self._rooms:
            self._rooms.append(room)
        return [_unit(flow.mean(axis=0)) for flow in flows]

    def _embedded(self, ids: list[int]) -> Floats:
        flow = self._words[ids].astype(np.float32) * self._word_scales[ids] + self._places[: len(ids)]
        return _normed(flow, self._norm)


class _Matrix(NamedTuple):
    digits: NDArray[np.int8]
    scale: Floats
    """Of each column. It is applied to a product with the digits, which has far fewer numbers than the matrix."""

    def expand(self, into: Floats) -> None:
        np.copyto(into, self.digits, casting="unsafe")


class _Room:
    """Room for the matrices of half a layer, used for all in turn: allocating it takes as long as filling it."""

    def __init__(self) -> None:
        self._all: Floats = np.empty(2 * DIMENSIONS * _INNER, np.float32)

    def pair(self, one: tuple[int, int], other: tuple[int, int]) -> tuple[Floats, Floats]:
        """Room for two matrices of these shapes."""
        place = one[0] * one[1]
        return self._all[:place].reshape(one), self._all[place : place + other[0] * other[1]].reshape(other)


class _Layer:
    def __init__(self, weights: dict[str, NDArray[Any]], number: int, matrices: list[_Matrix]) -> None:
        name = f"inner.encoder.layer.{number}"
        self._matrices = matrices
        biases = [weights[f"{name}.attention.self.{part}.bias"] for part in ("query", "key", "value")]
        self._heads_bias: Floats = np.concatenate([biases[0] * _QUERY_SCALE, *biases[1:]])
        scales = [matrix.scale for matrix in matrices[:3]]
        self._heads_scale: Floats = np.concatenate([scales[0] * _QUERY_SCALE, *scales[1:]])
        self._out_bias = weights[f"{name}.attention.output.dense.bias"]
        self._up_bias = weights[f"{name}.intermediate.dense.bias"]
        self._down_bias = weights[f"{name}.output.dense.bias"]
        self._attention_norm = _norm_of(weights, f"{name}.attention.output.LayerNorm")
        self._norm = _norm_of(weights, f"{name}.output.LayerNorm")

    def run(self, flows: Sequence[Floats], room: _Room) -> list[Floats]:
        query, key, value, out, up, down = self._matrices
        heads, outward = room.pair((DIMENSIONS, 3 * DIMENSIONS), (DIMENSIONS, DIMENSIONS))
        parts = np.split(heads, 3, axis=1)
        for matrix, part in zip((query, key, value), parts, strict=True):
            matrix.expand(part)
        out.expand(outward)
        attentive = [self._attentive(flow, heads, outward) for flow in flows]
        upward, downward = room.pair((DIMENSIONS, _INNER), (_INNER, DIMENSIONS))
        up.expand(upward)
        down.expand(downward)
        return [self._deepened(flow, upward, downward) for flow in attentive]

    def _attentive(self, flow: Floats, heads_of: Floats, outward: Floats) -> Floats:
        count = len(flow)
        heads = (flow @ heads_of * self._heads_scale + self._heads_bias).reshape(count, 3, _HEADS, _HEAD_SIZE)
        query, key, value = heads.transpose(1, 2, 0, 3)
        weight = query @ key.transpose(0, 2, 1)
        np.exp(weight - weight.max(axis=-1, keepdims=True), out=weight)
        weight /= weight.sum(axis=-1, keepdims=True)
        attended = (weight @ value).transpose(1, 0, 2).reshape(count, DIMENSIONS)
        return _normed(flow + attended @ outward * self._matrices[3].scale + self._out_bias, self._attention_norm)

    def _deepened(self, flow: Floats, upward: Floats, downward: Floats) -> Floats:
        inner = _gelu(flow @ upward * self._matrices[4].scale + self._up_bias)
        return _normed(flow + inner @ downward * self._matrices[5].scale + self._down_bias, self._norm)


def _unit(mean: Floats) -> Floats:
    unit: Floats = mean / max(float(np.sqrt(mean @ mean)), TINY)
    return unit


_PARTS = ("q", "scale")


def _norm_of(weights: dict[str, NDArray[Any]], name: str) -> tuple[Floats, Floats]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _normed(flow: Floats, norm: tuple[Floats, Floats]) -> Floats:
    centred = flow - flow.mean(axis=-1, keepdims=True)
    variance = np.einsum("ij,ij->i", centred, centred)[:, None] / DIMENSIONS
    result: Floats = centred / np.sqrt(variance + np.float32(TINY)) * norm[0] + norm[1]
    return result


def _gelu(x: Floats) -> Floats:
    """GELU with the error function by Abramowitz and Stegun 7.1.26, exact to 1.5e-7, because numpy has none."""
    size = np.abs(x) * np.float32(math.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * size)
    tail = t * np.float32(1.061405429)
    for term in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail = (tail + np.float32(term)) * t
    tail *= np.exp(-size * size)  # 1 - erf(|x| / sqrt 2)
    result: Floats = np.where(x < 0, x * tail, x * (2 - tail)) * np.float32(0.5)
    return result
