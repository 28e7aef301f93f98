"""A question: the query that it is, what it can see, its vector, and the names in it.

*The query.* Handlers get a recall as the same `Query` that a pipeline gives them: the question is
its `text`, the wanted types are a `filter_type`, `k` is its `limit`. Whatever they return holds:
other words, another world or time, further filters, fewer hits. A recall has no walk, so a rewrite
that adds one is an error. The vector of a question has its words weighed by how rare they are in
what is searched.

*The names.* Which visible nodes do the names in a text mean?

    text ──name_spans──▶ keys ──KnownNames.bearers_of──▶ rows of named nodes

A world in memory answers from its own table of names (`HeldNames`), a larger one from the name
index of the store (`StoreNames`). Both know the same names: those of visible nodes, their aliases,
and a name without the qualifier in brackets behind it ("Tesla (company)").
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from worlddb.errors import ProviderError
from worlddb.index.held_world import HeldWorld, Mask
from worlddb.index.name_index import STATING, name_number, opening_key
from worlddb.index.ranking_numbers import SCALARS
from worlddb.index.search import UNFILED_MAX, Search
from worlddb.index.store_search import CANDIDATES_MAX, is_whole
from worlddb.language.proper_names import (
    NAME_WORDS_MAX,
    first_name,
    name_key,
    said_firsts,
    said_words,
    unqualified,
)
from worlddb.language.ranking_features import question_parts, written_rarity
from worlddb.language.text_tokens import STOP, folded, words
from worlddb.model.address import Id
from worlddb.model.records import NOT_NAMED, AsOf, Op, Query
from worlddb.ontology.registry import Registry
from worlddb.recall.confidence import AskedWords, asked_words
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW
from worlddb.view.node_filters import filtered, widened_types
from worlddb.view.visibility import (
    Moment,
    View,
    accepted_class,
    find_worlds,
    includes_ended,
    moment_of,
    rewrite,
)

BEARERS_MAX = 100
"""A name that more nodes bear than this names nobody in particular."""
SHORT_TEXT_WORDS_MAX = 25  # words of a text that states one thing: each may name something
LETTERS_PER_SLIP = 5  # "Anna" and "Hanna" are two names; "Sara Chen" is Sarah Chen misspelled
NAME_LETTERS_MIN = 3  # "Lee"; two letters are mostly initials
UNKNOWN_NAMES_MAX = 3  # of a question: each is compared with all names of a world
SEARCHED_KEYS_MAX = 400  # a question has fewer stretches of words; each costs a search by words


class NameSpan(NamedTuple):
    """Some words of a text that may be a name: the numbers of the first word and the one after."""

    first: int
    end: int
    key: str


class KnownNames(Protocol):
    """The names of one view, and the words that its memories open with."""

    def bearers_of(self, keys: Iterable[str]) -> Mapping[str, set[int]]:
        """Return the visible nodes of each key that is a name."""

    def first_named(self, first: str) -> Iterable[int]:
        """Return the visible nodes with a first name, and more names than that."""

    def worth(self, keys: Iterable[str]) -> Mapping[str, float]:
        """Return how much each key says, from 0 to 1: less if many nodes have its rarest word."""

    def like(self, key: str) -> Mapping[str, set[int]]:
        """Return names that are like a key, misspelled or longer, each with its nodes.

        What a text opens with is no such name: "The capital of Japan" is not Japan.
        """

    def inside(self, rows: Iterable[int]) -> set[int]:
        """Return those of some nodes that are inside the view, whatever their validity."""

    def keep(self, rows: Iterable[int]) -> set[int]:
        """Return those of some nodes that may be hits."""

    def filed_under(self, rows: Iterable[int], most: int) -> set[int]:
        """Return what lives inside some nodes; nothing of one in which more than `most` live."""


def name_spans(text: str, *, capitals: bool) -> list[NameSpan]:
    """Return the stretches of a text that may be names, longer ones first where they begin.

    With `capitals`, only stretches that begin with a capital or a digit, unless the text is short:
    in a longer text a name is written as one, and every other word would be looked up in vain. In a
    question it may be written in lower case.
    """
    said = said_words(text)
    capitals = capitals and len(said) > SHORT_TEXT_WORDS_MAX
    plain = [folded(word) for word in said]
    return [
        NameSpan(at, end, " ".join(plain[at:end]))
        for at, word in enumerate(said)
        if not capitals or word[0].isupper() or word[0].isdigit()
        for end in range(min(at + NAME_WORDS_MAX, len(said)), at, -1)
        # "It" and "1989" alone may be titles, but hardly ever are meant as such; and hardly any
        # name ends with a word like "of", unless it is written as part of it ("She Hate Me").
        if (plain[end - 1] not in STOP or (end > at + 1 and said[end - 1][0].isupper()))
        and (end > at + 1 or not plain[at].isdigit())
    ]


def longest(
    spans: Iterable[NameSpan], bearers: Mapping[str, set[int]]
) -> Iterator[tuple[NameSpan, set[int]]]:
    """Yield the names among some stretches; of names within names only the longest."""
    done = 0
    for span in spans:
        if span.first >= done and (rows := bearers.get(span.key)):
            yield span, rows
            done = span.end


class SaidName(NamedTuple):
    """A name in a question: its first word's number, itself, its nodes, how surely it is a name."""

    first: int
    key: str
    rows: set[int]
    sureness: float = 1.0


