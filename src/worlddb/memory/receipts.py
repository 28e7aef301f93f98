"""Receipts: signed statements of the answer of a recall, and exports of a scope.

The payload of a receipt has the digest of the question, its scope and times, the code, settings and
embedder, the commit, and the ids of the hits with their ranks and confidence. To verify a receipt,
the same question is asked again as of the time of the receipt, and both payloads are compared.

The question is stored beside the signed part, with a random blind: without the blind, a short
question could be guessed from its digest. Without the question (`asked`), only the signature can be
checked.

`export_scope` returns all memories of one person as data to be handed over.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

from blake3 import blake3

from worlddb.audit.erasure_receipt import KIND as ERASURE
from worlddb.audit.erasure_receipt import erasure_differences
from worlddb.audit.history import commit_row
from worlddb.audit.read_audit import ReadEntry, reads
from worlddb.audit.signed_envelope import (
    KEY_BYTES,
    canonical_json,
    opened_payload,
    public_bytes,
    sign,
    signing_key,
)
from worlddb.errors import FormatError, InvalidInputError, NotFoundError
from worlddb.files.file_tree import FileText
from worlddb.memory.endings import ALL, check_confirmed
from worlddb.memory.reads import MemoryReader
from worlddb.memory.results import Remembered
from worlddb.memory.scope_sight import OwnHistory
from worlddb.memory.scope_view import CallerScopes, generations, one_scope, page
from worlddb.model.address import BLIND_BYTES, EMPTY, Id
from worlddb.model.inputs import (
    Groups,
    Plain,
    ScopeIds,
    ScopeName,
    from_micros,
    groups_of,
    to_micros,
)
from worlddb.model.proof import HistoryProof
from worlddb.recall.hits import Recall
from worlddb.store.interface import Reader
from worlddb.world_db import WorldDB

EXPORT = "application/vnd.worlddb.export-receipt.1+json"
PARTS = ("memories", "files", "reads")  # The parts that the digest of an export covers.


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeExport(Plain):
    """All memories in a scope with their whole texts, also retired ones, and its present files.

    `reads` are the recorded reads of the scope, if the store audits reads; a bound caller does not
    get them. `digest` is the blake3 of all three as canonical JSON. `receipt`, if requested, is a
    signed envelope with scope, time, root state, numbers and digest.
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


def export(
    reader: MemoryReader,
    *,
    receipt: bool = False,
    confirm: str | bool | None = None,
    **scope: Unpack[ScopeIds],
) -> ScopeExport:
    """Return all memories and files in one scope, retired or not, to be handed over.

    With `receipt` the export has a signed receipt. `confirm`, if given, must be True or the scope's
    value. To remove the data, see `erase`.

    Raises:
        InvalidInputError: not exactly one scope is named, or another one is confirmed.
        NotFoundError: there is no such scope.
        RejectedError: the scope is outside the bounds of this memory.
        StorageError: the key for receipts cannot be made or read.
    """
    named = [one_scope(scope, "export")]
    groups = reader.scopes.groups(scope)
    if confirm is not None:
        check_confirmed(confirm, named, "export")
    # The intersection of two scopes is not a world, so it has no files.
    is_whole = groups == ((named[0],),)
    with reader.scopes.viewing(groups, ended=True) as view:
        rows = generations(view.reader, named[0])[-1:]
        if not rows:
            raise NotFoundError(f"there is no scope {named[0]}; list the scopes to see them")
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
        signed = sign(reader.db.engine.store, EXPORT, payload)
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


