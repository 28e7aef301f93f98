"""Two histories that differ only outside a caller's bounds give the caller equal answers.

Ada does the same at the same times in both. In one of them others write, merge, share, link, purge
and erase in between, also about the names, texts and ids that Ada has. Every call that Ada can make
is asked in both, by her own ids, by the ids of others and by ids that nobody has.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

import worlddb
from recall.search_stage import hold_at_most
from worlddb import Memory, WorldDBError
from worlddb.faces.calls import CALLS

START = datetime(2026, 1, 1, tzinfo=UTC)
OWN = (
    "My friend Sarah Chen lives in Oslo.",
    "Sarah Chen plays chess with Tom Berg on Sundays.",
    "Tom Berg works at Tern and drinks green tea.",
    "I moved to Lisbon in March.",
    "Sara Chen likes green tea in the morning.",
    "Sarah's sister Mia Novak is a doctor in Graz.",
    "Sarah Chen lives in Bergen.",
    "The project Kite is due on Friday.",
)
OTHERS = (
    *OWN,
    "Sarah Chen lives in Paris and plays chess.",
    "Green tea, green tea and chess in Lisbon with Mia Novak.",
    "Sara Chen is somebody else.",
    "Mia Berg and Tom Novak moved to Graz in the morning.",
    "The project Kite was stopped.",
)
QUESTIONS = ("Where does Sarah Chen live?", "Who drinks green tea?", "What does Sara Chen like?")
LINES = (
    "text green tea | limit 5",
    "limit 200",
    "filter_type Entity | limit 100",
    "text chess | traverse refers_to both | limit 50",
    "text chess | include_superseded | traverse same_as both",
)
NOBODY = "ab" * 32


class Clock:
    """A clock that the story sets, so that equal steps have equal ids in both stores."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return int(self.now.timestamp() * 1_000_000)


