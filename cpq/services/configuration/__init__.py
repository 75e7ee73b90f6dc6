"""Configuration of one product: checked, explained, repaired, completed and priced."""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.domain.configuration.solver.verdicts import Goal
    from cpq.services.configuration.views import SHOWN_OPTIONS_MAX, ConfigurationView, configure

export_late(__name__, __file__)

__all__ = ["SHOWN_OPTIONS_MAX", "ConfigurationView", "Goal", "configure"]
