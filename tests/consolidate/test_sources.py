"""The consolidator never deletes, closes or hides a source, at any time on either clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from consolidate.stage import Noting, open_store
from worlddb import Id, WorldDB

from .test_contradiction_sweep import Quiet

NAMES = "abcdefgh"
DAY = "2025-0{}-01T00:00:00+00:00".format

STEPS = st.lists(
    st.tuples(
        st.sampled_from(("fact", "world", "retire", "supersede", "cause", "home", "sleep", "drop")),
        st.integers(0, 50),
        st.integers(0, 50),
    ),
    min_size=3,
    max_size=25,
)


class Player:
    """Plays steps into a store; nodes and edges are chosen by number."""

    def __init__(self, db: WorldDB) -> None:
        self.db = db
        self.nodes: list[Id] = []
        db.ontology().register(Quiet("lives_in"), functional=True)
        with db.transaction() as tx:
            self.nodes = [tx.create_node(type="Topic", name=name).id for name in "xy"]

    def play(self, steps: Sequence[tuple[str, int, int]]) -> None:
        for kind, one, two in steps:
            if kind == "sleep":
                self.db.consolidate(summarizer=Noting(), worlds_max=1 + one, edges_max=1 + two)
            else:
                self._write(kind, one, two)

    def _write(self, kind: str, one: int, two: int) -> None:
        first, second = self.nodes[one % len(self.nodes)], self.nodes[two % len(self.nodes)]
        with self.db.transaction() as tx:
            if kind in ("fact", "world"):
                type_ = "Fact" if kind == "fact" else "Topic"
                text = f"{kind} {one} {two}"
                when = DAY(1 + one % 9)
                content = {"content": text} if kind == "fact" else {"name": text}
                made = tx.create_node(type=type_, parent=first, valid_from=when, **content)
                self.nodes.append(made.id)
            elif kind == "retire":
                tx.retire(first, at=DAY(1 + two % 9))
            elif kind == "home" and first != second:
                tx.write_edge("lives_in", first, second)
            # In the order of writing and of time there is no circle and no effect before its cause.
            elif kind in ("supersede", "cause") and one % len(self.nodes) < two % len(self.nodes):
                early, late = first, second
                if self.db.get(early).valid_from <= self.db.get(late).valid_from:
                    type_ = "supersedes" if kind == "supersede" else "causes"
                    ends = (late, early) if kind == "supersede" else (early, late)
                    tx.write_edge(type_, *ends)
        if kind == "drop":
            edges = [e for e in self.db.edges(first) if e.type in ("causes", "lives_in")]
            if edges:
                with self.db.transaction() as tx:
                    tx.delete_edge(edges[two % len(edges)].id)


def seen(db: WorldDB, known: list[Any]) -> dict[Any, Any]:
    """Return every memory and every edge that was stated, as of many pairs of times."""
    answers: dict[Any, Any] = {}
    valids = [None, *(DAY(month) for month in range(1, 10)), "2040-01-01T00:00:00+00:00"]
    for then in known:
        for valid in valids:
            for ended in (False, True):
                query = db.query().as_of(valid=valid, known=then).include_superseded(ended)
                nodes = [it for it in query.execute().nodes if it.type != "Summary"]
                answers[then, valid, ended] = {
                    (it.id, it.type, it.name, it.content, it.valid_from, it.valid_to, it.parent)
                    for it in nodes
                }
    for node in db.query().include_superseded().execute().nodes:
        if node.type != "Summary":
            edges = [
                (it.id, it.valid_from, it.valid_to)
                for it in db.edges(node.id, include_superseded=True)
                if not it.metadata.get("inferred") and it.type != "contradicts"
            ]
            answers[node.id] = edges
    return answers


@settings(derandomize=True, deadline=None, database=None, max_examples=20)
@given(STEPS)
def test_no_run_deletes_closes_or_hides_a_source(steps: Sequence[tuple[str, int, int]]) -> None:
    with open_store() as db:
        player = Player(db)
        player.play(steps)
        last = db.log()[-1].time
        known = [commit.time for commit in db.log()][-4:]
        before = seen(db, [None, *known])
        report = db.consolidate(summarizer=Noting())
        after = seen(db, [None, *known])
        assert after == before
        assert all(commit.actor == "consolidator" for commit in db.log() if commit.time > last)
        again = db.consolidate(summarizer=Noting())
        assert again.commits == ()
        assert report.is_complete
        assert db.check() == []
