"""A question: its options, the query that it is, what it can see, its vector, the names in it.

*Several questions.* One sum of words would give all places to the question that more texts speak
of. So each question of several in one text is answered by itself, and so is the whole, because a
question may rest on the one before ("And who was with me?"). `hit_order.taking_turns` makes one
order of the answers.

*The query.* Handlers get a recall as the same `Query` that a pipeline gives them: the question is
its `text`, the wanted types are a `filter_type`, `k` is its `limit`. Whatever they return holds:
other words, another world or time, further filters, fewer hits. A recall has no walk, so a rewrite
that adds one is an error. The vector of a question has its words weighed by how rare they are in
what is searched.

*The names.* Which visible nodes do the names in a text mean?

    text ──name_spans──▶ keys ──KnownNames.bearers_of──▶ rows of named nodes

A world in memory answers from its own table of names (`HeldNames`), a larger one from the name
index of the store (`StoreNames` in `store_lanes`). Both know the same names: those of visible
nodes, their aliases, and a name without the qualifier in brackets behind it ("Tesla (company)").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from worlddb.claims.claim_edges import KeptReferences
from worlddb.errors import InvalidInputError, ProviderError
from worlddb.index.held_world import HeldWorld, Mask, first_word
from worlddb.index.name_index import STATING
from worlddb.index.ranking_numbers import SCALARS
from worlddb.index.search import Search
from worlddb.index.store_search import is_whole
from worlddb.language.proper_names import (
    NAME_WORDS_MAX,
    first_name,
    like_names,
    name_key,
    said_firsts,
    said_words,
)
from worlddb.language.ranking_features import question_parts, written_rarity
from worlddb.language.text_tokens import STOP, folded, words
from worlddb.model.address import Id
from worlddb.model.inputs import (
    Instant,
    check_fraction,
    check_integer,
    check_names,
    encode_text,
    to_micros,
)
from worlddb.model.records import NOW, AsOf, Op, Query
from worlddb.ontology.registry import Registry
from worlddb.recall.confidence import AskedWords, asked_words
from worlddb.recall.ranker import Weights, check_weight
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW
from worlddb.view.node_filters import filtered, widened_types
from worlddb.view.visibility import (
    Moment,
    View,
    accepted_class,
    find_worlds,
    follow_registrations,
    includes_ended,
    moment_of,
    rewrite,
)

TEXTS_KEPT = 4_096  # texts whose words are cached: the first texts of a recall come up again
SHORT_CHARS_MAX = 1_000  # of such a text: the words of a long one take much memory
BEARERS_MAX = 100
"""A name that more nodes bear than this names nobody in particular."""
SHORT_TEXT_WORDS_MAX = 25  # words of a text that states one thing: each may name something
NAME_LETTERS_MIN = 3  # "Lee"; two letters are mostly initials
LANES = ("text", "vector", "graph")
QUESTION_BYTES_MAX = 1 << 16  # Long enough for a pasted page; every word of it costs time.
QUESTIONS_MAX = 4  # in one; a text with more is a pasted page, and each costs the time of a recall
_QUESTION_END = re.compile(r"[?؟]+(?=\s|$)|？+(?![”’」』\"'])")
"""The end of a question that is not quoted; the full-width mark needs no space behind it."""
UNKNOWN_NAMES_MAX = 3  # of a question: each is compared with all names of a world


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """How lanes are run, and how their results become one order.

    `weights` names the lanes that run and how much each counts; `depth` is how many nodes a lane
    may rank; `c` is the constant of reciprocal rank fusion. `weighing` says how the hits are
    weighed in the end; without it they are ordered by the fused ranks alone. With `recency`, of
    weighed hits that answer alike the later one is first. With `worlds`, a world that matches
    better than anything inside it is a hit, too. With `preferences`, what the asker prefers or
    always wants has places among the first hits of a question that asks for advice or a task. With
    `classes`, what was accepted as the same is one.
    """

    c: int = SCALARS.fusion_c
    depth: int = SCALARS.lane_depth
    weights: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(LANES, 1.0))
    weighing: Weights | None = field(default_factory=Weights)
    recency: bool = True
    worlds: bool = True
    preferences: bool = True
    classes: bool = True

    def __post_init__(self) -> None:
        check_integer(self.c, "c", 0)
        check_integer(self.depth, "depth", 1)
        if not isinstance(self.weights, Mapping) or not self.weights:
            raise InvalidInputError(f"weights: give some of {', '.join(LANES)} a number")
        for lane, weight in self.weights.items():
            if lane not in LANES:
                raise InvalidInputError(f"unknown lane {lane!r}; use {', '.join(LANES)}")
            check_weight(weight, lane)
        if self.weighing is not None and not isinstance(self.weighing, Weights):
            raise InvalidInputError(
                f"weighing: give worlddb.Weights(…) or None, not {self.weighing!r}"
            )


DEFAULT_SETTINGS = RecallSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with its options; `question_of` checks them. It may be names alone."""

    text: str
    names: tuple[str, ...] = ()
    k: int = 10
    max_tokens: int | None = None
    min_confidence: float | None = None
    as_of: AsOf = NOW
    types: tuple[str, ...] | None = None
    include_ended: bool = False
    explain: bool = True
    at: Instant | None = None
    settings: RecallSettings = DEFAULT_SETTINGS

    @property
    def is_names(self) -> bool:
        """Whether it has names and no text."""
        return bool(self.names) and not self.text.strip()


