"""The project that a hook runs in: found by its git folder, named as its clones are.

A file `.worlddb.toml` in the root of the project may say `hooks = "off"` (or "inject", or
"capture") and `project = "name"`.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

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
