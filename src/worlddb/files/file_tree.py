"""File tree: folders, files and their versions among the nodes of one world.

    home ─ Folder "/" ─┬─ Folder "notes" ─ File "today.md" ─┬─ Version "/notes/today.md" (ended)
                       └─ File "todo.md" ─ …                 └─ Version "/notes/today.md"

A folder and a file are worlds that are only a name. What a file says is its live version; a new
version supersedes the one before, and a deleted file has none. So nothing is lost, the state of a
folder witnesses everything below it, and recall finds what files say.

A folder or a file is found by its name through the content index, in one look-up for each part of
the path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from worlddb.errors import ConflictError, InvalidInputError, NotFoundError
from worlddb.model.address import Id, content_key
from worlddb.model.inputs import encode_text
from worlddb.model.records import Commit, Node, Plain
from worlddb.store.interface import Reader
from worlddb.store.rows import BodyRow

# File values: what the calls on files return.


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry(Plain):
    """A file or a folder in a list; `version`, `bytes` and `modified` are those of a file."""

    path: str
    kind: Literal["file", "folder"]
    version: Id | None
    bytes: int
    modified: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText(Plain):
    """What a file says in one version.

    `created` is when the file was made, `modified` when this version was written, `ended` when a
    later version took its place. `created` of a version that was asked for is its own time.
    """

    path: str
    text: str
    version: Id
    created: datetime
    modified: datetime
    ended: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVersion(Plain):
    """One version of a file: where it lay, since and until when, and who wrote it."""

    path: str
    version: Id
    bytes: int
    modified: datetime
    ended: datetime | None
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange(Plain):
    """What a change of files did. `version` is the file's version afterwards, None without one.

    `created` says whether the file was new. `commit` is None if nothing had to be written.
    """

    path: str
    version: Id | None
    created: bool
    commit: Commit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMatch(Plain):
    """A line of a file that a pattern was found in; lines count from 1."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileList(Plain):
    """What lies in a folder, by path."""

    entries: tuple[FileEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePaths(Plain):
    """The paths of files that a pattern fits."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMatches(Plain):
    """The lines of files that a pattern was found in."""

    matches: tuple[FileMatch, ...]


# File tree.

FOLDER, FILE, VERSION = "Folder", "File", "Version"
NAME_BYTES_MAX = 255  # As on most file systems, so a tree can be copied to a disk.
PATH_BYTES_MAX = 4_096  # As many as the name of a node, which a version has.
GENERATIONS_MAX = 1_000  # A name that was deleted and made anew more often loses its oldest.
PAGE_ROWS = 1_000  # Nodes of a folder that are read together; one that lives is enough.
ROOT = "/"


def parts_of(path: str) -> tuple[str, ...]:
    """Return the names in a path; `/` and the empty text have none.

    Raises:
        InvalidInputError: a name is `.`, `..`, too long, or has a control character.
    """
    encode_text(path, "path", PATH_BYTES_MAX)
    parts = tuple(part for part in path.split("/") if part)
    for part in parts:
        if part in (".", ".."):
            raise InvalidInputError(f"path {path!r:.80}: leave out '.' and '..'")
        if not part.isprintable():
            raise InvalidInputError(f"path {path!r:.80}: has a control character; remove it")
        encode_text(part, f"path: the name {part!r:.40}", NAME_BYTES_MAX)
    return parts


def path_of(parts: Iterable[str]) -> str:
    """Return the path of names, as the calls return it."""
    return "/" + "/".join(parts)


@dataclass(frozen=True, slots=True)
class Place:
    """A folder or a file in the tree: its path and its node."""

    path: str
    body: BodyRow

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.body.type == FOLDER


@dataclass(frozen=True, slots=True)
class FileTree:
    """The tree of one home on one snapshot, as it is now or as it was `at` a time in microseconds.

    `home` is the row of the world that the tree lives in, None if that world is still to be made.
    """

    reader: Reader
    home: int | None
    at: int | None = None

    def holds(self, body: BodyRow) -> bool:
        """Return whether a node is part of the tree at this time."""
        if self.at is None:
            return body.valid_to is None
        return body.valid_from <= self.at and (body.valid_to is None or self.at < body.valid_to)

    def find(self, path: str) -> Place | None:
        """Return what lies at a path; a folder only as long as it exists (`exists`)."""
        place = self.node_at(path)
        return place if place is not None and self.exists(place) else None

    def node_at(self, path: str) -> Place | None:
        """Return what lies at a path, also a folder from which everything has gone."""
        if self.home is None:
            return None
        found = self._child(self.home, FOLDER, ROOT)
        names: list[str] = []
        for name in parts_of(path):
            if found is None or found.type != FOLDER:
                return None
            folder, names = found.row, [*names, name]
            found = self._child(folder, FOLDER, name) or self._child(folder, FILE, name)
        return None if found is None else Place(path_of(names), found)

    def exists(self, place: Place, gone: Set[int] = frozenset()) -> bool:
        """Return whether a folder exists at this time: something lives in it, or nothing ever did.

        So it goes with the last thing in it, and comes back with the next, as in git. The root
        folder stays, and a file exists anyhow. `gone` are folders that are known not to exist.
        """
        waiting = [place.body.row] if place.is_folder and place.path != ROOT else []
        is_found = not waiting
        while waiting and not is_found:
            was_used = False
            for body in self._ever_in(waiting.pop()):
                was_used = True
                if self.holds(body) and body.row not in gone:
                    if body.type != FOLDER:
                        return True
                    waiting.append(body.row)
            is_found = not was_used
        return is_found

    def _ever_in(self, folder: int) -> Iterator[BodyRow]:
        """Yield what was written directly into a folder up to this time, ended or not."""
        last = 0
        while rows := self.reader.children(folder, after=last, limit=PAGE_ROWS):
            for body in self.reader.bodies(rows):
                if self.at is None or body.valid_from <= self.at:
                    yield body
            last = rows[-1]

    def need(self, path: str, kind: str | None = None) -> Place:
        """Return what lies at a path.

        Raises:
            NotFoundError: nothing lies there.
            ConflictError: it is a folder and not a file, or the other way round.
        """
        place = self.find(path)
        if place is None:
            if kind != FILE and not parts_of(path):
                raise NotFoundError("there are no files yet; write one first")
            raise NotFoundError(f"there is no {path_of(parts_of(path))}; list the folder above it")
        if kind is not None and place.body.type != kind:
            raise ConflictError(
                f"{place.path} is a {place.body.type.lower()}, not a {kind.lower()}"
            )
        return place

    def _child(self, world: int, type_: str, name: str) -> BodyRow | None:
        return next(self.generations(world, type_, name, now_only=self.at is None), None)

    def generations(
        self, world: int, type_: str, name: str, *, now_only: bool = False, all: bool = False
    ) -> Iterator[BodyRow]:
        """Yield the nodes of a name in a world, the latest first; with `all` also ended ones."""
        key = content_key(type_, name, "", world)
        # Ended ones count: the live one is always among the last few.
        rows = self.reader.alike([key], 0, 8 if now_only else GENERATIONS_MAX)
        found = {body.row: body for body in self.reader.bodies(rows)}
        for row in rows:
            body = found[row]
            same = (body.type, body.name, body.parent) == (type_, name, world)
            if same and (all or self.holds(body)):
                yield body

    def inside(self, folders: list[Place]) -> list[Place]:
        """Return the nodes directly in some folders, by path; also folders that do not exist."""
        rows = self.reader.children_of([one.body.row for one in folders])
        held = {one.body.row: one.path.rstrip("/") for one in folders}
        return sorted(
            (
                Place(f"{held[body.parent]}/{body.name}", body)
                for body in self.reader.bodies(rows)
                if body.type in (FOLDER, FILE) and body.parent in held and self.holds(body)
            ),
            key=lambda one: one.path,
        )

    def below(self, place: Place, depth: int | None = None) -> list[Place]:
        """Return everything below a folder, by path; with `depth`, so many levels."""
        found = self.nodes_below(place, depth)
        needed, gone = set[int | None](), set[int]()
        for one in reversed(found):  # What is inside a folder comes before it.
            if one.body.row in needed or self.exists(one, gone):
                needed.add(one.body.parent)
            else:
                gone.add(one.body.row)
        return [one for one in found if one.body.row not in gone]

    def nodes_below(self, place: Place, depth: int | None = None) -> list[Place]:
        """Return everything below a folder, also folders from which everything has gone."""
        found: list[Place] = []
        level = [place] if place.is_folder else []
        while level and depth != 0:
            inner = self.inside(level)
            found += inner
            level = [one for one in inner if one.is_folder]
            depth = None if depth is None else depth - 1
        return sorted(found, key=lambda one: one.path.split("/"))

    def versions(self, files: list[Place]) -> dict[int, Node]:
        """Return the version of each file, by the row of the file."""
        rows = self.reader.children_of([one.body.row for one in files])
        if self.at is None:  # Old versions may be many and long.
            rows = sorted(set(rows) - self.reader.closed_by(rows))
        bodies = [
            body for body in self.reader.bodies(rows) if body.type == VERSION and self.holds(body)
        ]
        nodes = self.reader.nodes([body.row for body in bodies])
        return {body.parent: nodes[body.row] for body in bodies if body.parent is not None}

    def history(self, path: str) -> list[Node]:
        """Return all versions that ever lay at a path, and where they came from; latest first."""
        if self.home is None:
            return []
        found = list(self.generations(self.home, FOLDER, ROOT, all=True))
        *folders, name = parts_of(path)
        for part in folders:
            found = [
                inner
                for body in found
                for inner in self.generations(body.row, FOLDER, part, all=True)
            ]
        files = [
            inner for body in found for inner in self.generations(body.row, FILE, name, all=True)
        ]
        rows = set(self.reader.children_of([body.row for body in files]))
        fresh = rows
        while fresh:  # A file that was moved here has its earlier versions elsewhere.
            edges = self.reader.edges_at(sorted(fresh), "out", ("supersedes",))
            ends = {self.reader.node_row(one.edge.target) for one in edges}
            fresh = {row for row in ends if row is not None} - rows
            rows = rows | fresh
        nodes = (node for node in self.reader.nodes(sorted(rows)).values() if node.type == VERSION)
        return sorted(nodes, key=lambda node: (node.known_from, node.id), reverse=True)
