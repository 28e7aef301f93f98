"""Worlds held in memory for search: their nodes, their word index (BM25) and their vectors.

A world small enough is searched exactly: every node gets a score by its words and by its vector,
and nothing is filtered afterwards. The world is read once; later commits are then applied from the
journal. Larger worlds are searched through the indexes of the whole store (`store_search`); only
their rows and vectors are held (`LargeWorld`).

H1  Places follow the order of rows, without nodes that have left. So a world that has followed the
    journal for long gives the same answers, to the last bit, as one read afresh.
H2  Only the statistics of the world itself decide which words are rare. So a scope of a thousand
    memories ranks the same in a store of its own and in a store of a million, and scores reveal
    nothing about other users' texts.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from copy import copy
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from worlddb.index.bm25 import Bm25, SaidWords, WordCover
from worlddb.index.composed_worlds import MEMBERSHIP, counting_worlds, is_lasting
from worlddb.index.name_index import opening_key
from worlddb.index.ranking_numbers import SCALARS
from worlddb.index.vectors import Vectors
from worlddb.language.proper_names import first_name, name_key, unqualified
from worlddb.language.ranking_features import ASKS, ONLY, DatedTexts, Form, form_of, weights_of
from worlddb.language.text_tokens import asked, language_of, words
from worlddb.model.inputs import to_micros
from worlddb.model.records import NOT_NAMED, Change, Edge, decode_changes
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW, BodyRow, Head, ModelRow
from worlddb.view.visibility import Moment, View, interior_up_to, is_answer, is_name_only

COMMITS_FOLLOWED_MAX = 1_000  # after more commits, the vectors of all held worlds are read again
NEW_EDGES_MAX = 10_000  # after more new edges, reading the world again costs less
FOREVER = np.iinfo(np.int64).max
EDGE_CHANGES = frozenset({"delete_edge", "close_edge"})
MOVING_CHANGES = frozenset({"place"}) | EDGE_CHANGES

Mask = NDArray[np.bool_]
Scores = NDArray[np.float64]


def nodes_at(reader: Reader, known: int | None) -> int:
    """Return the highest node row after a commit; rows have no gaps."""
    if known is None:
        return reader.head().nodes
    found = reader.commits(known - 1, 1, newest_first=False) if known >= 0 else []
    return found[0].nodes if found else ROOT_ROW


def speaker_of(body: BodyRow) -> str:
    """Return the speaker of a turn, which is its name; empty for other nodes."""
    return body.name.casefold() if body.type == "Turn" else ""


def first_word(key: str) -> str:
    """Return the first word of the key of a name."""
    return key.partition(" ")[0]


def form_of_body(body: BodyRow) -> Form:
    """Return the form of a node's content."""
    return form_of(body.content, is_turn=body.type == "Turn")


def years_of(bodies: Iterable[BodyRow]) -> NDArray[np.int64]:
    """Return the years in the nodes' contents, as `HeldWorld.chosen_years` does."""
    dated = DatedTexts()
    dated.add(body.content for body in bodies)
    return np.array(dated.spans, dtype=np.int64).reshape(-1, 3)


def forms_of(bodies: Iterable[BodyRow]) -> NDArray[np.int64]:
    """Return the forms of the nodes' contents, one row each."""
    numbers = (number for body in bodies for number in form_of_body(body))
    return np.fromiter(numbers, np.int64).reshape(-1, len(Form._fields))


