"""Backups of everything that is not derived: made while servers run, restored whole or not at all; and copies."""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.services.backups.database_copy import Copied, copy
    from cpq.services.backups.restoration import Restored, restore
    from cpq.services.backups.snapshot import Saved, save
    from cpq.services.backups.target import tenants

export_late(__name__, __file__)

__all__ = ["Copied", "Restored", "Saved", "copy", "restore", "save", "tenants"]
