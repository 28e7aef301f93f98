"""Branch file: a store layered over the file of another store, its trunk.

    memory.db-branches/NAME/   branch.json       the commit of the trunk it was forked from
                               store.db (-wal)   SQLite's file for locks and log; has no pages
                               own (-numbers)    pages that the branch has changed
                               kept (-numbers)   pages as forked, which the trunk has changed since

A page of the branch is searched in this order: own, kept, the file of the trunk. SQLite, and
everything above it, sees one file: a branch is a store like any other.

B1  Forking copies only the pages that wait in the trunk's log.
B2  Before the log of the trunk is moved into its file, every page that the move overwrites is
    copied for each branch (`move_log`). A snapshot limits the move to the commits that were read.
B3  The number of a kept page is written after the page is on the disk, and the trunk's file after
    both: after a power cut the page is in one of the two. An own page is in the branch's log until
    it is on the disk.
B4  If a program without support for branches moved the log, the fork's commit is no longer found
    below the branch, and opening the branch is refused.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import struct
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import quote
from weakref import WeakValueDictionary

import apsw

from worlddb.errors import ConflictError, CorruptionError, InvalidInputError, NotFoundError
from worlddb.model.address import Id
from worlddb.model.inputs import from_micros
from worlddb.model.records import Branch
from worlddb.store.sqlite.file_encryption import (
    ENCRYPTING,
    StoreKey,
    refuse_wrong_key,
    system_vfs,
    unlocked,
)

FOLDER_END, STORE, ABOUT = "-branches", "store.db", "branch.json"
MARK = "A branch of a WorldDB store; its pages lie beside this file.\n"
VFS = "worlddb-branch"  # the name of the SQLite file system for branches
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # A folder's name on every system.
SIZE = struct.Struct(
    ">Q"
)  # Before the numbers of a layer: how long the whole file is; 0: as forked.
LOG_HEAD = struct.Struct(">8I")  # Magic, version, page size, count, two salts, two checksums.
FRAME_HEAD = struct.Struct(">6I")  # Page number, pages after a commit, two salts, two checksums.
NEW = ".new-"  # prefix of a branch that is being created
GONE, LOCK = ".dropped-", ".lock"  # prefix of removed branches; lock file
KEEPING_MS_MAX = 10_000  # Far longer than the pages of a log take; then its move waits for another.
FRAMES_AT_ONCE = 4_096  # Of the log in memory: 4 MiB with our page size.
FORK_S_MAX = 5.0  # how long a fork waits for a checkpoint of another process
FORK_PAUSE_S = 0.005  # between two checks; a checkpoint takes longer


def branch_folder(file: str) -> str:
    """Return the folder of the branches of a store's file."""
    return os.path.realpath(file) + FOLDER_END


def has_branches(file: str) -> bool:
    """Return whether a store has, or had, a branch."""
    return os.path.isdir(branch_folder(file))


def trunk_of(file: str) -> str | None:
    """Return the file below a branch; None if the file is not a branch."""
    folder, name = os.path.split(os.path.realpath(file))
    above = os.path.dirname(folder)
    if name != STORE or not above.endswith(FOLDER_END):
        return None
    return above.removesuffix(FOLDER_END) if os.path.isfile(f"{folder}/{ABOUT}") else None


def vfs_of(file: str, key: StoreKey | None = None) -> str | None:
    """Return the SQLite file system for a file: that of branches, or None for the usual one.

    The layers lie below the encryption: they contain pages as in the trunk's file.
    """
    if trunk_of(file) is None:
        return None
    _register()
    return VFS if key is None else f"{ENCRYPTING}{VFS}"


# -- the pages of a branch -------------------------------------------------------------------------


