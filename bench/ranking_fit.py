"""Put fitted weights into the package: `python -m bench.ranking_fit weights.json`.

The file is what `worlddb eval fit --data FOLDER --out weights.json` has written: the weights, and
from which data, seed and command they come. Both go into `src/worlddb/index/ranking.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from worlddb.index.ranking_numbers import PATH


def with_fitted(ranking: dict[str, Any], fitted: dict[str, Any]) -> dict[str, Any]:
    """Return the content of `ranking.json` with fitted weights and their origin."""
    for name, value in fitted["weights"].items():
        ranking["weights"][name] |= {"value": value, "chosen": "fitted"}
    return {**ranking, "provenance": fitted["provenance"]}


def as_text(ranking: dict[str, Any]) -> str:
    """Return the file's text: one line for each number, so that a change can be read."""
    parts = [f'  "about": {json.dumps(ranking["about"])}']
    for part in ("weights", "scalars"):
        lines = (f'    "{name}": {json.dumps(entry)}' for name, entry in ranking[part].items())
        parts.append(f'  "{part}": {{\n' + ",\n".join(lines) + "\n  }")
    provenance = json.dumps({"provenance": ranking["provenance"]}, indent=2, ensure_ascii=False)
    parts.append(provenance.removeprefix("{\n").removesuffix("\n}"))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    fitted = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    ranking = json.loads(PATH.read_text(encoding="utf-8"))
    PATH.write_text(as_text(with_fitted(ranking, fitted)), encoding="utf-8")
    print(f"written: {PATH.name}")


if __name__ == "__main__":
    main()
