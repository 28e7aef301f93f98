"""Installation of models: from the hub, or from the user's files. Only pinned hashes are accepted.

    source ──staged as .part──▶ hash compared ──renamed──▶ models folder / model / file

I1  A file appears under its name only complete and with the right hash; all files of a model are
    staged before the first is renamed.
I2  Bytes with a wrong hash are deleted. Only an interrupted download stays, to be resumed.
I3  One process at a time stages a file.
"""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from io import BufferedRandom, FileIO
from pathlib import Path
from typing import IO, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from worlddb import __version__
from worlddb.embed.embedder_catalog import (
    HUB,
    InstallableModel,
    ModelFile,
    installable_model,
    model_folder,
)
from worlddb.errors import ConflictError, ProviderError, StorageError

CHUNK_BYTES = 1 << 18  # Large enough to be fast, small enough to show progress.
TIMEOUT_S = 30.0  # Without a byte; the whole download may take as long as it takes.
TRIES_MAX = 3  # How often a broken download is resumed before an error.
PARTIAL_CONTENT, RANGE_REFUSED = 206, 416
Progress = Callable[[int], None]


def install(
    model: str | InstallableModel,
    into: str | os.PathLike[str],
    *,
    source: str | os.PathLike[str] | None = None,
    hub: str = HUB,
    on_progress: Progress | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Path:
    """Install the files of a model into a models folder, and return the folder of the model.

    `source` is a folder, a wheel or zip, or one file with the others beside it; file names do not
    matter. Without it the files come from `hub`. Installed files stay. `on_progress` gets the
    number of bytes in place.

    Raises:
        InvalidInputError: no such model.
        ProviderError: the hub or the source does not have the pinned files.
        ConflictError: another process is installing the model.
        StorageError: the source cannot be read, or the folder cannot be written.
    """
    wanted = installable_model(model) if isinstance(model, str) else model
    home = model_folder(wanted, into)
    progress = on_progress or (lambda done: None)
    try:
        home.mkdir(parents=True, exist_ok=True)
        with ExitStack() as open_parts:
            open_parts.callback(_remove_if_empty, home)
            staged: list[tuple[str, Path]] = []
            done = 0
            for file in wanted.files:
                if _hash(home / file.name) != file.sha256:
                    part = open_parts.enter_context(_part(home, file, resumable=source is None))
                    if source is None:
                        _from_hub(wanted, file, hub, part, done, progress, timeout_s)
                    else:
                        _from_source(wanted, file, Path(source), part)
                    staged.append((part.name, home / file.name))
                done += file.size
                progress(done)
            for temporary, target in staged:
                os.replace(temporary, target)
            _make_durable(home)
    except OSError as error:
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        raise StorageError(f"{where}{error.strerror or error}") from error
    return home


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def _part(home: Path, file: ModelFile, *, resumable: bool) -> Iterator[BufferedRandom]:
    """Yield the temporary file, locked by this process.

    Afterwards it is deleted, unless it was renamed or is an incomplete download.
    """
    path = home / f".{file.name}.{file.sha256[:12]}.part"
    with open(path, "a+b") as part:
        _lock(part, path)
        try:
            yield part
        finally:
            with suppress(OSError):  # A full disk has raised its error already.
                part.flush()
            if path.exists() and not (resumable and 0 < path.stat().st_size < file.size):
                path.unlink()


def _lock(part: BufferedRandom, path: Path) -> None:
    try:
        fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its last owner may have renamed or deleted it since it was opened here.
        if os.path.samestat(os.fstat(part.fileno()), os.stat(path)):
            return
    except (BlockingIOError, FileNotFoundError):
        pass
    raise ConflictError(f"{path.parent}: another process is installing this model; try again")


def _from_hub(
    model: InstallableModel,
    file: ModelFile,
    hub: str,
    part: BufferedRandom,
    done: int,
    progress: Progress,
    timeout_s: float,
) -> None:
    url = model.url(file, hub)
    download(
        url, part, file.size, on_bytes=lambda count: progress(done + count), timeout_s=timeout_s
    )
    _keep_if_right(part, file, url)


def _keep_if_right(part: BufferedRandom, file: ModelFile, origin: str) -> None:
    """Compare the staged bytes with the pinned hash; delete them if they differ."""
    part.flush()
    os.fsync(part.fileno())
    part.seek(0)
    found = hashlib.file_digest(part, "sha256").hexdigest()
    if found != file.sha256:
        part.truncate(0)
        raise ProviderError(
            f"{origin}: the sha256 is {found}, the pinned one is {file.sha256}; "
            "nothing was installed"
        )


class _Candidate(NamedTuple):
    """A file of the source: its name, its size, and how to read it."""

    name: str
    size: int
    open: Callable[[], IO[bytes]]


def _from_source(
    model: InstallableModel, file: ModelFile, source: Path, part: BufferedRandom
) -> None:
    refused = ""
    with ExitStack() as archives:
        for candidate in _candidates(source, archives):
            named = Path(candidate.name).name in (file.name, Path(file.remote).name)
            # Line ends of another system make a text at most twice as long.
            longer = named and file.text and candidate.size <= 2 * file.size
            if candidate.size != file.size and not longer:
                if named:
                    refused = f"; {candidate.name} is another file ({candidate.size:,} bytes)"
                continue
            part.truncate(0)
            try:
                with candidate.open() as content:
                    _copy(content, part, file)
            except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
                raise ProviderError(f"{candidate.name}: cannot be unpacked: {error}") from None
            try:
                return _keep_if_right(part, file, candidate.name)
            except ProviderError as error:
                refused = f"; {error}"
    raise ProviderError(
        f"{source}: has no {file.name} of {model.name} ({file.size:,} bytes, sha256 "
        f"{file.sha256[:8]}…{file.sha256[-4:]}){refused}"
    )


def _copy(content: IO[bytes], part: BufferedRandom, file: ModelFile) -> None:
    """Copy a candidate, never more bytes than the file has: an archive may lie about sizes."""
    if file.text:
        part.write(content.read(2 * file.size).replace(b"\r\n", b"\n"))
        return
    left = file.size
    while left and (chunk := content.read(min(left, CHUNK_BYTES))):
        part.write(chunk)
        left -= len(chunk)


def _candidates(source: Path, archives: ExitStack) -> Iterator[_Candidate]:
    """Yield the files below a folder, in an archive, or beside a file."""
    if source.is_file() and zipfile.is_zipfile(source):
        try:
            archive = archives.enter_context(zipfile.ZipFile(source))
        except zipfile.BadZipFile as error:
            raise ProviderError(f"{source}: is a damaged archive: {error}") from None
        for entry in archive.infolist():
            if not entry.is_dir():
                name = f"{source}/{entry.filename}"
                yield _Candidate(name, entry.file_size, partial(archive.open, entry))
        return
    if not source.exists():
        raise StorageError(f"{source}: no such file or folder")
    paths = sorted(source.rglob("*") if source.is_dir() else source.parent.iterdir())
    for path in paths:
        if path.is_file():
            yield _Candidate(str(path), path.stat().st_size, partial(FileIO, path))


def _hash(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def _make_durable(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def download(
    url: str, part: IO[bytes], size: int, *, on_bytes: Callable[[int], None], timeout_s: float
) -> None:
    """Fill `part` up to `size` bytes from `url`, resuming after the bytes it already holds.

    `on_bytes` gets the size of `part` as it grows. The caller compares the hash.

    Raises:
        ProviderError: the server refused, or the connection broke too often. `part` keeps its
            bytes.
        OSError: `part` cannot be written.
    """
    for _ in range(TRIES_MAX):
        have = part.seek(0, os.SEEK_END)
        if have > size:
            have = part.truncate(0)
            part.seek(0)
        on_bytes(have)
        if have == size:
            return
        _download_rest(url, part, have, size, on_bytes, timeout_s)
    have = part.seek(0, os.SEEK_END)
    if have != size:
        raise ProviderError(
            f"{url}: the connection broke {TRIES_MAX} times, after {have:,} of {size:,} bytes; "
            "run it again to resume there"
        )


def _download_rest(
    url: str,
    part: IO[bytes],
    have: int,
    size: int,
    on_bytes: Callable[[int], None],
    timeout_s: float,
) -> None:
    """Append the bytes of one response, which may break off early."""
    response = _request(url, have, timeout_s)
    if response is None:
        part.truncate(0)
        return
    with response:
        if have and response.status != PARTIAL_CONTENT:
            have = part.truncate(0)
            part.seek(0)
        promised = response.headers.get("Content-Length")
        if promised is not None and promised != str(size - have):
            raise ProviderError(
                f"{url}: sends {promised} bytes instead of {size - have:,}; this is not the file"
            )
        while have <= size:
            try:
                chunk = response.read(CHUNK_BYTES)
            except (OSError, http.client.HTTPException):
                return
            if not chunk:
                return
            part.write(chunk)
            have += len(chunk)
            on_bytes(have)
    raise ProviderError(f"{url}: sends more than {size:,} bytes; this is not the file")


def _request(url: str, have: int, timeout_s: float) -> http.client.HTTPResponse | None:
    """Return the response with the bytes from `have` on; None if the server has no such range."""
    headers = {"User-Agent": f"worlddb/{__version__}"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        request = Request(url, headers=headers)
        response: http.client.HTTPResponse = urlopen(request, timeout=timeout_s)
    except HTTPError as error:
        with error:
            if error.code == RANGE_REFUSED and have:
                return None
            raise ProviderError(f"{url}: HTTP {error.code} {error.reason}") from None
    except (URLError, OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        reason = str(reason) or type(error).__name__
        raise ProviderError(f"{url}: cannot be reached: {reason}") from None
    return response
