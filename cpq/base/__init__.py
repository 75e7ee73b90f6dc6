"""Shared by every layer: errors, exact money, text, the clock, settings, logs, metrics. Imports no other layer."""
