"""The vectors of the nodes of one store, by one embedder.

A write never waits for a model: a node is embedded by the next search, or by `catch_up`. Each node
is embedded once, outside every lock, and its vector is stored. If another process has embedded the
same nodes meanwhile, its vectors are kept.

Some embedders also make *token vectors*, one for each word of a text (`read_texts`) or of a
question (`read_question`). The token vectors of a text are stored as one blob. They are never
composed, and are read only to rerank the best results of a search.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from worlddb.embed.embedder import Embedder, Pooling, Vector, checked
from worlddb.errors import (
    ConflictError,
    InvalidInputError,
    ProviderError,
    StorageError,
    WorldDBError,
)
from worlddb.index.composed_worlds import STORED, compose, compose_held, damaged, stored
from worlddb.model.records import decode_changes
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW, BodyRow, Head, ModelRow

TOKEN_DIM = 128  # numbers of a token vector; one byte each
TOKEN_DTYPE = np.dtype("<i1")
TOKENS_KEPT_BYTES = 48 << 20  # token vectors kept in memory: those of ten thousand turns
EMBED_BATCH = 2048  # texts per call of an embedder: an interruption loses no more than this
FOLLOWED_BATCH = 128  # the same beside other calls: closing waits for one batch
EARLY_MAX = 64  # texts that a recall embeds itself: a quarter of a second for a model
MISSING_MAX = 2_048  # newest nodes among which those without a vector are counted
PATIENCE_S = 0.25
"""How long a search waits for another writer before it keeps its vectors in memory only."""

POOLING_VERSION = 2
"""The stored labels of the poolings. A store with another label composes its worlds again."""

Tokens: TypeAlias = NDArray[np.int8]
Progress = Callable[[int, int], None]
"""Called with the number of embedded nodes and the number of all nodes."""


def late_interaction_scores(question: Tokens, texts: Sequence[Tokens]) -> NDArray[np.float64]:
    """Return a score per text: the best match for each word of the question, summed.

    A word counts by how far its best text is above the mean, so a word that all texts or no texts
    have decides nothing. All products are of whole numbers and exact.
    """
    if not texts or not len(question):
        return np.zeros(len(texts))
    # A row of zeros each, so that a text without words has a row, too.
    nothing = np.zeros((1, TOKEN_DIM), dtype=TOKEN_DTYPE)
    starts = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])])
    flat = np.concatenate([part for text in texts for part in (nothing, text)]).astype(np.float32)
    near = np.maximum.reduceat(question.astype(np.float32) @ flat.T, starts, axis=1)
    above = near.astype(np.float64) - near.mean(axis=1, dtype=np.float64)[:, None]
    # Summed word by word: a matrix product would round a text by its position.
    score: NDArray[np.float64] = (above * above.max(axis=1)[:, None]).sum(axis=0)
    return score


def embedded_text(body: BodyRow) -> str:
    """Return the text of a node to embed."""
    both = body.name and body.content
    return f"{body.name}: {body.content}" if both else body.name or body.content


def pooling_label(pooling: Pooling) -> str:
    """Return the label under which a store records its pooling."""
    return f"{pooling} {POOLING_VERSION}"


def token_rows(row: int, body: bytes) -> Tokens:
    """Return the token vectors of a node from their stored bytes.

    Raises:
        CorruptionError: they have the wrong length.
    """
    if len(body) % TOKEN_DIM:
        raise damaged(row)
    return np.frombuffer(body, dtype=TOKEN_DTYPE).reshape(-1, TOKEN_DIM)


class KeptTokens:
    """The token vectors that were read last; nothing is kept of what was erased."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[int, Tokens] = {}
        self._bytes = 0
        self._seq = -1

    def of(self, reader: Reader, rows: Iterable[int]) -> dict[int, Tokens]:
        """Return the token vectors of some nodes, as far as they are kept."""
        with self._lock:
            if reader.is_uncommitted:
                return {}
            self._follow(reader)
            kept = self._kept
            return {row: kept[row] for row in rows if row in kept}

    def keep(self, reader: Reader, tokens: Mapping[int, Tokens]) -> None:
        """Keep token vectors that a snapshot has."""
        if reader.is_uncommitted:
            return
        with self._lock:
            self._follow(reader)
            if reader.head().seq < self._seq:
                return  # They may have been erased since.
            for row, found in tokens.items():
                if row not in self._kept:
                    self._kept[row] = found
                    self._bytes += found.nbytes
            while self._bytes > TOKENS_KEPT_BYTES:
                self._bytes -= self._kept.pop(next(iter(self._kept))).nbytes

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._kept, self._bytes = {}, 0

    def _follow(self, reader: Reader) -> None:
        """Drop everything if a commit has erased something since."""
        seq = reader.head().seq
        if self._kept and seq > self._seq:
            commits = reader.commits(self._seq, None, False)
            changes = (change for one in commits for change in decode_changes(one.changes))
            if any(change.kind == "erase" for change in changes):
                self._kept, self._bytes = {}, 0
        self._seq = max(seq, self._seq)


