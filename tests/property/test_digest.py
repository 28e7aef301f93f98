"""The set digest: equal sets have equal digests and equal pages, however they came about.

Held at three heights: the definition (`model/address.py`), the pages of a real store
(`index/set_pages.py`), and whole worlds through the public API.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

import worlddb
from thinning import examples, some
from worlddb import EdgeDraft, Id, NodeDraft, Proof, WorldDB, verify_proof
from worlddb.index.set_pages import (
    NIBBLES,
    SORT_WITH_NUMPY_MIN,
    WIDTH,
    digest_and_pages,
    digest_of,
    leaf_and_forks,
    members_of,
    parts_of,
    sort_members,
)
from worlddb.model.address import BUCKET_MAX, EMPTY, fork_digest, nibble, set_digest, split
from worlddb.store.interface import StoreOptions, Writer
from worlddb.store.rows import CHILDREN, EDGES
from worlddb.store.sqlite.sqlite_store import SqliteStore
from worlddb.write.commit import update_set

from .naive import at, naive_digest, naive_node_address
from .player import BASE

WORLD = 7
SETTINGS = settings(derandomize=True, deadline=None, database=None, max_examples=examples(60, 20))


def address(i: int, prefix: str = "") -> bytes:
    """Return an address that is spread evenly, after the given hex prefix."""
    tail = blake3(i.to_bytes(8, "big")).hexdigest()
    return bytes.fromhex((prefix + tail)[:64])


def children(addresses: Iterable[bytes], salt: int = 0) -> list[bytes]:
    """Return `id ‖ state` members."""
    return [ident + blake3(ident + bytes([salt])).digest() for ident in addresses]


prefixes = st.sampled_from(("", "0", "f", "00ff", "ab" * 8, "a" * 31, "c" * 40, "e" * 62, "7" * 61))
addresses = st.builds(address, st.integers(0, 400), prefixes)
address_sets = st.sets(addresses, max_size=300)


# -- the definition --------------------------------------------------------------------------------


@SETTINGS
@given(address_sets)
def test_the_digest_is_the_one_of_the_definition(found: set[bytes]) -> None:
    assert set_digest(sorted(found)) == naive_digest(found)
    members = children(found)
    assert set_digest(sorted(members)) == naive_digest(members)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 63, 64, 65, 257, 1_000, 1_025])
@pytest.mark.parametrize("prefix", ["", "3", "9" * 33, "b" * 58])
def test_the_digest_is_the_one_of_the_definition_at_every_threshold(
    count: int, prefix: str
) -> None:
    found = {address(i, prefix) for i in range(count)}
    assert set_digest(sorted(found)) == naive_digest(found)


def test_the_empty_set_has_a_digest_of_its_own() -> None:
    assert set_digest([]) == EMPTY == naive_digest([])
    assert len({EMPTY, set_digest([address(1)]), set_digest(children([address(1)]))}) == 3


@SETTINGS
@given(st.integers(0, 62), st.sets(st.integers(0, 255), min_size=1))
def test_split_puts_every_member_where_its_nibble_says(depth: int, bytes_: set[int]) -> None:
    prefix = ("5a" * 32)[:depth]
    members = sorted({bytes.fromhex((prefix + f"{byte:02x}" * 32)[:64]) for byte in bytes_})
    parts = split(members, depth)
    assert [member for part in parts for member in part] == members
    for i, part in enumerate(parts):
        assert all(nibble(member, depth) == i == int(member.hex()[depth], 16) for member in part)


@SETTINGS
@given(address_sets, addresses)
def test_two_different_sets_have_different_digests(found: set[bytes], other: bytes) -> None:
    changed = found ^ {other}
    assert set_digest(sorted(found)) != set_digest(sorted(changed))


# -- pages on a real store -------------------------------------------------------------------------


class RolledBack(Exception):
    """Nothing of a test's pages has to stay."""


