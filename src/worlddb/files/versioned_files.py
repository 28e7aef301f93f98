"""Files: list, read, write, edit, move, delete, glob and grep in a file tree with versions.

Every call that changes something is one commit. Nothing is overwritten: a new version supersedes
the old one, which `history` lists and `read(version=…)` returns.

F1  A version is a node; its id is what `expected` is compared with, inside the transaction that
    writes. So if two writers have read the same version, the second one gets a conflict.
F2  A file has at most one live version. A deleted file ends for good; its path can be used again.
F3  A folder exists while something lives in it, or if it was created empty. Its node does not end
    with its last file, so the undo of a deletion, or the merge of a branch, finds the folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from worlddb.errors import ConflictError, InvalidInputError, NotFoundError, RejectedError
from worlddb.files.file_tree import (
    FILE,
    FOLDER,
    ROOT,
    VERSION,
    FileChange,
    FileEntry,
    FileMatch,
    FileText,
    FileTree,
    FileVersion,
    Place,
    literal_lines,
    parts_of,
    path_matcher,
    path_of,
    pattern_lines,
)
from worlddb.model.address import Id
from worlddb.model.inputs import Instant, from_micros, to_micros
from worlddb.model.records import Node
from worlddb.model.text_safety import SECRETS, secrets_in, without_secrets, without_sentences
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW
from worlddb.view.node_filters import TrustLevels
from worlddb.view.visibility import find
from worlddb.write.transaction import Transaction

ANY = "any"
"""As `expected`: write whatever version there is."""
FOLDERS_MAX = 100  # Each is a world in the one above, so what it costs grows with its depth.
MATCHES_MAX = 1_000  # Lines that one grep returns; nobody reads more.


@dataclass(frozen=True, slots=True)
class FilesHome:
    """The world that holds a tree: how to find its row, and how to create it."""

    find: Callable[[Reader], int | None]
    make: Callable[[Transaction], Id]


Repeats = Callable[[Reader, str], Collection[str]]


def no_repeats(reader: Reader, text: str) -> Collection[str]:
    """Return no origins: who writes speaks for themselves."""
    return ()


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one world. Paths begin with `/`; missing folders are created.

    `memory.files` has the files of a scope, `db.files(world)` those of any world. `repeats` returns
    the origins of the less trusted texts that a text repeats.
    """

    store: Store
    transact: Callable[[str], AbstractContextManager[Transaction]]
    home: FilesHome
    actor: str
    repeats: Repeats = no_repeats

    # -- reading -----------------------------------------------------------------------------------

    def list(
        self, path: str = ROOT, *, depth: int | None = 1, as_of: Instant | None = None
    ) -> list[FileEntry]:
        """Return the contents of a folder, by path: `depth` levels, or all with None.

        The path of a file lists the file alone. An empty tree has no entries.

        Raises:
            NotFoundError: there is no such file or folder.
            InvalidInputError: the path or the time is wrong.
        """
        with self.tree(as_of) as tree:
            place = tree.find(path)
            if place is None and not parts_of(path):
                return []
            place = place or tree.need(path)
            return _entries(tree, tree.below(place, depth) if place.is_folder else [place])

    def exists(self, path: str) -> bool:
        """Return whether there is a file or a folder at a path.

        Raises:
            InvalidInputError: the path is wrong.
        """
        with self.tree() as tree:
            return tree.find(path) is not None

    def read(
        self, path: str, *, version: bytes | str | None = None, as_of: Instant | None = None
    ) -> FileText:
        """Return the text of a file: now, as of a time, or of a version, deleted or not.

        Raises:
            NotFoundError: there is no such file, or it has no such version.
            ConflictError: it is a folder.
            InvalidInputError: the path, the time or the version is wrong.
        """
        with self.tree(as_of) as tree:
            if version is None:
                place = tree.need(path, FILE)
                return _text(place, tree.versions([place])[place.body.row])
            wanted = str(version) if isinstance(version, str) else version.hex()
            found = [one for one in tree.history(path) if one.id.hex().startswith(wanted)]
            if len(found) != 1:
                raise NotFoundError(f"{path}: no version {wanted:.64}; history lists the versions")
            return _text(path_of(parts_of(path)), found[0])

    def read_all(self, path: str = ROOT, *, as_of: Instant | None = None) -> Sequence[FileText]:
        """Return every file below a folder with its text, by path.

        Raises:
            InvalidInputError: the path or the time is wrong.
        """
        with self.tree(as_of) as tree:
            place = tree.find(path)
            return [] if place is None else _texts(tree, _files(tree, place))

    def history(self, path: str) -> Sequence[FileVersion]:
        """Return the versions of a file, the latest first, including those before a move.

        Raises:
            NotFoundError: no file ever lay there.
            InvalidInputError: the path is wrong.
        """
        _refuse_root(path)
        with self.tree() as tree:
            found = tree.history(path)
            if not found:
                raise NotFoundError(f"no file ever lay at {path_of(parts_of(path))}")
            return [
                FileVersion(
                    path=node.name,
                    version=node.id,
                    bytes=len(node.content.encode()),
                    modified=node.valid_from,
                    ended=node.valid_to,
                    actor=node.actor,
                )
                for node in found
            ]

    def glob(self, pattern: str, *, as_of: Instant | None = None) -> Sequence[str]:
        """Return the paths of the files that match a glob, such as `/notes/**/*.md`.

        `*` and `?` match within one name; `**` matches any number of folders. A glob without a
        slash matches in every folder.

        Raises:
            InvalidInputError: the pattern is empty.
        """
        matches = path_matcher(pattern)
        with self.tree(as_of) as tree:
            place = tree.find(ROOT)
            files = [] if place is None else _files(tree, place)
            return [one.path for one in files if matches(one.path)]

    def grep(
        self,
        pattern: str,
        *,
        path: str = ROOT,
        glob: str | None = None,
        ignore_case: bool = False,
        literal: bool = False,
        limit: int = MATCHES_MAX,
    ) -> Sequence[FileMatch]:
        """Return the lines that match a regular expression, by path and line.

        With `literal`, the pattern is plain text. `glob` limits the files. A regular expression
        that takes more than some seconds is refused.

        Raises:
            InvalidInputError: the pattern or the path is wrong, or the pattern takes too long.
        """
        matches = path_matcher(glob) if glob else None
        files = [one for one in self.read_all(path) if matches is None or matches(one.path)]
        texts = [file.text for file in files]
        if literal or re.escape(pattern) == pattern:
            found = literal_lines(pattern, texts, ignore_case=ignore_case, limit=limit)
        else:
            found = pattern_lines(pattern, texts, ignore_case=ignore_case, limit=limit)
        return [
            FileMatch(path=files[at].path, line=number, text=line) for at, number, line in found
        ]

    # -- changing ----------------------------------------------------------------------------------

    def write(
        self,
        path: str,
        text: str,
        *,
        expected: bytes | str | None = ANY,
        metadata: Mapping[str, Any] | None = None,
    ) -> FileChange:
        """Write a file; missing folders are created.

        `expected` is the version that the caller has read. If the file has another version now,
        that is a conflict. With None the file must not exist yet; by default any version is
        replaced. If the file has this text already, nothing is written.

        Raises:
            ConflictError: another version is there, or a folder.
            InvalidInputError: the path or the text is wrong.
            RejectedError: the version that is there is more trusted than the caller.
            StorageError: the store cannot be written.
        """
        _refuse_root(path)
        with self.changes() as changes:
            version, created = changes.write(path, text, expected, metadata)
        return self._change(path, version, changes, created=created)

    def edit(
        self,
        path: str,
        old: str,
        new: str,
        *,
        every: bool = False,
        expected: bytes | str | None = ANY,
    ) -> FileChange:
        """Replace a piece of text in a file; it must occur exactly once, unless `every` is set.

        Raises:
            NotFoundError: there is no such file, or the text is not in it.
            ConflictError: the text occurs more than once, or another version is there.
            InvalidInputError: the path or the text is wrong.
        """
        if not old:
            raise InvalidInputError("old: give the text to replace")
        with self.changes() as changes:
            file = changes.read(path)
            count = file.text.count(old)
            if not count:
                raise NotFoundError(f"{file.path}: the text to replace is not in the file")
            if count > 1 and not every:
                raise ConflictError(
                    f"{file.path}: the text to replace occurs {count} times; give more of the "
                    "text around it, or replace every one"
                )
            text = file.text.replace(old, new)
            version, _ = changes.write(path, text, expected, file.metadata, amends=True)
        return self._change(path, version, changes)

    def move(self, source: str, target: str, *, replace: bool = False) -> FileChange:
        """Move a file, or a folder with all its contents. A file keeps its versions.

        Raises:
            NotFoundError: there is no such file or folder.
            ConflictError: something lies at the target, unless `replace` is on for a file.
            InvalidInputError: a path is wrong, or the target lies inside the source.
        """
        for path in (source, target):
            _refuse_root(path)
        inside = parts_of(target)[: len(parts_of(source))] == parts_of(source)
        if inside:
            raise InvalidInputError(f"{target} lies inside {source}; choose another target")
        with self.changes() as changes:
            version = changes.move(source, target, replace)
        return self._change(target, version, changes)

    def delete(self, path: str, *, expected: bytes | str | None = ANY) -> FileChange:
        """End a file, or a folder with all its contents. The versions stay readable.

        A folder vanishes with its last entry.

        Raises:
            NotFoundError: there is no such file or folder.
            ConflictError: another version is there.
            InvalidInputError: the path is wrong, or the root folder is meant.
        """
        _refuse_root(path)
        with self.changes() as changes:
            changes.delete(path, expected)
        return self._change(path, None, changes)

    def make_folder(self, path: str) -> FileChange:
        """Create a folder and its missing parents. An existing folder stays as it is.

        Raises:
            ConflictError: a file lies there.
            InvalidInputError: the path is wrong.
        """
        with self.changes() as changes:
            changes.make_folder(parts_of(path))
        return self._change(path, None, changes)

    @contextmanager
    def changes(self) -> Iterator[FileChanges]:
        """Make several changes one commit: `with files.changes() as changes: changes.write(…)`."""
        with self.transact(self.actor) as tx:
            yield FileChanges(tx, self.home, self.repeats)

    def _change(
        self, path: str, version: Id | None, changes: FileChanges, *, created: bool = False
    ) -> FileChange:
        return FileChange(
            path=path_of(parts_of(path)),
            version=version,
            created=created,
            commit=changes.tx.commit,
        )

    @contextmanager
    def tree(self, as_of: Instant | None = None) -> Iterator[FileTree]:
        """Yield the tree on one snapshot, now or as of a time."""
        at = None if as_of is None else to_micros(as_of, "as_of")
        with self.store.read() as reader:
            yield FileTree(reader, self.home.find(reader), at)


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Changes of files inside one open transaction."""

    tx: Transaction
    home: FilesHome
    repeats: Repeats = no_repeats

    @property
    def tree(self) -> FileTree:
        """The tree as this transaction sees it."""
        reader = self.tx.reader
        return FileTree(reader, self.home.find(reader))

    def read(self, path: str) -> FileText:
        """Return the text of a file."""
        place = self.tree.need(path, FILE)
        return _text(place, self.tree.versions([place])[place.body.row])

    def find(self, path: str) -> FileText | None:
        """Return the text of a file; None if there is no such file."""
        place = self.tree.find(path)
        if place is None or place.is_folder:
            return None
        return _text(place, self.tree.versions([place])[place.body.row])

    def write(
        self,
        path: str,
        text: str,
        expected: bytes | str | None = ANY,
        metadata: Mapping[str, Any] | None = None,
        *,
        follows: Node | None = None,
        amends: bool = False,
    ) -> tuple[Id, bool]:
        """Write a file; return its version, and whether the file is new.

        `follows` is the version of a file that is moved to this path. A version has the origins of
        the one that it `amends`, or keeps a line of: their trust does not rise.
        """
        *folders, name = parts_of(path)
        text = self._without_secrets(path, text)
        tree = self.tree
        place = tree.node_at(path)
        if place is not None and place.is_folder:
            if tree.exists(place):
                raise ConflictError(f"{place.path} is a folder; choose another path")
            self._end(tree, place)
            place = None
        old = None if place is None else self.tree.versions([place]).get(place.body.row)
        _expect(path, expected, old)
        if old is not None and old.content == text and dict(old.metadata) == dict(metadata or {}):
            return old.id, False
        if place is None:
            parent = self.folder(folders)
            file = self.tx.create_node(type=FILE, name=name, parent=parent).id
        else:
            file = Id(place.body.id)
        whole = path_of([*folders, name])
        origins = {*self.repeats(self.tx.reader, text), *(follows.origins if follows else ())}
        if old is not None and (amends or _keeps_a_line(old.content, text)):
            origins.update(old.origins)
        made = self.tx.create_node(
            type=VERSION, name=whole, content=text, parent=file, origin=sorted(origins)
        )
        if made.origins and not TrustLevels(self.tx.reader).of(made):
            raise RejectedError(f"{whole}: texts of {made.origin!r} are held in quarantine here")
        if metadata:
            self.tx.add_metadata(made.id, metadata)
        for before in (follows, old):
            if before is not None and self.tx.outranks(before.id, made.id):
                raise RejectedError(
                    f"{whole}: {before.id.short} is more trusted than who writes here; write "
                    "another file instead"
                )
            if before is not None:
                self.tx.write_edge("supersedes", made.id, before.id)
        return made.id, place is None

    def move(self, source: str, target: str, replace: bool) -> Id | None:
        """Move a file or a folder; return the version of a file."""
        tree = self.tree
        place, there = tree.need(source), tree.find(target)
        if there is not None and (place.is_folder or there.is_folder or not replace):
            raise ConflictError(f"{there.path} exists already; choose another path or delete it")
        moved = _files(tree, place)
        if place.is_folder:
            for folder in (place, *(one for one in tree.below(place) if one.is_folder)):
                self.make_folder(parts_of(target) + parts_of(folder.path.removeprefix(place.path)))
        last = None
        for file, node in zip(moved, _versions(tree, moved), strict=True):
            path = path_of(parts_of(target) + parts_of(file.path.removeprefix(place.path)))
            last, _ = self.write(path, node.content, ANY, node.metadata, follows=node)
        self._end(tree, place)
        return None if place.is_folder else last

    def delete(self, path: str, expected: bytes | str | None = ANY) -> None:
        """End a file, or a folder with all its contents."""
        tree = self.tree
        place = tree.need(path)
        if expected != ANY:
            held = None if place.is_folder else tree.versions([place])[place.body.row]
            _expect(path, expected, held)
        self._end(tree, place)

    def folder(self, names: Sequence[str]) -> Id:
        """Return a folder; it and its missing parents are created.

        Raises:
            InvalidInputError: it is too deep.
        """
        if len(names) > FOLDERS_MAX:
            told = path_of(names)
            raise InvalidInputError(f"path {told!r:.80}: more than {FOLDERS_MAX} folders deep")
        home = self.home.find(self.tx.reader)
        parent = self.home.make(self.tx) if home is None else Id(self.tx.reader.world(home).id)
        for depth in range(len(names) + 1):
            found = self.tree.node_at(path_of(names[:depth]))
            if found is None:
                name = names[depth - 1] if depth else ROOT
                parent = self.tx.create_node(type=FOLDER, name=name, parent=parent).id
            elif found.is_folder:
                parent = Id(found.body.id)
            else:
                raise ConflictError(f"{found.path} is a file; choose another path")
        return parent

    def make_folder(self, names: Sequence[str]) -> None:
        """Create a folder that exists even while it is empty."""
        tree = self.tree
        place = tree.node_at(path_of(names))
        if place is not None and not tree.exists(place):
            self._end(tree, place)
        self.folder(names)

    def _without_secrets(self, path: str, text: str) -> str:
        """Return the text of a file as the scope's rule for secrets requires.

        Raises:
            RejectedError: the scope refuses texts with secrets, or the path has one.
        """
        kinds = {one.kind: None for one in (*secrets_in(path), *secrets_in(text))}
        if not kinds:
            return text
        row, told = self.home.find(self.tx.reader), ", ".join(kinds)
        world = Id(self.tx.reader.world(ROOT_ROW if row is None else row).id)
        rule = TrustLevels(self.tx.reader).settings(world).get(SECRETS)
        changed = {"mask": without_secrets, "leave_out": without_sentences}.get(str(rule))
        if rule == "refuse" or (changed is not None and secrets_in(path)):
            raise RejectedError(f"the file has a secret ({told}); leave it out, then write it")
        return text if changed is None else changed(text)

    def _end(self, tree: FileTree, place: Place) -> None:
        ended = [place, *tree.nodes_below(place)]
        files = [one for one in ended if not one.is_folder]
        for node in tree.versions(files).values():
            self.tx.retire(node.id)
        for one in ended:
            self.tx.retire(Id(one.body.id))


def world_files(
    store: Store,
    transact: Callable[[str], AbstractContextManager[Transaction]],
    world_id: bytes | str | None,
    actor: str,
) -> Files:
    """Return the files of a world; see `WorldDB.files`."""
    with store.read() as reader:
        row = ROOT_ROW if world_id is None else find(reader, world_id, "nodes")
        world = Id(reader.world(row).id)
    home = FilesHome(find=lambda reader: reader.node_row(world), make=lambda _: world)
    return Files(store, transact, home, actor)


def _keeps_a_line(old: str, new: str) -> bool:
    """Return whether a text has a line with a word from an older one."""
    lines = {line.strip() for line in old.splitlines() if any(map(str.isalnum, line))}
    return any(line.strip() in lines for line in new.splitlines())


def _refuse_root(path: str) -> None:
    if not parts_of(path):
        raise InvalidInputError("path: name a file or a folder below /")


def _expect(path: str, expected: bytes | str | None, held: Node | None) -> None:
    """Raise a conflict if the present version is not the expected one."""
    if expected == ANY:
        return
    if expected is None:
        if held is not None:
            raise ConflictError(f"{path} exists already, in version {held.id}")
        return
    if held is None:
        raise ConflictError(f"{path} does not exist any more; read the folder again")
    if Id(expected) != held.id:
        raise ConflictError(f"{path} has version {held.id} now; read it and try again")


def _files(tree: FileTree, place: Place) -> list[Place]:
    return [one for one in (place, *tree.nodes_below(place)) if not one.is_folder]


def _versions(tree: FileTree, files: list[Place]) -> list[Node]:
    found = tree.versions(files)
    return [found[one.body.row] for one in files]


def _texts(tree: FileTree, files: list[Place]) -> list[FileText]:
    pairs = zip(files, _versions(tree, files), strict=True)
    return [_text(one, node) for one, node in pairs]


def _text(place: Place | str, node: Node) -> FileText:
    """Return a version of a file; given a place, with the time that the file was created."""
    return FileText(
        path=place.path if isinstance(place, Place) else place,
        text=node.content,
        version=node.id,
        created=from_micros(place.body.valid_from) if isinstance(place, Place) else node.valid_from,
        modified=node.valid_from,
        ended=node.valid_to,
        metadata=node.metadata,
    )


def _entries(tree: FileTree, places: list[Place]) -> list[FileEntry]:
    versions = tree.versions([one for one in places if not one.is_folder])
    made = []
    for one in places:
        node = versions.get(one.body.row)
        made.append(
            FileEntry(
                path=one.path,
                kind="folder" if one.is_folder else "file",
                version=None if node is None else node.id,
                bytes=0 if node is None else len(node.content.encode()),
                modified=None if node is None else node.valid_from,
            )
        )
    return made
