"""File patterns: what they match, and that none of them takes the time of others."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import product

import pytest

import worlddb
from worlddb import InvalidInputError
from worlddb.files import file_tree
from worlddb.files.file_tree import path_matcher, pattern_lines
from worlddb.files.versioned_files import Files

ENDLESS = "(a+)+$"
TRAP = "a" * 60 + "!"
SLOW_TO_COMPILE = "[\x01-\uffff]" * 500  # With `ignore_case`, each range is spelled out.


@pytest.fixture
def files() -> Iterator[Files]:
    with worlddb.open(":memory:", embedder="none") as db:
        yield db.files()


@pytest.mark.parametrize(("pattern", "ignore_case"), [(ENDLESS, False), (SLOW_TO_COMPILE, True)])
def test_a_pattern_that_does_not_end_is_refused_and_others_go_on(
    files: Files, monkeypatch: pytest.MonkeyPatch, pattern: str, ignore_case: bool
) -> None:
    monkeypatch.setattr(file_tree, "GREP_S_MAX", 1.0)
    files.write("/trap.txt", TRAP)
    refusals: list[str] = []

    def search() -> None:
        with pytest.raises(InvalidInputError) as refusal:
            files.grep(pattern, ignore_case=ignore_case)
        refusals.append(str(refusal.value))

    began = time.process_time()
    searching = threading.Thread(target=search, daemon=True)
    searching.start()
    written = 0
    while searching.is_alive() and written < 10_000:
        files.write("/other.txt", f"{written}")
        files.read("/other.txt")
        written += 1
        searching.join(0.01)
    searching.join(60)
    assert written >= 5
    assert time.process_time() - began < 30
    [told] = refusals
    assert "took more than 1 s" in told
    assert "literal" in told


def test_an_expression_is_found_as_by_this_process(files: Files) -> None:
    files.write("/a.txt", "tea at 4\nno\x0btea at 55\n")
    files.write("/b.txt", "TEA AT 6 ☕")
    found = files.grep(r"tea at \d\b", ignore_case=True)
    assert [(one.path, one.line, one.text) for one in found] == [
        ("/a.txt", 1, "tea at 4"),
        ("/b.txt", 1, "TEA AT 6 ☕"),
    ]
    assert [one.line for one in files.grep(r"^tea.*\d$")] == [1, 3]
    assert len(files.grep(r"t|T", limit=2)) == 2


@pytest.mark.parametrize("pattern", ["(", "a{9999999999999}", "(" * 2_000 + ")" * 2_000, r"\777"])
def test_a_wrong_expression_is_refused_with_its_reason(pattern: str) -> None:
    with pytest.raises(InvalidInputError, match="for a plain text, set literal"):
        pattern_lines(pattern, ["a"], ignore_case=False, limit=1)


def test_patterns_have_a_length(files: Files) -> None:
    long = "a" * 5_000
    for call in (
        lambda: files.grep(long),
        lambda: files.grep(f"{long}.*"),
        lambda: files.grep("a", glob=long),
        lambda: files.glob(long),
    ):
        with pytest.raises(InvalidInputError, match=r"4,?096"):
            call()


def test_a_glob_of_many_wildcards_does_not_go_back_and_back() -> None:
    matches = path_matcher("**/a/" * 200 + "b")
    began = time.thread_time()
    assert not matches("/a" * 250 + "/c")
    star = path_matcher("*a" * 100 + "b")
    assert not star("/" + "a" * 250)
    assert time.thread_time() - began < 5


def _fits(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """The meaning of a glob, spelled out: `**` is any number of names, at the end at least one."""
    if not wanted or not names:
        return not wanted and not names
    if wanted[0] != "**":
        return fnmatchcase(names[0], wanted[0]) and _fits(names[1:], wanted[1:])
    if len(wanted) == 1:
        return True
    return any(_fits(names[start:], wanted[1:]) for start in range(len(names)))


def test_a_glob_means_what_its_meaning_says() -> None:
    paths = [one for size in range(1, 5) for one in product("ab", repeat=size)]
    for size in range(1, 5):
        for wanted in product(("a", "b", "*", "**"), repeat=size):
            matches = path_matcher("/" + "/".join(wanted))
            for names in paths:
                assert matches("/" + "/".join(names)) == _fits(names, wanted), (names, wanted)
