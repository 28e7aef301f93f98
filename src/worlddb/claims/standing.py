"""Claims as readers see them: which functional claims stand about somebody, in one world.

A claim is on the `refers_to` edge from the node that states it to its subject, so all about a
subject are found with one look at it and at what was accepted as the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping

from worlddb.claims.claim import CLAIM_EDGE, FACT, Claimed, Standing, claimed
from worlddb.model.address import Id
from worlddb.model.records import Node
from worlddb.store.interface import Reader
from worlddb.store.rows import EdgeRow
from worlddb.view.equivalence import accepted_class
from worlddb.view.visibility import Moment

SESSION = "Session"


def standing_claims(
    reader: Reader,
    wanted: Mapping[Id, Collection[str]],
    home: Id,
    moment: Moment,
    keep: Callable[[Iterable[int]], set[int]] = set,
) -> dict[Id, list[Standing]]:
    """Return the functional claims that stand now about subjects, of the relations `wanted`.

    Only what lives in the world `home` itself, or in a session there: its members are another's.
    Of that, only what `keep` keeps: a caller may be in bounds that are narrower.
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
    # Much is said about a user: the store picks what is of these relations.
    texts = [f'"relation":{json.dumps(word, ensure_ascii=False)}' for word in sorted(relations)]
    return _functional(reader.edges(reader.sweep.saying(sorted(subjects), CLAIM_EDGE, texts)))


def _moved(edges: Iterable[tuple[EdgeRow, Claimed]]) -> set[tuple[str, str, str]]:
    """Return what a longer text said that is a fact of its own since it was replaced."""
    return {(said.stands_for, said.relation, said.value) for _, said in edges if said.stands_for}


def _functional(edges: Iterable[EdgeRow]) -> list[tuple[EdgeRow, Claimed]]:
    told = ((item, claimed(item.edge.metadata)) for item in edges)
    return [(item, said) for item, said in told if said is not None and said.functional]


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
        found.append(_told(node, item.edge.target, said, tuple(members.get(item.source, ()))))
    return found


def _told(node: Node, subject: Id, said: Claimed, members: tuple[Id, ...]) -> Standing:
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
    told = stated(reader, subjects, relations, moment)
    return {item.source for item, said in told if said.value}


def stated(
    reader: Reader, subjects: Collection[int], relations: Collection[str], moment: Moment
) -> list[tuple[EdgeRow, Claimed]]:
    """Return what is claimed at a moment of subjects, also that something is no longer so.

    A sentence of a longer text that was replaced is no claim of that text any more.
    """
    if moment.known is None:
        told = _about(reader, subjects, relations)
    else:
        told = _functional(reader.edges_at(sorted(subjects), "in", (CLAIM_EDGE,), moment.known))
    said = [(item, one) for item, one in told if one.relation in relations]
    moved = _moved(said)
    return [
        (item, one)
        for item, one in said
        if moment.holds(item.edge) and (str(item.edge.source), one.relation, one.value) not in moved
    ]


def carriers(reader: Reader, ids: Iterable[Id]) -> dict[Id, Node]:
    """Return those nodes among `ids` that are there already."""
    rows = [row for ident in ids if (row := reader.node_row(ident)) is not None]
    return {node.id: node for node in reader.nodes(rows).values()}
