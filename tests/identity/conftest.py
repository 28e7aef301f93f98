"""Lets the tests read the alias set, which lives beside the benchmark that reports on it."""

from __future__ import annotations

import sys
from pathlib import Path

REPOSITORY = str(Path(__file__).parents[2])
if REPOSITORY not in sys.path:
    sys.path.insert(0, REPOSITORY)
