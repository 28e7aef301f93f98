"""File tree: folders, files and their versions among the nodes of one world; patterns for them.

    home ─ Folder "/" ─┬─ Folder "notes" ─ File "today.md" ─┬─ Version "/notes/today.md" (ended)
                       └─ File "todo.md" ─ …                 └─ Version "/notes/today.md"

A folder and a file are worlds without content. The text of a file is the content of its live
version. A new version supersedes the one before; a deleted file has no live version. So every old
text stays readable, the state of a folder covers everything below it, and recall finds the texts.

A folder or a file is found by its name through the content index, with one look-up for each part of
the path.

A caller may give a pattern that is slow on purpose. Globs and plain texts are matched without
backtracking. A regular expression may run for years on one line, cannot be stopped inside a thread,
and blocks all other threads. So it runs in a process of its own, which is ended after `GREP_S_MAX`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Literal

from worlddb.errors import ConflictError, InvalidInputError, NotFoundError
from worlddb.model.address import Id, content_key
from worlddb.model.inputs import Plain, encode_text
from worlddb.model.records import Commit, Node
from worlddb.store.interface import Reader
from worlddb.store.rows import BodyRow

# File values: the results of the calls on files.


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry(Plain):
    """A file or a folder in a list; `version`, `bytes` and `modified` are set for files only."""

    path: str
    kind: Literal["file", "folder"]
    version: Id | None
    bytes: int
    modified: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText(Plain):
    """The text of one version of a file.

    `created` is when the file was created, `modified` when this version was written, `ended` when
    it was superseded. For a version requested by id, `created` is the version's own time.
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
    """One version of a file: its path, its validity, and its author."""

    path: str
    version: Id
    bytes: int
    modified: datetime
    ended: datetime | None
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange(Plain):
    """The result of a change of files. `version` is the file's new version; None if it has none.

    `created` says whether the file was new. `commit` is None if nothing had to be written.
    """

    path: str
    version: Id | None
    created: bool
    commit: Commit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMatch(Plain):
    """A line that matches a pattern; lines count from 1."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileList(Plain):
    """The contents of a folder, by path."""

    entries: tuple[FileEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePaths(Plain):
    """The paths of files that match a glob."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMatches(Plain):
    """The lines of files that match a pattern."""

    matches: tuple[FileMatch, ...]


# File tree.

FOLDER, FILE, VERSION = "Folder", "File", "Version"
NAME_BYTES_MAX = 255  # The limit of most file systems, so a tree can be copied to a disk.
PATH_BYTES_MAX = 4_096  # The limit of a node's name; the name of a version is its path.
GENERATIONS_MAX = 1_000  # Deleted files of one name whose versions `history` still finds.
PAGE_ROWS = 1_000  # Nodes of a folder that are read at a time.
ROOT = "/"


def parts_of(path: str) -> tuple[str, ...]:
    """Return the names in a path; `/` and the empty text have none."""
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
    """Return the path with these names."""
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
    """The tree of one home on one snapshot, now or as of `at`, a time in microseconds.

    `home` is the row of the world that holds the tree; None if that world does not exist yet.
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
        """Return the file or folder at a path; a folder only while it exists (`exists`)."""
        place = self.node_at(path)
        return place if place is not None and self.exists(place) else None

    def node_at(self, path: str) -> Place | None:
        """Return the file or folder at a path, also an emptied folder."""
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
        """Return whether a place exists at this time; a folder does while anything lives in it.

        A folder that was created empty exists, too. As in git, a folder vanishes with its last
        entry, and returns with the next one. The root folder and files always exist. `gone` are
        folders known not to exist.
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
        """Yield everything written directly into a folder up to this time, also ended nodes."""
        last = 0
        while rows := self.reader.children(folder, after=last, limit=PAGE_ROWS):
            for body in self.reader.bodies(rows):
                if self.at is None or body.valid_from <= self.at:
                    yield body
            last = rows[-1]

    def need(self, path: str, kind: str | None = None) -> Place:
        """Return the file or folder at a path, which must exist."""
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
        """Yield the nodes of a name in a world, the latest first; with `all`, also ended ones."""
        key = content_key(type_, name, "", world)
        # Ended nodes count: the live one is always among the last few.
        rows = self.reader.alike([key], 0, 8 if now_only else GENERATIONS_MAX)
        found = {body.row: body for body in self.reader.bodies(rows)}
        for row in rows:
            body = found[row]
            same = (body.type, body.name, body.parent) == (type_, name, world)
            if same and (all or self.holds(body)):
                yield body

    def inside(self, folders: list[Place]) -> list[Place]:
        """Return the nodes directly in some folders, by path; also emptied folders."""
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
        for one in reversed(found):  # The contents of a folder come before the folder.
            if one.body.row in needed or self.exists(one, gone):
                needed.add(one.body.parent)
            else:
                gone.add(one.body.row)
        return [one for one in found if one.body.row not in gone]

    def nodes_below(self, place: Place, depth: int | None = None) -> list[Place]:
        """Return everything below a folder, also emptied folders."""
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
        """Return all versions that ever had a path, and those before a move; latest first."""
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


