"""What the configurator answers: conflicts, suggestions and remaining values, ready to be quoted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from cpq.domain.configuration.model import Checked
from cpq.domain.configuration.options import Scalar, shown
from cpq.domain.configuration.solver.encoded_model import Blame


class Goal(StrEnum):
    """What a completion is best at; what is left open after that follows the defaults, then the price."""

    DEFAULT = "default"
    CHEAPEST = "cheapest"
    PREFERRED = "preferred"


class Possibility(StrEnum):
    """Whether a value can be chosen, if only this option changes."""

    NOW = "now"
    AFTER_CHANGE = "after_change"
    NEVER = "never"
    UNKNOWN = "unknown"
    """The work that a question may take ended before."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A value of an option; None where it is left out."""

    option: str
    value: Scalar | None
    is_default: bool = False

    def words(self) -> str:
        if self.value is None:
            return f"{self.option} left out"
        return f"{self.option}={shown(self.value)}" + (" (the default)" if self.is_default else "")


@dataclass(frozen=True, slots=True)
class Conflict:
    """Choices that cannot stand together, and the rules that say so. Without any one of them nothing is wrong."""

    choices: tuple[Choice, ...]
    blames: tuple[Blame, ...]

    def without(self, option: str) -> Conflict:
        """The same for somebody who asks about this option."""
        return Conflict(tuple(choice for choice in self.choices if choice.option != option), self.blames)

    def words(self) -> str:
        """`hp=100 and voltage='208': 208 V is not offered above 60 HP.`"""
        sentences = " ".join(blame.say if blame.say.endswith(".") else f"{blame.say}." for blame in self.blames)
        chosen = " and ".join(choice.words() for choice in self.choices)
        return f"{chosen}: {sentences}" if chosen else sentences


@dataclass(frozen=True, slots=True)
class Change:
    """A given choice that a suggestion changes; None for a choice that it drops."""

    option: str
    before: object
    after: Scalar | None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A valid configuration."""

    choices: Mapping[str, Scalar]
    """Every option that has a value, in declared order."""

    given: Mapping[str, Scalar]
    """The choices to send: without those that are the defaults anyway."""

    changes: tuple[Change, ...]
    added: tuple[Choice, ...]
    """Options that nobody chose and that cannot stay at their default, or have none."""

    surcharge: int
    """The sum of the surcharges of its values, in the unit in which they were given."""

    needs: tuple[str, ...]
    """Texts that only the customer can give; the configuration is valid with them."""

    advice: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether choices are valid as they stand, with defaults for what was left out."""

    checked: Checked
    is_valid: bool
    can_be_completed: bool | None
    """Whether other values of the options left out make them valid; None when that is not known."""

    conflicts: tuple[Conflict, ...]
    """Minimal conflicts, one for each choice that has to give way; empty when only a value is missing or unreadable."""

    is_timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Valid configurations, the best first."""

    found: tuple[Suggestion, ...]
    conflict: Conflict | None = None
    """Why nothing was found."""

    is_timed_out: bool = False


@dataclass(frozen=True, slots=True)
class ValueAnswer:
    """One value of an option, or the numbers from `value` to `up_to`."""

    value: Scalar
    up_to: Scalar | None
    possibility: Possibility
    why: Conflict | None = None
    """Why it is not possible now, where that was asked."""

    instead: tuple[str, ...] = ()
    """The chosen options to change so that it becomes possible."""


@dataclass(frozen=True, slots=True)
class Domain:
    """What one option can be if only this option changes."""

    option: str
    values: tuple[ValueAnswer, ...]
    may_be_left_out: bool
    """Whether the option can be without a value: left out or, as the rules stand, not applicable."""


@dataclass(frozen=True, slots=True)
class Domains:
    domains: tuple[Domain, ...]
    is_timed_out: bool = False
