"""Lookup check: are names filed as they are, and do counts of recalls belong to nodes?

The keys of names are computed again. A node that was moved keeps the keys of its former worlds, and
an erased one is counted among the names of its world, so there only what is missing is reported.
"""

from __future__ import annotations

from collections import Counter

from worlddb.audit.store_image import StoreImage
from worlddb.index.name_index import NameIndex
from worlddb.model.address import ERASED
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW

RECALLED_BEFORE = 1 << 53
"""Microseconds after 1970: the year 2255. No clock that we accept shows it."""


def check_lookups(reader: Reader, image: StoreImage, names: NameIndex | None) -> None:
    """Report keys of names that are missing or belong to no name, and impossible counts."""
    head, lookups = reader.head(), reader.lookups
    reached = lookups.reached()
    stored = set(reader.scan.lookups())
    if not ROOT_ROW <= reached.node <= head.nodes or not 0 <= reached.note <= head.notes:
        image.report("lookups", "they claim more nodes or notes than there are")
    if any(node > reached.node for _, node in stored):
        image.report("lookups", "a node is filed that they claim not to have reached")
    if not set(lookups.moved()) <= image.nodes.keys():
        image.report("lookups", "a node that does not exist is said to have moved")
    if names is not None and names.is_current(reader):
        _check_keys(reader, image, names, stored)
    for node, count, when in reader.scan.recalls():
        if node not in image.nodes or count < 1 or not 0 < when < RECALLED_BEFORE:
            image.report(f"recalls of node row {node}", "no such node, or no such count")


def _check_keys(
    reader: Reader, image: StoreImage, names: NameIndex, stored: set[tuple[int, int]]
) -> None:
    expected, counted = names.filed(reader)
    loose = {row for field, row in image.history if field == "node.parent"}
    loose |= {row for row, node in image.nodes.items() if node.created_at == ERASED}
    for _, row in expected - stored:
        image.report(f"lookups of node row {row}", "a key of its name is missing")
    for _, row in stored - expected:
        if row not in loose:
            image.report(f"lookups of node row {row}", "a key belongs to no name of the node")
    found = Counter(dict(reader.scan.lookup_worlds()))
    for world in found.keys() | counted.keys():
        less, exact = found[world] < counted[world], found[world] == counted[world]
        if less or not (exact or loose):
            image.report(f"lookups of world row {world}", "its number of names is wrong")