# -- patterns ----------------------------------------------------------------------------------

PATTERN_BYTES_MAX = 4_096  # As long as a path; patterns that programs use are far shorter.
GREP_S_MAX = 5.0  # A usual pattern reads megabytes in it, and callers wait no longer.
Lines = list[tuple[int, int, str]]
"""Matching lines: the index of the text, the line number from 1, and the line itself."""
SEARCHER = """
import json, re, sys
given = json.load(sys.stdin)
matches = []
try:
    found = re.compile(given["pattern"], given["flags"])
except (re.error, RecursionError, OverflowError, MemoryError) as error:
    json.dump({"error": str(error) or type(error).__name__}, sys.stdout)
    sys.exit()
for at, text in enumerate(given["texts"]):
    for number, line in enumerate(text.splitlines(), 1):
        if len(matches) < given["limit"] and found.search(line):
            matches.append((at, number, line))
json.dump({"matches": matches}, sys.stdout)
"""


def path_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests whether a path matches a glob."""
    encode_text(pattern, "glob", PATTERN_BYTES_MAX)
    if not pattern.strip("/"):
        raise InvalidInputError("glob: give a pattern, such as *.md or /notes/**")
    wanted = [part for part in pattern.split("/") if part]
    if "/" not in pattern:
        wanted = ["**", *wanted]
    return lambda path: _fits(parts_of(path), wanted)


def _fits(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether a path matches; only the last `**` is backtracked: quadratic time."""
    at = part = 0
    again: tuple[int, int] | None = None
    while at < len(names):
        if part < len(wanted) and wanted[part] == "**":
            if part == len(wanted) - 1:
                return True
            again, part = (at, part), part + 1
        elif part < len(wanted) and fnmatchcase(names[at], wanted[part]):
            at, part = at + 1, part + 1
        elif again is None:
            return False
        else:
            again = (again[0] + 1, again[1])
            at, part = again[0], again[1] + 1
    return part == len(wanted)


def literal_lines(literal: str, texts: Sequence[str], *, ignore_case: bool, limit: int) -> Lines:
    """Return the lines that contain a plain text, in linear time.

    Raises:
        InvalidInputError: the text is too long.
    """
    encode_text(literal, "pattern", PATTERN_BYTES_MAX)
    literal, found = literal.casefold() if ignore_case else literal, []
    for at, text in enumerate(texts):
        for number, line in enumerate(text.splitlines(), 1):
            if literal in (line.casefold() if ignore_case else line):
                found.append((at, number, line))
                if len(found) >= limit:
                    return found
    return found


def pattern_lines(pattern: str, texts: Sequence[str], *, ignore_case: bool, limit: int) -> Lines:
    """Return the lines that match a regular expression, which runs in another process."""
    encode_text(pattern, "pattern", PATTERN_BYTES_MAX)
    flags = int(re.IGNORECASE if ignore_case else re.NOFLAG)
    given = {"pattern": pattern, "flags": flags, "texts": texts, "limit": limit}
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", SEARCHER],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            timeout=GREP_S_MAX,
            check=True,
        )
    except subprocess.TimeoutExpired:
        problem = f"took more than {GREP_S_MAX:.0f} s; simplify it, or limit the files by a glob"
    except (OSError, subprocess.CalledProcessError) as error:
        problem = f"the search process failed: {error!s:.200}"
    else:
        answer = json.loads(done.stdout)
        if "matches" in answer:
            return [(at, number, line) for at, number, line in answer["matches"]]
        problem = answer["error"]
    raise InvalidInputError(f"pattern {pattern!r:.80}: {problem}; for a plain text, set literal")
