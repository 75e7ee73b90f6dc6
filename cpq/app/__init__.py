"""The engine as every edge sees it: `App` owns transactions, keys, permissions and the audit record."""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.app.app import App, open_app, unusable
    from cpq.app.call import OUTCOME_OK, Answer, Call, Command, Outcome, Record
    from cpq.app.transaction import Tx

export_late(__name__, __file__)

__all__ = ["OUTCOME_OK", "Answer", "App", "Call", "Command", "Outcome", "Record", "Tx", "open_app", "unusable"]
