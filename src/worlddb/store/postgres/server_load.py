"""Server load: the words of a bulk load, analysed by one thread while the server indexes others.

Rows go to the server as one array for each column, a batch in one statement. COPY would do no more:
PostgreSQL refuses it where row-level security holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor, Future

from worlddb.store.postgres.server_session import NewWords, ServerSession, WordTable, words_of
from worlddb.store.rows import NewText

TEXTS_BATCH = 2_000
"""Texts in one statement: a megabyte or two of words, sorted, so that each page is met once."""


class ServerLoad:
    """A load that puts the words of its texts off until its end."""

    def __init__(self, session: ServerSession) -> None:
        self.names = {"words"}
        self._session = session
        self._texts: list[NewText] = []
        self._batches: list[Future[NewWords]] = []

    def keep(self, rows: Iterable[NewText]) -> None:
        """Keep texts in memory until their words are written."""
        self._texts.extend(rows)

    def analyse(self, pool: Executor) -> None:
        """Have the words analysed while the server writes, which needs no Python."""
        self._batches = [pool.submit(words_of, batch) for batch in self._split()]
        self._session.flush()

    def _split(self) -> list[list[NewText]]:
        texts = self._texts
        return [texts[at : at + TEXTS_BATCH] for at in range(0, len(texts), TEXTS_BATCH)]

    def build(self) -> None:
        """Write the words; the load is over with it."""
        self._session.deferred = None
        table = WordTable(self._session)
        for batch in self._batches or map(words_of, self._split()):
            table.add(batch.result() if isinstance(batch, Future) else batch)
            self._session.flush()