def question_of(text: str, *, names: str | Sequence[str] | None = None, **options: Any) -> Question:
    """Return a question after checking every option.

    Raises:
        InvalidInputError: it is empty or too long, or an option is wrong.
    """
    plain = text.replace("\0", " ") if isinstance(text, str) else text
    encode_text(plain, "question", QUESTION_BYTES_MAX)
    said = () if names is None else check_names(names, "names")
    if not (text.strip() or said):
        raise InvalidInputError("question: give at least one word, or names")
    question = Question(text=plain, names=said, **options)
    check_integer(question.k, "k", 1)
    if question.max_tokens is not None:
        check_integer(question.max_tokens, "max_tokens", 1)
    check_fraction(question.min_confidence, "min_confidence")
    if question.at is not None:
        to_micros(question.at, "at")
    settings = question.settings
    if not isinstance(settings, RecallSettings):
        raise InvalidInputError(
            f"settings: give worlddb.RecallSettings(…), not {question.settings!r}"
        )
    return question


def questions_in(text: str) -> list[str]:
    """Return the questions of a text that asks several, each with what was said before it.

    Empty if it asks one or none, and if it asks too many.
    """
    ends = [match.end() for match in _QUESTION_END.finditer(text)]
    if not 1 < len(ends) <= QUESTIONS_MAX:
        return []
    ends[-1] = len(text)  # What is said last belongs to the last question.
    starts = [0, *ends[:-1]]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


class NameSpan(NamedTuple):
    """Some words of a text that may be a name: the numbers of the first word and the one after."""

    first: int
    end: int
    key: str


class KnownNames(Protocol):
    """The names of one view, the words that its memories open with, and known references."""

    references: KeptReferences

    def bearers_of(self, keys: Iterable[str]) -> Mapping[str, set[int]]:
        """Return the visible nodes of each key that is a name."""

    def may_open(self, word: str) -> bool:
        """Return whether a name may begin with a word; True if that is not known."""

    def first_named(self, first: str) -> Iterable[int]:
        """Return the visible nodes that have this first name and a last name."""

    def worth(self, keys: Iterable[str]) -> Mapping[str, float]:
        """Return the worth of each key, 0 to 1: less the more nodes have its rarest word."""

    def like(self, key: str) -> Mapping[str, set[int]]:
        """Return names similar to a key, misspelled or longer, each with its nodes.

        The opening words of a text are no such name: "The capital of Japan" is not Japan.
        """

    def inside(self, rows: Iterable[int]) -> set[int]:
        """Return the nodes among `rows` that are inside the view, whatever their validity."""

    def keep(self, rows: Iterable[int]) -> set[int]:
        """Return the nodes among `rows` that may be hits."""

    def filed_under(self, rows: Iterable[int], most: int) -> set[int]:
        """Return the nodes that live inside others; none of a node that holds more than `most`."""


