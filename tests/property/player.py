"""Player: plays the same transactions on a store and on the naive model, and compares each step.

A transaction is plain data (`Turn`), so that a seeded generator and a Hypothesis strategy can both
make one. Picks are numbers that are taken modulo what there is.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import strategies as st

import worlddb
from worlddb import Edge, Id, Query, RejectedError, Transaction, WorldDB, WorldDBError, WriteContext
from worlddb.model.address import BLIND_BYTES
from worlddb.model.records import ProposalStatus

from .naive import ROOT, NaiveEdge, World, at, maybe_at

BASE = 1_700_000_000_000_000
HOUR = 3_600_000_000
HOURS = 10

EDGE_TYPES = (
    "contains",
    "refers_to",
    "supersedes",
    "same_as",
    "contradicts",
    "implies",
    "derived_from",
    "instance_of",
    "subtype_of",
    "causes",
    "precedes",
)
NODE_TYPES = ("Fact", "Topic", "Summary", "Animal", "Dog")
NAMES = ("Animal", "Dog", "apple", "pear", "")
WORDS = ("red", "green", "blue", "red green")
METADATA: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"role": "about"},
    {"k": 1},
    {"reason": "ß"},
    {"tier": "fuzzy"},
)
STATUSES: tuple[ProposalStatus, ...] = ("accepted", "accepted", "rejected", "pending")


class Renews:
    """A custom type that ends the earlier edges of its source: validity of edges, too, tightens."""

    type = "renews"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Close every other edge of this type at the source."""
        for other in ctx.edges(edge.source, "out", (self.type,)):
            if other.id != edge.id:
                ctx.close_validity(other.id, at=edge.valid_from)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Nothing follows."""

    def on_query_rewrite(self, query: Query) -> Query:
        """Nothing changes."""
        return query


# -- transactions as data --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Create:
    """Create a node."""

    type: str
    name: str
    content: str
    parent: int | None
    created_at: int | None
    valid_from: int | None
    valid_to: int | None
    aliases: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Write:
    """Write an edge."""

    type: str
    source: int
    target: int
    valid_from: int | None
    valid_to: int | None
    metadata: int


@dataclass(frozen=True, kw_only=True)
class Delete:
    """Delete an edge."""

    edge: int


@dataclass(frozen=True, kw_only=True)
class Retire:
    """Retire a node."""

    node: int
    at: int | None


@dataclass(frozen=True, kw_only=True)
class Note:
    """Add aliases and sources."""

    node: int
    aliases: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Decide:
    """Decide a merge."""

    edge: int
    status: ProposalStatus


@dataclass(frozen=True, kw_only=True)
class Again:
    """Write an edge that was written before: a live one stays, a deleted one is stated anew."""

    edge: int


Step = Create | Write | Delete | Retire | Note | Decide | Again


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One transaction: what the clock shows, what is done, and how it ends."""

    clock: int
    steps: tuple[Step, ...]
    aborts: bool = False
    swallows: bool = False
    bulk: bool = False


_hour = st.integers(0, HOURS).map(lambda hour: BASE + hour * HOUR)
_maybe_hour = st.none() | _hour
_pick = st.integers(0, 30)
_notes = st.lists(st.sampled_from(("a", "b", "c")), max_size=2, unique=True).map(tuple)
create_steps = st.builds(
    Create,
    type=st.sampled_from(NODE_TYPES),
    name=st.sampled_from(NAMES),
    content=st.sampled_from(WORDS),
    parent=st.none() | _pick,
    created_at=_maybe_hour,
    valid_from=_maybe_hour,
    valid_to=_maybe_hour,
    aliases=_notes,
    sources=_notes,
)
write_steps = st.builds(
    Write,
    type=st.sampled_from((*EDGE_TYPES, "renews")),
    source=_pick,
    target=_pick,
    valid_from=_maybe_hour,
    valid_to=_maybe_hour,
    metadata=st.integers(0, len(METADATA) - 1),
)
delete_steps = st.builds(Delete, edge=_pick)
retire_steps = st.builds(Retire, node=_pick, at=_maybe_hour)
note_steps = st.builds(Note, node=_pick, aliases=_notes, sources=_notes)
again_steps = st.builds(Again, edge=_pick)
decide_steps = st.builds(Decide, edge=_pick, status=st.sampled_from(STATUSES))
steps = st.one_of(
    create_steps, write_steps, delete_steps, retire_steps, note_steps, decide_steps, again_steps
)
turns = st.builds(
    Turn,
    clock=_hour,
    steps=st.lists(steps, min_size=1, max_size=6).map(tuple),
    aborts=st.sampled_from((False, False, False, True)),
    swallows=st.booleans(),
    bulk=st.sampled_from((False, False, False, True)),
)


