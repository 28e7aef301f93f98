"""The other processes that the tests of this folder start: one role each.

    python child.py ROLE PATH [more]

A role says what it has done as lines of JSON on its standard output, and waits for a line on its
standard input where the test decides when it goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import apsw

import worlddb
from worlddb.model.records import Query

NOBODY = 65534


def say(value: Any) -> None:
    """Print one line of JSON at once."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def wait() -> None:
    """Wait until the test says to go on."""
    sys.stdin.readline()


def commit(db: worlddb.WorldDB, name: str, **fields: Any) -> dict[str, Any]:
    """Write one node and return the commit as the test wants to see it."""
    with db.transaction(actor="child") as tx:
        node = tx.create_node(type="Fact", name=name, **fields)
    assert tx.commit is not None
    return {"seq": tx.commit.seq, "hash": str(tx.commit.hash), "node": str(node.id), "name": name}


# -- several processes ---------------------------------------------------------------------------


def write(path: str, name: str, count: str) -> None:
    """Make some commits when told, then say what everybody has written, without reopening."""
    with worlddb.open(path) as db:
        say("ready")
        wait()
        for number in range(int(count)):
            say(commit(db, f"{name} {number}"))
        say("done")
        wait()
        say(sorted(node.name for node in db.children()))


def make(path: str, name: str) -> None:
    """Open a file that may not be there yet, together with others, and write to it."""
    say("ready")
    wait()
    with worlddb.open(path) as db:
        say(commit(db, name))


def hold(path: str) -> None:
    """Keep the write lock until told."""
    with worlddb.open(path) as db:
        with db.transaction() as tx:
            node = tx.create_node(type="Fact", name="held")
            say("held")
            wait()
        say(str(node.id))


def die(path: str, count: str) -> None:
    """Make some commits and die at once, leaving everything in the log."""
    db = worlddb.open(path)
    for number in range(int(count)):
        say(commit(db, f"before death {number}"))
    os.kill(os.getpid(), signal.SIGKILL)


def lose_log(path: str) -> None:
    """Lose the log while it holds everything, try to write once, and wait to be killed."""
    db = worlddb.open(path)
    for number in range(3):
        commit(db, f"{number}")
    say([node.name for node in db.children()])
    Path(f"{path}-wal").unlink()
    try:
        commit(db, "lost")
    except worlddb.StorageError as error:
        say(str(error))
    wait()


class Likes:
    """A custom edge type that this process brings along."""

    type = "likes"
    version = "3"
    pierces = False

    def on_insert(self, ctx: worlddb.WriteContext, edge: worlddb.Edge) -> None:
        """Let the handler leave a trace, so that the test sees that it ran."""
        ctx.create_node(type="Event", name="a like")

    def on_delete(self, ctx: worlddb.WriteContext, edge: worlddb.Edge) -> None:
        """Do nothing."""

    def on_query_rewrite(self, query: Query) -> Query:
        """Change nothing."""
        return query


class Replaces(Likes):
    """A custom program for a type that has a default one."""

    type = "supersedes"


def register(path: str, which: str) -> None:
    """Register a custom type and write an edge of it."""
    handler = {"likes": Likes, "supersedes": Replaces}[which]()
    with worlddb.open(path) as db:
        db.ontology().register(handler)
        with db.transaction() as tx:
            source = tx.create_node(type="Entity", name="Ada")
            target = tx.create_node(type="Entity", name="Charles")
            edge = tx.write_edge(which, source.id, target.id)
        say({"source": str(source.id), "target": str(target.id), "edge": str(edge.id)})


def is_in(frame: FrameType | None, name: str) -> bool:
    """Return whether a thread is inside the store's function of that name."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == name and Path(code.co_filename).name == "sqlite_store.py":
            return True
        frame = frame.f_back
    return False


def interrupt(path: str) -> None:
    """Press Ctrl-C while waiting for the write lock; then write as if nothing had been."""
    db = worlddb.open(path, busy_timeout_s=60)
    other = worlddb.open(path, busy_timeout_s=60)
    held = threading.Event()
    main = threading.get_ident()

    def keep() -> None:
        with other.transaction() as tx:
            tx.create_node(type="Fact", name="the other one")
            held.set()
            while not is_in(sys._current_frames().get(main), "write"):
                time.sleep(0.001)
            # A little more, until it is deep in SQLite, waiting for the lock of the file.
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)

    keeper = threading.Thread(target=keep)
    keeper.start()
    held.wait()
    try:
        commit(db, "never")
        outcome = "committed"
    except KeyboardInterrupt:
        outcome = "interrupted"
    keeper.join()
    for store in (other, db):
        try:
            commit(store, "after")
        except (worlddb.WorldDBError, apsw.Error) as error:
            outcome += f", then {type(error).__name__}: {error}"
    say(outcome)


# -- somebody else's program ---------------------------------------------------------------------


def stranger(path: str) -> None:
    """Run statements with the standard library's sqlite3; say what each raised."""
    con = sqlite3.connect(path, timeout=0, isolation_level=None)
    for line in sys.stdin:
        try:
            con.execute(json.loads(line)).fetchall()
            say(None)
        except sqlite3.Error as error:
            say(str(error))


# -- no right to write ---------------------------------------------------------------------------