@lru_cache(TEXTS_KEPT)
def _written(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of a text as they are written, and as names are compared."""
    said = said_words(text)
    return tuple(said), tuple(map(folded, said))


def name_spans(
    text: str, may_open: Callable[[str], bool], *, capitals: bool
) -> tuple[NameSpan, ...]:
    """Return the stretches of a text that may be names, by their start, longer ones first.

    `may_open` says of a word whether a known name may begin with it. With `capitals`, a stretch
    must begin with a capital or a digit, unless the text is short. A longer text writes names with
    capitals, and looking up every other word would be in vain. A question may have names in lower
    case.
    """
    said, plain = (_written if len(text) <= SHORT_CHARS_MAX else _written.__wrapped__)(text)
    capitals = capitals and len(said) > SHORT_TEXT_WORDS_MAX
    return tuple(
        NameSpan(at, end, " ".join(plain[at:end]))
        for at, word in enumerate(said)
        if may_open(plain[at]) and (not capitals or word[0].isupper() or word[0].isdigit())
        for end in range(min(at + NAME_WORDS_MAX, len(said)), at, -1)
        # "It" and "1989" alone may be titles, but hardly ever are meant as such; and hardly any
        # name ends with a word like "of", unless it is written as part of it ("She Hate Me").
        if (plain[end - 1] not in STOP or (end > at + 1 and said[end - 1][0].isupper()))
        and (end > at + 1 or not plain[at].isdigit())
    )


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
    """A name in a question: its first word's number, its key, its nodes, how sure it is."""

    first: int
    key: str
    rows: set[int]
    sureness: float = 1.0


def question_names(
    names: KnownNames, reader: Reader, moment: Moment, question: str, classes: bool
) -> list[SaidName]:
    """Return the names in a question, and first names that only one person bears.

    A name that nobody has is looked up once more as misspelled, or as part of a longer name. Words
    in lower case are as surely a name as they are rare: "power" may be the title of a text.
    """
    spans = name_spans(question, names.may_open, capitals=False)
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
    """Return the names that one word may mean: a name it misspells, or a person's last name.

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
    """Return whether a name is capitalised; a single first word of a question does not count."""
    said = written[max(span.first, 1) : span.end]
    return any(word[0].isupper() or word[0].isdigit() for word in said)


def name_worth(key: str, count: Callable[[str], int]) -> float:
    """Return the worth of a name, 0 to 1: less the more nodes have its rarest word."""
    least = min((count(word) for word in words(key)), default=1)
    worth: float = max(1, least) ** -SCALARS.commonness_power
    return worth


def named_rows(
    names: KnownNames, reader: Reader, moment: Moment, classes: bool, name: str
) -> set[int]:
    """Return the nodes of a name; of a name that nobody has, those with similar names."""
    key = name_key(name)
    if rows := names.bearers_of([key]).get(key):
        return set(rows)
    return one_person(names, reader, names.first_named(key), moment, classes) or set().union(
        *names.like(key).values()
    )


def unknown_names(question: str, taken: set[int]) -> list[tuple[int, str]]:
    """Return the first capitalised stretches that are no known name, each with its place.

    The first word of a question alone does not count: it always has a capital.
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
    """Return the bearers of a first name if they are one person at the moment, else nothing."""
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
        self.references: KeptReferences = interior.references
        self._seen = seen
        self._within = within

    def bearers_of(self, keys: Iterable[str]) -> Mapping[str, set[int]]:
        held = self._interior
        found = {}
        for key in keys:
            places = held.names.get(key)  # Most stretches of a text are no name.
            if places and (len(places) <= BEARERS_MAX or self._within is not None):
                rows = self.inside(held.rows[at] for at in places)
                if 0 < len(rows) <= BEARERS_MAX:
                    found[key] = rows
        return found

    def may_open(self, word: str) -> bool:
        return first_word(word) in self._interior.openings

    def first_named(self, first: str) -> Iterable[int]:
        return self.inside(self._interior.firsts.get(first, ()))

    def worth(self, keys: Iterable[str]) -> Mapping[str, float]:
        return {key: name_worth(key, self._interior.text.count) for key in keys}

    def like(self, key: str) -> Mapping[str, set[int]]:
        held = self._interior
        found = {}
        for name, rows in self.bearers_of(like_names(key, held.names)).items():
            if named := {row for row in rows if held.types[held.place[row]] not in STATING}:
                found[name] = named
        return found if len(found) <= BEARERS_MAX else {}

    def inside(self, rows: Iterable[int]) -> set[int]:
        place, within = self._interior.place, self._within
        return {row for row in set(rows) & place.keys() if within is None or within[place[row]]}

    def keep(self, rows: Iterable[int]) -> set[int]:
        place, seen = self._interior.place, self._seen
        return {row for row in rows if row in place and seen[place[row]]}

    def filed_under(self, rows: Iterable[int], most: int) -> set[int]:
        parents = np.frombuffer(self._interior.parents, dtype=np.int64)
        found = [np.flatnonzero(parents == row).tolist() for row in rows]
        return {self._interior.rows[at] for places in found for at in places if len(places) <= most}


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
    """Return a question after the rewrites of the handlers of its worlds, with its view.

    Raises:
        ProviderError: a rewrite failed, or its result is no question.
    """
    moment = moment_of(reader, query.as_of, now)
    before = query
    follow_registrations(registry, reader)
    asked_in = _asked_in(reader, registry, worlds, within)
    if registry.usual_switches:
        usual = registry.usual_switches[query.include_superseded]
        query = replace(query, world=asked_in[-1], **usual)
    else:
        for world in asked_in:
            query = rewrite(reader, registry, replace(query, world=world), moment)
    if query.world is not None and query.world != asked_in[-1]:
        worlds = find_worlds(reader, query.world)
    has_words = query.text == before.text or (query.text or "").strip()
    if query.seeds or query.vector is not None or not has_words:
        raise ProviderError("a rewrite of a recall must keep words to search for and add no start")
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
    """Return the worlds whose handlers rewrite the question; last the one it is asked in."""
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
    """Return the view of a query: with its first type filter; the other filters choose in it."""
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
    """Return the vector of a question, weighed if the view is the whole store."""
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
