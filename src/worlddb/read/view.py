"""View: what a reader may see, inside which worlds and at which moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from worlddb.model.address import ROOT_ID
from worlddb.model.instant import to_micros
from worlddb.model.query import Query
from worlddb.ontology.registry import Registry
from worlddb.read.moment import Moment
from worlddb.read.visible import inside
from worlddb.store.protocol import ROOT_ROW, BodyRow, Reader

DOORS = frozenset({"Entity", "Topic", "Scope", "Session", "Date", "Key"})
"""Types whose nodes, as long as they are only a name, lead to answers and are none."""


def is_door(body: BodyRow) -> bool:
    """Return whether a node is only a name to go through."""
    return bool(body.name) and not body.content and body.type in DOORS


def is_answer(body: BodyRow, doors: bool = False) -> bool:
    """Return whether a node has something to say; with `doors`, its name alone will do."""
    return bool(body.content or body.name) and (doors or not is_door(body))


class View:
    """What can be seen: inside some worlds, at a moment, ended or not; or of it `answers` alone.

    A node that is only a name is an answer to who asks for its type.
    With `within`, only what is also inside one of each of those groups of worlds.
    """

    def __init__(
        self,
        reader: Reader,
        moment: Moment,
        *,
        worlds: Sequence[int],
        members: bool,
        ended: bool,
        types: Iterable[str] | None = None,
        answers: bool = False,
        within: Sequence[Sequence[int]] = (),
    ) -> None:
        self.reader = reader
        self.moment = moment
        self.worlds = worlds
        self.members = members
        self.ended = ended
        self.types = None if types is None else frozenset(types)
        self.answers = answers
        self.within = within

    def beginning_with(self, number: int) -> View:
        """Return the same view with another of its groups of worlds as the first."""
        groups = [self.worlds, *self.within]
        first = groups.pop(number)
        return View(
            self.reader,
            self.moment,
            worlds=first,
            members=self.members,
            ended=self.ended,
            types=self.types,
            answers=self.answers,
            within=groups,
        )

    def keep_world(self, rows: Iterable[int]) -> set[int]:
        """Return those of some rows that are inside, whatever their time."""
        wanted = set(rows)
        for group in (self.worlds, *self.within):
            wanted = self.keep_inside(wanted, group)
        return wanted

    def keep_inside(self, rows: set[int], worlds: Sequence[int]) -> set[int]:
        """Return those of some rows that are inside any of `worlds`."""
        seen: set[int] = set()
        for world in worlds:
            seen |= inside(self.reader, world, rows, self.moment, self.members)
        return seen

    def keep(self, rows: Iterable[int]) -> set[int]:
        """Return those of some rows that can be seen."""
        return self.keep_time(self.keep_world(rows))

    def keep_time(self, rows: Iterable[int]) -> set[int]:
        """Return those of some rows that hold at the moment, wherever they are."""
        now = to_micros(self.moment.now, "now")
        valid = None if self.moment.valid is None else to_micros(self.moment.valid, "valid")
        kept = set()
        for body in self.reader.bodies(rows, self.moment.known):
            if self.types is not None and body.type not in self.types:
                continue
            if self.answers and not is_answer(body, doors=self.types is not None):
                continue
            if valid is not None and body.valid_from > valid:
                continue  # Also for who asks for what has ended: it had not begun.
            if not self.ended and body.valid_to is not None:
                if body.valid_to <= (now if valid is None else valid):
                    continue
            kept.add(body.row)
        return kept


def rewrite(reader: Reader, registry: Registry, query: Query, moment: Moment) -> Query:
    """Let every edge type that holds in the query's world say how it wants to be read."""
    worlds = [bytes(query.world or ROOT_ID)]
    row = reader.node_row(worlds[0])
    while row is not None and row != ROOT_ROW:
        row = reader.parents([row], moment.known).get(row)
        if row is not None:
            worlds.append(reader.world(row).id)
    for handler in registry.visible(worlds):
        query = handler.on_query_rewrite(query)
        if handler.pierces:
            query = replace(query, pierces=query.pierces | {handler.type})
    return query


def shows_ended(query: Query, moment: Moment) -> bool:
    """Return whether nodes that are not true at the moment are shown all the same."""
    return query.include_superseded or not (query.hides_closed or moment.valid is not None)
