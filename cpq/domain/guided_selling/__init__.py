"""Guided selling: questions as data, whose answers narrow the products of some categories."""
