"""Approvals as rules: rounds of requests, and when an earlier approval still holds."""
