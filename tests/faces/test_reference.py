"""The reference page says what the command says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from worlddb.faces.cli.command_line import command_names

from .command import environment, in_process
from .reference import COLUMNS, PAGE


def test_the_page_is_what_the_help_texts_say() -> None:
    program = "import reference, sys; sys.stdout.buffer.write(reference.page().encode())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        cwd=Path(__file__).parent,
        env=environment(),
        check=True,
    )
    assert PAGE.read_text(encoding="utf-8") == done.stdout.decode(), (
        "docs/reference/command-line.md is out of date: run python tests/faces/reference.py"
    )


def test_each_command_has_a_heading_and_its_whole_help_text() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in command_names():
        text = in_process(name, "--help", env={"COLUMNS": COLUMNS}).out
        assert text.startswith(f"usage: worlddb {name} [options]")
        assert "examples:\n" in text
        assert f"## {name}\n\n```text\n{text.rstrip()}\n```\n" in page
