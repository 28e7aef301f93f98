"""Bad input: the right error, words that say what to do, and a store that has not changed.

Each case is one wrong call. It is made in a transaction of its own, and all that were refused are
made again in one transaction that goes on and lands, because a refused call must not spoil it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import worlddb
from worlddb import (
    AsOf,
    ConflictError,
    EdgeDraft,
    FormatError,
    Id,
    InvalidInputError,
    Limits,
    NodeDraft,
    NotFoundError,
    QuerySpec,
    StorageError,
    WorldDB,
    WorldDBError,
)

AT = "2025-01-01T00:00:00+00:00"
NOBODY = Id(b"\xab" * 32)
EAST, WEST = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
Wrong = Callable[[Any, Any], object]
Case = tuple[Wrong, type[WorldDBError], str]


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with worlddb.open(":memory:", busy_timeout_s=0.5, random_bytes=bytes) as db:
        yield db


@pytest.fixture(scope="module")
def twins() -> list[str]:
    """Return two names whose nodes have ids that begin alike: among some hundred there are two."""
    seen: dict[str, str] = {}
    with worlddb.open(":memory:", random_bytes=bytes) as db, db.transaction() as tx:
        for name in map(str, range(5_000)):
            start = str(tx.create_node(type="Turn", name=name, created_at=AT).id)[:4]
            if start in seen:
                return [seen[start], name]
            seen[start] = name
    raise AssertionError("no two ids begin alike")


@pytest.fixture
def s(db: WorldDB, twins: list[str]) -> SimpleNamespace:
    return filled(db, twins)


@pytest.fixture(scope="module")
def kept(twins: list[str]) -> Iterator[tuple[WorldDB, SimpleNamespace]]:
    """Return one store and what there is in it, for all calls that must not change it."""
    with worlddb.open(":memory:", busy_timeout_s=0.5, random_bytes=bytes) as db:
        yield db, filled(db, twins)


def filled(db: WorldDB, twins: list[str]) -> SimpleNamespace:
    """Write a world, facts in it, and edges between them; return what there is then."""
    there = SimpleNamespace()
    with db.transaction() as tx:
        there.world = tx.create_node(type="Topic", name="world", created_at=AT).id
        for name in "abc":
            node = tx.create_node(type="Fact", name=name, created_at=AT, parent=there.world)
            setattr(there, name, node.id)
        there.refers = tx.write_edge("refers_to", there.a, there.b).id
        there.same = tx.write_edge("same_as", there.a, there.b).id
        there.gone = tx.write_edge("implies", there.a, there.b).id
        for name in twins:
            there.ambiguous = str(tx.create_node(type="Turn", name=name, created_at=AT).id)[:4]
    with db.transaction() as tx:
        tx.delete_edge(there.gone)
    return there


def trace(db: WorldDB) -> tuple[Id, list[Any], list[str]]:
    return db.root_state, db.log(), list(db.export())


# -- texts, times and ids, wherever they are given -------------------------------------------------

BAD_TEXTS: dict[str, tuple[Any, str]] = {
    "NUL": ("a\0b", "NUL.*remove"),
    "surrogate": ("a\ud800", "surrogate.*replace"),
    "int": (5, "give text, not int"),
    "None": (None, "give text, not None"),
    "bytes": (b"bytes", "give text, not bytes"),
    "list": (["a"], "give text, not list"),
}
BAD_TIMES: dict[str, tuple[Any, str]] = {
    "naive": (datetime(2026, 1, 1), "no time zone; add one"),
    "naive text": ("2026-01-01T00:00:00", "no time zone; add one"),
    "day": (date(2026, 1, 1), "give a datetime"),
    "words": ("next week", "not ISO-8601; write 20"),
    "empty": ("", "not ISO-8601; write 20"),
    "int": (1_700_000_000, "give a datetime"),
    "year 0": ("0000-01-01T00:00:00Z", "not ISO-8601; write 20"),
    "year 10000": ("10000-01-01T00:00:00Z", "not ISO-8601; write 20"),
    "before all time": (datetime.min.replace(tzinfo=EAST), "year"),
    "after all time": (datetime.max.replace(tzinfo=WEST), "year"),
}
BAD_IDS: dict[str, tuple[Any, type[WorldDBError], str]] = {
    "unknown": (NOBODY, NotFoundError, str(NOBODY)[:8]),
    "unknown hex": (str(NOBODY), NotFoundError, str(NOBODY)[:8]),
    "unknown prefix": ("abababab", NotFoundError, "begins with"),
    "three digits": ("abc", InvalidInputError, "at least 4 digits"),
    "empty": ("", InvalidInputError, "at least 4 digits"),
    "no hex": ("not an id", InvalidInputError, "hexadecimal"),
    "too long": ("ab" * 33, InvalidInputError, "64 digits"),
    "short bytes": (b"abcd", InvalidInputError, "id"),
    "int": (5, InvalidInputError, "not an id"),
    "None in a list": ([None], InvalidInputError, "not an id"),
    "bytearray": (bytearray(32), InvalidInputError, "not an id"),
}
BAD_METADATA: dict[str, tuple[Any, str]] = {
    "list": ([1], "give a mapping, not list"),
    "empty list": ([], "give a mapping, not list"),
    "text": ("x", "give a mapping, not str"),
    "NaN": ({"a": float("nan")}, "JSON"),
    "infinite": ({"a": [float("inf")]}, "JSON"),
    "int key": ({1: 2}, "key 1 is not text"),
    "None key": ({None: 2}, "not text"),
    "inner int key": ({"a": {1: 2}}, "not text"),
    "set": ({"a": {1}}, "JSON"),
    "bytes": ({"a": b""}, "JSON"),
    "date": ({"a": datetime(2026, 1, 1, tzinfo=UTC)}, "JSON"),
    "surrogate": ({"a": "\ud800"}, "surrogate"),
    "surrogate key": ({"\ud800": 1}, "surrogate"),
    "too long": ({"a": "x" * 70_000}, "the limit is 65,536"),
    "huge int": ({"a": 10**5_000}, "JSON"),
}


def deep(levels: int) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for _ in range(levels):
        data = {"a": data}
    return data


def bound(call: Callable[..., object], *given: Any) -> Wrong:
    """Return a case that makes `call` with something given beside the transaction and the store."""
    return lambda tx, s: call(tx, s, *given)


def create(**fields: Any) -> Wrong:
    given = {"type": "Fact", "name": "n", **fields}
    return lambda tx, s: tx.create_node(**given)


def edge(**fields: Any) -> Wrong:
    return lambda tx, s: tx.write_edge("implies", s.a, s.c, **fields)


def text_cases() -> Iterator[tuple[str, Case]]:
    for kind, (value, hint) in BAD_TEXTS.items():
        for field in ("type", "name", "content"):
            yield (
                f"{field}: {kind}",
                (create(**{field: value}), InvalidInputError, f"{field}: .*{hint}"),
            )
        if value is not None:
            for field in ("aliases", "source"):
                hint_here = f"{field}: " if kind == "list" else f"{field}: .*{hint}"
                case = create(**{field: [value]})
                yield f"{field}: {kind}", (case, InvalidInputError, hint_here)
    for field, size in (("type", 129), ("name", 4_097), ("content", (1 << 20) + 1)):
        hint = rf"{field}: [\d,]+ bytes, the limit is [\d,]+"
        yield f"{field}: too long", (create(**{field: "x" * size}), InvalidInputError, hint)
        yield f"{field}: too many bytes", (create(**{field: "ü" * size}), InvalidInputError, hint)
    for value in ("", " ", " Fact", "a\nb"):
        yield (
            f"type: {value!r}",
            (create(type=value), InvalidInputError, "use a word such as 'Fact'"),
        )
    for field in ("aliases", "source"):
        for kind, value, hint in (
            ("empty", [""], "leave it out"),
            ("blank", [" "], "leave it out"),
            ("too long", ["x" * 4_097], "the limit is"),
            ("too many", [str(n) for n in range(1_001)], "the limit is 1000"),
            ("a number", 5, "give"),
            ("a mapping", {"a": 1}, "give"),
        ):
            yield (
                f"{field}: {kind}",
                (create(**{field: value}), InvalidInputError, f"{field}: .*{hint}"),
            )


def time_cases() -> Iterator[tuple[str, Case]]:
    for kind, (value, hint) in BAD_TIMES.items():
        for field in ("created_at", "valid_from", "valid_to"):
            call = create(**{field: value})
            yield f"{field}: {kind}", (call, InvalidInputError, f"{field}: .*{hint}")
        for field in ("valid_from", "valid_to"):
            call = edge(**{field: value})
            yield f"edge {field}: {kind}", (call, InvalidInputError, f"{field}: .*{hint}")
        retire = bound(lambda tx, s, at: tx.retire(s.a, at=at), value)
        yield f"retire at: {kind}", (retire, InvalidInputError, hint)
    late, early = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"
    hint = "valid_to is before valid_from; swap them"
    yield (
        "an end before its start",
        (create(valid_from=late, valid_to=early), InvalidInputError, hint),
    )
    yield (
        "an edge that ends first",
        (edge(valid_from=late, valid_to=early), InvalidInputError, hint),
    )
    call = create(created_at=late, valid_to=early)
    yield "an end before creation", (call, InvalidInputError, "valid_to is before valid_from")
    yield (
        "an edge that ends before its source began",
        (
            edge(valid_to="2024-01-01T00:00:00Z"),
            InvalidInputError,
            "valid_to is before valid_from",
        ),
    )


def id_cases() -> Iterator[tuple[str, Case]]:
    calls: dict[str, Callable[[Any, Any, Any], object]] = {
        "parent": lambda tx, s, bad: tx.create_node(type="Fact", parent=bad),
        "drafted parent": lambda tx, s, bad: tx.create_nodes([NodeDraft(type="Fact", parent=bad)]),
        "source": lambda tx, s, bad: tx.write_edge("refers_to", bad, s.b),
        "target": lambda tx, s, bad: tx.write_edge("refers_to", s.b, bad),
        "both ends": lambda tx, s, bad: tx.write_edges(
            "refers_to", [EdgeDraft(source=bad, target=bad)]
        ),
        "aliases of": lambda tx, s, bad: tx.add_aliases(bad, ["x"]),
        "source of": lambda tx, s, bad: tx.add_source(bad, "x"),
        "retire": lambda tx, s, bad: tx.retire(bad),
        "delete": lambda tx, s, bad: tx.delete_edge(bad),
        "decide": lambda tx, s, bad: tx.decide_merge(bad, "accepted"),
        "register": lambda tx, s, bad: tx.register(bad, "likes", "1", False),
    }
    for where, call in calls.items():
        for kind, (value, error, hint) in BAD_IDS.items():
            yield f"{where}: {kind}", (bound(call, value), error, hint)
        if where not in ("delete", "decide"):
            wrong = bound(lambda tx, s, call: call(tx, s, s.ambiguous), call)
            hint = r"is the start of several ids \(.*give more"
            yield f"{where}: ambiguous", (wrong, InvalidInputError, hint)


def edge_cases() -> Iterator[tuple[str, Case]]:
    for kind, (value, hint) in BAD_METADATA.items():
        yield f"metadata: {kind}", (edge(metadata=value), InvalidInputError, f"metadata: .*{hint}")
    for levels in (1_000, 100_000):
        call = edge(metadata=deep(levels))
        yield f"metadata: {levels} deep", (call, InvalidInputError, "metadata: ")
    for type_ in ("likes", "", "Contains", None, 5, b"implies", ["implies"], "\0", "\ud800"):
        one = bound(lambda tx, s, t: tx.write_edge(t, s.a, s.b), type_)
        many = bound(lambda tx, s, t: tx.write_edges(t, [EdgeDraft(source=s.a, target=s.b)]), type_)
        yield f"edge type {type_!r}", (one, InvalidInputError, "edge type|type: ")
        yield f"edges of type {type_!r}", (many, InvalidInputError, "edge type|type: ")
    yield "deleted twice", (lambda tx, s: tx.delete_edge(s.gone), NotFoundError, "deleted already")
    yield "deleting a node", (lambda tx, s: tx.delete_edge(s.a), NotFoundError, "no edge")
    yield (
        "deciding a reference",
        (
            lambda tx, s: tx.decide_merge(s.refers, "accepted"),
            NotFoundError,
            "no merge proposal",
        ),
    )
    for status in ("maybe", "", None, 5, ["accepted"]):
        decide = bound(lambda tx, s, to: tx.decide_merge(s.same, to), status)
        yield f"deciding {status!r}", (decide, InvalidInputError, "accept|status")


def batch_cases() -> Iterator[tuple[str, Case]]:
    for kind, value in (("dict", {"type": "Fact"}), ("None", None), ("text", "Fact"), ("int", 5)):
        nodes = bound(lambda tx, s, v: tx.create_nodes([v]), value)
        edges = bound(lambda tx, s, v: tx.write_edges("implies", [v]), value)
        yield f"a node that is a {kind}", (nodes, InvalidInputError, "NodeDraft")
        yield f"an edge that is a {kind}", (edges, InvalidInputError, "EdgeDraft")
    yield (
        "nodes that are not list",
        (
            lambda tx, s: tx.create_nodes(5),
            InvalidInputError,
            "NodeDraft|iterable|list",
        ),
    )
    yield (
        "edges that are not list",
        (
            lambda tx, s: tx.write_edges("implies", None),
            InvalidInputError,
            "EdgeDraft|iterable|list",
        ),
    )
    yield (
        "one bad node among good ones",
        (
            lambda tx, s: tx.create_nodes(
                [NodeDraft(type="Fact", name="good"), NodeDraft(type="Fact", name="bad\0")]
            ),
            InvalidInputError,
            "NUL",
        ),
    )
    for kind, args in (
        ("no type", ("", "1", False)),
        ("a type that is none", (None, "1", False)),
        ("a type with NUL", ("a\0", "1", False)),
        ("a version that is a number", ("likes", 1, False)),
        ("a version with a surrogate", ("likes", "\ud800", False)),
        ("neither functional nor not", ("likes", "1", "perhaps")),
    ):
        call = bound(lambda tx, s, a: tx.register(s.world, *a), args)
        yield f"registering {kind}", (call, InvalidInputError, "type|version|functional")


WRITES: dict[str, Case] = {
    title: case
    for cases in (text_cases, time_cases, id_cases, edge_cases, batch_cases)
    for title, case in cases()
}


@pytest.mark.parametrize("title", WRITES)
def test_a_wrong_write_is_refused_and_leaves_nothing(
    kept: tuple[WorldDB, SimpleNamespace], title: str
) -> None:
    db, s = kept
    call, error, hint = WRITES[title]
    before = trace(db)
    with pytest.raises(error, match=f"(?s){hint}") as caught, db.transaction() as tx:
        call(tx, s)
    assert len(str(caught.value)) > 15, "an error says what to do"
    assert trace(db) == before


def test_wrong_writes_leave_their_transaction_usable(db: WorldDB, s: SimpleNamespace) -> None:
    """All of them in one transaction, between two good ones; only the good ones land."""
    spoiled = []
    for title, (call, error, _) in WRITES.items():
        if title.startswith("one bad node among"):
            continue
        with suppress(WorldDBError), db.transaction() as tx:
            with suppress(error, AttributeError, TypeError, ValueError, OverflowError):
                call(tx, s)
            tx.create_node(type="Good", name=title)
        if db.log()[-1].nodes != 1 or db.log()[-1].edges or db.log()[-1].changes:
            spoiled.append(title)
    assert spoiled == []
    assert db.check() == []
    good = db.query().filter_type("Good").execute()
    assert {node.name for node in good} == set(WRITES) - {"one bad node among good ones"}


def test_a_batch_that_is_half_bad_is_not_half_written(db: WorldDB, s: SimpleNamespace) -> None:
    before = trace(db)
    good = EdgeDraft(source=s.a, target=s.c)
    for bad in (
        EdgeDraft(source=s.a, target=NOBODY),
        EdgeDraft(source=s.a, target=s.b, metadata={"a": {1}}),
        EdgeDraft(source=s.a, target=s.b, valid_from="soon"),
    ):
        with pytest.raises(WorldDBError):
            write_half(db, [good, bad, good])
        assert trace(db) == before
        assert db.check() == []


def write_half(db: WorldDB, drafts: list[EdgeDraft]) -> None:
    with db.transaction() as tx:
        with pytest.raises(WorldDBError):
            tx.write_edges("refers_to", drafts)
        tx.create_node(type="Fact", name="after")  # Refused too: half of a batch was written.


# -- what a store may be told, and what it keeps of it ---------------------------------------------


def test_the_widest_times_that_utc_can_say_are_kept(db: WorldDB) -> None:
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    with db.transaction() as tx:
        ids = [
            tx.create_node(type="Event", name="first", created_at=first).id,
            tx.create_node(type="Event", name="last", created_at=last).id,
            tx.create_node(type="Event", name="all", valid_from=first, valid_to=last).id,
        ]
        tx.write_edge("refers_to", ids[0], ids[1], valid_from=first, valid_to=last)
    assert db.get(ids[0]).created_at == first
    assert db.get(ids[1]).valid_from == last
    assert db.get(ids[2]).valid_to == last
    assert len(db.children()) == 3
    assert db.edges(ids[0], as_of=AsOf(valid=first))[0].valid_to == last
    assert db.query().as_of(valid=last, known=last).execute()
    assert db.query().filter_time(first, last).execute()
    lines = list(db.export())
    with worlddb.open(":memory:") as copy:
        copy.replay(lines)
        assert copy.root_state == db.root_state
    assert db.check() == []


def test_text_at_its_limit_fits(db: WorldDB) -> None:
    with db.transaction() as tx:
        node = tx.create_node(
            type="x" * 128,
            name="n" * 4_096,
            content="ü" * (1 << 19),
            aliases=[f"{number:04}" + "a" * 4_092 for number in range(1_000)],
            source="s" * 4_096,
        )
        tx.write_edge("refers_to", node.id, node.id, metadata={"a": "x" * (65_536 - 8)})
    assert db.get(node.id).content == "ü" * (1 << 19)
    assert len(db.get(node.id).aliases) == 1_000
    assert db.check() == []


def test_limits_are_the_callers_to_set() -> None:
    with worlddb.open(":memory:", limits=Limits(name_bytes_max=5, note_bytes_max=3)) as db:
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="12345", aliases=["123"])
        for bad in (create(name="123456"), create(aliases=["1234"]), create(source="1234")):
            with pytest.raises(InvalidInputError, match="the limit is"), db.transaction() as tx:
                bad(tx, None)
        lines = list(db.export())
    with worlddb.open(":memory:", limits=Limits(name_bytes_max=1)) as stricter:
        stricter.replay(lines)  # What was once accepted comes back whole.
        assert stricter.check() == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\t\n\r",
        "\x01\x1f\x7f",
        "\u2028\u2029\x85",
        "\ufeff",
        "\ufffe\uffff",
        "🙂" * 50,
        "a\u0301\u0301\u0301",
        "\u202eabc",
        "'; DROP TABLE nodes; --",
        '"\\"',
        "%s{}$1",
        "NULL",
        "\U0010ffff",
    ],
)
def test_any_other_text_comes_back_as_it_was(db: WorldDB, tmp_path: Path, text: str) -> None:
    with db.transaction(actor=text) as tx:
        node = tx.create_node(type="Fact", name=text, content=text, created_at=AT)
        tx.create_node(type="Fact", name="x", aliases=[f".{text}"], source=f".{text}")
        edge = tx.write_edge(
            "contradicts", node.id, db.root_id, metadata={text: text, "reason": text}
        )
    assert (db.get(node.id).name, db.get(node.id).content) == (text, text)
    assert db.get_edge(edge.id).metadata == {text: text, "reason": text}
    assert db.conflicts()[0].reason == text
    assert db.log()[-1].actor == text
    lines = list(db.export())
    file = tmp_path / "export.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with worlddb.open(":memory:") as copy, file.open(encoding="utf-8") as saved:
        copy.replay(saved)
        assert list(copy.export()) == lines
    assert worlddb.verify_proof(json.loads(json.dumps(db.prove(node.id).to_dict())), db.root_state)
    assert db.check() == []


def test_nul_in_metadata_is_refused_or_comes_back(db: WorldDB, s: SimpleNamespace) -> None:
    """JSON can say it, so metadata may hold it; what handlers make of it must then hold it too."""
    metadata = {"reason": "a\0b", "tier": "t\0", "k\0": 1}
    with suppress(InvalidInputError), db.transaction() as tx:
        tx.write_edge("contradicts", s.a, s.c, metadata=metadata)
        tx.write_edge("same_as", s.a, s.c, metadata=metadata)
    for conflict in db.conflicts():
        assert conflict.reason == "a\0b"
    lines = list(db.export())
    with worlddb.open(":memory:") as copy:
        copy.replay(lines)
        assert list(copy.export()) == lines
    assert db.check() == []


def test_aliases_given_as_an_iterator_are_kept_or_refused(db: WorldDB) -> None:
    """Taking them and losing them in silence is the one wrong answer."""
    aliases: Any = (name for name in ("one", "two"))
    with suppress(InvalidInputError), db.transaction() as tx:
        node = tx.create_node(type="Fact", name="n", aliases=aliases)
        assert node.aliases == ("one", "two")


# -- transactions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("actor", [None, 5, b"me", ["me"], "a\0b", "\ud800", "x" * 257])
def test_an_actor_is_a_short_text(db: WorldDB, actor: Any) -> None:
    before = trace(db)
    with pytest.raises(InvalidInputError, match=r"^actor: "), db.transaction(actor) as tx:
        tx.create_node(type="Fact")
    assert trace(db) == before


def test_a_transaction_inside_another_is_refused(db: WorldDB) -> None:
    with db.transaction() as tx:
        with pytest.raises(InvalidInputError, match="already has a transaction"), db.transaction():
            pass
        with pytest.raises(InvalidInputError, match="already has a transaction open"):
            db.accept_merge(bytes(32))
        tx.create_node(type="Fact", name="kept")
    assert [node.name for node in db.children()] == ["kept"]
    assert db.check() == []


@pytest.mark.parametrize("where", ["memory", "file"])
@pytest.mark.parametrize("how", ["committed", "rolled back", "empty"])
@pytest.mark.parametrize(
    "what", ["create", "edge", "edges", "delete", "alias", "retire", "register"]
)
def test_a_transaction_that_is_over_writes_nothing_more(
    tmp_path: Path, where: str, how: str, what: str
) -> None:
    path = ":memory:" if where == "memory" else str(tmp_path / "a.db")
    with worlddb.open(path, durability="normal") as db:
        with db.transaction() as tx:
            a, b = (tx.create_node(type="Fact", name=name).id for name in "ab")
            kept = tx.write_edge("implies", a, b).id
        with suppress(ZeroDivisionError), db.transaction() as tx:
            if how != "empty":
                tx.create_node(type="Fact", name="c")
            if how == "rolled back":
                raise ZeroDivisionError
        before = trace(db)
        late: dict[str, Callable[[], object]] = {
            "create": lambda: tx.create_node(type="Fact", name="late"),
            "edge": lambda: tx.write_edge("refers_to", a, b),
            "edges": lambda: tx.write_edges("refers_to", [EdgeDraft(source=a, target=b)]),
            "delete": lambda: tx.delete_edge(kept),
            "alias": lambda: tx.add_aliases(a, ["late"]),
            "retire": lambda: tx.retire(a),
            "register": lambda: tx.register(a, "late", "1", False),
        }
        with pytest.raises(WorldDBError):
            late[what]()
        assert trace(db) == before
        assert db.check() == []


def test_a_node_whose_reading_fails_is_not_committed(db: WorldDB) -> None:
    """An error of any kind in a call that has written ends the transaction."""
    before = trace(db)
    with suppress(Exception), db.transaction() as tx, suppress(Exception):
        tx.create_node(type="Fact", created_at="9999-12-31T23:59:59-14:00")
    assert trace(db) == before
    assert db.children() == []


# -- reading ---------------------------------------------------------------------------------------


def read_id_cases() -> Iterator[tuple[str, Case]]:
    calls: dict[str, Callable[[Any, Any, Any], object]] = {
        "get": lambda db, s, bad: db.get(bad),
        "get_edge": lambda db, s, bad: db.get_edge(bad),
        "children": lambda db, s, bad: db.children(bad),
        "edges": lambda db, s, bad: db.edges(bad),
        "prove": lambda db, s, bad: db.prove(bad),
        "equivalence_class": lambda db, s, bad: db.equivalence_class(bad),
        "ontology": lambda db, s, bad: db.ontology(bad),
        "seeds": lambda db, s, bad: db.query().seeds([bad]).execute(),
        "in_world": lambda db, s, bad: db.query().in_world(bad).execute(),
        "where_connected": lambda db, s, bad: (
            db.query().where_connected("refers_to", "out", bad).execute()
        ),
        "a spec": lambda db, s, bad: db.run(QuerySpec(seeds=[bad])),
        "accept_merge": lambda db, s, bad: db.accept_merge(bad),
    }
    for where, call in calls.items():
        for kind, (value, error, hint) in BAD_IDS.items():
            yield f"{where}: {kind}", (bound(call, value), error, hint)
        if where not in ("get_edge", "accept_merge"):
            wrong = bound(lambda db, s, call: call(db, s, s.ambiguous), call)
            hint = r"is the start of several ids \(.*give more"
            yield f"{where}: ambiguous", (wrong, InvalidInputError, hint)


def read_time_cases() -> Iterator[tuple[str, Case]]:
    calls: dict[str, Callable[[Any, Any, Any], object]] = {
        "get": lambda db, s, when: db.get(s.a, as_of=when),
        "children": lambda db, s, when: db.children(s.world, as_of=when),
        "edges": lambda db, s, when: db.edges(s.a, as_of=when),
        "conflicts": lambda db, s, when: db.conflicts(as_of=when),
        "proposals": lambda db, s, when: db.proposals(as_of=when),
        "equivalence_class": lambda db, s, when: db.equivalence_class(s.a, as_of=when),
    }
    for where, call in calls.items():
        for when in (None, "2026-01-01T00:00:00Z", 5, datetime(2026, 1, 1, tzinfo=UTC)):
            yield f"{where} as of {when!r}", (bound(call, when), InvalidInputError, "AsOf")
        for kind, (value, hint) in BAD_TIMES.items():
            for axis in ("valid", "known"):
                if (
                    where in ("conflicts", "proposals", "equivalence_class", "edges")
                    and kind != "naive"
                ):
                    continue
                asked = AsOf(**{axis: value})
                wrong = bound(call, asked)
                yield (
                    f"{where} as of {axis} {kind}",
                    (wrong, InvalidInputError, f"{axis}: .*{hint}"),
                )
    for kind, (value, hint) in BAD_TIMES.items():
        for axis in ("valid", "known"):
            wrong = bound(lambda db, s, given: db.query().as_of(**given), {axis: value})
            yield f"query as of {axis} {kind}", (wrong, InvalidInputError, f"{axis}: .*{hint}")
        for end in ("start", "end"):
            wrong = bound(lambda db, s, given: db.query().filter_time(**given), {end: value})
            yield f"filter_time {end} {kind}", (wrong, InvalidInputError, f"{end}: .*{hint}")


READS: dict[str, Case] = {
    **dict(read_id_cases()),
    **dict(read_time_cases()),
    "text: empty": (lambda db, s: db.query().text(""), InvalidInputError, "at least one word"),
    "text: blank": (lambda db, s: db.query().text(" \t"), InvalidInputError, "at least one word"),
    "text: None": (lambda db, s: db.query().text(None), InvalidInputError, "text: "),
    "text: int": (lambda db, s: db.query().text(5), InvalidInputError, "text: "),
    "text: list": (lambda db, s: db.query().text(["a"]), InvalidInputError, "text: "),
    "seeds: None": (lambda db, s: db.query().seeds(None).execute(), InvalidInputError, "id"),
    "seeds: int": (lambda db, s: db.query().seeds(5).execute(), InvalidInputError, "id"),
    "hops: 0": (lambda db, s: go(db, s, hops=0), InvalidInputError, "between 1 and 100"),
    "hops: -1": (lambda db, s: go(db, s, hops=-1), InvalidInputError, "between 1 and 100"),
    "hops: 101": (lambda db, s: go(db, s, hops=101), InvalidInputError, "between 1 and 100"),
    "hops: huge": (lambda db, s: go(db, s, hops=10**30), InvalidInputError, "between 1 and 100"),
    "hops: text": (lambda db, s: go(db, s, hops="2"), InvalidInputError, "hops"),
    "hops: half": (lambda db, s: go(db, s, hops=1.5), InvalidInputError, "hops"),
    "hops: None": (lambda db, s: go(db, s, hops=None), InvalidInputError, "hops"),
    "direction: up": (lambda db, s: go(db, s, direction="up"), InvalidInputError, "out.*in.*both"),
    "direction: None": (lambda db, s: go(db, s, direction=None), InvalidInputError, "direction"),
    "direction: list": (lambda db, s: go(db, s, direction=["out"]), InvalidInputError, "direction"),
    "traverse: no types": (lambda db, s: go(db, s, types=[]), InvalidInputError, "edge type"),
    "traverse: None": (lambda db, s: go(db, s, types=None), InvalidInputError, "type"),
    "traverse: int": (lambda db, s: go(db, s, types=5), InvalidInputError, "type"),
    "traverse: ints": (lambda db, s: go(db, s, types=[5]), InvalidInputError, "type"),
    "traverse: surrogate": (lambda db, s: go(db, s, types="\ud800"), InvalidInputError, "type"),
    "filter_type: none": (lambda db, s: db.query().filter_type(), InvalidInputError, "type"),
    "filter_type: int": (
        lambda db, s: db.query().filter_type(5).execute(),
        InvalidInputError,
        "type",
    ),
    "filter_type: surrogate": (
        lambda db, s: db.query().filter_type("x\ud800").execute(),
        InvalidInputError,
        "type",
    ),
    "where_connected: direction": (
        lambda db, s: db.query().where_connected("refers_to", "down", s.a),
        InvalidInputError,
        "direction 'down': use",
    ),
    "where_connected: type": (
        lambda db, s: db.query().where_connected(5, "out", s.a).execute(),
        InvalidInputError,
        "type",
    ),
    "where_connected: surrogate": (
        lambda db, s: db.query().where_connected("\ud800", "out", s.a).execute(),
        InvalidInputError,
        "type",
    ),
    "filter_time: turned": (
        lambda db, s: db.query().filter_time("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"),
        InvalidInputError,
        "the end must be after the start",
    ),
    "filter_time: empty": (lambda db, s: db.query().filter_time(AT, AT), InvalidInputError, "end"),
    "limit: 0": (lambda db, s: db.query().limit(0), InvalidInputError, "positive"),
    "limit: -1": (lambda db, s: db.query().limit(-1), InvalidInputError, "positive"),
    "limit: text": (lambda db, s: db.query().limit("5"), InvalidInputError, "limit: "),
    "limit: half": (lambda db, s: db.query().limit(1.5).execute(), InvalidInputError, "limit: "),
    "limit: None": (lambda db, s: db.query().limit(None), InvalidInputError, "limit: "),
    "edges: direction": (lambda db, s: db.edges(s.a, "up"), InvalidInputError, "direction 'up'"),
    "edges: types int": (lambda db, s: db.edges(s.a, types=5), InvalidInputError, "type"),
    "edges: types ints": (lambda db, s: db.edges(s.a, types=[5]), InvalidInputError, "type"),
    "edges: surrogate": (lambda db, s: db.edges(s.a, types=["\ud800"]), InvalidInputError, "type"),
    "proposals: status": (lambda db, s: db.proposals("maybe"), InvalidInputError, "use one of"),
    "proposals: list": (lambda db, s: db.proposals(["pending"]), InvalidInputError, "use one of"),
    "log: after text": (lambda db, s: db.log(after="1"), InvalidInputError, "after"),
    "log: limit text": (lambda db, s: db.log(limit="1"), InvalidInputError, "limit"),
    "log: limit negative": (lambda db, s: db.log(limit=-1), InvalidInputError, "limit"),
    "diff: turned": (lambda db, s: db.diff(2, 1), InvalidInputError, "the earlier commit first"),
    "diff: unknown": (lambda db, s: db.diff(0, 99), NotFoundError, "no commit 99; the last is 2"),
    "diff: negative": (lambda db, s: db.diff(-1, 1), NotFoundError, "no commit -1"),
    "diff: huge": (lambda db, s: db.diff(0, 10**30), NotFoundError, "no commit 1000"),
    "diff: text": (lambda db, s: db.diff("0", "1"), InvalidInputError, "number|commit"),
    "diff: None": (lambda db, s: db.diff(None, 1), InvalidInputError, "number|commit"),
    "export: after text": (lambda db, s: list(db.export(after="x")), InvalidInputError, "after"),
    "spec: unknown key": (
        lambda db, s: QuerySpec.from_dict({"sedes": []}),
        InvalidInputError,
        "unknown in a query: sedes",
    ),
    "spec: limit text": (lambda db, s: db.run(QuerySpec(limit="x")), InvalidInputError, "limit"),  # type: ignore[arg-type]
    "spec: seeds int": (lambda db, s: db.run(QuerySpec(seeds=5)), InvalidInputError, "id|seeds"),  # type: ignore[arg-type]
    "spec: steps int": (lambda db, s: db.run(QuerySpec(steps=5)), InvalidInputError, "step"),  # type: ignore[arg-type]
    "spec: a step that is text": (
        lambda db, s: db.run(QuerySpec(steps=["traverse"])),  # type: ignore[list-item]
        InvalidInputError,
        "step",
    ),
    "spec: a step that is None": (
        lambda db, s: db.run(QuerySpec(steps=[None])),  # type: ignore[list-item]
        InvalidInputError,
        "step",
    ),
    "spec: naive time": (
        lambda db, s: db.run(QuerySpec(valid="2026-01-01T09:30")),
        InvalidInputError,
        "no time zone",
    ),
    "spec: empty text": (lambda db, s: db.run(QuerySpec(text="")), InvalidInputError, "one word"),
}
BAD_STEPS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown op": ({"op": "fly"}, "unknown step 'fly'; use one of traverse"),
    "no op": ({"types": "refers_to"}, "unknown step None"),
    "an op that is a list": ({"op": ["traverse"]}, "unknown step"),
    "no types": ({"op": "traverse"}, "step traverse: .*types"),
    "an unknown argument": ({"op": "traverse", "types": "x", "speed": 9}, "step traverse: .*speed"),
    "hops as text": ({"op": "traverse", "types": "x", "hops": "2"}, "hops|step traverse"),
    "hops 0": ({"op": "traverse", "types": "x", "hops": 0}, "between 1 and 100"),
    "direction": ({"op": "traverse", "types": "x", "direction": "up"}, "direction 'up'"),
    "no type to filter": ({"op": "filter_type"}, "step filter_type: .*types"),
    "a bad time": ({"op": "filter_time", "start": "soon"}, "not ISO-8601"),
    "no id": ({"op": "where_connected", "type": "x", "direction": "in"}, "where_connected: .*id"),
}


def go(db: Any, s: Any, types: Any = "refers_to", **options: Any) -> object:
    return db.query().seeds(s.a).traverse(types, **options).execute()


@pytest.mark.parametrize("title", READS)
def test_a_wrong_question_is_refused(kept: tuple[WorldDB, SimpleNamespace], title: str) -> None:
    db, s = kept
    call, error, hint = READS[title]
    before = trace(db)
    with pytest.raises(error, match=f"(?s){hint}") as caught:
        call(db, s)
    assert len(str(caught.value)) > 10
    assert trace(db) == before


@pytest.mark.parametrize("title", BAD_STEPS)
def test_a_wrong_step_of_a_spec_is_refused(
    kept: tuple[WorldDB, SimpleNamespace], title: str
) -> None:
    db, s = kept
    step, hint = BAD_STEPS[title]
    with pytest.raises(InvalidInputError, match=f"(?s){hint}"):
        db.run(QuerySpec(seeds=[str(s.a)], steps=[step]))


SYNTAX = (
    *('"', "'", "a AND", "OR", "NOT a", "a*", "name:a", "^a", "(a", "a)", "-a", "+a", "NEAR(a b)"),
    *("{name}: a", "\0", "a\0b", "!!!", "…", "a" * 60_000, "a " * 5_000),
)


def test_words_of_a_question_are_never_syntax(db: WorldDB, s: SimpleNamespace) -> None:
    for text in SYNTAX:
        assert db.query().text(text).execute() is not None


def test_a_large_limit_is_no_limit(db: WorldDB, s: SimpleNamespace) -> None:
    assert len(db.query().in_world(s.world).limit(10**30).execute()) == 3
    assert len(db.log(limit=10**15)) == len(db.log())


# -- stores and exports ----------------------------------------------------------------------------


def test_a_store_is_opened_where_one_can_be(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is a folder; give the path of a file"):
        worlddb.open(tmp_path)
    with pytest.raises(StorageError, match="does not exist; create it first"):
        worlddb.open(tmp_path / "no" / "a.db")
    with pytest.raises(StorageError, match="does not exist"):
        worlddb.open(tmp_path / "a.db", create=False)
    with pytest.raises(StorageError, match="does not exist"):
        worlddb.open(tmp_path / "a.db", read_only=True)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a.txt").write_text("this is a letter, and no store at all\n" * 100)
    with pytest.raises(FormatError, match="is not a WorldDB store; choose another path"):
        worlddb.open(tmp_path / "a.txt")


OPTIONS: dict[str, dict[str, Any]] = {
    "durability": {"durability": "some"},
    "no durability": {"durability": None},
    "a durability in a list": {"durability": ["full"]},
    "a time-out as text": {"busy_timeout_s": "30"},
    "a negative time-out": {"busy_timeout_s": -1},
    "no time-out": {"busy_timeout_s": None},
    "limits as a dict": {"limits": {"name_bytes_max": 5}},
    "handlers as a number": {"handlers": 5},
    "a handler that is text": {"handlers": ["likes"]},
    "a clock that is a time": {"clock": 5},
}


@pytest.mark.parametrize("title", OPTIONS)
def test_a_wrong_option_is_refused_before_a_file_is_made(tmp_path: Path, title: str) -> None:
    with pytest.raises(InvalidInputError):
        worlddb.open(tmp_path / "a.db", **OPTIONS[title])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", [None, 5, b"\xff\xfe", ["a.db"], "a\0b.db"])
def test_a_path_that_is_none_is_refused(path: Any) -> None:
    with pytest.raises(WorldDBError):
        worlddb.open(path)


def test_a_closed_store_says_so(db: WorldDB, s: SimpleNamespace) -> None:
    lines = list(db.export())
    db.close()
    db.close()
    calls: list[Callable[[], object]] = [
        lambda: db.get(s.a),
        lambda: db.query().execute(),
        lambda: db.log(),
        lambda: db.check(),
        lambda: list(db.export()),
        lambda: db.root_state,
        lambda: db.accept_merge(s.same),
        lambda: db.replay(lines),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match="is closed; open it again"):
            call()


def test_a_read_only_store_refuses_every_write(tmp_path: Path) -> None:
    with worlddb.open(tmp_path / "a.db") as db, db.transaction() as tx:
        a, b = (tx.create_node(type="Fact", name=name).id for name in "ab")
        same = tx.write_edge("same_as", a, b).id
    with worlddb.open(tmp_path / "a.db") as db:
        lines = list(db.export())
    with worlddb.open(tmp_path / "a.db", read_only=True) as db:
        with pytest.raises(StorageError, match="read-only"), db.transaction() as tx:
            tx.create_node(type="Fact")
        with pytest.raises(StorageError, match="read-only"):
            db.accept_merge(same)
        later = [line.replace('"commit":1', '"commit":2') for line in lines]
        with pytest.raises(WorldDBError):
            db.replay(later)
        assert db.replay(lines) == 0
        assert list(db.export()) == lines


EXPORTS: dict[str, tuple[Any, type[WorldDBError]]] = {
    "nothing": ([], FormatError),
    "no JSON": (["hello"], FormatError),
    "no object": (["[1]"], FormatError),
    "no header": (['{"commit":1}'], WorldDBError),
    "a newer version": (['{"worlddb":99}'], FormatError),
    "a version that is text": (['{"worlddb":"one"}'], FormatError),
    "a commit that is text": (['{"worlddb":1}', '{"commit":"one"}'], WorldDBError),
    "a commit of nothing": (['{"worlddb":1}', '{"commit":1}'], WorldDBError),
    "something else": (['{"worlddb":1}', '{"hello":1}'], WorldDBError),
    "a number": (['{"worlddb":1}', "5"], FormatError),
    "a huge commit": (['{"worlddb":1}', '{"commit":' + "9" * 30 + "}"], WorldDBError),
    "deep JSON": (['{"worlddb":1}', "[" * 100_000], FormatError),
    "no lines at all": (5, WorldDBError),
    "lines of bytes": ([b'{"worlddb":1}', b"\xff"], WorldDBError),
}


@pytest.mark.parametrize("title", EXPORTS)
def test_what_is_no_export_is_refused(db: WorldDB, s: SimpleNamespace, title: str) -> None:
    lines, error = EXPORTS[title]
    before = trace(db)
    with pytest.raises(error):
        db.replay(lines)
    assert trace(db) == before


def test_a_changed_export_is_refused_and_what_came_before_is_kept(
    db: WorldDB, s: SimpleNamespace
) -> None:
    lines = list(db.export())
    changes: dict[str, Callable[[Any], None]] = {
        "name": lambda line: line.update(name="other"),
        "content": lambda line: line.update(content="other"),
        "valid_from": lambda line: line.update(valid_from=5),
        "parent": lambda line: line.update(parent=str(NOBODY)),
        "actor": lambda line: line.update(actor="other"),
        "time": lambda line: line.update(time=line["time"] + 1),
        "root_state": lambda line: line.update(root_state=str(NOBODY)),
        "hash": lambda line: line.update(hash=str(NOBODY)),
        "changes": lambda line: line.update(changes=[]),
        "metadata": lambda line: line.update(metadata={"x": 1}),
        "generation": lambda line: line.update(generation=7),
        "target": lambda line: line.update(target=line["source"]),
        "type": lambda line: line.update(type="other"),
    }
    for field, change in changes.items():
        place = max(n for n, text in enumerate(lines) if field in json.loads(text))
        line = json.loads(lines[place])
        change(line)
        if json.loads(lines[place]) == line:
            continue
        with worlddb.open(":memory:") as copy:
            changed = [*lines[:place], json.dumps(line), *lines[place + 1 :]]
            refused = False
            try:
                copy.replay(changed)
            except WorldDBError:
                refused = True
            # What the line merely repeats may be ignored, but never taken over.
            assert refused or list(copy.export()) == lines, field
            assert copy.check() == [], field
            assert copy.log() == db.log()[: len(copy.log())], field


def test_an_export_of_another_history_is_refused(db: WorldDB, s: SimpleNamespace) -> None:
    before = trace(db)
    with worlddb.open(":memory:") as other:
        with other.transaction() as tx:
            tx.create_node(type="Fact", name="another history")
        lines = list(other.export())
    with pytest.raises(ConflictError, match="import into a new store"):
        db.replay(lines)
    assert trace(db) == before


@pytest.mark.stores("memory")
def test_a_backup_does_not_overwrite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, db: WorldDB, s: SimpleNamespace
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.db").write_text("mine")
    with pytest.raises(StorageError, match="exists already; choose a new path"):
        db.backup(tmp_path / "there.db")
    with pytest.raises(StorageError, match="does not exist; create it first"):
        db.backup(tmp_path / "no" / "a.db")
    with pytest.raises(WorldDBError):
        db.backup(":memory:")
    assert (tmp_path / "there.db").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["there.db"]
