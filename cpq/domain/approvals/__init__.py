"""Approval rules: rounds of requests, who may decide, and when an earlier approval is kept."""
