"""Answers about configurations by search: conflicts, nearest valid ones, remaining values, completions."""

from cpq.domain.configuration.solver.configurator import Configurator
from cpq.domain.configuration.solver.formula import ModelTooLargeError
from cpq.domain.configuration.solver.verdicts import (
    Change,
    Choice,
    Conflict,
    Domain,
    Domains,
    Goal,
    Possibility,
    Suggestion,
    Suggestions,
    ValueAnswer,
    Verdict,
)

__all__ = [
    "Change",
    "Choice",
    "Configurator",
    "Conflict",
    "Domain",
    "Domains",
    "Goal",
    "ModelTooLargeError",
    "Possibility",
    "Suggestion",
    "Suggestions",
    "ValueAnswer",
    "Verdict",
]