class Vectors:
    """The vectors of one store by one embedder."""

    def __init__(self, store: Store, embedder: Embedder, pooling: Pooling) -> None:
        self._store = store
        self._embedder = embedder
        self._pooling: Pooling = pooling
        self._unsaved: dict[int, bytes] = {}
        self._unsaved_tokens: dict[int, bytes] = {}
        self._tokens = KeptTokens()
        self._taking_over = False
        self._turn = threading.Lock()
        self._early: dict[int, bytes] = {}
        self.is_followed = False
        """Whether a thread embeds in the background; then a recall stores no vector."""

    @property
    def model_id(self) -> str:
        """The name of the embedder, as the store records it."""
        return self._embedder.model_id

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return self._embedder.dim

    def ask(self, question: str) -> Vector:
        """Return the vector of a question.

        Raises:
            ProviderError: the embedder failed.
        """
        vector: Vector = checked(self._embedder, [question], "query")[0]
        return vector

    def ask_weighed(self, parts: Sequence[tuple[str, float]], plain: Vector) -> Vector:
        """Return the vector of weighted words, if the embedder supports weights; else `plain`."""
        embed = getattr(self._embedder, "embed_weighed", None)
        if embed is None:
            return plain
        vector: Vector = embed([word for word, _ in parts], [weight for _, weight in parts])
        return vector if vector.any() else plain

    def senses(self, text: str) -> tuple[Any, float | None]:
        """Return two optional abilities of an embedder; None for each that it lacks.

        The first compares words with texts (`WordLlamaEmbedder.lacking`), if the embedder reads the
        script of `text`. The second is the cosine of unrelated texts.
        """
        lacking: Any = getattr(self._embedder, "lacking", None)
        return lacking if self.reads(text) else None, getattr(self._embedder, "usual_cosine", None)

    def forget(self) -> None:
        """Drop the token vectors that were kept, because something was erased."""
        self._tokens.clear()

    def word_vectors(self, text: str) -> Callable[[Sequence[str]], NDArray[np.float32]] | None:
        """Return a function that embeds single words; None if it cannot in the script of a text."""
        found: Any = getattr(self._embedder, "word_vectors", None)
        return found if found is not None and self.reads(text) else None

    @property
    def reads_whole(self) -> bool:
        """Whether the embedder reads a text as a whole instead of adding up word vectors."""
        other = ("word_vectors", "read_question", "is_spelling")
        return not any(getattr(self._embedder, name, None) for name in other)

    def reads(self, text: str) -> bool:
        """Return whether the embedder knows the script of a text; True if it does not say."""
        knows: Any = getattr(self._embedder, "reads", None)
        return knows is None or bool(knows(text))

    def ask_tokens(self, question: str) -> Tokens | None:
        """Return the token vectors of a question; None if the embedder has none.

        Raises:
            ProviderError: the embedder failed.
        """
        read: Any = getattr(self._embedder, "read_question", None)
        return None if read is None else self._checked_tokens(read(question))

    def load_tokens(self, reader: Reader, rows: list[int]) -> list[Tokens]:
        """Return the token vectors of each node, without a row if a node has none.

        Raises:
            CorruptionError: stored token vectors have the wrong length.
        """
        model = self.model(reader)
        found = self._tokens.of(reader, rows)
        left = [row for row in rows if row not in found]
        unsaved = self._unsaved_tokens
        found |= {row: token_rows(row, unsaved[row]) for row in left if row in unsaved}
        if model is not None and left:
            read = reader.derived.tokens(model.number, left)
            new = {row: token_rows(row, body) for row, body in read}
            self._tokens.keep(reader, new)
            found |= new
        nothing = np.zeros((0, TOKEN_DIM), dtype=TOKEN_DTYPE)
        return [found.get(row, nothing) for row in rows]

    def _embed_tokens(self, texts: Sequence[str]) -> list[bytes]:
        """Return the stored bytes of the texts' token vectors; empty if the embedder has none."""
        read: Any = getattr(self._embedder, "read_texts", None)
        if read is None or not texts:
            return []
        try:
            return [self._checked_tokens(tokens).tobytes() for tokens in read(list(texts))]
        except WorldDBError:
            raise
        except Exception as error:
            raise ProviderError(f"{self.model_id}: failed to read texts: {error}") from error

    def _checked_tokens(self, tokens: Tokens) -> Tokens:
        if tokens.dtype != TOKEN_DTYPE or tokens.ndim != 2 or tokens.shape[1] != TOKEN_DIM:
            raise ProviderError(
                f"{self.model_id}: token vectors must be rows of {TOKEN_DIM} int8, "
                f"not {tokens.dtype} {tokens.shape}"
            )
        return tokens

    @contextmanager
    def snapshot(self) -> Iterator[Reader]:
        """Yield a snapshot whose nodes are all embedded; missing vectors are made before it.

        If a thread embeds, this neither embeds nor waits: `load` makes the missing vectors.

        Raises:
            ProviderError, ConflictError: as `catch_up`.
        """
        with self._store.read() as reader:
            if self.is_followed or self.is_current(reader):
                yield reader
                return
        self.catch_up()
        with self._store.read() as reader:
            yield reader

    def is_current(self, reader: Reader) -> bool:
        """Return whether all nodes of a snapshot are embedded and all worlds composed."""
        return self._has_reached(self._own(reader), reader.head())

    def catch_up(self, on_progress: Progress = lambda done, total: None) -> None:
        """Embed every node without a vector, and compose worlds up to the last commit.

        If the store cannot be written, vectors stay in memory while it is open.

        Raises:
            ProviderError: the embedder failed; vectors made before the failure are kept.
            ConflictError: the store holds the vectors of another model.
        """
        with self._store.read() as reader:
            if self.is_current(reader):
                return
            is_uncommitted = reader.is_uncommitted
        if is_uncommitted:
            # Another thread may hold the lock and wait for the end of this transaction.
            self._follow(on_progress)
            return
        with self._turn:
            self._follow(on_progress)

    def _follow(self, on_progress: Progress) -> None:
        """Catch up with the commit that is the last one now; later commits wait for the next call.

        A thread that waited for its turn usually finds nothing to do.
        """
        goal: Head | None = None
        while True:
            with self._store.read() as reader:
                goal = goal or reader.head()
                model = self._own(reader)
                if self._has_reached(model, goal):
                    return
                done = max(1 if model is None else model.embedded, *self._unsaved, 1)
                batch = FOLLOWED_BATCH if self.is_followed else EMBED_BATCH
                rows = range(done + 1, min(done + 1 + batch, goal.nodes + 1))
                texts = [embedded_text(body) for body in reader.bodies(rows)] if rows else []
            vectors = checked(self._embedder, texts, "document")
            made = {row: stored(vector) for row, vector in zip(rows, vectors, strict=True)}
            tokens = dict(zip(rows, self._embed_tokens(texts), strict=False))
            if not self._save(made, tokens):
                if not made:
                    return
                self._unsaved.update(made)
                self._unsaved_tokens.update(tokens)
            on_progress(min(done + len(made), goal.nodes), goal.nodes)

    def _has_reached(self, model: ModelRow | None, goal: Head) -> bool:
        """Return whether a commit is completely embedded, composed and stored."""
        if model is None or self._unsaved or model.embedded < goal.nodes:
            return False
        return model.seq >= goal.seq and model.pooling == pooling_label(self._pooling)

    def complete(self, on_progress: Progress = lambda done, total: None) -> None:
        """Catch up, and make sure that all vectors are stored.

        Raises:
            ProviderError: the embedder failed; vectors made before are kept.
            StorageError, ConflictError: the store cannot be written.
        """
        # The write session is opened first: nothing is embedded that cannot be stored.
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
        """Make lost token vectors again; texts that have none are read in vain."""
        after = ROOT_ROW
        while getattr(self._embedder, "read_texts", None) is not None:
            with self._store.read() as reader:
                model = self._own(reader)
                number = -1 if model is None else model.number
                rows = reader.derived.without_tokens(number, after, EMBED_BATCH)
                texts = [embedded_text(body) for body in reader.bodies(rows)]
            if not rows:
                return
            made = zip(rows, self._embed_tokens(texts), strict=True)
            if found := [(row, body) for row, body in made if body]:
                with self._store.derive() as session:
                    session.derived.put_tokens(number, found)
            after = rows[-1]

    def take_over(self, on_progress: Progress = lambda done, total: None) -> None:
        """Embed all nodes with this embedder, then replace the vectors of the present one.

        The old vectors serve until then. After an interruption the next call continues.

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
        """Return the stored state of this embedder's vectors; None if there are none."""
        return next((row for row in reader.derived.models() if row.id == self.model_id), None)

    def _own(self, reader: Reader) -> ModelRow | None:
        """Return `model(reader)`, unless the store has another model."""
        models = reader.derived.models()
        active = next((row.id for row in models if row.active), None)
        if active is not None and active != self.model_id and not self._taking_over:
            raise ConflictError(
                f"{self._store.path}: was embedded anew by {active} meanwhile; close it and open "
                "it again"
            )
        return next((row for row in models if row.id == self.model_id), None)

    def _save(self, made: dict[int, bytes], tokens: dict[int, bytes]) -> bool:
        """Store new vectors; return whether that was possible."""
        try:
            self._keep(made, tokens, PATIENCE_S)
        except (StorageError, ConflictError, InvalidInputError):
            # Read-only, locked, inside the caller's own transaction, or another model's by now.
            return False
        return True

    def _keep(
        self, made: dict[int, bytes], tokens: dict[int, bytes], patience_s: float | None
    ) -> None:
        """Store new vectors and earlier unsaved ones, and compose worlds.

        Raises:
            StorageError, ConflictError, InvalidInputError: the store cannot be written now.
        """
        with self._store.derive(patience_s) as session:
            derived = session.derived
            label = pooling_label(self._pooling)
            model = self._own(session) or derived.add_model(self.model_id, self.dim, label)
            self._refuse_other_dim(model)
            if model.pooling != label:
                derived.start_pools(model.number, label)
                model = model._replace(pooling=label, composed=1, seq=-1)
            # Only the next vectors in sequence: another process may have stored more meanwhile.
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
        """Raise if the embedder has changed the length of its vectors, but not its name."""
        if model.dim != self.dim:
            raise ConflictError(
                f"{self._store.path}: its vectors of {model.id} have {model.dim} numbers, those of "
                f"this embedder {self.dim}; give it another model_id, and reindex"
            )

    def load(self, reader: Reader, rows: list[int]) -> Vector:
        """Return the effective vectors of nodes, one row each; zero for a node without one.

        Raises:
            ConflictError: the stored vectors of this embedder have another length.
            CorruptionError: a stored vector has the wrong length.
        """
        found, model = self._contents(reader, rows)
        if model is not None and rows:
            # The last vector of a node counts: the composed one, if there is one.
            found += [(pool.node, pool.vector) for pool in reader.derived.pools(model.number, rows)]
        return self._matrix(rows, found)

    def load_then(
        self, reader: Reader, rows: list[int], above: Sequence[Collection[int]]
    ) -> tuple[Vector, bool]:
        """Return the effective vectors of nodes at an earlier commit, and whether all have one.

        `above` holds for each node the places in `rows` of the worlds in which it counted. All
        nodes that counted in a world must be among the rows, which are ascending.

        Raises:
            ConflictError, CorruptionError: as `load`.
        """
        before = self._embedded(reader)
        matrix = self._matrix(rows, self._contents(reader, rows)[0])
        # Another thread may store vectors meanwhile; only those present before and after are
        # certain.
        last = min(before, self._embedded(reader))
        there = [
            [up for up in ups if rows[up] <= last] if row <= last else []
            for row, ups in zip(rows, above, strict=True)
        ]
        compose_held(matrix, there, self._pooling)
        return matrix, not rows or rows[-1] <= last

    def _embedded(self, reader: Reader) -> int:
        """Return the last row with a vector, stored or in memory."""
        model = self.model(reader)
        return max(ROOT_ROW if model is None else model.embedded, *self._unsaved, ROOT_ROW)

    def _contents(
        self, reader: Reader, rows: list[int]
    ) -> tuple[list[tuple[int, bytes]], ModelRow | None]:
        """Return (row, content vector) of the nodes that have one, and their model."""
        model = self.model(reader)
        if model is not None:
            self._refuse_other_dim(model)
        found = [(row, body) for row in rows if (body := self._unsaved.get(row)) is not None]
        if self.is_followed and rows:
            found += self._made_early(reader, rows)
        if model is not None and rows:
            found += reader.derived.vectors(model.number, rows)
        return found, model

    def _made_early(self, reader: Reader, rows: list[int]) -> list[tuple[int, bytes]]:
        """Return vectors, made now, of the newest of the nodes that have none yet."""
        last = self._embedded(reader)
        waiting = [row for row in rows if row > last]
        new = [row for row in waiting if row not in self._early][-EARLY_MAX:]
        if new:
            texts = {body.row: embedded_text(body) for body in reader.bodies(new)}
            vectors = checked(self._embedder, list(texts.values()), "document")
            self._early.update(zip(texts, map(stored, vectors), strict=True))
        for row in [row for row in list(self._early) if row <= last]:
            self._early.pop(row, None)
        return [(row, body) for row in waiting if (body := self._early.get(row)) is not None]

    def missing(self, reader: Reader, keep: Callable[[Iterable[int]], Collection[int]]) -> int:
        """Return how many of the newest nodes accepted by `keep` have no vector yet."""
        last, newest = self._embedded(reader), reader.head().nodes
        rows = range(max(last, newest - MISSING_MAX) + 1, newest + 1)
        left = [row for row in rows if row not in self._early]
        return len(keep(left)) if left else 0

    def _matrix(self, rows: list[int], found: list[tuple[int, bytes]]) -> Vector:
        """Return vectors as a matrix, one row for each of `rows`; a node's last vector counts."""
        matrix = np.zeros((len(rows), self.dim), dtype=np.float32)
        if found:
            place = {row: number for number, row in enumerate(rows)}
            size = STORED.itemsize * self.dim
            for row, body in found:
                if len(body) != size:
                    raise damaged(row)
            bodies = np.frombuffer(b"".join([body for _, body in found]), dtype=STORED)
            both = bodies.reshape(len(found), -1)
            if [row for row, _ in found] == rows:
                return both.astype(np.float32)
            matrix[[place[row] for row, _ in found]] = both
        return matrix


class TokenReader:
    """Scores candidates word by word, with the token vectors in the store."""

    def __init__(
        self, asked: Tokens, reader: Reader, vectors: Vectors, rows: Sequence[int]
    ) -> None:
        self._asked = asked
        self._reader = reader
        self._vectors = vectors
        self._rows = rows

    def read(self, places: Sequence[int]) -> NDArray[np.float64]:
        """Return the scores of the candidates at some positions."""
        rows = [self._rows[at] for at in places]
        return late_interaction_scores(self._asked, self._vectors.load_tokens(self._reader, rows))