class PageLayer:
    """Pages by number, in the order in which they were first written; one writer at a time."""

    def __init__(self, path: str, page_bytes: int) -> None:
        self._page_bytes = page_bytes
        opened = (Path(name).open("r+b", buffering=0) for name in (path, f"{path}-numbers"))  # noqa: SIM115
        self._files = list(opened)
        self._pages, self._numbers = self._files
        self._lock = Lock()
        self._slots: dict[int, int] = {}
        self._stored = 0

    def get(self, number: int) -> bytes | None:
        """Return a page; None if this layer does not have it."""
        with self._lock:
            self._follow()
            slot = self._slots.get(number)
            if slot is None:
                return None
            self._pages.seek(slot * self._page_bytes)
            return self._pages.read(self._page_bytes)

    def put(self, number: int, page: bytes) -> None:
        """Write one page, in place if it is here; `sync` waits for the disk."""
        with self._lock:
            self._follow()
            slot = self._slots.get(number, self._stored)
            self._pages.seek(slot * self._page_bytes)
            self._write(page)
            if slot == self._stored:
                self._add([number])

    def keep(self, pages: Iterable[tuple[int, bytes]]) -> None:
        """Write pages that are not here yet; no number is written before all pages are on disk."""
        with self._lock:
            self._follow()
            self._pages.seek(self._stored * self._page_bytes)
            numbers = [number for number, page in pages if self._write(page)]
            os.fsync(self._pages.fileno())
            self._add(numbers)
            os.fsync(self._numbers.fileno())

    def sync(self) -> None:
        """Wait until the disk has everything."""
        for file in self._files:
            os.fsync(file.fileno())

    def _write(self, page: bytes) -> int:
        written = self._pages.write(page)
        if written != self._page_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written

    def _add(self, numbers: list[int]) -> None:
        """Record the page numbers of the next slots."""
        self._numbers.seek(SIZE.size + self._stored * 4)
        self._numbers.write(b"".join(number.to_bytes(4, "big") for number in numbers))
        for number in numbers:
            self._slots[number] = self._stored
            self._stored += 1

    def _follow(self) -> None:
        """Read the numbers that another user of this layer has written."""
        stored = max(0, os.fstat(self._numbers.fileno()).st_size - SIZE.size) // 4
        if stored > self._stored:
            self._numbers.seek(SIZE.size + self._stored * 4)
            found = self._numbers.read((stored - self._stored) * 4)
            for at in range(0, len(found), 4):
                self._slots[int.from_bytes(found[at : at + 4], "big")] = self._stored
                self._stored += 1

    @property
    def file_bytes(self) -> int:
        """The length of the whole file if this layer records it, else 0."""
        with self._lock:
            self._numbers.seek(0)
            return int(SIZE.unpack(self._numbers.read(SIZE.size))[0])

    @file_bytes.setter
    def file_bytes(self, size: int) -> None:
        with self._lock:
            self._numbers.seek(0)
            self._numbers.write(SIZE.pack(size))

    def __del__(self) -> None:
        for file in self._files:
            file.close()


class _Layers(NamedTuple):
    """The sources of the pages of one branch."""

    own: PageLayer
    kept: PageLayer
    page_bytes: int
    pages: int


_LAYERS: WeakValueDictionary[str, PageLayer] = WeakValueDictionary()
_LAYERS_LOCK = Lock()


def _layer(path: str, page_bytes: int) -> PageLayer:
    """Return the single object of this process for a layer, shared by all connections."""
    with _LAYERS_LOCK:
        about = os.stat(path)
        key = f"{about.st_dev}/{about.st_ino}/{path}"
        found = _LAYERS.get(key)
        if found is None:
            found = _LAYERS[key] = PageLayer(path, page_bytes)
        return found


def _layers(folder: str) -> _Layers:
    about = _about(folder)
    size = int(about["page_bytes"])
    own, kept = (_layer(f"{folder}/{name}", size) for name in ("own", "kept"))
    return _Layers(own, kept, size, int(about["pages"]))


