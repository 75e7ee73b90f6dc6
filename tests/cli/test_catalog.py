"""`cpq catalog check`: the sample is clean, and a spoilt product is explained."""

import json
from pathlib import Path

from tests.cli.conftest import Run

SPOILT = """
products:
  - id: prod_pump
    sku: PUMP
    name: Pump
    description: A pump.
    product_type: configurable
    category: compressors
    options:
      size: {type: enum, values: [small, large], default: small}
      voltage: {type: enum, values: ["208", "460"], default: "208"}
    rules:
      - {id: NO-208, say: 208 V is not built any more., forbid: {voltage: "208"}}
      - {id: SMALL-460, say: Small pumps have 460 V., when: {size: small}, then: {voltage: "460"}}
"""


def test_the_sample_catalogue_has_no_findings(run: Run, home: Path):
    ran = run("catalog", "check")
    assert ran.code == 0
    assert ran.out.startswith("No findings in ")


def test_findings_name_the_sentences_that_cause_them(run: Run, home: Path, tmp_path: Path):
    file = tmp_path / "spoilt.yaml"
    file.write_text(SPOILT)
    assert run("import", "catalog", str(file)).code == 0
    ran = run("catalog", "check", "prod_pump")
    assert ran.code == 1
    assert "prod_pump: default_unreachable: The default voltage='208' is in no valid configuration.\n" in ran.out
    assert "    because: 208 V is not built any more.\n" in ran.out
    found = json.loads(run("catalog", "check", "--json", "prod_pump").out)
    assert [(one["fault"], one["about"]) for one in found["findings"]] == [
        ("default_unreachable", "voltage"),
        ("rule_redundant", "SMALL-460"),
        ("defaults_clash", "voltage"),
    ]
    assert found["findings"][1]["because"] == ["208 V is not built any more."]
    assert run("catalog", "check", "prod_pumpp").code == 1
