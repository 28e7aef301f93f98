"""Any single call fails, the nth for n = 1, 2, 3 … until none does: nothing has changed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pytest

import worlddb
from thinning import DEEP
from worlddb.store.postgres.postgres_store import PostgresStore
from worlddb.store.sqlite.schema import GUARDED
from worlddb.store.sqlite.sqlite_store import SqliteStore
from worlddb.store.tables.table_session import TableWriter

BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
CALLS_MAX = 5_000
LINES_MAX = 50_000
LINES_STEP = 7 if DEEP else 21
STEP = 1 if DEEP else 3
"""Every third call only; what fails before a call starts at another one than what fails after."""
DOORS = ("sqlite_store.py", "sqlite_session.py", "gate.py")
"""Where the clean-up of a session is; an interrupt in the middle of it is another matter."""

Step = Callable[[], object]


class InjectedError(Exception):
    """The failure that the test puts in."""


class Countdown:
    """Fails at the nth tick."""

    def __init__(self, nth: int | None, *, after: bool = False) -> None:
        self.left = nth
        self.after = after

    def tick(self) -> bool:
        """Return whether this is the call that has to fail."""
        if self.left is None:
            return False
        self.left -= 1
        return self.left == 0

    @property
    def spent(self) -> bool:
        """Whether the failure has happened."""
        return self.left is not None and self.left <= 0


class FailNth:
    """A store's writer of which one call raises, before or after it has had its effect."""

    def __init__(self, writer: TableWriter, countdown: Countdown) -> None:
        object.__setattr__(self, "_writer", writer)
        object.__setattr__(self, "_countdown", countdown)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._writer, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            fails = self._countdown.tick()
            if fails and not self._countdown.after:
                raise InjectedError(f"before {name}")
            result = found(*args, **kwargs)
            if fails:
                raise InjectedError(f"after {name}")
            return result

        return call

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._writer, name, value)


