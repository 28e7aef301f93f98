"""The search state of one open store: its vectors, its held worlds, its whole-store index.

No library is imported before the first search that needs it, and no embedder is loaded before.
"""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from inspect import getattr_static
from typing import TYPE_CHECKING, Literal

from worlddb.errors import ConflictError, InvalidInputError, ProviderError
from worlddb.model.inputs import encode_text
from worlddb.store.interface import Reader, Store
from worlddb.view.visibility import Moment

if TYPE_CHECKING:
    from worlddb.embed.embedder import Embedder
    from worlddb.index.held_world import HeldWorld, HeldWorlds
    from worlddb.index.store_search import StoreSearch
    from worlddb.index.vectors import Vectors

NO_EMBEDDER = "none"
POOLINGS = ("attention", "mean")
MODEL_ID_BYTES_MAX = 4096  # stored with every store; longer than any path or model name in use

Progress = Callable[[int, int], None]
"""Called with how many nodes are done, and how many there are."""


class Search:
    """The search of one open store."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | str | None,
        pooling: Literal["attention", "mean"],
        models_dir: str | os.PathLike[str] | None,
    ) -> None:
        if pooling not in POOLINGS:
            raise InvalidInputError(f"pooling {pooling!r}: use one of {', '.join(POOLINGS)}")
        self._store = store
        self._given = embedder
        self._models_dir = models_dir
        self._pooling: Literal["attention", "mean"] = pooling
        self._lock = threading.Lock()
        self._vectors: Vectors | None = None
        self._interiors: HeldWorlds | None = None
        self._wide: StoreSearch | None = None
        if embedder is not None and embedder != NO_EMBEDDER:
            self._check_model(self._made(embedder))

    @property
    def has_vectors(self) -> bool:
        """Whether this store was opened with an embedder."""
        return self._given != NO_EMBEDDER

    def vectors(self) -> Vectors:
        """Return the vectors of this store.

        Raises:
            InvalidInputError: the store was opened without an embedder.
            ProviderError: the recorded embedder is not one of WorldDB's own.
        """
        with self._lock:
            if self._vectors is None:
                from worlddb.index.vectors import Vectors

                self._vectors = Vectors(self._store, self._embedder(), self._pooling)
            return self._vectors

    def _embedder(self) -> Embedder:
        if self._given == NO_EMBEDDER:
            raise InvalidInputError("opened with embedder='none'; open it with one to use vectors")
        if self._given is not None:
            return self._made(self._given)
        from worlddb.embed.embedder_catalog import DEFAULT

        recorded = self._recorded()
        try:
            return self._made(DEFAULT if recorded is None else recorded)
        except InvalidInputError as error:
            raise ProviderError(
                f"{self._store.path}: its vectors were made by {recorded!r}, which WorldDB does "
                "not know; pass that one as embedder=…, or embed anew with db.reindex(…)"
            ) from error

    def _recorded(self) -> str | None:
        """Return the model that made this store's vectors; None if it has none."""
        with self._store.read() as reader:
            return next((row.id for row in reader.derived.models() if row.active), None)

    def _check_model(self, embedder: Embedder) -> None:
        recorded = self._recorded()
        if recorded is not None and recorded != embedder.model_id:
            raise ConflictError(
                f"{self._store.path}: its vectors were made by {recorded}, not by "
                f"{embedder.model_id}; leave the embedder out, or embed anew with "
                "db.reindex(embedder) or: "
                f"worlddb reindex --embedder {shlex.quote(embedder.model_id)} "
                f"--db {shlex.quote(self._store.path)}"
            )

    def reindex(self, embedder: Embedder | str | None, on_progress: Progress) -> str:
        """Embed all nodes without a vector, or every node by another embedder; return its model.

        Other derived data that was lost is rebuilt too, also without an embedder.

        Raises:
            ProviderError: the embedder failed; finished work is kept, and the next call goes on.
            StorageError, ConflictError: the store cannot be written.
        """
        if self._store.mend():
            self.forget()  # Held worlds were read from the damaged data.
        if embedder is None and not self.has_vectors:
            return NO_EMBEDDER
        if embedder is None:
            self.vectors().complete(on_progress)
            return self.vectors().model_id
        from worlddb.index.vectors import Vectors

        made = self._made(embedder)
        vectors = Vectors(self._store, made, self._pooling)
        vectors.take_over(on_progress)
        with self._lock:
            self._given, self._vectors = made, vectors
            self._interiors = self._wide = None
        return made.model_id

    def interior(
        self, reader: Reader, worlds: Sequence[int], moment: Moment, members: bool
    ) -> AbstractContextManager[HeldWorld | None]:
        """Hold worlds in memory as of the reader's commit; yields None if they are too large."""
        with self._lock:
            if self._interiors is None:
                from worlddb.index.held_world import HeldWorlds

                self._interiors = HeldWorlds()
            interiors = self._interiors
        return interiors.holding(reader, worlds, moment, members)

    def wide(self) -> StoreSearch:
        """Return the search through the whole-store indexes, for worlds too large to be held."""
        with self._lock:
            if self._wide is None:
                from worlddb.index.store_search import StoreSearch

                self._wide = StoreSearch(self._store)
            return self._wide

    def forget(self) -> None:
        """Drop all held worlds and the saved index, because something was erased."""
        with self._lock:
            if self._wide is not None:
                self._wide.forget()
            self._interiors = self._wide = None
        from worlddb.index.store_search import SUFFIX

        saved = self._store.side_file(SUFFIX)
        if saved is not None:
            with suppress(FileNotFoundError):
                os.remove(saved)

    def close(self) -> None:
        """Save the nearest-neighbour index, if there is one."""
        with self._lock:
            if self._wide is not None:
                self._wide.close()

    def _made(self, embedder: Embedder | str) -> Embedder:
        """Return the embedder of a name, or the given embedder after a check.

        Raises:
            InvalidInputError: an unknown name, or an object that is no embedder.
        """
        if isinstance(embedder, str):
            from worlddb.embed.embedder_catalog import embedder_named

            return embedder_named(embedder, models_dir=self._models_dir)
        needed = ("model_id", "dim", "embed_queries", "embed_documents")
        # A property is not read if it is there: some embedders ask their model for `dim`.
        missing = [
            name
            for name in needed
            if getattr_static(embedder, name, None) is None and not hasattr(embedder, name)
        ]
        if missing:
            raise InvalidInputError(
                f"embedder: give a name or an object with {', '.join(missing)}, "
                f"not {embedder!r:.100}"
            )
        if not encode_text(embedder.model_id, "model_id", MODEL_ID_BYTES_MAX):
            raise InvalidInputError("model_id: is empty; give the embedder's model a name")
        return embedder
