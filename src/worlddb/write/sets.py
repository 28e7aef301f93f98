"""Sets of a transaction: what it changes in them, and what commits before it left unwritten."""

from __future__ import annotations

from collections.abc import Iterable

from worlddb.index.sets import Laid, change, merge
from worlddb.store.protocol import Writer


def update(
    writer: Writer,
    world: int,
    kind: int,
    put: list[bytes],
    drop: Iterable[bytes],
    laid: Laid | None = None,
) -> bytes:
    """Change a set in the transaction's view of its pages, and return its digest."""
    digest, changed = change(writer, world, kind, put, drop, laid)
    writer.put_pages(world, kind, changed)
    return digest


def catch_up(writer: Writer) -> None:
    """Bring the transaction's view of pages to the last commit."""
    for (world, kind), (put, drop) in merge(writer.unseen()).items():
        update(writer, world, kind, put, drop)
