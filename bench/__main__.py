"""Every benchmark at full size, one after the other: `python -m bench`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from bench.percentiles import machine


def main() -> None:
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "million.db")
        for program in (
            ["load", "--keep", store],
            ["small", store],
            ["kernels"],
            ["sets"],
            ["vectors"],
            ["composition"],
            ["searches", store],
            ["name_resolution"],
            ["summaries"],
            ["mcp_stdio"],
            ["hooks"],
            ["http_load"],
            ["serving"],
            ["write_volume"],
        ):
            print(f"\n$ python -m bench.{' '.join(program)}", flush=True)
            subprocess.run([sys.executable, "-m", f"bench.{program[0]}", *program[1:]], check=True)


if __name__ == "__main__":
    main()
