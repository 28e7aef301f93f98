"""HTTP problems: a failed request as a status and JSON {"error": {"type": …, "message": …}}."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping

from pydantic import BaseModel, Field, ValidationError
from starlette.responses import Response

from worlddb import errors
from worlddb.faces.call_models import problems_in

TOO_MANY = "too_many_requests"
PROBLEMS_SHOWN = 5  # More do not help to correct a request.
STATUS_BY_ERROR: dict[type[errors.WorldDBError], tuple[int, str]] = {
    errors.InvalidInputError: (400, "invalid_input"),
    errors.NotFoundError: (404, "not_found"),
    errors.ConflictError: (409, "conflict"),
    errors.RejectedError: (403, "rejected"),
    errors.FormatError: (500, "format"),
    errors.CorruptionError: (500, "corruption"),
    errors.StorageError: (503, "storage"),
    errors.ProviderError: (502, "provider"),
}
"""The status and the type of each branch of the error tree."""

TYPE_BY_STATUS = {
    400: "invalid_input",
    401: "unauthorized",
    403: "rejected",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    413: "too_large",
    415: "unsupported_media_type",
    421: "misdirected",
    429: "too_many_guesses",
    431: "too_large",
    500: "internal",
    503: "busy",
}


class ErrorBody(BaseModel):
    """An error: a type for programs, a message for people."""

    type: str = Field(description="the kind of the error; these words do not change")
    message: str = Field(description="what happened and what to do")


class ErrorAnswer(BaseModel):
    """The answer to a failed request."""

    error: ErrorBody


class HttpError(Exception):
    """A request that HTTP rules refuse."""

    def __init__(
        self,
        status: int,
        message: str,
        headers: Mapping[str, str] | None = None,
        *,
        type: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})
        self.type = type


def too_many(message: str, wait_s: float) -> HttpError:
    """Return the error for a token that has reached its rate or quota."""
    return HttpError(429, message, {"Retry-After": str(math.ceil(wait_s))}, type=TOO_MANY)


def problem(
    status: int, message: str, *, type: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """Return the answer to a failed request."""
    error = {"type": type or TYPE_BY_STATUS.get(status, "error"), "message": message}
    body = json.dumps({"error": error}, ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, status, media_type="application/json", headers=headers)


def problem_of(error: Exception, path: str = "") -> Response:
    """Return the answer for an exception. The path of the store is not shown."""
    if isinstance(error, HttpError):
        return problem(error.status, error.message, type=error.type, headers=error.headers)
    if isinstance(error, ValidationError):
        return problem(400, invalid_arguments(error))
    for kind in type(error).__mro__:
        if kind in STATUS_BY_ERROR:
            status, name = STATUS_BY_ERROR[kind]
            message = str(error).replace(path, "the store") if path else str(error)
            headers = {"Retry-After": "1"} if status in (409, 503) else None
            return problem(status, message, type=name, headers=headers)
    return problem(500, "internal error; the server's log has the details")


MESSAGE_BY_KIND = {
    "extra_forbidden": "there is no such argument; /openapi.json lists the arguments",
    "missing": "is missing; give it",
}
"""What pydantic says in words of its own, said in words of this API."""


def invalid_arguments(error: ValidationError, known: Iterable[str] = ()) -> str:
    """Return what is wrong with the arguments, without their values; `known` are their names."""
    found = []
    for place, one in problems_in(error):
        where = place or "the body"
        message = MESSAGE_BY_KIND.get(one["type"], one["msg"].removeprefix("Value error, "))
        if one["type"] == "extra_forbidden" and len(one["loc"]) == 1 and known:
            message = f"there is no such argument; known are {', '.join(known)}"
        found.append(f"{where}: {message}")
    more = f"; and {len(found) - PROBLEMS_SHOWN} more" if len(found) > PROBLEMS_SHOWN else ""
    return "; ".join(found[:PROBLEMS_SHOWN]) + more
