"""Proofs, checked by a stranger: a verifier of its own that knows blake3 and the layout alone.

It stands here in full so that anyone can carry it to another language. The package's own
`verify_proof` has to agree with it on every real proof and on every tampered one.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import worlddb
from thinning import examples
from worlddb import NodeDraft, WorldDB, verify_proof

AT = "2026-01-31T09:30:00+00:00"


# -- the stand-alone verifier ----------------------------------------------------------------------


def stranger(proof: Any, root_state: str) -> bool:
    """Return whether `proof`, as JSON data, shows its node under `root_state`."""

    def b3(*parts: bytes) -> bytes:
        return blake3(b"".join(parts)).digest()

    def field(data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + data

    def unhex(text: str, size: int) -> bytes:
        data = bytes.fromhex(text)
        if len(data) != size:
            raise ValueError(f"{size} bytes expected")
        return data

    def address(step: Any, children: bytes, edges: bytes) -> bytes:
        texts = [field(step[key].encode()) for key in ("type", "name", "content")]
        created = step["created_at"].to_bytes(8, "big", signed=True)
        rest = field(children) + field(edges) + field(created)
        if step.get("blind", "") != "":
            return b3(field(b"worlddb.node.2"), *texts, rest, field(unhex(step["blind"], 16)))
        return b3(field(b"worlddb.node.1"), *texts, rest)

    nothing = b3(field(b"worlddb.bucket.1"), bytes(4))
    root = {"type": "World", "name": "root", "content": "", "created_at": 0}
    try:
        ident, state = unhex(proof["id"], 32), unhex(proof["state"], 32)
        for step in proof["steps"]:
            bucket = [unhex(member, 64) for member in step["bucket"]]
            if ident + state not in bucket or len(bucket) > 64 or bucket != sorted(set(bucket)):
                return False
            digest = b3(field(b"worlddb.bucket.1"), (64).to_bytes(4, "big"), *bucket)
            for depth, fork in zip(range(len(step["forks"]))[::-1], step["forks"], strict=True):
                parts = [unhex(part, 32) for part in fork]
                if len(parts) != 16 or parts[int(ident.hex()[depth], 16)] != digest:
                    return False
                digest = b3(field(b"worlddb.fork.1"), *parts)
            ident = unhex(step["id"], 32)
            if ident != address(step, nothing, nothing):
                return False
            state = address(step, digest, unhex(step["edges"], 32))
        return state.hex() == root_state and ident == address(root, nothing, nothing)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return False


def both(proof: Any, root_state: Any) -> bool:
    """Return what the two verifiers say; they must say the same, and never raise."""
    answers = stranger(proof, str(root_state)), verify_proof(proof, root_state)
    assert answers[0] == answers[1], f"stranger and verify_proof differ: {answers}"
    return answers[0]


# -- a store with every shape of step --------------------------------------------------------------


@pytest.fixture(scope="module")
def db() -> Iterator[WorldDB]:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            small = tx.create_node(type="Topic", name="small", content="ünï🙂", created_at=AT)
            inner = tx.create_node(type="Topic", name="inner", created_at=AT, parent=small.id)
            one = tx.create_node(type="Fact", name="one", created_at=AT, parent=inner.id)
            two = tx.create_node(type="Fact", name="two", created_at=AT, parent=inner.id)
            tx.create_node(type="Fact", name="three", created_at=AT, parent=inner.id)
            tx.write_edge("refers_to", one.id, two.id)
            wide = tx.create_node(type="Topic", name="wide", created_at="1960-01-01T00:00:00Z")
            tx.create_nodes(
                NodeDraft(type="Fact", name=f"n{number}", created_at=AT, parent=wide.id)
                for number in range(400)
            )
        yield db


def named(db: WorldDB, name: str) -> worlddb.Id:
    return next(node.id for node in db.query().text(name).execute() if node.name == name)


def proof_of(db: WorldDB, name: str) -> Any:
    """Return a proof as it comes out of a JSON file."""
    return json.loads(json.dumps(db.prove(named(db, name)).to_dict()))


def test_every_real_proof_is_accepted_by_a_stranger(db: WorldDB) -> None:
    nodes = db.query().execute().nodes
    assert len(nodes) == 406
    for node in nodes:
        assert both(json.loads(json.dumps(db.prove(node.id).to_dict())), str(db.root_state))


def test_the_root_world_has_a_proof_of_no_steps(db: WorldDB) -> None:
    proof = db.prove(db.root_id).to_dict()
    assert proof["steps"] == ()
    assert both(proof, str(db.root_state))


def test_a_proof_shows_its_node_under_no_other_root(db: WorldDB) -> None:
    proof = proof_of(db, "one")
    for other in ("00" * 32, str(db.root_id), proof["state"], ""):
        assert not both(proof, other)


def test_a_proof_of_an_earlier_state_does_not_hold_later() -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            node = tx.create_node(type="Fact", name="a")
        proof, then = db.prove(node.id).to_dict(), db.root_state
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="b")
        assert both(proof, str(then))
        assert not both(proof, str(db.root_state))


# -- tampering -------------------------------------------------------------------------------------


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in JSON data, containers too."""
    if path:
        yield path
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield from places_in(item, (*path, key))


