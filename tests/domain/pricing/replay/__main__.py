"""Freezes the price of a request and replaces none: `python -m tests.domain.pricing.replay NAME < request.json`."""

import json
import sys
from pathlib import Path

from cpq.domain.pricing import price, request, result

FOLDER = Path(__file__).parent


def frozen(asked: dict) -> str:
    """The request and what it comes to, as the file holds them."""
    priced = result.dump(price(request.load(asked)))
    return json.dumps({"request": asked, "result": priced}, indent=1, ensure_ascii=False) + "\n"


def freeze(name: str, asked: dict, folder: Path = FOLDER) -> Path:
    path = folder / f"{name}.json"
    with path.open("x", encoding="utf-8") as file:
        file.write(frozen(asked))
    return path


if __name__ == "__main__":
    try:
        print(freeze(sys.argv[1], json.load(sys.stdin)).name)
    except FileExistsError:
        sys.exit(f"{sys.argv[1]} is frozen already; choose another name, or delete the file and say why in the commit.")
