"""Fuzz: thousands of random operations through the public API, and everything that must hold.

No model here: only the invariants, which are checked again and again on the way. At the end the
whole journal is played into an empty store, which must come out the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import worlddb
from thinning import DEEP
from worlddb import (
    AsOf,
    Conflict,
    ConflictError,
    Edge,
    EdgeDraft,
    Id,
    InvalidInputError,
    Node,
    NodeDraft,
    NotFoundError,
    RejectedError,
    Transaction,
    WorldDB,
    WorldDBError,
    verify_proof,
)

from .naive import at, naive_edge_address, naive_node_address
from .player import BASE, EDGE_TYPES, HOUR, STATUSES

OPERATIONS = 2_000 if DEEP else 800
CHECK_EVERY = 100
ENOUGH_EDGES = 600
ODD_TEXTS = (
    "",
    "ß",
    "日本 語",
    "a\nb\r\n",
    "\u2028\x85",
    '"; --',
    "🜁" * 3,
    "e\u0301",
    "NULL",
    "{}",
)
FAR = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
RESTED_ON = ("implies", "derived_from", "instance_of", "subtype_of", "causes", "precedes")


def micros(moment: datetime) -> int:
    return (moment - at(0)) // timedelta(microseconds=1)


class Fuzzer:
    """Does random things to a store and remembers what must never change."""

    def __init__(self, seed: int, address: str = ":memory:") -> None:
        self.rng = random.Random(seed)
        self.clock = BASE
        blinds = random.Random(seed).randbytes
        self.db = worlddb.open(address, clock=self._tick, random_bytes=blinds)
        self.nodes: list[Id] = [self.db.root_id]
        self.edges: list[Id] = []
        self.alive: set[Id] = set()
        self.merges: list[Id] = []
        self.inferred: set[Id] = set()
        self.known: dict[Id, Node] = {}
        self.written: dict[Id, Edge] = {}
        self.blinds: dict[bytes, str] = {}
        self.born: dict[Id, tuple[object, ...]] = {}
        self.ends: dict[Id, datetime | None] = {}
        self.done: dict[str, int] = {}
        self.refused: dict[str, int] = {}

    def _tick(self) -> int:
        self.clock += self.rng.choice((0, 1, 250, 1_000_000, -3))
        return self.clock

    # -- operations --------------------------------------------------------------------------------

    def moment(self) -> datetime | None:
        """Return a valid time, most often none."""
        if self.rng.random() < 0.02:
            return self.rng.choice(FAR)
        return at(BASE + self.rng.randrange(-40, 40) * HOUR) if self.rng.random() < 0.3 else None

    def draft(self) -> NodeDraft:
        """Return a node with a word of its own, somewhere in the tree."""
        rng = self.rng
        word = f"word{len(self.nodes)}x{rng.randrange(1_000_000)}"
        return NodeDraft(
            type=rng.choice(("Fact", "Entity", "Topic", "Summary", "Événement")),
            name=rng.choice(("Ada", "Grace", *ODD_TEXTS)),
            content=f"{word} {rng.choice(ODD_TEXTS)}",
            parent=rng.choice(self.nodes) if rng.random() < 0.4 else None,
            valid_from=self.moment(),
            valid_to=self.moment() if rng.random() < 0.3 else None,
            created_at=self.moment(),
            aliases=rng.sample(ODD_TEXTS[1:], rng.choice((0, 0, 2))),
            source=rng.sample(ODD_TEXTS[5:], rng.choice((0, 0, 1))),
        )

    def ingest(self, tx: Transaction) -> None:
        d = self.draft()
        node = tx.create_node(
            type=d.type,
            name=d.name,
            content=d.content,
            parent=d.parent,
            valid_from=d.valid_from,
            valid_to=d.valid_to,
            created_at=d.created_at,
            aliases=d.aliases,
            source=d.source,
        )
        self.nodes.append(node.id)
        self.known[node.id] = node

    def same_again(self, tx: Transaction) -> None:
        """Write a node that is there already: it stays one node, unless it has ended."""
        before = [ident for ident in self.nodes if ident in self.known]
        if not before:
            return
        old = self.known[self.rng.choice(before)]
        again = tx.create_node(
            type=old.type,
            name=old.name,
            content=old.content,
            parent=None if old.parent == self.db.root_id else old.parent,
            created_at=old.created_at,
            source="again",
        )
        ends = self.db.get(old.id).valid_to
        if ends is None or ends > tx.now:
            assert again.id == old.id
        elif again.id not in self.known:
            self.nodes.append(again.id)
            self.known[again.id] = again

    def edge(self, tx: Transaction, type_: str, source: Id, target: Id, **metadata: Any) -> None:
        edge = tx.write_edge(
            type_,
            source,
            target,
            valid_from=self.moment(),
            valid_to=self.moment() if self.rng.random() < 0.2 else None,
            metadata=metadata,
        )
        self.edges.append(edge.id)
        self.alive.add(edge.id)
        self.written[edge.id] = edge
        if type_ == "same_as":
            self.merges.append(edge.id)
        if metadata.get("inferred"):
            self.inferred.add(edge.id)

    def pair(self) -> tuple[Id, Id]:
        return self.rng.choice(self.nodes), self.rng.choice(self.nodes)

    def supersede(self, tx: Transaction) -> None:
        self.ingest(tx)
        self.edge(tx, "supersedes", self.nodes[-1], self.rng.choice(self.nodes))

    def contradict(self, tx: Transaction) -> None:
        self.edge(tx, "contradicts", *self.pair(), reason=self.rng.choice(ODD_TEXTS))

    def propose(self, tx: Transaction) -> None:
        near = self.rng.sample(self.nodes, min(2, len(self.nodes)))
        score = self.rng.choice((0, 1, 0.5, "high", True))
        tier = self.rng.choice(("exact", "fuzzy", 3))
        self.edge(tx, "same_as", near[0], near[-1], tier=tier, score=score)

    def decide(self, tx: Transaction) -> None:
        if self.merges:
            tx.decide_merge(self.rng.choice(self.merges[-20:]), self.rng.choice(STATUSES))

    def any_edge(self, tx: Transaction) -> None:
        metadata = self.rng.choice(({}, {"ß": [1, 2.5, None]}, {"a": {"b": True}}))
        self.edge(tx, self.rng.choice(EDGE_TYPES), *self.pair(), **metadata)

    def infer(self, tx: Transaction) -> None:
        """Write an edge that rests on another one at the same end."""
        if not self.alive:
            return
        premise = self.written[self.rng.choice(sorted(self.alive))]
        if premise.type in RESTED_ON:
            metadata = {"inferred": True, "premises": [str(premise.id)]}
            target = self.rng.choice(self.nodes)
            self.edge(tx, premise.type, premise.source, target, **metadata)

    def delete(self, tx: Transaction) -> None:
        for _ in range(3 if len(self.alive) > ENOUGH_EDGES else 1):
            if self.alive:
                edge = self.rng.choice(sorted(self.alive))
                self.alive.discard(edge)
                try:
                    tx.delete_edge(edge)
                except NotFoundError:
                    # Its premise went before it and took it along; nothing else may vanish.
                    assert edge in self.inferred

    def nest(self, tx: Transaction) -> None:
        world = self.rng.choice(self.nodes)
        for _ in range(self.rng.randint(1, 5)):
            world = tx.create_node(type="Scope", name="nest", parent=world).id
            self.nodes.append(world)

    def join(self, tx: Transaction) -> None:
        self.edge(tx, "contains", *self.pair())

    def retire(self, tx: Transaction) -> None:
        tx.retire(self.rng.choice(self.nodes), at=self.moment())

    def note(self, tx: Transaction) -> None:
        tx.add_aliases(self.rng.choice(self.nodes), self.rng.sample(ODD_TEXTS, 2))
        tx.add_source(self.rng.choice(self.nodes), self.rng.choice(ODD_TEXTS[1:]))

    def batch(self, tx: Transaction) -> None:
        ids = tx.create_nodes(self.draft() for _ in range(self.rng.choice((1, 10, 60))))
        self.nodes += ids
        type_ = self.rng.choice(("refers_to", "instance_of", "contains"))
        drafts = [
            EdgeDraft(
                source=self.rng.choice(self.nodes),
                target=self.rng.choice(ids),
                metadata={"batch": i % 3},
            )
            for i in range(self.rng.choice((0, 5, 40)))
        ]
        tx.write_edges(type_, drafts)

    def several(self, tx: Transaction) -> None:
        """Do several things in one transaction, and sometimes think better of it."""
        for _ in range(self.rng.randint(2, 6)):
            self.rng.choice((self.ingest, self.any_edge, self.delete, self.join))(tx)
        if self.rng.random() < 0.3:
            raise InvalidInputError("on second thoughts")

    def step(self) -> None:
        """Do one random operation; being refused is fine, anything else is not."""
        kinds: dict[Callable[[Transaction], None], int] = {
            self.ingest: 10,
            self.any_edge: 12,
            self.supersede: 5,
            self.contradict: 3,
            self.propose: 6,
            self.decide: 8,
            self.delete: 8,
            self.join: 5,
            self.nest: 1,
            self.infer: 4,
            self.retire: 2,
            self.note: 2,
            self.same_again: 2,
            self.batch: 1,
            self.several: 3,
        }
        act = self.rng.choices(list(kinds), list(kinds.values()))[0]
        kept = (list(self.nodes), list(self.edges), set(self.alive), list(self.merges))
        before = self.db.root_state
        name = act.__name__
        try:
            with self.db.transaction(f"fuzz {name} 日", bulk=self.rng.random() < 0.1) as tx:
                act(tx)
        except (RejectedError, ConflictError, InvalidInputError):
            self.nodes, self.edges, self.alive, self.merges = kept
            self.refused[name] = self.refused.get(name, 0) + 1
            assert self.db.root_state == before, "a refused transaction left something behind"
        else:
            self.done[name] = self.done.get(name, 0) + 1

    # -- invariants --------------------------------------------------------------------------------

    def check(self) -> None:
        """Check everything that must hold at any time."""
        assert self.db.check() == []
        everything = self.db.query().include_superseded().execute()
        assert everything.ids == set(self.nodes) - {self.db.root_id}
        for node in everything:
            self._never_changes(node)
        for edge in map(self.db.get_edge, self._sample(self.edges, 150)):
            self._never_changes_edge(edge)
        self._check_journal()
        self._check_identity()
        self._check_proofs_and_text(list(everything))

    def _sample(self, items: list[Any], count: int) -> list[Any]:
        return self.rng.sample(items, min(count, len(items)))

    def _tightens(self, thing: Node | Edge) -> None:
        before = self.ends.get(thing.id)
        if before is not None:
            assert thing.valid_to is not None
            assert thing.valid_to <= before
        self.ends[thing.id] = thing.valid_to

    def _never_changes(self, node: Node) -> None:
        self._tightens(node)
        fields = (node.type, node.name, node.content, node.created_at, node.valid_from)
        fixed = (*fields, node.known_from)
        assert self.born.setdefault(node.id, fixed) == fixed
        if node.id not in self.blinds and node.id != self.db.root_id:
            lines = [json.loads(line) for line in self.db.export()]
            told = [line for line in lines if {"node", "blind"} <= line.keys()]
            self.blinds = {bytes.fromhex(line["node"]): line["blind"] for line in told}
        blind = bytes.fromhex(self.blinds.get(node.id, ""))
        texts = node.type, node.name, node.content
        assert naive_node_address(*texts, micros(node.created_at), blind=blind) == node.id

    def _never_changes_edge(self, edge: Edge) -> None:
        self._tightens(edge)
        fixed = (edge.type, edge.source, edge.target, edge.valid_from, edge.known_from)
        assert self.born.setdefault(edge.id, fixed) == fixed
        if not edge.metadata:
            starts = micros(edge.valid_from)
            found = (
                naive_edge_address(edge.type, edge.source, edge.target, starts, "{}", generation)
                for generation in range(50)
            )
            assert edge.id in found

    def _check_journal(self) -> None:
        log = self.db.log()
        assert [commit.seq for commit in log] == list(range(len(log)))
        for before, after in pairwise(log):
            assert after.previous == before.hash
            assert after.time > before.time
        assert log[-1].root_state == self.db.root_state

    def _check_identity(self) -> None:
        proposals = self.db.proposals(None)
        assert {item.edge for item in proposals} <= set(self.merges)
        open_pairs = []
        staged_pairs = set()
        together: dict[Id, set[Id]] = {}
        for item in proposals:
            edge = self.db.get_edge(item.edge)
            assert (edge.type, edge.source, edge.target) == ("same_as", item.left, item.right)
            assert {item.left, item.right} <= set(self.nodes)
            staged_pairs.add(frozenset((item.left, item.right)))
            if item.status in ("pending", "accepted"):
                assert edge.known_to is None, "a deleted edge has an open proposal"
                open_pairs.append(frozenset((item.left, item.right)))
            if item.status == "accepted":
                united = together.get(item.left, {item.left}) | together.get(
                    item.right, {item.right}
                )
                together.update(dict.fromkeys(united, united))
        assert len(open_pairs) == len(set(open_pairs)), "two open proposals for one pair"
        for merge in self.merges:
            edge = self.db.get_edge(merge)
            assert frozenset((edge.source, edge.target)) in staged_pairs
        for ident in {*self._sample(self.nodes, 20), *self._sample(list(together), 30)}:
            assert self.db.equivalence_class(ident) == together.get(ident, {ident})

    def _check_proofs_and_text(self, nodes: list[Node]) -> None:
        root_state = self.db.root_state
        for node in self._sample(nodes, 25):
            assert verify_proof(self.db.prove(node.id), root_state)
            word = node.content.split()[0] if node.content else ""
            if word.startswith("word"):
                found = self.db.query().text(word).include_superseded().execute()
                assert node.id in found.ids
                assert {other.content for other in found} == {node.content}


def everything_of(db: WorldDB, as_of: AsOf) -> tuple[object, ...]:
    """Return all that a store says about itself at one time."""
    nodes = db.query().include_superseded().as_of(valid=as_of.valid, known=as_of.known).execute()
    said: list[Conflict] = db.conflicts(as_of=as_of, include_settled=True)
    edges = [db.edges(node.id, as_of=as_of, include_superseded=True) for node in nodes]
    return nodes.nodes, edges, said, db.proposals(None, as_of=as_of)


@pytest.mark.parametrize("seed", [20_260, 4_711])
def test_random_operations_never_break_an_invariant(seed: int) -> None:
    fuzzer = Fuzzer(seed)
    for i in range(1, OPERATIONS + 1):
        fuzzer.step()
        if i % CHECK_EVERY == 0:
            fuzzer.check()
    assert len(fuzzer.done) == 15, "some operation never succeeded"
    assert len(fuzzer.refused) > 5
    for edge in map(fuzzer.db.get_edge, fuzzer.edges):
        fuzzer._never_changes_edge(edge)
    lines = list(fuzzer.db.export())
    with worlddb.open(":memory:") as copy:
        assert copy.replay(lines) == len(fuzzer.db.log()) - 1
        assert copy.root_state == fuzzer.db.root_state
        assert copy.log() == fuzzer.db.log()
        assert copy.check() == []
        assert list(copy.export()) == lines
        times = [commit.time for commit in fuzzer.db.log()]
        for known in (None, *fuzzer.rng.sample(times, 3)):
            as_of = AsOf(known=known)
            assert everything_of(copy, as_of) == everything_of(fuzzer.db, as_of)
        assert copy.replay(lines) == 0, "what is there already is not added again"
    fuzzer.db.close()


# -- single inputs that random operations are not likely to hit ------------------------------------


@pytest.mark.stores
def test_the_same_node_twice_in_one_batch_has_each_alias_once() -> None:
    with worlddb.open(":memory:") as db:
        draft = NodeDraft(
            type="Entity", name="Ada", created_at=at(BASE), aliases=("Countess",), source="letter"
        )
        with db.transaction() as tx:
            one, other = tx.create_nodes([draft, draft])
        assert one == other
        assert db.get(one).aliases == ("Countess",)
        assert db.get(one).provenance == ("letter",)


def test_a_time_that_no_datetime_can_hold_is_refused_before_it_is_written() -> None:
    east, west = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
    too_late = datetime.max.replace(tzinfo=west)
    too_early = datetime.min.replace(tzinfo=east)
    with worlddb.open(":memory:") as db:
        for moment in (too_late, too_early):
            for draft in (
                NodeDraft(type="Fact", name="when?", valid_from=moment),
                NodeDraft(type="Fact", name="when?", created_at=moment),
            ):
                with pytest.raises(InvalidInputError), db.transaction() as tx:
                    tx.create_nodes([draft])
        assert db.children() == []


def causal_chain(db: WorldDB, length: int) -> list[Id]:
    with db.transaction() as tx:
        return tx.create_nodes(
            NodeDraft(type="Event", name=str(i), valid_from=at(BASE + i)) for i in range(length)
        )


@pytest.mark.stores
def test_an_inferred_edge_that_rests_on_a_premise_in_two_ways_falls_with_it() -> None:
    with worlddb.open(":memory:") as db:
        a, b, c, d = causal_chain(db, 4)
        with db.transaction() as tx:
            premise = tx.write_edge("causes", a, b)
            near = {"inferred": True, "premises": [str(premise.id)]}
            first = tx.write_edge("causes", a, c, metadata=near)
            both = {"inferred": True, "premises": [str(premise.id), str(first.id)]}
            tx.write_edge("causes", a, d, metadata=both)
        with db.transaction() as tx:
            tx.delete_edge(premise.id)
        assert db.edges(a) == []
        assert db.check() == []


@pytest.mark.stores
def test_an_inferred_edge_falls_with_a_premise_in_the_middle_of_its_chain() -> None:
    with worlddb.open(":memory:") as db:
        chain = causal_chain(db, 4)
        with db.transaction() as tx:
            links = [tx.write_edge("causes", s, t) for s, t in pairwise(chain)]
            metadata = {"inferred": True, "premises": [str(link.id) for link in links]}
            tx.write_edge("causes", chain[0], chain[-1], metadata=metadata)
        with db.transaction() as tx:
            tx.delete_edge(links[1].id)
        assert [edge.target for edge in db.edges(chain[0])] == [chain[1]]


@pytest.mark.stores
@pytest.mark.parametrize("premises", [5, None, {"a": 1}, [None], "text", [["nested"]]])
def test_odd_premises_do_not_keep_their_neighbours_from_being_deleted(premises: object) -> None:
    with worlddb.open(":memory:") as db:
        a, b, c = causal_chain(db, 3)
        with db.transaction() as tx:
            plain = tx.write_edge("causes", a, b)
            tx.write_edge("causes", a, c, metadata={"inferred": True, "premises": premises})
        with db.transaction() as tx:
            tx.delete_edge(plain.id)
        assert [edge.target for edge in db.edges(a)] == [c]


@pytest.mark.parametrize(
    "score",
    [10**400, -(10**400), "0.9", None, [1], True],
    ids=["huge", "-huge", "text", "null", "list", "bool"],
)
@pytest.mark.stores
def test_a_score_that_is_no_number_is_refused_as_such(score: object) -> None:
    with worlddb.open(":memory:") as db:
        a, b = causal_chain(db, 2)
        with pytest.raises(WorldDBError), db.transaction() as tx:
            tx.write_edge("same_as", a, b, metadata={"score": score})
        assert db.proposals() == []


@pytest.mark.stores("memory")
def test_a_read_inside_a_transaction_sees_its_writes_in_memory_and_the_last_commit_on_disk(
    tmp_path: Path,
) -> None:
    with worlddb.open(tmp_path / "store.db") as db, db.transaction() as tx:
        node = tx.create_node(type="Fact", name="not yet")
        with pytest.raises(NotFoundError):
            db.get(node.id)
    with worlddb.open(":memory:") as db, db.transaction() as tx:
        node = tx.create_node(type="Fact", name="not yet")
        assert db.get(node.id) == node
