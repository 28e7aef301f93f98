"""Anthropic: the memory tool of the Messages API on versioned files.

    client.beta.messages.tool_runner(..., tools=[WorldMemoryTool(Memory("memory.db"))])

The model sees a folder /memories. Its files are files of the scope: each change is a commit, old
versions stay readable, and recall finds the texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

from worlddb.adapters.item_log import on_thread
from worlddb.errors import ConflictError, NotFoundError, WorldDBError
from worlddb.files.file_tree import FileEntry
from worlddb.files.versioned_files import FileChanges, Files
from worlddb.memory.memory import Memory

ROOT = "/memories"
LINES_MAX = 999_999  # Six digits, the width of the tool's line numbers.
LEVELS_SHOWN = 2  # As the tool's description tells the model.
CONTEXT_LINES = 2  # Lines shown before and after a replacement.
T = TypeVar("T")


class MemoryCommands:
    """The commands of the memory tool on files, with the replies that the model expects."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def view(self, command: Any) -> str:
        """Return a file with line numbers, or the contents of a folder."""
        path = _checked(command.path)
        try:
            entries = self.files.list(path, depth=LEVELS_SHOWN)
        except NotFoundError:
            if path != ROOT:
                raise ToolError(_missing(command.path)) from None
            entries = []
        if len(entries) == 1 and entries[0].path == path and entries[0].kind == "file":
            return self._file(command)
        shown = command.path.rstrip("/")
        lines = [f"{_size(sum(one.bytes for one in entries))}\t{command.path}"]
        for one in entries:
            inner = one.path.removeprefix(path)
            if "/." not in inner:
                end = "/" if one.kind == "folder" else ""
                lines.append(f"{_size(_bytes(one, entries))}\t{shown}{inner}{end}")
        return (
            "Here're the files and directories up to 2 levels deep in "
            f"{command.path}, excluding hidden items:\n" + "\n".join(lines)
        )

    def _file(self, command: Any) -> str:
        lines = self.files.read(_checked(command.path)).text.split("\n")
        if len(lines) > LINES_MAX:
            raise ToolError(f"File {command.path} exceeds maximum line limit of 999,999 lines.")
        start, end = 0, len(lines)
        if command.view_range and len(command.view_range) == 2:
            first, last = command.view_range
            start, end = max(1, first) - 1, len(lines) if last == -1 else last
        return f"Here's the content of {command.path} with line numbers:\n" + _numbered(
            lines[start:end], start + 1
        )

    def create(self, command: Any) -> str:
        """Create a file."""
        path = _checked(command.path)
        try:
            self.files.write(path, command.file_text, expected=None)
        except ConflictError as error:
            if "exists already" in str(error) or "is a folder" in str(error):
                raise ToolError(f"File {command.path} already exists") from None
            raise ToolError(str(error)) from None
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: Any) -> str:
        """Replace a text that occurs once; return the lines around it."""
        old, new = command.old_str, command.new_str or ""
        with self.files.changes() as changes:
            text = _text(changes, command.path)
            count = text.count(old)
            if count == 0:
                raise ToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in "
                    f"{command.path}."
                )
            if count > 1:
                places = [match.start() for match in re.finditer(f"(?={re.escape(old)})", text)]
                lines = ", ".join(str(text[:place].count("\n") + 1) for place in places)
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in "
                    f"lines: {lines}. Please ensure it is unique"
                )
            changed = text.replace(old, new)
            changes.write(_checked(command.path), changed, amends=True)
        line, lines_now = text[: text.find(old)].count("\n"), changed.split("\n")
        start = max(0, line - CONTEXT_LINES)
        return (
            "The memory file has been edited. Here is the snippet showing the change "
            "(with line numbers):\n"
            + _numbered(lines_now[start : line + CONTEXT_LINES + 1], start + 1)
        )

    def insert(self, command: Any) -> str:
        """Insert a text after a line."""
        with self.files.changes() as changes:
            lines = _text(changes, command.path).split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= command.insert_line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {command.insert_line}. It should be within "
                    f"the range [0, {len(lines)}]."
                )
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            text = "\n".join(lines)
            text = text if text.endswith("\n") else text + "\n"
            changes.write(_checked(command.path), text, amends=True)
        return f"The file {command.path} has been edited."

    def delete(self, command: Any) -> str:
        """End a file or a folder."""
        path = _checked(command.path)
        if path == ROOT:
            raise ToolError("Cannot delete the /memories directory itself")
        try:
            self.files.delete(path)
        except NotFoundError:
            raise ToolError(f"The path {command.path} does not exist") from None
        return f"Successfully deleted {command.path}"

    def rename(self, command: Any) -> str:
        """Move a file or a folder."""
        old, new = _checked(command.old_path), _checked(command.new_path)
        if old == ROOT:
            raise ToolError("Cannot rename the /memories directory itself")
        if self.files.exists(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        try:
            self.files.move(old, new)
        except NotFoundError:
            raise ToolError(f"The path {command.old_path} does not exist") from None
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """End everything in /memories."""
        if self.files.exists(ROOT):
            self.files.delete(ROOT)
        return "All memory cleared"

    def run(self, call: Callable[..., str], *given: Any) -> str:
        """Run a command; an error of WorldDB becomes an error that the model reads."""
        try:
            return call(*given)
        except WorldDBError as error:
            raise ToolError(str(error)) from None


def _checked(path: str) -> str:
    """Return a path in /memories as a path of the file tree."""
    if path != ROOT and not path.startswith(ROOT + "/"):
        raise ToolError(f"Path must start with /memories, got: {path}")
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            if len(names) < 2:
                raise ToolError(f"Path {path} would escape /memories directory")
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    return "/" + "/".join(names)


def _missing(path: str) -> str:
    return f"The path {path} does not exist. Please provide a valid path."


def _text(changes: FileChanges, path: str) -> str:
    place = changes.tree.find(_checked(path))
    if place is None:
        raise ToolError(_missing(path))
    if place.is_folder:
        raise ToolError(f"The path {path} is not a file.")
    return changes.read(place.path).text


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def _bytes(one: FileEntry, entries: list[FileEntry]) -> int:
    """Return the size of a file, or of the listed files in a folder."""
    inside = one.path + "/"
    return one.bytes + sum(other.bytes for other in entries if other.path.startswith(inside))


def _size(count: int) -> str:
    """Return a size in the tool's format: 512B, 1.5K, 2M."""
    step = min(max(count.bit_length() - 1, 0) // 10, 3)
    size = count / 1024**step
    return f"{size:.1f}".removesuffix(".0") + "BKMG"[step]


def _command(name: str) -> Callable[..., str]:
    """Return a method of the tool that runs a command of `MemoryCommands`."""

    def run(self: Any, *given: Any) -> str:
        commands: MemoryCommands = self.commands
        return commands.run(getattr(commands, name), *given)

    run.__name__, run.__doc__ = name, getattr(MemoryCommands, name).__doc__
    return run


class WorldMemoryTool(BetaAbstractMemoryTool):
    """The memory tool on the files of a memory's scope.

    `memory` is a `Memory` (its default scope is used) or `Files`.
    """

    def __init__(self, memory: Memory | Files, **options: Any) -> None:
        super().__init__(**options)
        self.commands = MemoryCommands(memory.files if isinstance(memory, Memory) else memory)

    view = _command("view")
    create = _command("create")
    str_replace = _command("str_replace")
    insert = _command("insert")
    delete = _command("delete")
    rename = _command("rename")
    clear_all_memory = _command("clear_all_memory")


class AsyncWorldMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for async clients; each command runs on a thread."""

    def __init__(self, memory: Memory | Files, **options: Any) -> None:
        super().__init__(**options)
        self.commands = MemoryCommands(memory.files if isinstance(memory, Memory) else memory)

    view = on_thread(_command("view"))
    create = on_thread(_command("create"))
    str_replace = on_thread(_command("str_replace"))
    insert = on_thread(_command("insert"))
    delete = on_thread(_command("delete"))
    rename = on_thread(_command("rename"))
    clear_all_memory = on_thread(_command("clear_all_memory"))