class Injector:
    """Puts a countdown between the engine and every writer that a store hands out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.countdown = Countdown(None)
        for kind in (SqliteStore, PostgresStore):
            self._put_between(kind, monkeypatch)

    def _put_between(self, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        real = kind.write

        @contextlib.contextmanager
        def write(store: Any, *, together: bool = False) -> Iterator[Any]:
            with real(store, together=together) as writer:
                yield FailNth(writer, self.countdown)

        monkeypatch.setattr(kind, "write", write)


@pytest.fixture
def injector(monkeypatch: pytest.MonkeyPatch) -> Injector:
    """Return the switch that makes the nth call to a writer fail."""
    return Injector(monkeypatch)


@pytest.fixture(params=["file", "memory"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[worlddb.WorldDB]:
    """Return a store with something in it."""
    with filled(":memory:" if request.param == "memory" else tmp_path / "store.db") as opened:
        yield opened


@contextlib.contextmanager
def filled(path: str | Path) -> Iterator[worlddb.WorldDB]:
    """Yield a new store with something in it."""
    with worlddb.open(path, durability="normal", busy_timeout_s=60) as opened:
        with opened.transaction() as tx:
            a = tx.create_node(type="Entity", name="Ada", created_at=BEGAN)
            b = tx.create_node(type="Entity", name="Ada L.", created_at=BEGAN)
            c = tx.create_node(type="Topic", name="engines", created_at=BEGAN)
            tx.write_edge("refers_to", a.id, b.id)
            tx.write_edge("same_as", a.id, b.id)
            tx.write_edge("contradicts", a.id, b.id)
            tx.write_edge("contains", c.id, b.id)
        yield opened


def known_ids(db: worlddb.WorldDB) -> dict[str, worlddb.Id]:
    """Return the ids of the nodes by name and of the edges by type."""
    nodes = {node.name: node.id for node in db.query().execute().nodes}
    return nodes | {edge.type: edge.id for node in nodes.values() for edge in db.edges(node)}


def steps(known: dict[str, worlddb.Id], tx: worlddb.Transaction) -> Iterator[Step]:
    """Yield calls that together use everything a writer can do."""
    a, b, c = known["Ada"], known["Ada L."], known["engines"]
    made: list[worlddb.Id] = []

    def create(**fields: Any) -> None:
        made.append(tx.create_node(type="Fact", **fields).id)

    yield lambda: create(name="one", aliases=["uno"], source="a diary", parent=c)
    yield lambda: create(name="two", valid_from=BEGAN)
    yield lambda: tx.create_node(type="Entity", name="Ada", created_at=BEGAN, aliases=["A."])
    yield lambda: tx.write_edge("supersedes", made[1], made[0])
    yield lambda: tx.write_edge("refers_to", made[0], b, metadata={"page": 3})
    yield lambda: tx.write_edge("same_as", made[0], made[1])
    yield lambda: tx.write_edge("contains", a, made[1])
    yield lambda: tx.delete_edge(known["refers_to"])
    yield lambda: tx.delete_edge(known["contradicts"])
    yield lambda: tx.delete_edge(known["contains"])
    yield lambda: tx.decide_merge(known["same_as"], "accepted")
    yield lambda: tx.add_aliases(a, ["Countess", "Lovelace"])
    yield lambda: tx.add_source(b, "a letter")
    yield lambda: tx.register(c, "likes", "1", False)
    drafts = [worlddb.NodeDraft(type="Turn", name=f"{i}", parent=c) for i in range(130)]
    yield lambda: made.extend(tx.create_nodes(drafts))
    yield lambda: tx.write_edges("precedes", [worlddb.EdgeDraft(source=made[2], target=made[3])])


def write(db: worlddb.WorldDB, *, bulk: bool = False) -> None:
    """Do all the steps in one transaction."""
    known = known_ids(db)
    with db.transaction(bulk=bulk) as tx:
        for step in steps(known, tx):
            step()


def write_and_swallow(db: worlddb.WorldDB) -> None:
    """Do all the steps in one transaction, and go on after one that failed."""
    known = known_ids(db)
    with db.transaction() as tx:
        for step in steps(known, tx):
            with contextlib.suppress(InjectedError, worlddb.ConflictError, IndexError):
                step()


def write_little(db: worlddb.WorldDB) -> None:
    """Make a small commit."""
    with db.transaction() as tx:
        tx.create_node(type="Event", name="after a failure", parent=None)
    assert tx.commit is not None


def picture(db: worlddb.WorldDB) -> tuple[Any, ...]:
    """Return what must not change: the last commit, the size of each table, and the schema.

    That the rows are those of the journal is for `check` to say.
    """
    store: Any = db.engine.store
    is_file = isinstance(store, SqliteStore)
    with store.read() as reader:
        ask = reader.session.execute
        sql = "SELECT type, name, sql FROM sqlite_schema"
        schema = sorted(ask(sql).fetchall()) if is_file else reader.scan.schema_problems()
        counts = [ask(f"SELECT count(*) FROM {name}").get for name in GUARDED]
    return db.root_state, db.log(limit=1, newest_first=True)[0], counts, schema


def verify(db: worlddb.WorldDB, before: tuple[Any, ...], nth: int) -> None:
    """Hold the store to what it was before; now and then, let it do something else in between."""
    assert picture(db) == before, f"call {nth}"
    assert db.check() == [], f"call {nth}"
    if nth % 16 == 0:
        write_little(db)


def fail_each(
    db: worlddb.WorldDB, injector: Injector, body: Step, *, after: bool, every: int = STEP
) -> int:
    """Run `body` with its nth call failing, for each n; return how many calls it makes."""
    for nth in range(1 + after, CALLS_MAX, every):
        before = picture(db)
        injector.countdown = Countdown(nth, after=after)
        try:
            body()
        except InjectedError:
            injector.countdown = Countdown(None)
            verify(db, before, nth)
        else:
            assert not injector.countdown.spent, f"call {nth} failed and was not reported"
            injector.countdown = Countdown(None)
            assert db.check() == []
            assert db.log()[-1].seq == before[1].seq + 1
            return nth
    raise AssertionError("it never succeeds")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_transaction_that_fails_at_any_store_call_changes_nothing(
    db: worlddb.WorldDB, injector: Injector, after: bool
) -> None:
    assert fail_each(db, injector, lambda: write(db), after=after) > 50


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_bulk_transaction_that_fails_at_any_store_call_changes_nothing(
    db: worlddb.WorldDB, injector: Injector, after: bool
) -> None:
    assert fail_each(db, injector, lambda: write(db, bulk=True), after=after) > 50


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_failed_store_call_that_the_block_swallows_still_rolls_back(
    db: worlddb.WorldDB, injector: Injector, after: bool
) -> None:
    assert fail_each(db, injector, lambda: write_and_swallow(db), after=after) > 50


def test_a_replay_that_fails_at_any_store_call_keeps_whole_commits_only(
    db: worlddb.WorldDB, injector: Injector
) -> None:
    write(db)
    lines, hashes = list(db.export()), [commit.hash for commit in db.log()]
    failures = 0
    with worlddb.open(":memory:") as copy:
        for nth in range(1, CALLS_MAX, STEP):
            injector.countdown = Countdown(nth)
            try:
                copy.replay(lines)
            except InjectedError:
                failures += 1
                injector.countdown = Countdown(None)
                assert [commit.hash for commit in copy.log()] == hashes[: len(copy.log())]
                assert copy.check() == []
            else:
                break
        assert failures > 30 // STEP
        assert [commit.hash for commit in copy.log()] == hashes
        assert list(copy.export()) == lines


def test_an_error_at_any_sql_statement_changes_nothing(db: worlddb.WorldDB) -> None:
    con = db.engine.store._writer  # type: ignore[attr-defined]
    countdown = Countdown(None)

    def trace(cursor: object, sql: str, bindings: object) -> bool:
        if countdown.tick():
            raise apsw.IOError(f"injected at {sql[:60]}")
        return True

    for nth in range(1, CALLS_MAX, STEP):
        before = picture(db)
        countdown = Countdown(nth)
        con.exec_trace = trace
        try:
            write(db)
        except worlddb.StorageError:
            con.exec_trace = None
            verify(db, before, nth)
        else:
            con.exec_trace = None
            assert not countdown.spent
            assert db.check() == []
            return
    raise AssertionError("it never succeeds")


def interrupted(body: Step, nth: int) -> bool:
    """Run `body` and press Ctrl-C at the nth line that the engine executes; return if it did."""
    package = str(Path(worlddb.__file__).parent)
    countdown = Countdown(nth)

    def in_frame(frame: FrameType, event: str, arg: object) -> Any:
        if event == "line" and countdown.tick():
            raise KeyboardInterrupt
        return in_frame

    def in_engine(frame: FrameType, event: str, arg: object) -> Any:
        file = frame.f_code.co_filename
        inside = file.startswith(package) and Path(file).name not in DOORS
        return in_frame if inside else None

    before = sys.gettrace()
    sys.settrace(in_engine)
    try:
        body()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interrupt_at_any_line_of_the_engine_is_all_or_nothing(db: worlddb.WorldDB) -> None:
    for nth in range(1, LINES_MAX, LINES_STEP):
        before = picture(db)
        if not interrupted(lambda: write_pair(db), nth):
            assert nth > 500
            return
        if db.log()[-1].seq == before[1].seq + 1:
            before = picture(db)
        verify(db, before, nth)
    raise AssertionError("it never succeeds")


def write_pair(db: worlddb.WorldDB) -> None:
    """Write a node and its successor."""
    with db.transaction() as tx:
        old = tx.create_node(type="Fact", name="old", source="a diary")
        new = tx.create_node(type="Fact", name="new", aliases=["newer"])
        tx.write_edge("supersedes", new.id, old.id)
