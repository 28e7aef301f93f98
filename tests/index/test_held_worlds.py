"""Held worlds: each is held at one commit, while time passes and others write."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import worlddb
from property.naive import at
from recall.search_stage import (
    BASE,
    HOUR,
    Clock,
    edge,
    fact,
    facts,
    found,
    hold_at_most,
    lanes,
    open_store,
)
from worlddb import AsOf, Id, Recall, Subgraph, WorldDB
from worlddb.embed.embedder import HashEmbedder, Vectors
from worlddb.index import search
from worlddb.index.bm25 import COUNT_MAX, SORTED_FROM, Bm25, SaidWords
from worlddb.index.held_world import HeldWorld

# -- time passes -----------------------------------------------------------------------------------


def test_a_membership_stops_counting_when_its_time_has_come() -> None:
    clock = Clock()
    db = open_store(clock=clock)
    scope = fact(db, "", type="Scope", name="scope")
    home = fact(db, "", type="Topic", name="home")
    member, child = fact(db, "apple", parent=home), fact(db, "apple pie", parent=scope)
    edge(db, "contains", scope, member, valid_to=at(BASE + HOUR))

    def inside(**when: Any) -> set[Id]:
        asked = db.query().in_world(scope).as_of(**when)
        answers = {frozenset(found(db.recall("apple", scope=scope, as_of=AsOf(**when))))}
        answers.add(frozenset(found(asked.text("apple").execute())))
        (answer,) = answers
        return set(answer)

    known = db.log()[-1].time
    assert inside() == inside(known=known) == {member, child}
    clock.now = BASE + HOUR - 1
    assert inside() == inside(known=known) == {member, child}
    clock.now = BASE + HOUR
    assert inside() == inside(known=known) == {child}
    assert inside(valid=at(BASE + HOUR - 1)) == {member, child}


def test_what_is_committed_while_a_membership_expires_is_not_missed() -> None:
    clock = Clock()
    db = open_store(clock=clock)
    scope = fact(db, "", type="Scope", name="scope")
    home = fact(db, "", type="Topic", name="home")
    member, child = fact(db, "apple", parent=home), fact(db, "apple pie", parent=scope)
    edge(db, "contains", scope, member, valid_to=at(BASE + HOUR))
    assert set(found(db.recall("apple", scope=scope))) == {member, child}
    clock.now = BASE + 2 * HOUR
    with db.transaction() as tx:
        tx.retire(child)
        new = tx.create_node(type="Fact", content="apple tart", name="Tart", parent=scope).id
        tx.add_aliases(new, ["Cake"])
        tx.write_edge("refers_to", new, new)
    assert found(db.recall("apple", scope=scope)) == [new]
    with db.transaction() as tx:
        crumb = tx.create_node(type="Fact", content="crumbs", parent=new).id
    by_name = db.recall("Cake", scope=scope, settings=lanes("graph"))
    assert set(found(by_name)) == {new, crumb}


# -- others write meanwhile ------------------------------------------------------------------------


class Interrupted(HashEmbedder):
    """An embedder during whose work something else happens, once."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], object] | None = None

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()
        return super().embed_queries(texts)


def test_what_is_written_while_a_question_is_embedded_has_its_vector_the_next_time(
    tmp_path: Path,
) -> None:
    path, embedder = tmp_path / "store.db", Interrupted()
    with open_store(path, embedder=embedder) as db, open_store(path) as other:
        topic = fact(db, "", type="Topic", name="Fruit")
        first = fact(db, "an apple", parent=topic)
        by_meaning = lanes("vector")
        assert found(db.recall("an apple", settings=by_meaning)) == [first]
        embedder.meanwhile = lambda: fact(other, "an apple, too", parent=topic)
        db.recall("an apple", settings=by_meaning)
        with open_store(path) as fresh:
            expected = fresh.recall("an apple", settings=by_meaning)
            everything = fresh.query().vector([1.0] * 64).execute()
        assert len(expected) == 2
        assert db.recall("an apple", settings=by_meaning) == expected
        assert db.query().vector([1.0] * 64).execute() == everything


