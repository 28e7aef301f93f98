"""Store resolver: which node of the store a name may mean, on one snapshot and in one world.

    names, attributes ──keys──▶ name index ──┐
    vector ──────────nearest──▶ held world ──▶ what can be seen ──▶ tiers ──▶ Verdict

Reads only; `ingest/plan.py` decides what to do with a verdict. A drafted node has no vector yet,
because no writer waits for a model; a node of the store has one, where `vectors` are given.
Everything is read for many names at once (`fetch`) and kept for this snapshot: a text with six
names costs about as many statements as a text with one.

A name is filed under keys, so that the few names it may be are found among a million. A key that
finds more names than `ResolverSettings.key_names_max` says nothing and is skipped: what is too
common to find is too common to decide. So that a common word hides no name, words are also filed in
pairs.

    =john smith    the folded name
    w:john         the longest words, and the last two in one: rare words, whatever is beside them
    p:j5 s53       the sounds of the first and the last word: slips in both, in either order
    b:joh smi      how they begin: slips further on that change the sound
    i:j s53        a letter and the sound of the other: initials, nicknames, other first names
    s:f41          the sound of a single word
    a:email …      what tells people apart, of `attribute_keys`
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from worlddb.embed.compose import Vector
from worlddb.errors import WorldDBError
from worlddb.identity.likelihood import cleaned, strong_of
from worlddb.identity.match_values import (
    DEFAULT_SETTINGS,
    Match,
    Named,
    Population,
    Resolved,
    ResolverSettings,
    Tiebreaker,
    Verdict,
)
from worlddb.identity.resolver import Resolver
from worlddb.index.composed_worlds import STORED
from worlddb.index.held_world import VectorRows, ranked
from worlddb.index.name_index import NOT_NAMED, NameIndex, content_key, name_number
from worlddb.index.search import Search
from worlddb.index.vectors import EMBED_BATCH, Vectors
from worlddb.language.person_names import read_name
from worlddb.language.word_sound import sound_code
from worlddb.model.address import Id
from worlddb.model.drafts import DraftNode
from worlddb.model.records import NOW
from worlddb.resolve.known import formal_names
from worlddb.store.protocol import ROOT_ROW, BodyRow, Reader, Store
from worlddb.view.visibility import NOWHERE, View, moment_of

WORDS_MAX = 3
BEGINNING = 3


def block_keys(name: str) -> set[str]:
    """Return the keys of a name."""
    parts = read_name(name)
    if not parts.key:
        return set()
    keys = {f"={parts.key}"}
    words = parts.words
    if not words:
        return keys
    longest = sorted(words, key=lambda word: (-len(word), word))[:WORDS_MAX]
    keys.update(f"w:{word}" for word in longest if len(word) > 1)
    numbers = "".join(f" {number}" for number in parts.numbers)
    if len(words) == 1:
        keys.add(f"s:{sound_code(words[0])}{numbers}")
        keys.add(f"b:{words[0][: BEGINNING + 1]}{numbers}")
        return keys
    first, last = words[0], words[-1]
    keys.add(f"w:{words[-2]}{last}")
    one, other = sound_code(first), sound_code(last)
    keys.add(f"p:{min(one, other)} {max(one, other)}{numbers}")
    begin, end = sorted((first[:BEGINNING], last[:BEGINNING]))
    keys.add(f"b:{begin} {end}{numbers}")
    keys.update(f"i:{letter} {other}{numbers}" for letter in _letters(first))
    keys.update(f"i:{letter} {one}{numbers}" for letter in _letters(last))
    return keys


def _letters(word: str) -> set[str]:
    """Return the letters a word may be shortened to: Bob is B, and R for Robert."""
    return {word[0], *(name[0] for name in formal_names(word))}


def attribute_keys(
    attributes: Mapping[str, str], settings: ResolverSettings = DEFAULT_SETTINGS
) -> set[str]:
    """Return the keys of what tells people apart: day of birth, e-mail, telephone."""
    strong = strong_of(cleaned(attributes), settings)
    return {f"a:{name} {value}" for name, value in strong.items()}


BEHIND_MAX = EMBED_BATCH
"""How many nodes may still be without a vector for them to be embedded on the way."""
PLAIN_NAME_CHARS_MAX, PLAIN_NAME_WORDS_MAX = 40, 4
"""A longer name may be a sentence; the tiers tell."""
NEAR_MAX = 8  # Proposals of the embedding tier are few by design: more would be noise.
UNINDEXED_MAX = 1_000  # The newest nodes are looked at one by one while the index is behind.
SAME_MAX = 200  # Equal texts of one world that are compared; more say the same as these.
GENERIC = ("Entity",)
NOTHING: Mapping[str, str] = MappingProxyType({})

_ROLE = re.compile(r"(?:my|our|your|his|her|its|their)\s|\S.*['’]s?\s", re.IGNORECASE)


def name_index(store: Store) -> NameIndex:
    """Return the name index of a store, filed by the keys that the resolver looks for."""
    return NameIndex(store, block_keys, attribute_keys)


def identifying(name: str, aliases: Sequence[str]) -> tuple[str, ...]:
    """Return the names that tell one thing from another.

    "My sister" leads to a person, but two people may be it, one after the other or both.
    """
    return (name, *(alias for alias in aliases if not _ROLE.match(alias)))


def resolver_in(
    reader: Reader,
    row: int | None,
    now: int,
    settings: ResolverSettings | None = None,
    tiebreaker: Tiebreaker | None = None,
    *,
    vectors: NameVectors | None = None,
    within: Sequence[Sequence[Id]] = (),
) -> StoreResolver:
    """Return a resolver of names in a world, for a caller who may be bound `within` others.

    Without a `row` the world is still to be made, and names are looked for in the root world.
    """
    chosen = settings or DEFAULT_SETTINGS
    moment = moment_of(reader, NOW, now)
    worlds = [ROOT_ROW if row is None else row]
    view = View(reader, moment, worlds=worlds, members=True, ended=False)
    said = None
    if within:
        # A world that is still to be made has no row, and nothing in it.
        more = [[reader.node_row(one) or NOWHERE for one in group] for group in within]
        said = View(reader, moment, worlds=worlds, members=True, ended=False, within=more)
    return StoreResolver(view, chosen, tiebreaker, vectors, said)


class StoreResolver:
    """Resolves names on one snapshot, inside one world."""

    def __init__(
        self,
        view: View,
        settings: ResolverSettings,
        tiebreaker: Tiebreaker | None = None,
        vectors: NameVectors | None = None,
        said: View | None = None,
    ) -> None:
        self.reader = view.reader
        self.view = view
        # Texts are compared with what the writer may see; that may be less than where names count.
        self.said = said or view
        self._tiebreaker = tiebreaker
        self._settings = settings
        self._vectors = vectors
        self._home = view.worlds[0]
        self._filed: dict[int, dict[str, list[int]]] = {self._home: {}, ROOT_ROW: {}}
        self._visible: dict[int, bool] = {}
        self._bodies: dict[int, BodyRow] = {}
        self._aliases: dict[int, list[str]] = {}
        self._attributes: dict[int, list[Mapping[str, str]]] = {}
        self._counts: dict[str, int] = {}
        self._new_rows: list[int] | None = None
        self._population: Population | None = None

    def verdict(self, node: DraftNode) -> Verdict:
        """Return what the resolver says of a drafted node."""
        named = _named(node)
        return self._exact(named) or self.of(named, set())

    def _exact(self, named: Named) -> Verdict | None:
        """Return the only node of this world that bears the very name and type, if that is sure.

        It is sure where no attribute could speak against it and nobody else here bears the name.
        Everything else is for the tiers.
        """
        if "exact" not in self._settings.tiers or named.attributes or len(named.names) > 1:
            return None
        name = named.names[0]
        key = read_name(name).key if len(name) <= PLAIN_NAME_CHARS_MAX else ""
        if not key or len(key.split()) > PLAIN_NAME_WORDS_MAX or self._unindexed():
            return None
        bearers = set(self._filed[self._home].get(f"={key}", ()))
        bearers |= set(self._filed[ROOT_ROW].get(f"={key}", ()))
        seen = self._keep(bearers)
        if len(seen) != 1:
            return None
        found = self._options(seen)
        if len(found) != 1 or found[0].type != named.type or found[0].attributes:
            return None
        if read_name(found[0].names[0]).key != key:
            return None
        names = (name, found[0].names[0])
        return Resolved(
            Match(
                option=found[0],
                tier="exact",
                score=1.0,
                confidence=1.0,
                compared=names,
                reuses=True,
            )
        )

    def of(self, named: Named, apart: set[int]) -> Verdict:
        """Return what the resolver says of something named, rows `apart` from it left out."""
        rows = self._best(self._candidates(named), self._most(named))
        if self._vectors is not None and named.vector is not None:
            types = {named.type, *GENERIC}
            rows |= {*self._vectors.near(self.view, named.vector, types, self._settings.cosine)}
        options = self._options(rows - apart, named.attributes)
        if self._population is None:
            # How many bear a name is counted in this world: other worlds are other people's.
            total = self.reader.lookups.names(self._home)
            self._population = Population(total, self._holding)
        resolver = Resolver(self._settings, tiebreaker=self._tiebreaker)
        return resolver.resolve(named, options, self._population)

    def named(self, row: int) -> Named | None:
        """Return a node of the store as the resolver sees it; None if it has no name."""
        found = self._options([row])
        return found[0] if found else None

    def ident(self, row: int) -> Id:
        """Return the id of a row that was looked at."""
        self._read([row])
        return Id(self._bodies[row].id)

    def fetch(self, nodes: Sequence[DraftNode]) -> None:
        """Read what the verdicts of some drafted nodes will need, for all of them at once."""
        named = [_named(node) for node in nodes]
        self._file({key for one in named for key in self._keys(one)})
        rows = {row for one in named for row in self._candidates(one)[: 2 * self._most(one)]}
        self._keep(rows)
        self._read_notes(row for row in rows if self._visible[row])

    def seen(self, ids: Iterable[Id]) -> set[Id]:
        """Return those of some nodes that can be seen here: not what has ended or was erased."""
        rows = {row: ident for ident in ids if (row := self.reader.node_row(ident)) is not None}
        return {rows[row] for row in self.view.keep(rows)}

    def keep_said(self, rows: Iterable[int]) -> set[int]:
        """Return those of some rows of this world that the writer may see."""
        return set(rows) if self.said is self.view else self.said.keep_world(rows)

    def same_content(self, node: DraftNode, parent: int) -> int | None:
        """Return the row of a live node of `parent` that says the same already."""
        if node.content:
            number = content_key(node.type, node.content, parent)
            found = self.reader.lookups.find([number], SAME_MAX)
            rows = found[number] + self._unindexed()
        else:
            rows = self.reader.rows_named([node.name])
        if not rows:
            return None
        seen = self.said.keep(rows)
        for body in self.reader.bodies(sorted(seen)):
            if body.parent == parent and (body.type, body.content) == (node.type, node.content):
                if body.name == node.name:
                    return body.row
        return None

    # -- candidates --------------------------------------------------------------------------------

    def _keys(self, named: Named) -> set[str]:
        keys = attribute_keys(named.attributes, self._settings)
        keys.update(key for name in named.names for key in block_keys(name))
        return keys

    def _most(self, named: Named) -> int:
        settings = self._settings
        return settings.options_max if named.attributes else settings.options_by_name_max

    def _candidates(self, named: Named) -> list[int]:
        """Return the rows that share keys with something named, those that share most first."""
        keys = self._keys(named)
        self._file(keys)
        here, everywhere = self._filed[self._home], self._filed[ROOT_ROW]
        telling = self._settings.key_names_max
        shared: Counter[int] = Counter()
        for key in keys:
            # A key that finds more says nothing about who is meant, unless it is the name.
            tells = len(here[key]) <= telling or key.startswith("=")
            rows = set(here[key][:telling] if tells else ())
            # Of those who bear the very name, some have to be looked at, also of very many: else
            # the one of this world would seem to be the only one.
            if len(everywhere[key]) <= telling or key.startswith("="):
                rows.update(everywhere[key][:telling])
            shared.update(rows)
        if fresh := self._unindexed():
            for body in self.reader.bodies(fresh):
                shared[body.row] = len(keys & block_keys(body.name))
        return sorted(shared, key=lambda row: (-shared[row], row))

    def _file(self, keys: set[str]) -> None:
        """Read the newest rows filed under keys: in this world, and in all, for its members."""
        missing = sorted(keys - self._filed[self._home].keys())
        if not missing:
            return
        worlds = (self._home,) if self._home == ROOT_ROW else (self._home, ROOT_ROW)
        numbers = {(key, world): name_number(key, world) for key in missing for world in worlds}
        most = self._settings.key_names_max + 1  # One more than counts, to see that there are more.
        found = self.reader.lookups.find(sorted(set(numbers.values())), most)
        for (key, world), number in numbers.items():
            self._filed[world][key] = found[number]

    def _best(self, rows: list[int], most: int) -> set[int]:
        """Return the first of some rows that can be seen, up to `most`."""
        best: list[int] = []
        for at in range(0, len(rows), 2 * most):
            part = rows[at : at + 2 * most]
            seen = self._keep(part)
            best += [row for row in part if row in seen]
            if len(best) >= most:
                break
        return set(best[:most])

    def _keep(self, rows: Iterable[int]) -> set[int]:
        """Return those of some rows that can be seen."""
        wanted = set(rows)
        missing = wanted - self._visible.keys()
        if missing:
            kept = self.view.keep(missing)
            self._visible.update((row, row in kept) for row in missing)
        return {row for row in wanted if self._visible[row]}

    def _unindexed(self) -> list[int]:
        """Return the rows of what was written since the index was brought up to date."""
        if self._new_rows is None:
            node, _ = self.reader.lookups.reached()
            rows = range(node + 1, self.reader.head().nodes + 1)
            self._new_rows = list(rows)[-UNINDEXED_MAX:]
        return self._new_rows

    # -- what is known of candidates ---------------------------------------------------------------

    def _read(self, rows: Iterable[int]) -> None:
        missing = set(rows) - self._bodies.keys()
        if missing:
            self._bodies.update((body.row, body) for body in self.reader.bodies(sorted(missing)))

    def _read_notes(self, rows: Iterable[int]) -> None:
        """Read bodies, aliases and attributes of rows that were not read before."""
        missing = sorted(set(rows) - self._aliases.keys())
        if not missing:
            return
        self._read(missing)
        for row in missing:
            self._aliases[row], self._attributes[row] = [], []
        for row, alias in self.reader.aliases(missing):
            self._aliases[row].append(alias)
        for row, attributes in self.reader.lookups.attributes(missing):
            self._attributes[row].append(attributes)

    def _options(self, rows: Iterable[int], asked: Mapping[str, str] = NOTHING) -> list[Named]:
        wanted = sorted(rows)
        self._read_notes(wanted)
        found = (self._bodies[row] for row in wanted if row in self._bodies)
        bodies = [body for body in found if body.name and body.type not in NOT_NAMED]
        vectors = self._vectors.of(self.reader, bodies) if self._vectors is not None else {}
        return [
            Named(
                key=body.row,
                type=body.type,
                names=identifying(body.name, self._aliases[body.row]),
                attributes=self._told(body.row, asked),
                vector=vectors.get(body.row),
            )
            for body in bodies
        ]

    def _told(self, row: int, asked: Mapping[str, str]) -> Mapping[str, str]:
        """Return the attributes of a node: of several values the one asked for, or the latest."""
        if not self._attributes[row]:
            return NOTHING
        wanted = cleaned(asked)
        told: dict[str, str] = {}
        for attributes in self._attributes[row]:
            for name, value in cleaned(attributes).items():
                if name not in told or told[name] != wanted.get(name):
                    told[name] = value
        return told

    def _holding(self, word: str) -> int:
        """Return about how many names hold a word."""
        if word not in self._counts:
            self._counts[word] = self.reader.lookups.count(name_number(f"w:{word}", self._home))
        return self._counts[word]


def _named(node: DraftNode) -> Named:
    return Named(
        key=node.key,
        type=node.type,
        names=identifying(node.name, node.aliases),
        attributes=node.attributes,
    )


class NameVectors:
    """The vectors of one store's names, for the embedding tier.

    Nobody waits for a model here who did not ask for one: a store that was never searched has no
    vectors and stays without, and where many nodes wait for theirs, the next search makes them. A
    world too large to be held in memory is not looked through.
    """

    def __init__(self, search: Search, vectors: Vectors) -> None:
        self._search = search
        self._vectors = vectors

    @classmethod
    def at_hand(cls, search: Search, store: Store) -> NameVectors | None:
        """Return the vectors of a store, brought up to date; None if that is not done soon.

        An embedder that fails is none: meaning only ever adds a proposal.
        """
        if not search.has_vectors:
            return None
        try:
            with store.read() as reader:
                model = next((row for row in reader.derived.models() if row.active), None)
                if model is None or reader.head().nodes - model.embedded > BEHIND_MAX:
                    return None
            vectors = search.vectors()
            vectors.catch_up()
        except WorldDBError:
            return None
        return cls(search, vectors)

    def of(self, reader: Reader, bodies: Iterable[BodyRow]) -> dict[int, Vector]:
        """Return the vectors of names: of nodes that are a name and nothing else.

        What is said about a thing is near what is said about another of its kind.
        """
        rows = [body.row for body in bodies if not body.content]
        model = self._vectors.model(reader)
        if model is None or not rows:
            return {}
        found = reader.derived.vectors(model.number, rows)
        return {row: np.frombuffer(body, STORED).astype(np.float32) for row, body in found}

    def near(self, view: View, vector: Vector, types: set[str], least: float) -> list[int]:
        """Return the rows of the nodes in view that are nearest a vector, and near enough."""
        reader = view.reader
        with self._search.interior(reader, view.worlds, view.moment, view.members) as interior:
            if interior is None:
                return []
            matrix = interior.vectors(reader, self._vectors)
            cosines = VectorRows(matrix, np.arange(len(matrix))).of(vector)
            seen = interior.seen(view.moment, ended=view.ended, types=types) & (cosines >= least)
            places = ranked(np.where(seen, cosines, 0.0), interior.ids, NEAR_MAX)
            return [interior.rows[place] for place in places]
