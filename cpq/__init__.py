"""Quotewright: a transactional configure-price-quote engine for AI agents."""

__version__ = "0.1.0"
