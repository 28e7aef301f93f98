"""Groups of reads that a session offers by name: derived indexes and listings.

    reader.texts     the full-text index           reader.placed   worlds, a page at a time
    reader.lookups   nodes by keys of their names  reader.sweep    whole worlds and edge types
    reader.derived   embeddings                    reader.scan     whole tables

Derived rows can be dropped and made again from the nodes. They are written inside `Store.derive`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from worlddb.model.records import Direction
from worlddb.store.rows import (
    AttributesRow,
    CauseRow,
    ClaimEdge,
    ConflictScan,
    CoverRow,
    EdgeScan,
    HistoryRow,
    InsideRow,
    ListedOnly,
    LookupsReached,
    ModelRow,
    NodeScan,
    NodeTraits,
    NoteRow,
    PageRow,
    PoolRow,
    PremiseRow,
    ProposalScan,
    RecallRow,
    ReferenceRow,
    RegistrationScan,
    StoredPool,
    StoredTokens,
    StoredVector,
    SummaryEnd,
    SummaryRow,
    TextHit,
    VectorRow,
    WholeSummary,
)


class TextSearch(Protocol):
    """The full-text index. Words are analysed before (`language.words`) and are never syntax."""

    def counts(self, words: Sequence[str], nodes: int) -> dict[str, int]:
        """Return about how many of all `nodes` have each word; exact while there are few."""

    def match(self, words: Sequence[str], most: int) -> list[TextHit]:
        """Return the nodes that have any of the words, best first."""

    def match_all(self, words: Sequence[str], phrase: bool, most: int) -> list[TextHit]:
        """Return the nodes that have all words, or have them as a phrase, best first."""

    def latest(self, words: Sequence[str], most: int) -> list[int]:
        """Return the newest nodes that have all words, newest first."""

    def named(self, words: str) -> list[int]:
        """Return the nodes whose name has the words as a phrase, by row."""

    def average_length(self) -> float:
        """Return how many words a node has on average."""


class KeyLookups(Protocol):
    """Nodes by keys of names, attributes and contents; written inside `Store.derive` or `write`.

    Keys are signed 64-bit numbers; different names may share one.
    """

    def is_begun(self, version: int) -> bool:
        """Return whether the keys were begun by this version of the code that makes them."""

    def begin(self, version: int) -> None:
        """Remove all keys and counts, and begin again; from now on moved nodes are recorded."""

    def reached(self) -> LookupsReached:
        """Return how far the index has come; (1, 0) in a new store."""

    def set_reached(self, node: int, note: int) -> None:
        """Record how far the index has come, and forget the moved nodes."""

    def moved(self) -> list[int]:
        """Return the nodes that were moved or erased since they were indexed, by row."""

    def put(self, rows: Iterable[tuple[int, int]]) -> None:
        """Add (key, node) pairs; a pair that is there stays."""

    def find(self, keys: Sequence[int], most: int) -> dict[int, list[int]]:
        """Return up to `most` nodes of each key, newest first; every key is in the result."""

    def find_rare(self, keys: Sequence[int], most: int) -> dict[int, list[int]]:
        """Return the nodes of each key, newest first; none for a key with more than `most`."""

    def counts(self, keys: Iterable[int]) -> dict[int, int]:
        """Return how many nodes have each key, each counted up to 1,000."""

    def names(self, world: int) -> int:
        """Return how many named nodes were counted in a world."""

    def add_names(self, names: Mapping[int, int]) -> None:
        """Add to the number of named nodes of worlds."""

    def attributes(self, nodes: Sequence[int]) -> list[AttributesRow]:
        """Return the attributes of nodes, one row per note that states some, latest last."""

    def attributes_after(self, note: int) -> list[AttributesRow]:
        """Return the attributes that notes above row `note` state, latest last."""


class Embeddings(Protocol):
    """Embeddings; written inside `Store.derive`."""

    def models(self) -> list[ModelRow]:
        """Return all models, the active one first."""

    def add_model(self, ident: str, dim: int, pooling: str) -> ModelRow:
        """Add a model without vectors; the first one of a store is active."""

    def activate(self, number: int) -> None:
        """Make a model the active one, and drop all others with their vectors."""

    def set_embedded(self, number: int, node: int) -> None:
        """Record the last node for which a model has vectors."""

    def set_composed(self, number: int, node: int, seq: int) -> None:
        """Record the last node and the commit up to which worlds are composed."""

    def start_pools(self, number: int, pooling: str) -> None:
        """Drop all pools of a model, to compose them again with another pooling."""

    def vectors(self, number: int, nodes: list[int]) -> list[VectorRow]:
        """Return the content vectors of those nodes that have one, in no order."""

    def vectors_after(self, number: int, node: int, seq: int) -> Iterator[VectorRow]:
        """Yield the effective vectors of nodes from `node` on, then of worlds composed after `seq`.

        Each node once, by row in both parts; the vector of a pool goes before that of the content.
        """

    def put_vectors(self, number: int, items: Iterable[tuple[int, bytes]]) -> None:
        """Write (node, content vector) pairs, replacing existing ones."""

    def tokens(self, number: int, nodes: list[int]) -> list[VectorRow]:
        """Return the word vectors of those nodes that have any, in no order."""

    def without_tokens(self, number: int, after: int, most: int) -> list[int]:
        """Return embedded nodes above row `after` with a text and no word vectors, by row."""

    def put_tokens(self, number: int, items: Iterable[tuple[int, bytes]]) -> None:
        """Write (node, word vectors) pairs, replacing existing ones."""

    def composed_after(self, number: int, seq: int) -> set[int]:
        """Return the worlds composed after `seq`, without their vectors."""

    def pools(self, number: int, nodes: list[int]) -> list[PoolRow]:
        """Return the pools of those nodes that are composed worlds, in no order."""

    def put_pools(self, number: int, pools: Iterable[PoolRow], seq: int) -> None:
        """Write pools as composed at commit `seq`, replacing existing ones."""

    def all_vectors(self) -> Iterator[StoredVector]:
        """Yield every content vector, by model and node."""

    def all_tokens(self) -> Iterator[StoredTokens]:
        """Yield the size of all word vectors, by model and node."""

    def all_pools(self) -> Iterator[StoredPool]:
        """Yield every pool, by model and node."""


class WorldPages(Protocol):
    """The present direct content of worlds, by page."""

    def latest(self, worlds: Iterable[int], before: int, now: int, most: int) -> list[int]:
        """Return children and present members of worlds below row `before`, newest first."""

    def candidates(
        self, worlds: Iterable[int], before: int, most: int, only: ListedOnly
    ) -> list[int]:
        """Return rows that may be children or members of worlds at a time, newest first.

        A superset: also nodes that were moved here since, or whose membership ended since.
        """

    def traits(self, first: int, last: int) -> list[NodeTraits]:
        """Return the immutable fields of the nodes from one row to another, by row."""

    def ending(self, first: int, last: int) -> list[int]:
        """Return the nodes from one row to another that have an end, by row."""

    def ended_later(self) -> list[int]:
        """Return the nodes whose end was changed after they were written, by row."""

    def typed(self, world: int, type_: str, start: str, after: int, most: int) -> list[int]:
        """Return children above row `after` of a type whose names begin with `start`, by row."""

    def holders(self, rows: Iterable[int]) -> set[int]:
        """Return the worlds that nodes live in, or are members of at any time."""

    def ended(self, rows: Iterable[int], at: int) -> set[int]:
        """Return those rows whose validity is over at `at`."""


class WorldTotals(Protocol):
    """Whole worlds and whole edge types, by row number, for the consolidator."""

    def worlds(self) -> list[int]:
        """Return all worlds that have a child or a member, by row."""

    def inside(self, worlds: Iterable[int]) -> list[InsideRow]:
        """Return the children and members of worlds, ended ones too, by world and row."""

    def covers(
        self, rows: Iterable[int], types: Sequence[str] | None, direction: Direction = "out"
    ) -> list[CoverRow]:
        """Return the undeleted edges of some types that leave ("out") or enter nodes, by row.

        Without types, all but memberships.
        """

    def saying(self, targets: Iterable[int], type_: str, said: Sequence[str]) -> list[int]:
        """Return undeleted edges of a type into nodes whose metadata has one of the JSON texts."""

    def saying_of(
        self, targets: Iterable[int], type_: str, said: Sequence[str], after: int = 0
    ) -> dict[int, list[int]]:
        """Return the same as `saying` for each of the nodes; of some it has none.

        Only edges in rows after `after`.
        """

    def references(self, rows: Iterable[int]) -> list[ReferenceRow]:
        """Return edges by row, without reading what their metadata say; for many at once."""

    def leaving(self, sources: Iterable[int], type_: str) -> list[ReferenceRow]:
        """Return the undeleted edges of a type from nodes, as `references` does."""

    def standing(
        self,
        targets: Iterable[int],
        type_: str,
        said: Mapping[str, str],
        after: tuple[int, int],
    ) -> list[ClaimEdge]:
        """Return edges as `saying` does, without ended and repeated ones.

        An edge is left out if it also has the second text of its pair in `said`, if its source
        ended by the first time of `after` and was created by the second, or if another edge stands
        for it. Edges that stand for others are never left out.
        """

    def noted(self, rows: Iterable[int], start: str) -> dict[int, list[str]]:
        """Return the sources of nodes that begin with `start`."""

    def summaries_in(self, worlds: Iterable[int], start: str) -> list[SummaryRow]:
        """Return the summaries in worlds that have a source which begins with `start`, by row."""

    def wholes(self, worlds: Iterable[int], start: str, now: int) -> list[WholeSummary]:
        """Return the live summaries of whole worlds that are unchanged since."""

    def summaries_below(self, rows: Iterable[int]) -> list[SummaryEnd]:
        """Return the summaries that summaries were derived from."""

    def typed(self, type_: str) -> Iterator[CauseRow]:
        """Yield every edge of a type, deleted ones too, by row."""

    def recalls(self, rows: Iterable[int]) -> list[RecallRow]:
        """Return age, recalls and links of nodes, by row."""

    def add_recalls(self, rows: Iterable[tuple[int, int, int]]) -> None:
        """Add (node, count, last time) to the recall counts; only inside `Store.derive`."""


class WholeTables(Protocol):
    """Whole tables by row, exactly as stored, for `check` and `export`."""

    def nodes(self, first: int = 0, last: int | None = None) -> Iterator[NodeScan]:
        """Yield the nodes from row `first` to `last`; all of them if `last` is None."""

    def edges(self, first: int = 0, last: int | None = None) -> Iterator[EdgeScan]:
        """Yield the edges from row `first` to `last`; all of them if `last` is None."""

    def notes(self, first: int = 0, last: int | None = None) -> Iterator[NoteRow]:
        """Yield the notes from row `first` to `last`; all of them if `last` is None."""

    def history(self) -> Iterator[HistoryRow]:
        """Yield all former values, by field, row and commit."""

    def pages(self) -> Iterator[PageRow]:
        """Yield all stored pages of sets, by world, kind and path."""

    def proposals(self) -> Iterator[ProposalScan]:
        """Yield all proposals, by edge."""

    def conflicts(self) -> Iterator[ConflictScan]:
        """Yield all conflicts, by edge."""

    def registrations(self) -> Iterator[RegistrationScan]:
        """Yield all custom edge types, by world and type."""

    def premises(self) -> Iterator[PremiseRow]:
        """Yield all premises of inferred edges, by premise and edge."""

    def lookups(self) -> Iterator[tuple[int, int]]:
        """Yield the (key, node) pairs of the name index."""

    def lookup_worlds(self) -> list[tuple[int, int]]:
        """Return the number of names that were counted in each world."""

    def recalls(self) -> list[tuple[int, int, int]]:
        """Return how often and when last nodes were recalled, by node."""

    def schema_problems(self) -> list[str]:
        """Return the differences of tables and indexes from those of a new store."""

    def edited_tables(self) -> list[str]:
        """Return the derived tables with rows that another program changed, added or removed."""

    def text_problems(self) -> list[str]:
        """Return the differences of the full-text index from one that is built anew."""
