"""Capture: the turns that a session has added are written, each once, without their secrets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from worlddb.faces.hooks.client_dialects import DIALECTS
from worlddb.faces.hooks.context_injection import PROJECT
from worlddb.faces.hooks.memory_door import (
    CONFLICT,
    INVALID,
    DoorError,
    call_in,
    door_to,
    scopes_of,
)
from worlddb.faces.hooks.session_files import TranscriptTurn, log_line, turns_in
from worlddb.model.secret_patterns import without_secrets

if TYPE_CHECKING:
    from worlddb.faces.face_settings import Settings
    from worlddb.faces.hooks.client_dialects import HookEvent
    from worlddb.faces.hooks.memory_door import MemoryDoor
    from worlddb.faces.hooks.session_files import SessionFiles

CALL_S_MAX = 30.0  # For one write, in the background.


def capture_apart(
    event: HookEvent,
    settings: Settings,
    project: str | None,
    files: SessionFiles,
    folder: str,
    *,
    skip: bool,
) -> None:
    """Capture in a process of its own, so that the client need not wait.

    It is a fork: the modules are loaded, and no thread has been started yet. With `skip` the turns
    are passed over, and never written.
    """
    if not hasattr(os, "fork"):
        _captured(event, settings, project, files, folder, skip)
        return
    if os.fork():
        return
    try:
        os.setsid()  # A client that ends the hook's process group does not end the capture.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)  # The client waits until its pipes are closed.
        _captured(event, settings, project, files, folder, skip)
    finally:
        os._exit(0)


def _captured(
    event: HookEvent,
    settings: Settings,
    project: str | None,
    files: SessionFiles,
    folder: str,
    skip: bool,
) -> None:
    try:
        count = capture(event, settings, project, files, skip=skip)
        if count:
            log_line(folder, f"{event.client} {event.name}: captured {count} turns")
    except Exception as error:  # There is nobody to tell; the next event tries again.
        log_line(folder, f"{event.client} {event.name}: gave up: {type(error).__name__}: {error}")


def capture(
    event: HookEvent,
    settings: Settings,
    project: str | None,
    files: SessionFiles,
    *,
    skip: bool = False,
) -> int:
    """Write the turns that are new; return how many there were.

    Raises:
        DoorError: the memory does not take them; what was written before stays written.
    """
    form = DIALECTS[event.client].transcript
    door: MemoryDoor | None = None
    count = 0
    with files.place() as place:
        try:
            for after, turn in _turns(event, form, place.bytes):
                if turn is not None and not skip:
                    door = door or door_to(settings, CALL_S_MAX)
                    _write(door, turn, event, scopes_of(settings, project), project)
                    count += 1
                if form:
                    place.keep(after)
        finally:
            if door is not None:
                door.close()
    return count


def _turns(
    event: HookEvent, form: str | None, start: int
) -> Iterator[tuple[int, TranscriptTurn | None]]:
    if form is None:
        for role, text in event.said:
            key = sha256(f"{role}\n{text}".encode(errors="replace")).hexdigest()[:32]
            yield 0, TranscriptTurn(key, role, text, None)
    elif event.transcript is not None and os.path.exists(event.transcript):
        yield from turns_in(event.transcript, form, start)


def _write(
    door: MemoryDoor,
    turn: TranscriptTurn,
    event: HookEvent,
    scopes: list[dict[str, str]],
    project: str | None,
) -> None:
    """Write one turn; into the caller's own scope alone where no other is open to its token."""
    message = {"role": turn.role, "content": without_secrets(turn.text)}
    if turn.at is not None:
        message["at"] = turn.at
    asked: dict[str, Any] = {
        "messages": [message],
        "source": event.source,
        "metadata": {"client": event.client, **({PROJECT: project} if project else {})},
        "idempotency_key": f"{event.client}:{event.session}:{turn.key}",
    }
    run = {"run_id": event.session} if event.session else {}
    try:
        call_in(door, "write", asked, [*(one | run for one in scopes), {}])
    except DoorError as error:
        # A turn that is there already, or that no memory can take, holds up no other.
        if error.status not in (CONFLICT, INVALID):
            raise
