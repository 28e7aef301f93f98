"""A state machine over the public API: whatever is called in whatever order, the rules hold.

Hypothesis chooses the calls and shrinks what goes wrong to the shortest way there. The naive model
says what every call must do; the invariants are asked of the store after each one.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import worlddb
from store_choice import fewer
from thinning import examples
from worlddb import AsOf, Edge, Id, Node, verify_proof

from .naive import ROOT, at
from .player import (
    BASE,
    HOUR,
    HOURS,
    Again,
    Create,
    Decide,
    Delete,
    Note,
    Player,
    Retire,
    Step,
    Turn,
    Write,
    again_steps,
    create_steps,
    decide_steps,
    delete_steps,
    note_steps,
    retire_steps,
    steps,
    write_steps,
)
from .view import View

CLOCK_STEPS = st.sampled_from((-HOUR, -1, 0, 1, HOUR // 3, HOUR))


class StoreMachine(RuleBasedStateMachine):
    """A store and its model, moved by one rule at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.player = Player()
        self.ends: dict[Id, int] = {}
        self.roots: list[tuple[Id, int]] = []

    def teardown(self) -> None:
        self.player.db.close()

    # -- rules -------------------------------------------------------------------------------------

    def do(self, *done: Step, aborts: bool = False, bulk: bool = False) -> None:
        """Play steps as one transaction at the present clock."""
        turn = Turn(clock=self.player.clock, steps=done, aborts=aborts, bulk=bulk)
        if self.player.play(turn):
            self.roots.append((self.player.db.root_state, self.player.world.time))

    @initialize(first=st.lists(create_steps, min_size=2, max_size=3))
    def begin(self, first: list[Create]) -> None:
        self.do(*first)

    @rule(change=CLOCK_STEPS)
    def clock_moves(self, change: int) -> None:
        self.player.clock += change

    @rule(step=create_steps)
    def create(self, step: Create) -> None:
        self.do(step)

    @rule(step=write_steps)
    def write(self, step: Write) -> None:
        self.do(step)

    @rule(step=retire_steps)
    def retire(self, step: Retire) -> None:
        self.do(step)

    @rule(step=note_steps)
    def note(self, step: Note) -> None:
        self.do(step)

    @precondition(lambda self: self.player.world.edges)
    @rule(step=delete_steps)
    def delete(self, step: Delete) -> None:
        self.do(step)

    @precondition(lambda self: self.player.world.edges)
    @rule(step=again_steps)
    def write_again(self, step: Again) -> None:
        self.do(step)

    @precondition(lambda self: self.player.world.proposals)
    @rule(step=decide_steps)
    def decide(self, step: Decide) -> None:
        self.do(step)

    @rule(done=st.lists(steps, min_size=2, max_size=4), aborts=st.booleans(), bulk=st.booleans())
    def several(self, done: list[Step], aborts: bool, bulk: bool) -> None:
        self.do(*done, aborts=aborts, bulk=bulk)

    @rule()
    def export_and_replay(self) -> None:
        lines = list(self.player.db.export())
        with worlddb.open(":memory:") as copy:
            copy.replay(lines)
            assert copy.root_state == self.player.db.root_state
            assert copy.log() == self.player.db.log()
            assert copy.check() == []

    @rule(valid=st.none() | st.integers(-1, HOURS + 1), back=st.integers(0, 10))
    def ask_the_past(self, valid: int | None, back: int) -> None:
        world = self.player.history[-1 - back % len(self.player.history)]
        instant = None if valid is None else BASE + valid * HOUR
        view = View(world=world, now=self.player.now, valid=instant)
        asked = self.player.db.query().as_of(
            valid=None if instant is None else at(instant), known=at(world.time)
        )
        values = world.node_values()
        assert {node.id: node for node in asked.execute()} == {
            ident: values[ident] for ident in view.everything()
        }

    # -- invariants --------------------------------------------------------------------------------

    @invariant()
    def every_row_is_as_the_model_says(self) -> None:
        db, world = self.player.db, self.player.world
        nodes: dict[Id, Node] = world.node_values()
        edges: dict[Id, Edge] = world.edge_values()
        for ident, node in nodes.items():
            assert db.get(ident) == node
            assert db.edges(ident, include_superseded=True) == [
                edge for edge in edges.values() if edge.source == ident
            ]
        for ident in {node.parent for node in nodes.values() if node.parent}:
            assert db.children(ident, include_superseded=True) == [
                node for node in nodes.values() if node.parent == ident
            ]

    @invariant()
    def identity_is_as_the_model_says(self) -> None:
        db, world = self.player.db, self.player.world
        assert db.proposals(None) == list(world.proposals.values())
        assert db.conflicts(include_settled=True) == list(world.conflicts.values())
        for item in world.proposals.values():
            assert db.equivalence_class(item.left) == world.same_as([item.left])

    @invariant()
    def the_store_is_sound(self) -> None:
        assert self.player.db.check() == []

    @invariant()
    def validity_only_tightens(self) -> None:
        for ident, (_, ends) in self.player.world.validities().items():
            before = self.ends.get(ident)
            assert before is None or (ends is not None and ends <= before)
            if ends is not None:
                self.ends[ident] = ends

    @invariant()
    def the_journal_is_a_chain(self) -> None:
        log = self.player.db.log()
        assert len(log) == len(self.player.history)
        for before, after in pairwise(log):
            assert after.previous == before.hash
            assert after.time > before.time
        for state, time in self.roots:
            assert self.player.db.get(ROOT, as_of=AsOf(known=at(time))).state == state

    @invariant()
    def every_node_has_a_proof(self) -> None:
        db = self.player.db
        for ident in self.player.world.nodes:
            assert verify_proof(db.prove(ident), db.root_state)


@pytest.mark.stores
def test_whatever_is_called_in_whatever_order_the_rules_hold(store_kind: str) -> None:
    tried = settings(
        derandomize=True,
        deadline=None,
        database=None,
        max_examples=fewer(store_kind, examples(30, 12), 3),
        stateful_step_count=fewer(store_kind, 20, 8),
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(StoreMachine, settings=tried)
