"""Reading: one node, a query, a question; all as of any moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from worlddb.api.opened import Opened
from worlddb.model.address import ROOT_ID, Id
from worlddb.model.inputs import Instant
from worlddb.model.records import (
    NOW,
    AsOf,
    Conflict,
    Direction,
    Edge,
    Identity,
    Node,
    Proposal,
    ProposalStatus,
)
from worlddb.query.query_builder import QueryBuilder, QuerySpec
from worlddb.query.subgraph import Subgraph
from worlddb.view import equivalence as identity
from worlddb.view import lookup
from worlddb.view.visibility import moment_of

if TYPE_CHECKING:
    from worlddb.embed.protocol import Embedder
    from worlddb.recall.hits import Recall
    from worlddb.recall.recaller import RecallSettings, Worlds


class Reading(Opened):
    """The part of WorldDB that reads."""

    def get(self, id_or_prefix: bytes | str, *, as_of: AsOf = NOW) -> Node:
        """Return a node by its id or a unique prefix of at least 4 hex digits.

        Raises:
            InvalidInputError: not an id, or the start of several.
            NotFoundError: no such node at that time.
        """
        with self._store.read() as reader:
            moment = moment_of(reader, as_of, self._clock())
            return lookup.find_node(reader, id_or_prefix, moment)[1]

    def get_edge(self, id_or_prefix: bytes | str) -> Edge:
        """Return an edge by its id or a unique prefix, deleted or not.

        Raises:
            InvalidInputError: not an id, or the start of several.
            NotFoundError: no such edge.
        """
        with self._store.read() as reader:
            return reader.edges([lookup.find(reader, id_or_prefix, "edges")])[0].edge

    def children(
        self,
        id_or_prefix: bytes | str | None = None,
        *,
        as_of: AsOf = NOW,
        include_superseded: bool = False,
    ) -> list[Node]:
        """Return the nodes that live in a world (default: the root), in the order of writing.

        Raises:
            InvalidInputError, NotFoundError: no such world at that time.
        """
        with self._store.read() as reader:
            moment = moment_of(reader, as_of, self._clock())
            given = ROOT_ID if id_or_prefix is None else id_or_prefix
            return list(lookup.children(reader, given, moment, include_superseded))

    def edges(
        self,
        id_or_prefix: bytes | str,
        direction: Direction = "out",
        types: Iterable[str] | None = None,
        *,
        as_of: AsOf = NOW,
        include_superseded: bool = False,
    ) -> list[Edge]:
        """Return the edges at a node that are not deleted, in the order of writing.

        Raises:
            InvalidInputError, NotFoundError: no such node at that time.
        """
        with self._store.read() as reader:
            return lookup.edges(
                reader,
                id_or_prefix,
                moment_of(reader, as_of, self._clock()),
                direction=direction,
                types=types,
                include_superseded=include_superseded,
            )

    def query(self) -> QueryBuilder:
        """Start a query: `db.query().seeds([id]).traverse("refers_to").execute()`."""
        return QueryBuilder(self._store, self._registry, self._search, self._clock)

    def run(self, spec: QuerySpec | Mapping[str, Any]) -> Subgraph:
        """Run a query given as plain data: a spec, or the JSON object that it comes from.

        Raises:
            InvalidInputError, NotFoundError: the spec is wrong, or names what is not there.
        """
        if not isinstance(spec, QuerySpec):
            spec = QuerySpec.from_dict(spec)
        return spec.apply(self.query()).execute()

    def recall(
        self,
        question: str,
        *,
        scope: Worlds | None = None,
        within: Sequence[Worlds] = (),
        k: int = 10,
        max_tokens: int | None = None,
        as_of: AsOf = NOW,
        types: Sequence[str] | None = None,
        include_superseded: bool = False,
        explain: bool = True,
        at: Instant | None = None,
        settings: RecallSettings | None = None,
    ) -> Recall:
        """Return what is remembered about a question, best first, and why.

        Lanes by words, by meaning and by names rank what can be seen inside `scope` (a world or
        several; the whole store if not given), and their ranks are fused. `within` are further
        worlds that a hit has to be inside of, one of each item, as well. At most `k` hits, of
        together at most `max_tokens` tokens (a quarter of the characters). With `types`, only
        nodes of these types, also those that are only a name; without, a name alone is no hit.
        `at` is when the question is asked, for words like "last week"; it hides nothing, as
        `as_of` does.

        Raises:
            InvalidInputError: an empty or huge question, or an option is wrong.
            NotFoundError: a scope does not exist.
            ProviderError: the embedder failed or is missing.
        """
        from worlddb.recall.recaller import recall

        found = recall(
            self._store,
            self._registry,
            self._search,
            self._clock(),
            question,
            scope=scope,
            within=within,
            k=k,
            max_tokens=max_tokens,
            as_of=as_of,
            types=types,
            include_superseded=include_superseded,
            explain=explain,
            at=at,
            settings=settings,
        )
        self._tally.note([hit.node.id for hit in found.hits])
        return found

    def reindex(
        self,
        embedder: Embedder | str | None = None,
        *,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> str:
        """Embed what has no vector yet, or everything by another embedder; return the model's name.

        Searches do the first by themselves; after a large load it is better done at once. The
        second can be stopped and goes on at the next call; until it is done, the old vectors serve.
        Either makes again what was lost of what is derived: words, vectors, composed worlds, keys
        of names, indexes of the database.

        Raises:
            ProviderError: the embedder failed.
            StorageError, ConflictError: the store cannot be written.
        """
        return self._search.reindex(embedder, on_progress)

    def conflicts(self, *, as_of: AsOf = NOW, include_settled: bool = False) -> list[Conflict]:
        """Return the recorded contradictions.

        Raises:
            InvalidInputError: a time without a zone.
        """
        with self._store.read() as reader:
            moment = moment_of(reader, as_of, self._clock())
            found = identity.conflicts(reader, moment)
        return [item for item in found if include_settled or not item.settled]

    def proposals(
        self, status: ProposalStatus | None = "pending", *, as_of: AsOf = NOW
    ) -> list[Proposal]:
        """Return merge proposals; `status=None` for all of them.

        Raises:
            InvalidInputError: no such status, or a time without a zone.
        """
        with self._store.read() as reader:
            return identity.proposals(reader, status, moment_of(reader, as_of, self._clock()))

    def equivalence_class(self, id_or_prefix: bytes | str, *, as_of: AsOf = NOW) -> set[Id]:
        """Return the ids of all nodes accepted as the same, this one among them.

        Raises:
            InvalidInputError, NotFoundError: no such node at that time.
        """
        with self._store.read() as reader:
            moment = moment_of(reader, as_of, self._clock())
            row, _ = lookup.find_node(reader, id_or_prefix, moment)
            rows = identity.accepted_class(reader, {row}, moment)
            return {node.id for node in reader.nodes(rows, moment.known).values()}

    def export_identity(self, id_or_prefix: bytes | str, *, as_of: AsOf = NOW) -> Identity:
        """Return everything accepted as the same as a node: names, sources, and the merges.

        Raises:
            InvalidInputError, NotFoundError: no such node at that time.
        """
        with self._store.read() as reader:
            moment = moment_of(reader, as_of, self._clock())
            row, _ = lookup.find_node(reader, id_or_prefix, moment)
            return identity.export(reader, row, moment)