RECALL_RECEIPT = "application/vnd.worlddb.recall-receipt.1+json"
PRIVATE_PARTS = ("query", "names", "where")
"""What a question says; only its digest is signed."""
OPTIONS = ("k", "max_tokens", "min_confidence", "types", "include_retired", "summaries")
TIMES = ("as_of", "at")
DIGITS = 6  # Of a confidence: coarser than the rounding differences between machines.


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification(Plain):
    """The result of verifying a receipt.

    `signed`: the key has signed it. `same`: the question, asked again as of then, has the same
    answer, byte for byte; erased texts are erased; the export is the signed one. None if that was
    not checked. `differences` names the differing parts; other code or another embedder may answer
    differently.
    """

    signed: bool
    same: bool | None
    differences: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.signed and self.same is True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A recall as a receipt records it: the question, its options, scopes and times."""

    said: Mapping[str, Any]
    options: Mapping[str, Any]
    scope: Mapping[str, list[str]]
    is_bound: bool
    known_at: str
    asked_at: str


def recall_with_receipt(
    reader: MemoryReader, query: str, scope: Mapping[str, Any], **options: Any
) -> Recall:
    """Return the answer of `MemoryReader.recall` with a signed receipt.

    Raises:
        InvalidInputError, RejectedError, ProviderError, StorageError: as `recall`.
    """
    if options.pop("settings") is not None:
        raise InvalidInputError("receipt: only a recall with the default settings has one")
    db, scopes = reader.db, reader.scopes
    groups = scopes.groups(scope)
    now = db.engine.clock()
    last = _last_known(db, scopes)
    known = options.pop("known_at", None)
    # A later commit could still get a time between the last commit and now.
    known_at = last if known is None else min(last, from_micros(to_micros(known, "known_at")))
    given = {"query": query, **options}
    asked = _Asked(
        said={name: given.get(name) for name in PRIVATE_PARTS}
        | {"blind": os.urandom(BLIND_BYTES).hex()},
        options={name: given.get(name) for name in OPTIONS}
        | {name: _iso(given.get(name)) for name in TIMES},
        scope={f"{group[0].kind}_id": sorted(one.value for one in group) for group in groups},
        is_bound=bool(scopes.bounds),
        known_at=_iso(known_at) or "",
        asked_at=_iso(from_micros(now)) or "",
    )
    found, payload = _answer(db, scopes, asked, reader.actor, reader.counts)
    envelope = sign(db.engine.store, RECALL_RECEIPT, canonical_json(payload))
    return replace(found, receipt=envelope | {"asked": dict(asked.said)})


def verify_recall(db: WorldDB, own: CallerScopes, payload: bytes, said: object) -> Verification:
    """Ask the question of a signed payload again, for the caller with these scopes."""
    signed = json.loads(payload)
    if not isinstance(said, Mapping):
        raise InvalidInputError("this receipt has no question (asked); check its signature alone")
    if _digest(said) != signed["asked"]:
        return Verification(signed=True, same=False, differences=("asked",))
    asked = _Asked(
        said=said,
        options=signed["options"],
        scope=signed["scope"],
        is_bound=signed["is_bound"],
        known_at=signed["known_at"],
        asked_at=signed["asked_at"],
    )
    # A bound caller may verify only receipts of its own scope, or of one that it may read.
    own.with_grants(asked.scope).groups(asked.scope)
    scopes = CallerScopes(store=own.store, clock=own.clock)
    _, made = _answer(_uncounted(db), scopes, asked)
    differences = tuple(key for key in sorted(signed | made) if signed.get(key) != made.get(key))
    same = canonical_json(made) == payload
    return Verification(signed=True, same=same, differences=differences)


def _answer(
    db: WorldDB, scopes: CallerScopes, asked: _Asked, actor: str = "", counts: bool = True
) -> tuple[Recall, dict[str, Any]]:
    """Answer a question as of a fixed time; return the answer and the payload of its receipt."""
    now = to_micros(asked.asked_at, "asked_at")
    still = replace(scopes, clock=lambda: now)
    reader = MemoryReader(db=_at_time(db, now), scopes=still, actor=actor, counts=counts)
    said: dict[str, Any] = {name: asked.said.get(name) for name in PRIVATE_PARTS}
    scope: Any = asked.scope
    found = reader.recall(
        said.pop("query") or "",
        **said,
        **asked.options,
        known_at=asked.known_at,
        **scope,
    )
    with db.engine.store.read() as session:
        witness = _witness(session, groups_of(asked.scope), asked)
    search = db.engine.search
    return found, {
        "asked": _digest(asked.said),
        "options": dict(asked.options),
        "scope": dict(asked.scope),
        "is_bound": asked.is_bound,
        "known_at": asked.known_at,
        "asked_at": asked.asked_at,
        **witness,
        "code": code_digest(),
        "settings": settings_digest(),
        "embedder": search.vectors().model_id if search.has_vectors else None,
        "confidence": round(found.confidence, DIGITS),
        "hits": [
            {"rank": rank, "id": str(hit.node.id), "confidence": round(hit.confidence, DIGITS)}
            for rank, hit in enumerate(found, 1)
        ],
    }


def _witness(reader: Reader, groups: Groups, asked: _Asked) -> dict[str, Any]:
    """Return the commit and the root state of a time; for a bound caller, its scope's state."""
    seq = reader.commit_at(to_micros(asked.known_at, "known_at"))
    if seq is None:
        return {"commit": None, "commit_hash": None, "root_state": EMPTY.hex()}
    if not asked.is_bound:
        row = commit_row(reader, seq)
        return {"commit": seq, "commit_hash": row.hash.hex(), "root_state": row.root_state.hex()}
    # Numbers and addresses of the store would tell a bound caller when others write.
    state = EMPTY
    if len(groups) == 1 and len(groups[0]) == 1:
        rows = generations(reader, groups[0][0], seq)[-1:]
        state = next((node.state for node in reader.nodes(rows, seq).values()), EMPTY)
    return {"commit": None, "commit_hash": None, "root_state": state.hex()}


def _last_known(db: WorldDB, scopes: CallerScopes) -> datetime:
    """Return the time of the last commit that the caller can see."""
    if not scopes.bounds:
        with db.engine.store.read() as reader:
            return from_micros(reader.head().time)
    with scopes.viewing(scopes.bounds, ended=True) as view:
        for _, commit in islice(OwnHistory(scopes, view.reader, view).walk(), 1):
            return commit.time
    return from_micros(0)


