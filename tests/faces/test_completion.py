"""completion: scripts that real shells read, and what they complete."""

from __future__ import annotations

import argparse
import contextlib
import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

from worlddb.faces.cli.command_line import make_parser

from .command import DEADLINE_S, environment, in_process

ASK = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMPREPLY=()
complete -p worlddb > /dev/null || exit 1
_shtab_worlddb
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "worlddb.bash"
    done = in_process("completion", "bash")
    assert done.code == 0
    path.write_text(done.out)
    return path


def commands() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command."""
    parsers: dict[str, argparse.ArgumentParser] = {}
    for action in make_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            parsers |= action.choices
    return parsers


def completed(script: Path, *words: str, cwd: Path | None = None) -> list[str]:
    """Return what bash completes the last of some words to."""
    done = subprocess.run(
        ["bash", "--norc", "-u", "-c", ASK, "bash", str(script), "worlddb", *words],
        capture_output=True,
        text=True,
        env=environment(),
        cwd=cwd,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_options_that_help_does_not_show_are_not_completed(script: Path) -> None:
    assert completed(script, "list", "--as") == ["--as-of"]
    assert completed(script, "list", "--known") == ["--known-at"]
    assert completed(script, "list", "--valid") == []


def test_bash_completes_commands(script: Path) -> None:
    found = ["recall", "read", "retire", "retention", "restore", "rekey", "reindex", "reads"]
    assert completed(script, "re") == found
    assert completed(script, "--db", "x.db", "doc") == ["doctor"]
    assert completed(script, "--json", "am") == ["amend"]
    assert completed(script, "") == [*commands()]


def test_bash_completes_the_options_of_a_command(script: Path) -> None:
    assert completed(script, "write", "--me") == ["--messages", "--metadata"]
    assert completed(script, "--j") == ["--json"]
    assert completed(script, "check", "--user") == []


def test_bash_completes_choices(script: Path) -> None:
    assert completed(script, "setup", "c") == [
        "claude",
        "claude-code",
        "cursor",
        "codex",
        "copilot",
        "cline",
    ]
    assert completed(script, "setup", "--user-id", "ada", "vs") == ["vscode"]
    assert completed(script, "scopes", "--kind", "a") == ["agent", "app"]
    assert completed(script, "scopes", "--kind", "u") == ["user"]
    assert completed(script, "scopes", "purge", "") == []


def test_bash_completes_file_names(script: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "memory.db").touch()
    assert completed(script, "import", "no", cwd=tmp_path) == ["notes.txt"]
    assert completed(script, "check", "--db", "me", cwd=tmp_path) == ["memory.db"]


def test_the_tab_key_completes_at_a_real_prompt(script: Path, tmp_path: Path) -> None:
    (tmp_path / "precious.db").touch()
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=tmp_path,
        env=environment({"PS1": "$ ", "INPUTRC": os.devnull, "TERM": "dumb"}),
        start_new_session=True,
    )
    os.close(theirs)
    # Complete, go to the beginning of the line, and have it printed instead of run.
    os.write(ours, f'source "{script}"\n'.encode())
    os.write(ours, b"worlddb doct\t\x01echo FIRST \n")
    os.write(ours, b"worlddb check --db prec\t\x01echo SECOND \n")
    os.write(ours, b"exit\n")
    screen = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 65_536):
            screen += chunk
    os.close(ours)
    assert shell.wait(DEADLINE_S) == 0
    lines = screen.decode().splitlines()
    assert "FIRST worlddb doctor" in lines
    assert "SECOND worlddb check --db precious.db" in lines


def test_every_command_and_every_option_is_in_each_script() -> None:
    for shell in ("bash", "zsh", "fish"):
        text = in_process("completion", shell).out
        for name, parser in commands().items():
            assert name in text
            for action in parser._actions:
                for option in action.option_strings if action.help != argparse.SUPPRESS else ():
                    assert (option if shell != "fish" else option.lstrip("-")) in text
    assert in_process("completion", "bash", "--json").data["shell"] == "bash"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_their_script(shell: str) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    text = in_process("completion", shell).out
    done = subprocess.run(
        [found, "-n" if shell == "zsh" else "--no-execute"],
        input=text,
        text=True,
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_unknown_shell_is_refused() -> None:
    done = in_process("completion", "tcsh")
    assert (done.code, done.out) == (2, "")
    assert "invalid choice" in done.err