class Story:
    """A store, the memory of its administrator, and the ids of what others have there."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.db = memory, memory.db
        self.nodes: list[str] = []
        self.edges: list[str] = []


def disturb(story: Story, rng: random.Random, step: int) -> None:
    """Let others do something, also to what they have in common with Ada."""
    db, memory = story.db, story.memory
    user = f"user {rng.randrange(4)}"
    into: Any = rng.choice(({}, {"app_id": "bank"}, {"app_id": "shop"}))
    done = memory.write(
        f"{rng.choice(OTHERS)} {'' if rng.random() < 0.5 else f'Note {step}.'}",
        user_id=user,
        **into,
    )
    story.nodes.append(str(done.id))
    ada = worlddb.ScopeName("user", "ada").id()
    mine = list(db.children(ada)) if step > 1 else []
    names = [one for one in mine if one.type == "Entity"]
    texts = [one for one in mine if one.type == "Memory"]
    other = done.entities[0].id if done.entities else None
    with db.transaction() as tx:
        found = tx.create_node(type="Entity", name="Zoe", parent=db.get(done.id).parent)
        edges = []
        if names and other is not None:
            edges += [tx.write_edge("refers_to", done.id, rng.choice(names).id)]
        for one in rng.sample(names, min(2, len(names))):
            edges += [tx.write_edge("same_as", found.id, one.id)]
        for one in rng.sample(texts, min(2, len(texts))):
            kind = rng.choice(("contradicts", "derived_from", "implies", "instance_of"))
            edges += [tx.write_edge(kind, done.id, one.id)]
    story.nodes.append(str(found.id))
    story.edges += [str(edge.id) for edge in edges]
    for edge in edges:
        if edge.type == "same_as":
            db.accept_merge(edge.id)
    more: tuple[Callable[[], Any], ...] = (
        lambda: memory.grant("user:eve", rng.choice(("read", "write")), user_id=user),
        lambda: memory.retire(done.id),
        lambda: memory.purge_scope(user_id=user, confirm=True),
        lambda: memory.erase(done.id),
        lambda: memory.consolidate(user_id=user),
        lambda: memory.set_trust({"web": "quarantine"}, user_id=user),
        lambda: memory.declare("likes", symmetric=True, user_id=user),
        lambda: memory.write_file("notes/tea.md", "green tea", user_id=user),
        lambda: memory.set_retention(keep_days=1, user_id=user),
        lambda: memory.write("It is quarantined.", origin="web", user_id=user),
    )
    rng.choice(more)()


@contextmanager
def history(seed: int | None, *, held: bool = True, rounds: int = 1) -> Iterator[Story]:
    """Yield a store with what Ada did; with a seed, others were there, too."""
    clock, rng = Clock(), random.Random(seed)
    options: Any = {"embedder": "hash", "clock": clock, "random_bytes": lambda size: b"\1" * size}
    with worlddb.open(":memory:", **options) as db:
        if not held:
            hold_at_most(db, 0)
        memory = Memory(db, recluster="now")
        story, ada = Story(memory), memory.bound(user_id="ada", actor="ada")
        for step, act in enumerate(steps(memory, ada)):
            for turn in range(rounds if seed is not None else 0):
                clock.now = START + timedelta(days=step, minutes=turn)
                disturb(story, rng, step)
                if not held:
                    hold_at_most(db, 0)  # An erasure forgets what is held.
            clock.now = START + timedelta(days=step, hours=12)
            act()
        clock.now = START + timedelta(days=60)
        yield story


def steps(memory: Memory, ada: Memory) -> Iterator[Callable[[], Any]]:
    """Yield what Ada does, and what Carl, whose scope she may read, does with it."""
    for number, text in enumerate(OWN):
        into: Any = {"app_id": "shop"} if number % 2 else {}
        yield partial(memory.write, text, user_id="ada", **into)
    chat = [{"role": "user", "content": "Is Tom in?"}, {"role": "assistant", "content": "No."}]
    yield partial(ada.write, messages=chat)
    yield partial(ada.write, "Always answer in French.", pin=True, tags=["instruction"])
    yield partial(ada.write, "Dogs bark.", idempotency_key="dogs")
    yield lambda: ada.amend(ada.list(limit=1)[0].id, "Dogs bark at night.")
    yield lambda: ada.retire(ada.list(limit=2)[1].id)
    yield lambda: ada.link("implies", *(one.id for one in ada.list(types=["Memory"], limit=2)))
    yield partial(ada.write_file, "notes/tea.md", "green tea and honey")
    yield partial(ada.declare, "likes", inverse="liked_by")
    yield partial(memory.write, "Carl grows green tea.", user_id="carl")
    yield partial(memory.grant, "user:ada", "read", user_id="carl")
    yield partial(ada.consolidate)
    yield partial(memory.write, "Beware of Tom Berg.", user_id="ada", origin="web")


def answer(call: Callable[[], Any]) -> Any:
    """Return what a call says, or its error."""
    try:
        found = call()
    except WorldDBError as error:
        return type(error).__name__, str(error)
    return found.to_dict() if hasattr(found, "to_dict") else found


def reads(ada: Memory) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the reads of a caller by what it has, each with a name."""
    past = START + timedelta(days=6)
    yield "interior", ada.interior
    yield "interior then", partial(ada.interior, as_of=past)
    for text in QUESTIONS[:2]:
        yield f"recall {text}", partial(ada.recall, text, k=50)
        yield f"recall in the shop {text}", partial(ada.recall, text, app_id="shop")
        yield f"recall of Carl {text}", partial(ada.recall, text, user_id=["ada", "carl"])
        yield f"recall of then {text}", partial(ada.recall, text, known_at=past, as_of=past)
        yield f"context {text}", partial(ada.context, text)
    yield "recall by name", partial(ada.recall, names=["Sarah Chen", "Zoe"], k=50)
    yield "recall ended", partial(ada.recall, "chess", include_retired=True, k=50)
    yield "recall filtered", partial(ada.recall, "tea", where={"type": "Memory"}, k=50)
    yield "recall summaries", partial(ada.recall, "chess", summaries="first", k=50)
    yield "context", ada.context
    yield "list", partial(ada.list, limit=1_000, include_retired=True)
    yield "list of then", partial(ada.list, limit=1_000, known_at=past)
    yield "list of Carl", partial(ada.list, limit=1_000, user_id="carl")
    yield "pages", lambda: [page.to_dict() for page in pages(ada)]
    yield "scopes", ada.list_scopes
    for line in LINES:
        yield f"query {line}", partial(ada.query, line)
        yield f"query of Carl {line}", partial(ada.query, line, user_id="carl")
        yield f"explain {line}", partial(ada.explain, line)
    yield "proposals", partial(ada.proposals, status="all", limit=1_000)
    yield "conflicts", partial(ada.conflicts, include_settled=True, limit=1_000)
    yield "log", partial(ada.log, limit=1_000)
    yield "log pages", lambda: [page.to_dict() for page in log_pages(ada)]
    yield "diff", partial(ada.diff, 0, 1_000)
    yield "edge types", ada.edge_types
    yield "grants", partial(ada.grants, include_ended=True)
    yield "trust", ada.trust
    yield "quarantine", ada.quarantine
    yield "files", ada.list_files
    yield "grep", partial(ada.grep_files, "tea")
    yield "export", partial(ada.export, user_id="ada")
    yield "check", ada.check
    yield "retention", ada.retention
    yield "branches", ada.branches
    yield "branch diff", partial(ada.branch_diff, "try")
    yield "fading", partial(ada.fading, below=1.0, limit=100)
    yield "pending", ada.pending
    yield "audited reads", ada.reads
    yield "prove history", ada.prove_history
    yield "interior", ada.interior
    yield "glob", partial(ada.glob_files, "**")
    yield "read file", partial(ada.read_file, "notes/tea.md")
    own = [one.id for one in ada.list(limit=1_000, include_retired=True)][::4]
    own += [node.id for node in ada.query("filter_type Entity").nodes][::2]
    for ident in own:
        yield f"read {ident}", partial(ada.read, ident)
        yield f"identity {ident}", partial(ada.identity, ident)
        yield f"prove {ident}", partial(ada.prove, ident)
        yield f"interior {ident}", partial(ada.interior, ident)
        for line in ("traverse same_as both", "traverse refers_to both 2", "traverse causes in"):
            yield f"{line} {ident}", partial(ada.query, f"seeds {ident} | {line}")


