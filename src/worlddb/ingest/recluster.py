"""Recluster: the neighbourhood of new nodes is resolved once more, after their commit.

What one memory says may make clear who another meant. So the named nodes within two hops of what
was written are compared again, by their vectors, too, where the store has any. Whatever is found is
proposed with a `same_as` edge, never merged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from worlddb.identity.match_values import ResolverSettings
from worlddb.identity.store_resolver import NameVectors, StoreResolver, name_index, resolver_in
from worlddb.index.search import Search
from worlddb.ingest.background_queue import unless
from worlddb.ingest.plan import Guess, Outcome, judged, propose
from worlddb.model.address import Id
from worlddb.model.inputs import Limits
from worlddb.model.records import NOW, Proposal
from worlddb.ontology.registry import Registry
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW
from worlddb.view.visibility import find, moment_of, proposals
from worlddb.write.transaction import transact

RECLUSTER_ACTOR = "recluster"
HOPS = 2  # A name, what mentions it, and what else that mentions.
NEIGHBOURS_MAX = 200  # Bounds a look around a hub; the nearest nodes come first.


@dataclass(frozen=True, slots=True)
class Reclusterer:
    """Looks again at neighbourhoods of one store."""

    store: Store
    registry: Registry
    search: Search
    limits: Limits
    clock: Callable[[], int]

    def run(
        self,
        groups: Sequence[Sequence[bytes | str]],
        world: bytes | str | None,
        settings: ResolverSettings | None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> list[Proposal]:
        """Recluster around several groups of nodes, as if one after the other.

        A proposal lets the next look at a node find what is less like it. So a node that is near
        several groups is looked at as often, as long as that finds anything.

        Raises:
            LeftError: `is_over` became true before the end.
        """
        outcome = Outcome()
        for turn in range(1, len(groups) + 1):
            found = self._guesses(groups, turn, world, settings, is_over)
            if not found:
                break
            with transact(
                self.store, self.registry, actor=RECLUSTER_ACTOR, bulk=False, limits=self.limits
            ) as tx:
                for ident, guess in found:
                    propose(tx, ident, guess, outcome)
        if not outcome.proposed:
            return []
        wanted = set(outcome.proposed)
        with self.store.read() as reader:
            moment = moment_of(reader, NOW, self.clock())
            staged = proposals(reader, None, moment)
        return [proposal for proposal in staged if proposal.edge in wanted]

    def _guesses(
        self,
        groups: Sequence[Sequence[bytes | str]],
        turn: int,
        world: bytes | str | None,
        settings: ResolverSettings | None,
        is_over: Callable[[], bool],
    ) -> list[tuple[Id, Guess]]:
        """Return what the nodes that are near at least `turn` of the groups may be the same as."""
        name_index(self.store).catch_up()
        by_meaning = settings is None or "embedding" in settings.tiers
        vectors = NameVectors.at_hand(self.search, self.store) if by_meaning else None
        with self.store.read() as reader:
            inside = ROOT_ROW if world is None else _row(reader, world)
            resolver = resolver_in(reader, inside, self.clock(), settings, vectors=vectors)
            around = _Neighbourhoods(reader)
            near: Counter[int] = Counter()
            for ids in unless(is_over, groups):
                near.update(around.of({_row(reader, ident) for ident in ids}))
            own = resolver.view.keep_world(near)  # An edge may lead to a name of others.
            often = [row for row, times in near.items() if times >= turn and row in own]
            return _new_guesses(resolver, unless(is_over, often))


def _row(reader: Reader, given: bytes | str) -> int:
    return find(reader, given, "nodes")


def _new_guesses(resolver: StoreResolver, rows: Iterable[int]) -> list[tuple[Id, Guess]]:
    """Return what was not proposed before, each pair once."""
    reader = resolver.reader
    found: list[tuple[Id, Guess]] = []
    pairs: set[frozenset[bytes]] = set()
    for row in rows:
        named = resolver.named(row)
        if named is None:
            continue
        proposed = reader.proposals(rows=[row])
        apart = {side for item in proposed for side in (item.low, item.high)} | {row}
        same, guesses = judged(resolver, resolver.of(named, apart))
        ident = Id(reader.world(row).id)
        if same is not None:
            guesses = [Guess(id=same, tier="exact", score=1.0, evidence={})]
        for guess in guesses:
            pair = frozenset({bytes(ident), bytes(guess.id)})
            if pair not in pairs:
                pairs.add(pair)
                found.append((ident, guess))
    return found


class _Neighbourhoods:
    """What lies within two hops of nodes, for many of them on one snapshot.

    What was written together is mostly about the same few names, and a name that many texts mention
    has many edges. So each node's edges are read once, however many neighbourhoods it is in.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._ends: dict[int, tuple[int, ...]] = {}

    def of(self, rows: set[int]) -> list[int]:
        """Return the rows within two hops, nearest first, `NEIGHBOURS_MAX` at most."""
        seen = dict.fromkeys(sorted(rows))
        frontier = set(rows)
        for _ in range(HOPS):
            self._read(frontier)
            ends = {end for row in frontier for end in self._ends[row]}
            frontier = ends - seen.keys()
            seen.update(dict.fromkeys(sorted(frontier)))
            if len(seen) > NEIGHBOURS_MAX:
                break
        return list(seen)[:NEIGHBOURS_MAX]

    def _read(self, rows: Iterable[int]) -> None:
        """Read the other ends of the edges of rows that were not read before."""
        fresh = {row: set[int]() for row in rows if row not in self._ends}
        for item in self._reader.edges_at(fresh, "both", None, None) if fresh else ():
            # Being in one scope says nothing about who is who, and the root refers to what waits.
            if item.edge.type != "contains":
                for row, end in ((item.source, item.target), (item.target, item.source)):
                    if row in fresh and end != ROOT_ROW:
                        fresh[row].add(end)
        for row, ends in fresh.items():
            # Twice the bound: of so many, enough are not among the nodes seen already.
            self._ends[row] = tuple(sorted(ends)[: 2 * NEIGHBOURS_MAX])
