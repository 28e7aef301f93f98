"""WriteContext: what a handler may do, and that nothing it does can leave half a transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import worlddb
from ontology.handler_stage import (
    Quiet,
    day,
    delete,
    fact,
    facts,
    names,
    open_store,
    refused,
    write,
)
from worlddb import (
    AsOf,
    Edge,
    EdgeDraft,
    Id,
    NotFoundError,
    RejectedError,
    WorldDB,
    WorldDBError,
    WriteContext,
)

Hook = Callable[[WriteContext, Edge], object]


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with open_store() as db:
        yield db


def teach(db: WorldDB, on_insert: Hook, on_delete: Hook = lambda ctx, edge: None) -> None:
    """Make `asks` a type of the root world that does this."""
    db.ontology().register(Quiet("asks", on_insert, on_delete))


def unchanged_by(db: WorldDB, call: Callable[[], object], *expected: type[Exception]) -> Exception:
    """Run a call that has to fail, and return its error; nothing of it may be left."""
    before = db.root_state, db.log(), list(db.export())
    with pytest.raises(expected) as caught:
        call()
    assert (db.root_state, db.log(), list(db.export())) == before
    assert db.check() == []
    return caught.value


# -- further writes --------------------------------------------------------------------------------


def test_a_handler_writes_further_nodes_and_edges_in_the_same_commit(db: WorldDB) -> None:
    def on_insert(ctx: WriteContext, edge: Edge) -> None:
        world = ctx.create_node(type="Topic", name="answer", content=ctx.get(edge.target).name)
        inner = ctx.create_node(type="Fact", name="inner", parent=world.id)
        ctx.write_edge("refers_to", inner.id, edge.source, metadata={"n": 1})
        ctx.write_edge("contains", edge.source, world.id)

    a, b = facts(db, "ab")
    teach(db, on_insert)
    commits = len(db.log())
    write(db, "asks", a, b)
    assert len(db.log()) == commits + 1
    assert (db.log()[-1].nodes, db.log()[-1].edges) == (2, 3)
    (answer,) = db.children(a)
    assert (answer.name, answer.content, answer.known_from) == ("answer", "b", db.log()[-1].time)
    assert names(db.children(answer.id)) == ["inner"]
    assert names(db.query().seeds(answer.id).in_world(a).execute()) == ["answer"]
    assert worlddb.verify_proof(db.prove(answer.id), db.root_state)
    assert db.check() == []


def test_a_handler_makes_nodes_and_edges_by_all_the_words_of_a_transaction(db: WorldDB) -> None:
    def on_insert(ctx: WriteContext, edge: Edge) -> None:
        made = ctx.create_node(
            type="Event",
            name="asked",
            valid_from=day(2),
            valid_to=day(4),
            created_at=day(3),
            source="a letter",
            aliases=["a question"],
        )
        ctx.write_edge("refers_to", made.id, edge.target, valid_from=day(2), valid_to=day(3))
        ctx.add_source(made.id, ["a letter", "a diary"])
        ctx.flag_conflict(edge)
        ctx.stage_merge(edge)

    a, b = facts(db, "ab")
    teach(db, on_insert)
    write(db, "asks", a, b)
    (made,) = db.query().include_superseded().filter_type("Event").execute()
    told = made.to_dict()
    assert [told[it] for it in ("valid_from", "created_at", "valid_to")] == [day(2), day(3), day(4)]
    assert (made.provenance, made.aliases) == (("a letter", "a diary"), ("a question",))
    told = db.edges(made.id, include_superseded=True)[0].to_dict()
    assert (told["valid_from"], told["valid_to"]) == (day(2), day(3))
    assert [(item.left, item.right) for item in db.conflicts()] == [(a, b)]
    (proposal,) = db.proposals()
    assert (proposal.tier, proposal.score, proposal.evidence) == ("given", 1.0, {})
    assert db.check() == []


def test_a_handlers_reads_include_what_the_transaction_has_written(db: WorldDB) -> None:
    seen: dict[str, Any] = {}

    def on_insert(ctx: WriteContext, edge: Edge) -> None:
        seen["edge"] = ctx.get_edge(edge.id)
        seen["out"] = ctx.edges(edge.source)
        seen["in"] = ctx.edges(edge.target, "in", ["asks"])
        seen["other"] = ctx.edges(edge.source, types=["refers_to"])
        new = ctx.create_node(type="Fact", name="new")
        seen["new"] = ctx.get(new.id) == new
        seen["now"] = ctx.now
        seen["reaches"] = ctx.reaches(edge.source, edge.target, ["asks"])
        seen["back"] = ctx.reaches(edge.target, edge.source, ["asks"])
        seen["encloses"] = ctx.encloses(db.root_id, new.id), ctx.encloses(new.id, new.id)
        seen["placed"] = ctx.is_placed(new.id)
        ctx.place(new.id, edge.target)
        seen["moved"] = ctx.get(new.id).parent == edge.target and ctx.is_placed(new.id)

    a, b = facts(db, "ab")
    teach(db, on_insert)
    edge = write(db, "asks", a, b)
    assert seen["edge"] == edge
    assert seen["out"] == seen["in"] == [edge]
    assert seen["other"] == []
    assert seen["now"] == db.log()[-1].time
    assert (seen["reaches"], seen["back"]) == (True, False)
    assert seen["encloses"] == (True, True)
    assert (seen["placed"], seen["new"], seen["moved"]) == (False, True, True)
    assert names(db.children(b)) == ["new"]
    assert db.check() == []


def test_a_handler_closes_the_validity_of_nodes_and_edges(db: WorldDB) -> None:
    a, b, c = facts(db, "abc")
    kept = write(db, "refers_to", a, c)

    def on_insert(ctx: WriteContext, edge: Edge) -> None:
        ctx.close_validity(edge.target, at=day(20))
        ctx.close_validity(edge.target, at=day(10))
        ctx.close_validity(edge.target, at=day(15))
        ctx.close_validity(kept.id, at=day(12))
        ctx.close_validity(edge.id, at=day(11))

    teach(db, on_insert)
    edge = write(db, "asks", a, b)
    ends = db.get(b).valid_to, db.get_edge(kept.id).valid_to, edge.valid_to
    assert [end and end.day for end in ends] == [10, 12, 11]
    assert db.edges(a) == []
    assert db.get(b, as_of=AsOf(known=db.log()[-2].time)).valid_to is None
    assert db.check() == []


def test_a_handler_flags_and_settles_conflicts_and_stages_merges(db: WorldDB) -> None:
    def on_insert(ctx: WriteContext, edge: Edge) -> None:
        ctx.flag_conflict(edge, "they disagree")
        staged = ctx.stage_merge(edge, tier="own", score=0.5, evidence={"by": "a handler"})
        assert staged.status == "pending"
        again = ctx.stage_merge(edge, tier="other", score=0.9, evidence={})
        assert again == staged

    def on_delete(ctx: WriteContext, edge: Edge) -> None:
        ctx.settle_conflict(edge)
        ctx.drop_merge(edge)

    a, b = facts(db, "ab")
    teach(db, on_insert, on_delete)
    edge = write(db, "asks", a, b)
    assert [item.reason for item in db.query().seeds(a).execute().conflicts] == ["they disagree"]
    (proposal,) = db.proposals()
    assert (proposal.tier, proposal.score, proposal.evidence) == ("own", 0.5, {"by": "a handler"})
    db.accept_merge(edge.id)
    assert db.equivalence_class(a) == {a, b}
    delete(db, edge)
    assert db.conflicts() == []
    assert db.equivalence_class(a) == {a}
    assert db.check() == []


def test_a_handler_deletes_edges_through_their_own_handlers(db: WorldDB) -> None:
    a, b, c = facts(db, "abc")
    conflict = write(db, "contradicts", a, c)
    teach(db, lambda ctx, edge: ctx.delete_edge(conflict.id))
    write(db, "asks", a, b)
    assert db.conflicts() == []
    assert db.get_edge(conflict.id).known_to == db.log()[-1].time


def test_a_chain_through_several_handlers_lands_whole(db: WorldDB) -> None:
    def first(ctx: WriteContext, edge: Edge) -> None:
        ctx.write_edge("second", edge.target, edge.source)

    def second(ctx: WriteContext, edge: Edge) -> None:
        new = ctx.create_node(type="Fact", name="third")
        ctx.write_edge("supersedes", new.id, edge.source)

    db.ontology().register(Quiet("first", first))
    db.ontology().register(Quiet("second", second))
    a, b = facts(db, "ab")
    write(db, "first", a, b)
    assert db.get(b).valid_to == db.log()[-1].time
    assert set(names(db.query().execute())) == {"a", "third"}


def test_what_a_handler_did_is_played_back_without_it(db: WorldDB) -> None:
    def on_insert(ctx: WriteContext, edge: Edge) -> None:
        made = ctx.create_node(type="Fact", name="made")
        ctx.place(made.id, edge.target)
        ctx.flag_conflict(edge, "both")
        ctx.close_validity(edge.source, at=ctx.now)

    a, b = facts(db, "ab")
    teach(db, on_insert)
    write(db, "asks", a, b)
    lines = list(db.export())
    with open_store() as other:
        other.replay(lines)
        assert list(other.export()) == lines
        assert other.root_state == db.root_state
        assert other.conflicts() == db.conflicts()
        assert other.check() == []


# -- refusing --------------------------------------------------------------------------------------


def test_a_refusal_deep_in_a_chain_undoes_the_whole_transaction(db: WorldDB) -> None:
    def on_insert(ctx: WriteContext, edge: Edge) -> None:
        made = ctx.create_node(type="Fact", name="made")
        ctx.write_edge("supersedes", made.id, edge.target)
        ctx.write_edge("supersedes", edge.target, made.id)

    a, b = facts(db, "ab")
    teach(db, on_insert)
    with refused(db, "supersedes: the old node already"), db.transaction() as tx:
        fact(tx, "before")
        tx.write_edge("asks", a, b)
    assert db.get(b).valid_to is None


def test_a_handler_says_why_it_refuses(db: WorldDB) -> None:
    a, b = facts(db, "ab")
    teach(db, lambda ctx, edge: ctx.refuse("not on a Sunday"))
    error = unchanged_by(db, lambda: write(db, "asks", a, b), RejectedError)
    assert isinstance(error, RejectedError)
    assert (error.reason, error.edge_type) == ("not on a Sunday", "asks")
    assert str(error) == "asks: not on a Sunday"


def test_a_handler_may_refuse_a_deletion(db: WorldDB) -> None:
    a, b = facts(db, "ab")
    teach(db, lambda ctx, edge: None, lambda ctx, edge: ctx.refuse("it is needed"))
    edge = write(db, "asks", a, b)
    with refused(db, "asks: it is needed"):
        delete(db, edge)
    assert db.edges(a) == [edge]


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyError, RecursionError, KeyboardInterrupt])
def test_a_handler_that_breaks_undoes_the_whole_transaction(
    db: WorldDB, error: type[BaseException]
) -> None:
    def on_insert(ctx: WriteContext, edge: Edge) -> None:
        ctx.create_node(type="Fact", name="made")
        raise error("broken")

    a, b = facts(db, "ab")
    teach(db, on_insert)
    before = list(db.export())
    for swallowed in (False, True):
        with pytest.raises(error):
            ask_after_a_fact(db, a, b, error if swallowed else NotImplementedError)
    assert list(db.export()) == before
    assert db.check() == []


def ask_after_a_fact(db: WorldDB, a: Id, b: Id, swallow: type[BaseException]) -> None:
    with db.transaction() as tx:
        fact(tx, "before")
        with suppress(swallow):
            tx.write_edge("asks", a, b)
        # The block goes on as if nothing had happened; it must not commit.


def test_a_refusal_that_another_handler_swallows_still_undoes_everything(db: WorldDB) -> None:
    """Otherwise a refused edge would stay in the store."""

    def on_insert(ctx: WriteContext, edge: Edge) -> None:
        with pytest.raises(RejectedError):
            ctx.write_edge("supersedes", edge.target, edge.target)

    a, b = facts(db, "ab")
    teach(db, on_insert)
    with refused(db, "cannot supersede itself"):
        write(db, "asks", a, b)
    assert [edge.type for edge in db.edges(b)] == []


MISSING = Id(bytes(32))
ASKS_FOR_NOTHING: dict[str, Hook] = {
    "get": lambda ctx, edge: ctx.get(MISSING),
    "get_edge": lambda ctx, edge: ctx.get_edge(MISSING),
    "edges": lambda ctx, edge: ctx.edges(MISSING),
    "delete_edge": lambda ctx, edge: ctx.delete_edge(MISSING),
    "close_validity": lambda ctx, edge: ctx.close_validity(MISSING, at=ctx.now),
    "write_edge": lambda ctx, edge: ctx.write_edge("refers_to", edge.source, MISSING),
    "create_node": lambda ctx, edge: ctx.create_node(type="Fact", parent=MISSING),
    "place": lambda ctx, edge: ctx.place(edge.source, MISSING),
    "reaches": lambda ctx, edge: ctx.reaches(edge.source, MISSING, ["asks"]),
}


@pytest.mark.parametrize("ask", ASKS_FOR_NOTHING.values(), ids=ASKS_FOR_NOTHING)
def test_a_handler_that_asks_for_what_is_not_there_is_told_so(db: WorldDB, ask: Hook) -> None:
    a, b = facts(db, "ab")
    teach(db, ask)
    unchanged_by(db, lambda: write(db, "asks", a, b), NotFoundError)


BAD_INPUT: dict[str, Callable[[Any, Any], object]] = {
    "a time that is not a time": lambda ctx, edge: ctx.close_validity(edge.target, at="yesterday"),
    "a number for a time": lambda ctx, edge: ctx.close_validity(edge.target, at=5),
    "no type": lambda ctx, edge: ctx.create_node(type=""),
    "NUL in a name": lambda ctx, edge: ctx.create_node(type="Fact", name="\0"),
    "a surrogate in content": lambda ctx, edge: ctx.create_node(type="Fact", content="\ud800"),
    "an unknown type": lambda ctx, edge: ctx.write_edge("no such type", edge.source, edge.target),
    "metadata that is no JSON": lambda ctx, edge: ctx.write_edge(
        "asks", edge.source, edge.target, metadata={"a": {1}}
    ),
    "a score that is NaN": lambda ctx, edge: ctx.stage_merge(
        edge, tier="t", score=float("nan"), evidence={}
    ),
    "evidence that is no JSON": lambda ctx, edge: ctx.stage_merge(
        edge, tier="t", score=1.0, evidence={"a": {1}}
    ),
    "a surrogate in the tier": lambda ctx, edge: ctx.stage_merge(
        edge, tier="\ud800", score=1.0, evidence={}
    ),
    "a tier that is not a text": lambda ctx, edge: ctx.stage_merge(
        edge, tier=5, score=1.0, evidence={}
    ),
    "a score that is text": lambda ctx, edge: ctx.stage_merge(
        edge, tier="t", score="high", evidence={}
    ),
    "a surrogate in the reason": lambda ctx, edge: ctx.flag_conflict(edge, "\ud800"),
    "no reason": lambda ctx, edge: ctx.flag_conflict(edge, None),
    "a reason that is not a text": lambda ctx, edge: ctx.flag_conflict(edge, 5),
    "an unknown direction": lambda ctx, edge: ctx.edges(edge.source, "sideways"),
    "an id that is none": lambda ctx, edge: ctx.get("xyz"),
}


@pytest.mark.parametrize("ask", BAD_INPUT.values(), ids=BAD_INPUT)
def test_a_handler_that_gives_bad_input_is_told_so_and_leaves_nothing(
    db: WorldDB, ask: Hook
) -> None:
    a, b = facts(db, "ab")
    teach(db, ask)
    unchanged_by(db, lambda: write(db, "asks", a, b), WorldDBError)


# -- limits of what handlers may do ----------------------------------------------------------------


def test_a_handler_that_calls_itself_without_end_is_stopped(db: WorldDB) -> None:
    def on_insert(ctx: WriteContext, edge: Edge) -> None:
        further = ctx.create_node(type="Fact", name="further")
        ctx.write_edge("asks", edge.source, further.id)

    a, b = facts(db, "ab")
    teach(db, on_insert)
    with refused(db, "handlers called each other more than 100 deep"):
        write(db, "asks", a, b)


def test_handlers_that_call_each_other_without_end_are_stopped(db: WorldDB) -> None:
    def turn(type_: str) -> Hook:
        def on_insert(ctx: WriteContext, edge: Edge) -> None:
            number = int(edge.metadata.get("n", 0)) + 1
            ctx.write_edge(type_, edge.target, edge.source, metadata={"n": number})

        return on_insert

    db.ontology().register(Quiet("ping", turn("pong")))
    db.ontology().register(Quiet("pong", turn("ping")))
    a, b = facts(db, "ab")
    with refused(db, "more than 100 deep"):
        write(db, "ping", a, b)
    with refused(db, "more than 100 deep"), db.transaction() as tx:
        tx.write_edges("ping", [EdgeDraft(source=a, target=b)])


def test_writing_and_deleting_in_turn_without_end_is_stopped(db: WorldDB) -> None:
    teach(
        db,
        lambda ctx, edge: ctx.delete_edge(edge.id),
        lambda ctx, edge: ctx.write_edge("asks", edge.source, edge.target),
    )
    a, b = facts(db, "ab")
    with refused(db, "more than 100 deep"):
        write(db, "asks", a, b)


def test_a_long_chain_that_ends_is_no_runaway(db: WorldDB) -> None:
    def on_insert(ctx: WriteContext, edge: Edge) -> None:
        left = int(edge.metadata["left"])
        if left:
            ctx.write_edge("asks", edge.target, edge.source, metadata={"left": left - 1})

    a, b = facts(db, "ab")
    teach(db, on_insert)
    with db.transaction() as tx:
        for start in range(90, 99):  # The depth is counted anew for each edge.
            tx.write_edge("asks", a, b, metadata={"left": start, "from": start})
    assert db.check() == []


@pytest.mark.parametrize("how", ["into itself", "into its child", "root into a world"])
def test_a_handler_cannot_put_a_world_inside_itself(db: WorldDB, how: str) -> None:
    (outer,) = facts(db, "a")
    with db.transaction() as tx:
        inner = fact(tx, "inner", parent=outer)
    node, world = {
        "into itself": (outer, outer),
        "into its child": (outer, inner),
        "root into a world": (db.root_id, outer),
    }[how]
    teach(db, lambda ctx, edge: ctx.place(node, world))
    unchanged_by(db, lambda: write(db, "asks", outer, inner), WorldDBError)


def test_flagging_the_same_edge_twice_is_one_conflict(db: WorldDB) -> None:
    def on_insert(ctx: WriteContext, edge: Edge) -> None:
        ctx.flag_conflict(edge, "once")
        ctx.flag_conflict(edge, "twice")

    a, b = facts(db, "ab")
    teach(db, on_insert)
    write(db, "asks", a, b)
    assert len(db.conflicts()) == 1
    assert db.check() == []


def test_settling_what_was_never_flagged_changes_nothing(db: WorldDB) -> None:
    teach(db, lambda ctx, edge: None, lambda ctx, edge: ctx.settle_conflict(edge))
    a, b = facts(db, "ab")
    delete(db, write(db, "asks", a, b))
    assert db.conflicts(include_settled=True) == []
    assert db.check() == []


def test_staging_a_rejected_edge_again_does_not_overrule_the_decision(db: WorldDB) -> None:
    """New evidence comes with a new edge; the old one stays decided."""
    a, b, c = facts(db, "abc")
    same = write(db, "same_as", a, b)
    db.reject_merge(same.id)

    def on_insert(ctx: WriteContext, edge: Edge) -> None:
        ctx.stage_merge(ctx.get_edge(same.id), tier="own", score=0.5, evidence={"new": True})

    teach(db, on_insert)
    write(db, "asks", a, c)
    assert [item.status for item in db.proposals(None)] == ["rejected"]
    write(db, "same_as", a, b, metadata={"tier": "own", "score": 0.5, "new": True})
    assert [item.status for item in db.proposals(None)] == ["rejected", "pending"]
    assert db.check() == []


def test_a_context_that_outlives_its_transaction_writes_nothing(tmp_path: Path) -> None:
    kept: list[WriteContext] = []
    with open_store(tmp_path / "a.db") as db:
        a, b = facts(db, "ab")
        teach(db, lambda ctx, edge: kept.append(ctx))
        write(db, "asks", a, b)
        unchanged_by(db, lambda: kept[0].create_node(type="Fact", name="late"), WorldDBError)
        unchanged_by(db, lambda: kept[0].write_edge("refers_to", a, b), WorldDBError)
        unchanged_by(db, lambda: kept[0].close_validity(a, at=day(1)), WorldDBError)


# -- batches ---------------------------------------------------------------------------------------


class Batch(Quiet):
    """A handler that takes batches, and remembers them."""

    def __init__(self, type_: str) -> None:
        super().__init__(type_, lambda ctx, edge: self.single.append(edge))
        self.single: list[Edge] = []
        self.batches: list[list[Edge]] = []

    def on_insert_many(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        """Remember the batch; refuse what the test marks."""
        self.batches.append(list(edges))
        if any(edge.metadata.get("bad") for edge in edges):
            ctx.refuse("a bad one")
        if edges[0].metadata.get("close"):
            ctx.close_validity(edges[0].target, at=day(20))


def test_a_batch_goes_to_on_insert_many_once_and_a_single_edge_to_on_insert(db: WorldDB) -> None:
    handler = Batch("asks")
    db.ontology().register(handler)
    a, b, c = facts(db, "abc")
    with db.transaction() as tx:
        drafts = [
            EdgeDraft(source=a, target=t, metadata={"n": n}) for n in range(5) for t in (b, c)
        ]
        assert tx.write_edges("asks", [*drafts, drafts[0]]) == 10
        assert tx.write_edges("asks", drafts[:3]) == 0
        tx.write_edge("asks", b, c)
    assert [len(batch) for batch in handler.batches] == [10]
    assert [edge.metadata["n"] for edge in handler.batches[0]] == [
        n for n in range(5) for _ in "bc"
    ]
    assert [(edge.source, edge.target) for edge in handler.single] == [(b, c)]
    assert handler.batches[0] == db.edges(a)


def test_a_refused_batch_leaves_nothing(db: WorldDB) -> None:
    db.ontology().register(Batch("asks"))
    a, b = facts(db, "ab")
    drafts = [EdgeDraft(source=a, target=b, metadata={"n": n, "bad": n == 3}) for n in range(5)]
    with refused(db, "a bad one"), db.transaction() as tx:
        fact(tx, "before")
        tx.write_edges("asks", drafts)


def test_a_batch_handler_may_act(db: WorldDB) -> None:
    db.ontology().register(Batch("asks"))
    a, b = facts(db, "ab")
    with db.transaction() as tx:
        tx.write_edges("asks", [EdgeDraft(source=a, target=b, metadata={"close": True})])
    assert db.get(b).valid_to is not None
    assert db.check() == []


@pytest.mark.parametrize(
    "type_",
    [
        "refers_to",
        "contains",
        "supersedes",
        "same_as",
        "contradicts",
        "implies",
        "derived_from",
        "instance_of",
        "subtype_of",
        "causes",
        "precedes",
    ],
)
def test_a_batch_comes_to_the_same_as_one_by_one(type_: str) -> None:
    def build(how: str) -> WorldDB:
        db = open_store()
        nodes = facts(db, "abcdefgh")
        pairs = list(pairwise(nodes))
        if type_ == "supersedes":
            pairs = [(target, source) for source, target in pairs]
        with db.transaction() as tx:
            if how == "batch":
                tx.write_edges(type_, [EdgeDraft(source=s, target=t) for s, t in pairs])
            else:
                for source, target in pairs:
                    tx.write_edge(type_, source, target)
        return db

    with build("batch") as batch, build("single") as single:
        assert batch.root_state == single.root_state
        assert batch.query().include_superseded().execute() == (
            single.query().include_superseded().execute()
        )
        assert batch.proposals(None) == single.proposals(None)
        assert batch.conflicts() == single.conflicts()
        assert batch.check() == single.check() == []
