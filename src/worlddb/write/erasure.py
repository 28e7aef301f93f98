"""Erase: what the law asks for. Texts leave the file; addresses, validity and edges stay.

The tree still verifies, because an id stands for the fields it was made of. What can't be hashed
again from what is left is named in the journal: nodes, edges whose metadata is gone, and commits
that had notes or reasons. That commit's own hash vouches for the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from worlddb.errors import InvalidInputError
from worlddb.model.address import ERASED, Id, short_key
from worlddb.model.journal import node_record
from worlddb.store.interface import Writer
from worlddb.store.rows import ROOT_ROW, NewNode, NewText
from worlddb.write.commit import Ledger
from worlddb.write.handler_context import close_validity

KEY = "Key"
SPOKEN_OF = ("Entity", "Date")
NO_MENTION = ("contains", "same_as")


def erase(ledger: Ledger, idents: Iterable[bytes | str]) -> list[Id]:
    """Erase nodes, everything inside them and everything derived from any of it.

    Raises:
        InvalidInputError: it is the root, or no id.
        NotFoundError: there is no such node.
    """
    rows = {ledger.place(ident)[0] for ident in idents}
    if ROOT_ROW in rows:
        raise InvalidInputError("the root world can't be erased; delete the file instead")
    writer = ledger.writer
    worlds = writer.worlds(closure(writer, rows))
    chosen = [row for row in sorted(worlds) if not writer.is_erased(row)]
    ids = [Id(worlds[row].id) for row in chosen]
    if not chosen:
        return []
    for ident in ids:
        close_validity(ledger, ident, ledger.now, by=None)
    commits, edges = scrub(ledger, chosen)
    for number, ident in enumerate(ids):
        first = {"edges": edges, "commits": commits} if not number else {}
        ledger.change("erase", ident, **first)
    return ids


def scrub(ledger: Ledger, rows: Sequence[int]) -> tuple[list[int], list[str]]:
    """Take the texts of nodes out of every table.

    Returns the commits, and the ids of the edges, that can't be hashed again.
    """
    writer = ledger.writer
    chosen = list(rows)
    # Edges first: their evidence is found by the rows they lead to.
    edges = [ident.hex() for _, ident in writer.erase_edges(chosen)]
    commits = writer.erase_nodes(chosen) | writer.erase_staged(chosen)
    writer.erase_derived(chosen)
    for row, world in writer.worlds(chosen).items():
        if world.state is not None:
            ledger.touched.add(row)
    return sorted(commits), sorted(edges)


def closure(writer: Writer, rows: Iterable[int]) -> set[int]:
    """Return nodes with everything that lives inside them, and all that was derived from that."""
    found: set[int] = set()
    frontier = set(rows)
    while frontier:
        found |= frontier
        below = set(writer.children_of(frontier))
        derived = writer.edges_at(sorted(frontier), "in", ("derived_from",))
        below.update(item.source for item in derived)
        frontier = below - found - {ROOT_ROW}
    return found | _only_spoken_of(writer, found)


def _only_spoken_of(writer: Writer, rows: set[int]) -> set[int]:
    """Return the names that came with erased texts and occur nowhere else, and their keys."""
    around = writer.edges_at(sorted(rows), "both", ("refers_to",))
    keys = {item.source for item in around if item.target in rows} - rows
    named = {item.target for item in around if item.source in rows} - rows
    worlds = writer.worlds(keys | named)
    born = {writer.born(row) for row in rows}
    found = {row for row in keys if worlds[row].type == KEY}
    candidates = {
        row
        for row in named
        if worlds[row].type in SPOKEN_OF and not worlds[row].content and writer.born(row) in born
    }
    elsewhere = {
        item.target
        for item in writer.edges_at(sorted(candidates), "in")
        if item.source not in rows | candidates and item.edge.type not in NO_MENTION
    }
    return found | (candidates - elsewhere)


def insert_erased(ledger: Ledger, record: Mapping[str, Any]) -> None:
    """Write a node of an export whose texts are gone; its id is taken as it is."""
    ident = Id(record["node"])
    world, _, _ = ledger.place(record["parent"])
    valid_from, valid_to = record["valid_from"], record["valid_to"]
    ledger.node_row = row = ledger.node_row + 1
    ledger.places[ident] = (row, world, valid_from)
    ledger.children_put[world].append(ident)
    times = (ERASED, world, valid_from, valid_to, ledger.writer.seq)
    ledger.writer.insert_nodes(
        [NewNode(row, short_key(ident), ident, record["type"], "", "", *times)]
    )
    ledger.writer.insert_texts([NewText(row, "", "")])
    ledger.nodes.update(node_record(ident, Id(record["parent"]), valid_from, valid_to))