def _at_time(db: WorldDB, now: int) -> WorldDB:
    """Return an open store with a fixed clock."""
    return _with_engine(db, clock=lambda: now)


def _uncounted(db: WorldDB) -> WorldDB:
    """Return an open store that neither counts nor records recalls."""
    twin = _with_engine(db, recalls=db.engine.recalls.silent())
    twin.audits_reads = False
    return twin


def _with_engine(db: WorldDB, **parts: Any) -> WorldDB:
    twin = copy.copy(db)
    twin.engine = replace(db.engine, **parts)
    return twin


def _digest(said: Mapping[str, Any]) -> str:
    return blake3(canonical_json(dict(said))).hexdigest()


def _iso(time: Any) -> str | None:
    return None if time is None else from_micros(to_micros(time, "time")).isoformat()


@cache
def code_digest() -> str:
    """Return a digest of every file of this package, which identifies the code."""
    import worlddb

    folder = Path(worlddb.__file__).parent
    hasher = blake3()
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or "__pycache__" in path.parts:
            continue
        content = path.read_bytes()
        hasher.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    return hasher.hexdigest()


@cache
def settings_digest() -> str:
    """Return a digest of the default settings of recalls."""
    from worlddb.recall.question import DEFAULT_SETTINGS

    return blake3(canonical_json(asdict(DEFAULT_SETTINGS))).hexdigest()


def prove_history(reader: MemoryReader, since: int = 0) -> HistoryProof:
    """Return a proof that nothing was rewritten up to commit `since`.

    `worlddb.verify_history` checks it against log heads that you have saved.

    Raises:
        InvalidInputError, NotFoundError: there is no such commit.
        RejectedError: this memory is bound; the journal is about the whole store.
    """
    reader.scopes.refuse_bound("a proof")
    return reader.db.prove_history(since)


# Receipt verification: whether this store's key signed a receipt, and whether it still holds.
#
# The question of a recall is asked again, an erasure is compared with the store, and an export with
# its own data.

TENANT_ERASURE = "application/vnd.worlddb.tenant-erasure.1+json"
KINDS = (RECALL_RECEIPT, ERASURE, EXPORT, TENANT_ERASURE)
WRAPPED = ("receipt", "envelope")
"""Under which name an answer has its receipt: a recall and an export; an erasure."""


def verify_receipt(
    reader: MemoryReader,
    receipt: Mapping[str, Any],
    *,
    public_key: bytes | str | None = None,
    again: bool = True,
) -> Verification:
    """Check the signature of a receipt, and whether its content still holds.

    The question of a recall is asked again as of then, and the answers are compared. The texts in
    a receipt of `erase` must be erased, by its commit. For a receipt of `export`, give the whole
    export. `public_key` is the key that must have signed it, as 32 bytes or 64 hex digits; by
    default the key of this store. With `again=False` only the signature is checked.

    Raises:
        FormatError: it is not a receipt.
        InvalidInputError: there is nothing to compare with, or the key is no key.
        RejectedError: its scope is outside the bounds of this memory.
        StorageError: the key of the store cannot be read.
    """
    db, own = reader.db, reader.scopes
    if not isinstance(receipt, Mapping):
        raise FormatError("this is not a receipt: a receipt is a JSON object")
    envelope = receipt_in(receipt)
    kind = next((one for one in KINDS if one == envelope.get("payloadType")), RECALL_RECEIPT)
    payload = opened_payload(envelope, kind, _public_key(db, public_key))
    if payload is None:
        return Verification(signed=False, same=None)
    if not again or kind == TENANT_ERASURE:  # An erased tenant has no store to compare with.
        return Verification(signed=True, same=None)
    if kind == RECALL_RECEIPT:
        return verify_recall(db, own, payload, envelope.get("asked"))
    told = json.loads(payload)
    if kind == ERASURE:
        if told["scope"]:  # A bound caller may verify only receipts of its own scope.
            own.with_grants(told["scope"]).groups(told["scope"])
        return _compared(erasure_differences(db.engine.store, told))
    if not all(isinstance(receipt.get(part), list) for part in PARTS):
        raise InvalidInputError("this receipt has no export around it; check its signature alone")
    is_same = told["digest"] == str(digest_of({part: receipt[part] for part in PARTS}))
    return _compared(() if is_same else ("digest",))


def receipt_in(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the receipt in the answer of a call; a receipt itself is returned unchanged."""
    found = (given[name] for name in WRAPPED if isinstance(given.get(name), Mapping))
    return next(found, given)


def _compared(differences: tuple[str, ...]) -> Verification:
    return Verification(signed=True, same=not differences, differences=differences)


def _public_key(db: WorldDB, given: bytes | str | None) -> bytes:
    if given is None:
        return public_bytes(signing_key(db.engine.store, create=False))
    try:
        key = bytes.fromhex(given.strip()) if isinstance(given, str) else bytes(given)
    except (ValueError, TypeError):
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidInputError("public_key: give 32 bytes or 64 hexadecimal digits")
    return key