def tampered(draw: st.DrawFn, value: Any) -> Any:
    """Return another value of the same or of a wrong kind."""
    wrong: list[Any] = [None, 0, -1, 1.5, True, "", "zz", [], {}, [None], 2**70, "\ud800"]
    if isinstance(value, str) and value:
        index = draw(st.integers(0, len(value) - 1))
        digit = draw(st.sampled_from("0123456789abcdef"))
        wrong += [value[:index] + digit + value[index + 1 :]] * 12
        wrong += [value[:-1], value[2:], value + "00", value[1:] + value[:1], value * 2]
    elif isinstance(value, int):
        wrong += [value + 1, value - 1, -value, value ^ 1 << draw(st.integers(0, 62))] * 3
    elif isinstance(value, list) and value:
        i, j = (draw(st.integers(0, len(value) - 1)) for _ in range(2))
        swapped = list(value)
        swapped[i], swapped[j] = swapped[j], swapped[i]
        shorter, longer = value[:i] + value[i + 1 :], [*value, value[i]]
        wrong += [shorter, longer, swapped, value[::-1], [*value[:i], value[i], *value[i:]]] * 3
    elif value == []:
        wrong = [item for item in wrong if item not in ("", [], {})]  # As empty as it was.
    return draw(st.sampled_from(wrong))


@pytest.fixture(scope="module", params=["one", "inner", "n17", "wide"])
def real(db: WorldDB, request: pytest.FixtureRequest) -> tuple[Any, list[tuple[Any, ...]], str]:
    """Return a proof, the places in it that can be changed, and the root state."""
    proof = proof_of(db, request.param)
    return proof, list(places_in(proof)), str(db.root_state)


@settings(
    max_examples=examples(250, 80),
    deadline=None,
    derandomize=True,
    database=None,
)
@given(data=st.data())
def test_no_field_of_a_proof_can_be_changed(
    real: tuple[Any, list[tuple[Any, ...]], str], data: st.DataObject
) -> None:
    proof, places, root_state = real
    path = data.draw(st.sampled_from(places))
    changed = copy.deepcopy(proof)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = data.draw(st.composite(tampered)(holder[path[-1]]))
    assume(changed != proof)
    assert not both(changed, root_state)


@pytest.mark.parametrize("key", ["id", "type", "name", "content", "created_at", "edges"])
@pytest.mark.parametrize("wrong", [None, "", "5", 5.0, 2**70, -(2**70), [], {}, b"", "\ud800"])
def test_a_field_of_the_wrong_kind_is_refused_without_an_error(
    db: WorldDB, key: str, wrong: Any
) -> None:
    proof = proof_of(db, "one")
    for step in proof["steps"]:
        if step[key] != wrong:
            step[key] = wrong
    assert not both(proof, str(db.root_state))


@pytest.mark.parametrize("name", ["one", "n17"])
def test_no_field_of_a_proof_can_be_left_out(db: WorldDB, name: str) -> None:
    proof = proof_of(db, name)
    for path in list(places_in(proof)):
        changed = copy.deepcopy(proof)
        holder = changed
        for key in path[:-1]:
            holder = holder[key]
        del holder[path[-1]]
        assert not both(changed, str(db.root_state)), path


@pytest.mark.parametrize("bad", [None, 5, "text", b"bytes", [], {}, {"id": 1}, ("a",)])
def test_what_is_no_proof_at_all_is_refused_without_an_error(db: WorldDB, bad: Any) -> None:
    assert not both(bad, str(db.root_state))


@pytest.mark.parametrize("root", [None, 5, "zz", "", b"", [], "00"])
def test_a_root_that_is_no_root_is_refused_without_an_error(db: WorldDB, root: Any) -> None:
    assert not verify_proof(proof_of(db, "one"), root)


# -- forgeries: proofs whose every hash is right, and which still show nothing ---------------------


def test_a_proof_without_steps_shows_the_root_alone(db: WorldDB) -> None:
    """Without this, whoever knows the root state could show any id under it."""
    forged = {"id": "ab" * 32, "state": str(db.root_state), "steps": []}
    assert not both(forged, str(db.root_state))


def test_a_bucket_cannot_be_cut_into_other_members(db: WorldDB) -> None:
    """The bytes of three leaves, cut elsewhere, would show one with another's id as its state."""
    proof = proof_of(db, "one")
    step = proof["steps"][0]
    first, second, third = step["bucket"]
    cut = [first, second[:64], second[64:] + third[:64], third[64:]]
    step["bucket"] = cut
    assert "".join(cut) == first + second + third
    assert cut == sorted(cut)
    forged = {**proof, "id": second[64:], "state": third[:64]}
    assert not both(forged, str(db.root_state))


def test_a_fork_cannot_be_cut_into_other_parts(db: WorldDB) -> None:
    proof = proof_of(db, "n17")
    fork = proof["steps"][0]["forks"][-1]
    nibble = int(proof["id"][0], 16)
    one = (nibble + 1) % 15 if nibble != 14 else 3
    assert nibble not in (one, one + 1)
    fork[one], fork[one + 1] = fork[one] + fork[one + 1], ""
    assert not both(proof, str(db.root_state))


def test_a_node_is_not_shown_through_a_world_it_does_not_live_in(db: WorldDB) -> None:
    ours, other = proof_of(db, "one"), proof_of(db, "n17")
    mixed = {"id": ours["id"], "state": ours["state"], "steps": other["steps"]}
    assert not both(mixed, str(db.root_state))
    shorter = {**ours, "steps": ours["steps"][1:]}
    assert not both(shorter, str(db.root_state))
    longer = {**ours, "steps": [*ours["steps"], ours["steps"][-1]]}
    assert not both(longer, str(db.root_state))