def read_only(path: str) -> None:
    """Give up the right to write everywhere, then open, read and try to write."""
    # Modules are loaded now: after the drop their files may be out of reach.
    worlddb.open(":memory:").check()
    if os.geteuid() == 0:
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        except OSError as error:
            say({"skip": f"cannot drop root: {error}"})
            return
    if os.access(path, os.W_OK):
        say({"skip": "this user may write every file"})
        return
    for asked in (True, False):
        found: dict[str, Any] = {}
        try:
            with worlddb.open(path, read_only=asked) as db:
                found["log"] = [str(item.hash) for item in db.log()]
                found["names"] = [node.name for node in db.children()]
                found["check"] = [str(problem) for problem in db.check()]
                found["written"] = attempt(partial(commit, db, "no"))
        except worlddb.WorldDBError as error:
            found["error"] = f"{type(error).__name__}: {error}"
        say(found)


def attempt(call: Callable[[], Any]) -> str:
    """Return the name of the error that a call raised, or an empty text."""
    try:
        call()
    except (worlddb.WorldDBError, apsw.Error) as error:
        return type(error).__name__
    return ""


# -- a disk with an end --------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(bytes_max: int) -> Iterator[None]:
    """Let no file grow beyond `bytes_max`: the kernel refuses, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def log_size(path: str) -> int:
    """Return the size of the write-ahead log."""
    return Path(f"{path}-wal").stat().st_size


def outcome(path: str, db: worlddb.WorldDB, error: BaseException | None) -> None:
    """Say how it went, and what the store says while the disk is still full."""
    say(
        {
            "error": type(error).__name__ if error else None,
            "message": str(error),
            "log": [str(commit.hash) for commit in db.log()],
            "check": [str(problem) for problem in db.check()],
        }
    )


def fill(path: str) -> None:
    """Commit until the disk is full, read, then commit again with space."""
    with worlddb.open(path) as db:
        say(commit(db, "first"))
        with small_disk(log_size(path) + 300_000):
            error = None
            for number in range(1_000):
                try:
                    say(commit(db, f"fill {number}", content="words " * 500))
                except worlddb.StorageError as caught:
                    error = caught
                    break
            say("full")
            outcome(path, db, error)
        say(commit(db, "again"))
        outcome(path, db, None)


def fill_bulk(path: str) -> None:
    """Load in bulk until the disk is full, then with space."""
    drafts = [
        worlddb.NodeDraft(type="Turn", name=f"turn {i}", content=f"{i} words " * 100)
        for i in range(3_000)
    ]

    def load(db: worlddb.WorldDB) -> None:
        with db.transaction(bulk=True) as tx:
            ids = tx.create_nodes(drafts)
            links = [worlddb.EdgeDraft(source=a, target=b) for a, b in pairwise(ids)]
            tx.write_edges("refers_to", links)

    with worlddb.open(path) as db:
        say(commit(db, "first"))
        # Pages go to the disk in the middle of the load, not only at its end.
        db.engine.store._writer.pragma("cache_size", 50)  # type: ignore[attr-defined]
        for room in (20_000, 100_000, 400_000, 1_600_000):
            error: BaseException | None = None
            with small_disk(log_size(path) + room):
                try:
                    load(db)
                except worlddb.StorageError as caught:
                    error = caught
                outcome(path, db, error)
        load(db)
        outcome(path, db, None)


def swallow(path: str, what: str) -> None:
    """Go on in a transaction in which the disk was full, once there is space again."""
    with worlddb.open(path) as db:
        ack = commit(db, "first")
        say(ack)
        first = worlddb.Id(ack["node"])
        db.engine.store._writer.pragma("cache_size", 10)  # type: ignore[attr-defined]
        texts = (f"{number} {'y' * 900}" for number in range(10_000))
        error: BaseException | None = None
        try:
            with db.transaction() as tx:
                calls: dict[str, Callable[[], object]] = {
                    "create_node": lambda: tx.create_node(type="Fact", content=next(texts)),
                    "add_aliases": lambda: tx.add_aliases(first, [next(texts)]),
                    "add_source": lambda: tx.add_source(first, next(texts)),
                    "write_edge": lambda: tx.write_edge(
                        "refers_to", first, first, metadata={"x": next(texts)}
                    ),
                }
                with small_disk(log_size(path) + 200_000):
                    try:
                        while True:
                            calls[what]()
                    except Exception as caught:
                        say(type(caught).__name__)
                say([attempt(calls[name]) for name in calls])
        except (worlddb.WorldDBError, apsw.Error) as caught:
            error = caught
        outcome(path, db, error)
        say(commit(db, "again"))
        outcome(path, db, None)


def open_full(path: str) -> None:
    """Make a store on a disk that has no room for it, then with room."""
    for bytes_max in (0, 1, 4_096, 50_000):
        with small_disk(bytes_max):
            say(attempt(lambda: worlddb.open(path).close()))
    with worlddb.open(path) as db:
        say(commit(db, "first"))
        outcome(path, db, None)


def backup_full(path: str, target: str) -> None:
    """Copy to a disk that has no room for the copy, then with room."""
    with worlddb.open(path) as db:
        with small_disk(50_000):
            say(attempt(lambda: db.backup(target)))
        say(sorted(item.name for item in Path(target).parent.iterdir()))
        db.backup(target)


ROLES: dict[str, Callable[..., None]] = {
    "write": write,
    "make": make,
    "hold": hold,
    "die": die,
    "lose_log": lose_log,
    "register": register,
    "interrupt": interrupt,
    "stranger": stranger,
    "read_only": read_only,
    "fill": fill,
    "fill_bulk": fill_bulk,
    "swallow": swallow,
    "open_full": open_full,
    "backup_full": backup_full,
}

if __name__ == "__main__":
    ROLES[sys.argv[1]](*sys.argv[2:])
