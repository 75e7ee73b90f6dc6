"""Frozen requests come to the same bytes for ever; a change of them is a change of what old quotes were."""

import json
from pathlib import Path

import pytest

from tests.domain.pricing.replay.__main__ import FOLDER, freeze, frozen

FILES = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_frozen_request_comes_to_the_same_bytes(path: Path):
    text = path.read_text(encoding="utf-8")
    assert frozen(json.loads(text)["request"]) == text


def test_every_feature_has_its_frozen_request():
    assert len(FILES) >= 25


def test_what_is_frozen_is_never_replaced(tmp_path: Path):
    asked = json.loads(FILES[0].read_text(encoding="utf-8"))["request"]
    path = freeze("once", asked, tmp_path)
    text = path.read_text(encoding="utf-8")
    with pytest.raises(FileExistsError):
        freeze("once", {**asked, "requested_discount": 1}, tmp_path)
    assert path.read_text(encoding="utf-8") == text
