"""`cpq import uvl`: a feature model as a product, what has no counterpart, and files that are refused."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run, query

MODEL = """features
  Car
    mandatory
      Engine
        alternative
          Petrol
          Electric {power 120}
    optional
      Hook
constraints
  Hook => Petrol
  sum(power) > 10
"""


def test_a_feature_model_becomes_a_product_whose_rules_refuse_what_the_model_does(home: Path, tmp_path: Path, run: Run):
    file = tmp_path / "car.uvl"
    file.write_text(MODEL)
    ran = run("import", "uvl", file, "--product", "prod_car", "--category", "vehicles")
    assert ran.code == 0
    assert "prod_car: 5 options and 2 rules; 2 parts without a counterpart." in ran.out
    shown = [line.split() for line in ran.out.splitlines()]
    assert ["7", "Electric:", "power", "120", "attributes", "of", "features", "are", "not", "read"] in shown
    ((options, rules),) = query(home, "SELECT options, rules FROM product WHERE id = 'prod_car'")
    assert [option["name"] for option in json.loads(options)] == ["Car", "Engine", "Petrol", "Electric", "Hook"]
    assert json.loads(rules)["rules"][-1] == {
        "id": "r2",
        "say": "Hook => Petrol.",
        "when": {"Hook": True},
        "choose": {"from": ["Petrol"], "min": 1},
    }
    again = json.loads(run("import", "uvl", file, "--product", "prod_car", "--category", "vehicles", "--json").out)
    assert (again["unchanged"], again["updated"], len(again["losses"])) == ({"products": 1}, {"products": 0}, 2)


def test_a_dry_run_and_a_faulty_file_store_nothing(home: Path, tmp_path: Path, run: Run):
    file = tmp_path / "car.uvl"
    file.write_text(MODEL)
    before = query(home, "SELECT count(*) FROM product")
    assert "A dry run: nothing was stored." in run("import", "uvl", file, "--dry-run").out
    file.write_text(MODEL.replace("Hook => Petrol", "Hook => Diesel"))
    ran = run("import", "uvl", file)
    assert ran.code == 1
    assert "car.uvl, line 11: there is no feature Diesel; nothing was imported." in ran.err
    file.write_bytes(b"features\n  \xff")
    assert "is not UTF-8 text" in run("import", "uvl", file).err
    assert query(home, "SELECT count(*) FROM product") == before
