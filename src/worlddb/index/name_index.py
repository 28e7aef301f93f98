"""The name index: the nodes that a name may refer to.

Each name is stored twice: among all names, and among the names of its world. So a name that
thousands of users have is still found in the caller's own world, and its frequency elsewhere does
not matter.

The index is derived. It is brought up to the last commit when a name is resolved, whichever process
wrote that commit. A write that resolves names adds its own nodes in the same transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from blake3 import blake3

from worlddb.language.proper_names import name_key
from worlddb.language.statement import frame_keys, opening_of, statement_of
from worlddb.model.records import NAME_CHARS_MAX, NOT_NAMED
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW, BodyRow

KEYS_CACHED = 1 << 14  # a write looks up the names of a text, then stores them
FRAMES_CACHED = 256  # a write compares a text by its frames, then stores it under them
BATCH = 50_000  # keys are spread over the index, so each batch touches most of its pages

VERSION = 3
"""Counted up when names or texts are cut into other keys: the keys of a store are made again."""

KEY_BYTES = 8  # an integer of the database
START_BYTES = 4
"""Of a key, those that the keys of one text share: enough that few others have them, too."""
OPENING_WORDS = 2  # all but one of the keys of a text begin with these

TURN = "Turn"
STATED = frozenset({"Memory", TURN})
"""Types of texts that are indexed by their frames: the same words with the value left open."""

STATING = frozenset({"Memory", "Fact"})
"""Types whose opening words say what they are about. A turn of a chat opens with an answer."""

Postings = list[tuple[int, int]]
"""(key number, node row) pairs."""
Keys = Callable[[str], Iterable[str]]
AttributeKeys = Callable[[Mapping[str, str]], Iterable[str]]


def _hashed(key: str) -> bytes:
    return blake3(key.encode("utf-8", "surrogatepass")).digest(KEY_BYTES)


def _number(hashed: bytes) -> int:
    return int.from_bytes(hashed[:KEY_BYTES], "big", signed=True)


def key_number(key: str) -> int:
    """Return the stored number of a key: 8 bytes of its hash."""
    return _number(_hashed(key))


@lru_cache(maxsize=KEYS_CACHED)
def name_number(key: str, world: int = ROOT_ROW) -> int:
    """Return the key number of a name among the names of a world; for the root, among all names."""
    return key_number(f"name\0{key}" if world == ROOT_ROW else f"name\0{world}\0{key}")


def speaker_name(type_: str, name: str) -> str:
    """Return the speaker of a text; a memory is spoken by the user."""
    return name.casefold() if type_ == TURN and name.casefold() != "user" else ""


def frame_numbers(text: str, speaker: str, world: int) -> tuple[int, ...]:
    """Return the key numbers, one per frame, of a statement by a speaker in a world."""
    said = statement_of(text)
    return () if said is None else _frame_numbers(said.words, speaker, world)


@lru_cache(maxsize=FRAMES_CACHED)
def _frame_numbers(said: tuple[str, ...], speaker: str, world: int) -> tuple[int, ...]:
    whose = f"frame\0{world}\0{speaker}\0"
    opening = " ".join(said[:OPENING_WORDS])
    # Keys that begin alike are on one page of the index, or two.
    start = _hashed(whose + opening)[:START_BYTES]
    return tuple(
        _number((start if key.startswith(opening) else b"") + _hashed(whose + key))
        for key in frame_keys(said)
    )


class NameIndex:
    """The name index of one store. `keys` and `attribute_keys` compute the index keys."""

    def __init__(self, store: Store, keys: Keys, attribute_keys: AttributeKeys) -> None:
        self._store = store
        self._keys = keys
        self._attribute_keys = attribute_keys

    def is_current(self, reader: Reader) -> bool:
        """Return whether the index has reached the commit of a snapshot."""
        head = reader.head()
        return (
            reader.lookups.is_begun(VERSION)
            and reader.lookups.reached() == (head.nodes, head.notes)
            and not reader.lookups.moved()
        )

    def catch_up(self) -> None:
        """Bring the index to the last commit.

        Raises:
            StorageError, ConflictError: the store cannot be written.
        """
        with self._store.read() as reader:
            is_begun = reader.lookups.is_begun(VERSION)
        if not is_begun:
            with self._store.derive() as session:
                if not session.lookups.is_begun(VERSION):
                    session.lookups.begin(VERSION)
        while True:
            with self._store.read() as reader:
                head = reader.head()
                node, note = reader.lookups.reached()
                moved = reader.lookups.moved()
                if (node, note) == (head.nodes, head.notes) and not moved:
                    return
                last = min(node + BATCH, head.nodes)
                filed, names = self._of_nodes(reader, range(node + 1, last + 1))
                # Aliases and attributes come last, when all their nodes are indexed.
                notes = note
                if last == head.nodes:
                    filed += self._of_notes(reader, note)
                    notes = head.notes
                filed += self._of_moved(reader, [row for row in moved if row <= node], names)
            with self._store.derive() as session:
                at = session.lookups
                # Otherwise another process was faster.
                if at.reached() == (node, note) and at.moved() == moved:
                    _put(session, filed, names, last, notes)

    def take_in(self, session: Reader, last: int, notes: int) -> None:
        """Index what an open transaction has written: its nodes up to row `last`, and its notes.

        Does nothing if the index has not reached the commit before.
        """
        head = session.head()
        if not session.lookups.is_begun(VERSION):
            if head.nodes != ROOT_ROW:
                return
            session.lookups.begin(VERSION)
        if session.lookups.reached() == (head.nodes, head.notes) != (last, notes):
            filed, names = self._of_nodes(session, range(head.nodes + 1, last + 1))
            if notes != head.notes:
                filed += self._of_notes(session, head.notes)
            moved = [row for row in session.lookups.moved() if row <= head.nodes]
            filed += self._of_moved(session, moved, names)
            _put(session, filed, names, last, notes)

    def filed(self, reader: Reader) -> tuple[set[tuple[int, int]], Counter[int]]:
        """Return the postings that a current index must have, and the number of names per world."""
        filed, names = self._of_nodes(reader, range(ROOT_ROW + 1, reader.head().nodes + 1))
        return {*filed, *self._of_notes(reader, 0)}, names

    def _of_nodes(self, reader: Reader, rows: Iterable[int]) -> tuple[Postings, Counter[int]]:
        """Return the postings of some nodes, and the number of named nodes per world."""
        filed: Postings = []
        names: Counter[int] = Counter()
        bodies = list(reader.bodies(rows))
        chats = {body.parent for body in bodies if body.type == TURN and body.parent is not None}
        around = reader.parents(chats) if chats else {}
        for body in bodies:
            world = body.parent or ROOT_ROW
            if opening := opening_key(body):
                filed += _postings([f"o:{opening}"], body.row, world)
            if body.type in STATED:
                place = (around.get(world) or ROOT_ROW) if body.type == TURN else world
                speaker = speaker_name(body.type, body.name)
                filed += [(key, body.row) for key in frame_numbers(body.content, speaker, place)]
            if 0 < len(body.name) <= NAME_CHARS_MAX and body.type not in NOT_NAMED:
                names.update({ROOT_ROW, world})
                filed += _postings(self._keys(body.name), body.row, world)
        return filed, names

    def _of_notes(self, reader: Reader, after: int) -> Postings:
        """Return the postings of all aliases and attributes after a note."""
        return self._of_aliases_and_attributes(
            reader, reader.aliases_after(after), reader.lookups.attributes_after(after)
        )

    def _of_moved(self, reader: Reader, rows: list[int], names: Counter[int]) -> Postings:
        """Return the postings of nodes that moved to another world, and count them there."""
        if not rows:
            return []
        filed, came = self._of_nodes(reader, rows)
        del came[ROOT_ROW]  # They were counted in the root before.
        names += came
        return filed + self._of_aliases_and_attributes(
            reader, reader.aliases(rows), reader.lookups.attributes(rows)
        )

    def _of_aliases_and_attributes(
        self,
        reader: Reader,
        aliases: Iterable[tuple[int, str]],
        attributes: Iterable[tuple[int, Mapping[str, str]]],
    ) -> Postings:
        keys = [(row, self._keys(name)) for row, name in aliases if len(name) <= NAME_CHARS_MAX]
        keys += [(row, self._attribute_keys(values)) for row, values in attributes]
        worlds = reader.parents({row for row, _ in keys})
        return [
            posting
            for row, of_row in keys
            for posting in _postings(of_row, row, worlds[row] or ROOT_ROW)
        ]


def _postings(keys: Iterable[str], row: int, world: int) -> Postings:
    """Return the postings of a node by its keys, among all names and in its world."""
    return [(name_number(key, among), row) for key in keys for among in {ROOT_ROW, world}]


def _put(session: Reader, filed: Postings, names: Counter[int], last: int, notes: int) -> None:
    """Add postings, and record how far the index has come."""
    filed.sort()
    session.lookups.put(filed)
    session.lookups.add_names(names)
    session.lookups.set_reached(last, notes)


def opening_key(body: BodyRow) -> str:
    """Return the key of a memory's opening words; empty for any other node."""
    opening = opening_of(body.content) if body.type in STATING else ""
    return name_key(opening) if opening else ""
