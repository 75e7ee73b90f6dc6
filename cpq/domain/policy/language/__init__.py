"""The closed language of conditions: parsed, typed and compiled against the declared facts."""
