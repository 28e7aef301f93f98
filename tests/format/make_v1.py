"""Make `v1.db`: a small store of format 1 that has something of everything.

    python tests/format/make_v1.py

It writes the file, and what is expected of it under "v1" in `golden.json`. It is run for the last
time when format 1 is frozen; from then on the file is kept so that later versions are held to
opening it. Same code, same clock, same times: running it again gives the same journal.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import worlddb
from worlddb import Edge, Query, WorldDB, WriteContext

START = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z


class Likes:
    """A custom type: whoever is liked gets a note about it, written by the handler."""

    type = "likes"
    pierces = False
    version = "7"

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Write a node and a further edge through the context."""
        note = ctx.create_node(type="Memory", name="a like", content=str(edge.metadata["why"]))
        ctx.write_edge("refers_to", note.id, edge.target)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """End what was liked."""
        ctx.close_validity(edge.target, at=edge.valid_from)

    def on_query_rewrite(self, query: Query) -> Query:
        """Read as it stands."""
        return query


def at(day: int) -> str:
    """Return a day of January 2025 as text."""
    return f"2025-01-{day:02d}T12:00:00+00:00"


def build(path: Path) -> None:
    """Write the store to a path where no file is yet."""
    # A clock that stands still: commits are a microsecond apart, however often it is read.
    # All blinds are equal (format 1 had none): running the script again gives the same journal.
    with worlddb.open(
        path, clock=lambda: START, random_bytes=lambda size: b"\1" * size, durability="normal"
    ) as db:
        _worlds(db)
        _facts(db)
        _identity(db)
        _custom(db)
        _moves_and_ends(db)


def _worlds(db: WorldDB) -> None:
    with db.transaction(actor="Zoë 🙂") as tx:
        tesla = tx.create_node(
            type="Topic",
            name="Tesla",
            content="An electric car maker.",
            created_at=at(1),
            source=["chat 1", "https://example.org/ü"],
            aliases=["TSLA", "テスラ"],
        )
        people = tx.create_node(type="Topic", name="people", created_at=at(1))
        for name in ("Zoë", "Zoe\u0308", "👩‍👩‍👧‍👦", "Sarah", "sarah"):
            tx.create_node(type="Entity", name=name, created_at=at(2), parent=people.id)
        tx.create_node(type="Event", name="Moon", created_at="1969-07-20T20:17:40.123456+00:00")
        # Enough children for a fork on disk, and for two levels of the digest.
        for number in range(140):
            tx.create_node(type="Turn", name=f"t{number}", created_at=at(3), parent=tesla.id)


def _facts(db: WorldDB) -> None:
    tesla = named(db, "Tesla")
    with db.transaction(actor="facts") as tx:
        made = {
            name: tx.create_node(
                type="Fact", name=name, content=f"fact {name}", created_at=at(day), parent=tesla
            ).id
            for day, name in enumerate("abcdefgh", 4)
        }
        animal = tx.create_node(type="Topic", name="Animal", created_at=at(1)).id
        dog = tx.create_node(type="Topic", name="Dog", created_at=at(1)).id
        summary = tx.create_node(
            type="Summary", name="sum", content="a and b", created_at=at(20)
        ).id
        tx.write_edge("supersedes", made["b"], made["a"])
        tx.write_edge("contradicts", made["c"], made["d"], metadata={"reason": "not both, ü"})
        settled = tx.write_edge("contradicts", made["e"], made["f"])
        tx.write_edge("implies", made["a"], made["b"])
        tx.write_edge("derived_from", summary, made["a"])
        tx.write_edge("derived_from", summary, made["b"], valid_to=at(28))
        tx.write_edge("instance_of", made["g"], dog)
        tx.write_edge("subtype_of", dog, animal)
        one = tx.write_edge("causes", made["a"], made["c"])
        two = tx.write_edge("causes", made["c"], made["e"])
        premises = {"inferred": True, "premises": [str(one.id), str(two.id)]}
        tx.write_edge("causes", made["a"], made["e"], metadata=premises)
        tx.write_edge("precedes", made["a"], made["h"], valid_from=at(12))
        tx.write_edge(
            "refers_to", made["g"], named(db, "Sarah"), metadata={"n": 1, "m": [None, 0.5]}
        )
    with db.transaction(actor="facts") as tx:
        tx.delete_edge(settled.id)
        tx.delete_edge(one.id)  # The inferred edge falls with it.
        tx.write_edge("causes", made["a"], made["c"])  # Said again: a second generation.


