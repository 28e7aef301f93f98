"""Consolidating: summaries, inferences, contradictions, and what is fading from memory."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from worlddb.api.opened import Opened
from worlddb.errors import InvalidInputError
from worlddb.model.address import Id
from worlddb.model.inputs import check_whole
from worlddb.model.records import NOW
from worlddb.model.retention import RetentionSettings
from worlddb.store.protocol import ROOT_ROW
from worlddb.view import lookup
from worlddb.view.visibility import moment_of

if TYPE_CHECKING:
    from worlddb.model.drafts import Summarizer
    from worlddb.sleep.report import ConsolidationReport
    from worlddb.sleep.retention import Fading


class Consolidating(Opened):
    """The part of WorldDB that works on memories while nobody asks."""

    def consolidate(
        self,
        world: bytes | str | None = None,
        *,
        summarizer: Summarizer | None = None,
        min_age: timedelta | float = 0,
        worlds_max: int = 1_000,
        edges_max: int = 1_000,
        dry_run: bool = False,
        actor: str = "consolidator",
        only: str | Iterable[str] = ("summaries", "closure", "conflicts"),
    ) -> ConsolidationReport:
        """Summarise worlds, infer what follows from edges, flag contradictions; say what was done.

        Every world (inside `world`, or in the whole store, but never the root) that is at least
        `min_age` old (a timedelta or seconds) and holds two details or more gets a `Summary`,
        derived from each of them; one whose details have changed gets a newer one, and one with
        nothing left to tell is retired. `causes` and `subtype_of` are closed: what follows is
        written as inferred, with its premises. Sources with more than one target under a
        functional edge type are flagged. `only` chooses some of these.

        Nothing that was there is ever deleted or closed. A run is bounded (`worlds_max`,
        `edges_max`), can be stopped anywhere, and a second one finds nothing to do. `dry_run`
        writes nothing and reports the same decisions. The summarizer, which may ask a model, runs
        outside any transaction; when it fails, the report has the error, and the rest goes on.

        Raises:
            InvalidInputError: an option is wrong.
            NotFoundError: no such world.
            StorageError, ConflictError: the store cannot be written.
        """
        from worlddb.sleep.consolidator import consolidate

        return consolidate(
            self._store,
            self._registry,
            self._clock,
            self._limits,
            world=None if world is None else self._whole_id(world),
            summarizer=summarizer,
            min_age=min_age,
            worlds_max=worlds_max,
            edges_max=edges_max,
            dry_run=dry_run,
            actor=actor,
            only=only,
        )

    def fading(
        self,
        limit: int = 20,
        *,
        world: bytes | str | None = None,
        below: float = 0.25,
        settings: RetentionSettings | None = None,
    ) -> list[Fading]:
        """Return the memories (inside `world`, or anywhere) that are kept worst, worst first.

        Retention falls from 1 towards 0 with the time since a memory was made or last recalled;
        each recall and each link lengthens its half-life. Those `below` are told, with why. This
        is a report: whether to retire one is yours to say (`tx.retire`).

        Raises:
            InvalidInputError: an option is wrong.
            NotFoundError: no such world.
        """
        from worlddb.sleep.retention import fading

        check_whole(limit, "limit", 1)
        is_number = isinstance(below, int | float) and not isinstance(below, bool)
        if not is_number or not below > 0:
            raise InvalidInputError(f"below: give a number above 0, not {below!r:.40}")
        self._tally.flush()
        with self._store.read() as reader:
            moment = moment_of(reader, NOW, self._clock())
            row = ROOT_ROW if world is None else lookup.find(reader, world, "nodes")
            return fading(
                reader,
                moment,
                world=row,
                limit=limit,
                below=below,
                settings=settings or RetentionSettings(),
            )

    def _whole_id(self, given: bytes | str) -> Id:
        with self._store.read() as reader:
            return Id(reader.world(lookup.find(reader, given, "nodes")).id)
