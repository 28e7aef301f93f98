"""Erasing: the text is gone from every byte, and everything else still adds up."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from blake3 import blake3

import worlddb
from worlddb import Memory, WorldDB
from worlddb.model.address import (
    commit_hash,
    edge_address,
    edge_record,
    node_address,
    node_record,
    note_record,
    state_digest,
)
from worlddb.model.inputs import Limits, encode_metadata, to_micros

WORDS = ("xylophone", "zebulon", "kumquat", "persimmon", "user:ada", "quarz", "marzipan")


def _left(path: Path, words: Iterable[str] = WORDS) -> set[str]:
    """Return which words are somewhere in the files of a store, in any case."""
    data = b"".join(file.read_bytes() for file in path.parent.iterdir()).lower()
    return {word for word in words if word.encode() in data}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store" / "memory.db"


def _filled(path: Path) -> tuple[Memory, worlddb.Written]:
    memory = Memory(path, recluster="now")
    for number in range(60):
        memory.write(f"Ordinary memory {number} of Sarah Chen", user_id=f"u{number % 3}")
    done = memory.write(
        "My friend Zebulon Quartz keeps the xylophone",
        user_id="ada",
        agent_id="bot",
        metadata={"k": "persimmon"},
        idempotency_key="marzipan",
    )
    memory.db.recall("xylophone")
    return memory, done


def test_no_byte_of_an_erased_memory_is_left_and_the_store_is_sound(path: Path) -> None:
    memory, done = _filled(path)
    with memory.db.transaction() as tx:
        tx.add_source(done.id, "kumquat")
        summary = tx.create_node(type="Summary", content="Somebody has a xylophone")
        tx.write_edge("derived_from", summary.id, done.id, metadata={"why": "kumquat"})
    assert _left(path) >= {"xylophone", "kumquat", "persimmon"}
    receipt = memory.db.erase(done.id, actor="clerk")
    assert {done.id, summary.id} <= set(receipt.ids)
    assert receipt.cleaned
    assert receipt.commit is not None
    assert (receipt.commit.actor, receipt.root_state) == ("clerk", memory.db.root_state)
    assert _left(path, ("xylophone", "kumquat", "persimmon")) == set()
    node = memory.db.get(done.id)
    assert (node.erased, node.name, node.content, node.provenance) == (True, "", "", ())
    assert node.valid_to is not None
    assert node.metadata == {}
    assert worlddb.verify_proof(memory.db.prove(done.id), memory.db.root_state)
    assert memory.db.recall("xylophone").hits == ()
    assert memory.db.query().text("xylophone").include_superseded().execute().nodes == ()
    assert memory.db.check() == []
    memory.close()
    with worlddb.open(path) as db:
        assert db.check() == []
        assert len(db.recall("ordinary memory", k=5)) == 5


def test_a_scope_is_erased_with_all_inside_it_and_can_be_written_to_again(path: Path) -> None:
    memory, _ = _filled(path)
    later = memory.write("Zebulon Quarz plays the xylophone badly", user_id="ada")
    assert later.proposals
    receipt = memory.db.erase(worlddb.ScopeName("user", "ada").id())
    assert later.id in receipt.ids
    assert _left(path) == set()
    assert memory.db.check() == []
    assert [proposal.evidence for proposal in memory.db.proposals(status=None)] == [{}]
    assert len(memory.list(user_id="ada", include_retired=True)) == 0
    memory.write("new beginning", user_id="ada")
    assert [one.text for one in memory.list(user_id="ada")] == ["new beginning"]
    assert memory.db.check() == []
    memory.close()


def test_names_and_keys_that_came_with_a_text_alone_go_with_it(path: Path) -> None:
    memory, done = _filled(path)
    other = memory.write("Sarah Chen knows Zebulon Quartz", user_id="u1")
    memory.db.erase(done.id)
    assert _left(path, ("marzipan", "xylophone")) == set()
    assert "zebulon" in _left(path)  # Of another user, who said it.
    memory.erase(other.id)
    assert _left(path, ("zebulon",)) == set()
    assert [node.name for node in memory.db.query().filter_type("Entity").execute()] != []
    again = memory.write(
        "My friend Zebulon Quartz keeps the xylophone", user_id="ada", idempotency_key="marzipan"
    )
    assert again.created
    assert memory.db.check() == []
    memory.close()


def test_erasing_again_does_nothing_and_bad_ids_are_refused(path: Path) -> None:
    memory, done = _filled(path)
    memory.db.erase(done.id)
    again = memory.db.erase([done.id])
    assert (again.ids, again.commit) == ((), None)
    refused: list[object] = [[], "zz", memory.db.root_id]
    for bad in refused:
        with pytest.raises(worlddb.InvalidInputError):
            memory.db.erase(bad)  # type: ignore[arg-type]
    with pytest.raises(worlddb.NotFoundError):
        memory.db.erase("00" * 32)
    memory.close()


def test_what_was_erased_can_be_said_again_as_another_node(path: Path) -> None:
    fields = {"type": "Fact", "content": "xylophone", "created_at": "2020-01-01T00:00:00Z"}
    with worlddb.open(path) as db:
        with db.transaction() as tx:
            fact = tx.create_node(**fields)
        db.erase(fact.id)
        with db.transaction() as tx:
            again = tx.create_node(**fields)
        assert again.id != fact.id
        assert db.get(fact.id).erased
        assert db.check() == []


def test_nothing_is_said_of_a_node_that_was_erased(path: Path) -> None:
    with worlddb.open(path) as db:
        with db.transaction() as tx:
            fact = tx.create_node(type="Fact", content="kumquat")
            detail = tx.create_node(type="Fact", content="known", source="xylophone")
        db.erase(fact.id)
        says: list[Callable[[worlddb.Transaction], object]] = [
            lambda tx: tx.add_aliases(fact.id, ["xylophone"]),
            lambda tx: tx.add_source(fact.id, "xylophone"),
            lambda tx: tx.add_metadata(fact.id, {"a": "xylophone"}),
            lambda tx: tx.write_edge("derived_from", fact.id, detail.id),
        ]
        for say in says:
            with pytest.raises(worlddb.ConflictError, match="erased"), db.transaction() as tx:
                say(tx)
        node = db.get(fact.id)
        assert (node.aliases, node.provenance, node.metadata) == ((), (), {})
        assert db.check() == []


def test_a_world_can_be_changed_after_it_was_erased(path: Path) -> None:
    with worlddb.open(path) as db:
        with db.transaction() as tx:
            outer = tx.create_node(type="Topic", name="xylophone")
            inner = tx.create_node(type="Topic", name="kumquat", parent=outer.id)
        db.erase(outer.id)
        with db.transaction() as tx:
            leaf = tx.create_node(type="Fact", content="later", parent=inner.id)
            tx.write_edge("refers_to", leaf.id, outer.id)
        proof = db.prove(leaf.id)
        assert worlddb.verify_proof(proof, db.root_state)
        assert worlddb.verify_proof(json.loads(json.dumps(proof.to_dict())), db.root_state)
        forged = proof.to_dict()
        forged["steps"][0]["id"] = "11" * 32
        assert not worlddb.verify_proof(forged, db.root_state)
        assert db.check() == []
        assert _left(path) == set()


def test_an_export_after_an_erasure_is_played_again_to_the_same_root(
    path: Path, tmp_path: Path
) -> None:
    memory, done = _filled(path)
    memory.write("Zebulon Quarz plays the xylophone badly", user_id="ada")
    before = list(memory.db.export())
    memory.db.erase(done.id)
    memory.db.erase(worlddb.ScopeName("user", "ada").id())
    memory.write("later", user_id="ada")
    lines = list(memory.db.export())
    assert not any("xylophone" in line.lower() for line in lines)
    with worlddb.open(tmp_path / "new.db") as new:
        new.replay(lines)
        assert new.root_state == memory.db.root_state
        assert new.check() == []
        assert new.get(done.id).erased
    (tmp_path / "old").mkdir()
    with worlddb.open(tmp_path / "old" / "old.db") as old:
        old.replay(before)
        old.replay(lines)
        assert old.root_state == memory.db.root_state
        assert old.check() == []
        assert _left(tmp_path / "old" / "old.db") <= {"user:ada"}  # The new one.
    memory.close()


@pytest.mark.parametrize("what", ["node", "edge", "commit"])
def test_an_export_that_pretends_an_erasure_is_refused(
    path: Path, tmp_path: Path, what: str
) -> None:
    memory, _ = _filled(path)
    lines = []
    for line in memory.db.export():
        record = json.loads(line)
        if what in record and record.get("commit", 1) and record.get("parent", 1):
            record["erased"] = True
            if what == "commit":
                record["actor"] = "somebody else"
        lines.append(json.dumps(record))
    with worlddb.open(tmp_path / "new.db") as new:
        problems: object = None
        try:
            new.replay(lines)
            problems = new.check()
        except worlddb.CorruptionError as error:
            problems = error
        assert problems
    memory.close()


def test_check_finds_text_that_came_back_and_erasures_nobody_journaled(path: Path) -> None:
    memory, done = _filled(path)
    memory.db.erase(done.id)
    other = memory.list(user_id="u1")[0]
    memory.close()
    for sql in (
        f"UPDATE nodes SET content = 'back' WHERE id = x'{done.id}'",
        f"UPDATE nodes SET name='', content='', created_at=-9223372036854775808 "
        f"WHERE id = x'{other.id}'",
    ):
        copy = path.with_name("copy.db")
        copy.write_bytes(path.read_bytes())
        with worlddb.open(copy) as db:
            assert isinstance(db, WorldDB)
            db.engine.store._writer.execute(sql)  # type: ignore[attr-defined]
            assert db.check() != []
        for file in path.parent.glob("copy.db*"):
            file.unlink()


@pytest.mark.parametrize("seed", range(4))
def test_erasing_anything_at_random_leaves_a_sound_store(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    with worlddb.open(tmp_path / "a.db", embedder="none") as db:
        ids: list[worlddb.Id] = []
        for step in range(60):
            with db.transaction() as tx:
                parent = rng.choice(ids) if ids and rng.random() < 0.5 else None
                node = tx.create_node(
                    type=rng.choice(("Fact", "Topic", "Entity")),
                    name=f"name {step}",
                    content=f"content {step}",
                    parent=parent,
                    aliases=[f"alias {step}"] if rng.random() < 0.3 else (),
                )
                for _ in range(rng.randrange(3)):
                    if ids:
                        kind = rng.choice(("refers_to", "same_as", "contradicts", "supersedes"))
                        with contextlib.suppress(worlddb.InvalidInputError):
                            tx.write_edge(kind, node.id, rng.choice(ids), metadata={"n": step})
                ids.append(node.id)
            if step % 15 == 14:
                db.erase(rng.sample(ids, 2))
                assert db.check() == []
        lines = list(db.export())
        root = db.root_state
        for ident in ids:
            assert worlddb.verify_proof(db.prove(ident), root)
    with worlddb.open(tmp_path / "b.db", embedder="none") as copy:
        copy.replay(lines)
        assert (copy.root_state, copy.check()) == (root, [])


def test_a_store_behind_a_link_is_cleaned_as_well(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "there" / "real.db")
    with worlddb.open(link, embedder="none") as db:
        with db.transaction() as tx:
            secret = tx.create_node(type="Memory", content="the secret word").id
        assert db.erase(secret).cleaned
    assert b"the secret word" not in (tmp_path / "there" / "real.db").read_bytes()


def test_what_was_erased_cannot_be_guessed_from_what_stays(path: Path) -> None:
    """A guess is right if the hashes that stay follow from it: of nodes, of edges, of commits."""
    pin, at = "My PIN is 4831.", "2026-01-01T00:00:00Z"
    with worlddb.open(path) as db:
        with db.transaction() as tx:
            bank = tx.create_node(type="Entity", name="bank").id
        with db.transaction() as tx:
            memory = tx.create_node(type="Memory", content=pin, created_at=at).id
            edge = tx.write_edge("refers_to", memory, bank, metadata={"said": pin})
            tx.add_metadata(memory, {"said": pin})
        said, micros = encode_metadata({"said": pin}, Limits()), to_micros(at, "at")
        lines = [json.loads(line) for line in db.export()]
        nodes = {
            line["node"]: bytes.fromhex(line.get("blind", "")) for line in lines if "node" in line
        }
        blinds = [nodes[str(ident)] for ident in (memory, bank)]
        commit = next(line for line in lines if line.get("commit") == 2)
        secrets = [blinds[0], bytes.fromhex(commit["blind"])]

        def node_of(blind: bytes) -> bytes:
            return node_address("Memory", b"", pin.encode(), micros, blind=blind)

        def edge_of(blind: bytes) -> bytes:
            return edge_address("refers_to", memory, bank, micros, said.encode(), 0, blind)

        def commit_of(blind: bytes) -> bytes:
            digests = {
                "nodes": blake3(node_record(memory, db.root_id, micros, None)).digest(),
                "edges": blake3(edge_record(edge.id, None)).digest(),
                "notes": blake3(note_record(memory, "metadata", said)).digest(),
                "states": state_digest([(db.root_id, db.log()[2].root_state)]),
            }
            made = db.log()[2]
            times = 2, to_micros(made.time, "time")
            return commit_hash(
                made.previous, *times, made.actor, made.root_state, digests, "[]", blind
            )

        # With the blinds the formulas are right. The erasure takes the blinds away.
        assert node_of(secrets[0]) == memory
        assert edge_of(blinds[0] + blinds[1]) == edge.id
        assert commit_of(secrets[1]) == db.log()[2].hash
        db.erase(memory)
        assert all(
            line.get("blind") not in [it.hex() for it in secrets]
            for line in map(json.loads, db.export())
        )
        for known in (b"", blinds[1], secrets[1][:0]):
            assert node_of(known) != memory
            assert edge_of(known) != edge.id
            assert commit_of(known) != db.log()[2].hash
        assert db.check() == []
        copy = list(db.export())
    data = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert not [secret for secret in secrets if secret in data]
    with worlddb.open(":memory:") as again:
        again.replay(copy)
        assert list(again.export()) == copy
        assert again.check() == []
