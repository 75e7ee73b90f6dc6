"""PURE. The network of all-MiniLM-L6-v2 in numpy: token ids in, a unit vector out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpq.retrieval.search.vectors import DIMENSIONS, TINY
from cpq.retrieval.search.wordpiece import TOKENS_MAX

_LAYERS, _HEADS, _HEAD_SIZE = 6, 12, 32

Floats = NDArray[np.float32]


class Network:
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
        unit: Floats = mean / max(float(np.sqrt(mean @ mean)), TINY)
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
