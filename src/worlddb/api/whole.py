"""Whole: the store as a whole. Its address, its journal, proofs, checks and copies."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from worlddb.api.opened import Opened
from worlddb.model.address import ROOT_ID, Id
from worlddb.model.journal import has_erased
from worlddb.model.proof import Proof
from worlddb.model.records import Commit, Diff, Problem
from worlddb.read import history
from worlddb.read.check import check
from worlddb.read.export import export
from worlddb.read.prove import prove
from worlddb.view import lookup
from worlddb.write.replay import replay

EXPORT_BATCH = 256


class Whole(Opened):
    """The part of WorldDB that sees all of it at once."""

    @property
    def root_id(self) -> Id:
        """The id of the root world; the same in every store."""
        return ROOT_ID

    @property
    def root_state(self) -> Id:
        """The address of everything in the store as of the last commit."""
        with self._store.read() as reader:
            return Id(reader.head().root_state)

    def prove(self, id_or_prefix: bytes | str) -> Proof:
        """Return a proof that a node is in the store; check it with `worlddb.verify_proof`.

        Raises:
            InvalidInputError, NotFoundError: no such node.
        """
        with self._store.read() as reader:
            return prove(reader, lookup.find(reader, id_or_prefix, "nodes"))

    def log(
        self, *, after: int = -1, limit: int | None = None, newest_first: bool = False
    ) -> list[Commit]:
        """Return the journal, oldest commit first.

        Raises:
            InvalidInputError: `after` or `limit` is no whole number.
        """
        with self._store.read() as reader:
            return history.log(reader, after, limit, newest_first)

    def diff(self, seq_a: int, seq_b: int) -> Diff:
        """Return what the commits after `seq_a` up to `seq_b` did.

        Raises:
            InvalidInputError: the later one was given first.
            NotFoundError: there is no such commit.
        """
        with self._store.read() as reader:
            return history.diff(reader, seq_a, seq_b)

    def check(self) -> list[Problem]:
        """Hash everything again and compare it with every index and the journal.

        Returns what does not fit; an empty list is a sound store.
        """
        return check(self._store)

    def export(self, *, after: int = -1) -> Iterator[str]:
        """Yield the whole journal as JSON Lines, on one snapshot; `replay` takes it back in."""
        with self._store.snapshot() as reader:
            lines = export(reader, after)
            while True:
                with self._store.using():
                    batch = list(islice(lines, EXPORT_BATCH))
                if not batch:
                    return
                yield from batch

    def replay(
        self, lines: Iterable[str], *, on_commit: Callable[[int], None] = lambda seq: None
    ) -> int:
        """Play an export into this store; return how many commits it added.

        Ids, both clocks and the root state come out as they were, or the commit is refused. If it
        erases anything, the file is cleaned.

        Raises:
            FormatError: no export, or a newer one.
            CorruptionError: a commit was changed on the way.
            ConflictError: this store has another history.
        """
        with self._store.read() as reader:
            before = reader.head().seq
        added = replay(self._store, lines, on_commit)
        with self._store.read() as reader:
            changes = (commit.changes for commit in reader.commits(before, None, False))
            erased = any(has_erased(text) for text in changes)
        if erased:
            self._search.forget()
            self._store.clean()
        return added

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the store as of now to a new file, while others read and write.

        Raises:
            StorageError: the file exists already or cannot be written.
        """
        self._store.backup(os.fspath(path))
