"""Store lanes: the lanes and the names of worlds that are too large to be held in memory.

    question ──▶ best by words, by vector, by names ──▶ candidates (`StoreLanes`)
    name     ──▶ rows of named nodes, by the name index of the store (`StoreNames`)

A world that is held is scored as a whole (`recaller`). Of a larger one, each lane gathers its best
candidates through the indexes of the store, and a sample of the other nodes tells how far these
stand out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial

import numpy as np

from worlddb.claims.claim_edges import KeptReferences
from worlddb.index.bm25 import Bm25, WordCover
from worlddb.index.held_world import (
    VectorRows,
    forms_of,
    ranked,
    speaker_of,
    weighed_words,
    years_of,
)
from worlddb.index.name_index import STATING, name_number, opening_key
from worlddb.index.search import UNFILED_MAX, Search
from worlddb.index.store_search import CANDIDATES_MAX, best_of, is_whole
from worlddb.language.proper_names import first_name, like_names, name_key, unqualified
from worlddb.language.ranking_features import ASKS, ONLY, asked_years
from worlddb.language.text_tokens import node_words, words
from worlddb.model.records import NOT_NAMED
from worlddb.recall.activation import GraphLane
from worlddb.recall.question import (
    BEARERS_MAX,
    KnownNames,
    Question,
    Vector,
    name_worth,
    one_person,
)
from worlddb.recall.ranker import Candidates, Company, Weights, WordReader, fuse, like_the_best
from worlddb.store.rows import ROOT_ROW, BodyRow
from worlddb.view.visibility import View

FEW_TEXTS_MAX = 1_200  # So many texts are scored one by one in the time of a search by words.
FEW_VECTORS_MAX = 8_192  # So many vectors are read and compared in the time of a deep search.
SEARCHED_KEYS_MAX = 400  # a question has fewer stretches of words; each costs a search by words


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLanes:
    """Gathers the candidates of a question from worlds that are too large to be held.

    `graph` makes the graph lane from the names of the worlds; `token_reader` reads the words of
    candidates, if the embedder keeps words apart.
    """

    search: Search
    view: View
    question: Question
    graph: Callable[[KnownNames], GraphLane]
    token_reader: Callable[[Sequence[int]], WordReader | None]

    def candidates(self, vector: Vector | None) -> tuple[list[int], Sequence[bytes], Candidates]:
        """Gather the best of each lane through the indexes of the whole store."""
        view, text, settings = self.view, self.question.text, self.question.settings
        wide = self.search.wide()
        said = weighed_words(text, wide.languages(view))
        depth = min(max(settings.depth, self.question.k), view.reader.head().nodes)
        found: dict[str, dict[int, float]] = {}
        if settings.weights.get("text"):
            few = self._few(FEW_TEXTS_MAX)
            if few is None:
                found["text"] = dict(wide.text(view, said, depth))
            else:
                found["text"] = best_of(wide.scored(view, few, said), depth)
        if vector is not None:
            few = self._few(FEW_VECTORS_MAX)
            vectors = self.search.vectors()
            if few is None:
                found["vector"] = dict(wide.nearest(view, vectors, vector, depth))
            else:
                cosines = np.vecdot(vectors.load(view.reader, few), vector).tolist()
                found["vector"] = best_of(dict(zip(few, cosines, strict=True)), depth)
        graph = None
        if settings.weights.get("graph"):
            graph = self.graph(StoreNames(view, partial(wide.counts_of, view.reader)))
            found["graph"] = dict(graph.gains)
            ranks = {lane: list(scored) for lane, scored in found.items()}
            ranks["graph"] = self._best(graph.gains)
            best = fuse(ranks, settings.weights, settings.c)
            share = (settings.weighing or Weights()).spread
            found["graph"] |= dict.fromkeys(graph.reached(best, share) - graph.gains.keys(), 0.0)
        rows = sorted({row for lane in found.values() for row in lane})
        if "text" in found:
            left = [row for row in rows if row not in found["text"]]
            found["text"] |= wide.scored(view, left, said)
        bodies = list(view.reader.bodies(rows, view.moment.known))
        lanes = {
            lane: np.array([scored.get(row, 0.0) for row in rows]) for lane, scored in found.items()
        }
        cover = _cover_among(bodies, text, wide.languages(view))
        if graph is not None:
            graph.lane(rows)
        cosines = None
        if vector is not None:
            matrix = self.search.vectors().load(view.reader, rows)
            cosines = VectorRows(matrix, np.arange(len(rows)))
            lanes["vector"] = cosines.of(vector)
        parents = np.array([body.parent or 0 for body in bodies], dtype=np.int64)
        speakers = [speaker_of(body) for body in bodies]
        numbers = {speaker: number for number, speaker in enumerate(dict.fromkeys(speakers))}
        candidates = Candidates(
            lanes=lanes,
            closely=self.token_reader(rows),
            parents=parents,
            starts=np.array([body.valid_from for body in bodies], dtype=np.int64),
            speakers=list(numbers),
            spoken=np.array([numbers[speaker] for speaker in speakers], dtype=np.int64),
            alike=like_the_best(lanes, parents, cosines),
            before=np.full(len(rows), -1, dtype=np.intp),  # Only some turns are here.
            forms=forms_of(bodies),
            cover=cover.shares if "text" in lanes else None,
            around=cover.around(parents, np.full(len(rows), -1)) if "text" in lanes else None,
            named=None if graph is None else graph.meant(cover),
            years=years_of(bodies) if asked_years(text) else None,
            claims=None if graph is None else graph.claiming(rows),
            graph=graph,
            company=self._company(said, vector),
        )
        return rows, [body.id for body in bodies], candidates

    def _company(self, said: Mapping[str, float], vector: Vector | None) -> Company | None:
        """Return the sample to compare candidates with; None if all that is visible is one."""
        wide, sample = self.search.wide(), None
        if self._few(FEW_TEXTS_MAX) is None:
            sample = wide.sample(self.view, None if vector is None else self.search.vectors())
        if sample is None:
            return None
        rarity = wide.rarity_of(self.view, list(said))
        lanes = {"text": sample.text.scores(said, lambda word: rarity.get(word, 0.0))}
        if vector is not None and sample.matrix is not None:
            lanes["vector"] = VectorRows(sample.matrix, np.arange(len(sample.rows))).of(vector)
        return Company(sample.total, lanes)

    def _few(self, most: int) -> list[int] | None:
        """Return all rows that a filter leaves, if there are at most `most`; else None."""
        view, where = self.view, self.view.where
        if where is None:
            return None
        # How many a filter leaves elsewhere must not be felt.
        inside = None if is_whole(view) else self.search.wide().rows_inside(view)
        rows = where.few(most, inside)
        return None if rows is None else sorted(view.keep(rows))

    def _best(self, scored: Mapping[int, float]) -> list[int]:
        """Return rows in the order in which a lane ranks them."""
        rows = sorted(scored)
        ids = [body.id for body in self.view.reader.bodies(rows, self.view.moment.known)]
        places = ranked(np.array([scored[row] for row in rows]), ids, self.question.settings.depth)
        return [rows[at] for at in places]


def _cover_among(bodies: Sequence[BodyRow], question: str, languages: Iterable[str]) -> WordCover:
    """Return which words of a question nodes have; rarity is counted among these nodes."""
    index = Bm25()
    for body in bodies:
        index.add(node_words(body.name, body.content))
    asked_for = weighed_words(question, languages)
    return WordCover(index, asked_for, np.arange(len(index)), forms_of(bodies)[:, ASKS] != ONLY)


class StoreNames:
    """The names in worlds that are too large to be held, by the name index of the store."""

    def __init__(self, view: View, counts: Callable[[Sequence[str]], Mapping[str, int]]) -> None:
        self._view = view
        self._reader = view.reader
        self._is_whole = is_whole(view)
        self.references: KeptReferences = {}
        self._counts = counts  # how many nodes contain each word

    def _named(self, said: Sequence[str]) -> list[int]:
        """Return the nodes whose names have the words as a phrase; none if that is too common.

        Inside a world it does not matter how common the words are outside of it.
        """
        counts = self._counts(said) if said and self._is_whole else dict.fromkeys(said, 1)
        if not said or not 0 < min(counts[word] for word in said) <= CANDIDATES_MAX:
            return []
        return self._reader.texts.named(" ".join(said))

    def bearers_of(self, keys: Iterable[str]) -> Mapping[str, set[int]]:
        """Return the nodes of each key that is a name.

        A key is looked up among the names of the worlds themselves. Few keys, as those of a
        question, are also looked up among all names: a node may live elsewhere and be a member.
        """
        wanted = frozenset(keys)
        worlds = {*self._view.worlds, *((ROOT_ROW,) if len(wanted) <= SEARCHED_KEYS_MAX else ())}
        numbers = [
            name_number(f"{kind}{key}", world)
            for key in wanted
            for world in worlds
            for kind in ("=", "n:", "o:")
        ]
        # Among all names, those of others must not take the places of the caller's own.
        most = BEARERS_MAX if self._is_whole else self._reader.head().nodes
        filed = self._reader.lookups.find(numbers, most)
        rows = {row for found in filed.values() for row in found} | self._unfiled(sorted(wanted))
        known: dict[str, set[int]] = {}
        for row, name in self._names(self._view.keep_world(rows)):
            for key in {name_key(name), name_key(unqualified(name))} & wanted:
                known.setdefault(key, set()).add(row)
        return {key: rows for key, rows in known.items() if len(rows) <= BEARERS_MAX}

    def _unfiled(self, keys: Sequence[str]) -> set[int]:
        """Return nodes that the name index has not reached and that may have one of the names.

        Such nodes were written without resolving names. A few are compared one by one; of many,
        the text index finds those that have the words of a name.
        """
        reader = self._reader
        nodes, notes = reader.lookups.reached()
        head = reader.head()
        if (nodes, notes) == (head.nodes, head.notes):
            return set()
        rows = {alias.node for alias in reader.aliases_after(notes)}
        if head.nodes - nodes <= UNFILED_MAX:
            return rows | set(range(nodes + 1, head.nodes + 1))
        if len(keys) > SEARCHED_KEYS_MAX:
            return rows
        return rows.union(*(self._named(words(key)) for key in keys))

    def _names(
        self, rows: Iterable[int], without: Set[str] = NOT_NAMED
    ) -> Iterator[tuple[int, str]]:
        """Yield the names and aliases of nodes, as known at the moment; none of some types."""
        known = self._view.moment.known
        chosen = []
        for body in self._reader.bodies(sorted(rows), known):
            if body.type not in without:
                chosen.append(body.row)
                yield body.row, body.name
                yield body.row, opening_key(body)
        yield from self._reader.aliases(chosen, known)

    def may_open(self, word: str) -> bool:
        return True

    def worth(self, keys: Iterable[str]) -> Mapping[str, float]:
        wanted = frozenset(keys)
        if not self._is_whole:  # What others wrote must not be felt.
            return dict.fromkeys(wanted, 1.0)
        counts = self._counts(sorted({word for key in wanted for word in words(key)}))
        return {key: name_worth(key, counts.__getitem__) for key in wanted}

    def first_named(self, first: str) -> Iterable[int]:
        rows = sorted(self._view.keep_world(self._named(words(first))))
        bodies = self._reader.bodies(rows, self._view.moment.known)
        return [body.row for body in bodies if first_name(body.type, body.name) == first]

    def like(self, key: str) -> Mapping[str, set[int]]:
        """Return names similar to a key, misspelled or longer, each with its nodes.

        The text index finds nodes that have one of the words; a name of one word that is misspelled
        is not found.
        """
        rows = {row for word in dict.fromkeys(words(key)) for row in self._named([word])}
        known: dict[str, set[int]] = {}
        for row, name in self._names(self._view.keep_world(rows), NOT_NAMED | STATING):
            known.setdefault(name_key(name), set()).add(row)
        found = like_names(key, known)
        return {one: known[one] for one in found} if len(found) <= BEARERS_MAX else {}

    def inside(self, rows: Iterable[int]) -> set[int]:
        return self._view.keep_world(rows)

    def keep(self, rows: Iterable[int]) -> set[int]:
        return self._view.keep(rows)

    def filed_under(self, rows: Iterable[int], most: int) -> set[int]:
        known = self._view.moment.known
        found = [self._reader.children(row, known, limit=most + 1) for row in rows]
        return {child for children in found for child in children if len(children) <= most}


def borne_by(view: View, name: str) -> set[int]:
    """Return the nodes of a view with a name or alias; with a first name, those of one person."""
    names, key = StoreNames(view, lambda said: dict.fromkeys(said, 1)), name_key(name)
    rows = view.keep(names.bearers_of([key]).get(key, ()))
    bodies = view.reader.bodies(sorted(rows), view.moment.known)
    if named := {body.row for body in bodies if body.name}:  # A text may only open with it.
        return named
    return one_person(names, view.reader, names.first_named(key), view.moment, True)
