"""Scope export: everything that is remembered for one person, as data that can be handed over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from blake3 import blake3

from worlddb.audit.read_audit import ReadEntry, reads
from worlddb.audit.signed_envelope import canonical_json, sign
from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.files.file_tree import FileText
from worlddb.memory.endings import ALL, check_confirmed
from worlddb.memory.reads import MemoryReader
from worlddb.memory.results import Remembered
from worlddb.memory.scope_view import generations, page
from worlddb.model.address import Id
from worlddb.model.inputs import from_micros
from worlddb.model.records import Plain, ScopeName, groups_of

KIND = "application/vnd.worlddb.export-receipt.1+json"
PARTS = ("memories", "files", "reads")  # What the digest of an export covers.


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeExport(Plain):
    """All memories in a scope, retired ones too, with their whole texts, and its present files.

    `reads` is the record of who recalled what of the scope, if the store audits reads; a bound
    caller does not get it. `digest` is the blake3 of all three as canonical JSON. `receipt`, if one
    was asked for, is a signed envelope with scope, time, root state, numbers and digest.
    """

    scope: ScopeName
    time: datetime
    root_state: Id
    memories: tuple[Remembered, ...]
    files: tuple[FileText, ...]
    reads: tuple[ReadEntry, ...]
    digest: Id
    receipt: Mapping[str, Any] | None = field(default=None, hash=False)


def digest_of(parts: Mapping[str, Any]) -> Id:
    """Return the digest of the parts of an export."""
    return Id(blake3(canonical_json(dict(parts))).digest())


def export_scope(
    reader: MemoryReader, scope: Mapping[str, Any], receipt: bool, confirm: str | bool | None
) -> ScopeExport:
    """Return everything in the one scope that is named; see `Memory.export`."""
    named = [name for group in groups_of(scope) for name in group]
    if len(named) != 1:
        raise InvalidInputError("export: name one scope: user_id, agent_id, app_id or run_id")
    groups = reader.scopes.groups(scope)
    if confirm is not None:
        check_confirmed(confirm, named, "export")
    # What is inside scopes of two kinds is no world, so it has no files.
    is_whole = groups == ((named[0],),)
    with reader.scopes.viewing(groups, ended=True) as view:
        rows = generations(view.reader, named[0])[-1:]
        if not rows:
            raise NotFoundError(f"there is no scope {named[0]}; list them to see them")
        memories = reader.remembered(view, page(view, None, ALL), None)
        world = Id(view.reader.world(rows[0]).id)
    files = tuple(reader.db.files(world).read_all()) if is_whole else ()
    audited = () if reader.scopes.bounds else reads(reader.db.engine.store)
    told_reads = tuple(one for one in audited if str(named[0]) in one.scopes)
    reader.note("export", groups, "", (one.id for one in memories))
    parts = {
        "memories": [one.to_dict() for one in memories],
        "files": [one.to_dict() for one in files],
        "reads": [one.to_dict() for one in told_reads],
    }
    _, root = reader.scopes.own_commit(None)
    time = from_micros(reader.db.engine.clock())
    digest = digest_of(parts)
    counts = {name: len(part) for name, part in parts.items()}
    told = {"scope": str(named[0]), "time": time.isoformat(), "root_state": str(root), **counts}
    signed = None
    if receipt:
        payload = canonical_json(told | {"digest": str(digest)})
        signed = sign(reader.db.engine.store, KIND, payload)
    return ScopeExport(
        scope=named[0],
        time=time,
        root_state=root,
        memories=memories,
        files=files,
        reads=told_reads,
        digest=digest,
        receipt=signed,
    )