def question_names(
    names: KnownNames, reader: Reader, moment: Moment, question: str, classes: bool
) -> list[SaidName]:
    """Return each name in a question, and first names that are one person's.

    A name that nobody has is looked up once more as misspelled, or as part of a longer name. Words
    in lower case are as surely a name as they are rare: "power" may be the title of a text.
    """
    spans = name_spans(question, capitals=False)
    said = list(longest(spans, names.bearers_of({span.key for span in spans})))
    taken = {number for span, _ in said for number in range(span.first, span.end)}
    written = said_words(question)
    worth = names.worth(span.key for span, _ in said)
    found = [
        SaidName(span.first, span.key, rows, 1.0 if _is_capital(written, span) else worth[span.key])
        for span, rows in said
    ]
    for number, first in said_firsts(question).items():
        if number not in taken:
            rows = one_person(names, reader, names.first_named(first), moment, classes)
            found += [SaidName(number, first, rows)] if rows else []
            taken |= {number} if rows else set()
    for number, key in unknown_names(question, taken):
        like = names.like(key)
        if " " not in key:
            like = _alone(like, key, reader, moment)
        if len(like) == 1:  # Of several, nobody knows which was meant.
            found += [SaidName(number, key, rows) for rows in like.values()]
    return sorted(found, key=lambda item: item.first)


def _alone(
    like: Mapping[str, set[int]], key: str, reader: Reader, moment: Moment
) -> dict[str, set[int]]:
    """Return which names one word may mean: one that it misspells, or the person of a last name.

    "Jordan" is not the Jordan River: any other word of a longer name is not a name.
    """
    found = {name: rows for name, rows in like.items() if key not in name.split()}
    for name, rows in like.items():
        if name.split()[1:] and name.split()[-1] == key:
            bodies = reader.bodies(sorted(rows), moment.known)
            if people := {body.row for body in bodies if first_name(body.type, body.name)}:
                found[name] = people
    return found


def _is_capital(written: Sequence[str], span: NameSpan) -> bool:
    """Return whether a name is written as one; the first word of a question alone is not."""
    said = written[max(span.first, 1) : span.end]
    return any(word[0].isupper() or word[0].isdigit() for word in said)


def _worth(key: str, count: Callable[[str], int]) -> float:
    """Return how much a name says, by how many nodes have its rarest word."""
    least = min((count(word) for word in words(key)), default=1)
    worth: float = max(1, least) ** -SCALARS.commonness_power
    return worth


