"""Journal: a commit's recorded effects, with times that a person can read and give back."""

from __future__ import annotations

from typing import Any

from worlddb.model.address import ID_BYTES
from worlddb.model.inputs import from_micros
from worlddb.model.records import Change

TIME_KEYS = {"valid_from", "valid_to"}
SHORT_DIGITS = 12


def change_dict(change: Change) -> dict[str, Any]:
    """Return a change as JSON data; the journal keeps its times as microseconds."""
    plain = change.to_dict()
    plain["detail"] = {key: _shown(key, value) for key, value in plain["detail"].items()}
    return plain


def change_text(change: Change) -> str:
    """Return a change's details on one line, ids shortened."""
    return ", ".join(
        f"{key} {_shortened(value)}" for key, value in change_dict(change)["detail"].items()
    )


def _shown(key: str, value: Any) -> Any:
    return from_micros(value).isoformat() if key in TIME_KEYS and type(value) is int else value


def _shortened(value: Any) -> str:
    text = str(value)
    text = text.replace("+00:00", "Z")
    return text[:SHORT_DIGITS] if len(text) == 2 * ID_BYTES and text.isalnum() else text
