"""deepagents: a backend whose files are the versioned files of a scope.

    create_deep_agent(model, backend=WorldBackend(worlddb.Memory("memory.db"), user_id="ada"))

Every write is a commit, earlier versions stay readable, and recall finds the texts.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, TypeVar

from deepagents.backends.protocol import (
    BackendProtocol,
    DeleteResult,
    EditResult,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.utils import (
    compile_grep_include_glob,
    grep_matches_from_files,
    perform_string_replacement,
    slice_read_response,
)

from worlddb.errors import WorldDBError
from worlddb.files.file_tree import FileText
from worlddb.memory.memory import Memory

ENCODING = "encoding"
BINARY = "base64"
R = TypeVar("R")


class WorldBackend(BackendProtocol):
    """The files of a scope of `memory`; `scope` is one scope id, such as `user_id="ada"`."""

    def __init__(self, memory: Memory, **scope: Any) -> None:
        self._files = memory.files_of(**scope)

    def ls(self, path: str) -> LsResult:
        """List the contents of a folder; a missing folder is empty."""

        def run() -> LsResult:
            if not self._files.exists(path):
                return LsResult(entries=[])
            found = self._files.list(path)
            return LsResult(
                entries=[
                    {"path": one.path, "is_dir": False, "size": one.bytes, "modified_at": _iso(one)}
                    if one.kind == "file"
                    else {"path": one.path + "/", "is_dir": True}
                    for one in found
                ]
            )

        return _answer(run, lambda error: LsResult(error=error))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Return some lines of a file."""

        def run() -> ReadResult:
            data = _data(self._files.read(file_path))
            if data[ENCODING] == BINARY:
                return ReadResult(file_data=data)
            return slice_read_response(data, offset, limit)

        return _answer(run, lambda error: ReadResult(error=error))

    def write(self, file_path: str, content: str) -> WriteResult:
        """Write a file; an existing file gets a new version."""

        def run() -> WriteResult:
            self._files.write(file_path, content)
            return WriteResult(path=file_path)

        return _answer(run, lambda error: WriteResult(error=error))

    def edit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> EditResult:
        """Replace a text in a file; it must occur once, unless `replace_all` is set."""

        def run() -> EditResult:
            with self._files.changes() as changes:
                file = changes.read(file_path)
                if file.metadata.get(ENCODING) == BINARY:
                    return EditResult(error="Error: a binary file has no text to replace")
                made = perform_string_replacement(file.text, old_string, new_string, replace_all)
                if isinstance(made, str):
                    return EditResult(error=made)
                changes.write(file_path, made[0], file.version, file.metadata)
            return EditResult(path=file_path, occurrences=int(made[1]))

        return _answer(run, lambda error: EditResult(error=error))

    def delete(self, file_path: str) -> DeleteResult:
        """End a file, or a folder with all its contents."""

        def run() -> DeleteResult:
            self._files.delete(file_path)
            return DeleteResult(path=file_path)

        return _answer(run, lambda error: DeleteResult(error=error))

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
    ) -> GrepResult:
        """Return the lines that contain a text."""

        def run() -> GrepResult:
            files = {one.path: _data(one) for one in self._files.read_all()}
            return grep_matches_from_files(files, pattern, path, glob, max_count=max_count)

        return _answer(run, lambda error: GrepResult(error=error))

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Return the files whose paths below `path` match a glob, the latest first."""

        def run() -> GlobResult:
            root = "/" + (path or "").strip("/")
            matches = compile_grep_include_glob(pattern)
            found = self._files.list(root, depth=None) if self._files.exists(root) else []
            chosen = [
                one
                for one in found
                if one.kind == "file" and matches(one.path.removeprefix(root).lstrip("/"))
            ]
            chosen.sort(key=_iso, reverse=True)
            return GlobResult(
                matches=[
                    {"path": one.path, "is_dir": False, "size": one.bytes, "modified_at": _iso(one)}
                    for one in chosen
                ]
            )

        return _answer(run, lambda error: GlobResult(error=error))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write files from bytes; bytes that are not UTF-8 are stored as base64."""
        answers = []
        for path, content in files:
            try:
                text, metadata = content.decode(), None
            except UnicodeDecodeError:
                text, metadata = base64.b64encode(content).decode(), {ENCODING: BINARY}
            try:
                self._files.write(path, text, metadata=metadata)
                answers.append(FileUploadResponse(path=path))
            except WorldDBError as error:
                answers.append(FileUploadResponse(path=path, error=str(error)))
        return answers

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Return files as bytes."""
        answers = []
        for path in paths:
            try:
                file = self._files.read(path)
            except WorldDBError:
                answers.append(FileDownloadResponse(path=path, error=self._why(path)))
                continue
            is_binary = file.metadata.get(ENCODING) == BINARY
            content = base64.b64decode(file.text) if is_binary else file.text.encode()
            answers.append(FileDownloadResponse(path=path, content=content))
        return answers

    def _why(self, path: str) -> str:
        """Return the reason why a file cannot be read, as an error code of deepagents."""
        try:
            return "is_directory" if self._files.exists(path) else "file_not_found"
        except WorldDBError:
            return "invalid_path"


def _answer(run: Callable[[], R], failed: Callable[[str], R]) -> R:
    """Return a result, in which an error of WorldDB or a wrong pattern is text, not raised."""
    try:
        return run()
    except (WorldDBError, ValueError) as error:
        return failed(f"Error: {error}")


def _data(file: FileText) -> Any:
    return {
        "content": file.text,
        ENCODING: file.metadata.get(ENCODING, "utf-8"),
        "created_at": file.created.isoformat(),
        "modified_at": file.modified.isoformat(),
    }


def _iso(entry: Any) -> str:
    return "" if entry.modified is None else str(entry.modified.isoformat())
