"""Question rewrite: a question as a query, rewritten by the edge handlers, and what it can see.

Handlers get a recall as the same `Query` that a pipeline gives them: the question is its `text`,
the wanted types are a `filter_type`, `k` is its `limit`. Whatever they return holds: other words,
another world or time, further filters, fewer hits. A recall has no walk, so a rewrite that adds one
is an error.

The vector of a question has its words weighed by how rare they are in what is searched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb.errors import ProviderError
from worlddb.index.held_world import HeldWorld
from worlddb.index.ranking_numbers import SCALARS
from worlddb.index.search import Search
from worlddb.index.store_search import is_whole
from worlddb.language.ranking_features import question_parts, written_rarity
from worlddb.language.text_tokens import words
from worlddb.model.address import Id
from worlddb.model.records import AsOf, Op, Query
from worlddb.ontology.registry import Registry
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW
from worlddb.view.node_filters import filtered, widened_types
from worlddb.view.visibility import (
    Moment,
    View,
    find_worlds,
    includes_ended,
    moment_of,
    rewrite,
)

Vector = NDArray[np.float32]


class SeenQuestion(NamedTuple):
    """A rewritten question and what can be seen of the store for it."""

    query: Query
    view: View


def seen_question(
    reader: Reader,
    registry: Registry,
    query: Query,
    worlds: Sequence[int],
    within: Sequence[Sequence[int]],
    now: int,
) -> SeenQuestion:
    """Return a question as the handlers of its worlds want it read.

    Raises:
        ProviderError: a rewrite failed, or made something of the question that is no question.
    """
    moment = moment_of(reader, query.as_of, now)
    before = query
    asked_in = _asked_in(reader, registry, worlds, within)
    for world in asked_in:
        query = rewrite(reader, registry, replace(query, world=world), moment)
    if query.world is not None and query.world != asked_in[-1]:
        worlds = find_worlds(reader, query.world)
    has_words = query.text == before.text or (query.text or "").strip()
    if query.seeds or query.vector is not None or not has_words:
        raise ProviderError("a rewrite of a recall must leave words to look for, and adds no start")
    if query.as_of != before.as_of:
        moment = moment_of(reader, query.as_of, now)
    return SeenQuestion(query, _view(reader, query, moment, worlds, within))


def question_query(
    text: str, types: Sequence[str] | None, as_of: AsOf, include_ended: bool, k: int
) -> Query:
    """Return a question as the query that handlers rewrite."""
    ops = () if types is None else (Op(kind="filter_type", types=tuple(types)),)
    return Query(text=text, ops=ops, as_of=as_of, include_superseded=include_ended, limit=k)


def _asked_in(
    reader: Reader,
    registry: Registry,
    worlds: Sequence[int],
    within: Iterable[Sequence[int]],
) -> list[Id | None]:
    """Return the worlds whose handlers rewrite the question, the one it is asked in at last."""
    if registry.is_flat:
        is_one = len(worlds) == 1 and worlds[0] != ROOT_ROW
        return [Id(reader.world(worlds[0]).id) if is_one else None]
    around = dict.fromkeys(row for group in (*within, worlds) for row in group)
    return [None if row == ROOT_ROW else Id(reader.world(row).id) for row in around]


def _view(
    reader: Reader,
    query: Query,
    moment: Moment,
    worlds: Sequence[int],
    within: Sequence[Sequence[int]],
) -> View:
    """Return what can be seen; the first filter of types is part of it, the others choose."""
    filters = list(query.ops)
    first = next((op for op in filters if op.kind == "filter_type"), None)
    types = instances = None
    if first is not None:
        filters.remove(first)
        widened = widened_types(reader, query, moment, worlds, first.types)
        types, instances = widened.names, widened.instances(reader, moment)

    def chosen(rows: set[int]) -> set[int]:
        for op in filters:
            nodes = reader.nodes(rows, moment.known)
            rows = filtered(reader, query, moment, worlds, nodes, op)
        return rows

    return View(
        reader,
        moment,
        worlds=worlds,
        members=query.widens_to_members,
        include_ended=includes_ended(query, moment),
        types=types,
        instances=instances or (),
        chosen=chosen if filters else None,
        answers=True,
        within=within,
    )


def held_question(
    search: Search, interior: HeldWorld, text: str, vector: Vector | None
) -> Vector | None:
    """Return the vector of a question to a world that is held in memory."""
    known = interior.text
    return _weighed(search, text, vector, interior.languages, known.rarity, known.rarity_max)


def stored_question(search: Search, view: View, text: str, vector: Vector | None) -> Vector | None:
    """Return the vector of a question to the whole store; of less than that, as it is."""
    if vector is None or not is_whole(view):
        return vector
    wide = search.wide()
    languages = wide.languages(view.reader)
    forms = [words(text), *(words(text, code) for code in languages)]
    rarity = wide.rarity_of(view, sorted({word for form in forms for word in form}))
    return _weighed(search, text, vector, languages, rarity.__getitem__, rarity[""])


def _weighed(
    search: Search,
    text: str,
    vector: Vector | None,
    languages: Collection[str],
    rarity: Callable[[str], float],
    top: float,
) -> Vector | None:
    if vector is None:
        return None
    parts = question_parts(
        text,
        lambda said: written_rarity(said, languages, rarity, top),
        top,
        frame_weight=SCALARS.frame_weight,
        rarity_power=SCALARS.rarity_power,
    )
    return search.vectors().ask_weighed(parts, vector)
