"""Lanes: three ways to find nodes in a world that is held in memory, each with its own ranking.

text     BM25 over names and contents
vector   cosine of effective vectors
graph    the names said in the question → their accepted class → what refers to them; and what
         it asks for of somebody ("Where do I live?") → the claim of that which stands
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from worlddb.claims.standing import claiming
from worlddb.index.held_world import HeldWorld, Mask, Scores
from worlddb.index.name_index import NAME_WORDS_MAX, first_name, name_key, said_firsts, said_words
from worlddb.index.store_search import CANDIDATES_MAX, LINKED_NODES_MAX, Found, StoreSearch
from worlddb.index.vectors import Tokens, Vectors, late_interaction_scores
from worlddb.language.english.claim_questions import asked_claims
from worlddb.language.text_tokens import folded, words
from worlddb.store.interface import Reader
from worlddb.view.equivalence import accepted_class
from worlddb.view.visibility import Moment, View

REFERENCES = ("refers_to",)
BEARERS_MAX = 100
SUBJECTS = frozenset({"Entity", "Person"})


class Closely:
    """Reads candidates word by word, by the token vectors that the store keeps of them."""

    def __init__(
        self, asked: Tokens, reader: Reader, vectors: Vectors, rows: Sequence[int]
    ) -> None:
        self._asked = asked
        self._reader = reader
        self._vectors = vectors
        self._rows = rows

    def read(self, places: Sequence[int]) -> Scores:
        """Return how well each of some candidates answers."""
        rows = [self._rows[place] for place in places]
        return late_interaction_scores(self._asked, self._vectors.load_tokens(self._reader, rows))


def graph_scores(
    interior: HeldWorld,
    reader: Reader,
    moment: Moment,
    question: str,
    classes: bool,
    seen: Mask,
    claims: Sequence[int] = (),
) -> Scores:
    """Return how much each place that is seen has to do with what the question names.

    Each name counts once, and less the more places it leads to. What it is the same as counts only
    if it is in here, too. Places that state what is asked for (`claims`) count as a name does.
    """
    scores = np.zeros(len(interior))
    if stated := [place for place in claims if seen[place]]:
        scores[stated] += 1.0 / np.log2(1 + len(stated))
    parents = np.array(interior.parents)
    for rows in _named(interior, reader, moment, question, classes):
        if classes:
            rows = accepted_class(reader, rows, moment) & interior.place.keys()
        found = {
            interior.place[item.source]
            for item in reader.edges_at(rows, "in", REFERENCES, moment.known)
            if item.source in interior.place and moment.holds(item.edge)
        }
        found.update(np.flatnonzero(np.isin(parents, list(rows))).tolist())
        found -= {interior.place[row] for row in rows}
        shown = [place for place in found if seen[place]]
        if shown:
            scores[shown] += 1.0 / np.log2(1 + len(shown))
    return scores


def _named(
    interior: HeldWorld, reader: Reader, moment: Moment, question: str, classes: bool
) -> Iterator[set[int]]:
    """Yield the rows of each name that the question says; of names in names only the longest."""
    said = said_words(question)
    firsts = said_firsts(question)
    at = 0
    while at < len(said):
        for size in range(min(NAME_WORDS_MAX, len(said) - at), 0, -1):
            places = interior.names.get(folded(" ".join(said[at : at + size])))
            if places:
                yield {interior.rows[place] for place in places}
                at += size - 1
                break
        else:
            bearers = interior.firsts.get(firsts.get(at, ""), ())
            if rows := one_person(reader, bearers, moment, classes):
                yield rows
        at += 1


def claimed_places(
    interior: HeldWorld, reader: Reader, moment: Moment, question: str, asker: str, classes: bool
) -> list[int]:
    """Return the places that state what the question asks for, of whom it asks that."""
    found: set[int] = set()
    for owner, relations in asked_claims(question):
        name = folded(" ".join(said_words(owner or asker)))
        rows = {
            interior.rows[place]
            for place in interior.names.get(name, ())
            if interior.types[place] in SUBJECTS
        }
        if owner and not rows:
            rows = one_person(reader, interior.firsts.get(name, ()), moment, classes)
        if classes and rows:
            rows = accepted_class(reader, rows, moment)
        found |= claiming(reader, rows, relations, moment) if rows else set()
    return [interior.place[row] for row in found if row in interior.place]


def one_person(reader: Reader, rows: Iterable[int], moment: Moment, classes: bool) -> set[int]:
    """Return the nodes that bear a first name if at the moment they are one person, else none."""
    bearers = set(rows)
    if not bearers or len(bearers) > BEARERS_MAX:
        return set()
    found = reader.nodes(bearers, moment.known).items()
    bearers = {row for row, node in found if moment.holds(node)}
    if len(bearers) > 1:
        same = accepted_class(reader, {min(bearers)}, moment) if classes else set()
        return bearers if bearers <= same else set()
    return bearers


def store_graph(wide: StoreSearch, view: View, question: str, classes: bool, most: int) -> Found:
    """Return (row, score) of what has to do with the names that the question says."""
    reader, moment = view.reader, view.moment
    scores: dict[int, float] = {}
    for rows in _named_in_store(wide, view, question, classes):
        if classes:
            rows = view.keep_world(accepted_class(reader, rows, moment))
        edges = reader.edges_at(rows, "in", REFERENCES, moment.known)
        found = {item.source for item in edges if moment.holds(item.edge)}
        for row in rows:
            found.update(reader.children(row, moment.known, limit=LINKED_NODES_MAX))
        found = view.keep(sorted(found - rows)[-LINKED_NODES_MAX:])
        for row in found:
            scores[row] = scores.get(row, 0.0) + 1.0 / np.log2(1 + len(found))
    ids = {body.row: body.id for body in reader.bodies(scores)}
    return sorted(scores.items(), key=lambda item: (-item[1], ids[item[0]]))[:most]


def _named_in_store(
    wide: StoreSearch, view: View, question: str, classes: bool
) -> Iterator[set[int]]:
    """Yield the rows of each name that the question says; the longest names only."""
    said = said_words(question)
    firsts = said_firsts(question)
    counts = wide.counts_of(view.reader, list(dict.fromkeys(words(" ".join(said)))))
    at = 0
    while at < len(said):
        for size in range(min(NAME_WORDS_MAX, len(said) - at), 0, -1):
            rows = _rows_named(view, " ".join(said[at : at + size]), counts)
            if rows:
                yield rows
                at += size - 1
                break
        else:
            if at in firsts:
                bearers = _bearers(view, firsts[at], counts)
                if rows := one_person(view.reader, bearers, view.moment, classes):
                    yield rows
        at += 1


def _bearers(view: View, first: str, counts: Mapping[str, int]) -> set[int]:
    """Return who in this world has a first name, and more names than that."""
    tokens = words(first)
    if not tokens or not 0 < min(counts.get(token, 0) for token in tokens) <= CANDIDATES_MAX:
        return set()
    bodies = view.reader.bodies(view.reader.texts.named(" ".join(tokens)), view.moment.known)
    return view.keep_world(body.row for body in bodies if first_name(body.type, body.name) == first)


def _rows_named(view: View, name: str, counts: Mapping[str, int]) -> set[int]:
    """Return what has a name, was known by then, and is in view: others' names are not said."""
    reader, known, key = view.reader, view.moment.known, folded(name)
    rows: set[int] = set()
    if aliased := reader.rows_aliased(name):
        aliases = reader.aliases(aliased, known)
        rows.update(row for row, alias in aliases if name_key(alias) == key)
    tokens = words(name)
    if tokens and 0 < min(counts.get(token, 0) for token in tokens) <= CANDIDATES_MAX:
        bodies = reader.bodies(reader.texts.named(" ".join(tokens)), known)
        rows.update(body.row for body in bodies if name_key(body.name) == key)
    return view.keep_world(rows) if rows else rows
