"""Agreements: what a customer owns, as a fold over accepted orders, and changes to it as differences."""
