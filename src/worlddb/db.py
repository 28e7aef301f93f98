"""WorldDB: opens a store and wires the rooms together. No logic of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from worlddb.api.consolidating import Consolidating
from worlddb.api.erasing import ErasingTexts
from worlddb.api.reading import Reading
from worlddb.api.restoring import restore as restore
from worlddb.api.whole import Whole
from worlddb.api.writing import Writing
from worlddb.index.search import Search
from worlddb.ingest.background_queue import Later
from worlddb.ingest.ingest import Ingesting
from worlddb.ingest.pending import Extracting
from worlddb.model.inputs import Limits
from worlddb.ontology.protocol import EdgeHandler
from worlddb.ontology.registry import Registry, check_handler, plugged_handlers
from worlddb.sleep.tally import Tally
from worlddb.store.sqlite.options import check_options
from worlddb.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from worlddb.embed.protocol import Embedder


def wall_clock() -> int:
    """Return the machine's time in microseconds since 1970."""
    return time.time_ns() // 1000


class WorldDB(Writing, Reading, Extracting, Ingesting, Consolidating, Whole, ErasingTexts):
    """An open store; `worlddb.open(path)` makes one. Share it between threads, not processes.

    `path` is a file, made if new, or ":memory:" for a store that is gone when closed.
    `durability="full"` means that an acknowledged commit survives a power cut; `"normal"` may lose
    the last commits then (never on a crash of the process) and writes faster. `embedder` is a name
    (`worlddb models list`) or an object; by default the one the store was embedded with, and for a
    new store the one that needs no download. `"none"` does without. `pooling` is how worlds get
    their vectors; `models_dir` is where installed models lie, if not in the usual place.

    Raises:
        FormatError: the file is no WorldDB store, or of a newer format.
        StorageError: it cannot be opened or created.
        InvalidInputError: an option is wrong.
        ConflictError: the store's vectors are of another embedder.
    """

    _store: SqliteStore

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        create: bool = True,
        durability: str = "full",
        busy_timeout_s: float = 30.0,
        limits: Limits | None = None,
        handlers: Iterable[EdgeHandler] = (),
        embedder: Embedder | str | None = None,
        pooling: Literal["attention", "mean"] = "attention",
        models_dir: str | os.PathLike[str] | None = None,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        check_options(path, durability, busy_timeout_s, limits, handlers, clock)
        self._clock = clock
        self._limits = limits or Limits()
        self._registry = Registry(map(check_handler, handlers), plugged_handlers())
        self._store = SqliteStore(
            os.fspath(path),
            clock=clock,
            read_only=read_only,
            create=create,
            durability=durability,
            busy_timeout_s=busy_timeout_s,
        )
        self._later = Later()
        self._tally = Tally(self._store, clock)
        try:
            self._search = Search(self._store, embedder, pooling, models_dir)
        except BaseException:
            self._store.close()
            raise

    def close(self) -> None:
        """Close the store. Calling it twice does nothing."""
        self._later.close()
        self._tally.close()
        self._search.close()
        self._store.close()

    def __enter__(self) -> WorldDB:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"WorldDB({self._store.path!r})"


open = WorldDB
"""`worlddb.open(path)`: opening a store is making the object; one call, two names."""
