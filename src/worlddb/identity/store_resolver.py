"""Finds the node of a store that a name refers to, on one snapshot and in one world.

    names, attributes ──keys──▶ name index ──┐
    vector ──────────nearest──▶ held world ──▶ visible nodes ──▶ tiers ──▶ Verdict

This module only reads; `ingest/plan.py` acts on a verdict. A drafted node has no vector yet,
because a write never waits for a model; a stored node has one if `vectors` are given. Everything is
read for many names at once (`fetch`) and kept for the snapshot, so a text with six names costs
about as many statements as a text with one.

Names are indexed by keys, which find the few possible names among a million. A key with more than
`ResolverSettings.key_names_max` names is skipped: it is too common to decide. Words are also
indexed in pairs, so that a common word hides no name.

    =john smith    the folded name
    n:john smith   the name as a text has it, if different: without signs and qualifier
    w:john         the longest words, and the last two joined: rare words, whatever is beside them
    p:j5 s53       the sounds of the first and the last word: slips in both, in either order
    b:joh smi      their first letters: slips further on that change the sound
    i:j s53        a letter and the sound of the other: initials, nicknames, other first names
    s:f41          the sound of a single word
    a:email …      a date of birth or an identifier
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from worlddb.embed.embedder import Vector
from worlddb.errors import WorldDBError
from worlddb.identity.likelihood import cleaned, strong_of
from worlddb.identity.match_values import (
    DEFAULT_SETTINGS,
    Match,
    NamedNode,
    Population,
    ResolverSettings,
    Tiebreaker,
)
from worlddb.identity.name_comparison import may_fit
from worlddb.identity.resolver import Resolver
from worlddb.index.composed_worlds import loaded
from worlddb.index.held_world import VectorRows, ranked
from worlddb.index.name_index import NameIndex, name_number
from worlddb.index.search import Search
from worlddb.index.vectors import EMBED_BATCH, Vectors
from worlddb.language.proper_names import (
    Name,
    formal_names,
    name_key,
    read_name,
    sound_code,
    unqualified,
)
from worlddb.model.address import Id, content_keys
from worlddb.model.inputs import to_micros
from worlddb.model.records import NOT_NAMED, NOW, DraftNode
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW, BodyRow
from worlddb.view.visibility import NOWHERE, View, inside, moment_of

NAMES_CACHED = 1 << 12  # a write looks up, compares and indexes the names of a text
KEY_WORDS_MAX = 3  # the longest words of a name are the rarest; more keys make the index larger
KEY_PREFIX_CHARS = 3  # a slip in the first three letters is rare
BEHIND_MAX = EMBED_BATCH
"""Nodes without a vector that are embedded at once; with more, the embedding tier is skipped."""
PLAIN_NAME_CHARS_MAX, PLAIN_NAME_WORDS_MAX = 40, 4
"""A longer name may be a sentence; the tiers check that."""
NEAREST_MAX = 8  # options by meaning: the embedding tier proposes few nodes; more would be noise
UNINDEXED_MAX = 1_000  # the newest nodes are compared one by one while the index is behind
EQUAL_TEXTS_MAX = 200  # equal texts of one world that are compared; more add nothing
GENERIC_TYPES = ("Entity",)
NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})

_ROLE = re.compile(r"(?:my|our|your|his|her|its|their)\s|\S.*['’]s?\s", re.IGNORECASE)


@lru_cache(maxsize=NAMES_CACHED)
def block_keys(name: str) -> frozenset[str]:
    """Return the keys under which a name is indexed."""
    parts = read_name(name)
    return frozenset(_block_keys(name, parts)) if parts.key else frozenset()


def _block_keys(name: str, parts: Name) -> set[str]:
    keys = {f"={parts.key}"}
    said = {name_key(name), name_key(unqualified(name))} - {"", parts.key}
    keys.update(f"n:{key}" for key in said)
    words = parts.words
    if not words:
        return keys
    longest = sorted(words, key=lambda word: (-len(word), word))[:KEY_WORDS_MAX]
    keys.update(f"w:{word}" for word in longest if len(word) > 1)
    numbers = "".join(f" {number}" for number in parts.numbers)
    if len(words) == 1:
        keys.add(f"s:{sound_code(words[0])}{numbers}")
        keys.add(f"b:{words[0][: KEY_PREFIX_CHARS + 1]}{numbers}")
        return keys
    first, last = words[0], words[-1]
    keys.add(f"w:{words[-2]}{last}")
    one, other = sound_code(first), sound_code(last)
    keys.add(f"p:{min(one, other)} {max(one, other)}{numbers}")
    begin, end = sorted((first[:KEY_PREFIX_CHARS], last[:KEY_PREFIX_CHARS]))
    keys.add(f"b:{begin} {end}{numbers}")
    keys.update(f"i:{letter} {other}{numbers}" for letter in _letters(first))
    keys.update(f"i:{letter} {one}{numbers}" for letter in _letters(last))
    return keys


def _letters(word: str) -> set[str]:
    """Return the initials that a word may have: B for Bob, and R for Robert."""
    return {word[0], *(name[0] for name in formal_names(word))}


def attribute_keys(
    attributes: Mapping[str, str], settings: ResolverSettings = DEFAULT_SETTINGS
) -> set[str]:
    """Return the keys of the attributes that identify a person: birth, e-mail, telephone."""
    if not attributes:
        return set()
    strong = strong_of(cleaned(attributes), settings)
    return {f"a:{name} {value}" for name, value in strong.items()}


def name_index(store: Store) -> NameIndex:
    """Return the name index of a store, with the keys that the resolver looks up."""
    return NameIndex(store, block_keys, attribute_keys)


def identifying(name: str, aliases: Sequence[str]) -> tuple[str, ...]:
    """Return the names that identify a node: roles are left out.

    "My sister" finds a person, but two people may be called so.
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
    """Return a resolver of names in a world, for a caller who may be limited to worlds `within`.

    Without a `row` the world does not exist yet, and names are looked up in the root world.
    """
    moment = moment_of(reader, NOW, now)
    worlds = [ROOT_ROW if row is None else row]
    view = View(reader, moment, worlds=worlds, members=True, include_ended=False)
    said = None
    if within:
        # A world that does not exist yet has no row and is empty.
        more = [[reader.node_row(one) or NOWHERE for one in group] for group in within]
        said = View(reader, moment, worlds=worlds, members=True, include_ended=False, within=more)
    return StoreResolver(view, settings or DEFAULT_SETTINGS, tiebreaker, vectors, said)