def random_step(rng: random.Random) -> Step:
    """Return a step; edges are the most frequent."""

    def hour() -> int | None:
        return BASE + rng.randrange(HOURS + 1) * HOUR if rng.random() < 0.4 else None

    def notes() -> tuple[str, ...]:
        return tuple(rng.sample("abc", rng.choice((0, 0, 1, 2))))

    pick = rng.randrange(1_000)
    kinds = {"create": 6, "write": 9, "delete": 4, "again": 2, "retire": 1, "note": 2, "decide": 3}
    kind = rng.choices(list(kinds), list(kinds.values()))
    if kind == ["create"]:
        return Create(
            type=rng.choice(NODE_TYPES),
            name=rng.choice(NAMES),
            content=rng.choice(WORDS),
            parent=rng.randrange(1_000) if rng.random() < 0.3 else None,
            created_at=hour(),
            valid_from=hour(),
            valid_to=hour(),
            aliases=notes(),
            sources=notes(),
        )
    if kind == ["write"]:
        common = ("contains", "contains", "contains", "same_as", "same_as", "supersedes", "renews")
        return Write(
            type=rng.choice((*EDGE_TYPES, *common)),
            source=pick,
            target=rng.randrange(1_000),
            valid_from=hour(),
            valid_to=hour(),
            metadata=rng.randrange(len(METADATA)),
        )
    if kind == ["delete"]:
        return Delete(edge=pick)
    if kind == ["again"]:
        return Again(edge=pick)
    if kind == ["retire"]:
        return Retire(node=pick, at=hour())
    if kind == ["note"]:
        return Note(node=pick, aliases=notes(), sources=notes())
    return Decide(edge=pick, status=rng.choice(STATUSES))


def first_turn(rng: random.Random, clock: int) -> Turn:
    """Return a transaction that makes a few nodes, so that there is something to connect."""
    made: list[Step] = []
    while len(made) < 4:
        step = random_step(rng)
        if isinstance(step, Create):
            made.append(step)
    return Turn(clock=clock, steps=tuple(made))


def random_turn(rng: random.Random, clock: int, steps_max: int = 6) -> Turn:
    """Return a transaction."""
    return Turn(
        clock=clock,
        steps=tuple(random_step(rng) for _ in range(rng.randint(1, steps_max))),
        aborts=rng.random() < 0.05,
        swallows=rng.random() < 0.5,
        bulk=rng.random() < 0.1,
    )


# -- playing ---------------------------------------------------------------------------------------


class AbortError(Exception):
    """The caller changes its mind in the middle of a transaction."""