@contextmanager
def writer() -> Iterator[Writer]:
    """Yield a write transaction of a real store."""
    store = SqliteStore(":memory:", StoreOptions(clock=lambda: BASE, busy_timeout_s=1))
    try:
        with store.write() as session:
            yield session
            raise RolledBack
    except RolledBack:
        store.close()


def pages(session: Writer, kind: int) -> dict[str, tuple[int, bytes]]:
    """Return the pages of the one set, by path."""
    session.write_pages()
    return {
        path: (fork, body)
        for world, found, path, fork, body in session.scan.pages()
        if (world, found) == (WORLD, kind)
    }


def check_layout(session: Writer, kind: int, members: Iterable[bytes]) -> None:
    """Check that the stored pages are those of the set alone, and say what they hold."""
    expected = sorted(members)
    stored = pages(session, kind)
    assert stored == digest_and_pages(expected)[1]
    assert digest_of(session, WORLD, kind) == naive_digest(expected)
    held: list[bytes] = []
    for path, (fork, body) in sorted(stored.items()):
        below = [member for member in expected if member.hex().startswith(path)]
        if not fork:
            assert members_of(body, WIDTH[kind]) == below
            assert 0 < len(below) <= BUCKET_MAX
            held += below
            continue
        assert len(below) > BUCKET_MAX
        digests, sizes = parts_of(body)
        for i, digit in enumerate(NIBBLES):
            part = [member for member in below if member.hex()[len(path)] == digit]
            assert (sizes[i], digests[i]) == (len(part), naive_digest(part, len(path) + 1))
    assert sorted(held) == expected


def play(
    session: Writer, kind: int, history: Sequence[tuple[set[bytes], set[bytes]]]
) -> set[bytes]:
    """Play groups of puts and drops; check every digest on the way; return the members left."""
    members: dict[bytes, bytes] = {}
    for salt, (put, drop) in enumerate(history):
        new = children(put, salt % 3) if kind == CHILDREN else list(put)
        members.update((member[:32], member) for member in new)
        for ident in drop:
            members.pop(ident, None)
        digest = update_set(session, WORLD, kind, new, drop)
        assert digest == naive_digest(members.values())
    return set(members.values())


groups = st.lists(st.tuples(address_sets, st.sets(addresses, max_size=60)), min_size=1, max_size=5)


@SETTINGS
@given(groups, st.sampled_from((CHILDREN, EDGES)))
def test_pages_follow_from_the_set_whatever_was_put_and_dropped(
    history: list[tuple[set[bytes], set[bytes]]], kind: int
) -> None:
    with writer() as session:
        check_layout(session, kind, play(session, kind, history))


@pytest.mark.parametrize("kind", [CHILDREN, EDGES])
@pytest.mark.parametrize("prefix", ["", "d", "0f" * 10])
@pytest.mark.parametrize("seed", some(range(2), 2))
def test_a_set_that_grows_and_shrinks_has_the_pages_of_what_is_left(
    kind: int, prefix: str, seed: int
) -> None:
    rng = random.Random(seed)
    pool = [address(i, prefix if i % 2 else "") for i in range(900)]
    members: dict[bytes, bytes] = {}
    with writer() as session:
        for wave in range(12):
            growing = wave % 4 < 2
            put = set(rng.sample(pool, rng.choice((1, 20, 300)))) if growing else set()
            drop = set(rng.sample(pool, rng.choice((1, 100, 700)))) - put
            new = children(put, wave) if kind == CHILDREN else list(put)
            members.update((member[:32], member) for member in new)
            for ident in drop:
                members.pop(ident, None)
            update_set(session, WORLD, kind, new, drop)
            check_layout(session, kind, members.values())
        update_set(session, WORLD, kind, [], pool)
        assert pages(session, kind) == {}
        assert digest_of(session, WORLD, kind) == EMPTY


