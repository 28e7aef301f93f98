"""A scope too large to be held: what others have changes no answer there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import worlddb
from recall.search_stage import hold_at_most
from worlddb import Memory, NodeDraft, ScopeName
from worlddb.index import nearest
from worlddb.view.visibility import moment_of

START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = ("tea", "chess", "lake", "snow", "door", "lamp", "boat", "salt", "bread", "horse")
FRENCH = "Le chat de ma voisine dort sur le mur de la maison."
OWN, OTHERS, HELD = 240, 900, 40
QUESTIONS = ("a boat on the lake", "salt and bread", "Which horse likes the snow?", "le chat noir")


def text(rng: random.Random) -> str:
    return f"The {' '.join(rng.choices(WORDS, k=6))} of number {rng.randrange(50)}."


@contextmanager
def store(others: int, bounds: dict[str, str]) -> Iterator[tuple[Memory, Memory]]:
    """Yield the memory of an administrator and a bound one; others wrote before, between, after."""
    now = [START]
    with worlddb.open(
        ":memory:",
        embedder="hash",
        clock=lambda: int(now[0].timestamp() * 1_000_000),
        random_bytes=lambda size: b"\1" * size,
    ) as db:
        memory, rng, crowd = Memory(db, recluster="off"), random.Random(1), random.Random(2)
        hold_at_most(db, HELD)
        scopes = {name: ScopeName("user", name).id() for name in ("ada", "bob")}
        shop = ScopeName("app", "shop").id()
        memory.write("I am Ada.", user_id="ada", app_id="shop")
        memory.write("I am Bob.", user_id="bob", app_id="shop")
        for day in range(4):
            now[0] = START + timedelta(days=day + 1)
            drafts = [
                text(crowd) if number % 5 else f"{FRENCH} {number}" for number in range(others)
            ]
            fill(memory, drafts, scopes["bob"], shop)
            now[0] += timedelta(hours=12)
            fill(memory, [text(rng) for _ in range(OWN // 4)], scopes["ada"], shop)
        now[0] = START + timedelta(days=30)
        yield memory, memory.bound(**bounds, actor="ada")


def fill(memory: Memory, texts: list[str], home: worlddb.Id, shop: worlddb.Id) -> None:
    with memory.db.transaction(bulk=True) as tx:
        made = tx.create_nodes(
            NodeDraft(type="Memory", content=one, parent=home, source=f"f{len(one) % 3}.md")
            for one in texts
        )
        for number, node in enumerate(made):
            if number % 2:
                tx.write_edge("contains", shop, node)


def told(ada: Memory) -> dict[str, Any]:
    found: dict[str, Any] = {}
    past = START + timedelta(days=2, hours=13)
    for asked in QUESTIONS:
        found[asked] = ada.recall(asked, k=40).to_dict()
        found[f"{asked} then"] = ada.recall(asked, k=40, known_at=past, as_of=past).to_dict()
        found[f"{asked} filtered"] = ada.recall(asked, k=40, where={"source": "f1.md"}).to_dict()
        found[f"{asked} by words"] = ada.query(f"text {asked!r} | limit 20").to_dict()
    return found


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every index of neighbours be a graph, as in a store of many thousands."""
    monkeypatch.setattr(nearest, "EXACT_BELOW_SHORT", 0)
    monkeypatch.setattr(nearest, "EXACT_BELOW_LONG", 0)


@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize(
    "bounds", [{"user_id": "ada"}, {"user_id": "ada", "app_id": "shop"}], ids=["one", "two"]
)
def test_others_change_nothing_in_a_large_scope(bounds: dict[str, str]) -> None:
    with store(1, bounds) as (_, ada):
        alone = told(ada)
    with store(OTHERS // 4, bounds) as (memory, ada):
        among = told(ada)
        # Everybody's neighbours are not even gathered for a caller who may not see them.
        assert memory.db.engine.search.wide()._nearby._index is None
        assert memory.db.recall("a boat", k=3).hits
        assert memory.db.engine.search.wide()._nearby._index is not None
    assert alone[QUESTIONS[0]]["hits"]
    assert [name for name in alone if alone[name] != among[name]] == []


@pytest.mark.usefixtures("graph")
def test_the_nearest_in_a_scope_are_exact_and_follow_what_is_written() -> None:
    with store(OTHERS // 4, {"user_id": "ada"}) as (memory, ada):
        settings = worlddb.RecallSettings(weights={"vector": 1.0}, weighing=None)
        db = memory.db
        for turn in range(3):
            asked = f"the door, turn {turn}"
            wanted = db.recall(asked, scope=ScopeName("user", "ada").id(), k=30, settings=settings)
            hold_at_most(db, 1 << 14)  # All of the scope is held, and every vector compared.
            exact = db.recall(asked, scope=ScopeName("user", "ada").id(), k=30, settings=settings)
            hold_at_most(db, HELD)
            assert [hit.id for hit in wanted] == [hit.id for hit in exact]
            done = ada.write(f"A red door, turn {turn}.")
            assert done.id in [hit.id for hit in ada.recall(f"A red door, turn {turn}")]
            ada.retire(done.id)
            assert done.id not in [hit.id for hit in ada.recall(f"A red door, turn {turn}")]


def test_a_scope_that_shrinks_is_held_again_whatever_others_write() -> None:
    with store(20, {"user_id": "ada"}) as (memory, _):
        search, shop = memory.db.engine.search, ScopeName("app", "shop").id()

        def is_held() -> bool:
            with memory.db.engine.store.read() as reader:
                row = reader.node_row(shop) or 0
                moment = moment_of(reader, worlddb.AsOf(), 0)
                with search.interior(reader, [row], moment, True) as held:
                    return held is not None

        assert not is_held()
        edges = [edge.id for edge in memory.db.edges(shop, types=["contains"])]
        with memory.db.transaction() as tx:
            for edge in edges[HELD // 2 :]:
                tx.delete_edge(edge)
        memory.write("More.", user_id="carl")
        assert is_held()