@dataclass
class Player:
    """A store and the model of it, commit by commit."""

    clock: int = BASE
    history: list[World] = field(default_factory=lambda: [World.empty()])
    """The world after every commit, genesis first."""

    def __post_init__(self) -> None:
        self.blind = bytes(BLIND_BYTES)
        self.db: WorldDB = worlddb.open(
            ":memory:",
            clock=lambda: self.clock,
            random_bytes=lambda size: self.blind[:size],
            handlers=[Renews()],
        )

    @property
    def world(self) -> World:
        """The world after the last commit."""
        return self.history[-1]

    @property
    def now(self) -> int:
        """What a reader takes for now: never before the last commit."""
        return max(self.clock, self.world.time)

    def play(self, turn: Turn) -> bool:
        """Play a transaction on both sides; return whether it became a commit."""
        self.clock = turn.clock
        draft = self.world.begin(turn.clock)
        refused = False
        try:
            with self.db.transaction("player", bulk=turn.bulk) as tx:
                for step in turn.steps:
                    refused = not self._step(tx, draft, step)
                    if refused and turn.swallows:
                        break
                    if refused:
                        raise RejectedError("as the store said")
                if turn.aborts:
                    raise AbortError
        except RejectedError:
            assert refused
        except AbortError:
            assert turn.aborts
            refused = True
        else:
            assert not refused, "a refused transaction landed"
        if refused:
            return False
        if not draft.effects:
            assert tx.commit is None
            return False
        assert tx.commit is not None
        assert tx.commit.time == at(draft.time)
        assert tx.commit.root_state == draft.states()[ROOT]
        self.history.append(draft)
        return True

    def _step(self, tx: Transaction, draft: World, step: Step) -> bool:
        """Do one step on both sides; return False if its handler refused."""
        if isinstance(step, Create):
            return _both(*self._create(tx, draft, step))
        if isinstance(step, Retire):
            node = _pick_of(draft.nodes, step.node)
            if node == ROOT:
                return True
            return _both(
                lambda: draft.retire(node, step.at),
                lambda: _done(tx.retire(node, at=maybe_at(step.at))),
            )
        if isinstance(step, Note):
            node = _pick_of(draft.nodes, step.node)
            draft.note(node, step.aliases, step.sources)
            tx.add_aliases(node, step.aliases)
            tx.add_source(node, step.sources)
            return True
        if isinstance(step, Write):
            return self._write(tx, draft, step)
        if not draft.edges:
            return True
        if isinstance(step, Decide):
            # Most edges have nothing to decide: that is tried by one pick in four.
            merges = {e.id: e for e in draft.edges.values() if e.type == "same_as"}
            edge = _pick_of(merges if merges and step.edge % 4 else draft.edges, step.edge)
            return _both(
                lambda: draft.decide(edge, step.status),
                lambda: _done(tx.decide_merge(edge, step.status)),
            )
        edge = _pick_of(draft.edges, step.edge)
        if isinstance(step, Again):
            return self._again(tx, draft, draft.edges[edge])
        return _both(lambda: draft.delete(edge), lambda: _done(tx.delete_edge(edge)))

    def _create(
        self, tx: Transaction, draft: World, step: Create
    ) -> tuple[Callable[[], Id], Callable[[], Id]]:
        parent = None if step.parent is None else _pick_of(draft.nodes, step.parent)
        self.blind = blake3(self.blind).digest(BLIND_BYTES)
        return (
            lambda: draft.create(
                step.type,
                step.name,
                step.content,
                blind=self.blind,
                parent=parent,
                created_at=step.created_at,
                valid_from=step.valid_from,
                valid_to=step.valid_to,
                aliases=step.aliases,
                sources=step.sources,
            ),
            lambda: (
                tx.create_node(
                    type=step.type,
                    name=step.name,
                    content=step.content,
                    parent=parent,
                    created_at=maybe_at(step.created_at),
                    valid_from=maybe_at(step.valid_from),
                    valid_to=maybe_at(step.valid_to),
                    aliases=step.aliases,
                    source=step.sources,
                ).id
            ),
        )

    def _write(self, tx: Transaction, draft: World, step: Write) -> bool:
        source, target = _pick_of(draft.nodes, step.source), _pick_of(draft.nodes, step.target)
        if step.type == "supersedes" and target == ROOT:
            return True
        metadata = METADATA[step.metadata]
        return _both(
            lambda: draft.write(
                step.type,
                source,
                target,
                valid_from=step.valid_from,
                valid_to=step.valid_to,
                metadata=dict(metadata),
            ),
            lambda: (
                tx.write_edge(
                    step.type,
                    source,
                    target,
                    valid_from=maybe_at(step.valid_from),
                    valid_to=maybe_at(step.valid_to),
                    metadata=metadata,
                ).id
            ),
        )

    def _again(self, tx: Transaction, draft: World, edge: NaiveEdge) -> bool:
        ends = edge.type, edge.source, edge.target
        metadata = dict(edge.metadata)
        return _both(
            lambda: draft.write(*ends, valid_from=edge.valid_from, metadata=metadata),
            lambda: tx.write_edge(*ends, valid_from=at(edge.valid_from), metadata=metadata).id,
        )


def _done(value: object) -> None:
    """Do without the value a call returns."""


def _pick_of(rows: dict[Id, Any], pick: int) -> Id:
    return list(rows)[pick % len(rows)]


def _both(model: Callable[[], Id | None], store: Callable[[], Id | None]) -> bool:
    """Run a step on both sides; they must agree on the outcome. Return False on a refusal."""
    try:
        expected = model()
    except WorldDBError as error:
        with pytest.raises(type(error)):
            store()
        return not isinstance(error, RejectedError)
    assert store() == expected
    return True
