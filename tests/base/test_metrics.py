"""The dashboard and the alerts of the guide: each asks for metrics, labels and values that exist."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from cpq.base import metrics

GUIDE = Path(__file__).parents[2] / "cpq" / "guide"
LABELS = {
    "cpq_tool_calls": {"tool", "code"},
    "cpq_tool_duration_seconds": {"tool", "le"},
    "cpq_db_retries": set(),
    "cpq_idempotent_replays": {"operation"},
    "cpq_db_write_wait_seconds": {"le"},
    "cpq_http_rejected": {"reason"},
    "cpq_event_deliveries": {"outcome"},
    "cpq_build_info": {"version"},
}


def test_the_labels_that_a_query_may_name_are_those_of_the_metrics():
    known = {one._name: set(one._labelnames) for one in metrics.REGISTRY._collector_to_names}  # type: ignore[attr-defined]
    assert {name: labels - {"le"} for name, labels in LABELS.items()} == known


def test_every_query_of_the_guide_asks_for_what_there_is():
    alerts: Any = yaml.safe_load((GUIDE / "alerts.yaml").read_text(encoding="utf-8"))
    panels: Any = json.loads((GUIDE / "dashboard.json").read_text(encoding="utf-8"))["panels"]
    queries = [rule["expr"] for rule in alerts["groups"][0]["rules"]]
    queries += [target["expr"] for panel in panels for target in panel["targets"]]
    for query in queries:
        names = {re.sub(r"_(total|bucket)$", "", name) for name in re.findall(r"cpq_\w+", query)}
        assert names <= set(LABELS), query
        asked = set(re.findall(r"(\w+)\s*!?=", query)) | set(
            re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", query)))
        )
        assert asked <= set.union(*(LABELS[name] for name in names)), query


def test_every_alert_says_what_to_do():
    rules: Any = yaml.safe_load((GUIDE / "alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    page = (GUIDE / "observability.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(Quotewright\w+)` \|", page, re.MULTILINE) == [rule["alert"] for rule in rules]
