"""Scopes: what is whose, and that nobody sees anything else."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import worlddb
from thinning import examples
from worlddb import Memory
from worlddb.index.search import HELD_MAX, HeldWorlds

USERS = ("ada", "bob")
RUNS = ("r1", "r2")
ODD = [
    "../../etc/passwd",
    "a b",
    "日本",
    "user:ada",
    "'; DROP TABLE nodes;--",
    "%",
    "_",
    "é",
    "🚀",
]


def _seen(memory: Memory, **scope: object) -> set[str]:
    found = memory.recall("tea", k=100, **scope)  # type: ignore[arg-type]
    listed = {one.text for one in memory.list(**scope)}  # type: ignore[arg-type]
    assert {hit.node.content for hit in found} == listed
    return listed


Writes = st.lists(
    st.tuples(
        st.sampled_from([None, *USERS]),
        st.sampled_from([None, "bot"]),
        st.sampled_from([None, *RUNS]),
        st.integers(0, 3),
        st.sampled_from(["write", "write", "write", "retire_all", "purge"]),
    ),
    max_size=14,
)


@pytest.mark.parametrize("held_max", [2, 6, HELD_MAX])
@settings(max_examples=examples(40, 15), derandomize=True, deadline=None, database=None)
@given(Writes)
def test_every_combination_of_scopes_sees_exactly_what_a_naive_model_says(
    held_max: int, writes: list[tuple[str | None, str | None, str | None, int, str]]
) -> None:
    """Also where scopes are too large to be held in memory: all of them, or some."""
    model: dict[tuple[str, int], set[tuple[str, str]]] = {}
    with Memory(":memory:", embedder="none", recluster="off", extractor="verbatim") as memory:
        memory.db.engine.search._interiors = HeldWorlds(held_max)
        for user, agent, run, number, what in writes:
            ids = {"user_id": user, "agent_id": agent, "run_id": run}
            given = {name: value for name, value in ids.items() if value is not None}
            pairs = set(given.items())
            if what == "write":
                memory.write(f"tea number {number}", **given)  # type: ignore[arg-type]
                pairs = pairs or {("user_id", "default")}
                home = next(
                    f"{name}={value}"
                    for name in ("user_id", "agent_id", "run_id")
                    for key, value in pairs
                    if key == name
                )
                model.setdefault((home, number), set()).update(pairs)
            elif given and what == "retire_all":
                memory.retire_all(**given)  # type: ignore[arg-type]
                for key in [key for key, scopes in model.items() if pairs <= scopes]:
                    del model[key]
            elif len(given) == 1 and what == "purge":
                memory.purge_scope(confirm=True, **given)
                for key in [key for key, scopes in model.items() if pairs <= scopes]:
                    del model[key]
        for user, agent, run in itertools.product((None, *USERS), (None, "bot"), (None, *RUNS)):
            ids = {"user_id": user, "agent_id": agent, "run_id": run}
            given = {name: value for name, value in ids.items() if value is not None}
            wanted = set(given.items()) or {("user_id", "default")}
            expected = {
                f"tea number {number}" for (_, number), scopes in model.items() if wanted <= scopes
            }
            assert _seen(memory, **given) == expected
        assert memory.db.check() == []


def test_several_values_of_one_kind_mean_any_of_them(memory: Memory) -> None:
    memory.write("tea of ada", user_id="ada", app_id="shop")
    memory.write("tea of bob", user_id="bob")
    memory.write("tea of eve", user_id="eve", app_id="shop")
    assert _seen(memory, user_id=["ada", "bob"]) == {"tea of ada", "tea of bob"}
    assert _seen(memory, user_id=["ada", "bob"], app_id="shop") == {"tea of ada"}
    assert _seen(memory, app_id="shop") == {"tea of ada", "tea of eve"}


@pytest.mark.parametrize("value", ODD)
def test_scope_ids_with_odd_characters_are_plain_text(memory: Memory, value: str) -> None:
    for kind in ("user_id", "run_id"):
        memory.write(f"tea of {kind}", **{kind: value})  # type: ignore[arg-type]
    memory.write("tea of ada", user_id="ada")
    assert _seen(memory, user_id=value) == {"tea of user_id"}
    assert [scope.value for scope in memory.list_scopes(kind="run")] == [value]


def test_two_spellings_of_one_letter_are_one_user(memory: Memory) -> None:
    memory.write("tea", user_id="Zo\u00eb")
    assert _seen(memory, user_id="Zoe\u0308") == {"tea"}


def test_a_scope_has_the_same_id_in_every_store() -> None:
    with Memory(":memory:") as one, Memory(":memory:") as two:
        one.write("a", user_id="ada")
        two.write("b", user_id="bob")
        two.write("c", user_id="ada")
        [first] = one.list_scopes()
        assert first.id == two.list_scopes()[1].id == worlddb.ScopeName("user", "ada").id()
        assert str(first.id) == "b4ca6789a6df163aef13e034d04ab155fc221506b84dedbd71d5320adc5b058f"


def test_usual_scopes_are_meant_where_a_call_does_not_name_that_kind() -> None:
    with Memory(":memory:", embedder="none", user_id="ada") as memory:
        memory.write("tea of a run", run_id="r1")
        memory.write("tea of mine")
        memory.write("tea of bob", user_id="bob", run_id="r1")
        assert _seen(memory) == {"tea of a run", "tea of mine"}
        assert _seen(memory, run_id="r1") == {"tea of a run"}
        assert _seen(memory, user_id="bob") == {"tea of bob"}


def test_pages_are_whole_in_order_and_end(memory: Memory) -> None:
    ids = [memory.write(f"tea {number}", user_id="ada", run_id="r").id for number in range(7)]
    memory.write("tea of bob", user_id="bob", run_id="r")
    for scope in ({"user_id": "ada"}, {"run_id": "r", "user_id": "ada"}):
        seen, cursor = [], None
        while True:
            page = memory.list(limit=3, cursor=cursor, **scope)  # type: ignore[arg-type]
            seen += [one.id for one in page]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == ids[::-1]
    scopes, cursor = [], None
    while True:
        found = memory.list_scopes(limit=1, cursor=cursor)
        scopes += [scope.name for scope in found]
        cursor = found.next_cursor
        if cursor is None:
            break
    assert scopes == ["user:ada", "run:r", "user:bob"]


def test_a_scope_world_of_somebody_elses_making_is_no_identity(memory: Memory) -> None:
    with memory.db.transaction() as tx:
        tx.create_node(type="Scope", name="team")
        fake = tx.create_node(type="Scope", name="user:ada")
        tx.create_node(type="Memory", content="tea of a stranger", parent=fake.id)
    memory.write("tea of ada", user_id="ada")
    assert [scope.name for scope in memory.list_scopes()] == ["user:ada"]
    assert _seen(memory, user_id="ada") == {"tea of ada"}


def test_the_order_of_values_says_nothing(memory: Memory) -> None:
    first = memory.write("tea", user_id=["bob", "ada"])
    again = memory.write("tea", user_id=["ada", "bob"])
    assert (again.created, again.id) == (False, first.id)


@pytest.mark.parametrize("held_max", [5, 1_000])
def test_a_small_scope_inside_a_large_one_is_found_from_the_small_one(held_max: int) -> None:
    with Memory(":memory:", embedder="none", recluster="off", extractor="verbatim") as memory:
        memory.db.engine.search._interiors = HeldWorlds(held_max)
        for number in range(12):
            memory.write(f"tea number {number}", user_id="ada")
        memory.write("tea of the run", user_id="ada", run_id="r")
        memory.write("tea of bob", user_id="bob", run_id="r")
        assert _seen(memory, user_id="ada", run_id="r") == {"tea of the run"}
