"""Policies as data: a closed language over declared facts, checked at load, decided exactly."""
