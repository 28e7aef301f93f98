"""`worlddb files`: the tree of a scope on the command line."""

from __future__ import annotations

from pathlib import Path

from .command import in_process


def test_files_are_written_read_changed_and_found(tmp_path: Path) -> None:
    db = ("--db", tmp_path / "m.db")
    text = "Green tea: 80 degrees\nBlack tea: 95 degrees\n"
    done = in_process(*db, "files", "write", "/notes/tea.md", "-", stdin=text.encode())
    assert done.code == 0, done.err
    assert done.out.startswith("write /notes/tea.md, version ")
    assert in_process(*db, "files", "read", "/notes/tea.md").out == text
    first = in_process(*db, "files", "list", "/notes", "--json").data["entries"][0]
    assert (first["path"], first["bytes"]) == ("/notes/tea.md", len(text))
    edit = ("files", "edit", "/notes/tea.md", "80", "75")
    done = in_process(*db, *edit, "--version", first["version"][:8], "--json")
    assert done.code == 0, done.err
    assert in_process(*db, *edit, "--version", first["version"]).code != 0
    assert "75" in in_process(*db, "files", "read", "/notes/tea.md").out
    old = in_process(*db, "files", "read", "/notes/tea.md", "--version", first["version"])
    assert old.out == text
    assert len(in_process(*db, "files", "history", "/notes/tea.md").rows) == 2
    assert in_process(*db, "files", "glob", "*.md").rows == ["/notes/tea.md"]
    assert "95" in in_process(*db, "files", "grep", "^Black", "/notes").out
    assert "95" in in_process(*db, "files", "grep", "--ignore-case", "^black", "/notes").out
    assert in_process(*db, "files", "grep", "--ignored", "^black").code == 2
    assert in_process(*db, "files", "grep", "coffee").code == 1
    assert in_process(*db, "files", "grep", "--literal", "^Black").code == 1
    assert in_process(*db, "files", "grep", "tea", "--glob", "*.txt").code == 1
    grep = in_process(*db, "files", "grep", "tea", "--glob", "*.md", "--limit", "1", "--json")
    assert [one["line"] for one in grep.data["matches"]] == [1]
    assert in_process(*db, "files", "move", "/notes", "/old").code == 0
    assert in_process(*db, "files", "write", "/old/tea.md", "x", "--new").code != 0
    assert in_process(*db, "files", "--all").out.split("\n")[1].endswith("/old/")
    assert in_process(*db, "files", "delete", "/old").code == 0
    assert in_process(*db, "files").err == "nothing found\n"
    assert in_process(*db, "files", "--user-id", "bob").err == "nothing found\n"
    assert in_process(*db, "files", "move", "/old").err.strip().endswith("give PATH TARGET")
