"""Proof path: the hashes from one node up to the root state, for anyone to verify.

`worlddb.verify_proof` checks a proof with blake3 alone; it needs no store.
"""

from __future__ import annotations

from worlddb.index.set_pages import PageSource, PresentPages, digest_of, leaf_and_forks
from worlddb.model.address import ERASED
from worlddb.model.proof import Proof, Step
from worlddb.store.interface import Reader
from worlddb.store.rows import CHILDREN, EDGES, World


def prove(reader: Reader, row: int) -> Proof:
    """Return the proof that the node at `row` is part of the current root state."""
    node = reader.world(row)
    pages = PresentPages(reader)
    steps = []
    child = node
    while child.parent is not None:
        parent = reader.world(child.parent)
        steps.append(_step(pages, parent, child))
        child = parent
    return Proof(id=node.id.hex(), state=(node.state or node.id).hex(), steps=tuple(steps))


def _step(pages: PageSource, world: World, child: World) -> Step:
    """Return what it takes to hash `world` again from the state of its child."""
    members, forks = leaf_and_forks(pages, world.row, CHILDREN, child.id)
    return Step(
        id=world.id.hex(),
        type=world.type,
        name=world.name,
        content=world.content,
        created_at=world.created_at,
        blind=world.blind.hex(),
        erased=world.created_at == ERASED,
        edges=digest_of(pages, world.row, EDGES).hex(),
        bucket=tuple(member.hex() for member in members),
        forks=tuple(tuple(part.hex() for part in fork) for fork in reversed(forks)),
    )
