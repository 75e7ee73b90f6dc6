"""Use cases, one package per subject: each gathers facts, asks the rules in `cpq.domain`, and records the result."""
