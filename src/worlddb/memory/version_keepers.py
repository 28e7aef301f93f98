"""Version keepers: the calls of `Memory` on versioned files, and on branches of the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from worlddb.errors import ConflictError, InvalidInputError
from worlddb.files.versioned_files import Files, FilesHome, no_repeats
from worlddb.ingest.draft_parts import repeated_origins
from worlddb.memory.scope_view import generations, refuse_untrusted
from worlddb.memory.writes import MemoryWriter
from worlddb.model.address import Id
from worlddb.model.inputs import SCOPE, Instant, ScopeIds, born
from worlddb.model.records import NOW, Branch, Branches, Diff
from worlddb.model.text_safety import INDEPENDENT
from worlddb.store.interface import Reader
from worlddb.view.visibility import View, moment_of
from worlddb.world_db import WorldDB
from worlddb.write.transaction import Transaction

if TYPE_CHECKING:
    from worlddb.files.file_tree import FileChange, FileList, FileMatches, FilePaths, FileText
    from worlddb.ingest.branch_merge import Merged


# Scope files: the file tree that lives in a scope.


def scope_files(writer: MemoryWriter, scope: Mapping[str, Any]) -> Files:
    """Return the files of the one scope of a call; see `Memory.files_of`."""
    names = [name for group in writer.scopes.written_scopes(scope) for name in group]
    if len(names) != 1:
        told = ", ".join(map(str, names))
        raise InvalidInputError(f"files: live in one scope, not in {told}; name one of them")
    store, name = writer.engine.store, names[0]

    def find(reader: Reader) -> int | None:
        rows = generations(reader, name)
        return rows[-1] if rows and not reader.closed_by(rows[-1:]) else None

    def make(tx: Transaction) -> Id:
        number = len(generations(tx.reader, name))
        return tx.create_node(type=SCOPE, name=str(name), created_at=born(number)).id

    def repeats(reader: Reader, said: str) -> set[str]:
        row = find(reader)
        if row is None:
            return set()
        moment = moment_of(reader, NOW, writer.engine.clock())
        view = View(reader, moment, worlds=[row], members=True, include_ended=True)
        return repeated_origins(reader, said, view.keep_world)

    transact = partial(writer.engine.ingestion.transact, origin=writer.origin)
    speaks = writer.origin is None or writer.origin in INDEPENDENT
    heard = no_repeats if speaks else repeats
    return Files(store, transact, FilesHome(find, make), writer.actor, heard)


# Scoped files.


@dataclass(frozen=True, slots=True)
class ScopedFiles:
    """The calls of one caller on files; `Memory.files_of` has further calls."""

    writer: MemoryWriter

    def list_files(
        self,
        path: str = "/",
        *,
        all: bool = False,
        as_of: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> FileList:
        """Return the contents of a folder; with `all`, everything below it.

        Raises:
            NotFoundError: there is no such folder.
            InvalidInputError: the path, the time or the scope is wrong.
            RejectedError: the scope is outside the bounds of this memory.
        """
        from worlddb.files.file_tree import FileList

        found = self._files(scope).list(path, depth=None if all else 1, as_of=as_of)
        return FileList(entries=tuple(found))

    def read_file(
        self,
        path: str,
        *,
        version: bytes | str | None = None,
        as_of: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> FileText:
        """Return the text of a file: now, as of a time, or of a version, deleted or not.

        Raises:
            NotFoundError: there is no such file, or it has no such version.
            ConflictError: it is a folder.
            InvalidInputError, RejectedError: as `list_files`.
        """
        return self._files(scope).read(path, version=version, as_of=as_of)

    def write_file(
        self,
        path: str,
        text: str,
        *,
        version: bytes | str | None = None,
        new: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> FileChange:
        """Write a file; with `version`, only if that is the latest; with `new`, only a new file.

        Raises:
            ConflictError: another version is there, or a folder.
            InvalidInputError, RejectedError: as `list_files`.
            StorageError: the store cannot be written.
        """
        files = self._files(scope)
        expected = None if new else self._latest(files, path, version)
        return self._told(files.write(path, text, expected=expected))

    def edit_file(
        self,
        path: str,
        old: str,
        new: str,
        *,
        every: bool = False,
        version: bytes | str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> FileChange:
        """Replace a piece of text in a file; it must occur exactly once, unless `every` is set.

        Raises:
            NotFoundError: there is no such file, or the text is not in it.
            ConflictError: the text occurs more than once, or another version is there.
            InvalidInputError, RejectedError, StorageError: as `write_file`.
        """
        files = self._files(scope)
        expected = self._latest(files, path, version)
        return self._told(files.edit(path, old, new, every=every, expected=expected))

    def move_file(self, path: str, target: str, **scope: Unpack[ScopeIds]) -> FileChange:
        """Move a file, or a folder with all its contents. Files keep their versions.

        Raises:
            NotFoundError: there is no such file or folder.
            ConflictError: something lies at the target.
            InvalidInputError, RejectedError, StorageError: as `write_file`.
        """
        return self._told(self._files(scope).move(path, target))

    def delete_file(
        self, path: str, *, version: bytes | str | None = None, **scope: Unpack[ScopeIds]
    ) -> FileChange:
        """End a file, or a folder with all its contents. Versions stay readable.

        Raises:
            NotFoundError: there is no such file or folder.
            ConflictError: another version is there.
            InvalidInputError, RejectedError, StorageError: as `write_file`.
        """
        files = self._files(scope)
        return self._told(files.delete(path, expected=self._latest(files, path, version)))

    def glob_files(
        self, pattern: str, *, as_of: Instant | None = None, **scope: Unpack[ScopeIds]
    ) -> FilePaths:
        """Return the paths of the files that match a glob, such as `/notes/**/*.md`.

        Raises:
            InvalidInputError, RejectedError: as `list_files`.
        """
        from worlddb.files.file_tree import FilePaths

        return FilePaths(paths=tuple(self._files(scope).glob(pattern, as_of=as_of)))

    def grep_files(
        self,
        pattern: str,
        *,
        path: str = "/",
        glob: str | None = None,
        ignore_case: bool = False,
        literal: bool = False,
        limit: int = 100,
        **scope: Unpack[ScopeIds],
    ) -> FileMatches:
        """Return the lines that match a regular expression, by path and line.

        Raises:
            InvalidInputError, RejectedError: as `list_files`.
        """
        from worlddb.files.file_tree import FileMatches

        found = self._files(scope).grep(
            pattern,
            path=path,
            glob=glob,
            ignore_case=ignore_case,
            literal=literal,
            limit=limit,
        )
        return FileMatches(matches=tuple(found))

    def _files(self, scope: Mapping[str, Any]) -> Files:
        return scope_files(self.writer, scope)

    def _latest(self, files: Files, path: str, version: bytes | str | None) -> bytes | str:
        """Return the latest version of a file if it has this prefix.

        Raises:
            ConflictError: it does not.
        """
        if version is None:
            return "any"
        wanted = version.hex() if isinstance(version, bytes) else version
        held = files.read(path).version
        if not str(held).startswith(wanted):
            raise ConflictError(f"{path} has version {held} now; read it and try again")
        return held

    def _told(self, change: FileChange) -> FileChange:
        """Return a change with the commit as the caller may see it."""
        if change.commit is None:
            return change
        return replace(change, commit=self.writer.scopes.own_commit(change.commit)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchKeeper:
    """The calls of one caller on branches; a bound caller is refused."""

    db: WorldDB
    writer: MemoryWriter

    def create_branch(self, name: str) -> Branch:
        """Create a branch of the store, and return it with its fork.

        Raises:
            InvalidInputError: the name is none.
            ConflictError: there is a branch of that name.
            RejectedError: this memory is bound, or not trusted in full.
            StorageError: the store cannot be branched, or not be written.
        """
        self.refuse_branch()
        return self.db.engine.store.fork(name, self.writer.actor)

    def branches(self) -> Branches:
        """Return the branches of the store, by name.

        Raises:
            RejectedError: this memory is bound, or not trusted in full.
        """
        self.writer.scopes.refuse_bound("a branch")
        return Branches(branches=tuple(self.db.branches()))

    def branch_diff(self, name: str) -> Diff:
        """Return the changes of a branch that were not merged yet.

        Raises:
            InvalidInputError, NotFoundError: there is no such branch.
            RejectedError: this memory is bound, or not trusted in full.
        """
        self.writer.scopes.refuse_bound("a branch")
        return self.db.branch_diff(name)

    def merge(self, name: str, *, dry_run: bool = False) -> Merged:
        """Write the changes of a branch into the store, as one commit; return what changed.

        What both sides have changed since the fork stays on both sides, and is reported. `undo` can
        undo a merge. `dry_run` rolls the merge back. See `WorldDB.merge`.

        Raises:
            InvalidInputError, NotFoundError: there is no such branch.
            ConflictError: the store was replaced since the fork, or too much was refused.
            RejectedError: this memory is bound, or not trusted in full.
            StorageError: the store cannot be written.
        """
        self.refuse_branch()
        return self.db.merge(name, dry_run=dry_run, actor=self.writer.actor)

    def drop_branch(self, name: str) -> Branches:
        """Remove a branch with all its changes; return the remaining branches.

        Raises:
            InvalidInputError, NotFoundError: there is no such branch.
            RejectedError: this memory is bound, or not trusted in full.
            StorageError: the store cannot be written.
        """
        self.refuse_branch()
        self.db.drop_branch(name)
        return self.branches()

    def refuse_branch(self) -> None:
        """Refuse a caller who may not work with branches.

        Raises:
            RejectedError: the caller is bound, or not trusted in full.
        """
        self.writer.scopes.refuse_bound("a branch")
        with self.db.engine.store.read() as reader:
            refuse_untrusted(reader, self.writer.origin, None, "make, merge or drop a branch")
