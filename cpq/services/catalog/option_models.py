"""Cache of compiled options and rules of products."""

from __future__ import annotations

from cpq.domain import configuration
from cpq.services.catalog.repository import ProductFacts

MODELS_MAX = 2_000


def model_of(product: ProductFacts) -> configuration.Model:
    model = _MODELS.get(product.content_hash)
    if model is None:
        if len(_MODELS) >= MODELS_MAX:
            _MODELS.clear()
        model = _MODELS[product.content_hash] = configuration.compile_model(product.options, product.rules)
    return model


_MODELS: dict[str, configuration.Model] = {}
