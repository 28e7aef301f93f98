"""Query builder: how a caller states a query, step by step or as plain data.

db.query().seeds(…).traverse(…)  ──▶ QueryBuilder ──execute()──▶ Subgraph
QuerySpec (plain data)  ──apply()──▶ QueryBuilder ──explain()──▶ Plan
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from datetime import datetime
from numbers import Integral, Real
from typing import Any, get_args

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.index.search import Search
from worlddb.model.address import Id
from worlddb.model.inputs import (
    Instant,
    check_direction,
    check_whole,
    check_words,
    encode_text,
    from_micros,
    to_micros,
)
from worlddb.model.records import AsOf, Direction, Op, Plain, Query, TextMatch
from worlddb.ontology.registry import Registry
from worlddb.query.pipeline import Subgraph, execute
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW
from worlddb.view.visibility import Moment, find, moment_of, rewrite

HOPS_MAX = 100
"""No chain of facts is that long; a larger number is a mistake that would walk the whole store."""
TEXT_BYTES_MAX = 1 << 16
"""Long enough for a pasted page; every word of a search costs time."""
SWITCHES = {
    "hides_ended": "what has ended is hidden (supersedes)",
    "widens_to_members": "members of the world count as inside (contains)",
    "follows_classes": "nodes accepted as the same stand for each other (same_as)",
    "shows_conflicts": "open conflicts come with the answer (contradicts)",
    "orders_by_time": "the answer is ordered by time (precedes)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Plain):
    """Where a query starts, through which index, its steps, and what the ontology adds."""

    start: str
    index: str
    world: Id | None
    valid: datetime | None
    known: int | None
    steps: tuple[str, ...]
    rules: tuple[str, ...]
    limit: int | None

    def __str__(self) -> str:
        place = "the whole store" if self.world is None else f"world {self.world.short}"
        lines = [f"start: {self.start}, by {self.index}, inside {place}"]
        lines += [f"then:  {step}" for step in self.steps]
        if self.valid is not None:
            lines.append(f"as of: what was true at {self.valid.isoformat()}")
        if self.known is not None:
            lines.append(f"as of: what was known after commit {self.known}")
        lines += [f"rule:  {rule}" for rule in self.rules]
        if self.limit is not None:
            lines.append(f"limit: {self.limit}")
        return "\n".join(lines)


def plan(reader: Reader, search: Search, query: Query, moment: Moment) -> Plan:
    """Return the plan of a query that its ontology has rewritten.

    Raises:
        NotFoundError: its world does not exist at that time.
    """
    world = ROOT_ROW if query.world is None else reader.node_row(query.world)
    if world is None or not reader.parents([world], moment.known):
        raise NotFoundError(f"no node has the id {query.world} at that time")
    start, index = _start(reader, search, query, world, moment)
    rules = [text for switch, text in SWITCHES.items() if getattr(query, switch)]
    if query.pierces:
        rules.append(f"these lead out of the world: {', '.join(sorted(query.pierces))}")
    if query.type_edges:
        rules.append("a type includes its subtypes and instances")
    if query.prefer_summaries and query.summary_edges:
        rules.append("summaries stand for their details")
    if query.include_superseded:
        rules.append("what has ended is shown, too")
    return Plan(
        start=start,
        index=index,
        world=query.world,
        valid=moment.valid,
        known=moment.known,
        steps=tuple(map(_step, query.ops)),
        rules=tuple(rules),
        limit=query.limit,
    )


def _start(
    reader: Reader, search: Search, query: Query, world: int, moment: Moment
) -> tuple[str, str]:
    if query.seeds:
        return f"{len(query.seeds)} seeds", "id"
    if query.text is None and query.vector is None:
        return "everything that can be seen", "containment"
    with search.interior(reader, [world], moment, query.widens_to_members) as held:
        is_wide = held is None
    if query.text is not None:
        name = f"the words {query.text!r}"
        return name, "the store's full-text index" if is_wide else "words held in memory"
    name = f"a vector of {len(query.vector or ())} numbers"
    return name, "the store's vector index" if is_wide else "vectors held in memory"


def _step(op: Op) -> str:
    if op.kind == "traverse":
        return f"traverse {', '.join(op.types)} {op.direction}, up to {op.hops} hops"
    if op.kind == "filter_type":
        return f"keep {', '.join(op.types)}"
    if op.kind == "filter_time":
        return f"keep what is valid in [{op.start or '…'}, {op.end or '…'})"
    other = op.id.short if op.id is not None else "?"
    return f"keep what is connected by {op.types[0]} {op.direction} with {other}"


class QueryBuilder:
    """A query under construction. Each call returns a new builder; `execute` runs the query.

    Ids may be given whole or as a unique prefix; they are looked up when the query runs.
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        search: Search,
        clock: Callable[[], int],
        query: Query | None = None,
        seeds: tuple[bytes | str, ...] = (),
        world: bytes | str | None = None,
        connected: tuple[bytes | str, ...] = (),
    ) -> None:
        self._store = store
        self._registry = registry
        self._search = search
        self._clock = clock
        self._query = query or Query()
        self._seeds = seeds
        self._world = world
        self._connected = connected

    def _with(self, **changes: Any) -> QueryBuilder:
        own = {"seeds": self._seeds, "world": self._world, "connected": self._connected}
        own.update((key, changes.pop(key)) for key in list(changes) if key in own)
        query = replace(self._query, **changes)
        return QueryBuilder(
            self._store,
            self._registry,
            self._search,
            self._clock,
            query,
            **own,  # type: ignore[arg-type]
        )

    def _then(self, op: Op) -> QueryBuilder:
        return self._with(ops=(*self._query.ops, op))

    # -- where to start ----------------------------------------------------------------------------

    def seeds(self, ids: bytes | str | Sequence[bytes | str]) -> QueryBuilder:
        """Start at these nodes. Wins over `text` and `vector`.

        Raises:
            InvalidInputError: no ids.
        """
        if not isinstance(ids, Iterable) or isinstance(ids, Mapping):
            raise InvalidInputError(f"seeds: give an id or several, not {ids!r}")
        given = (ids,) if isinstance(ids, bytes | str) else tuple(ids)
        if not given:
            # Without a start a query is about everything: an empty list must not come to that.
            raise InvalidInputError("seeds: give at least one id")
        return self._with(seeds=given)

    def text(self, words: str, match: TextMatch = "any") -> QueryBuilder:
        """Start at the nodes whose name or content has these words; they are never syntax.

        `match` says whether any of them will do, or all must be there, or all one after the
        other as a phrase. Wins over `vector`.

        Raises:
            InvalidInputError: no words, too many, or no such way to match.
        """
        if match not in get_args(TextMatch):
            raise InvalidInputError(f"match {match!r}: use one of {', '.join(get_args(TextMatch))}")
        plain = words.replace("\0", " ") if isinstance(words, str) else words
        encode_text(plain, "text", TEXT_BYTES_MAX)
        if not words.strip():
            raise InvalidInputError("text: give at least one word")
        return self._with(text=plain, match=match)

    def vector(self, vector: Sequence[float]) -> QueryBuilder:
        """Start at the nodes nearest in meaning to a vector of the store's embedder.

        Raises:
            InvalidInputError: no list of finite numbers. Its length is checked when asked.
        """
        if isinstance(vector, str | bytes | Mapping | Set) or not isinstance(vector, Iterable):
            raise InvalidInputError(f"vector: give a list of numbers, not {vector!r:.100}")
        given = tuple(vector)
        if not all(isinstance(one, Real) and not isinstance(one, bool) for one in given):
            raise InvalidInputError("vector: give a flat list of numbers")
        try:
            numbers = tuple(map(float, given))
        except OverflowError:
            raise InvalidInputError("vector: a number is too large") from None
        if not numbers or not all(map(math.isfinite, numbers)) or not any(numbers):
            raise InvalidInputError("vector: give finite numbers, not all of them zero")
        return self._with(vector=numbers)

    # -- steps -------------------------------------------------------------------------------------

    def traverse(
        self, types: str | Iterable[str], direction: Direction = "out", hops: int = 1
    ) -> QueryBuilder:
        """Go along edges of these types, up to `hops` of them; end at what was reached.

        Raises:
            InvalidInputError: no type, an unknown direction, or hops outside 1…100.
        """
        check_direction(direction)
        chosen = check_words(types, "traverse: edge type")
        check_whole(hops, "hops", 1, HOPS_MAX)
        return self._then(Op(kind="traverse", types=chosen, direction=direction, hops=hops))

    def filter_type(self, *types: str | Iterable[str]) -> QueryBuilder:
        """Keep nodes of these types, of their subtypes, and instances of them.

        Raises:
            InvalidInputError: no type, or something that is no text.
        """
        words = [word for one in types for word in check_words(one, "filter_type: type")]
        return self._then(Op(kind="filter_type", types=check_words(words, "filter_type: type")))

    def filter_time(self, start: Instant | None = None, end: Instant | None = None) -> QueryBuilder:
        """Keep nodes that are valid at some time in `[start, end)`.

        Raises:
            InvalidInputError: a time without a zone, or an end before the start.
        """
        if start is not None and end is not None:
            if to_micros(end, "end") <= to_micros(start, "start"):
                raise InvalidInputError("filter_time: the end must be after the start")
        for name, value in (("start", start), ("end", end)):
            if value is not None:
                to_micros(value, name)
        return self._then(Op(kind="filter_time", start=start, end=end))

    def where_connected(self, type: str, direction: Direction, id: bytes | str) -> QueryBuilder:
        """Keep nodes with an edge of `type` to (`"out"`) or from (`"in"`) the given node.

        From inside a world, a node outside counts for piercing types alone, such as refers_to.

        Raises:
            InvalidInputError: an unknown direction, or no type.
        """
        check_direction(direction)
        chosen = check_words([type], "where_connected: edge type")
        builder = self._then(Op(kind="where_connected", types=chosen, direction=direction))
        return builder._with(connected=(*self._connected, id))

    # -- how to look -------------------------------------------------------------------------------

    def in_world(self, id: bytes | str) -> QueryBuilder:
        """Look from inside a world: only its interior is seen, except along piercing edges.

        The returned builder looks the id up when the query runs.
        """
        return self._with(world=id)

    def as_of(self, *, valid: Instant | None = None, known: Instant | None = None) -> QueryBuilder:
        """Ask what was true at `valid`, as far as was known at `known`.

        Raises:
            InvalidInputError: a time without a zone.
        """
        for name, value in (("valid", valid), ("known", known)):
            if value is not None:
                to_micros(value, name)
        return self._with(as_of=AsOf(valid=valid, known=known))

    def include_superseded(self, include: bool = True) -> QueryBuilder:
        """Show nodes that have ended, too; never what had not begun by the valid time asked for."""
        return self._with(include_superseded=include)

    def prefer_summaries(self, prefer: bool = True) -> QueryBuilder:
        """Show a summary in place of the details it was derived from."""
        return self._with(prefer_summaries=prefer)

    def limit(self, n: int) -> QueryBuilder:
        """Return at most `n` nodes.

        Raises:
            InvalidInputError: `n` is not positive.
        """
        return self._with(limit=check_whole(n, "limit", 1))

    # -- running ----------------------------------------------------------------------------------

    def execute(self) -> Subgraph:
        """Run the query on one snapshot and return its answer.

        Raises:
            InvalidInputError, NotFoundError: an id is wrong or names nothing.
            ProviderError: a search by vector, and the embedder failed.
        """
        if self._query.vector is not None and self._query.text is None and not self._seeds:
            self._search.vectors().catch_up()
        with self._store.read() as reader:
            query = self._resolved(reader)
            return execute(reader, self._registry, self._search, query, self._clock())

    def explain(self) -> Plan:
        """Return how the query would be answered, without answering it.

        Raises:
            InvalidInputError, NotFoundError: an id is wrong or names nothing.
        """
        with self._store.read() as reader:
            query = self._resolved(reader)
            moment = moment_of(reader, query.as_of, self._clock())
            return plan(
                reader, self._search, rewrite(reader, self._registry, query, moment), moment
            )

    def _resolved(self, reader: Reader) -> Query:
        """Return the query with every given id or prefix looked up."""

        def whole(given: bytes | str) -> Id:
            if isinstance(given, bytes):
                return Id(given)
            return Id(reader.world(find(reader, given, "nodes")).id)

        ids = iter(self._connected)
        ops = tuple(
            replace(op, id=whole(next(ids))) if op.kind == "where_connected" else op
            for op in self._query.ops
        )
        world = None if self._world is None else whole(self._world)
        seeds = tuple(map(whole, self._seeds))
        return replace(self._query, seeds=seeds, ops=ops, world=world)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySpec:
    """A query as plain data: what `query()` builds step by step, JSON-able.

    `steps` are mappings with an `op` (traverse, filter_type, filter_time, where_connected) and
    that op's arguments. The start set is planned: seeds before text before vector.
    """

    seeds: bytes | str | Sequence[bytes | str] = ()
    text: str | None = None
    match: TextMatch = "any"
    vector: Sequence[float] | None = None
    steps: Sequence[Mapping[str, Any]] = ()
    world: bytes | str | None = None
    valid: Instant | None = None
    known: Instant | None = None
    include_superseded: bool = False
    prefer_summaries: bool = False
    limit: int | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> QuerySpec:
        """Return the spec that JSON data describes.

        Raises:
            InvalidInputError: an unknown key.
        """
        if not isinstance(data, Mapping):
            raise InvalidInputError(f"a query is a JSON object, not {data!r:.100}")
        unknown = {str(key) for key in data} - {field.name for field in fields(cls)}
        if unknown:
            raise InvalidInputError(f"unknown in a query: {', '.join(sorted(unknown))}")
        return cls(**data)

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as plain JSON data: ids as hex, times as ISO-8601 in UTC.

        Raises:
            InvalidInputError: a time without a zone.
        """
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    def apply(self, query: QueryBuilder) -> QueryBuilder:
        """Return `query` with everything this spec says.

        Raises:
            InvalidInputError: a step is unknown or lacks an argument.
        """
        if self.seeds not in ((), []):
            query = query.seeds(self.seeds)
        if self.text is not None:
            query = query.text(self.text, self.match)
        if self.vector is not None:
            query = query.vector(self.vector)
        if not isinstance(self.steps, list | tuple):
            raise InvalidInputError(f"steps: give a list, not {self.steps!r:.100}")
        for step in self.steps:
            if not isinstance(step, Mapping):
                raise InvalidInputError(f"a step is a JSON object with an op, not {step!r:.100}")
            query = _apply_step(query, dict(step))
        if self.world is not None:
            query = query.in_world(self.world)
        if self.valid is not None or self.known is not None:
            query = query.as_of(valid=self.valid, known=self.known)
        if self.limit is not None:
            query = query.limit(self.limit)
        query = query.include_superseded(self.include_superseded)
        return query.prefer_summaries(self.prefer_summaries)


def _plain(value: Any) -> Any:
    """Return what a caller put into a spec as JSON data; a matrix's numbers are numbers, too."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return from_micros(to_micros(value, "time")).isoformat()
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else float(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Set):
        return sorted(map(_plain, value), key=str)
    if isinstance(value, tuple):
        return tuple(map(_plain, value))  # JSON knows it, and a spec comes back equal.
    return list(map(_plain, value)) if isinstance(value, Iterable) else value


def _apply_step(query: QueryBuilder, step: dict[str, Any]) -> QueryBuilder:
    kind = step.pop("op", None)
    calls: dict[Any, Callable[..., QueryBuilder]] = {
        "traverse": query.traverse,
        "filter_type": lambda types: query.filter_type(types),
        "filter_time": query.filter_time,
        "where_connected": query.where_connected,
    }
    if not isinstance(kind, str) or kind not in calls:
        raise InvalidInputError(f"unknown step {kind!r}; use one of {', '.join(calls)}")
    try:
        return calls[kind](**step)
    except TypeError as error:
        raise InvalidInputError(f"step {kind}: {error}") from None
