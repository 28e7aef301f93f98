"""Problems: what went wrong, as a status and as JSON: {"error": {"type": …, "message": …}}."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import BaseModel, Field, ValidationError
from starlette.responses import Response

from worlddb.errors import (
    ConflictError,
    CorruptionError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    ProviderError,
    RejectedError,
    StorageError,
    WorldDBError,
)

TOLD_MAX = 5
BY_ERROR: dict[type[WorldDBError], tuple[int, str]] = {
    InvalidInputError: (400, "invalid_input"),
    NotFoundError: (404, "not_found"),
    ConflictError: (409, "conflict"),
    RejectedError: (403, "rejected"),
    FormatError: (500, "format"),
    CorruptionError: (500, "corruption"),
    StorageError: (503, "storage"),
    ProviderError: (502, "provider"),
}
"""The status and the name of each branch of the error tree."""

BY_STATUS = {
    400: "invalid_input",
    401: "unauthorized",
    403: "rejected",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    413: "too_large",
    415: "unsupported_media_type",
    421: "misdirected",
    431: "too_large",
    500: "internal",
    503: "busy",
}


class Told(BaseModel):
    """What went wrong: a word for programs, a sentence for people."""

    type: str = Field(description="a word that does not change")
    message: str = Field(description="what happened and what to do")


class Problem(BaseModel):
    """The answer to a request that failed."""

    error: Told


class RefusedError(Exception):
    """A request that is not carried out, for a reason that only HTTP knows."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


def problem(
    status: int, message: str, *, type: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer that tells of a problem."""
    told = {"type": type or BY_STATUS.get(status, "error"), "message": message}
    body = json.dumps({"error": told}, ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, status, media_type="application/json", headers=headers)


def problem_of(error: Exception, path: str = "") -> Response:
    """Return the answer to a request that raised; where the store lies is nobody's business."""
    if isinstance(error, RefusedError):
        return problem(error.status, error.message, headers=error.headers)
    if isinstance(error, ValidationError):
        return problem(400, _told(error))
    for kind in type(error).__mro__:
        if kind in BY_ERROR:
            status, name = BY_ERROR[kind]
            message = str(error).replace(path, "the store") if path else str(error)
            headers = {"Retry-After": "1"} if status in (409, 503) else None
            return problem(status, message, type=name, headers=headers)
    return problem(500, "something went wrong here; the server's log says what")


def _told(error: ValidationError) -> str:
    """Return what is wrong with the arguments, without what they say."""
    found = [
        f"{'.'.join(map(str, one['loc'])) or 'the body'}: {one['msg']}"
        for one in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    more = f"; and {len(found) - TOLD_MAX} more" if len(found) > TOLD_MAX else ""
    return "; ".join(found[:TOLD_MAX]) + more