class HeldWorld:
    """The nodes inside some worlds. Arrays are indexed by *place*, the position in `rows`."""

    def __init__(self, worlds: tuple[int, ...], members: bool) -> None:
        self.lock = threading.RLock()
        self.worlds = worlds
        self.members = members
        self.head: Head | None = None
        self.nests = True
        """Whether a node inside may have members."""
        self.expires: datetime | None = None
        self.known: int | None = None
        self._forget()

    def _forget(self) -> None:
        """Drop all nodes."""
        self.rows = array("q")
        self.place: dict[int, int] = {}
        self.ids: list[bytes] = []
        self.types: list[str] = []
        self.parents = array("q")
        self.starts = array("q")
        self.ends = array("q")
        self.answers = array("b")
        self.doors = array("b")
        self.speakers: dict[str, int] = {}
        self.spoken = array("q")
        self.forms = array("q")
        self._dated = DatedTexts()
        self.text = Bm25()
        self.said = SaidWords()
        self.tongues: dict[str, list[int]] = {}
        self.names: dict[str, list[int]] = {}
        self.openings: set[str] = set()
        self.references: dict[Any, Any] = {}
        """What questions have read of references, while no edge was closed or deleted."""
        self.firsts: dict[str, list[int]] = {}
        self.matrix: NDArray[np.float32] | None = None
        self._stale: set[int] = set()
        self._composed_at = -1
        self._model: ModelRow | None = None

    def restart(self) -> None:
        """Drop everything; the next `follow` reads the worlds again."""
        self._forget()
        self.head = None

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, reader: Reader, moment: Moment, most: int) -> bool:
        """Read the worlds as of `moment`; return False if they hold more than `most` nodes."""
        self.expires = None
        self.known = moment.known
        holders: set[bytes] = set()

        def note_membership(edge: Edge) -> None:
            holders.add(edge.source)
            for time in (edge.valid_from, edge.valid_to):
                if time is not None and time > moment.now and moment.valid is None:
                    self.expires = min(self.expires or time, time)

        found: set[int] | None
        if self.worlds == (ROOT_ROW,) and moment.known is not None:
            # Every node of that time, so a search among the present ones is not needed.
            last = nodes_at(reader, moment.known)
            found = set(range(ROOT_ROW + 1, last + 1)) if last <= most + 1 else None
        else:
            found = interior_up_to(reader, self.worlds, moment, self.members, most, note_membership)
        if found is None:
            return False
        new = sorted(found - self.place.keys())
        has_left = len(found) - len(new) < len(self)
        if has_left or (new and self.rows and new[0] < self.rows[-1]):
            self._forget()
            new = sorted(found)
        self._add(reader, new, moment)
        is_known = self.members and (moment.known is None or self.worlds != (ROOT_ROW,))
        self.nests = not is_known or not holders.isdisjoint(self.ids)
        self.head = reader.head()
        return True

    def follow(self, reader: Reader, moment: Moment, most: int) -> bool:
        """Apply the journal up to the reader's commit; return False if there are too many nodes."""
        head, before = reader.head(), self.head
        if before is None:
            return self.read(reader, moment, most)
        has_expired = self.expires is not None and self.expires <= moment.now
        if has_expired and not self.read(reader, moment, most):
            return False
        if head.hash == before.hash:
            return True
        self.head = head
        commits = reader.commits(before.seq, None, False)
        changes = [change for commit in commits for change in decode_changes(commit.changes)]
        if any(change.kind == "erase" for change in changes):
            self._forget()  # Words and vectors of erased nodes must not stay in memory.
            return self.read(reader, moment, most)
        if any(change.kind in EDGE_CHANGES for change in changes):
            self.references = {}
        if moment.known is not None:
            return True  # A past known time is not affected by later commits.
        new = self._new_rows(reader, before, head, changes, moment)
        if new is None:
            if not self.read(reader, moment, most):
                return False
        elif not has_expired:
            self._add(reader, new, moment)
        for change in changes:
            if change.kind in ("close_node", "place"):
                self._end_or_move(reader, change)
        for row, alias in reader.aliases_after(before.notes):
            if row in self.place:
                self._name(alias, self.place[row])
        return len(self) <= most

    def _new_rows(
        self, reader: Reader, before: Head, head: Head, changes: list[Change], moment: Moment
    ) -> list[int] | None:
        """Return the new nodes inside; None if older nodes moved in or out."""
        if moment.valid is not None or any(change.kind in MOVING_CHANGES for change in changes):
            return None
        if head.edges - before.edges > NEW_EDGES_MAX:
            return None
        held = self._new_members(reader, before, head, moment)
        if held is None:
            return None
        for row, parent in reader.parents(range(before.nodes + 1, head.nodes + 1)).items():
            held.setdefault(row, set()).add(parent or 0)
        worlds = set(self.worlds)
        inside: set[int] = set()
        order, size = sorted(held), -1
        while size < len(inside):
            # A parent is older than its children; a world may be younger than its members.
            size = len(inside)
            for row in order:
                if any(one in inside or one in worlds or one in self.place for one in held[row]):
                    inside.add(row)
        inside -= self.place.keys()
        if len(worlds) == 1:
            inside -= worlds
        return None if inside and min(inside) <= before.nodes else sorted(inside)

    def _new_members(
        self, reader: Reader, before: Head, head: Head, moment: Moment
    ) -> dict[int, set[int]] | None:
        """Return the worlds of new members; None if a membership ends or begins at a later time."""
        held: dict[int, set[int]] = {}
        if not self.members:
            return held
        for item in reader.edges_between(before.edges + 1, head.edges, types=("contains",)):
            if item.edge.valid_to is not None or not moment.holds(item.edge):
                return None
            held.setdefault(item.target, set()).add(item.source)
            self.nests |= len(self.worlds) > 1 or item.source not in self.worlds
        return held

    def _add(self, reader: Reader, rows: list[int], moment: Moment) -> None:
        bodies = list(reader.bodies(rows, moment.known))
        first = len(self.rows)
        self.place.update((body.row, first + at) for at, body in enumerate(bodies))
        self.rows.extend([body.row for body in bodies])
        self.ids += [body.id for body in bodies]
        self.types += [body.type for body in bodies]
        self.parents.extend([body.parent or 0 for body in bodies])
        self.starts.extend([body.valid_from for body in bodies])
        self.ends.extend([FOREVER if it.valid_to is None else it.valid_to for it in bodies])
        self.answers.extend(map(is_answer, bodies))
        self.doors.extend(map(is_name_only, bodies))
        self._add_words(first, bodies)
        self._add_names(first, bodies)
        for row, alias in reader.aliases(rows, moment.known):
            self._name(alias, self.place[row])

    def _add_words(self, first: int, bodies: Sequence[BodyRow]) -> None:
        """Read the speakers, forms, languages and words of the next nodes."""
        # One pass per table: a table that stays in the processor's cache is filled twice as fast.
        for speaker in map(speaker_of, bodies):
            self.spoken.append(self.speakers.setdefault(speaker, len(self.speakers)))
        for form in map(form_of_body, bodies):
            self.forms.extend(form)
        languages = [language_of(body.content) for body in bodies]
        said = zip(bodies, languages, strict=True)
        self.text.extend([words(it.name) + words(it.content, language) for it, language in said])
        for place, language in enumerate(languages, first):
            if language is not None:
                self.tongues.setdefault(language, []).append(place)

    def _add_names(self, first: int, bodies: Sequence[BodyRow]) -> None:
        """Read the names of the next nodes."""
        for place, body in enumerate(bodies, first):
            if body.type not in NOT_NAMED:
                bare = body.name and unqualified(body.name)
                for name in {body.name, bare, opening_key(body)}:
                    self._name(name, place)
            if given := first_name(body.type, body.name):
                self.firsts.setdefault(given, []).append(body.row)

    def _name(self, name: str, place: int) -> None:
        """Add a name to the name table, so that a question with this name finds the node."""
        if name and (key := name_key(name)):
            self.openings.add(first_word(key))
            places = self.names.setdefault(key, [])
            # In order: a name that thousands of texts open with is not searched from its start.
            at = bisect_left(places, place)
            if places[at : at + 1] != [place]:
                places.insert(at, place)

    def _end_or_move(self, reader: Reader, change: Change) -> None:
        """Apply the end of a node's validity, or its move to another world."""
        row = reader.node_row(change.id)
        if row not in self.place:
            return
        place = self.place[row]
        if change.kind == "close_node":
            self.ends[place] = min(self.ends[place], int(change.detail["valid_to"]))
        else:
            self.parents[place] = reader.parents([row])[row] or 0

    @property
    def languages(self) -> set[str]:
        """The languages other than English that texts here have."""
        return set(self.tongues)

    def narrowed(
        self, view: View, rows_within: Iterable[NDArray[np.int64] | None]
    ) -> tuple[HeldWorld, Mask]:
        """Return the world to search for a view and the places inside all its groups of worlds.

        `rows_within` are the rows of each group, or None for a group whose rows are not at hand.
        """
        rows, within = np.frombuffer(self.rows, dtype=np.int64), np.ones(len(self), dtype=np.bool_)
        for group, known in zip(view.within, rows_within, strict=True):
            kept = sorted(view.keep_inside(set(self.rows), group)) if known is None else known
            within &= np.isin(rows, kept)
        if not view.within:
            return self, within
        found = copy(self)
        found.text = self.text.among(within)
        found.tongues = {code: at for code, at in self.tongues.items() if within[at].any()}
        return found, within

    def having(self, tokens: Iterable[str]) -> NDArray[np.int64]:
        """Return the rows of the nodes that have any of the tokens."""
        places = [self.text.places_of(token) for token in tokens]
        return np.frombuffer(self.rows, dtype=np.int64)[np.concatenate(places)]

    def saying(self, words: Sequence[Iterable[str]], rows: Sequence[int]) -> dict[int, set[int]]:
        """Return by row the numbers of the words that nodes have, any of the forms of each."""
        places = np.array([self.place[row] for row in rows], dtype=np.int64)
        found: dict[int, set[int]] = {row: set() for row in rows}
        for number, forms in enumerate(words):
            has = np.zeros(len(rows), dtype=np.bool_)
            for form in forms:
                has |= self.text.has(form, places)
            for at in np.flatnonzero(has).tolist():
                found[rows[at]].add(number)
        return found

    # -- reads for search --------------------------------------------------------------------------

    def vectors(self, reader: Reader, vectors: Vectors) -> NDArray[np.float32]:
        """Return the effective vectors, one row for each place."""
        if self.known is not None:
            return self._vectors_then(reader, vectors, self.known)
        held = 0 if self.matrix is None else len(self.matrix)
        new = self.rows[held:].tolist()
        if self.matrix is None:
            self.matrix = vectors.load(reader, new)
        elif new:
            self.matrix = np.concatenate((self.matrix, vectors.load(reader, new)))
        model = vectors.model(reader)
        old = {row for row in self._stale if self.place[row] < held}
        if held and model is not None and model.seq > self._composed_at and model != self._model:
            old |= self._recomposed(reader, model)
        if old:
            rows = sorted(old)
            self.matrix[[self.place[row] for row in rows]] = vectors.load(reader, rows)
        # The newest nodes may not be embedded yet: their vectors are read again next time.
        last = ROOT_ROW if model is None else model.composed
        self._stale = {row for row in (*old, *new) if row > last}
        self._model = model
        if model is not None:
            self._composed_at = model.seq if self._is_embedded(model) else model.seq - 1
        return self.matrix

    def _recomposed(self, reader: Reader, model: ModelRow) -> set[int]:
        """Return the held worlds that were composed again since the vectors were read."""
        if model.seq - self._composed_at > COMMITS_FOLLOWED_MAX:
            pools = reader.derived.pools(model.number, self.rows.tolist())
            return {pool.node for pool in pools}
        return self.place.keys() & reader.derived.composed_after(model.number, self._composed_at)

    def _vectors_then(self, reader: Reader, vectors: Vectors, known: int) -> NDArray[np.float32]:
        """Return the effective vectors at an earlier commit.

        Children of held worlds are held, too; a member may be a member at another valid time only.
        """
        if self.matrix is None or len(self.matrix) < len(self) or self._stale:
            rows = sorted({*self.rows, *self._members_elsewhere(reader, known)})
            place = {row: number for number, row in enumerate(rows)}
            counts = counting_worlds(reader, rows, known)
            above = [[place[up] for up in counts.get(row, ()) if up in place] for row in rows]
            matrix, is_embedded = vectors.load_then(reader, rows, above)
            self.matrix = matrix[[place[row] for row in self.rows]]
            self._stale = set() if is_embedded else set(self.rows)
        return self.matrix

    def _members_elsewhere(self, reader: Reader, known: int) -> set[int]:
        """Return the nodes that count in a held world at a commit and are not held."""
        found: set[int] = set()
        frontier = set(self.rows)
        while frontier:
            edges = reader.edges_at(sorted(frontier), "out", MEMBERSHIP, known)
            below = {item.target for item in edges if is_lasting(item.edge)}
            if frontier <= found:
                below.update(row for world in frontier for row in reader.children(world, known))
            frontier = below - found - self.place.keys()
            found |= frontier
        return found

    def _is_embedded(self, model: ModelRow | None) -> bool:
        """Return whether all nodes up to the held commit are embedded and composed."""
        if model is None or self.head is None:
            return False
        return model.seq >= self.head.seq and model.composed >= self.head.nodes

    def chosen(self, column: array[int], places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the values of a column at some places."""
        return np.frombuffer(column, dtype=np.int64)[places]

    def chosen_ids(self, positions: NDArray[np.intp]) -> Sequence[bytes]:
        """Return the ids at some places; without a copy if that is all places."""
        return self.ids if len(positions) == len(self.ids) else ChosenIds(self.ids, positions)

    def chosen_forms(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the forms at some places, one row each."""
        return np.frombuffer(self.forms, dtype=np.int64).reshape(-1, len(Form._fields))[places]

    def said_at(self, reader: Reader, places: Sequence[int]) -> SaidWords:
        """Return the distinct words of texts, after reading those of some places."""
        rows = [self.rows[at] for at in places if at not in self.said]
        for body in reader.bodies(sorted(rows), self.known):
            self.said.add(self.place[body.row], body.content)
        return self.said

    def chosen_years(self, reader: Reader, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the years at some places: one row per span, with the position of its place."""
        dated = self._dated
        # Few questions name a year; the first one that does reads the years of all texts.
        rows = self.rows[dated.read :].tolist()
        dated.add(body.content for body in reader.bodies(rows, self.known))
        spans = np.frombuffer(dated.spans, dtype=np.int64).reshape(-1, 3)
        position = np.full(len(self), -1, dtype=np.int64)
        position[places] = np.arange(len(places))
        held = np.column_stack((position[spans[:, 0]], spans[:, 1:]))
        return held[held[:, 0] >= 0]

    def seen(
        self,
        moment: Moment,
        *,
        ended: bool,
        types: Iterable[str] | None = None,
        instances: Iterable[int] = (),
    ) -> Mask:
        """Return which places are visible at `moment`; with `ended`, also ended nodes.

        With `types`, only nodes of these types and the rows in `instances`.
        """
        mask = np.ones(len(self), dtype=np.bool_)
        at = to_micros(moment.now if moment.valid is None else moment.valid, "valid")
        if moment.valid is not None:
            mask &= np.frombuffer(self.starts, dtype=np.int64) <= at
        if not ended:
            mask &= np.frombuffer(self.ends, dtype=np.int64) > at
        if types is not None:
            wanted = frozenset(types)
            typed = np.fromiter((kind in wanted for kind in self.types), np.bool_, len(self))
            if also := [self.place[row] for row in instances if row in self.place]:
                typed[also] = True
            mask &= typed
        return mask

    def are_answers(self, doors: bool = False) -> Mask:
        """Return which places can be answers; with `doors`, also nodes that have only a name."""
        mask = np.frombuffer(self.answers, dtype=np.int8).astype(np.bool_)
        return mask | np.frombuffer(self.doors, dtype=np.bool_) if doors else mask


def weighed_words(question: str, languages: Iterable[str]) -> dict[str, float]:
    """Return the words of a question to search for, with their weights."""
    return weights_of(asked(question, languages), SCALARS.frame_weight)


def text_scores(interior: HeldWorld, question: str) -> Scores:
    """Return the BM25 score of each place for a question."""
    return interior.text.scores(weighed_words(question, interior.languages))


def text_cover(
    interior: HeldWorld, question: str, places: NDArray[np.intp], forms: NDArray[np.int64]
) -> WordCover:
    """Return which words of a question the texts at some places have; `forms` are theirs."""
    asked_for = weighed_words(question, interior.languages)
    return WordCover(interior.text, asked_for, places, forms[:, ASKS] != ONLY)


class LargeWorld(HeldWorld):
    """The rows of worlds that are too large to be held, and their vectors; nothing else of nodes.

    Every vector inside is compared, so nodes outside change neither which nodes are found nor how
    they rank. A nearest-neighbour graph that several scopes share would change both, because a
    search in it is guided by all vectors. The rows include nodes of the past; the view decides
    which of them a caller sees at a moment.
    """

    def _new_rows(
        self, reader: Reader, before: Head, head: Head, changes: list[Change], moment: Moment
    ) -> list[int] | None:
        """Return the new nodes inside; None if older nodes moved in. Nodes that left stay."""
        moved = [reader.node_row(change.id) or 0 for change in changes if change.kind == "place"]
        for parent in reader.parents(moved).values() if moved else ():
            if parent in self.place or parent in self.worlds:
                return None
        return super()._new_rows(reader, before, head, [], moment)

    def _add(self, reader: Reader, rows: list[int], moment: Moment) -> None:
        self.place.update(zip(rows, range(len(self.rows), len(self.rows) + len(rows)), strict=True))
        self.rows.extend(rows)

    def _end_or_move(self, reader: Reader, change: Change) -> None:
        """Do nothing: validity is read from the store."""

    def _name(self, name: str, place: int) -> None:
        """Do nothing: names are read from the store."""


class ChosenIds(Sequence[bytes]):
    """The ids at some places, looked up on access: of thousands of candidates few are needed."""

    def __init__(self, ids: Sequence[bytes], places: NDArray[np.intp]) -> None:
        self._ids = ids
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, at: Any) -> Any:
        return self._ids[self._places[at]]


class VectorRows:
    """The vectors at some places of a matrix, without a copy of the matrix."""

    def __init__(self, matrix: NDArray[np.float32], places: NDArray[np.intp]) -> None:
        self._matrix = matrix
        self._places = places

    def of(self, vector: NDArray[np.float32]) -> Scores:
        """Return the cosine of each place with a vector.

        Computed row by row: a matrix product rounds a row by its position, so equal texts would get
        different cosines.
        """
        near: Scores = np.vecdot(self._matrix, vector)[self._places].astype(np.float64)
        return near

    def mean(self, places: Sequence[int]) -> NDArray[np.float32]:
        """Return the mean of the vectors at some places."""
        mean: NDArray[np.float32] = self._matrix[self._places[places]].mean(axis=0)
        return mean


def ranked(scores: Scores, ids: Sequence[bytes], depth: int) -> list[int]:
    """Return the best `depth` places with a score above 0; ties by id."""
    candidates = np.flatnonzero(scores > 0)
    if len(candidates) > depth:
        # All ties with the last one stay, so that the ids decide.
        least = np.partition(scores[candidates], len(candidates) - depth)[-depth]
        candidates = candidates[scores[candidates] >= least]
    order = sorted(candidates.tolist(), key=lambda place: (-scores[place], ids[place]))
    return order[:depth]
