"""Token reload: the tokens are read again when their file has changed, or on SIGHUP."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from worlddb.errors import WorldDBError
from worlddb.faces.face_settings import Settings
from worlddb.faces.http.access_tokens import Access, access_of
from worlddb.faces.http.served_stores import check_tenants

log = logging.getLogger("worlddb.http")


def read_access(settings: Settings) -> Access:
    """Return whom the settings and the tokens file let in now."""
    access = access_of(settings)
    check_tenants(settings, access)
    return access


class TokenReload:
    """Reads the tokens again when their file has changed, or on SIGHUP.

    If the file is wrong, the tokens that were read before still hold.
    """

    def __init__(self, settings: Settings, let_in: Callable[[Access], None]) -> None:
        self._settings = settings
        self._let_in = let_in
        self._asked = False
        self._seen = self._stamp()

    def ask(self) -> None:
        """Read the tokens at the next tick, changed or not."""
        self._asked = True

    def if_changed(self) -> None:
        """Read the tokens if there is a reason to."""
        stamp = self._stamp()
        if not self._asked and stamp == self._seen:
            return
        self._asked, self._seen = False, stamp
        try:
            access = read_access(self._settings)
        except WorldDBError as error:
            log.error("the tokens are not read again, the old ones hold: %s", error)
            return
        self._let_in(access)
        log.info("tokens read again: %d", len(access.tokens))

    def _stamp(self) -> tuple[int, ...] | None:
        if self._settings.tokens_file is None:
            return None
        try:
            found = os.stat(self._settings.tokens_file)
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino
