"""Encrypted stores, by processes with the encrypting SQLite; and what the usual SQLite says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import apsw
import pytest

import worlddb
from encryption.encrypting_build import MissingBuildError, environment
from worlddb import StoreKeyError
from worlddb.store.sqlite.file_encryption import is_encrypted

ROOT = Path(__file__).parents[2]
SUITES = ("encrypted_stores", "encrypted_commands", "rekey_instants")
"""Kills at random moments are a trial of tests/chaos."""
# As an encrypted file begins: random bytes, but for those that tell what it is.
ENCRYPTED_HEAD = bytes(range(16)) + b"\x04\x00\x02\x02\x20@  "


def test_suites_with_the_encrypting_build() -> None:
    try:
        env = environment()
    except MissingBuildError as error:
        pytest.skip(str(error))
    paths = [str(Path(__file__).with_name(f"{suite}.py")) for suite in SUITES]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", *paths],
        capture_output=True,
        cwd=ROOT,
        env=env,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode()[-6000:] + done.stderr.decode()[-2000:]


@pytest.mark.skipif(hasattr(apsw, "mc_version"), reason="the encrypting build is loaded")
class TestUsualBuild:
    def test_a_key_without_the_encrypting_build_says_what_to_install(self, tmp_path: Path) -> None:
        path = tmp_path / "store.db"
        with pytest.raises(StoreKeyError, match=r"pip install .*apsw-sqlite3mc"):
            worlddb.open(path, key="secret")
        assert not path.exists()

    def test_an_encrypted_file_is_recognised(self, tmp_path: Path) -> None:
        path = tmp_path / "store.db"
        path.write_bytes(ENCRYPTED_HEAD.ljust(4096, b"\x8f"))
        assert is_encrypted(str(path))
        with pytest.raises(StoreKeyError, match=r"is encrypted; give its key.*apsw-sqlite3mc"):
            worlddb.open(path)
        assert path.read_bytes() == ENCRYPTED_HEAD.ljust(4096, b"\x8f")


def test_a_stranger_s_file_is_not_taken_for_an_encrypted_one(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(b"\xff\xd8\xff\xe0".ljust(4096, b"\x8f"))
    assert not is_encrypted(str(path))
    with pytest.raises(worlddb.FormatError, match="not a WorldDB store"):
        worlddb.open(path)


@pytest.mark.parametrize("key", ["", " ", b"short", bytearray(32), 7, bytes(31)])
def test_what_is_no_key_is_refused(tmp_path: Path, key: object) -> None:
    with pytest.raises(worlddb.InvalidInputError, match="key: "):
        worlddb.open(tmp_path / "store.db", key=key)  # type: ignore[arg-type]


def test_a_key_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreKeyError, match="the key file cannot be read"):
        worlddb.open(tmp_path / "store.db", key=tmp_path / "missing.key")


def test_a_server_takes_no_key() -> None:
    with pytest.raises(StoreKeyError, match="leave the key out"):
        worlddb.open("postgresql://localhost/none", key="secret")
