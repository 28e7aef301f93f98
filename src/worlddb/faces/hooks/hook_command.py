"""`worlddb hook EVENT`: read a client's event, inject what is remembered, capture what was said."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from worlddb.faces.hooks.client_dialects import (
    DIALECTS,
    HookEvent,
    SessionFiles,
    answer_of,
    event_of,
    log_line,
    remove_old,
)
from worlddb.faces.user_paths import data_directory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# The project that a hook runs in: found by its git folder, named as its clones are.
#
# A file `.worlddb.toml` in the root of the project may say `hooks = "off"` (or "inject", or
# "capture") and `project = "name"`.

PROJECT_FILE = ".worlddb.toml"
MODES = ("on", "off", "inject", "capture")
NAME_CHARS_MAX = 120  # Below the 512 bytes of a scope's value in any script.


class Project(NamedTuple):
    """A project: its name, which is the same for every clone, and what its file says of hooks."""

    name: str | None
    mode: str


def project_of(folder: str) -> Project:
    """Return the project of a folder; without a git folder above it, there is none."""
    root = _root(folder)
    if root is None:
        return Project(None, "on")
    told = _file(os.path.join(root, PROJECT_FILE))
    mode = str(told.get("hooks", "on"))
    return Project(str(told.get("project") or _name(root))[:NAME_CHARS_MAX], mode)


def _root(folder: str) -> str | None:
    while folder:
        if os.path.exists(os.path.join(folder, ".git")):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return None


def _name(root: str) -> str:
    """Return owner/name from the address of "origin"; without one, the folder's name and a digest.

    A folder's name alone is that of several projects: "app", "test".
    """
    git = _git_folder(os.path.join(root, ".git"))
    config = _read(os.path.join(git, "config"))
    origin = re.search(r'\[remote "origin"\][^\[]*?\burl\s*=\s*(\S+)', config)
    if origin:
        parts = re.split(r"[/:]", origin[1].removesuffix("/").removesuffix(".git"))
        return "/".join(part for part in parts[-2:] if part)
    from hashlib import sha256

    own = os.path.dirname(os.path.realpath(git))
    return f"{os.path.basename(own)}-{sha256(own.encode(errors='replace')).hexdigest()[:8]}"


def _git_folder(path: str) -> str:
    """Return the git folder; a further worktree has a file that names its own inside of it."""
    if os.path.isdir(path):
        return path
    own = os.path.join(os.path.dirname(path), _read(path).removeprefix("gitdir:").strip())
    common = _read(os.path.join(own, "commondir")).strip()
    return os.path.normpath(os.path.join(own, common)) if common else own


def _file(path: str) -> dict[str, object]:
    text = _read(path)
    if not text:
        return {}
    import tomllib

    return tomllib.loads(text)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(65_536)  # Such files are a page; a larger one is something else.
    except OSError:
        return ""


# `worlddb hook EVENT`.

VARIABLE = "WORLDDB_HOOKS"
DEFAULT_CLIENT = "claude-code"
EVENT_BYTES_MAX = 1 << 24  # A prompt with pasted files; clients send no more.
SWITCHES = {"worlddb off": True, "worlddb on": False}
"""Prompts that switch hooks off for the session, and on again."""


def run(argv: Sequence[str]) -> int | None:
    """Run `worlddb hook` by its arguments; None if they are for the full parser.

    A client starts this with every prompt, so the usual command line is not loaded.
    """
    words, client, event = list(argv), DEFAULT_CLIENT, None
    given: dict[str, str] = {}
    while words:
        word = words.pop(0)
        if word == "--client" and words:
            client = words.pop(0)
        elif word in ("--db", "--key-file") and words:
            given[word[2:].replace("-", "_")] = words.pop(0)
        elif word.startswith("-") or event is not None:
            return None
        else:
            event = word
    if event is None or client not in DIALECTS:
        return None
    return answer(event, client, **given)


def answer(name: str, client: str, db: str | None = None, key_file: str | None = None) -> int:
    """Answer one event on stdin and stdout. It always succeeds, for no hook may stop its client."""
    started = time.monotonic()
    context, folder = "", os.path.join(data_directory(), "hooks")
    try:
        event = event_of(client, name, _told())
        if event is not None:
            context = _context(event, {"db": db, "key_file": key_file}, folder, started)
    except Exception as error:  # Whatever it is, the client's work goes on.
        log_line(folder, f"{client} {name}: gave up: {type(error).__name__}: {error}")
    _print(answer_of(client, name, context))
    return 0


def _told() -> dict[str, Any]:
    data = sys.stdin.buffer.read(EVENT_BYTES_MAX) if sys.stdin is not None else b""
    told = json.loads(data) if data.strip() else {}
    return told if isinstance(told, dict) else {}


def _print(answer: dict[str, Any]) -> None:
    with suppress(OSError, ValueError):
        if sys.stdout is not None:
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def _context(event: HookEvent, flags: Mapping[str, str | None], folder: str, started: float) -> str:
    """Do what an event is for; return the context for the model."""
    project = project_of(event.folder or os.getcwd())
    mode = _mode(project)
    if mode == "off":
        return ""
    files = SessionFiles(folder, event.client, event.session)
    switch = SWITCHES.get(event.prompt.strip().casefold())
    if switch is not None:
        files.switch(off=switch)
    from argparse import Namespace

    from worlddb.faces.face_settings import settings_from

    settings = settings_from(Namespace(**flags))
    is_off = files.off or switch is not None
    if event.deed in ("capture", "both") and mode != "inject":
        from worlddb.faces.hooks.hook_actions import capture_apart

        capture_apart(event, settings, project.name, files, folder, skip=is_off)
    if event.deed == "capture" or mode == "capture" or is_off:
        return ""
    if event.deed == "open":
        remove_old(folder)
        if event.fresh:
            files.begin_anew()
    from worlddb.faces.hooks.hook_actions import injected

    deadline = started + settings.hook_timeout_s
    _give_up_at(deadline, event, folder)
    return injected(event, settings, project.name, files, deadline)


def _mode(project: Project) -> str:
    """Return the mode that environment and project allow: on, off, inject or capture.

    Raises:
        ValueError: one of them says something else.
    """
    given = [os.environ.get(VARIABLE), project.mode]
    modes = {one.strip().casefold() for one in given if one}
    for one in modes - set(MODES):
        raise ValueError(f"{VARIABLE}: {one!r:.40} is not one of {', '.join(MODES)}")
    modes.discard("on")
    # Both may only take away: one says inject, the other capture, and nothing is left.
    return modes.pop() if len(modes) == 1 else "off" if modes else "on"


def _give_up_at(deadline: float, event: HookEvent, folder: str) -> None:
    """End this process at a deadline with an empty answer."""
    from threading import Thread

    def watch() -> None:
        time.sleep(max(deadline - time.monotonic(), 0))
        log_line(folder, f"{event.client} {event.name}: gave up: out of time")
        _print(answer_of(event.client, event.name, ""))
        os._exit(0)  # Nothing that was acknowledged is lost.

    Thread(target=watch, name="worlddb-hook-deadline", daemon=True).start()