def test_readers_see_each_commit_whole_while_somebody_writes(tmp_path: Path) -> None:
    """Each commit ends the last pair of facts and begins the next one, in a scope and outside."""
    path = tmp_path / "store.db"
    db = open_store(path)
    scope = fact(db, "", type="Scope", name="scope")
    home = fact(db, "", type="Topic", name="home")
    pairs, stop = [facts(db, ["apple", "apple"], parent=scope)], threading.Event()
    wrong: list[object] = []

    def ask(question: Callable[[], Recall | Subgraph], *also: set[Id]) -> None:
        try:
            while not stop.is_set():
                answer = set(found(question()))
                if answer not in (*map(set, pairs), *also):
                    wrong.append(answer)
        except BaseException as error:
            wrong.append(error)

    vector = db.engine.search.vectors().ask("apple").tolist()
    inside = db.query().in_world(scope)
    asked: list[tuple[Any, ...]] = [
        (lambda: db.recall("apple", scope=scope),),
        (lambda: db.recall("apple", settings=lanes("text")),),
        (lambda: inside.text("apple").execute(),),
        # What was committed after the last embedding has no vector yet.
        (lambda: inside.vector(vector).execute(), set()),
    ]
    threads = [threading.Thread(target=ask, args=args) for args in asked]
    for thread in threads:
        thread.start()
    try:
        for _ in range(60):
            new = [scope, scope]
            pairs.append(new)
            with db.transaction() as tx:
                for old in pairs[-2]:
                    tx.retire(old)
                new[0] = tx.create_node(type="Fact", content="apple", parent=scope).id
                new[1] = tx.create_node(type="Fact", content="apple", parent=home).id
                tx.write_edge("contains", scope, new[1])
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    with open_store(path) as fresh:
        for scope_or_all in (scope, None):
            expected = fresh.recall("apple", scope=scope_or_all)
            assert found(db.recall("apple", scope=scope_or_all)) == found(expected)
        assert found(inside.vector(vector).execute()) == found(
            fresh.query().in_world(scope).vector(vector).execute()
        )
    db.close()


# -- what is kept and what is not ------------------------------------------------------------------


@pytest.mark.parametrize("most", [1 << 20, 0], ids=["held", "wide"])
def test_what_was_read_in_a_transaction_is_gone_when_it_is_rolled_back(most: int) -> None:
    db = hold_at_most(open_store(), most)
    scope = fact(db, "", type="Scope", name="scope")
    kept = fact(db, "an apple", parent=scope)

    def answers() -> list[Any]:
        inside = db.query().in_world(scope)
        return [
            db.recall("apple zebra", scope=scope),
            db.recall("apple zebra"),
            inside.text("zebra").execute(),
            inside.vector([1.0] * 64).execute(),
        ]

    def change_and_think_again() -> None:
        with db.transaction() as tx:
            new = tx.create_node(type="Fact", content="a zebra", parent=scope).id
            tx.retire(kept)
            asked = db.recall("zebra apple", scope=scope, settings=lanes("text"))
            assert found(asked) == [new]
            answers()
            raise KeyboardInterrupt

    before = answers()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            change_and_think_again()
        assert answers() == before
    other = fact(db, "another zebra", parent=scope)
    assert set(found(db.recall("zebra apple", scope=scope))) == {kept, other}


def kept_worlds(db: WorldDB) -> dict[Any, HeldWorld]:
    assert db.engine.search._interiors is not None
    return db.engine.search._interiors._held


