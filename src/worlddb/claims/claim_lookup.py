"""Claim lookup: which functional claims stand about somebody, in one world.

A claim is on the `refers_to` edge from the node that states it (its *carrier*) to its subject. So
one look at a subject, and at the nodes accepted as the same, finds every claim about it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping

from worlddb.claims.claim import CLAIM_EDGE, FACT, Claimed, Standing, claimed
from worlddb.model.address import Id
from worlddb.model.records import Node
from worlddb.store.interface import Reader
from worlddb.store.rows import EdgeRow
from worlddb.view.lookup import accepted_class
from worlddb.view.visibility import Moment

SESSION = "Session"


def standing_claims(
    reader: Reader,
    wanted: Mapping[Id, Collection[str]],
    home: Id,
    moment: Moment,
    keep: Callable[[Iterable[int]], set[int]] = set,
) -> dict[Id, list[Standing]]:
    """Return the functional claims that stand now, by subject; `wanted` has the relations of each.

    Only carriers that live in the world `home` itself, or in a session there, count: members of
    `home` live in other worlds. `keep` returns the rows that the caller may see.
    """
    found: dict[Id, list[Standing]] = {}
    for subject, relations in wanted.items():
        row = reader.node_row(subject)
        if row is None:
            continue
        same = accepted_class(reader, [row], moment) if reader.has_proposals() else {row}
        found[subject] = _standing(reader, _about(reader, same, relations), home, moment, keep)
    return found


def _about(
    reader: Reader, subjects: Collection[int], relations: Collection[str]
) -> list[tuple[EdgeRow, Claimed]]:
    """Return the functional claims about subjects of some relations, as of now."""
    # There may be many claims about a user: the store picks those of these relations.
    texts = [f'"relation":{json.dumps(word, ensure_ascii=False)}' for word in sorted(relations)]
    return _functional(reader.edges(reader.sweep.saying(sorted(subjects), CLAIM_EDGE, texts)))


def _moved(edges: Iterable[tuple[EdgeRow, Claimed]]) -> set[tuple[str, str, str]]:
    """Return the claims of longer texts that became facts of their own when they were replaced."""
    return {(said.stands_for, said.relation, said.value) for _, said in edges if said.stands_for}


def _functional(edges: Iterable[EdgeRow]) -> list[tuple[EdgeRow, Claimed]]:
    claims = ((item, claimed(item.edge.metadata)) for item in edges)
    return [(item, claim) for item, claim in claims if claim is not None and claim.functional]


def _standing(
    reader: Reader,
    edges: list[tuple[EdgeRow, Claimed]],
    home: Id,
    moment: Moment,
    keep: Callable[[Iterable[int]], set[int]],
) -> list[Standing]:
    nodes = reader.nodes({item.source for item, _ in edges})
    live = {row for row, node in nodes.items() if moment.holds(node) and not node.erased}
    placed = keep(_lives_in(reader, {row: nodes[row] for row in live}, home))
    members = _members(reader, placed, moment)
    moved = _moved(edges)
    found = []
    for item, said in edges:
        if item.source not in placed or not moment.holds(item.edge):
            continue
        node = nodes[item.source]
        if (str(node.id), said.relation, said.value) in moved:
            continue
        memberships = tuple(members.get(item.source, ()))
        found.append(_standing_claim(node, item.edge.target, said, memberships))
    return found


def _standing_claim(node: Node, subject: Id, said: Claimed, members: tuple[Id, ...]) -> Standing:
    began = node.valid_from if said.since is None else min(said.since, node.created_at)
    assert node.parent is not None
    return Standing(
        carrier=node.id,
        subject=subject,
        relation=said.relation,
        value=said.value,
        was=said.was,
        began=began,
        said=node.created_at,
        valid_from=node.valid_from,
        text=said.text or (node.content if node.type == FACT else ""),
        apart=node.type != FACT and node.content.strip() != said.text.strip(),
        world=node.parent,
        members=members,
        vague=said.vague,
    )


def _lives_in(reader: Reader, nodes: Mapping[int, Node], home: Id) -> set[int]:
    """Return which nodes live in a world itself, or in a session of it."""
    sessions: dict[Id, bool] = {}
    found = set()
    for row, node in nodes.items():
        parent = node.parent
        if parent is None:
            continue
        if parent != home and parent not in sessions:
            number = reader.node_row(parent)
            around = reader.nodes([number])[number] if number is not None else None
            sessions[parent] = (
                around is not None and around.type == SESSION and around.parent == home
            )
        if parent == home or sessions[parent]:
            found.add(row)
    return found


def _members(reader: Reader, rows: Iterable[int], moment: Moment) -> dict[int, list[Id]]:
    """Return the further worlds that nodes are members of."""
    found: dict[int, list[Id]] = {}
    for item in reader.edges_at(sorted(rows), "in", ("contains",)):
        if moment.holds(item.edge):
            found.setdefault(item.target, []).append(item.edge.source)
    return found


def claiming(
    reader: Reader, subjects: Collection[int], relations: Collection[str], moment: Moment
) -> set[int]:
    """Return the rows of nodes that claim, at a moment, a value of one of some relations."""
    claims = stated(reader, subjects, relations, moment)
    return {item.source for item, claim in claims if claim.value}


def stated(
    reader: Reader, subjects: Collection[int], relations: Collection[str], moment: Moment
) -> list[tuple[EdgeRow, Claimed]]:
    """Return the claims about subjects at a moment, also those that something is no longer so.

    A sentence of a longer text that was replaced is no claim of that text any more.
    """
    if moment.known is None:
        found = _about(reader, subjects, relations)
    else:
        found = _functional(reader.edges_at(sorted(subjects), "in", (CLAIM_EDGE,), moment.known))
    claims = [(item, claim) for item, claim in found if claim.relation in relations]
    moved = _moved(claims)
    return [
        (item, claim)
        for item, claim in claims
        if moment.holds(item.edge)
        and (str(item.edge.source), claim.relation, claim.value) not in moved
    ]


def carriers(reader: Reader, ids: Iterable[Id]) -> dict[Id, Node]:
    """Return the nodes among `ids` that exist already, by id."""
    rows = [row for ident in ids if (row := reader.node_row(ident)) is not None]
    return {node.id: node for node in reader.nodes(rows).values()}
