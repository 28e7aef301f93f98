"""Code: what tells the code that made a figure from any other, beside the version's number.

Figures come out of the engine: its modules, and the numbers that lie beside them. The faces only
hand over what was asked for, which the settings of a run say already.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
KINDS = (".py", ".npy")
ASIDE = "faces"


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return the digest of the engine that runs here; it takes some milliseconds, once."""
    return digest_of(PACKAGE)


def digest_of(package: Path) -> str:
    """Return a digest over the names and the bytes of a package's files."""
    from blake3 import blake3

    hasher = blake3()
    files = {path.relative_to(package).as_posix(): path for path in package.rglob("*")}
    for name in sorted(files):
        if not name.endswith(KINDS) or name.startswith(f"{ASIDE}/"):
            continue
        body = files[name].read_bytes()
        # With its length before it, no file can be taken for the end of another.
        hasher.update(f"{name}\0{len(body)}\0".encode())
        hasher.update(body)
    return hasher.hexdigest()
