"""Rights: a store that may not be written, or not even be read, and what to do about it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .command import COMMAND, DEADLINE_S, Result, environment
from .samples import Sample

DROP_FROM_BOUNDING_SET = 24
DAC_OVERRIDE, DAC_READ_SEARCH = 1, 2


def obey_modes() -> None:
    """Let the modes of files hold for the program that is started next, also if we are root."""
    if os.geteuid() == 0:
        for right in (DAC_OVERRIDE, DAC_READ_SEARCH):
            ctypes.CDLL(None).prctl(DROP_FROM_BOUNDING_SET, right)


def obedient(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        preexec_fn=obey_modes,
    )


def worlddb(*arguments: object) -> Result:
    with obedient(*arguments) as process:
        out, err = process.communicate(timeout=DEADLINE_S)
    return Result(process.returncode, out.decode(), err.decode())


@pytest.fixture
def own(own: Sample) -> Iterator[Sample]:
    own.path.chmod(0o000)
    with subprocess.Popen(
        ["cat", own.path], stderr=subprocess.DEVNULL, preexec_fn=obey_modes
    ) as it:
        it.communicate(timeout=DEADLINE_S)
    own.path.chmod(0o644)
    if it.returncode == 0:
        pytest.skip("this user may read every file")
    yield own
    own.path.parent.chmod(0o755)
    own.path.chmod(0o644)


def test_a_store_without_the_right_to_write_is_read_and_says_what_to_do(own: Sample) -> None:
    own.path.chmod(0o444)
    for command in ("log", "check", "export"):
        assert worlddb(command, "--db", own.path).code == 0
    done = worlddb("write", "tea", "--db", own.path)
    assert (done.code, done.out) == (8, "")
    assert "you have no right to write it; change that (chmod u+w)" in done.err
    assert "open it to write" not in done.err


def test_a_store_in_a_folder_without_the_right_to_write_says_what_to_do(own: Sample) -> None:
    own.path.parent.chmod(0o555)
    assert worlddb("log", "--db", own.path).code == 0
    done = worlddb("write", "tea", "--db", own.path)
    assert (done.code, done.out) == (8, "")
    assert "no right to write to its folder" in done.err


def test_a_server_on_a_store_that_cannot_be_written_says_so_at_its_start(own: Sample) -> None:
    own.path.chmod(0o444)
    with obedient("serve", "--port", 0, "--json", "--embedder", "none", "--db", own.path) as server:
        assert server.stdout is not None
        while not server.stdout.readline().startswith(b"}"):
            assert server.poll() is None
        server.send_signal(signal.SIGTERM)
        _, err = server.communicate(timeout=DEADLINE_S)
    assert server.returncode == 0
    assert f"WARNING {own.path}: can only be read, for you have no right" in err.decode()


def test_a_store_that_may_not_be_read_is_told_as_that(own: Sample, tmp_path: Path) -> None:
    own.path.chmod(0o000)
    for command in (["log"], ["write", "tea"], ["recall", "tea"]):
        done = worlddb(*command, "--db", own.path)
        assert (done.code, done.out) == (8, "")
        assert f"{own.path}: you have no right to read it; change that (chmod" in done.err
    done = worlddb("doctor", "--embedder", "hash", "--json", "--db", own.path)
    assert done.code == 1
    [store] = [one for one in done.data["findings"] if one["part"] == "store"]
    assert store["verdict"] == "fail"
    assert "no right to read it" in store["seen"]
    assert "backup" not in store["advice"].lower()
    assert "restore" not in store["advice"]