def pages(ada: Memory) -> Iterator[Any]:
    cursor = None
    while True:
        found = ada.list(limit=3, cursor=cursor)
        yield found
        cursor = found.next_cursor
        if cursor is None:
            return


def log_pages(ada: Memory) -> Iterator[Any]:
    cursor = None
    while True:
        found = ada.log(limit=3, cursor=cursor)
        yield found
        cursor = found.next_cursor
        if cursor is None:
            return


def calls_by_id(ada: Memory, ident: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the calls that take an id."""
    yield "read", partial(ada.read, ident)
    yield "read in Carl's", partial(ada.read, ident, user_id="carl")
    yield "interior", partial(ada.interior, ident)
    yield "amend", partial(ada.amend, ident, "x")
    yield "retire", partial(ada.retire, ident)
    yield "erase", partial(ada.erase, ident)
    yield "pin", partial(ada.pin, ident)
    yield "link", partial(ada.link, "causes", ident, ident)
    yield "unlink", partial(ada.unlink, ident)
    yield "decide", partial(ada.decide_merge, ident, "accept")
    yield "undo merge", partial(ada.undo_merge, ident)
    yield "split", partial(ada.split, ident, [ident])
    yield "identity", partial(ada.identity, ident)
    yield "seeds", partial(ada.query, f"seeds {ident}")
    yield "explain", partial(ada.explain, f"seeds {ident}")
    yield "in_world", partial(ada.query, f"text tea | in_world {ident}")
    yield "connected", partial(ada.query, f"text tea | where_connected refers_to out {ident}")
    yield "cursor", partial(ada.list, cursor=ident)
    yield "scope cursor", partial(ada.list_scopes, cursor=ident)
    yield "revoke", partial(ada.revoke, ident)
    yield "refuse", partial(ada.refuse, ident)
    yield "decide quarantined", partial(ada.decide_quarantined, ident, "reject")
    yield "release", partial(ada.decide_quarantined, ident, "release")
    yield "file version", partial(ada.read_file, "notes/tea.md", version=ident)


def writes(ada: Memory) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield writes of a caller; what they answer tells nothing of others."""
    yield "write", partial(ada.write, "Sarah Chen lives in Rome now.", at=START)
    yield "write again", partial(ada.write, OTHERS[-1], at=START)
    yield "key", partial(ada.write, "Cats purr.", idempotency_key="dogs")
    yield "foreign scope", partial(ada.write, "x", user_id="user 1")
    yield "no scope", partial(ada.write, "x", user_id="user 99")
    yield "foreign read", partial(ada.list, user_id="user 1")
    yield "foreign run", partial(ada.list, app_id="bank")
    yield "undo", partial(ada.undo, 3, dry_run=True)
    yield "consolidate", partial(ada.consolidate, dry_run=True)
    yield "purge", partial(ada.purge_scope, user_id="user 1", confirm=True)
    yield "retire all", partial(ada.retire_all, user_id="ada")


def told(ada: Memory, foreign: list[str]) -> dict[str, Any]:
    """Return everything that a caller is told."""
    found = {name: answer(call) for name, call in reads(ada)}
    for ident in foreign:
        for short in (ident, ident[:8]):
            for name, call in calls_by_id(ada, short):
                found[f"{name} {short}"] = answer(call)
    return found | {name: answer(call) for name, call in writes(ada)}


class AskedCalls:
    """A memory that keeps which of its calls were asked for."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.names = memory, set[str]()

    def __getattr__(self, name: str) -> Any:
        self.names.add(name)
        return getattr(self.memory, name)


BOUNDS: dict[str, dict[str, Any]] = {
    "ada": {"user_id": "ada"},
    "ada in the shop": {"user_id": "ada", "app_id": "shop"},
}


@pytest.mark.parametrize(
    ("seed", "held", "bounds"),
    [(1, True, "ada"), (2, False, "ada"), (3, True, "ada in the shop")],
    ids=["small", "large", "two kinds"],
)
def test_others_change_no_answer(seed: int, held: bool, bounds: str) -> None:
    with history(seed, held=held) as story:
        others = (story.nodes[0], story.nodes[-1], story.edges[0], story.edges[-1])
        foreign = [*others, str(worlddb.ScopeName("user", "user 1").id()), NOBODY]
        ada: Any = AskedCalls(story.memory.bound(**BOUNDS[bounds], actor="ada"))
        among = told(ada, foreign)
        assert [call.name for call in CALLS if call.reads and call.name not in ada.names] == []
        assert story.db.check() == []
    with history(None, held=held) as story:
        alone = told(story.memory.bound(**BOUNDS[bounds], actor="ada"), foreign)
    assert among.keys() == alone.keys()
    assert [name for name in alone if among[name] != alone[name]] == []
    asked = f"recall {QUESTIONS[0]}"
    assert alone[asked]["hits"]
    assert len(alone["log"]["commits"]) > 3
