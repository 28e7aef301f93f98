"""Lookups: which nodes might be meant by a name, and which say the same already.

Derived: it is brought up to the last commit when somebody resolves, whoever wrote. Who resolves and
then writes takes in what they wrote in the same transaction, and leaves nothing to bring up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from blake3 import blake3

from worlddb.store.protocol import Reader, Store

BATCH = 50_000
"""Keys lie all over the index, so each batch touches most of it: better few and large."""
NAME_CHARS_MAX = 120
NOT_NAMED = frozenset({"World", "Scope", "Session", "Turn"})
"""Types whose names say who speaks or whose it is, not what the node is."""

Keys = Callable[[str], Iterable[str]]
AttributeKeys = Callable[[Mapping[str, str]], Iterable[str]]


def key_number(key: str) -> int:
    """Return a key as the number that is stored: 8 bytes of its hash."""
    hashed = blake3(key.encode("utf-8", "surrogatepass")).digest(8)
    return int.from_bytes(hashed, "big", signed=True)


def content_key(type_: str, content: str) -> int:
    """Return the key of what a node says; equal contents of equal types have equal keys."""
    return key_number(f"content\0{type_}\0{' '.join(content.split())}")


def name_number(key: str) -> int:
    """Return the number of a name's key; kept apart from contents'."""
    return key_number(f"name\0{key}")


class Lookups:
    """The lookup index of one store; under what names and attributes are found is told to it."""

    def __init__(self, store: Store, keys: Keys, attribute_keys: AttributeKeys) -> None:
        self._store = store
        self._keys = keys
        self._attribute_keys = attribute_keys

    def catch_up(self) -> None:
        """Bring the index to the last commit.

        Raises:
            StorageError, ConflictError: the store cannot be written.
        """
        while True:
            with self._store.read() as reader:
                head = reader.head()
                node, note = reader.lookups.reached()
                if (node, note) == (head.nodes, head.notes):
                    return
                last = min(node + BATCH, head.nodes)
                rows, named = self._of_nodes(reader, range(node + 1, last + 1))
                # Aliases and attributes come last, when all their nodes are in.
                notes = note
                if last == head.nodes:
                    rows += self._of_notes(reader, note)
                    notes = head.notes
            with self._store.derive() as session:
                if session.lookups.reached() == (node, note):  # Else somebody was faster.
                    _put(session, rows, named, last, notes)

    def take_in(self, session: Reader, last: int, notes: int) -> None:
        """Add what an open transaction has written: its nodes up to row `last`, and its notes.

        Only if the index is at the commit before; else there is more to bring up than this.
        """
        head = session.head()
        if session.lookups.reached() == (head.nodes, head.notes) != (last, notes):
            rows, named = self._of_nodes(session, range(head.nodes + 1, last + 1))
            _put(session, rows + self._of_notes(session, head.notes), named, last, notes)

    def _of_nodes(self, reader: Reader, rows: Iterable[int]) -> tuple[list[tuple[int, int]], int]:
        """Return the keys of some nodes, and how many of them have a name of their own."""
        found: list[tuple[int, int]] = []
        named = 0
        for body in reader.bodies(rows):
            if body.content:
                found.append((content_key(body.type, body.content), body.row))
            if 0 < len(body.name) <= NAME_CHARS_MAX and body.type not in NOT_NAMED:
                named += 1
                found += [(name_number(key), body.row) for key in self._keys(body.name)]
        return found, named

    def _of_notes(self, reader: Reader, after: int) -> list[tuple[int, int]]:
        """Return the keys of the aliases and attributes that were told after a note."""
        aliases = [
            (name_number(key), row)
            for row, alias in reader.aliases_after(after)
            if len(alias) <= NAME_CHARS_MAX
            for key in self._keys(alias)
        ]
        return aliases + [
            (name_number(key), row)
            for row, attributes in reader.lookups.attributes_after(after)
            for key in self._attribute_keys(attributes)
        ]


def _put(session: Reader, rows: list[tuple[int, int]], named: int, last: int, notes: int) -> None:
    """Add keys, and say how far the index has come."""
    rows.sort()
    session.lookups.put(rows)
    session.lookups.set_reached(last, notes, session.lookups.names() + named)
