"""Name index: which nodes may be meant by a name, and which say the same already.

Names are filed twice: among all names, and among the names of the world they are in. So a name that
thousands of users know is found in the caller's own world, and how common a name is elsewhere says
nothing there. Contents are only asked for in one world.

The index is derived. It is brought up to the last commit when a name is resolved, whoever wrote. A
writer that resolves names takes in what it wrote in the same transaction.

The second half of this file says how a node is called, and how a question says it. Both are cut
into words the same way, so "Dr. Smith's" names Dr. Smith, and "McDonald's" itself. People are also
called by their first name alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from blake3 import blake3

from worlddb.language.fold import fold
from worlddb.language.person_names import ALSO_WORDS, read_name
from worlddb.language.words import folded
from worlddb.resolve.known import is_given, is_name
from worlddb.store.protocol import ROOT_ROW, BodyRow, Reader, Store

BATCH = 50_000
"""Keys lie all over the index, so each batch touches most of it: better few and large."""
NAME_CHARS_MAX = 120
NOT_NAMED = frozenset({"World", "Scope", "Session", "Turn"})
"""Types whose names say who speaks or whose it is, not what the node is."""

Filed = list[tuple[int, int]]
Keys = Callable[[str], Iterable[str]]
AttributeKeys = Callable[[Mapping[str, str]], Iterable[str]]


def key_number(key: str) -> int:
    """Return a key as the number that is stored: 8 bytes of its hash."""
    hashed = blake3(key.encode("utf-8", "surrogatepass")).digest(8)
    return int.from_bytes(hashed, "big", signed=True)


def content_key(type_: str, content: str, world: int) -> int:
    """Return the key of what a node of a world says; equal for equal contents of equal types."""
    return key_number(f"content\0{world}\0{type_}\0{' '.join(content.split())}")


def name_number(key: str, world: int = ROOT_ROW) -> int:
    """Return the number of a name's key among the names of a world; among all, if of the root."""
    return key_number(f"name\0{key}" if world == ROOT_ROW else f"name\0{world}\0{key}")


class NameIndex:
    """The lookup index of one store; under what names and attributes are found is told to it."""

    def __init__(self, store: Store, keys: Keys, attribute_keys: AttributeKeys) -> None:
        self._store = store
        self._keys = keys
        self._attribute_keys = attribute_keys

    def is_current(self, reader: Reader) -> bool:
        """Return whether the index has reached the commit of a snapshot."""
        head = reader.head()
        return (
            reader.lookups.is_begun()
            and reader.lookups.reached() == (head.nodes, head.notes)
            and not reader.lookups.moved()
        )

    def catch_up(self) -> None:
        """Bring the index to the last commit.

        Raises:
            StorageError, ConflictError: the store cannot be written.
        """
        with self._store.read() as reader:
            is_begun = reader.lookups.is_begun()
        if not is_begun:
            with self._store.derive() as session:
                if not session.lookups.is_begun():
                    # From here on it is noted what is moved or erased.
                    session.lookups.set_reached(*session.lookups.reached())
        while True:
            with self._store.read() as reader:
                head = reader.head()
                node, note = reader.lookups.reached()
                moved = reader.lookups.moved()
                if (node, note) == (head.nodes, head.notes) and not moved:
                    return
                last = min(node + BATCH, head.nodes)
                filed, names = self._of_nodes(reader, range(node + 1, last + 1))
                # Aliases and attributes come last, when all their nodes are in.
                notes = note
                if last == head.nodes:
                    filed += self._of_notes(reader, note)
                    notes = head.notes
                filed += self._of_moved(reader, [row for row in moved if row <= node], names)
            with self._store.derive() as session:
                at = session.lookups
                # Else somebody was faster.
                if at.reached() == (node, note) and at.moved() == moved:
                    _put(session, filed, names, last, notes)

    def take_in(self, session: Reader, last: int, notes: int) -> None:
        """Add what an open transaction has written: its nodes up to row `last`, and its notes.

        Only if the index is at the commit before; else there is more to bring up than this.
        """
        head = session.head()
        if session.lookups.reached() == (head.nodes, head.notes) != (last, notes):
            filed, names = self._of_nodes(session, range(head.nodes + 1, last + 1))
            filed += self._of_notes(session, head.notes)
            moved = [row for row in session.lookups.moved() if row <= head.nodes]
            filed += self._of_moved(session, moved, names)
            _put(session, filed, names, last, notes)

    def _of_nodes(self, reader: Reader, rows: Iterable[int]) -> tuple[Filed, Counter[int]]:
        """Return the keys of some nodes, and how many in each world have a name of their own."""
        filed: Filed = []
        names: Counter[int] = Counter()
        for body in reader.bodies(rows):
            world = body.parent or ROOT_ROW
            if body.content:
                filed.append((content_key(body.type, body.content, world), body.row))
            if _is_named(body):
                names.update({ROOT_ROW, world})
                filed += _filed(self._keys(body.name), body.row, world)
        return filed, names

    def _of_notes(self, reader: Reader, after: int) -> Filed:
        """Return the keys of the aliases and attributes that were told after a note."""
        aliases = [(row, self._keys(alias)) for row, alias in _short(reader.aliases_after(after))]
        told = [
            (row, self._attribute_keys(attributes))
            for row, attributes in reader.lookups.attributes_after(after)
        ]
        worlds = reader.parents({row for row, _ in aliases + told})
        return [
            number
            for row, keys in aliases + told
            for number in _filed(keys, row, worlds[row] or ROOT_ROW)
        ]

    def _of_moved(self, reader: Reader, rows: list[int], names: Counter[int]) -> Filed:
        """Return all keys of nodes that are in another world now, and count them there."""
        if not rows:
            return []
        filed, came = self._of_nodes(reader, rows)
        del came[ROOT_ROW]  # There they were counted before.
        names += came
        worlds = reader.parents(rows)
        for row, alias in _short(reader.aliases(rows)):
            filed += _filed(self._keys(alias), row, worlds[row] or ROOT_ROW)
        for row, attributes in reader.lookups.attributes(rows):
            filed += _filed(self._attribute_keys(attributes), row, worlds[row] or ROOT_ROW)
        return filed


