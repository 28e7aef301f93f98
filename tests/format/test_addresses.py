"""Golden addresses: the frozen layout, said three times.

`golden.json` pins inputs and results; the functions below compute them again from the documented
layout with blake3 alone; and `worlddb.model` has to agree with both. A golden value never changes:
a new layout gets a new domain tag and further values beside these.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

import worlddb
from worlddb import AsOf
from worlddb.model import address
from worlddb.model import address as digest
from worlddb.model.inputs import Limits, encode_metadata

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parent / "golden.json").read_text(encoding="utf-8")
)
AT = "2026-01-31T09:30:00+00:00"
BEFORE_1970 = "1969-07-20T20:17:40.123456+00:00"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INTERIOR = ("children", "edges")


# -- the layout again, from its description --------------------------------------------------------


def b3(*parts: bytes) -> bytes:
    return blake3(b"".join(parts)).digest()


def field(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def integer(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


def set_of(members: Iterable[bytes], depth: int = 0) -> bytes:
    ordered = sorted(set(members))
    if len(ordered) <= 64:
        width = len(ordered[0]) if ordered else 0
        return b3(field(b"worlddb.bucket.1"), width.to_bytes(4, "big"), *ordered)
    parts = (
        set_of((member for member in ordered if member.hex()[depth] == nibble), depth + 1)
        for nibble in "0123456789abcdef"
    )
    return b3(field(b"worlddb.fork.1"), *parts)


NOTHING = set_of(())


def node(
    type_: str,
    name: str,
    content: str,
    created_at: int,
    children: bytes = NOTHING,
    edges: bytes = NOTHING,
    blind: bytes = b"",
) -> bytes:
    return b3(
        field(b"worlddb.node.2" if blind else b"worlddb.node.1"),
        field(type_.encode()),
        field(name.encode()),
        field(content.encode()),
        field(children),
        field(edges),
        field(integer(created_at)),
        field(blind) if blind else b"",
    )


def edge(
    type_: str,
    source: bytes,
    target: bytes,
    valid_from: int,
    metadata: str,
    generation: int,
    blind: bytes = b"",
) -> bytes:
    blind = b"" if metadata == "{}" else blind
    return b3(
        field(b"worlddb.edge.2" if blind else b"worlddb.edge.1"),
        field(type_.encode()),
        field(source),
        field(target),
        field(integer(valid_from)),
        field(metadata.encode()),
        field(integer(generation)),
        field(blind) if blind else b"",
    )


def commit(
    previous: bytes,
    seq: int,
    time: int,
    actor: str,
    root_state: bytes,
    digests: Iterable[bytes],
    changes: str,
    blind: bytes = b"",
) -> bytes:
    return b3(
        field(b"worlddb.commit.2" if blind else b"worlddb.commit.1"),
        field(previous),
        field(integer(seq)),
        field(integer(time)),
        field(actor.encode()),
        field(root_state),
        *map(field, digests),
        field(changes.encode()),
        field(blind) if blind else b"",
    )


def members_of(case: dict[str, Any]) -> list[bytes]:
    """Return a golden set's members, written out or by the recipe that `golden.json` states."""
    if "members" in case:
        return [bytes.fromhex(text) for text in case["members"]]
    return [
        b"".join(
            b3(number.to_bytes(8, "big"), bytes((part,))) for part in range(case["width"] // 32)
        )
        for number in range(case["count"])
    ]


# -- golden == layout == code ----------------------------------------------------------------------


@pytest.mark.parametrize("case", GOLDEN["nodes"], ids=lambda case: case["title"])
def test_a_node_has_its_golden_address(case: dict[str, Any]) -> None:
    interior = [None if case[key] is None else bytes.fromhex(case[key]) for key in INTERIOR]
    fields = case["type"], case["name"], case["content"], case["created_at"]
    blind = bytes.fromhex(case.get("blind", ""))
    children, edges = interior
    again = node(*fields, children or NOTHING, edges or NOTHING, blind)
    encoded = (fields[0], fields[1].encode(), fields[2].encode(), fields[3])
    assert again.hex() == case["address"]
    assert address.node_address(*encoded, children, edges, blind).hex() == case["address"]


@pytest.mark.parametrize("case", GOLDEN["edges"], ids=lambda case: case["title"])
def test_an_edge_has_its_golden_address(case: dict[str, Any]) -> None:
    ends = bytes.fromhex(case["source"]), bytes.fromhex(case["target"])
    text = encode_metadata(case["metadata"], Limits())
    assert text == case["metadata_text"]
    rest = case["valid_from"], case["metadata_text"], case["generation"]
    blind = bytes.fromhex(case.get("blind", ""))
    assert edge(case["type"], *ends, *rest, blind).hex() == case["address"]
    found = address.edge_address(case["type"], *ends, rest[0], rest[1].encode(), rest[2], blind)
    assert found.hex() == case["address"]


@pytest.mark.parametrize("case", GOLDEN["sets"], ids=lambda case: case["title"])
def test_a_set_has_its_golden_digest(case: dict[str, Any]) -> None:
    members = members_of(case)
    assert set_of(members).hex() == case["digest"]
    assert digest.set_digest(sorted(members)).hex() == case["digest"]


def test_the_empty_set_a_bucket_and_a_fork_are_told_apart() -> None:
    golden = {case["title"]: case["digest"] for case in GOLDEN["sets"]}
    assert digest.EMPTY.hex() == golden["empty"] == NOTHING.hex()
    assert len(set(golden.values())) == len(golden)
    parts = [bytes.fromhex(text) for text in GOLDEN["fork"]["parts"]]
    assert b3(field(b"worlddb.fork.1"), *parts).hex() == GOLDEN["fork"]["digest"]
    assert digest.fork_digest(parts).hex() == GOLDEN["fork"]["digest"]


@pytest.mark.parametrize("case", GOLDEN["commits"], ids=lambda case: case["title"])
def test_a_commit_has_its_golden_hash(case: dict[str, Any]) -> None:
    digests = {key: bytes.fromhex(text) for key, text in case["digests"].items()}
    fields = case["seq"], case["time"], case["actor"], bytes.fromhex(case["root_state"])
    before = bytes.fromhex(case["previous"])
    ordered = [digests[key] for key in ("nodes", "edges", "notes", "states")]
    rest = case["changes"], bytes.fromhex(case.get("blind", ""))
    assert commit(before, *fields, ordered, *rest).hex() == case["hash"]
    assert address.commit_hash(before, *fields, digests, *rest).hex() == case["hash"]


def test_the_root_world_and_the_first_commit_are_the_same_in_every_store() -> None:
    root = node("World", "root", "", 0)
    nothing = b3()
    born = b3(root, bytes(32), integer(0), b"\0")
    first = commit(bytes(32), 0, 0, "worlddb", root, (born, nothing, nothing, nothing), "[]")
    assert root.hex() == GOLDEN["root_id"]
    assert first.hex() == GOLDEN["genesis"]
    with worlddb.open(":memory:") as db:
        assert str(db.root_id) == str(db.root_state) == GOLDEN["root_id"]
        assert [str(item.hash) for item in db.log()] == [GOLDEN["genesis"]]


# -- what the store computes is the layout over what it shows --------------------------------------


def test_every_state_in_a_store_follows_from_the_layout(tmp_path: Path) -> None:
    with worlddb.open(tmp_path / "a.db", durability="normal") as db:
        with db.transaction() as tx:
            wide = tx.create_node(type="Topic", name="wide", content="ünï🙂", created_at=AT)
            deep = tx.create_node(type="Topic", name="deep", created_at=AT, parent=wide.id)
            leaf = tx.create_node(type="Fact", name="leaf", created_at=BEFORE_1970, parent=deep.id)
            for number in range(150):
                new = tx.create_node(type="Fact", name=f"n{number}", created_at=AT, parent=wide.id)
                tx.write_edge("refers_to", new.id, leaf.id, metadata={"n": number})
            gone = tx.write_edge("implies", leaf.id, deep.id)
        with db.transaction() as tx:
            tx.delete_edge(gone.id)
            tx.write_edge("implies", leaf.id, deep.id)
        blinds = blinds_of(db)
        assert len(set(blinds.values())) == len(db.query().execute()) == len(blinds)
        assert state_of(db, db.root_id, blinds) == db.root_state
        assert state_of(db, wide.id, blinds) == db.get(wide.id).state
        assert state_of(db, leaf.id, blinds) == leaf.id


def blinds_of(db: worlddb.WorldDB) -> dict[bytes, bytes]:
    """Return the blinds of nodes, which only an export tells."""
    lines = [json.loads(line) for line in db.export()]
    return {
        bytes.fromhex(line["node"]): bytes.fromhex(line["blind"])
        for line in lines
        if "node" in line and "blind" in line
    }


def state_of(db: worlddb.WorldDB, ident: bytes, blinds: dict[bytes, bytes]) -> bytes:
    """Return a world's state, computed from public reads and blinds alone."""
    world = db.get(ident)
    children = db.children(ident, include_superseded=True)
    edges = [edge.id for child in children for edge in db.edges(child.id, include_superseded=True)]
    if ident == db.root_id:
        edges += [edge.id for edge in db.edges(ident, include_superseded=True)]
    return node(
        world.type,
        world.name,
        world.content,
        micros(world.created_at),
        set_of(child.id + state_of(db, child.id, blinds) for child in children),
        set_of(edges),
        blinds.get(ident, b""),
    )


def micros(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


def test_every_commit_of_a_kept_store_follows_from_the_layout(tmp_path: Path) -> None:
    shutil.copyfile(Path(__file__).parent / "v1.db", tmp_path / "v1.db")
    with worlddb.open(tmp_path / "v1.db", create=False) as db:
        lines = [json.loads(line) for line in db.export()]
        lines = [line for line in lines if not line.keys() & {"worlddb", "end"}]
        commits = {item.seq: item for item in db.log()}
        known: list[bytes] = []
        states: dict[bytes, bytes] = {}
        previous = bytes(32)
        while lines:
            head = lines.pop(0)
            nodes, edges, notes = (
                [lines.pop(0) for _ in range(head[kind])] for kind in ("nodes", "edges", "notes")
            )
            known += [bytes.fromhex(item["node"]) for item in nodes]
            then = AsOf(known=commits[head["commit"]].time)
            now = {ident: bytes(db.get(ident, as_of=then).state) for ident in known}
            changed = {
                ident: state for ident, state in now.items() if state != states.get(ident, ident)
            }
            states = now
            digests = (
                b3(*map(node_record, nodes)),
                b3(*(bytes.fromhex(item["edge"]) + maybe(item["valid_to"]) for item in edges)),
                b3(*map(note_record, notes)),
                b3(*(ident + changed[ident] for ident in sorted(changed))),
            )
            changes = json.dumps(
                head["changes"], sort_keys=True, separators=(",", ":"), ensure_ascii=False
            )
            fields = head["commit"], head["time"], head["actor"], states[db.root_id]
            previous = commit(previous, *fields, digests, changes)
            assert previous.hex() == head["hash"]
            assert states[db.root_id].hex() == head["root_state"]


def maybe(number: int | None) -> bytes:
    return b"\0" if number is None else b"\1" + integer(number)


def node_record(line: dict[str, Any]) -> bytes:
    parent = bytes(32) if line["parent"] is None else bytes.fromhex(line["parent"])
    times = integer(line["valid_from"]) + maybe(line["valid_to"])
    return bytes.fromhex(line["node"]) + parent + times


def note_record(line: dict[str, Any]) -> bytes:
    texts = field(line["kind"].encode()) + field(line["text"].encode())
    return bytes.fromhex(line["note"]) + texts
