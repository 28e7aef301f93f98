"""Run every trial at full length and print the table of `docs/operating.md`.

python -m chaos [--seed N] [--short] [TRIAL …]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from chaos.trials import TRIALS, run_trial


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trials", nargs="*", metavar="TRIAL", choices=[[], *TRIALS])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true", help="as the test suite runs them")
    args = parser.parse_args()
    print("| trial | rounds | what happened | broken | seconds |\n|---|---|---|---|---|")
    broken: list[str] = []
    for name in args.trials or TRIALS:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = run_trial(name, Path(folder, "trial"), is_short=args.short, seed=args.seed)
        told = ", ".join(f"{what} {number:,}" for what, number in found.told.items())
        seconds = f"{time.monotonic() - began:.0f}"
        cells = (name, f"{found.tried:,}", told, str(len(found.failures)), seconds)
        print(f"| {' | '.join(cells)} |", flush=True)
        broken += [f"{name}: {failure}" for failure in found.failures]
    for failure in broken:
        print(failure, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
