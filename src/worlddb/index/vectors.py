"""Tokens: the vectors of single words, kept beside the vector of their text.

Only some embedders have them: those with `read_question` and `read_texts`. A text's token vectors
are one blob, row after row; they are never composed, and read only for the best of a search.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from worlddb.embed.compose import Pooling, Vector
from worlddb.embed.protocol import Embedder, checked
from worlddb.errors import (
    ConflictError,
    InvalidInputError,
    ProviderError,
    StorageError,
    WorldDBError,
)
from worlddb.index.composed_worlds import STORED, compose, compose_held, damaged, stored
from worlddb.store.protocol import ROOT_ROW, BodyRow, Head, ModelRow, Reader, Store

DIM = 128
TOKEN_DTYPE = np.dtype("<i1")

Tokens: TypeAlias = NDArray[np.int8]
Scores: TypeAlias = NDArray[np.float64]


def has_tokens(embedder: Embedder) -> bool:
    """Return whether an embedder has vectors of single words."""
    return getattr(embedder, "read_texts", None) is not None


def tokens_of(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    """Return the token vectors of texts as the store keeps them; nothing if there are none.

    Raises:
        ProviderError: the embedder failed.
    """
    read: Any = getattr(embedder, "read_texts", None)
    if read is None or not texts:
        return []
    try:
        return [_checked(embedder, tokens).tobytes() for tokens in read(list(texts))]
    except WorldDBError:
        raise
    except Exception as error:
        raise ProviderError(f"{embedder.model_id}: failed to read texts: {error}") from error


def asked_tokens(embedder: Embedder, question: str) -> Tokens | None:
    """Return the token vectors of a question; None if the embedder has none.

    Raises:
        ProviderError: the embedder failed.
    """
    read: Any = getattr(embedder, "read_question", None)
    return None if read is None else _checked(embedder, read(question))


def _checked(embedder: Embedder, tokens: Tokens) -> Tokens:
    if tokens.dtype != TOKEN_DTYPE or tokens.ndim != 2 or tokens.shape[1] != DIM:
        raise ProviderError(
            f"{embedder.model_id}: token vectors must be rows of {DIM} int8, "
            f"not {tokens.dtype} {tokens.shape}"
        )
    return tokens


def loaded_tokens(row: int, body: bytes) -> Tokens:
    """Return the token vectors of a node.

    Raises:
        CorruptionError: they cannot be such.
    """
    if len(body) % DIM:
        raise damaged(row)
    return np.frombuffer(body, dtype=TOKEN_DTYPE).reshape(-1, DIM)


def read_closely(asked: Tokens, texts: Sequence[Tokens]) -> Scores:
    """Return how well each text answers: how near it comes to each word of the question, summed.

    A word of the question counts by how far its best text is above the mean: a word that all or
    none of the texts have decides nothing. All products are of whole numbers and exact.
    """
    if not texts or not len(asked):
        return np.zeros(len(texts))
    # One row of zeros each: a text of no words is near to nothing, and yet has a place.
    rows = [np.concatenate((np.zeros((1, DIM), dtype=TOKEN_DTYPE), text)) for text in texts]
    starts = np.cumsum([0, *(len(row) for row in rows[:-1])])
    flat = np.concatenate(rows).astype(np.float32)
    near = np.maximum.reduceat(asked.astype(np.float32) @ flat.T, starts, axis=1)
    above = near.astype(np.float64) - near.mean(axis=1, dtype=np.float64)[:, None]
    # Summed word by word, not as a product: that would round a text by where it stands.
    score: Scores = (above * above.max(axis=1)[:, None]).sum(axis=0)
    return score


# Vectors: embeddings that follow the nodes.
#
# Writing never waits for a model: a node's vector is made when somebody first searches, or when
# `catch_up` is called. It is made once, outside every lock, and kept in the store; another process
# that embedded the same nodes meanwhile has simply been faster.


EMBED_BATCH = 2048
PATIENCE_S = 0.25
"""How long a search waits for another writer before it keeps its vectors to itself."""

Progress = Callable[[int, int], None]


def embedded_text(body: BodyRow) -> str:
    """Return what stands for a node when it is embedded."""
    both = body.name and body.content
    return f"{body.name}: {body.content}" if both else body.name or body.content


class Vectors:
    """The embeddings of one store by one embedder."""

    def __init__(self, store: Store, embedder: Embedder, pooling: Pooling) -> None:
        self._store = store
        self._embedder = embedder
        self._pooling: Pooling = pooling
        self._unsaved: dict[int, bytes] = {}
        self._unsaved_tokens: dict[int, bytes] = {}
        self._taking_over = False
        self._turn = threading.Lock()

    @property
    def model_id(self) -> str:
        """The embedder's name, as the store records it."""
        return self._embedder.model_id

    @property
    def dim(self) -> int:
        """How many numbers a vector has."""
        return self._embedder.dim

    def ask(self, question: str) -> Vector:
        """Return the vector of a question.

        Raises:
            ProviderError: the embedder failed.
        """
        vector: Vector = checked(self._embedder, [question], "query")[0]
        return vector

    def ask_weighed(self, parts: Sequence[tuple[str, float]], plain: Vector) -> Vector:
        """Return a question's vector with its words weighed, if the embedder can; else `plain`."""
        embed = getattr(self._embedder, "embed_weighed", None)
        if embed is None:
            return plain
        vector: Vector = embed([word for word, _ in parts], [weight for _, weight in parts])
        return vector if vector.any() else plain

    def ask_tokens(self, question: str) -> Tokens | None:
        """Return the token vectors of a question; None if the embedder has none.

        Raises:
            ProviderError: the embedder failed.
        """
        return asked_tokens(self._embedder, question)

    def load_tokens(self, reader: Reader, rows: list[int]) -> list[Tokens]:
        """Return the token vectors of nodes; no row where there are none.

        Raises:
            CorruptionError: stored token vectors cannot be such.
        """
        model = self.model(reader)
        found = {row: body for row in rows if (body := self._unsaved_tokens.get(row)) is not None}
        if model is not None:
            found.update(reader.derived.tokens(model.number, rows))
        return [loaded_tokens(row, found.get(row, b"")) for row in rows]

    def catch_up(self, on_progress: Progress = lambda done, total: None) -> None:
        """Embed every node that has no vector yet, and compose worlds up to the last commit.

        Where nothing may be written, the vectors are kept for as long as the store is open.

        Raises:
            ProviderError: the embedder failed; what was embedded before is kept.
            ConflictError: the store holds another model's vectors.
        """
        with self._store.read() as reader:
            if self._has_reached(self._own(reader), reader.head()):
                return
            is_uncommitted = reader.is_uncommitted
        if is_uncommitted:
            # Whoever has the turn may be waiting for the end of this very transaction.
            self._follow(on_progress)
            return
        with self._turn:
            self._follow(on_progress)

    def _follow(self, on_progress: Progress) -> None:
        """Catch up with the last commit; others may land meanwhile, and are for the next time.

        It is the last as of one's turn: whoever came while we waited has nothing left to do.
        """
        goal: Head | None = None
        while True:
            with self._store.read() as reader:
                goal = goal or reader.head()
                model = self._own(reader)
                if self._has_reached(model, goal):
                    return
                done = max(1 if model is None else model.embedded, *self._unsaved, 1)
                rows = range(done + 1, min(done + 1 + EMBED_BATCH, goal.nodes + 1))
                texts = [embedded_text(body) for body in reader.bodies(rows)] if rows else []
            vectors = checked(self._embedder, texts, "document")
            made = {row: stored(vector) for row, vector in zip(rows, vectors, strict=True)}
            tokens = dict(zip(rows, tokens_of(self._embedder, texts), strict=False))
            if not self._save(made, tokens):
                if not made:
                    return
                self._unsaved.update(made)
                self._unsaved_tokens.update(tokens)
            on_progress(min(done + len(made), goal.nodes), goal.nodes)

    def _has_reached(self, model: ModelRow | None, goal: Head) -> bool:
        """Return whether all of a commit is embedded and composed, and kept in the store."""
        if model is None or self._unsaved or model.embedded < goal.nodes:
            return False
        return model.seq >= goal.seq and model.pooling == self._pooling

    def complete(self, on_progress: Progress = lambda done, total: None) -> None:
        """Catch up, and make sure that the store keeps it.

        Raises:
            ProviderError: the embedder failed; what was embedded before is kept.
            StorageError, ConflictError: the store cannot be written.
        """
        # Asked for first: what cannot be kept is not embedded.
        with self._store.derive() as session:
            goal = session.head()
        while True:
            self.catch_up(on_progress)
            self._keep({}, {}, None)
            with self._store.read() as reader:
                if self._has_reached(self._own(reader), goal):
                    break
        self._complete_tokens()

    def _complete_tokens(self) -> None:
        """Make token vectors that were lost; some texts have none, and are read in vain."""
        after = ROOT_ROW
        while has_tokens(self._embedder):
            with self._store.read() as reader:
                model = self._own(reader)
                number = -1 if model is None else model.number
                rows = reader.derived.without_tokens(number, after, EMBED_BATCH)
                texts = [embedded_text(body) for body in reader.bodies(rows)]
            if not rows:
                return
            made = zip(rows, tokens_of(self._embedder, texts), strict=True)
            if found := [(row, body) for row, body in made if body]:
                with self._store.derive() as session:
                    session.derived.put_tokens(number, found)
            after = rows[-1]

    def take_over(self, on_progress: Progress = lambda done, total: None) -> None:
        """Embed everything by this embedder beside the present one's vectors, then replace them.

        Stopped half-way, the next call goes on where this one was.

        Raises:
            ProviderError: the embedder failed.
            StorageError, ConflictError: the store cannot be written.
        """
        self._taking_over = True
        try:
            while True:
                self.complete(on_progress)
                with self._store.derive() as session:
                    model = self.model(session)
                    if model is not None and model.embedded >= session.head().nodes:
                        session.derived.activate(model.number)
                        return
        finally:
            self._taking_over = False

    def model(self, reader: Reader) -> ModelRow | None:
        """Return how far this embedder's vectors have come."""
        return next((row for row in reader.derived.models() if row.id == self.model_id), None)

    def _own(self, reader: Reader) -> ModelRow | None:
        """Return the same, if the store has not been re-embedded by another model meanwhile.

        Raises:
            ConflictError: it has.
        """
        models = reader.derived.models()
        active = next((row.id for row in models if row.active), None)
        if active is not None and active != self.model_id and not self._taking_over:
            raise ConflictError(
                f"{self._store.path}: was embedded anew by {active} meanwhile; close it and open "
                "it again"
            )
        return next((row for row in models if row.id == self.model_id), None)

    def _save(self, made: dict[int, bytes], tokens: dict[int, bytes]) -> bool:
        """Keep new vectors in the store; return whether that was possible."""
        try:
            self._keep(made, tokens, PATIENCE_S)
        except (StorageError, ConflictError, InvalidInputError):
            # Read-only, locked for long, inside the caller's own transaction, or another model's.
            return False
        return True

    def _keep(
        self, made: dict[int, bytes], tokens: dict[int, bytes], patience_s: float | None
    ) -> None:
        """Write new vectors and those that could not be written before, and compose worlds.

        Raises:
            StorageError, ConflictError, InvalidInputError: nothing can be written now.
        """
        with self._store.derive(patience_s) as session:
            derived = session.derived
            model = self._own(session) or derived.add_model(
                self.model_id, self._embedder.dim, self._pooling
            )
            self._refuse_other_dim(model)
            if model.pooling != self._pooling:
                derived.start_pools(model.number, self._pooling)
                model = model._replace(pooling=self._pooling, composed=1, seq=-1)
            # Only what joins on: another process may have come further meanwhile.
            made = {**self._unsaved, **made}
            fresh = {row: body for row, body in made.items() if row > model.embedded}
            if fresh and min(fresh) == model.embedded + 1:
                derived.put_vectors(model.number, fresh.items())
                tokens = {**self._unsaved_tokens, **tokens}
                derived.put_tokens(
                    model.number, ((row, tokens[row]) for row in fresh if tokens.get(row))
                )
                derived.set_embedded(model.number, max(fresh))
                model = model._replace(embedded=max(fresh))
            compose(session, model, self._pooling)
        self._unsaved.clear()
        self._unsaved_tokens.clear()

    def _refuse_other_dim(self, model: ModelRow) -> None:
        """Stop if the embedder has changed and kept its name."""
        if model.dim != self._embedder.dim:
            raise ConflictError(
                f"{self._store.path}: its vectors of {model.id} have {model.dim} numbers, those of "
                f"this embedder {self._embedder.dim}; give it another model_id, and reindex"
            )

    def load(self, reader: Reader, rows: list[int]) -> Vector:
        """Return the effective vectors of nodes, one row each; zero where there is none.

        Raises:
            ConflictError: this embedder's vectors were of another length before.
            CorruptionError: a stored vector cannot be one.
        """
        found, model = self._contents(reader, rows)
        if model is not None and rows:
            # A later vector of the same node wins: composed before content.
            found += [(pool.node, pool.vector) for pool in reader.derived.pools(model.number, rows)]
        return self._matrix(rows, found)

    def load_then(
        self, reader: Reader, rows: list[int], above: Sequence[int]
    ) -> tuple[Vector, bool]:
        """Return the effective vectors of nodes as of another time, and whether all are embedded.

        `above` has for each node the place in `rows` of the world it counted in then, and -1 for
        nowhere. All that counted in a world must be among the rows, which are in order.

        Raises:
            ConflictError: this embedder's vectors were of another length before.
            CorruptionError: a stored vector cannot be one.
        """
        before = self._embedded(reader)
        matrix = self._matrix(rows, self._contents(reader, rows)[0])
        # Others may keep in the store, or add, what was not kept before: what was seen twice is so.
        last = min(before, self._embedded(reader))
        there = [
            up if row <= last and up >= 0 and rows[up] <= last else -1
            for row, up in zip(rows, above, strict=True)
        ]
        compose_held(matrix, there, self._pooling)
        return matrix, not rows or rows[-1] <= last

    def _embedded(self, reader: Reader) -> int:
        """Return the last node that has a vector, in the store or not yet."""
        model = self.model(reader)
        return max(ROOT_ROW if model is None else model.embedded, *self._unsaved, ROOT_ROW)

    def _contents(
        self, reader: Reader, rows: list[int]
    ) -> tuple[list[tuple[int, bytes]], ModelRow | None]:
        """Return (row, content vector) of those nodes that have one, and the model they are of."""
        model = self.model(reader)
        if model is not None:
            self._refuse_other_dim(model)
        found = [(row, body) for row in rows if (body := self._unsaved.get(row)) is not None]
        if model is not None and rows:
            found += reader.derived.vectors(model.number, rows)
        return found, model

    def _matrix(self, rows: list[int], found: list[tuple[int, bytes]]) -> Vector:
        """Return vectors as a matrix, one row for each of `rows`; the last one of a node counts."""
        matrix = np.zeros((len(rows), self._embedder.dim), dtype=np.float32)
        if found:
            place = {row: number for number, row in enumerate(rows)}
            size = STORED.itemsize * self._embedder.dim
            for row, body in found:
                if len(body) != size:
                    raise damaged(row)
            bodies = np.frombuffer(b"".join(body for _, body in found), dtype=STORED)
            matrix[[place[row] for row, _ in found]] = bodies.reshape(len(found), -1)
        return matrix
