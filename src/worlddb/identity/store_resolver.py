"""Meaning: which named nodes of a world are near one of them, by the vectors that are there.

Nobody waits for a model here who did not ask for one: a store that was never searched has no
vectors and stays without, and where many nodes wait for theirs, the next search makes them. A world
too large to be held in memory is not looked through, for the index of a large store takes minutes
to build.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from worlddb.embed.compose import Vector
from worlddb.errors import WorldDBError
from worlddb.identity.likelihood import cleaned
from worlddb.identity.match_values import Named, Population, ResolverSettings, Verdict
from worlddb.identity.resolver import Resolver
from worlddb.index.composed_worlds import STORED
from worlddb.index.held_world import VectorRows, ranked
from worlddb.index.name_index import NOT_NAMED, attribute_keys, block_keys, content_key, name_number
from worlddb.index.search import Search
from worlddb.index.vectors import EMBED_BATCH, Vectors
from worlddb.model.address import Id
from worlddb.model.drafts import DraftNode
from worlddb.store.protocol import ROOT_ROW, BodyRow, Reader, Store
from worlddb.view.visibility import View

BEHIND_MAX = EMBED_BATCH
"""How many nodes may still be without a vector for them to be embedded on the way."""
NEAR_MAX = 8


class NameVectors:
    """The vectors of one store's names."""

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


# Resolving: for a drafted node, which node that is there already might be meant.
#
# names, attributes ──keys──▶ lookup index ──┐
# vector ──────────nearest──▶ world in memory ──▶ what can be seen ──▶ tiers ──▶ verdict
#
# Reads only. What to do with a verdict is decided where it is written. A drafted node has no vector
# yet, for nobody who writes waits for a model; a node of the store has one, where `meaning` is given.


HOPS = 2
NEIGHBOURS_MAX = 200
UNINDEXED_MAX = 1_000
SAME_MAX = 200
GENERIC = ("Entity",)
NOTHING: Mapping[str, str] = MappingProxyType({})


_ROLE = re.compile(r"(?:my|our|your|his|her|its|their)\s|\S.*['’]s?\s", re.IGNORECASE)


def identifying(name: str, aliases: Sequence[str]) -> tuple[str, ...]:
    """Return the names by which something can be told from others.

    "My sister" leads to somebody, but two people may be it, one after the other or both.
    """
    return (name, *(alias for alias in aliases if not _ROLE.match(alias)))


class StoreResolver:
    """Resolves drafts on one snapshot, inside one world."""

    def __init__(
        self,
        reader: Reader,
        view: View,
        resolver: Resolver,
        settings: ResolverSettings,
        meaning: NameVectors | None = None,
        said: View | None = None,
    ) -> None:
        self.reader = reader
        self.view = view
        # Texts are compared with what the writer may see; that may be less than where names count.
        self.said = said or view
        self._resolver = resolver
        self._settings = settings
        self._meaning = meaning
        self._home = view.worlds[0]
        # How many bear a name is counted where it is resolved: other worlds are other people's.
        self._population = Population(reader.lookups.names(self._home), self._holding)

    def verdict(self, node: DraftNode) -> Verdict:
        """Return what the resolver says of a drafted node."""
        named = Named(
            key=node.key,
            type=node.type,
            names=identifying(node.name, node.aliases),
            attributes=node.attributes,
        )
        return self.of(named, set())

    def of(self, named: Named, apart: set[int]) -> Verdict:
        """Return what the resolver says of something named, rows `apart` from it left out."""
        rows = self._rows(named)
        if self._meaning is not None and named.vector is not None:
            types = {named.type, *GENERIC}
            rows |= {*self._meaning.near(self.view, named.vector, types, self._settings.cosine)}
        options = self._named(self._bodies(rows - apart), named.attributes)
        return self._resolver.resolve(named, options, self._population)

    def named(self, row: int) -> Named | None:
        """Return a node of the store as the resolver sees it; None if it has no name."""
        found = self._named(self._bodies([row]))
        return found[0] if found else None

    def _holding(self, word: str) -> int:
        """Return about how many names hold a word."""
        return self.reader.lookups.count(name_number(f"w:{word}", self._home))

    def seen(self, ids: Iterable[Id]) -> set[Id]:
        """Return those of some nodes that can be seen here: what has ended or was erased cannot."""
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
        seen = self.said.keep(rows)
        for body in self.reader.bodies(sorted(seen)):
            if body.parent == parent and (body.type, body.content) == (node.type, node.content):
                if body.name == node.name:
                    return body.row
        return None

    def _rows(self, named: Named) -> set[int]:
        """Return what shares most keys with something named, and can be seen."""
        settings = self._settings
        keys = attribute_keys(named.attributes, settings)
        keys.update(key for name in named.names for key in block_keys(name))
        telling = settings.key_names_max
        here = self._filed_under(keys, self._home)
        # For what is in worlds inside this one, and for its members.
        everywhere = here if self._home == ROOT_ROW else self._filed_under(keys, ROOT_ROW)
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
        for body in self.reader.bodies(self._unindexed()):
            shared[body.row] = len(keys & block_keys(body.name))
        most = settings.options_max if named.attributes else settings.options_by_name_max
        return self._best_seen(sorted(shared, key=lambda row: (-shared[row], row)), most)

    def _filed_under(self, keys: set[str], world: int) -> dict[str, list[int]]:
        """Return the newest rows that are filed under keys in a world, one more than are read."""
        numbers = {key: name_number(key, world) for key in sorted(keys)}
        most = self._settings.key_names_max + 1
        found = self.reader.lookups.find(sorted(numbers.values()), most)
        return {key: found[number] for key, number in numbers.items()}

    def _best_seen(self, rows: list[int], most: int) -> set[int]:
        """Return the first of some rows that can be seen, up to `most`."""
        best: list[int] = []
        for at in range(0, len(rows), 2 * most):
            part = rows[at : at + 2 * most]
            seen = self.view.keep(part)
            best += [row for row in part if row in seen]
            if len(best) >= most:
                break
        return set(best[:most])

    def _unindexed(self) -> list[int]:
        """Return the rows of what was written since the index was brought up to date."""
        node, _ = self.reader.lookups.reached()
        return list(range(node + 1, self.reader.head().nodes + 1))[-UNINDEXED_MAX:]

    def _bodies(self, rows: Iterable[int]) -> list[BodyRow]:
        found = self.reader.bodies(sorted(rows))
        return [body for body in found if body.name and body.type not in NOT_NAMED]

    def _named(self, bodies: list[BodyRow], asked: Mapping[str, str] = NOTHING) -> list[Named]:
        rows = [body.row for body in bodies]
        aliases: dict[int, list[str]] = {}
        for row, alias in self.reader.aliases(rows):
            aliases.setdefault(row, []).append(alias)
        attributes = self._attributes(rows, asked)
        vectors = self._meaning.of(self.reader, bodies) if self._meaning is not None else {}
        return [
            Named(
                key=body.row,
                type=body.type,
                names=identifying(body.name, aliases.get(body.row, ())),
                attributes=attributes.get(body.row, NOTHING),
                vector=vectors.get(body.row),
            )
            for body in bodies
        ]

    def _attributes(self, rows: list[int], asked: Mapping[str, str]) -> dict[int, dict[str, str]]:
        """Return what was told of nodes: of several values the one asked for, or the latest."""
        wanted = cleaned(asked)
        found: dict[int, dict[str, str]] = {}
        for row, attributes in self.reader.lookups.attributes(rows):
            told = found.setdefault(row, {})
            for name, value in cleaned(attributes).items():
                if name not in told or told[name] != wanted.get(name):
                    told[name] = value
        return found
