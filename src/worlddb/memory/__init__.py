"""Memory: the scoped, agent-facing API. Nine calls over users, agents, apps and runs.

write ─▶ scopes ─▶ ingest ─▶ commit          recall, list, read ─▶ scopes ─▶ what can be seen
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Literal, Unpack

from worlddb.db import WorldDB
from worlddb.errors import InvalidInputError
from worlddb.memory.endings import EndingMemories
from worlddb.memory.reads import ReadingMemories
from worlddb.memory.writes import WritingMemories
from worlddb.model.drafts import Extractor
from worlddb.model.scopes import Groups, ScopeIds, groups_of

__all__ = ["Memory"]


class Memory(WritingMemories, EndingMemories, ReadingMemories):
    """Memories of users, agents, apps and runs in one store.

    `store` is a path, ":memory:" or an open WorldDB; `options` are those of `worlddb.open`. The
    scope ids are the ones meant where a call does not name that kind; if neither names any, the
    user is "default". A memory is seen by a call if it is in a scope of every kind that is meant.

    `extractor` reads texts ("rules", "verbatim" or your own); `recluster` says when the
    neighbourhood of what is new is resolved once more; `supersede` whether a memory ends those
    whose facts it surely replaces; `actor` signs the commits.

    Raises:
        InvalidInputError: a scope is badly named, or an option is wrong.
        FormatError, StorageError, ConflictError: as `worlddb.open`.
    """

    def __init__(
        self,
        store: str | os.PathLike[str] | WorldDB,
        *,
        extractor: Extractor | str | None = None,
        recluster: Literal["later", "now", "off"] = "later",
        supersede: bool = True,
        actor: str = "memory",
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
        **options: Any,
    ) -> None:
        usual = groups_of(
            {"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id}
        )
        if recluster not in ("later", "now", "off"):
            raise InvalidInputError(f"recluster {recluster!r}: use 'later', 'now' or 'off'")
        if isinstance(store, WorldDB) and options:
            raise InvalidInputError(f"{', '.join(options)}: the store is open already")
        self._owns = not isinstance(store, WorldDB)
        db = store if isinstance(store, WorldDB) else WorldDB(store, **options)
        super().__init__(db, usual, (), actor)
        self._extractor = extractor
        self._recluster = recluster
        self._supersede = supersede

    @property
    def asks_a_model(self) -> bool:
        """Whether writing may wait for somebody else: the extractor is not one of ours by name."""
        return not isinstance(self._extractor, str | None)

    def bound(self, *, actor: str | None = None, **scope: Unpack[ScopeIds]) -> Memory:
        """Return this memory for somebody who may not leave a scope, whatever a call names.

        Raises:
            InvalidInputError: no scope is named, or badly.
            RejectedError: it is outside the bounds that there are already.
        """
        self._named(scope, "bound")
        bounds = self._merged_bounds(groups_of(scope))
        made = Memory.__new__(Memory)
        super(Memory, made).__init__(self.db, self._usual, bounds, actor or self._actor)
        made._owns = False
        made._extractor, made._recluster = self._extractor, self._recluster
        made._supersede = self._supersede
        return made

    def _merged_bounds(self, more: Groups) -> Groups:
        kinds = {group[0].kind for group in more}
        return (*more, *(group for group in self._bounds if group[0].kind not in kinds))

    def close(self) -> None:
        """Close the store, unless it was given open. Calling it twice does nothing."""
        if self._owns:
            self.db.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Memory({self.db._store.path!r})"
