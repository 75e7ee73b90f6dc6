"""The search core and the toolsets that stand on it: equipment, past quotes, docs, context and web."""