def named_rows(
    names: KnownNames, reader: Reader, moment: Moment, classes: bool, name: str
) -> set[int]:
    """Return the nodes of a name; of a name that nobody has, those whose names are like it."""
    key = name_key(name)
    if rows := names.bearers_of([key]).get(key):
        return set(rows)
    return one_person(names, reader, names.first_named(key), moment, classes) or set().union(
        *names.like(key).values()
    )


def borne_by(view: View, name: str) -> set[int]:
    """Return the nodes of a view with a name or alias; with a first name, those of one person."""
    names, key = StoreNames(view, lambda said: dict.fromkeys(said, 1)), name_key(name)
    rows = view.keep(names.bearers_of([key]).get(key, ()))
    bodies = view.reader.bodies(sorted(rows), view.moment.known)
    if named := {body.row for body in bodies if body.name}:  # A text may only open with it.
        return named
    return one_person(names, view.reader, names.first_named(key), view.moment, True)


def like_names(key: str, known: Iterable[str]) -> list[str]:
    """Return the keys that a key is with a slip of the pen, or that it stands inside of."""
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extract_iter

    keys = list(known)
    longer = [one for one in keys if key in one and f" {key} " in f" {one} "]
    slips = len(key) // LETTERS_PER_SLIP
    near = extract_iter(key, keys, scorer=OSA.distance, score_cutoff=slips) if slips else ()
    return list(dict.fromkeys([*(one for one, *_ in near), *longer]))


def unknown_names(question: str, taken: set[int]) -> list[tuple[int, str]]:
    """Return the first stretches in capitals that are not known name, each with its place.

    The first word of a question alone is none: its capital says nothing.
    """
    found: list[tuple[int, str]] = []
    end = -1
    for at, word in enumerate(said_words(question)):
        plain = folded(word)
        if at in taken or not word[0].isupper() or plain in STOP:
            continue
        if at == end:
            start, before = found.pop()
            found.append((start, f"{before} {plain}"))
        else:
            found.append((at, plain))
        end = at + 1
    names = [(at, key) for at, key in found if len(key) >= NAME_LETTERS_MIN and (at or " " in key)]
    return names[:UNKNOWN_NAMES_MAX]


def one_person(
    names: KnownNames, reader: Reader, rows: Iterable[int], moment: Moment, classes: bool
) -> set[int]:
    """Return the nodes that bear a first name if at the moment they are one person, else none."""
    bearers = set(rows)
    if not bearers or len(bearers) > BEARERS_MAX:
        return set()
    found = reader.nodes(bearers, moment.known).items()
    bearers = {row for row, node in found if moment.holds(node)}
    if len(bearers) > 1:
        if not classes:
            return set()
        same = accepted_class(reader, {min(bearers)}, moment, inside=names.inside)
        return bearers if bearers <= same else set()
    return bearers


class HeldNames:
    """The names in a world that is held in memory.

    `seen` marks the places that may be hits, and `within` those inside all other groups of worlds.
    """

    def __init__(self, interior: HeldWorld, seen: Mask, within: Mask | None = None) -> None:
        self._interior = interior
        self._seen = seen
        self._within = within

    def bearers_of(self, keys: Iterable[str]) -> Mapping[str, set[int]]:
        """Return the nodes of each key that is a name."""
        held = self._interior
        found = {}
        for key in keys:
            places = held.names.get(key)  # Most stretches of a text are no name.
            if places and (len(places) <= BEARERS_MAX or self._within is not None):
                rows = self.inside(held.rows[at] for at in places)
                if 0 < len(rows) <= BEARERS_MAX:
                    found[key] = rows
        return found

    def first_named(self, first: str) -> Iterable[int]:
        """Return the nodes with a first name, and more names than that."""
        return self.inside(self._interior.firsts.get(first, ()))

    def worth(self, keys: Iterable[str]) -> Mapping[str, float]:
        """Return how much each key says, from 0 to 1: less if many nodes have its rarest word."""
        return {key: _worth(key, self._interior.text.count) for key in keys}

    def like(self, key: str) -> Mapping[str, set[int]]:
        """Return names that are like a key, misspelled or longer, each with its nodes."""
        held = self._interior
        found = {}
        for name, rows in self.bearers_of(like_names(key, held.names)).items():
            if named := {row for row in rows if held.types[held.place[row]] not in STATING}:
                found[name] = named
        return found if len(found) <= BEARERS_MAX else {}

    def inside(self, rows: Iterable[int]) -> set[int]:
        """Return those of some nodes that are in the world."""
        place, within = self._interior.place, self._within
        return {row for row in set(rows) & place.keys() if within is None or within[place[row]]}

    def keep(self, rows: Iterable[int]) -> set[int]:
        """Return those of some nodes that may be hits."""
        place, seen = self._interior.place, self._seen
        return {row for row in rows if row in place and seen[place[row]]}

    def filed_under(self, rows: Iterable[int], most: int) -> set[int]:
        """Return what lives inside some nodes; nothing of one in which more than `most` live."""
        parents = np.frombuffer(self._interior.parents, dtype=np.int64)
        found = [np.flatnonzero(parents == row).tolist() for row in rows]
        return {self._interior.rows[at] for places in found for at in places if len(places) <= most}