def alike(
    reader: Reader, texts: Iterable[tuple[str, str, str]], parent: int, now: int
) -> list[int]:
    """Return the rows in the content index for any (type, name, content) in a world.

    A node that was born in the root world may live in this world by now.
    """
    return reader.alike(content_keys(texts, {parent, ROOT_ROW}), now, EQUAL_TEXTS_MAX)


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
        # Texts are compared only with those that the writer may see, which may be fewer.
        self.said = said or view
        self._tiebreaker = tiebreaker
        self._settings = settings
        self._vectors = vectors
        self._home = view.worlds[0]
        self._filed: dict[int, dict[str, list[int]]] = {self._home: {}, ROOT_ROW: {}}
        self._fetched: dict[Hashable, tuple[NamedNode, Match | None]] = {}
        self._visible: dict[int, bool] = {}
        self._outside: set[int] = set()
        self._bodies: dict[int, BodyRow] = {}
        self._aliases: dict[int, list[str]] = {}
        self._attributes: dict[int, list[Mapping[str, str]]] = {}
        self._counts: dict[str, int] = {}
        self._drafted_words: set[str] = set()
        self._shared: dict[tuple[str, ...], list[int]] = {}
        self._new_rows: list[int] | None = None
        self._population: Population | None = None

    def matches(self, node: DraftNode) -> tuple[Match, ...]:
        """Return the nodes that a drafted node is or may be, best first.

        For a word that may not be a name: the only node of exactly this name and type, if any.
        """
        fetched = self._fetched.get(node.key)
        if fetched is None:
            named = _named(node)
            fetched = named, self._exact(named, self._whole_key(named))
        named, found = fetched
        if found is not None:
            return (found,)
        return () if node.known_only else self.of(named, set())

    def _exact(self, named: NamedNode, key: str) -> Match | None:
        """Resolve without the tiers: the only visible node with exactly this name and type.

        None if the tiers must decide: an attribute could speak against the node, or another node
        has the name.
        """
        seen = self._keep(self._bearers(key)) if key else ()
        if len(seen) != 1:
            return None
        found = self._options(seen)
        if len(found) != 1 or found[0].type != named.type or found[0].attributes:
            return None
        if read_name(found[0].names[0]).key != key:
            return None
        return Match(
            option=found[0],
            tier="exact",
            score=1.0,
            confidence=1.0,
            compared=(named.names[0], found[0].names[0]),
            reuses=True,
        )

    def _whole_key(self, named: NamedNode) -> str:
        """Return the key of a name that this key alone may resolve; otherwise an empty text."""
        if "exact" not in self._settings.tiers or named.attributes or len(named.names) > 1:
            return ""
        name = named.names[0]
        key = read_name(name).key if len(name) <= PLAIN_NAME_CHARS_MAX else ""
        return "" if len(key.split()) > PLAIN_NAME_WORDS_MAX or self._unindexed() else key

    def _bearers(self, key: str) -> set[int]:
        """Return the rows indexed with exactly this name, here and everywhere."""
        filed = f"={key}"
        return {
            *self._filed[self._home].get(filed, ()),
            *self._filed[ROOT_ROW].get(filed, ()),
        }

    def of(self, named: NamedNode, apart: set[int]) -> tuple[Match, ...]:
        """Return the matches of a candidate, without options whose rows are in `apart`."""
        rows = self._best(self._candidates(named), self._most(named))
        if self._vectors is not None and named.vector is not None:
            types = {named.type, *GENERIC_TYPES}
            rows |= {*self._vectors.near(self.view, named.vector, types, self._settings.cosine)}
        options = self._options(self._fitting(named, rows - apart), named.attributes)
        if not options:
            return ()
        if self._population is None:
            # Names are counted in this world only: other worlds belong to other people.
            total = self.reader.lookups.names(self._home)
            self._population = Population(total, self._holding)
        resolver = Resolver(self._settings, tiebreaker=self._tiebreaker)
        return resolver.resolve(named, options, self._population).matches

    def _fitting(self, named: NamedNode, rows: set[int]) -> set[int]:
        """Return the rows that a tier may match, and with them those that have the same first word.

        Most rows share a single word, or its sound. Their names alone show that, before aliases,
        attributes and vectors are read for the tiers. For most new names no row is left.
        """
        if named.attributes or named.vector is not None:
            return rows
        self.read_notes(rows)
        names = [read_name(name) for name in named.names]
        said = {word for name in names for word in name.words}
        least, fitting = self._settings.word_jaro_winkler, set()
        namesakes = set()
        for row in rows:
            if self._aliases[row] or self._attributes[row] or row not in self._bodies:
                fitting.add(row)
                continue
            other = read_name(self._bodies[row].name)
            if any(may_fit(name, other, least) for name in names):
                fitting.add(row)
            elif other.words and other.words[0] in said:
                namesakes.add(row)
        return fitting | namesakes if fitting else fitting

    def named(self, row: int) -> NamedNode | None:
        """Return a stored node as a candidate; None if it has no name."""
        found = self._options([row])
        return found[0] if found else None

    def ident(self, row: int) -> Id:
        """Return the id of a row."""
        self._read([row])
        return Id(self._bodies[row].id)

    def fetch(self, nodes: Sequence[DraftNode]) -> None:
        """Read everything that the verdicts on these drafted nodes need, in few statements.

        Exact names are looked up by their own key; only the other names by the keys of similar
        names.
        """
        named = [_named(node) for node in nodes]
        whole = [self._whole_key(one) for one in named]
        self._file({f"={key}" for key in whole if key})
        self.read_notes(self._keep({row for key in whole if key for row in self._bearers(key)}))
        self._fetched = {
            one.key: (one, self._exact(one, key)) for one, key in zip(named, whole, strict=True)
        }
        similar = {node.key for node in nodes if not node.known_only}
        left = [one for one in named if one.key in similar and self._fetched[one.key][1] is None]
        names = (read_name(name) for one in left for name in one.names)
        self._drafted_words.update(word for name in names for word in name.words)
        self._file(set().union(*map(self._keys, left)))
        rows = {row for one in left for row in self._candidates(one)[: self._most(one)]}
        self.read_notes(self._keep(rows))

    def seen(self, ids: Iterable[Id]) -> set[Id]:
        """Return the ids whose nodes are visible here, neither ended nor erased."""
        rows = {row: ident for ident in ids if (row := self.reader.node_row(ident)) is not None}
        return {rows[row] for row in self.view.keep(rows)}

    def keep_said(self, rows: Iterable[int]) -> set[int]:
        """Return the rows of this world that the writer may see."""
        return set(rows) if self.said is self.view else self.said.keep_world(rows)

    def keep_inside(self, rows: Iterable[int]) -> set[int]:
        """Return the rows of texts in this world that the writer may see, ended or not."""
        return self.said.keep_world(rows)

    def same_content(self, node: DraftNode, parent: int) -> int | None:
        """Return the row of a live node in `parent` with the same type, name and content."""
        now = to_micros(self.view.moment.now, "now")
        rows = alike(self.reader, [(node.type, node.name, node.content)], parent, now)
        if not rows:
            return None
        wanted = (parent, node.type, node.name, node.content)
        for body in self.reader.bodies(sorted(self.said.keep(rows))):
            if (body.parent, body.type, body.name, body.content) == wanted:
                return body.row
        return None

    # -- candidates --------------------------------------------------------------------------------

    def _keys(self, named: NamedNode) -> Set[str]:
        if len(named.names) == 1 and not named.attributes:
            return block_keys(named.names[0])
        keys = attribute_keys(named.attributes, self._settings)
        keys.update(key for name in named.names for key in block_keys(name))
        return keys

    def _most(self, named: NamedNode) -> int:
        settings = self._settings
        return settings.options_max if named.attributes else settings.options_by_name_max

    def _candidates(self, named: NamedNode) -> list[int]:
        """Return the rows that share keys with a candidate, those with most shared keys first."""
        if named.attributes:
            return self._sharing(self._keys(named))
        found = self._shared.get(named.names)
        if found is None:
            found = self._shared[named.names] = self._sharing(self._keys(named))
        return found

    def _sharing(self, keys: Set[str]) -> list[int]:
        self._file(keys)
        here, everywhere = self._filed[self._home], self._filed[ROOT_ROW]
        telling = self._settings.key_names_max
        shared: dict[int, int] = {}
        for key in keys:
            # Some nodes with exactly this name are always compared, however many there are:
            # otherwise # the one in this world would seem to be the only one.
            for row in {*here[key][:telling], *everywhere.get(key, ())[:telling]}:
                if row not in self._outside:
                    shared[row] = shared.get(row, 0) + 1
        if fresh := self._unindexed():
            for body in self.reader.bodies(fresh):
                shared[body.row] = len(keys & block_keys(body.name))
        return sorted(shared, key=lambda row: (-shared[row], row))

    def _file(self, keys: Set[str]) -> None:
        """Read the rows indexed under keys, in this world and (for its members) in all.

        A key with more rows than `key_names_max` decides nothing, unless it is the name itself.
        """
        missing = sorted(keys - self._filed[self._home].keys())
        if not missing:
            return
        # Where nothing but children is inside, the names of other worlds need not be read.
        worlds = (self._home,) if self._is_plain() else (self._home, ROOT_ROW)
        numbers = {(key, world): name_number(key, world) for key in missing for world in worlds}
        telling = self._settings.key_names_max
        exact = {number for (key, _), number in numbers.items() if key[0] == "="}
        found = self.reader.lookups.find_rare(sorted({*numbers.values()} - exact), telling)
        found |= self.reader.lookups.find(sorted(exact), telling + 1)
        for (key, world), number in numbers.items():
            self._filed[world][key] = found[number]
        if ROOT_ROW in worlds[1:]:
            self._leave_out(missing)

    def _is_plain(self) -> bool:
        """Return whether a name can only be filed under this world itself."""
        reader = self.reader
        return self._home == ROOT_ROW or (
            not reader.lookups.moved() and reader.is_plain(self._home)
        )

    def _leave_out(self, keys: Iterable[str]) -> None:
        """Drop the rows indexed in other worlds that are not members here, all at once.

        In a store of many tenants most are not, and their bodies need not be read.
        """
        here, everywhere = self._filed[self._home], self._filed[ROOT_ROW]
        others: set[int] = set()
        for key in keys:
            others.update(everywhere[key])
            others.difference_update(here[key])
        outsiders = self.reader.outsiders(self._home)
        self._outside |= others & outsiders
        others -= self._visible.keys() | self._outside
        if others:
            about = self.view.moment, self.view.members
            found = inside(self.reader, self._home, others, *about, outsiders=outsiders)
            self._outside |= others - found

    def _best(self, rows: list[int], most: int) -> set[int]:
        """Return the first `most` visible rows."""
        best: list[int] = []
        for at in range(0, len(rows), most):
            part = rows[at : at + most]
            seen = self._keep(part)
            best += [row for row in part if row in seen]
            if len(best) >= most:
                break
        return set(best[:most])

    def _keep(self, rows: Iterable[int]) -> set[int]:
        """Return the visible rows among `rows`."""
        wanted = set(rows) - self._outside
        missing = wanted.difference(self._visible)
        if missing:
            self._read(missing)
            bodies = [self._bodies[row] for row in missing if row in self._bodies]
            kept = self.view.keep_bodies(bodies)
            self._visible.update((row, row in kept) for row in missing)
        return {row for row in wanted if self._visible[row]}

    def _unindexed(self) -> list[int]:
        """Return the newest rows that the name index does not hold yet."""
        if self._new_rows is None:
            node, _ = self.reader.lookups.reached()
            rows = range(node + 1, self.reader.head().nodes + 1)
            self._new_rows = list(rows)[-UNINDEXED_MAX:]
        return self._new_rows

    # -- bodies, aliases and attributes ------------------------------------------------------------

    def _read(self, rows: Iterable[int]) -> None:
        missing = set(rows).difference(self._bodies)
        if missing:
            self._bodies.update((body.row, body) for body in self.reader.bodies(sorted(missing)))

    def read_notes(self, rows: Iterable[int]) -> None:
        """Read the bodies, aliases and attributes of rows that were not read before."""
        missing = sorted(set(rows).difference(self._aliases))
        if not missing:
            return
        self._read(missing)
        for row in missing:
            self._aliases[row], self._attributes[row] = [], []
        for row, alias in self.reader.aliases(missing):
            self._aliases[row].append(alias)
        for row, attributes in self.reader.lookups.attributes(missing):
            self._attributes[row].append(attributes)

    def _options(
        self, rows: Iterable[int], asked: Mapping[str, str] = NO_ATTRIBUTES
    ) -> list[NamedNode]:
        wanted = sorted(rows)
        self.read_notes(wanted)
        found = (self._bodies[row] for row in wanted if row in self._bodies)
        bodies = [body for body in found if body.name and body.type not in NOT_NAMED]
        vectors = self._vectors.of(self.reader, bodies) if self._vectors is not None else {}
        return [
            NamedNode(
                key=body.row,
                type=body.type,
                names=identifying(body.name, self._aliases[body.row]),
                attributes=self._told(body.row, asked),
                vector=vectors.get(body.row),
            )
            for body in bodies
        ]

    def _told(self, row: int, asked: Mapping[str, str]) -> Mapping[str, str]:
        """Return a node's attributes; of several values the requested one, or the last."""
        if not self._attributes[row]:
            return NO_ATTRIBUTES
        wanted = cleaned(asked)
        told: dict[str, str] = {}
        for attributes in self._attributes[row]:
            for name, value in cleaned(attributes).items():
                if name not in told or told[name] != wanted.get(name):
                    told[name] = value
        return told

    def _holding(self, word: str) -> int:
        """Return about how many names contain a word."""
        if word not in self._counts:
            # The words of all drafted names are counted with the first one: one statement.
            words = {word, *self._drafted_words.difference(self._counts)}
            keys = {name_number(f"w:{one}", self._home): one for one in words}
            for key, count in self.reader.lookups.counts(keys).items():
                self._counts[keys[key]] = count
        return self._counts[word]


