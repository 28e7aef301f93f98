"""Version calls: the calls of Memory on versioned files, and on branches of a store."""

from __future__ import annotations

from typing import Any

from worlddb.faces.call_parts import (
    AS_OF,
    DRY_RUN,
    SCOPES,
    TEXT_CHARS_MAX,
    Call,
    Effect,
    Parameter,
    flag,
    needed,
)

# Branch calls: create, compare, merge and drop branches of a store; for administrators.

BRANCH_NAME_CHARS_MAX = 64  # The limit of a store.

BRANCH_NAME = needed("name", "text", "The name of the branch.", most=BRANCH_NAME_CHARS_MAX)


BRANCH_CALLS: tuple[Call, ...] = (
    Call(
        name="branches",
        title="List branches",
        summary="List the branches of the store",
        help="List the branches of the store: where each was forked, and the space it takes.",
        parameters=(),
        result="Branches",
        effect="read",
        method="GET",
        path="/v1/branches",
        command="branch",
    ),
    Call(
        name="create_branch",
        title="Create a branch",
        summary="Make a branch of the store",
        help="Create a branch: a separate store that begins as a copy of this one.",
        parameters=(BRANCH_NAME,),
        result="Branch",
        effect="change",
        idempotent=False,
        path="/v1/branches",
        command="branch",
    ),
    Call(
        name="branch_diff",
        title="Show the changes of a branch",
        summary="Show what was written to a branch and not merged yet",
        help="Show the nodes, edges and changes of a branch that were not merged yet.",
        parameters=(BRANCH_NAME,),
        result="Diff",
        effect="read",
        method="GET",
        path="/v1/branches/{name}/diff",
        command="branch",
    ),
    Call(
        name="merge",
        title="Merge a branch",
        summary="Write what a branch says into the store",
        help="Write the changes of a branch into the store, as one commit; {undo} can undo it.",
        parameters=(BRANCH_NAME, DRY_RUN),
        result="Merged",
        effect="change",
        path="/v1/branches/{name}/merge",
        command="merge",
    ),
    Call(
        name="drop_branch",
        title="Drop a branch",
        summary="Remove a branch",
        help="Remove a branch with all its changes; return the remaining branches.",
        parameters=(BRANCH_NAME,),
        result="Branches",
        effect="end",
        idempotent=False,
        path="/v1/branches/{name}/drop",
        command="branch",
    ),
)


# File calls: the calls of Memory on versioned files, for the table in `calls.py`.

PATH_CHARS_MAX = 4_096  # The limit of a path in bytes.
MATCHES_MAX = 1_000  # The limit of one grep.


def _text(name: str, help: str, **more: Any) -> Parameter:
    return Parameter(name, "text", help, most=PATH_CHARS_MAX, **more)


PATH = _text("path", "Path of the file, such as /notes/today.md.", required=True, positional=True)
FOLDER = _text("path", "Path of the folder; / is the root.", default="/", positional=True)
VERSION = Parameter("version", "id", "A version's id in hex, or its first 4 or more digits.")
UNCHANGED = VERSION._replace(help="Only if this is still the latest version.")


def _call(
    name: str, title: str, help: str, given: tuple[Parameter, ...], result: str, effect: Effect
) -> Call:
    action = name.partition("_")[0]
    return Call(
        name=name,
        title=title,
        summary=title,
        help=help,
        # The command `files` handles the parameters by itself.
        parameters=(*(one._replace(in_command=False) for one in given), *SCOPES),
        result=result,
        effect=effect,
        idempotent=action != "edit",
        method="GET" if effect == "read" else "POST",
        path=f"/v1/files/{action}",
        tool=f"memory_{name}",
        toolset="files",
        command="files",
    )


PATTERN = _text("pattern", "The pattern.", required=True, positional=True)


def _content(name: str, help: str, least: int = 0) -> Parameter:
    return needed(name, "content", help, least=least, most=TEXT_CHARS_MAX)


FILE_CALLS: tuple[Call, ...] = (
    _call(
        "list_files",
        "List files",
        "List the contents of a folder in the files of a scope.",
        (FOLDER, flag("all", "All levels below the folder."), AS_OF),
        "FileList",
        "read",
    ),
    _call(
        "read_file",
        "Read a file",
        "Read a file: its latest version, an earlier one, or that of a time.",
        (PATH, VERSION, AS_OF),
        "FileText",
        "read",
    ),
    _call(
        "glob_files",
        "Find files by name",
        "Find files by a glob, such as /notes/**/*.md; a glob without / matches in any folder.",
        (PATTERN, AS_OF),
        "FilePaths",
        "read",
    ),
    _call(
        "grep_files",
        "Find lines in files",
        "Find lines in the files of a scope by a regular expression.",
        (
            PATTERN._replace(help="A regular expression."),
            FOLDER._replace(positional=False, help="The folder to search; / is the root."),
            _text("glob", "Only files that match this glob, such as *.md."),
            flag("ignore_case", "Ignore upper and lower case."),
            flag("literal", "The pattern is plain text."),
            Parameter(
                "limit",
                "whole",
                "The maximum number of lines to return.",
                default=100,
                least=1,
                most=MATCHES_MAX,
            ),
        ),
        "FileMatches",
        "read",
    ),
    _call(
        "write_file",
        "Write a file",
        "Write a file; missing folders are created. Earlier versions stay readable.",
        (
            PATH,
            _content("text", "The whole new text of the file."),
            UNCHANGED,
            flag("new", "Only if the file does not exist yet."),
        ),
        "FileChange",
        "add",
    ),
    _call(
        "edit_file",
        "Edit a file",
        "Replace a piece of text in a file; the text must occur exactly once.",
        (
            PATH,
            _content("old", "The exact text to replace.", 1),
            _content("new", "The replacement."),
            flag("every", "Replace every occurrence."),
            UNCHANGED,
        ),
        "FileChange",
        "add",
    ),
    _call(
        "move_file",
        "Move a file",
        "Move a file, or a folder with all its contents. Files keep their versions.",
        (PATH, _text("target", "The new path.", required=True, positional=True)),
        "FileChange",
        "change",
    ),
    _call(
        "delete_file",
        "Delete a file",
        "End a file, or a folder with all its contents. Versions stay readable.",
        (PATH, UNCHANGED),
        "FileChange",
        "end",
    ),
)
