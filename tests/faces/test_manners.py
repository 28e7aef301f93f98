"""Manners: exit codes, one-line errors, where the store is, pipes, signals and terminals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import worlddb as engine
from worlddb import errors
from worlddb.faces.cli.command_options import BY_ERROR, MEANINGS, exit_code
from worlddb.faces.cli.terminal import Progress, amount, clock, fit, print_table, width
from worlddb.faces.user_paths import data_directory

from .command import COMMAND, DEADLINE_S, environment, in_process, on_terminal, worlddb
from .samples import Sample

DATA_DIRECTORY = (
    "Library/Application Support" if sys.platform == "darwin" else ".local/share"
) + "/worlddb/memory.db"


def test_every_error_of_the_tree_has_a_code_and_every_code_a_meaning() -> None:
    branches = {getattr(errors, name) for name in errors.__all__} - {errors.WorldDBError}
    codes = {exit_code(branch.__new__(branch)) for branch in branches}
    assert codes == {2, 3, 4, 5, 6, 7, 8, 9, 10}
    assert len(codes) == len(branches)
    assert set(BY_ERROR.values()) <= MEANINGS.keys()


def test_a_subclass_has_the_code_of_its_closest_branch() -> None:
    class FolderError(errors.StorageError):
        """Some later error."""

    assert exit_code(FolderError()) == 8
    assert exit_code(FileNotFoundError()) == 8
    assert exit_code(ZeroDivisionError()) == 70


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["frobnicate"], 2),
        (["log", "--limit", "-1"], 2),
        (["log", "--limit", "many"], 2),
        (["log", "--after", str(2**70)], 2),
        (["log", "--lim", "1"], 2),
        (["log", "extra"], 2),
        (["read"], 2),
        (["read", "xyz!"], 2),
        (["read", "abc"], 2),
        (["read", "7e27", "--known-at", "yesterday"], 2),
        (["read", "7e27", "--as-of", "2026-01-01T00:00:00"], 2),
        (["read", "7e27", "--as-of", "0001-01-01T00:00:00+14:00"], 2),
        (["read", "00" * 32], 3),
        (["children", "00" * 32], 3),
        (["prove", "00" * 32], 3),
        (["read", "7e27", "--known-at", "1969-01-01T00:00:00Z"], 3),
        (["diff", "0", "99"], 3),
        (["diff", "0", str(2**63 - 1)], 3),
        (["diff", "2", "1"], 2),
        (["log", "--db", ""], 2),
    ],
)
def test_an_error_is_one_line_and_a_code(
    sample: Sample, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int
) -> None:
    monkeypatch.setenv("WORLDDB_PATH", str(sample.path))
    done = in_process(*arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("worlddb: ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("command", ["log", "check", "children", "export", "backup", "diff"])
def test_a_typo_in_the_path_makes_no_file(tmp_path: Path, command: str) -> None:
    more: dict[str, list[object]] = {"backup": [tmp_path / "copy.db"], "diff": [0]}
    done = in_process(command, *more.get(command, []), "--db", tmp_path / "typo.db")
    assert (done.code, done.out) == (8, "")
    assert done.err == (
        f"worlddb: {tmp_path}/typo.db: there is no store here; give --db PATH or set WORLDDB_PATH\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_does_not_become_a_store(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    assert in_process("log", "--db", path).code == 8
    assert path.stat().st_size == 0


def test_a_text_file_and_a_folder_are_no_stores(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("shopping list\n" * 500)
    assert in_process("log", "--db", path).code == 6
    assert in_process("log", "--db", tmp_path).code == 8


def test_a_path_that_is_no_text_is_refused_in_words(tmp_path: Path) -> None:
    done = in_process("import", "-", "--db", os.fsdecode(bytes(tmp_path) + b"/\xff.db"))
    assert done.code == 2
    assert "UTF-8" in done.err


def test_the_option_wins_over_the_environment_and_stands_on_either_side(
    sample: Sample, tmp_path: Path
) -> None:
    env = {"WORLDDB_PATH": str(tmp_path / "other.db")}
    before = in_process("--db", sample.path, "--json", "log", env=env)
    after = in_process("log", "--db", sample.path, "--json", env=env)
    assert before.data == after.data
    assert len(before.data) == 5
    assert in_process("log", env=env).code == 8


def test_without_option_and_environment_the_users_own_store_is_used(
    sample: Sample, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    expected = home / DATA_DIRECTORY
    for env in ({}, {"WORLDDB_PATH": ""}, {"XDG_DATA_HOME": "relative"}):
        done = in_process("log", env={"HOME": str(home), **env}, cwd=tmp_path)
        assert done.err.startswith(f"worlddb: {expected}: there is no store here")
    expected.parent.mkdir(parents=True)
    expected.write_bytes(sample.path.read_bytes())
    assert in_process("log", env={"HOME": str(home)}).code == 0
    short = in_process("log", env={"HOME": str(home), "WORLDDB_PATH": f"~/{DATA_DIRECTORY}"})
    assert short.code == 0


def test_on_a_mac_the_users_own_store_is_where_macs_keep_such_things(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("HOME", "/Users/ada")
    monkeypatch.setenv("XDG_DATA_HOME", "/elsewhere")
    assert data_directory() == "/Users/ada/Library/Application Support/worlddb"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_on_read_only_media_can_be_read(own: Sample) -> None:
    own.path.chmod(0o444)
    own.path.parent.chmod(0o555)
    try:
        for command in ("log", "check", "export"):
            assert in_process(command, "--db", own.path).code == 0
    finally:
        own.path.parent.chmod(0o755)
        own.path.chmod(0o644)


@pytest.mark.parametrize("command", [["write"], ["recall"], ["list", "--user-id"]])
def test_an_argument_that_is_not_utf_8_is_told_to_who_typed_it(
    own: Sample, command: list[str]
) -> None:
    done = in_process(*command, os.fsdecode(b"caf\xe9"), "--db", own.path)
    assert (done.code, done.out) == (2, "")
    assert "the argument b'caf\\xe9' is not UTF-8; use a UTF-8 terminal, or convert" in done.err
    assert "errors=" not in done.err


def test_the_version_is_the_packages() -> None:
    done = worlddb("--version")
    assert (done.code, done.out) == (0, f"worlddb {engine.__version__}\n")


def test_the_package_can_be_run_as_the_command() -> None:
    command = [sys.executable, "-m", "worlddb", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    assert done.stdout == worlddb("--version").out


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "long.db"
    with engine.open(path) as db, db.transaction() as tx:
        tx.create_nodes(
            [engine.NodeDraft(type="Fact", content=f"{n} " + "x" * 200) for n in range(2_000)]
        )
    for arguments in (["export"], ["children"], ["children", "--json"]):
        process = subprocess.Popen(
            [*COMMAND, *arguments, "--db", str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(DEADLINE_S) == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", ["log", "export"])
def test_a_full_disk_behind_stdout_is_told(sample: Sample, command: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, command, "--db", str(sample.path)],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=DEADLINE_S,
            check=False,
        )
    assert (done.returncode, done.stderr) == (8, b"worlddb: no space left on device\n")


def test_interrupting_an_import_keeps_what_was_acknowledged(own: Sample, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    process = subprocess.Popen(
        [*COMMAND, "import", "-", "--db", str(copy)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdin is not None
    second = next(at for at, line in enumerate(own.lines) if line.startswith('{"commit":2'))
    # Enough for commit 1 and the reader's buffer, and then nothing: it waits for more.
    process.stdin.write("".join(f"{line}\n" for line in own.lines[: second + 1]).encode())
    process.stdin.write(b"\n" * 65_536)
    process.stdin.flush()
    deadline = time.monotonic() + DEADLINE_S
    while not copy.exists() or len(in_process("log", "--db", copy).out.splitlines()) < 3:
        assert time.monotonic() < deadline
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(DEADLINE_S) == 130
    out, err = process.communicate()
    assert (out, err) == (b"", b"worlddb: interrupted\n")
    with engine.open(copy, create=False) as db:
        assert [commit.seq for commit in db.log()] == [0, 1]
        assert db.check() == []


def test_a_terminal_sees_colour_and_a_pipe_does_not(sample: Sample) -> None:
    code, screen = on_terminal("check", "--db", sample.path)
    assert code == 0
    assert "\x1b[32msound\x1b[0m" in screen
    assert "\x1b" not in in_process("check", "--db", sample.path).out
    _, quiet = on_terminal("log", "--db", sample.path, env={"NO_COLOR": "1"})
    assert "\x1b" not in quiet
    _, dumb = on_terminal("log", "--db", sample.path, env={"TERM": "dumb"})
    assert "\x1b" not in dumb


def test_a_table_fits_the_terminal_and_is_whole_in_a_pipe(sample: Sample) -> None:
    rows = ("children", sample.topic.id, "--db", sample.path)
    _, screen = on_terminal(*rows, env={"COLUMNS": "75", "NO_COLOR": "1"})
    assert max(map(len, screen.splitlines())) <= 75
    assert "…" in screen
    assert "…" not in in_process(*rows).out


def test_progress_is_drawn_on_a_terminal_and_wiped_at_the_end(sample: Sample) -> None:
    _, screen = on_terminal("check", "--db", sample.path)
    assert screen.index("\r\x1b[K") < screen.index("sound")
    assert in_process("check", "--db", sample.path).err == ""


def test_a_progress_line_has_bar_amount_rate_and_time_left() -> None:
    progress = Progress("importing", unit="bytes", total=4_000_000)
    progress.done = 1_000_000
    line = progress.line(10)
    assert line == "importing  [######..................]  25%  1.0 MB  100.0 kB/s  0:30 left"
    assert Progress("checking").line(75) == "checking  1:15"
    assert Progress("importing", unit="bytes").line(0) == "importing  0 B  0 B/s  0:00"
    slow = Progress("asking", unit="questions", total=10)
    slow.done = 2
    assert slow.line(20).endswith("20%  2 questions  6 questions/min  1:20 left")
    done = Progress("exporting", unit="commits", total=2)
    done.done = 3
    assert done.line(1) == f"exporting  [{'#' * 24}] 100%  3 commits  3 commits/s  0:00 left"


def test_amounts_and_times_read_well() -> None:
    assert [amount(n, "bytes") for n in (0, 999, 1_000, 2_500_000, 3e12)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "2.5 MB",
        "3000.00 GB",
    ]
    assert amount(12_345, "commits") == "12,345 commits"
    assert [clock(s) for s in (0, 59, 60, 3_661)] == ["0:00", "0:59", "1:00", "1:01:01"]


def test_columns_stay_aligned_under_wide_and_combining_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(("name", "n", "what"), [("日本", 1, "a"), ("ne\u0301e", 200, "b"), ("", 3, "")])
    assert capsys.readouterr().out.splitlines() == [
        "name    n  what",
        "日本    1  a",
        "ne\u0301e   200  b",
        "        3",
    ]


def test_text_is_cut_by_the_cells_it_takes() -> None:
    assert width("日本") == 4
    assert width("e\u0301") == 1
    assert fit("日本語", 5) == "日本…"
    assert fit("日本語", 4) == "日…"
    assert fit("plain", 5) == "plain"


def test_a_locale_that_cannot_say_it_does_not_stop_a_command(sample: Sample) -> None:
    env = {"PYTHONIOENCODING": "ascii"}
    done = worlddb("children", "--db", sample.path, env=env)
    assert done.code == 0
    assert "\\u65e5\\u672c" in done.out
    as_json = worlddb("children", "--json", "--db", sample.path, env=env)
    assert as_json.data[2]["name"] == "日本語のスコープ"
    exported = worlddb("export", "--db", sample.path, env=env)
    assert exported.out.split("\n")[:-1] == sample.lines


@pytest.mark.parametrize(
    ("arguments", "told"),
    [((), "commands:"), (("help",), "commands:"), (("help", "recall"), "usage: worlddb recall")],
)
def test_help_is_given_to_whoever_asks_in_any_way(arguments: tuple[str, ...], told: str) -> None:
    done = in_process(*arguments)
    assert (done.code, done.err) == (0, "")
    assert told in done.out


def test_an_unknown_option_is_told_and_not_its_value(tmp_path: Path) -> None:
    done = in_process("proposals", "--names", "Sarah", "--db", tmp_path / "m.db")
    assert (done.code, "unrecognized arguments: --names; the nearest is '--name'" in done.err) == (
        2,
        True,
    )
    assert in_process("write", "--db", tmp_path / "m.db", "--", "--names").code == 0