def _named(node: DraftNode) -> NamedNode:
    return NamedNode(
        key=node.key,
        type=node.type,
        names=identifying(node.name, node.aliases),
        attributes=node.attributes,
    )


class NameVectors:
    """The vectors of one store's names, for the embedding tier.

    A write never waits for a model. A store that was never searched has no vectors, and this adds
    none. If many nodes lack a vector, the next search embeds them. A world too large to be held is
    not searched here.
    """

    def __init__(self, search: Search, vectors: Vectors) -> None:
        self._search = search
        self._vectors = vectors

    @classmethod
    def at_hand(cls, search: Search, store: Store) -> NameVectors | None:
        """Return the vectors of a store, up to date; None if updating them would take long.

        A failing embedder gives None: the embedding tier only ever adds a proposal.
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
        """Return the vectors of the nodes that have a name and no content.

        Contents about two things of one kind are similar, so they would mislead.
        """
        rows = [body.row for body in bodies if not body.content]
        model = self._vectors.model(reader)
        if model is None or not rows:
            return {}
        found = reader.derived.vectors(model.number, rows)
        return {row: loaded(body) for row, body in found}

    def near(self, view: View, vector: Vector, types: set[str], least: float) -> list[int]:
        """Return the rows of the nearest visible nodes, with a cosine of at least `least`."""
        reader = view.reader
        with self._search.interior(reader, view.worlds, view.moment, view.members) as interior:
            if interior is None:
                return []
            matrix = interior.vectors(reader, self._vectors)
            cosines = VectorRows(matrix, np.arange(len(matrix))).of(vector)
            seen = interior.seen(view.moment, ended=view.include_ended, types=types) & (
                cosines >= least
            )
            places = ranked(np.where(seen, cosines, 0.0), interior.ids, NEAREST_MAX)
            return [interior.rows[place] for place in places]
