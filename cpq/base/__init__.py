"""Shared by every layer: errors, exact money, text, the clock, settings, logs, metrics. Imports nothing of ours."""