def _identity(db: WorldDB) -> None:
    ids = [child.id for child in db.children(named(db, "people"))]
    with db.transaction(actor="resolver") as tx:
        merged = tx.write_edge("same_as", ids[0], ids[1], metadata={"tier": "exact", "score": 1})
        refused = tx.write_edge(
            "same_as", ids[0], ids[2], metadata={"tier": "fuzzy", "score": 0.93}
        )
        undone = tx.write_edge("same_as", ids[3], ids[4], metadata={"score": 0.5, "why": "case"})
        dropped = tx.write_edge("same_as", ids[2], ids[4])
        tx.write_edge("same_as", ids[1], ids[3], metadata={"tier": "phonetic", "score": 0.25})
    db.accept_merge(merged.id, actor="reviewer")
    db.reject_merge(refused.id, actor="reviewer")
    db.accept_merge(undone.id, actor="reviewer")
    db.undo_merge(undone.id, actor="reviewer")
    with db.transaction(actor="resolver") as tx:
        tx.delete_edge(dropped.id)


def _custom(db: WorldDB) -> None:
    people = named(db, "people")
    db.ontology(people).register(Likes(), functional=True, actor="admin")
    ids = [child.id for child in db.children(people)]
    with db.transaction(actor="fans") as tx:
        tx.write_edge("likes", ids[0], ids[3], metadata={"why": "kind, and ✓"})
        left = tx.write_edge("likes", ids[1], ids[4], metadata={"why": "no reason"})
    with db.transaction(actor="fans") as tx:
        tx.delete_edge(left.id)


def _moves_and_ends(db: WorldDB) -> None:
    people, tesla, moon = named(db, "people"), named(db, "Tesla"), named(db, "Moon")
    with db.transaction(actor="mover") as tx:
        lives = tx.write_edge("contains", tesla, moon)
        tx.write_edge("contains", people, moon)  # Lives in one world, is a member of the other.
        loose = tx.create_node(type="Scope", name="loose", created_at=at(9)).id
        tx.write_edge("contains", people, loose)
    with db.transaction(actor="mover") as tx:
        tx.delete_edge(lives.id)
    with db.transaction(actor="mover") as tx:
        tx.retire(loose, at=at(25))
        tx.add_aliases(loose, ["lose"])
        tx.create_node(type="Scope", name="loose", created_at=at(9), source="seen again")
    with db.transaction(actor="mover") as tx:
        tx.retire(loose, at=at(24))


def named(db: WorldDB, name: str) -> worlddb.Id:
    """Return the first node with exactly this name."""
    found = db.query().text(name).include_superseded().execute()
    return next(node.id for node in found if node.name == name)


def expected(path: Path) -> dict[str, Any]:
    """Return what later versions have to find in the file."""
    with worlddb.open(path, create=False) as db:
        lines = [json.loads(line) for line in db.export()]
        commits = db.log()
        return {
            "root_state": str(db.root_state),
            "commits": [str(commit.hash) for commit in commits],
            "nodes": len(db.query().include_superseded().execute()),
            "edge_types": sorted({line["type"] for line in lines if "edge" in line}),
            "change_kinds": sorted({item.kind for commit in commits for item in commit.changes}),
        }


def write() -> None:
    """Write the file and what is expected of it."""
    path, golden = Path(__file__).with_name("v1.db"), Path(__file__).with_name("golden.json")
    path.unlink(missing_ok=True)
    build(path)
    data = json.loads(golden.read_text(encoding="utf-8"))
    data["v1"] = expected(path)
    golden.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
