"""The benchmark of the resolver runs on files of the right form and reports every figure."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
HEADER = (
    "rec_id, given_name, surname, street_number, address_1, address_2, suburb, postcode, state, "
    "date_of_birth, soc_sec_id"
)
PEOPLE = [
    ("ada", "quill"), ("bruno", "tanner"), ("clara", "hooper"), ("dario", "winkel"),
    ("edith", "marsden"), ("felix", "orchard"),
]  # fmt: skip


def test_every_figure_is_printed(tmp_path: Path) -> None:
    rows = [HEADER]
    for i, (given, surname) in enumerate(PEOPLE):
        rest = f"{i}, long street, , richmond, 30{i}1, vic, 19{i}00101, 1"
        rows.append(f"rec-{i}-org, {given}, {surname}, {rest}")
        rows.append(f"rec-{i}-dup-0, {surname}, {given}, {rest}")
    rows.append("rec-99-org, , , , , , , , , , 1")
    (tmp_path / "dataset1.csv").write_text("\n".join(rows), encoding="utf-8")
    (tmp_path / "nicknames.csv").write_text(
        "name1,relationship,name2\nrobert,has_nickname,bob\nedith,has_nickname,zuzu\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "bench.identity", "--data", str(tmp_path), "--names", "200"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    text = done.stdout
    assert "13 records, 6 pairs" in text
    assert re.search(r"names, resolver +precision 1.000  recall 1.000  F1 1.000", text)
    assert len(re.findall(r"recall of blocking 1.000", text)) == 3
    assert "proposed 0.500" in text
    assert re.search(r"aliases.txt: \d{3} cases", text)
    assert re.search(r"among 200 names +P50/P95/P99", text)
