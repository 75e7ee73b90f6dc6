"""The search core and the toolsets built on it: equipment, past quotes, docs, context and web."""