class StoreNames:
    """The names in worlds that are too large to be held, by the name index of the store."""

    def __init__(self, view: View, counts: Callable[[Sequence[str]], Mapping[str, int]]) -> None:
        self._view = view
        self._reader = view.reader
        self._is_whole = is_whole(view)
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

        Nodes that were written without names being resolved are such. Some are compared one by
        one; of more, the text index finds those that have the words of a name.
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

    def worth(self, keys: Iterable[str]) -> Mapping[str, float]:
        """Return how much each key says, from 0 to 1: less if many nodes have its rarest word."""
        wanted = frozenset(keys)
        if not self._is_whole:  # What others wrote must not be felt.
            return dict.fromkeys(wanted, 1.0)
        counts = self._counts(sorted({word for key in wanted for word in words(key)}))
        return {key: _worth(key, counts.__getitem__) for key in wanted}

    def first_named(self, first: str) -> Iterable[int]:
        """Return the nodes with a first name, and more names than that."""
        rows = sorted(self._view.keep_world(self._named(words(first))))
        bodies = self._reader.bodies(rows, self._view.moment.known)
        return [body.row for body in bodies if first_name(body.type, body.name) == first]

    def like(self, key: str) -> Mapping[str, set[int]]:
        """Return names that are like a key, misspelled or longer, each with its nodes.

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
        """Return those of some nodes that are inside the worlds."""
        return self._view.keep_world(rows)

    def keep(self, rows: Iterable[int]) -> set[int]:
        """Return those of some nodes that may be hits."""
        return self._view.keep(rows)

    def filed_under(self, rows: Iterable[int], most: int) -> set[int]:
        """Return what lives inside some nodes; nothing of one in which more than `most` live."""
        known = self._view.moment.known
        found = [self._reader.children(row, known, limit=most + 1) for row in rows]
        return {child for children in found for child in children if len(children) <= most}


Vector = NDArray[np.float32]


class SeenQuestion(NamedTuple):
    """A rewritten question and what can be seen of the store for it."""

    query: Query
    view: View


def seen_question(
    reader: Reader,
    registry: Registry,
    query: Query,
    worlds: Sequence[int],
    within: Sequence[Sequence[int]],
    now: int,
) -> SeenQuestion:
    """Return a question as the handlers of its worlds want it read.

    Raises:
        ProviderError: a rewrite failed, or made something of the question that is not a question.
    """
    moment = moment_of(reader, query.as_of, now)
    before = query
    asked_in = _asked_in(reader, registry, worlds, within)
    for world in asked_in:
        query = rewrite(reader, registry, replace(query, world=world), moment)
    if query.world is not None and query.world != asked_in[-1]:
        worlds = find_worlds(reader, query.world)
    has_words = query.text == before.text or (query.text or "").strip()
    if query.seeds or query.vector is not None or not has_words:
        raise ProviderError("a rewrite of a recall must leave words to look for, and adds no start")
    if query.as_of != before.as_of:
        moment = moment_of(reader, query.as_of, now)
    return SeenQuestion(query, _view(reader, query, moment, worlds, within))


def question_query(
    text: str, types: Sequence[str] | None, as_of: AsOf, include_ended: bool, k: int
) -> Query:
    """Return a question as the query that handlers rewrite."""
    ops = () if types is None else (Op(kind="filter_type", types=tuple(types)),)
    return Query(text=text, ops=ops, as_of=as_of, include_superseded=include_ended, limit=k)


def _asked_in(
    reader: Reader,
    registry: Registry,
    worlds: Sequence[int],
    within: Iterable[Sequence[int]],
) -> list[Id | None]:
    """Return the worlds whose handlers rewrite the question, the one it is asked in at last."""
    if registry.is_flat:
        is_one = len(worlds) == 1 and worlds[0] != ROOT_ROW
        return [Id(reader.world(worlds[0]).id) if is_one else None]
    around = dict.fromkeys(row for group in (*within, worlds) for row in group)
    return [None if row == ROOT_ROW else Id(reader.world(row).id) for row in around]


def _view(
    reader: Reader,
    query: Query,
    moment: Moment,
    worlds: Sequence[int],
    within: Sequence[Sequence[int]],
) -> View:
    """Return what can be seen; the first filter of types is part of it, the others choose."""
    filters = list(query.ops)
    first = next((op for op in filters if op.kind == "filter_type"), None)
    types = instances = None
    if first is not None:
        filters.remove(first)
        widened = widened_types(reader, query, moment, worlds, first.types)
        types, instances = widened.names, widened.instances(reader, moment)

    def chosen(rows: set[int]) -> set[int]:
        for op in filters:
            nodes = reader.nodes(rows, moment.known)
            rows = filtered(reader, query, moment, worlds, nodes, op)
        return rows

    return View(
        reader,
        moment,
        worlds=worlds,
        members=query.widens_to_members,
        include_ended=includes_ended(query, moment),
        types=types,
        instances=instances or (),
        chosen=chosen if filters else None,
        answers=True,
        within=within,
    )


def held_question(
    search: Search, interior: HeldWorld, text: str, vector: Vector | None
) -> Vector | None:
    """Return the vector of a question to a world that is held in memory."""
    known = interior.text
    return _weighed(search, text, vector, interior.languages, known.rarity, known.rarity_max)


def stored_question(search: Search, view: View, text: str, vector: Vector | None) -> Vector | None:
    """Return the vector of a question to the whole store; of less than that, as it is."""
    if vector is None or not is_whole(view):
        return vector
    wide = search.wide()
    languages = wide.languages(view)
    forms = [words(text), *(words(text, code) for code in languages)]
    rarity = wide.rarity_of(view, sorted({word for form in forms for word in form}))
    return _weighed(search, text, vector, languages, rarity.__getitem__, rarity[""])


def words_asked(search: Search, view: View, interior: HeldWorld | None, text: str) -> AskedWords:
    """Return the words of a question with their rarity in what is searched."""
    if interior is None:
        wide = search.wide()
        languages = sorted(wide.languages(view))
        return asked_words(text, languages, partial(wide.rarity_of, view))
    held = interior.text
    return asked_words(
        text,
        sorted(interior.languages),
        lambda said: {word: held.rarity(word) if word else held.rarity_max for word in said},
        interior.having,
    )


def _weighed(
    search: Search,
    text: str,
    vector: Vector | None,
    languages: Collection[str],
    rarity: Callable[[str], float],
    top: float,
) -> Vector | None:
    if vector is None:
        return None
    parts = question_parts(
        text,
        lambda said: written_rarity(said, languages, rarity, top),
        top,
        frame_weight=SCALARS.frame_weight,
        rarity_power=SCALARS.rarity_power,
    )
    return search.vectors().ask_weighed(parts, vector)