def _about(folder: str) -> dict[str, Any]:
    """Return the description of a branch."""
    try:
        found = json.loads(Path(folder, ABOUT).read_text(encoding="utf-8"))
    except ValueError as error:
        raise CorruptionError(f"{folder}: damaged: {error}; drop this branch") from None
    assert isinstance(found, dict)
    return found


class BranchFile(apsw.VFSFile):
    """The file of a branch as SQLite sees it; locks and logs are those of `store.db`."""

    def __init__(self, name: str | apsw.URIFilename, flags: list[int]) -> None:
        super().__init__(system_vfs(), name, flags)
        path = name if isinstance(name, str) else name.filename()
        folder = os.path.dirname(path)
        self._is_base = not isinstance(name, str) and name.uri_boolean("base", False)
        self._layers = _layers(folder)
        trunk = trunk_of(path)
        # Through SQLite: to open and close the file otherwise would drop this process's locks.
        wanted = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0]
        self._trunk = apsw.VFSFile(system_vfs(), str(trunk), wanted)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        """Return bytes of one page."""
        number, start = divmod(offset, self._layers.page_bytes)
        return self._page(number + 1)[start : start + amount]

    def _page(self, number: int) -> bytes:
        own, kept, size, pages = self._layers
        found = None if self._is_base else own.get(number)
        if found is None and number <= pages:
            found = kept.get(number)
            if found is None:
                page = self._trunk.xRead(size, (number - 1) * size)
                # If the trunk has changed it meanwhile, it was kept before.
                found = kept.get(number) or page
        return found or b""

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        """Write a whole page to the branch alone."""
        self._layers.own.put(offset // self._layers.page_bytes + 1, bytes(data))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        """Record the length of the file."""
        self._layers.own.file_bytes = newsize

    def xFileSize(self) -> int:  # noqa: N802
        """Return how long the file is."""
        said = 0 if self._is_base else self._layers.own.file_bytes
        return said or self._layers.pages * self._layers.page_bytes

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Wait for the disk."""
        self._layers.own.sync()

    def xClose(self) -> None:  # noqa: N802
        """Close the files."""
        self._trunk.xClose()
        super().xClose()


class _BranchVfs(apsw.VFS):
    """Opens the files of branches by their layers, and their logs like any log."""

    def __init__(self) -> None:
        super().__init__(VFS, system_vfs())

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        """Open one file."""
        if name is not None and flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return BranchFile(name, flags)
        return super().xOpen(name, flags)


_REGISTERED: list[_BranchVfs] = []


def _register() -> None:
    with _LAYERS_LOCK:
        if not _REGISTERED:
            import ctypes

            made = _BranchVfs()
            # SQLite uses it until the process ends, also for a store that was never closed.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
            _REGISTERED.append(made)


# -- the trunk -------------------------------------------------------------------------------------


def guard_branches(con: apsw.Connection) -> None:
    """Stop a connection from moving the log itself: `move_log` does, and keeps pages."""
    con.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    con.wal_autocheckpoint(0)


def move_log(
    file: str, con: apsw.Connection, mode: int, key: StoreKey | None = None
) -> tuple[int, int]:
    """Move the log of a store into its file, as `wal_checkpoint` does; branches keep their pages.

    A store with branches is never blocked from writing: its log is moved as far as readers allow.
    """
    if not has_branches(file):
        return con.wal_checkpoint(mode=mode)
    with closing(unlocked(file, key)) as snapshot:
        guard_branches(snapshot)
        snapshot.execute("BEGIN")
        snapshot.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        keep_pages(file, int(str(snapshot.pragma("page_count"))))
        return con.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)


def keep_pages(file: str, pages_after: int) -> None:
    """Copy for each branch the pages of the file that the log would overwrite or cut off.

    Raises:
        apsw.Error: the disk refused, or another process holds the lock for too long.
    """
    flags = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0]
    trunk = apsw.VFSFile(system_vfs(), os.path.abspath(file), flags)
    try:
        with _alone(branch_folder(file)):
            logged = {number for number, _ in _log_frames(file, with_pages=False)}
            for folder in _folders(file):
                with suppress(FileNotFoundError):  # Dropped meanwhile.
                    _, kept, size, pages = _layers(folder)
                    cut = range(pages_after + 1, pages + 1)
                    wanted = sorted({number for number in logged if number <= pages} | {*cut})
                    missing = [number for number in wanted if kept.get(number) is None]
                    if missing:
                        kept.keep((one, trunk.xRead(size, (one - 1) * size)) for one in missing)
    except OSError as error:
        raise apsw.IOError(f"pages of branches cannot be kept: {error}") from error
    finally:
        trunk.xClose()


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Exclude other processes that keep pages; a lock of SQLite ends with its process."""
    lock = Path(folder, LOCK)
    lock.touch(mode=0o600)
    with closing(apsw.Connection(str(lock))) as con:
        con.set_busy_timeout(KEEPING_MS_MAX)
        con.execute("BEGIN EXCLUSIVE")
        yield


def _log_frames(file: str, *, with_pages: bool) -> Iterable[tuple[int, bytes]]:
    """Yield the page numbers of the log's frames in order, and the pages if requested.

    Frames after the last commit may be among them.
    """
    try:
        log = open(f"{os.path.realpath(file)}-wal", "rb", buffering=0)  # noqa: SIM115
    except FileNotFoundError:
        return
    with log:
        head = log.read(LOG_HEAD.size)
        if len(head) < LOG_HEAD.size:
            return
        _, _, size, _, *salts, _, _ = LOG_HEAD.unpack(head)
        frame = FRAME_HEAD.size + size
        while chunk := log.read(frame * FRAMES_AT_ONCE):
            for start in range(0, len(chunk) - frame + 1, frame):
                number, _, *found, _, _ = FRAME_HEAD.unpack_from(chunk, start)
                if found != salts:
                    return  # Of the time before the log began anew.
                page = chunk[start + FRAME_HEAD.size : start + frame] if with_pages else b""
                yield number, page


def _folders(file: str) -> list[str]:
    """Return the folders of a store's branches, by name."""
    above = branch_folder(file)
    names = sorted(os.listdir(above)) if os.path.isdir(above) else []
    return [
        f"{above}/{name}"
        for name in names
        if NAME.fullmatch(name) and os.path.isfile(f"{above}/{name}/{ABOUT}")
    ]


# -- forking, listing, dropping --------------------------------------------------------------------


def check_name(name: object) -> str:
    """Return a branch's name."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidInputError(
            f"branch {name!r}: give a name of 1 to 64 letters, digits, '.', '_' and '-', that "
            "begins with a letter or a digit"
        )
    return name


def fork(
    file: str,
    writer: apsw.Connection,
    name: str,
    about: dict[str, Any],
    key: StoreKey | None = None,
) -> str:
    """Create a branch of a store whose write lock `writer` holds; return the path of its file."""
    above = branch_folder(file)
    folder = f"{above}/{name}"
    if os.path.exists(folder):
        raise ConflictError(f"there is a branch {name!r} already; choose another name, or drop it")
    new = f"{above}/{NEW}{uuid.uuid4().hex}"
    Path(above).mkdir(mode=0o700, exist_ok=True)
    for left in Path(above).glob(f"{NEW}*"):  # Left by a crash.
        shutil.rmtree(left, ignore_errors=True)
    Path(new).mkdir(mode=0o700)
    try:
        _lay_out(file, writer, new, about, key)
        os.rename(new, folder)
    except OSError as error:
        if os.path.exists(folder):
            raise ConflictError(f"there is a branch {name!r} already; choose another") from error
        raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return f"{folder}/{STORE}"


def _lay_out(
    file: str,
    writer: apsw.Connection,
    folder: str,
    about: dict[str, Any],
    key: StoreKey | None,
) -> None:
    size = int(str(writer.pragma("page_size")))
    for name in (STORE, "own", "kept", "own-numbers", "kept-numbers", ABOUT):
        Path(folder, name).touch(mode=0o600)
    Path(folder, STORE).write_text(MARK, encoding="utf-8")
    for name in ("own", "kept"):
        Path(f"{folder}/{name}-numbers").write_bytes(SIZE.pack(0))
    frames = _moved(file, key)
    if frames:
        newest = dict(islice(_log_frames(file, with_pages=True), frames))
        PageLayer(f"{folder}/kept", size).keep(sorted(newest.items()))
    told = {
        "id": uuid.uuid4().hex,
        **about,
        "page_bytes": size,
        "pages": int(str(writer.pragma("page_count"))),
    }
    with open(f"{folder}/{ABOUT}", "w", encoding="utf-8") as out:
        json.dump(told, out)
        out.flush()
        os.fsync(out.fileno())


def _moved(file: str, key: StoreKey | None) -> int:
    """Move the log into the file; return the number of frames that a branch must copy."""
    deadline = time.monotonic() + FORK_S_MAX
    with closing(unlocked(file, key)) as con:
        guard_branches(con)
        con.pragma("user_version")
        while True:
            try:
                frames, moved = move_log(file, con, apsw.SQLITE_CHECKPOINT_PASSIVE, key)
                return 0 if moved >= frames else frames
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise ConflictError(f"{file}: is being copied; try again later") from None
            time.sleep(FORK_PAUSE_S)


def branches_of(file: str) -> list[Branch]:
    """Return the branches of a store, by name."""
    found = []
    for folder in _folders(file):
        with suppress(FileNotFoundError):  # Dropped meanwhile.
            about = _about(folder)
            size = sum(entry.stat().st_size for entry in os.scandir(folder) if entry.is_file())
            found.append(
                Branch(
                    id=str(about["id"]),
                    name=os.path.basename(folder),
                    path=f"{folder}/{STORE}",
                    fork=int(about["fork"]),
                    hash=Id(about["hash"]),
                    created_at=from_micros(about["time"]),
                    actor=str(about["actor"]),
                    size_bytes=size,
                )
            )
    return found


def drop(file: str, name: str) -> None:
    """Remove a branch with all that was written to it."""
    above = branch_folder(file)
    gone = f"{above}/{GONE}{uuid.uuid4().hex}"
    try:
        os.rename(f"{above}/{check_name(name)}", gone)  # In one step.
    except FileNotFoundError:
        raise NotFoundError(f"there is no branch {name!r}; list the branches to see them") from None
    for left in Path(above).glob(f"{GONE}*"):
        shutil.rmtree(left, ignore_errors=True)
    if not _folders(file):
        Path(above, LOCK).unlink(missing_ok=True)
        with suppress(OSError):  # Unless another branch was just created.
            os.rmdir(above)


def refuse_lost_base(file: str, key: StoreKey | None = None) -> None:
    """Raise CorruptionError if the commit that a branch was forked from is no longer below it.

    Raises:
        StoreKeyError: the key of the store below is missing or wrong.
    """
    folder = os.path.dirname(os.path.realpath(file))
    about = _about(folder)
    uri = f"file:{quote(f'{folder}/{STORE}')}?base=1&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    last: Any = None
    vfs = vfs_of(file, key)
    try:
        with closing(apsw.Connection(uri, flags=flags, vfs=vfs)) as con:
            if key is not None:
                key.unlock(con, file)
            last = con.execute("SELECT seq, hash FROM commits ORDER BY seq DESC LIMIT 1").fetchone()
    except apsw.NotADBError:
        refuse_wrong_key(file, key)
    except apsw.Error:
        pass
    if last is None or (last[0], last[1].hex()) != (about["fork"], about["hash"]):
        raise CorruptionError(
            f"{file}: the store below this branch was changed by a program that knows no branches "
            "(another SQLite, or an older worlddb), so the branch cannot be read; drop it"
        )
