"""Memory reads: recall, list and read memories, inside the scopes of a caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from itertools import chain
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Unpack,
)

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.ingest.draft_parts import NOT_HELD
from worlddb.memory.results import MemoryPage, Remembered
from worlddb.memory.scope_sight import rows_at_home
from worlddb.memory.scope_view import (
    CallerScopes,
    filtered_view,
    find_memory,
    page,
    scopes_of,
    view_of,
)
from worlddb.model.address import Id
from worlddb.model.conditions import condition_of
from worlddb.model.inputs import (
    Groups,
    Instant,
    ScopeIds,
    check_integer,
    check_words,
    said_by,
)
from worlddb.model.records import WHOLES, AsOf, Node
from worlddb.model.text_safety import FULL, TRUSTS, least_trusted
from worlddb.recall.hits import Hit, Recall, tokens_in
from worlddb.store.interface import Reader
from worlddb.view.node_filters import TrustLevels
from worlddb.view.summary_view import SUMMARY, stale_summaries
from worlddb.view.visibility import NOWHERE, Moment, View
from worlddb.world_db import WorldDB

if TYPE_CHECKING:
    from worlddb.recall.question import RecallSettings


# Summary order: summaries before details, each in place of the details it was derived from.


def summaries_first(found: Recall, view: View, max_tokens: int | None) -> Recall:
    """Return an answer with summaries first.

    A hit that a summary in the answer was derived from gives its place to that summary; hits
    without a summary follow. A summary that lacks later texts is left out until it is refreshed.
    """
    reader, moment = view.reader, view.moment
    rows = {hit.id: row for hit in found if (row := reader.node_row(hit.id)) is not None}
    above: dict[int, set[int]] = {}
    for item in reader.edges_at(sorted(rows.values()), "in", ("derived_from",), moment.known):
        above.setdefault(item.target, set()).add(item.source)
    seen = view.keep({row for held in above.values() for row in held})
    nodes = reader.nodes(seen, moment.known)
    stale = stale_summaries(reader, nodes, moment)
    present = {row for row, node in nodes.items() if node.type == SUMMARY} - stale
    levels = TrustLevels(reader, moment.known)
    first: dict[int, Hit] = {}
    rest: list[Hit] = []
    for hit in found:
        row = rows.get(hit.id, 0)
        summaries = above.get(row, set()) & present
        if hit.node.type == SUMMARY:
            first.setdefault(row, hit)
        elif summaries:
            best = max(summaries)
            node = nodes[best]
            trust = TRUSTS[levels.of(node)]
            told = replace(
                hit, node=node, trust=trust, outdated=(), conflicts=(), tokens=tokens_in(node)
            )
            first.setdefault(best, told)
        else:
            rest.append(hit)
    return replace(found, hits=tuple(_fitting([*first.values(), *rest], max_tokens)))


def _fitting(hits: list[Hit], max_tokens: int | None) -> list[Hit]:
    """Return the first hits that together have at most so many tokens."""
    if max_tokens is None:
        return hits
    kept: list[Hit] = []
    for hit in hits:
        if sum(one.tokens for one in kept) + hit.tokens <= max_tokens:
            kept.append(hit)
    return kept


# Memory reads.

Rows: TypeAlias = list[int]
Ids: TypeAlias = list[Id]
P = ParamSpec("P")
R = TypeVar("R")
SCOPE_IDS = frozenset(ScopeIds.__annotations__)
T = TypeVar("T")
PAGE_MAX = 1_000  # Bounds the memory and time of one call; a cursor gets the next page.
SESSION, TURN = "Session", "Turn"
TURNS_LISTED = 5  # Enough to recognise a session in a list; `read` has the whole text.


def granted(
    call: Callable[Concatenate[MemoryReader, P], R],
) -> Callable[Concatenate[MemoryReader, P], R]:
    """Return a call of a reader that also answers in scopes which a grant opens to the caller."""

    @wraps(call)
    def answer(reader: MemoryReader, /, *given: P.args, **named: P.kwargs) -> R:
        scope = {key: value for key, value in named.items() if key in SCOPE_IDS}
        return reader.by_grant(scope, lambda one: call(one, *given, **named))

    return answer


def _worlds_of(view: View) -> list[Ids]:
    """Return the worlds of a view by group; a group without existing scopes has none."""
    return [
        [Id(view.reader.world(row).id) for row in rows if row != NOWHERE]
        for rows in (view.worlds, *view.within)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReader:
    """Reads the memories of one caller. No call here asks a language model.

    With `counts` False, its reads do not count as recalls.
    """

    db: WorldDB
    scopes: CallerScopes
    actor: str = ""
    counts: bool = True

    def note(self, call: str, groups: Groups, question: str, hits: Iterable[bytes]) -> None:
        """Record a read, if this store was opened with `audit_reads`."""
        if self.db.audits_reads:
            from worlddb.audit.read_audit import note_read

            engine, named = self.db.engine, [str(name) for group in groups for name in group]
            note_read(engine.store, engine.clock(), self.actor, call, named, question, hits)

    def by_grant(self, scope: Mapping[str, Any], ask: Callable[[MemoryReader], R]) -> R:
        """Return an answer from the caller's own scopes, or from named scopes that grants open.

        Grants are checked again after the answer, so that all of it may be seen.
        """
        scopes = self.scopes.with_grants(scope)
        while scopes is not self.scopes:
            found = ask(replace(self, scopes=scopes))
            before, scopes = scopes, self.scopes.with_grants(scope)
            if scopes == before:
                return found
        return ask(self)

    @granted
    def recall(
        self,
        query: str | None = None,
        *,
        names: str | Sequence[str] | None = None,
        k: int = 10,
        max_tokens: int | None = None,
        min_confidence: float | None = None,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        include_retired: bool = False,
        at: Instant | None = None,
        summaries: Literal["first"] | None = None,
        settings: RecallSettings | None = None,
        counted: bool = True,
        receipt: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> Recall:
        """Return what is remembered about `query`, best first, each hit with its reasons.

        `names` count like names in the question. Without a question, the hits are the memories
        about these names, then those that mention them, the newest first.

        A hit is inside every kind of scope that is given, and inside any of several values of one.
        `as_of` asks for what was true at a time, `known_at` for what was known then; `at` is the
        time of the question, for words like "last week". `where` is a filter that is applied
        before the ranking: `{"project": "x", "priority": {"$gte": 2}}`, with `$eq $ne $in $nin
        $gt $gte $lt $lte $exists $contains $and $or $not`, over metadata keys, tags, type,
        source, speaker and the times valid_from, valid_to and known_from. With
        `summaries="first"` a summary replaces the details that it was derived from, and
        summaries come before the rest.

        The result and each hit have a `confidence`, the probability that they have the answer.
        With `min_confidence`, hits below it are left out. With `receipt` the answer has a signed
        receipt, which `verify_receipt` checks. With `counted=False` the read does not count as a
        recall of the hits.

        Raises:
            InvalidInputError: an empty or huge question, or an argument is wrong.
            RejectedError: the scope is outside the bounds of this memory.
            ProviderError: the embedder failed or is missing.
            StorageError: the key for receipts cannot be made or read.
        """
        asked: dict[str, Any] = {"names": names, "k": k, "max_tokens": max_tokens, "at": at}
        asked |= {"min_confidence": min_confidence, "as_of": as_of, "known_at": known_at}
        asked |= {"types": types, "where": where or None, "include_retired": include_retired}
        asked |= {"summaries": summaries, "settings": settings}
        reader = self if counted else replace(self, counts=False)
        if not receipt:
            return reader._answer(query or "", scope, **asked)
        from worlddb.memory.receipts import recall_with_receipt

        return recall_with_receipt(reader, query or "", scope, **asked)

    def _answer(
        self,
        query: str,
        scope: Mapping[str, Any],
        *,
        names: str | Sequence[str] | None,
        k: int,
        max_tokens: int | None,
        min_confidence: float | None,
        as_of: Instant | None,
        known_at: Instant | None,
        types: Sequence[str] | None,
        where: Mapping[str, Any] | None,
        include_retired: bool,
        at: Instant | None,
        summaries: Literal["first"] | None,
        settings: RecallSettings | None,
    ) -> Recall:
        """Return the answer to a question in the caller's own scopes; see `recall`."""
        from worlddb.recall.question import DEFAULT_SETTINGS, question_of
        from worlddb.recall.recaller import recall as recalled

        if isinstance(query, str) and not query.strip() and not names:
            raise InvalidInputError("query: give a question of at least one word, or names")
        if where is not None:
            condition_of(where)
        if summaries not in (None, "first"):
            raise InvalidInputError(f"summaries {summaries!r:.40}: use 'first' or leave it out")
        if include_retired:
            where = NOT_HELD if where is None else {"$and": [where, NOT_HELD]}
        groups = self.scopes.groups(scope)
        with self.scopes.viewing(groups, as_of=as_of, known_at=known_at) as view:
            worlds = _worlds_of(view)
        options: dict[str, Any] = {
            "k": k,
            "max_tokens": max_tokens,
            "min_confidence": min_confidence,
            "as_of": AsOf(valid=as_of, known=known_at),
            "types": None if types is None else check_words(types, "types"),
            "at": at,
            "names": names,
        }
        if all(worlds):
            engine = self.db.engine
            found = recalled(
                *(engine.registry, engine.search, engine.clock(), query),
                scope=worlds[0],
                within=worlds[1:],
                settings=settings,
                where=where,
                include_ended=include_retired,
                explain=True,
                **options,
            )
            if self.counts:
                engine.recalls.note([hit.node.id for hit in found.hits])
            if summaries == "first":
                with self.scopes.viewing(groups, as_of=as_of, known_at=known_at) as view:
                    found = summaries_first(found, self._filtered(view, where), max_tokens)
            self.note("recall", groups, found.question, (hit.node.id for hit in found))
            return self._without_strangers(found, known_at)
        # No memory was written for that scope yet. A wrong argument is an error all the same.
        question_of(query, settings=settings or DEFAULT_SETTINGS, **options)
        self.note("recall", groups, query, ())
        return Recall(question=query)

    def _without_strangers(self, found: Recall, known_at: Instant | None) -> Recall:
        """Return an answer without the parent ids of shared memories from scopes out of bounds.

        The id of a scope follows from its name: a caller that guesses one would see it confirmed.
        """
        if not self.scopes.bounds:
            return found
        with self.scopes.viewing(self.scopes.bounds, known_at=known_at, ended=True) as view:
            worlds = {hit.node.parent for hit in found if hit.node.parent is not None}
            rows = {view.reader.node_row(world): world for world in worlds}
            places = {row for row in rows if row is not None}
            own = places.intersection(chain(view.worlds, *view.within))
            seen = {rows[row] for row in own | view.keep_world(places)}
        hits = (
            hit if hit.node.parent in seen else replace(hit, node=replace(hit.node, parent=None))
            for hit in found
        )
        return replace(found, hits=tuple(hits))

    @granted
    def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        include_retired: bool = False,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> MemoryPage:
        """Return the memories directly in a scope, the latest first, a page at a time.

        With `types`, only memories of these types, such as Memory or Session; with `where`, only
        those that the filter is true of, as in `recall`.

        Raises:
            InvalidInputError: an argument is wrong, or no page begins at that cursor.
            RejectedError: the scope is outside the bounds of this memory.
        """
        return self.page(
            limit=limit,
            cursor=cursor,
            include_retired=include_retired,
            as_of=as_of,
            known_at=known_at,
            types=types,
            where=where or None,
            scope=scope,
        )

    def page(
        self,
        *,
        limit: int,
        cursor: str | None,
        include_retired: bool,
        as_of: Instant | None,
        known_at: Instant | None,
        types: Sequence[str] | None,
        where: Mapping[str, Any] | None,
        scope: Mapping[str, Any],
        trusted: bool = False,
    ) -> MemoryPage:
        """Return a page of the memories in the caller's own scopes; see `list`.

        With `trusted`, the text of a session has only its fully trusted turns.

        Raises:
            InvalidInputError, RejectedError: as `list`.
        """
        check_integer(limit, "limit", 1, PAGE_MAX)
        chosen = None if types is None else check_words(types, "types")
        groups = self.scopes.groups(scope)
        with self.scopes.viewing(
            groups, as_of=as_of, known_at=known_at, ended=include_retired
        ) as view:
            place = self.place(view, cursor)
            rows = page(self._filtered(view, where), place, limit + 1, chosen)
            shown = rows[:limit]
            memories = self.remembered(view, shown, TURNS_LISTED, trusted)
        more = len(rows) > limit
        self.note("list", groups, "", (one.id for one in memories))
        return MemoryPage(
            memories=memories, next_cursor=str(memories[-1].id) if more and memories else None
        )

    def _filtered(self, view: View, where: Mapping[str, Any] | None) -> View:
        """Return a view that is limited to the memories that match a filter."""
        return filtered_view(self.db.engine, view, where)

    @granted
    def read(
        self,
        id: bytes | str,
        *,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Remembered:
        """Return one memory, retired or not, by its id or the first 4 or more digits of it.

        With a scope, only a memory inside it is found.

        Raises:
            InvalidInputError: not an id, or the start of several.
            NotFoundError: there is no such memory here.
            RejectedError: the scope is outside the bounds of this memory.
        """
        with self.scopes.viewing(self.scopes.reach(scope), known_at=known_at, ended=True) as view:
            row, node = find_memory(view, id)
        with self.scopes.viewing((), as_of=as_of, known_at=known_at, ended=True) as view:
            if as_of is not None and not view.moment.holds(node):
                raise NotFoundError(f"memory {node.id.short} was not valid at that time")
            self.note("read", self.scopes.reach(scope), "", (node.id,))
            return self.remembered(view, [row], None)[0]

    def warm(self) -> None:
        """Load what the first recall needs: the embedder and the default scope.

        Raises:
            ProviderError: the embedder failed or is missing.
        """
        search = self.db.engine.search
        if search.has_vectors:
            search.vectors().ask("warm up")
        groups = self.scopes.groups({})
        with self.scopes.viewing(groups) as view:
            worlds = _worlds_of(view)
        if all(worlds):
            self.db.recall("warm up", scope=worlds[0], within=worlds[1:], k=1)

    def place(self, view: View, cursor: str | None) -> int | None:
        """Return the row of the last memory of a page.

        Raises:
            InvalidInputError: no page here ends with it.
        """
        row = None if cursor is None else row_of_cursor(view.reader, cursor)
        # Without bounds, the cursor may name a memory that has left the scope since.
        if row is not None and self.scopes.bounds and not view.keep_world([row]):
            raise no_cursor(cursor)
        return row

    def remembered(
        self, view: View, rows: Sequence[int], turns: int | None, trusted: bool = False
    ) -> tuple[Remembered, ...]:
        """Return memories as values, in the order of `rows`."""
        reader, moment = view.reader, view.moment
        nodes = reader.nodes(rows, moment.known)
        levels = TrustLevels(reader, moment.known)
        scopes = scopes_of(reader, rows, moment)
        before, after = self._superseding(view, rows)
        own = rows_at_home(reader, self.scopes.bounds, rows)
        only = levels if trusted else None
        parts = {row: _parts(reader, row, nodes[row], moment, only) for row in rows}
        # What is shown of a session or a document is trusted as the least of it.
        said = {row: (nodes[row], *parts[row][:turns]) for row in rows}
        return tuple(
            Remembered(
                id=nodes[row].id,
                type=nodes[row].type,
                text=_text(nodes[row], parts[row], turns),
                speaker=said_by(nodes[row].name) if nodes[row].type == TURN else "",
                valid_from=nodes[row].valid_from,
                valid_to=nodes[row].valid_to,
                known_from=nodes[row].known_from,
                actor=nodes[row].actor,
                retired=not moment.holds(nodes[row]),
                scopes=tuple(scope for scope in scopes[row] if self.scopes.may_name(scope)),
                provenance=nodes[row].provenance,
                metadata=nodes[row].metadata,
                supersedes=tuple(before.get(row, ())),
                superseded_by=tuple(after.get(row, ())),
                origin=least_trusted(one for node in said[row] for one in node.origins),
                trust=TRUSTS[min(map(levels.of, said[row]))],
                shared=row not in own,
            )
            for row in rows
        )

    def _superseding(
        self, view: View, rows: Sequence[int]
    ) -> tuple[dict[int, Ids], dict[int, Ids]]:
        """Return the nodes that each row supersedes, and its successors, inside the bounds."""
        reader, known = view.reader, view.moment.known
        found = reader.edges_at(rows, "both", ("supersedes",), known)
        ends = {end for item in found for end in (item.source, item.target)}
        if self.scopes.bounds:
            ends = view_of(
                reader, self.scopes.bounds, view.moment, ended=True, present=True
            ).keep_world(ends)
        wanted = set(rows)
        before: dict[int, Ids] = {}
        after: dict[int, Ids] = {}
        for item in found:
            if item.source in wanted and item.target in ends:
                before.setdefault(item.source, []).append(item.edge.target)
            if item.target in wanted and item.source in ends:
                after.setdefault(item.target, []).append(item.edge.source)
        return before, after


def row_of_cursor(reader: Reader, cursor: str) -> int:
    """Return the row of the node that a cursor names."""
    try:
        row = reader.node_row(Id(cursor))
    except (InvalidInputError, TypeError, ValueError, AttributeError):
        row = None
    if row is None:
        raise no_cursor(cursor)
    return row


def no_cursor(cursor: str | None) -> InvalidInputError:
    """Return the error for an invalid cursor."""
    return InvalidInputError(f"cursor {cursor!r:.80}: give the next_cursor of the page before")


def _parts(
    reader: Reader, row: int, node: Node, moment: Moment, levels: TrustLevels | None
) -> list[Node]:
    """Return the turns of a session or the passages of a document, in their order.

    With `levels`, without the parts that are not trusted in full.
    """
    if node.type not in WHOLES or node.content:
        return []
    found = reader.nodes(reader.children(row, moment.known), moment.known)
    # All parts of an ended whole; the live parts of a live one.
    parts = [
        part
        for _, part in sorted(found.items())
        if part.type == WHOLES[node.type]
        and part.content
        and (moment.holds(part) or not moment.holds(node))
        and (levels is None or levels.of(part) == FULL)
    ]
    if node.type != SESSION:
        parts.sort(key=lambda part: part.metadata.get("number", 0))
    return parts


def _text(node: Node, parts: Sequence[Node], turns: int | None) -> str:
    """Return the text of a memory; of a session or document the first `turns` parts, or all."""
    if node.type not in WHOLES or node.content:
        return node.content or node.name
    if node.type == SESSION:
        # Indented, so that no line of a message looks like a message by somebody else.
        texts = [part.content.replace("\n", "\n  ") for part in parts]
        lines = [f"{said_by(part.name)}: {text}" for part, text in zip(parts, texts, strict=True)]
    else:
        lines = [node.name, *_passages(parts)]
    if turns is not None and len(lines) > turns:
        lines = [*lines[:turns], "…"]
    return ("\n" if node.type == SESSION else "\n\n").join(lines)


def _passages(parts: Sequence[Node]) -> Sequence[str]:
    """Return the passages of a document, each heading path before the first."""
    names = [None, *(part.name for part in parts)]
    return [
        f"{part.name}\n\n{part.content}" if part.name not in ("", before) else part.content
        for part, before in zip(parts, names, strict=False)
    ]