@pytest.mark.parametrize("kind", [CHILDREN, EDGES])
@pytest.mark.parametrize("left", [0, 1, 16, 17, 63, 64, 65])
def test_a_set_that_shrinks_to_a_threshold_has_the_pages_of_one_that_grew_to_it(
    kind: int, left: int
) -> None:
    found = [address(i, "4d" if i % 2 else "") for i in range(300)]
    members = children(found) if kind == CHILDREN else found
    with writer() as session:
        update_set(session, WORLD, kind, members, [])
        update_set(session, WORLD, kind, [], found[left:])
        check_layout(session, kind, members[:left])


def test_order_and_grouping_leave_no_trace() -> None:
    found = [address(i, "3c" * 5 if i % 3 == 0 else "") for i in range(600)]
    extra = [address(i) for i in range(1_000, 1_200)]
    layouts = []
    for seed, size in enumerate((1, 7, 100, 1_000)):
        rng = random.Random(seed)
        todo = [(ident, True) for ident in found] + [(ident, True) for ident in extra]
        rng.shuffle(todo)
        todo += [(ident, False) for ident in rng.sample(extra, len(extra))]
        with writer() as session:
            for start in range(0, len(todo), size):
                group = todo[start : start + size]
                put = [ident for ident, is_put in group if is_put]
                drop = [ident for ident, is_put in group if not is_put]
                update_set(session, WORLD, EDGES, put, drop)
            layouts.append(pages(session, EDGES))
    assert all(layout == layouts[0] for layout in layouts)
    assert layouts[0] == digest_and_pages(sorted(found))[1]


def test_a_child_with_a_new_state_replaces_the_old_one() -> None:
    found = [address(i) for i in range(400)]
    with writer() as session:
        update_set(session, WORLD, CHILDREN, children(found, 0), [])
        update_set(session, WORLD, CHILDREN, children(found[:1], 1), [])
        check_layout(session, CHILDREN, children(found[:1], 1) + children(found[1:], 0))


