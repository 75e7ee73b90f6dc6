"""Equipment: products found by what they do and by hard limits on their specs. Nothing here knows a price."""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.retrieval.equipment.commands import MODELS_MAX, SOURCE, Bounds, Limit, compare, get, search
    from cpq.retrieval.equipment.views import EquipmentDetail, EquipmentFound, EquipmentRows

export_late(__name__, __file__)

__all__ = [
    "MODELS_MAX",
    "SOURCE",
    "Bounds",
    "EquipmentDetail",
    "EquipmentFound",
    "EquipmentRows",
    "Limit",
    "compare",
    "get",
    "search",
]
