"""Download one file of known size over HTTP, going on where an earlier try ended."""

from __future__ import annotations

import http.client
import os
from collections.abc import Callable
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from worlddb import __version__
from worlddb.errors import ProviderError

CHUNK_BYTES = 1 << 18
TRIES_MAX = 3
"""How often a connection that breaks off is taken up again before the caller is told."""
PARTIAL_CONTENT, RANGE_REFUSED = 206, 416


def download(
    url: str,
    part: IO[bytes],
    size: int,
    *,
    on_bytes: Callable[[int], None],
    timeout_s: float,
) -> None:
    """Fill `part` up to `size` bytes from `url`; what it holds already is not asked for again.

    `on_bytes` is told how many bytes `part` holds, as it grows. Nothing is said here about what
    the bytes are: the caller knows their hash.

    Raises:
        ProviderError: the server said no, or broke off again and again. `part` keeps what came.
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
            f"{url}: the connection broke off {TRIES_MAX} times, after {have:,} of {size:,} bytes; "
            "try again to go on from there"
        )


def _download_rest(
    url: str,
    part: IO[bytes],
    have: int,
    size: int,
    on_bytes: Callable[[int], None],
    timeout_s: float,
) -> None:
    """Append what one answer brings; it may break off early."""
    answer = _ask(url, have, timeout_s)
    if answer is None:
        part.truncate(0)
        return
    with answer:
        if have and answer.status != PARTIAL_CONTENT:
            have = part.truncate(0)
            part.seek(0)
        promised = answer.headers.get("Content-Length")
        if promised is not None and promised != str(size - have):
            raise ProviderError(
                f"{url}: answered with {promised} bytes where {size - have:,} were expected; "
                "this is not the file"
            )
        while have <= size:
            try:
                chunk = answer.read(CHUNK_BYTES)
            except (OSError, http.client.HTTPException):
                return
            if not chunk:
                return
            part.write(chunk)
            have += len(chunk)
            on_bytes(have)
    raise ProviderError(f"{url}: sends more than {size:,} bytes; this is not the file")


def _ask(url: str, have: int, timeout_s: float) -> http.client.HTTPResponse | None:
    """Return the answer with the bytes from `have` on; None if the server has no such part."""
    headers = {"User-Agent": f"worlddb/{__version__}"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        answer: http.client.HTTPResponse = urlopen(Request(url, headers=headers), timeout=timeout_s)
    except HTTPError as error:
        with error:
            if error.code == RANGE_REFUSED and have:
                return None
            raise ProviderError(f"{url}: HTTP {error.code} {error.reason}") from None
    except (URLError, OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        reason = str(reason) or type(error).__name__
        raise ProviderError(f"{url}: cannot be reached: {reason}") from None
    return answer
