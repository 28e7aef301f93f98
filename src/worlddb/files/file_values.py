"""File values: what the calls on files return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from worlddb.model.address import Id
from worlddb.model.records import Commit, Plain


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
