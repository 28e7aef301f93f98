"""Install a model: from the hub, or from files the user has. What is kept has the pinned hash.

    source ──staged as .part──▶ hash compared ──renamed──▶ models folder / model / file

I1  A file appears under its name only whole and with the right hash; all of a model's files are
    staged before the first is renamed.
I2  Bytes with a wrong hash are deleted. Only a download that broke off stays, to be continued.
I3  One process at a time stages a file.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from io import BufferedRandom
from pathlib import Path
from typing import IO, NamedTuple

from worlddb.embed.catalog import HUB, Model, ModelFile, model_folder, model_named
from worlddb.errors import ConflictError, ProviderError, StorageError

CHUNK_BYTES = 1 << 18
TIMEOUT_S = 30.0
Progress = Callable[[int], None]


def install(
    model: str | Model,
    into: str | os.PathLike[str],
    *,
    source: str | os.PathLike[str] | None = None,
    hub: str = HUB,
    on_progress: Progress | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Path:
    """Put a model's files into a models folder and return the model's own folder there.

    `source` is a folder, a wheel or zip, or one of the files with the others beside it; names in
    it do not matter. Without it the files come from `hub`. What is there already stays.
    `on_progress` is told how many of the model's bytes are in place.

    Raises:
        InvalidInputError: no such model.
        ProviderError: the hub or the source does not have the pinned files.
        ConflictError: another process is installing it.
        StorageError: the source cannot be read, or the folder not written.
    """
    wanted = model_named(model) if isinstance(model, str) else model
    home = model_folder(wanted, into)
    progress = on_progress or _silent
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


def _silent(done: int) -> None:
    pass


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def _part(home: Path, file: ModelFile, *, resumable: bool) -> Iterator[BufferedRandom]:
    """Yield the temporary file, held by this process alone.

    What has not been renamed by the end goes, but for the beginning of a download.
    """
    path = home / f".{file.name}.{file.sha256[:12]}.part"
    with open(path, "a+b") as part:
        _hold(part, path)
        try:
            yield part
        finally:
            with suppress(OSError):  # A full disk has been told already.
                part.flush()
            if path.exists() and not (resumable and 0 < path.stat().st_size < file.size):
                path.unlink()


def _hold(part: BufferedRandom, path: Path) -> None:
    try:
        fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its last holder may have renamed or deleted it since we opened it.
        if os.path.samestat(os.fstat(part.fileno()), os.stat(path)):
            return
    except (BlockingIOError, FileNotFoundError):
        pass
    raise ConflictError(f"{path.parent}: another process is installing this model; try again")


def _from_hub(
    model: Model,
    file: ModelFile,
    hub: str,
    part: BufferedRandom,
    done: int,
    progress: Progress,
    timeout_s: float,
) -> None:
    from worlddb.embed.download import download

    url = model.url(file, hub)

    def on_bytes(count: int) -> None:
        progress(done + count)

    download(url, part, file.size, on_bytes=on_bytes, timeout_s=timeout_s)
    _keep_if_right(part, file, url)


def _keep_if_right(part: BufferedRandom, file: ModelFile, origin: str) -> None:
    """Compare what was staged with the pinned hash; refuse and empty it if it differs."""
    part.flush()
    os.fsync(part.fileno())
    part.seek(0)
    found = hashlib.file_digest(part, "sha256").hexdigest()
    if found != file.sha256:
        part.truncate(0)
        raise ProviderError(
            f"{origin}: has the sha256 {found}, the pinned one is {file.sha256}; refused, and "
            "nothing was installed"
        )


class _Candidate(NamedTuple):
    """A file of the source: what it is called there, its size, and how to read it."""

    name: str
    size: int
    open: Callable[[], IO[bytes]]


def _from_source(model: Model, file: ModelFile, source: Path, part: BufferedRandom) -> None:
    refused = ""
    with ExitStack() as archives:
        for candidate in _candidates(source, archives):
            named = Path(candidate.name).name in (file.name, Path(file.remote).name)
            # Other line ends make a text at most twice as long.
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
    """Copy a likely file; never more than it may have, whatever an archive claims."""
    if file.text:
        part.write(content.read(2 * file.size).replace(b"\r\n", b"\n"))
        return
    left = file.size
    while left and (chunk := content.read(min(left, CHUNK_BYTES))):
        part.write(chunk)
        left -= len(chunk)


def _candidates(source: Path, archives: ExitStack) -> Iterator[_Candidate]:
    """Yield the files of a folder and all below it, of an archive, or beside a file."""
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
            yield _Candidate(str(path), path.stat().st_size, partial(_read, path))


def _read(path: Path) -> IO[bytes]:
    return open(path, "rb")


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
