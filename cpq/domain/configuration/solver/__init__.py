"""Answers about configurations by search: conflicts, nearest valid ones, remaining values, completions."""

from cpq.domain.configuration.solver.configurator import Configurator, effort_of_question
from cpq.domain.configuration.solver.formula import ModelTooLargeError
from cpq.domain.configuration.solver.kernel import Effort
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
    "Effort",
    "Goal",
    "ModelTooLargeError",
    "Possibility",
    "Suggestion",
    "Suggestions",
    "ValueAnswer",
    "Verdict",
    "effort_of_question",
]