def _is_named(body: BodyRow) -> bool:
    return 0 < len(body.name) <= NAME_CHARS_MAX and body.type not in NOT_NAMED


def _short(aliases: Iterable[tuple[int, str]]) -> Iterable[tuple[int, str]]:
    return ((row, alias) for row, alias in aliases if len(alias) <= NAME_CHARS_MAX)


def _filed(keys: Iterable[str], row: int, world: int) -> Filed:
    """Return what a node of a world is filed under, by keys of its names."""
    return [(name_number(key, among), row) for key in keys for among in {ROOT_ROW, world}]


def _put(session: Reader, filed: Filed, names: Counter[int], last: int, notes: int) -> None:
    """Add keys, and say how far the index has come."""
    filed.sort()
    session.lookups.put(filed)
    session.lookups.add_names(names)
    session.lookups.set_reached(last, notes)


NAME_WORDS_MAX = 6
SAID_NAME_CHARS_MAX = 80
FIRST_NAMED = frozenset({"Entity", "Person"})
FULL_WORDS_MAX = 4

_WORD = re.compile(r"[^\W_](?:[\w.'’&+#-]*[\w+#])?")
_POSSESSIVE = re.compile(r"['’]s$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?:;\n\"“”(]")


def said_words(text: str) -> list[str]:
    """Return the words of a name or a question, without punctuation around them and "'s"."""
    return [_POSSESSIVE.sub("", match.group()) for match in _WORD.finditer(text)]


def name_key(name: str) -> str:
    """Return the key under which a node is found by its name; empty for what is no name."""
    return folded(" ".join(said_words(name))) if len(name) <= SAID_NAME_CHARS_MAX else ""


def first_name(type_: str, name: str) -> str:
    """Return the first name of somebody who has more than that; empty for everybody else."""
    if type_ not in FIRST_NAMED or len(name) > SAID_NAME_CHARS_MAX:
        return ""
    words = name.split()
    if len(words) < 2 or not any(is_given(fold(word)) for word in words[:2]):
        return ""
    full = read_name(name)
    if full.legal or full.ordered or full.numbers or not 1 < len(full.words) <= FULL_WORDS_MAX:
        return ""
    first, last = full.words[0], full.words[-1]
    # Mark Miller is somebody, the Jordan River is not.
    return first if is_given(first) and (first not in ALSO_WORDS or is_name(last)) else ""


def said_firsts(question: str) -> dict[int, str]:
    """Return which words of a question, by number, may be a first name that stands alone.

    A name beside it makes it a part of another one. A name that is a word, too, needs a capital,
    and not that of a sentence's beginning: "Did Will come?"
    """
    if question.isupper():
        question = question.lower()
    words = list(_WORD.finditer(question))
    gaps = [question[one.end() : other.start()] for one, other in pairwise(words)]
    begins = [True, *(_SENTENCE_END.search(gap) is not None for gap in gaps)]
    found: dict[int, str] = {}
    for number, match in enumerate(words):
        said = _POSSESSIVE.sub("", match.group())
        first = fold(said)
        if not is_given(first):
            continue
        if first in ALSO_WORDS and (begins[number] or said.islower()):
            continue
        goes_on = said == match.group() and number < len(gaps) and gaps[number].isspace()
        if goes_on and _is_part_of_name(words[number + 1].group(), begins=False):
            continue
        if number and gaps[number - 1].isspace():
            if _is_part_of_name(words[number - 1].group(), begins=begins[number - 1]):
                continue
        found[number] = first
    return found


def _is_part_of_name(word: str, *, begins: bool) -> bool:
    """Tell whether a word beside a first name looks like a part of the same name."""
    return is_name(fold(word)) or (word[0].isupper() and not begins)
