"""Query builder: how a caller states a query step by step, and how its plan is explained.

    db.query().seeds(…).traverse(…)  ──▶ QueryBuilder ──execute()──▶ Subgraph
                                                      ──explain()──▶ Plan

A builder is a value: each step returns another builder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from numbers import Real
from typing import Any, get_args

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.index.search import Search
from worlddb.model.address import ID_BYTES, Id, parse_prefix
from worlddb.model.conditions import condition_of
from worlddb.model.inputs import (
    Instant,
    Plain,
    check_choice,
    check_direction,
    check_integer,
    check_words,
    encode_text,
    to_micros,
)
from worlddb.model.records import NOW, AsOf, Direction, Op, Query, TextMatch, with_fields
from worlddb.ontology.registry import Registry
from worlddb.query.pipeline import (
    SETTINGS,
    Bounds,
    Execution,
    Subgraph,
    execute,
    settled,
    start_length,
)
from worlddb.query.start_set import WIDE_MAX
from worlddb.store.interface import Reader, Store
from worlddb.view.visibility import find, inside, moment_of

HOPS_MAX = 100
"""No chain of facts is longer; a larger number is a mistake that would walk the whole store."""
TEXT_BYTES_MAX = 1 << 16
"""Characters; enough for a pasted page. Every word of a search costs time."""
LIKE_MAX = 1_000
"""Ids with one prefix that are read in a bounded query; four digits are 65,536 prefixes."""
SWITCHES = {
    "hides_ended": "what has ended is hidden (supersedes)",
    "widens_to_members": "members of the world count as inside (contains)",
    "follows_classes": "nodes accepted as the same stand for each other (same_as)",
    "shows_conflicts": "open conflicts come with the answer (contradicts)",
    "orders_by_time": "the answer is ordered by time (precedes)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Plain):
    """Where a query starts, the index it uses, its steps, and the rules that edge types add.

    `scoped` if the query sees only the scopes of its caller.
    """

    start: str
    index: str
    world: Id | None
    valid: datetime | None
    known: int | None
    steps: tuple[str, ...]
    rules: tuple[str, ...]
    limit: int | None
    cut: str | None = None
    scoped: bool = False

    def __str__(self) -> str:
        place = "your scopes" if self.scoped else "the whole store"
        place = place if self.world is None else f"world {self.world.short}"
        lines = [f"start: {self.start}, by {self.index}, inside {place}"]
        if self.cut is not None:
            lines.append(f"cut:   {self.cut}")
        lines += [f"then:  {step}" for step in self.steps]
        if self.valid is not None:
            lines.append(f"as of: what was true at {self.valid.isoformat()}")
        if self.known is not None:
            lines.append(f"as of: what was known after commit {self.known}")
        lines += [f"rule:  {rule}" for rule in self.rules]
        if self.limit is not None:
            lines.append(f"limit: {self.limit}")
        return "\n".join(lines)


def plan(execution: Execution) -> Plan:
    """Return the plan of a query after the rewrite by its edge types."""
    query, moment = execution.query, execution.moment
    start, index, is_wide = _start(execution)
    rules = [text for switch, text in SWITCHES.items() if getattr(query, switch)]
    if query.pierces:
        rules.append(f"these lead out of the world: {', '.join(sorted(query.pierces))}")
    if query.type_edges:
        rules.append("a type includes its subtypes and instances")
    if query.prefer_summaries and query.summary_edges:
        rules.append("summaries stand for their details")
    if query.include_superseded:
        rules.append("what has ended is shown, too")
    steps, head = list(query.ops), start_length(query)
    limit = steps.pop().count if steps and steps[-1].kind == "limit" else query.limit
    told = [op for at, op in enumerate(steps) if at >= head or op.kind not in SETTINGS]
    is_whole = limit is not None and not told
    return Plan(
        start=start,
        index=index,
        world=query.world,
        valid=moment.valid,
        known=moment.known,
        steps=tuple(map(_step, told)),
        rules=tuple(rules),
        limit=limit,
        cut=CUT if is_wide and not is_whole else None,
        scoped=bool(execution.bounds),
    )


CUT = f"a start set ends after {WIDE_MAX:,} nodes in so large a world; the answer says if it did"


def _start(execution: Execution) -> tuple[str, str, bool]:
    """Return the start of a query, the index it uses, and whether the start set may be cut."""
    query, reader, search = execution.query, execution.reader, execution.search
    if query.seeds:
        return f"{len(query.seeds)} seeds", "id", False
    if query.text is None and query.vector is None:
        return "everything that can be seen", "containment", False
    worlds, members = execution.groups()[0], query.widens_to_members
    with search.interior(reader, worlds, execution.moment, members) as held:
        is_wide = held is None
    if query.text is not None:
        name = f"the words {query.text!r}"
        return name, "the store's full-text index" if is_wide else "words held in memory", is_wide
    name = f"a vector of {len(query.vector or ())} numbers"
    return name, "the store's vector index" if is_wide else "vectors held in memory", is_wide


def _step(op: Op) -> str:
    other = op.id.short if op.id is not None else "?"
    told = {
        "traverse": f"traverse {', '.join(op.types)} {op.direction}, up to {op.hops} hops",
        "filter_type": f"keep {', '.join(op.types)}",
        "filter_time": f"keep what is valid in [{op.start or '…'}, {op.end or '…'})",
        "where": f"keep where {op.where}",
        "in_world": f"look inside world {other} from here on",
        "as_of": f"look at what was true at {op.as_of.valid or 'now'}, "
        f"known at {op.as_of.known or 'now'}, from here on",
        "include_superseded": f"{'show' if op.on else 'hide'} what has ended from here on",
        "prefer_summaries": "put summaries in place of their details" if op.on else "keep details",
        "limit": f"keep the first {op.count}",
    }
    if op.kind == "where_connected":
        return f"keep what is connected by {op.types[0]} {op.direction} with {other}"
    return told[op.kind]


_Step = tuple[Op, bytes | str | None]
"""A step, and the id that it is given, which is looked up when the query runs."""


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
        given: tuple[tuple[bytes | str, ...], tuple[_Step, ...]] = ((), ()),
        bounds: Bounds = (),
    ) -> None:
        self._store = store
        self._registry = registry
        self._search = search
        self._clock = clock
        self._query = query or Query()
        self._seeds, self._steps = given
        self._bounds = bounds

    def _with(self, **changes: Any) -> QueryBuilder:
        seeds, steps = changes.pop("seeds", self._seeds), changes.pop("steps", self._steps)
        bounds = changes.pop("bounds", self._bounds)
        query = replace(self._query, **changes) if changes else self._query
        parts = (self._store, self._registry, self._search, self._clock)
        return QueryBuilder(*parts, query, (seeds, steps), bounds)

    def _then(self, op: Op, id: bytes | str | None = None) -> QueryBuilder:
        """Return a builder with one more step; its id is looked up when the query runs."""
        return self._with(steps=(*self._steps, (op, id)))

    def within(self, groups: Iterable[Iterable[bytes]]) -> QueryBuilder:
        """Bound the whole query: everything it reads must be inside one world of each group.

        No step leaves these worlds, and an id outside them is not found.
        """
        return self._with(bounds=(*self._bounds, *(tuple(group) for group in groups)))

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
            # Without a start a query covers everything; an empty list must not do that.
            raise InvalidInputError("seeds: give at least one id")
        return self._with(seeds=given)

    def text(self, words: str, match: TextMatch = "any") -> QueryBuilder:
        """Start at the nodes whose name or content has these words. Words are never syntax.

        `match` is "any" of the words, "all" of them, or "phrase": all in this order without a gap.
        Wins over `vector`.

        Raises:
            InvalidInputError: no words, too many words, or an unknown `match`.
        """
        check_choice(match, "match", get_args(TextMatch))
        plain = words.replace("\0", " ") if isinstance(words, str) else words
        encode_text(plain, "text", TEXT_BYTES_MAX)
        if not words.strip():
            raise InvalidInputError("text: give at least one word")
        return self._with(text=plain, match=match)

    def vector(self, vector: Sequence[float]) -> QueryBuilder:
        """Start at the nodes nearest in meaning to a vector of the store's embedder.

        Raises:
            InvalidInputError: not a list of finite numbers. Its length is checked by `execute`.
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
        """Follow edges of these types, up to `hops` of them; the reached nodes are the new set.

        Raises:
            InvalidInputError: no type, an unknown direction, or hops outside 1…100.
        """
        check_direction(direction)
        chosen = check_words(types, "traverse: edge type")
        check_integer(hops, "hops", 1, HOPS_MAX)
        return self._then(Op(kind="traverse", types=chosen, direction=direction, hops=hops))

    def filter_type(self, *types: str | Iterable[str]) -> QueryBuilder:
        """Keep nodes of these types, of their subtypes, and instances of them.

        Raises:
            InvalidInputError: no type, or a type that is not text.
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

    def where(self, metadata: Mapping[str, Any] | None = None, **keys: Any) -> QueryBuilder:
        """Keep nodes that match a filter: `where(status="open", tag=["a", "b"])`.

        A key is a metadata key, or type, source, speaker, valid_from, valid_to or known_from. A
        list of values means any of them; a list in the metadata matches by each of its values. None
        means that the key is missing. Operators: `where({"priority": {"$gte": 2}})`.

        Raises:
            InvalidInputError: no key, an unknown operator, or a value that cannot be compared.
        """
        if metadata is not None and not isinstance(metadata, Mapping):
            raise InvalidInputError(f"where: give a mapping of metadata, not {metadata!r:.100}")
        return self._then(Op(kind="where", where=condition_of({**(metadata or {}), **keys})))

    def where_connected(self, type: str, direction: Direction, id: bytes | str) -> QueryBuilder:
        """Keep nodes with an edge of `type` to (`"out"`) or from (`"in"`) the given node.

        An edge to a node outside the query's world counts only for piercing types, such as
        refers_to.

        Raises:
            InvalidInputError: an unknown direction, or no type.
        """
        check_direction(direction)
        chosen = check_words([type], "where_connected: edge type")
        return self._then(Op(kind="where_connected", types=chosen, direction=direction), id)

    # -- how to look, from here on -----------------------------------------------------------------

    def in_world(self, id: bytes | str) -> QueryBuilder:
        """Continue inside a world: only its interior is visible, except along piercing edges.

        Nodes found so far that are not inside are dropped. The returned builder looks the id up
        when the query runs.
        """
        return self._then(Op(kind="in_world"), id)

    def as_of(self, *, valid: Instant | None = None, known: Instant | None = None) -> QueryBuilder:
        """Continue as of another time: what was true at `valid`, as far as was known at `known`.

        If the only `as_of` is the last step, it applies to the whole query.

        Raises:
            InvalidInputError: a time without a zone.
        """
        for name, value in (("valid", valid), ("known", known)):
            if value is not None:
                to_micros(value, name)
        return self._then(Op(kind="as_of", as_of=AsOf(valid=valid, known=known)))

    def include_superseded(self, include: bool = True) -> QueryBuilder:
        """Also show nodes that have ended, but none that begin after the requested valid time."""
        return self._then(Op(kind="include_superseded", on=include))

    def prefer_summaries(self, prefer: bool = True) -> QueryBuilder:
        """Replace details by the summaries that were derived from them."""
        return self._then(Op(kind="prefer_summaries", on=prefer))

    def limit(self, n: int) -> QueryBuilder:
        """Keep the first `n` nodes: the best matches, or the first by time or id.

        Raises:
            InvalidInputError: `n` is not positive.
        """
        return self._then(Op(kind="limit", count=check_integer(n, "limit", 1)))

    # -- running ----------------------------------------------------------------------------------

    def execute(self) -> Subgraph:
        """Run the query on one snapshot and return its answer.

        Raises:
            InvalidInputError, NotFoundError: an id is wrong, or no node has it.
            ProviderError: the embedder failed in a search by vector.
        """
        if self._query.vector is not None and self._query.text is None and not self._seeds:
            self._search.vectors().catch_up()
        with self._store.read() as reader:
            query = self._resolved(reader)
            now = self._clock()
            return execute(reader, self._registry, self._search, query, now, self._bounds)

    def explain(self) -> Plan:
        """Return how the query would be answered, without running it.

        Raises:
            InvalidInputError, NotFoundError: an id is wrong, or no node has it.
        """
        with self._store.read() as reader:
            query = settled(self._resolved(reader))
            now, bounds = self._clock(), self._bounds
            return plan(Execution(reader, self._registry, self._search, query, now, bounds))

    def _resolved(self, reader: Reader) -> Query:
        """Return the query with every id and prefix looked up."""

        def whole(given: bytes | str) -> Id:
            if isinstance(given, bytes):
                return Id(given)
            if self._bounds:
                return self._bounded_id(reader, given)
            return Id(reader.world(find(reader, given, "nodes")).id)

        ops = tuple(
            op if given is None else replace(op, id=whole(given)) for op, given in self._steps
        )
        return with_fields(self._query, seeds=tuple(map(whole, self._seeds)), ops=ops)

    def _bounded_id(self, reader: Reader, given: str) -> Id:
        """Return the id with a prefix inside the bounds; ids outside are ignored."""
        prefix = parse_prefix(given)
        if len(prefix) == 2 * ID_BYTES:
            return Id(prefix)
        found = {
            reader.node_row(ident): ident for ident in reader.ids_like("nodes", prefix, LIKE_MAX)
        }
        rows = {row for row in found if row is not None}
        moment = moment_of(reader, NOW, self._clock())
        for group in self._bounds:
            worlds = {reader.node_row(world) for world in group} - {None}
            kept = rows & worlds
            for world in worlds:
                kept |= inside(reader, world or 0, rows, moment, members=True)
            rows = kept
        if len(rows) != 1:
            problem = "is the start of several ids; give more" if rows else "is not an id here"
            raise (InvalidInputError if rows else NotFoundError)(f"{given!r:.64} {problem}")
        return found[rows.pop()]
