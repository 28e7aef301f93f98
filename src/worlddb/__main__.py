"""`python -m worlddb` is the `worlddb` command."""

import sys

from worlddb.faces.cli import run

sys.exit(run())
