"""Operations: the nine calls of Memory as REST: where each is, what it takes and what it gives."""

from __future__ import annotations

from dataclasses import dataclass

from worlddb import Recall
from worlddb.faces.http.models import (
    AmendGiven,
    Given,
    ListGiven,
    PurgeGiven,
    ReadGiven,
    RecallGiven,
    RetireAllGiven,
    RetireGiven,
    ScopesGiven,
    WriteGiven,
)
from worlddb.faces.http.threads import Work
from worlddb.memory.results import MemoryPage, Remembered, Retired, ScopePage, Written


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One call of Memory: `name` is the method, `given` its arguments beside those in the path.

    What is given comes in the query of a GET and in the body of anything else.
    """

    name: str
    method: str
    path: str
    given: type[Given]
    result: type
    summary: str
    work: Work = "read"


OPERATIONS = (
    Operation(
        name="write",
        method="POST",
        path="/v1/memories",
        given=WriteGiven,
        result=Written,
        summary="Remember a text or a chat",
        work="write",
    ),
    Operation(
        name="list",
        method="GET",
        path="/v1/memories",
        given=ListGiven,
        result=MemoryPage,
        summary="List memories, the latest first",
    ),
    Operation(
        name="recall",
        method="POST",
        path="/v1/recall",
        given=RecallGiven,
        result=Recall,
        summary="Find what is remembered about a question",
        work="search",
    ),
    Operation(
        name="read",
        method="GET",
        path="/v1/memories/{id}",
        given=ReadGiven,
        result=Remembered,
        summary="Read one memory by its id or the start of it",
    ),
    Operation(
        name="amend",
        method="POST",
        path="/v1/memories/{id}/amend",
        given=AmendGiven,
        result=Written,
        summary="Say a memory anew; the old one is superseded",
        work="write",
    ),
    Operation(
        name="retire",
        method="POST",
        path="/v1/memories/{id}/retire",
        given=RetireGiven,
        result=Retired,
        summary="End one memory",
        work="write",
    ),
    Operation(
        name="retire_all",
        method="POST",
        path="/v1/retire_all",
        given=RetireAllGiven,
        result=Retired,
        summary="End every memory in a scope",
        work="write",
    ),
    Operation(
        name="purge_scope",
        method="POST",
        path="/v1/purge_scope",
        given=PurgeGiven,
        result=Retired,
        summary="End a scope with everything in it",
        work="write",
    ),
    Operation(
        name="list_scopes",
        method="GET",
        path="/v1/scopes",
        given=ScopesGiven,
        result=ScopePage,
        summary="List whose memories there are",
    ),
)
