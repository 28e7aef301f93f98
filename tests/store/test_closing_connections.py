"""A store that is closed waits for the call of another thread that is still inside a connection."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from patience import PATIENCE_S
from worlddb.store.sqlite.gate import close_connection


def test_a_connection_is_closed_after_the_call_inside_it(tmp_path: Path) -> None:
    con = apsw.Connection(str(tmp_path / "a.db"))
    inside, go_on = threading.Event(), threading.Event()

    def slow(*_: object) -> int:
        inside.set()
        assert go_on.wait(PATIENCE_S)
        return 1

    con.create_scalar_function("slow", slow, 0)

    def ask() -> None:
        with suppress(apsw.Error):  # The connection may be closed before the cursor has ended.
            con.execute("SELECT slow()")

    worker = threading.Thread(target=ask)
    worker.start()
    assert inside.wait(PATIENCE_S)
    with pytest.raises(apsw.ThreadingViolationError):
        con.close()
    closer = threading.Thread(target=close_connection, args=(con, "a.db"))
    closer.start()
    go_on.set()
    closer.join(PATIENCE_S)
    worker.join(PATIENCE_S)
    assert not closer.is_alive()
    with pytest.raises(apsw.ConnectionClosedError):
        con.execute("SELECT 1")