@pytest.mark.parametrize("shared", some([17, 40, 61, 62], 2))
def test_members_that_share_a_long_prefix_lie_as_deep_as_it_takes(shared: int) -> None:
    prefix = ("9e3" * 22)[:shared]
    crowd = [bytes.fromhex((prefix + f"{i:02x}" * 32)[:64]) for i in range(150)]
    found = sorted({*crowd, *(address(i) for i in range(40))})
    with writer() as session:
        for member in random.Random(shared).sample(found, len(found)):
            update_set(session, WORLD, EDGES, [member], [])
        check_layout(session, EDGES, found)
        for member in found[:: len(found) // 20]:
            assert climb(*leaf_and_forks(session, WORLD, EDGES, member), member) == naive_digest(
                found
            )
        kept = found[::9]
        update_set(session, WORLD, EDGES, [], set(found) - set(kept))
        check_layout(session, EDGES, kept)


def climb(leaf: list[bytes], forks: list[list[bytes]], member: bytes) -> bytes:
    """Return the digest of the whole set, from one leaf page and the forks above it."""
    assert member in leaf
    digest = naive_digest(leaf, len(forks))
    for depth in range(len(forks) - 1, -1, -1):
        assert forks[depth][nibble(member, depth)] == digest
        digest = fork_digest(forks[depth])
    return digest


def test_dropping_what_is_not_there_changes_nothing() -> None:
    found = [address(i) for i in range(300)]
    with writer() as session:
        assert update_set(session, WORLD, EDGES, [], [address(9_999)]) == EMPTY
        before = update_set(session, WORLD, EDGES, found, [])
        assert update_set(session, WORLD, EDGES, [], [address(9_999), address(9_998)]) == before
        check_layout(session, EDGES, found)


# -- sorting ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("twins", [0, 1, 500])
def test_big_sets_are_sorted_as_small_ones_are(width: int, twins: int) -> None:
    rng = random.Random(width + twins)
    members = [rng.randbytes(width) for _ in range(SORT_WITH_NUMPY_MIN + 5)]
    # Members that agree in the first 8 bytes, which is all that the fast way looks at.
    members += [members[i][:8] + rng.randbytes(width - 8) for i in range(twins)]
    members += [bytes([top]) + rng.randbytes(width - 1) for top in (0, 0x7F, 0x80, 0xFF)]
    rng.shuffle(members)
    assert sort_members(list(members)) == sorted(members)


def test_a_bulk_load_gives_the_state_that_small_loads_give() -> None:
    drafts = [
        NodeDraft(type="Fact", content=str(i), created_at=at(BASE + i))
        for i in range(SORT_WITH_NUMPY_MIN + 50)
    ]
    states = []
    for bulk, size in ((True, len(drafts)), (False, 1_500)):
        with worlddb.open(":memory:", random_bytes=bytes) as db:
            for start in range(0, len(drafts), size):
                with db.transaction(bulk=bulk) as tx:
                    tx.create_nodes(drafts[start : start + size])
            states.append(db.root_state)
    assert states[0] == states[1]


# -- worlds through the public API -----------------------------------------------------------------


def build(seed: int, group: int, members: int, passers: int) -> tuple[WorldDB, Id]:
    """Return a store whose one world holds the same nodes and edges, whatever the seed.

    Nodes are moved in by `contains`, some are moved out again; edges are written, some deleted.
    """
    rng = random.Random(seed)
    db = worlddb.open(":memory:", random_bytes=bytes)
    with db.transaction() as tx:
        world = tx.create_node(type="Topic", name="w", created_at=at(BASE)).id
        ids = tx.create_nodes(
            NodeDraft(type="Fact", name=str(i), created_at=at(BASE + i))
            for i in rng.sample(range(members + passers), members + passers)
        )
    leaving = sorted(ident for ident in ids if int(db.get(ident).name) >= members)
    todo = [(step, ident) for step in ("contains", "refers_to") for ident in ids]
    rng.shuffle(todo)
    todo += [(step, ident) for ident in leaving for step in rng.sample(("cut", "leave"), 2)]
    written: dict[tuple[str, Id], Id] = {}
    for start in range(0, len(todo), group):
        with db.transaction() as tx:
            for step, ident in todo[start : start + group]:
                if step == "contains":
                    edge = tx.write_edge("contains", world, ident, valid_from=at(BASE))
                    written["leave", ident] = edge.id
                elif step == "refers_to":
                    edge = tx.write_edge("refers_to", ident, world, valid_from=at(BASE))
                    written["cut", ident] = edge.id
                else:
                    tx.delete_edge(written[step, ident])
    return db, world


@pytest.mark.parametrize(("members", "passers"), [(5, 3), (60, 150), (180, 20)])
def test_a_world_has_the_state_of_what_is_in_it_whatever_came_and_went(
    members: int, passers: int
) -> None:
    states = set()
    for seed, group in enumerate((1, 13, 10_000)):
        db, world = build(seed, group, members, passers)
        inside = db.children(world)
        assert len(inside) == members
        assert db.check() == []
        states.add((db.root_state, db.get(world).state))
        node = db.get(world)
        expected = naive_state(node, inside, [e.id for n in inside for e in db.edges(n.id)])
        assert node.state == expected
        db.close()
    assert len(states) == 1


def naive_state(node: worlddb.Node, inside: Sequence[worlddb.Node], edges: Iterable[Id]) -> Id:
    """Return a world's state from what the public API says is in it."""
    born = round((node.created_at - at(0)).total_seconds() * 1_000_000)
    members = [child.id + child.state for child in inside]
    blind = bytes(16)  # What `random_bytes=bytes` gives.
    return naive_node_address(node.type, node.name, node.content, born, members, edges, blind)


def test_edges_in_bulk_give_the_state_that_single_edges_give() -> None:
    states = []
    for bulk in (True, False):
        with worlddb.open(":memory:", random_bytes=bytes) as db:
            with db.transaction() as tx:
                ids = tx.create_nodes(
                    NodeDraft(type="Fact", name=str(i), created_at=at(BASE + i)) for i in range(300)
                )
            rng = random.Random(5)
            pairs = sorted({(rng.choice(ids), rng.choice(ids)) for _ in range(700)})
            rng.shuffle(pairs)
            with db.transaction(bulk=bulk) as tx:
                if bulk:
                    drafts = [EdgeDraft(source=s, target=t) for s, t in [*pairs, *pairs[:50]]]
                    assert tx.write_edges("refers_to", drafts[:300]) == 300
                    assert tx.write_edges("refers_to", drafts[200:]) == len(pairs) - 300
                    assert tx.write_edges("refers_to", drafts) == 0
                else:
                    for source, target in reversed(pairs):
                        tx.write_edge("refers_to", source, target)
            assert db.check() == []
            states.append(db.root_state)
    assert states[0] == states[1]


# -- proofs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 16, 64, 65, 129, 1_100])
def test_every_node_of_a_world_of_any_size_has_a_proof(count: int) -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            ids = tx.create_nodes(NodeDraft(type="Fact", name=str(i)) for i in range(count))
        for ident in ids[:: max(1, count // 40)]:
            proof = db.prove(ident)
            assert verify_proof(proof, db.root_state)
            assert verify_proof(Proof.from_dict(proof.to_dict()), db.root_state)
            assert all(len(step.bucket) <= BUCKET_MAX for step in proof.steps)
            wrong = replace(proof, state=str(db.root_state))
            assert not verify_proof(wrong, db.root_state)


@pytest.fixture
def family() -> Iterator[tuple[WorldDB, list[Id]]]:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            ids = tx.create_nodes(NodeDraft(type="Fact", name=str(i)) for i in range(6))
        yield db, sorted(ids)


def test_a_proof_without_steps_proves_no_other_node_than_the_root(
    family: tuple[WorldDB, list[Id]],
) -> None:
    db, ids = family
    assert verify_proof(db.prove(db.root_id), db.root_state)
    for claimed in ("ab" * 32, str(ids[0])):
        forged = Proof(id=claimed, state=str(db.root_state), steps=())
        assert not verify_proof(forged, db.root_state)


def test_a_bucket_that_is_cut_at_other_places_proves_nothing(
    family: tuple[WorldDB, list[Id]],
) -> None:
    """The second member's second half and the third's first half look like a member, too."""
    db, ids = family
    proof = db.prove(ids[1])
    first, second, third, *rest = proof.steps[0].bucket
    cut = (first, second[:64], second[64:] + third[:64], third[64:], *rest)
    forged = Proof(id=str(ids[1]), state=str(ids[2]), steps=(replace(proof.steps[0], bucket=cut),))
    assert not verify_proof(forged, db.root_state)


@settings(derandomize=True, deadline=None, database=None, max_examples=examples(60, 20))
@given(st.data())
def test_a_proof_with_any_digit_changed_proves_nothing(data: st.DataObject) -> None:
    with worlddb.open(":memory:", clock=lambda: BASE) as db:
        with db.transaction() as tx:
            world = tx.create_node(type="Topic", name="w", content="c")
            ids = tx.create_nodes(
                NodeDraft(type="Fact", name=str(i), parent=world.id) for i in range(40)
            )
        plain: dict[str, Any] = json.loads(json.dumps(db.prove(ids[7]).to_dict()))
        assert verify_proof(plain, db.root_state)
        holder, key = data.draw(st.sampled_from(list(_texts(plain))))
        text = holder[key]
        place = data.draw(st.integers(0, len(text) - 1))
        other = data.draw(st.sampled_from([c for c in "0123456789abcdef" if c != text[place]]))
        holder[key] = text[:place] + other + text[place + 1 :]
        assert not verify_proof(plain, db.root_state)


def _texts(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where every piece of text in a proof stands: what holds it, and under which key."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, str) and item:
            yield value, key
        elif isinstance(item, dict | list):
            yield from _texts(item)