@pytest.mark.parametrize("limit", ["NODES_MAX", "WORLDS_MAX"])
def test_worlds_that_had_to_go_are_read_again(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    db = open_store()
    scopes = [fact(db, "", type="Scope", name=f"scope {number}") for number in range(6)]
    monkeypatch.setattr(search, limit, 3)
    rng, inside = random.Random(1), {scope: set[Id]() for scope in scopes}
    for number in range(80):
        scope = rng.choice(scopes)
        if rng.random() < 0.3:
            inside[scope].add(fact(db, f"apple {number}", parent=scope))
        assert set(found(db.recall("apple", scope=scope, k=100))) == inside[scope]
        when = AsOf(valid=at(db.engine.clock()))
        assert set(found(db.recall("apple", scope=scope, k=100, as_of=when))) <= inside[scope]
        held = list(kept_worlds(db).values())
        assert len(held) <= (3 if limit == "WORLDS_MAX" else len(held))
        assert len(held) == 1 or limit == "WORLDS_MAX" or sum(map(len, held)) <= 3


def test_a_world_that_was_read_half_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    db = open_store()
    scope = fact(db, "", type="Scope", name="scope")
    known = facts(db, ["apple", "apple"], parent=scope)
    assert set(found(db.recall("apple", scope=scope))) == set(known)
    new = facts(db, ["apple"] * 5, parent=scope)
    add, left = Bm25.add, [3]

    def fails_once(self: Bm25, words: Sequence[str]) -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        add(self, words)

    monkeypatch.setattr(Bm25, "add", fails_once)
    with pytest.raises(KeyboardInterrupt):
        db.recall("apple", scope=scope)
    assert sorted(found(db.recall("apple", scope=scope))) == sorted([*known, *new])


def test_documents_added_many_at_once_have_the_postings_of_those_added_one_by_one() -> None:
    rng = random.Random(2)
    said = [rng.choices("abcdefgh", k=rng.randrange(6)) for _ in range(3 * SORTED_FROM)]
    said[7] = ["often"] * (COUNT_MAX + 2)
    one_by_one, at_once = Bm25(), Bm25()
    for words in said:
        one_by_one.add(words)
    for first, last in ((0, 5), (5, 2 * SORTED_FROM), (2 * SORTED_FROM, len(said))):
        at_once.extend(said[first:last])
    assert vars(at_once) == vars(one_by_one)
    nothing = Bm25()
    nothing.extend([[]] * SORTED_FROM)
    assert len(nothing) == SORTED_FROM
    assert not nothing.count("a")


def test_an_empty_world_is_held_too() -> None:
    db = open_store()
    scope = fact(db, "", type="Scope", name="scope")
    assert len(db.recall("apple", scope=scope)) == 0
    (first,) = kept_worlds(db).values()
    assert len(db.recall("apple", scope=scope)) == 0
    assert list(kept_worlds(db).values()) == [first]


def test_years_are_read_by_the_first_question_that_names_one_and_follow_new_texts() -> None:
    db = open_store()
    scope = fact(db, "", type="Scope", name="scope")
    old, other = facts(db, ["The mill was built in 1850.", "The mill is red."], parent=scope)
    assert found(db.recall("Is the mill red?", scope=scope))[0] == other
    assert found(db.recall("What of the mill in 1850?", scope=scope))[0] == old
    new = fact(db, "The mill burned down in 1900.", parent=scope)
    assert found(db.recall("What of the mill in 1900?", scope=scope))[0] == new
    (held,) = kept_worlds(db).values()
    with db.engine.store.read() as reader:
        years = held.chosen_years(reader, np.arange(len(held)))
        assert years[:, 1:].tolist() == [[1850, 1850], [1900, 1900]]
        # The words of a text are read when it is compared, and compare alike in any order.
        one, two = SaidWords(), SaidWords()
        for at, text in enumerate(("a red mill", "green water")):
            one.add(at, text)
        for at, text in ((1, "green water"), (0, "a red mill")):
            two.add(at, text)
        embed = HashEmbedder(dim=32).embed_documents
        asked = {"mill": 1.0, "green": 0.5}
        assert one.met([0, 1], asked, embed).tolist() == two.met([0, 1], asked, embed).tolist()


def test_a_world_inside_another_asked_world_is_a_hit_when_it_gets_its_members_later() -> None:
    texts = ("The ferry leaves at noon.", "We hike along the fjord.", "The cabin has a sauna.")
    with worlddb.open(":memory:") as db:
        with db.transaction(actor="t") as tx:
            whole = tx.create_node(type="Topic", name="All").id
            other = tx.create_node(type="Topic", name="Mixed", parent=whole).id
            ids = [tx.create_node(type="Fact", content=it, parent=other).id for it in texts]
            trip = tx.create_node(type="Topic", name="Norway trip", parent=whole).id

        def asked() -> list[str]:
            return [hit.node.name for hit in db.recall("our trip to Norway", scope=[whole, trip])]

        assert "Norway trip" not in asked()
        with db.transaction(actor="t") as tx:
            for it in ids:
                tx.write_edge("contains", trip, it)
        assert asked()[0] == "Norway trip"


def test_what_a_transaction_links_is_found_in_it_though_the_store_had_no_edge() -> None:
    only_names = worlddb.RecallSettings(weights={"graph": 1.0}, weighing=None)
    with worlddb.open(":memory:", embedder="hash") as db, db.transaction(actor="t") as tx:
        person = tx.create_node(type="Person", name="Anna Berg").id
        fact = tx.create_node(type="Fact", content="Tea is what she likes.").id
        tx.write_edge("refers_to", fact, person, metadata={"role": "about"})
        found = db.recall("Anna Berg", settings=only_names)
        assert fact in {hit.node.id for hit in found}
