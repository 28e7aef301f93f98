"""Types of the calls. Written by tests/client_stub.py; run it instead of editing."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from worlddb.audit.erasure_receipt import Receipt
from worlddb.audit.undo import CommitNumbers, Undone
from worlddb.consolidate.consolidation_run import ConsolidationReport
from worlddb.faces.diagnosis import Diagnosis
from worlddb.faces.server_calls import CallerAccess, IssuedToken, RevokedToken, TokenList
from worlddb.faces.tenant_erasure import TenantErasure
from worlddb.files.file_tree import FileChange, FileList, FileMatches, FilePaths, FileText
from worlddb.ingest.branch_merge import Merged
from worlddb.ingest.document_text import DocumentInput
from worlddb.ingest.extractors import Chat, Input
from worlddb.ingest.identity_change import Split
from worlddb.memory.listings import FadingPage, Interior, PendingPage
from worlddb.memory.memory import Memory
from worlddb.memory.memory_marks import Aliases, Ttl
from worlddb.memory.receipts import ScopeExport, Verification
from worlddb.memory.results import (
    CommitPage,
    ConflictPage,
    EdgeTypes,
    MemoryPage,
    MergeProposal,
    PromptContext,
    ProposalPage,
    Proven,
    ReadPage,
    Remembered,
    Retired,
    ScopePage,
    Soundness,
    Written,
)
from worlddb.memory.scope_grants import Grant, Grants
from worlddb.memory.scope_policies import (
    RetentionPolicies,
    RetentionPolicy,
    RetentionReport,
    TrustSettings,
)
from worlddb.memory.scoped_graph import Decision, QueryInput
from worlddb.model.inputs import Instant, ScopeIds, ScopeKind
from worlddb.model.proof import HistoryProof
from worlddb.model.records import Branch, Branches, Diff, Edge, Extractor, Identity
from worlddb.model.text_safety import Origin
from worlddb.ontology.registry import EdgeDeclaration
from worlddb.query.pipeline import Subgraph
from worlddb.query.query_builder import Plan
from worlddb.recall.hits import Recall
from worlddb.recall.question import RecallSettings
from worlddb.world_db import WorldDB

MEMORY_ONLY: tuple[str, ...]

class Client:
    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout_s: float = 60.0,
        retries: int = 4,
        backoff_s: float = 0.25,
    ) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Client: ...
    def __exit__(self, *_: object) -> None: ...
    def write(
        self,
        text: Input | None = None,
        *,
        messages: Chat | None = None,
        document: DocumentInput | None = None,
        at: Instant | None = None,
        source: str | Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: str | Sequence[str] | None = None,
        pin: bool = False,
        expires_at: Instant | None = None,
        ttl: Ttl | None = None,
        names: str | Sequence[str] | None = None,
        aliases: Aliases | None = None,
        idempotency_key: str | None = None,
        extractor: str | None = None,
        origin: Origin | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Written: ...
    def recall(
        self,
        query: str | None = None,
        *,
        names: str | Sequence[str] | None = None,
        k: int = 10,
        max_tokens: int | None = None,
        min_confidence: float | None = None,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        include_retired: bool = False,
        at: Instant | None = None,
        summaries: Literal["first"] | None = None,
        counted: bool = True,
        receipt: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> Recall: ...
    def context(
        self,
        query: str | None = None,
        *,
        max_tokens: int = 1000,
        k: int = 10,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        counted: bool = True,
        **scope: Unpack[ScopeIds],
    ) -> PromptContext: ...
    def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        include_retired: bool = False,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> MemoryPage: ...
    def read(
        self,
        id: bytes | str,
        *,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Remembered: ...
    def amend(
        self,
        id: bytes | str,
        text: str,
        *,
        at: Instant | None = None,
        source: str | Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: str | Sequence[str] | None = None,
        expires_at: Instant | None = None,
        ttl: Ttl | None = None,
        extractor: str | None = None,
        origin: Origin | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Written: ...
    def pin(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Remembered: ...
    def unpin(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Remembered: ...
    def retire(
        self, id: bytes | str, *, at: Instant | None = None, **scope: Unpack[ScopeIds]
    ) -> Retired: ...
    def retire_all(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        confirm: str | bool | None = None,
        at: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Retired: ...
    def purge_scope(
        self, *, confirm: str | bool | None = None, **scope: Unpack[ScopeIds]
    ) -> Retired: ...
    def erase(
        self,
        id: bytes | str | None = None,
        *,
        confirm: str | bool | None = None,
        receipt: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> Receipt: ...
    def export(
        self, *, receipt: bool = False, confirm: str | bool | None = None, **scope: Unpack[ScopeIds]
    ) -> ScopeExport: ...
    def retention(self) -> RetentionPolicies: ...
    def set_retention(
        self,
        *,
        keep_days: int | None = None,
        then: Literal["retire", "erase"] | None = None,
        hold: Literal["on", "off"] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> RetentionPolicy: ...
    def apply_retention(
        self, *, dry_run: bool = False, **scope: Unpack[ScopeIds]
    ) -> RetentionReport: ...
    def branches(self) -> Branches: ...
    def create_branch(self, name: str) -> Branch: ...
    def branch_diff(self, name: str) -> Diff: ...
    def merge(self, name: str, *, dry_run: bool = False) -> Merged: ...
    def drop_branch(self, name: str) -> Branches: ...
    def grants(self, *, include_ended: bool = False, **scope: Unpack[ScopeIds]) -> Grants: ...
    def grant(
        self,
        to: str,
        right: Literal["read", "write"],
        *,
        until: Instant | None = None,
        confirm: str | bool | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Grant: ...
    def revoke(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Grant: ...
    def refuse(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Retired: ...
    def trust(self, **scope: Unpack[ScopeIds]) -> TrustSettings: ...
    def set_trust(
        self,
        trust: Mapping[str, str] | None = None,
        *,
        secrets: str | None = None,
        everywhere: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> TrustSettings: ...
    def quarantine(
        self, *, limit: int = 50, cursor: str | None = None, **scope: Unpack[ScopeIds]
    ) -> MemoryPage: ...
    def decide_quarantined(
        self,
        id: bytes | str,
        decision: Literal["release", "reject", "wait"],
        **scope: Unpack[ScopeIds],
    ) -> Remembered: ...
    def fading(
        self, *, below: float = 0.25, limit: int = 50, **scope: Unpack[ScopeIds]
    ) -> FadingPage: ...
    def pending(self, *, limit: int = 50, **scope: Unpack[ScopeIds]) -> PendingPage: ...
    def reads(self, *, limit: int = 100, **scope: Unpack[ScopeIds]) -> ReadPage: ...
    def list_scopes(
        self,
        *,
        kind: ScopeKind | None = None,
        limit: int = 100,
        cursor: str | None = None,
        include_retired: bool = False,
    ) -> ScopePage: ...
    def query(self, query: QueryInput, **scope: Unpack[ScopeIds]) -> Subgraph: ...
    def explain(self, query: QueryInput, **scope: Unpack[ScopeIds]) -> Plan: ...
    def interior(
        self,
        id: bytes | str | None = None,
        *,
        type: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Interior: ...
    def link(
        self,
        type: str,
        source: bytes | str,
        target: bytes | str,
        *,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        metadata: Mapping[str, Any] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Edge: ...
    def unlink(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Edge: ...
    def proposals(
        self,
        *,
        status: Literal["pending", "accepted", "rejected", "withdrawn", "all"] = "pending",
        limit: int = 50,
        **scope: Unpack[ScopeIds],
    ) -> ProposalPage: ...
    def decide_merge(
        self, id: bytes | str, decision: Decision, **scope: Unpack[ScopeIds]
    ) -> MergeProposal: ...
    def split(
        self, id: bytes | str, memories: Sequence[bytes | str], **scope: Unpack[ScopeIds]
    ) -> Split: ...
    def identity(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Identity: ...
    def conflicts(
        self, *, include_settled: bool = False, limit: int = 50, **scope: Unpack[ScopeIds]
    ) -> ConflictPage: ...
    def log(
        self, *, limit: int = 50, cursor: str | None = None, **scope: Unpack[ScopeIds]
    ) -> CommitPage: ...
    def undo(
        self, commit: CommitNumbers, *, dry_run: bool = False, **scope: Unpack[ScopeIds]
    ) -> Undone: ...
    def diff(
        self, first: int, last: int, *, limit: int | None = None, **scope: Unpack[ScopeIds]
    ) -> Diff: ...
    def prove(self, id: bytes | str) -> Proven: ...
    def prove_history(self, since: int = 0) -> HistoryProof: ...
    def check(self) -> Soundness: ...
    def consolidate(
        self, *, min_age: float = 0, dry_run: bool = False, **scope: Unpack[ScopeIds]
    ) -> ConsolidationReport: ...
    def edge_types(self, **scope: Unpack[ScopeIds]) -> EdgeTypes: ...
    def declare(
        self,
        type: str,
        *,
        functional: bool = False,
        newer_ends_older: bool = False,
        symmetric: bool = False,
        transitive: bool = False,
        acyclic: bool = False,
        pierces: bool = False,
        inverse: str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> EdgeDeclaration: ...
    def list_files(
        self,
        path: str = "/",
        *,
        all: bool = False,
        as_of: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> FileList: ...
    def read_file(
        self,
        path: str,
        *,
        version: bytes | str | None = None,
        as_of: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> FileText: ...
    def glob_files(
        self, pattern: str, *, as_of: Instant | None = None, **scope: Unpack[ScopeIds]
    ) -> FilePaths: ...
    def grep_files(
        self,
        pattern: str,
        *,
        path: str = "/",
        glob: str | None = None,
        ignore_case: bool = False,
        literal: bool = False,
        limit: int = 100,
        **scope: Unpack[ScopeIds],
    ) -> FileMatches: ...
    def write_file(
        self,
        path: str,
        text: str,
        *,
        version: bytes | str | None = None,
        new: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> FileChange: ...
    def edit_file(
        self,
        path: str,
        old: str,
        new: str,
        *,
        every: bool = False,
        version: bytes | str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> FileChange: ...
    def move_file(self, path: str, target: str, **scope: Unpack[ScopeIds]) -> FileChange: ...
    def delete_file(
        self, path: str, *, version: bytes | str | None = None, **scope: Unpack[ScopeIds]
    ) -> FileChange: ...
    def access(self) -> CallerAccess: ...
    def doctor(self) -> Diagnosis: ...
    def tokens(self) -> TokenList: ...
    def add_token(
        self,
        name: str,
        *,
        role: str = "curate",
        expires: Instant | None = None,
        origin: str | None = None,
        per_minute: int | None = None,
        memories_per_day: int | None = None,
        writes_into: Sequence[str] | None = None,
        tenant: str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> IssuedToken: ...
    def rotate_token(self, name: str) -> IssuedToken: ...
    def revoke_token(self, name: str) -> RevokedToken: ...
    def erase_tenant(
        self, tenant: str, *, confirm: str | None = None, receipt: bool = False
    ) -> TenantErasure: ...

class AsyncMemory:
    calls: Memory
    def __init__(
        self,
        store: str | os.PathLike[str] | WorldDB | Memory,
        *,
        extractor: Extractor | str | None = None,
        recluster: Literal["later", "now", "off"] = "later",
        supersede: bool = True,
        actor: str = "memory",
        consolidate_every_s: float | None = None,
        origin: Origin | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        app_id: str | None = None,
        run_id: str | None = None,
        **options: Any,
    ) -> None: ...
    def bound(
        self,
        *,
        actor: str | None = None,
        writes_into: Sequence[str] = (),
        origin: str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> AsyncMemory: ...
    def signed(self, actor: str | None = None, *, origin: Origin | None = None) -> AsyncMemory: ...
    async def close(self) -> None: ...
    async def __aexit__(self, *_: object) -> None: ...
    async def __aenter__(self) -> AsyncMemory: ...
    async def write(
        self,
        text: Input | None = None,
        *,
        messages: Chat | None = None,
        document: DocumentInput | None = None,
        at: Instant | None = None,
        source: str | Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: str | Sequence[str] | None = None,
        pin: bool = False,
        expires_at: Instant | None = None,
        ttl: Ttl | None = None,
        names: str | Sequence[str] | None = None,
        aliases: Aliases | None = None,
        idempotency_key: str | None = None,
        extractor: Extractor | str | None = None,
        origin: Origin | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Written: ...
    async def recall(
        self,
        query: str | None = None,
        *,
        names: str | Sequence[str] | None = None,
        k: int = 10,
        max_tokens: int | None = None,
        min_confidence: float | None = None,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        include_retired: bool = False,
        at: Instant | None = None,
        summaries: Literal["first"] | None = None,
        settings: RecallSettings | None = None,
        counted: bool = True,
        receipt: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> Recall: ...
    async def context(
        self,
        query: str | None = None,
        *,
        max_tokens: int = 1000,
        k: int = 10,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        counted: bool = True,
        **scope: Unpack[ScopeIds],
    ) -> PromptContext: ...
    async def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        include_retired: bool = False,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> MemoryPage: ...
    async def read(
        self,
        id: bytes | str,
        *,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Remembered: ...
    async def amend(
        self,
        id: bytes | str,
        text: str,
        *,
        at: Instant | None = None,
        source: str | Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: str | Sequence[str] | None = None,
        expires_at: Instant | None = None,
        ttl: Ttl | None = None,
        extractor: Extractor | str | None = None,
        origin: Origin | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Written: ...
    async def pin(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Remembered: ...
    async def unpin(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Remembered: ...
    async def retire(
        self, id: bytes | str, *, at: Instant | None = None, **scope: Unpack[ScopeIds]
    ) -> Retired: ...
    async def retire_all(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        confirm: str | bool | None = None,
        at: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Retired: ...
    async def purge_scope(
        self, *, confirm: str | bool | None = None, **scope: Unpack[ScopeIds]
    ) -> Retired: ...
    async def erase(
        self,
        id: bytes | str | None = None,
        *,
        confirm: str | bool | None = None,
        receipt: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> Receipt: ...
    async def export(
        self, *, receipt: bool = False, confirm: str | bool | None = None, **scope: Unpack[ScopeIds]
    ) -> ScopeExport: ...
    async def retention(self) -> RetentionPolicies: ...
    async def set_retention(
        self,
        *,
        keep_days: int | None = None,
        then: Literal["retire", "erase"] | None = None,
        hold: Literal["on", "off"] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> RetentionPolicy: ...
    async def apply_retention(
        self, *, dry_run: bool = False, **scope: Unpack[ScopeIds]
    ) -> RetentionReport: ...
    async def branches(self) -> Branches: ...
    async def create_branch(self, name: str) -> Branch: ...
    async def branch_diff(self, name: str) -> Diff: ...
    async def merge(self, name: str, *, dry_run: bool = False) -> Merged: ...
    async def drop_branch(self, name: str) -> Branches: ...
    async def grants(self, *, include_ended: bool = False, **scope: Unpack[ScopeIds]) -> Grants: ...
    async def grant(
        self,
        to: str,
        right: Literal["read", "write"],
        *,
        until: Instant | None = None,
        confirm: str | bool | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Grant: ...
    async def revoke(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Grant: ...
    async def refuse(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Retired: ...
    async def trust(self, **scope: Unpack[ScopeIds]) -> TrustSettings: ...
    async def set_trust(
        self,
        trust: Mapping[str, str] | None = None,
        *,
        secrets: str | None = None,
        everywhere: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> TrustSettings: ...
    async def quarantine(
        self, *, limit: int = 50, cursor: str | None = None, **scope: Unpack[ScopeIds]
    ) -> MemoryPage: ...
    async def decide_quarantined(
        self,
        id: bytes | str,
        decision: Literal["release", "reject", "wait"],
        **scope: Unpack[ScopeIds],
    ) -> Remembered: ...
    async def fading(
        self, *, below: float = 0.25, limit: int = 50, **scope: Unpack[ScopeIds]
    ) -> FadingPage: ...
    async def pending(self, *, limit: int = 50, **scope: Unpack[ScopeIds]) -> PendingPage: ...
    async def reads(self, *, limit: int = 100, **scope: Unpack[ScopeIds]) -> ReadPage: ...
    async def list_scopes(
        self,
        *,
        kind: ScopeKind | None = None,
        limit: int = 100,
        cursor: str | None = None,
        include_retired: bool = False,
    ) -> ScopePage: ...
    async def query(self, query: QueryInput, **scope: Unpack[ScopeIds]) -> Subgraph: ...
    async def explain(self, query: QueryInput, **scope: Unpack[ScopeIds]) -> Plan: ...
    async def interior(
        self,
        id: bytes | str | None = None,
        *,
        type: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Interior: ...
    async def link(
        self,
        type: str,
        source: bytes | str,
        target: bytes | str,
        *,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        metadata: Mapping[str, Any] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Edge: ...
    async def unlink(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Edge: ...
    async def proposals(
        self,
        *,
        status: Literal["pending", "accepted", "rejected", "withdrawn", "all"] = "pending",
        limit: int = 50,
        **scope: Unpack[ScopeIds],
    ) -> ProposalPage: ...
    async def decide_merge(
        self, id: bytes | str, decision: Decision, **scope: Unpack[ScopeIds]
    ) -> MergeProposal: ...
    async def split(
        self, id: bytes | str, memories: Sequence[bytes | str], **scope: Unpack[ScopeIds]
    ) -> Split: ...
    async def identity(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Identity: ...
    async def conflicts(
        self, *, include_settled: bool = False, limit: int = 50, **scope: Unpack[ScopeIds]
    ) -> ConflictPage: ...
    async def log(
        self, *, limit: int = 50, cursor: str | None = None, **scope: Unpack[ScopeIds]
    ) -> CommitPage: ...
    async def undo(
        self, commit: CommitNumbers, *, dry_run: bool = False, **scope: Unpack[ScopeIds]
    ) -> Undone: ...
    async def diff(
        self, first: int, last: int, *, limit: int | None = None, **scope: Unpack[ScopeIds]
    ) -> Diff: ...
    async def prove(self, id: bytes | str) -> Proven: ...
    async def prove_history(self, since: int = 0) -> HistoryProof: ...
    async def check(self) -> Soundness: ...
    async def consolidate(
        self, *, min_age: float = 0, dry_run: bool = False, **scope: Unpack[ScopeIds]
    ) -> ConsolidationReport: ...
    async def edge_types(self, **scope: Unpack[ScopeIds]) -> EdgeTypes: ...
    async def declare(
        self,
        type: str,
        *,
        functional: bool = False,
        newer_ends_older: bool = False,
        symmetric: bool = False,
        transitive: bool = False,
        acyclic: bool = False,
        pierces: bool = False,
        inverse: str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> EdgeDeclaration: ...
    async def list_files(
        self,
        path: str = "/",
        *,
        all: bool = False,
        as_of: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> FileList: ...
    async def read_file(
        self,
        path: str,
        *,
        version: bytes | str | None = None,
        as_of: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> FileText: ...
    async def glob_files(
        self, pattern: str, *, as_of: Instant | None = None, **scope: Unpack[ScopeIds]
    ) -> FilePaths: ...
    async def grep_files(
        self,
        pattern: str,
        *,
        path: str = "/",
        glob: str | None = None,
        ignore_case: bool = False,
        literal: bool = False,
        limit: int = 100,
        **scope: Unpack[ScopeIds],
    ) -> FileMatches: ...
    async def write_file(
        self,
        path: str,
        text: str,
        *,
        version: bytes | str | None = None,
        new: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> FileChange: ...
    async def edit_file(
        self,
        path: str,
        old: str,
        new: str,
        *,
        every: bool = False,
        version: bytes | str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> FileChange: ...
    async def move_file(self, path: str, target: str, **scope: Unpack[ScopeIds]) -> FileChange: ...
    async def delete_file(
        self, path: str, *, version: bytes | str | None = None, **scope: Unpack[ScopeIds]
    ) -> FileChange: ...
    async def accept_merge(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> MergeProposal: ...
    async def reject_merge(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> MergeProposal: ...
    async def undo_merge(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> MergeProposal: ...
    async def warm(self) -> None: ...
    async def read_pending(self) -> None: ...
    async def verify_receipt(
        self,
        receipt: Mapping[str, Any],
        *,
        public_key: bytes | str | None = None,
        again: bool = True,
    ) -> Verification: ...

class AsyncClient:
    calls: Client
    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout_s: float = 60.0,
        retries: int = 4,
        backoff_s: float = 0.25,
    ) -> None: ...
    async def close(self) -> None: ...
    async def __aexit__(self, *_: object) -> None: ...
    async def __aenter__(self) -> AsyncClient: ...
    async def write(
        self,
        text: Input | None = None,
        *,
        messages: Chat | None = None,
        document: DocumentInput | None = None,
        at: Instant | None = None,
        source: str | Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: str | Sequence[str] | None = None,
        pin: bool = False,
        expires_at: Instant | None = None,
        ttl: Ttl | None = None,
        names: str | Sequence[str] | None = None,
        aliases: Aliases | None = None,
        idempotency_key: str | None = None,
        extractor: str | None = None,
        origin: Origin | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Written: ...
    async def recall(
        self,
        query: str | None = None,
        *,
        names: str | Sequence[str] | None = None,
        k: int = 10,
        max_tokens: int | None = None,
        min_confidence: float | None = None,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        include_retired: bool = False,
        at: Instant | None = None,
        summaries: Literal["first"] | None = None,
        counted: bool = True,
        receipt: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> Recall: ...
    async def context(
        self,
        query: str | None = None,
        *,
        max_tokens: int = 1000,
        k: int = 10,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        counted: bool = True,
        **scope: Unpack[ScopeIds],
    ) -> PromptContext: ...
    async def list(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        include_retired: bool = False,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> MemoryPage: ...
    async def read(
        self,
        id: bytes | str,
        *,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Remembered: ...
    async def amend(
        self,
        id: bytes | str,
        text: str,
        *,
        at: Instant | None = None,
        source: str | Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: str | Sequence[str] | None = None,
        expires_at: Instant | None = None,
        ttl: Ttl | None = None,
        extractor: str | None = None,
        origin: Origin | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Written: ...
    async def pin(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Remembered: ...
    async def unpin(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Remembered: ...
    async def retire(
        self, id: bytes | str, *, at: Instant | None = None, **scope: Unpack[ScopeIds]
    ) -> Retired: ...
    async def retire_all(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        confirm: str | bool | None = None,
        at: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Retired: ...
    async def purge_scope(
        self, *, confirm: str | bool | None = None, **scope: Unpack[ScopeIds]
    ) -> Retired: ...
    async def erase(
        self,
        id: bytes | str | None = None,
        *,
        confirm: str | bool | None = None,
        receipt: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> Receipt: ...
    async def export(
        self, *, receipt: bool = False, confirm: str | bool | None = None, **scope: Unpack[ScopeIds]
    ) -> ScopeExport: ...
    async def retention(self) -> RetentionPolicies: ...
    async def set_retention(
        self,
        *,
        keep_days: int | None = None,
        then: Literal["retire", "erase"] | None = None,
        hold: Literal["on", "off"] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> RetentionPolicy: ...
    async def apply_retention(
        self, *, dry_run: bool = False, **scope: Unpack[ScopeIds]
    ) -> RetentionReport: ...
    async def branches(self) -> Branches: ...
    async def create_branch(self, name: str) -> Branch: ...
    async def branch_diff(self, name: str) -> Diff: ...
    async def merge(self, name: str, *, dry_run: bool = False) -> Merged: ...
    async def drop_branch(self, name: str) -> Branches: ...
    async def grants(self, *, include_ended: bool = False, **scope: Unpack[ScopeIds]) -> Grants: ...
    async def grant(
        self,
        to: str,
        right: Literal["read", "write"],
        *,
        until: Instant | None = None,
        confirm: str | bool | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Grant: ...
    async def revoke(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Grant: ...
    async def refuse(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Retired: ...
    async def trust(self, **scope: Unpack[ScopeIds]) -> TrustSettings: ...
    async def set_trust(
        self,
        trust: Mapping[str, str] | None = None,
        *,
        secrets: str | None = None,
        everywhere: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> TrustSettings: ...
    async def quarantine(
        self, *, limit: int = 50, cursor: str | None = None, **scope: Unpack[ScopeIds]
    ) -> MemoryPage: ...
    async def decide_quarantined(
        self,
        id: bytes | str,
        decision: Literal["release", "reject", "wait"],
        **scope: Unpack[ScopeIds],
    ) -> Remembered: ...
    async def fading(
        self, *, below: float = 0.25, limit: int = 50, **scope: Unpack[ScopeIds]
    ) -> FadingPage: ...
    async def pending(self, *, limit: int = 50, **scope: Unpack[ScopeIds]) -> PendingPage: ...
    async def reads(self, *, limit: int = 100, **scope: Unpack[ScopeIds]) -> ReadPage: ...
    async def list_scopes(
        self,
        *,
        kind: ScopeKind | None = None,
        limit: int = 100,
        cursor: str | None = None,
        include_retired: bool = False,
    ) -> ScopePage: ...
    async def query(self, query: QueryInput, **scope: Unpack[ScopeIds]) -> Subgraph: ...
    async def explain(self, query: QueryInput, **scope: Unpack[ScopeIds]) -> Plan: ...
    async def interior(
        self,
        id: bytes | str | None = None,
        *,
        type: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Interior: ...
    async def link(
        self,
        type: str,
        source: bytes | str,
        target: bytes | str,
        *,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        metadata: Mapping[str, Any] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Edge: ...
    async def unlink(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Edge: ...
    async def proposals(
        self,
        *,
        status: Literal["pending", "accepted", "rejected", "withdrawn", "all"] = "pending",
        limit: int = 50,
        **scope: Unpack[ScopeIds],
    ) -> ProposalPage: ...
    async def decide_merge(
        self, id: bytes | str, decision: Decision, **scope: Unpack[ScopeIds]
    ) -> MergeProposal: ...
    async def split(
        self, id: bytes | str, memories: Sequence[bytes | str], **scope: Unpack[ScopeIds]
    ) -> Split: ...
    async def identity(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Identity: ...
    async def conflicts(
        self, *, include_settled: bool = False, limit: int = 50, **scope: Unpack[ScopeIds]
    ) -> ConflictPage: ...
    async def log(
        self, *, limit: int = 50, cursor: str | None = None, **scope: Unpack[ScopeIds]
    ) -> CommitPage: ...
    async def undo(
        self, commit: CommitNumbers, *, dry_run: bool = False, **scope: Unpack[ScopeIds]
    ) -> Undone: ...
    async def diff(
        self, first: int, last: int, *, limit: int | None = None, **scope: Unpack[ScopeIds]
    ) -> Diff: ...
    async def prove(self, id: bytes | str) -> Proven: ...
    async def prove_history(self, since: int = 0) -> HistoryProof: ...
    async def check(self) -> Soundness: ...
    async def consolidate(
        self, *, min_age: float = 0, dry_run: bool = False, **scope: Unpack[ScopeIds]
    ) -> ConsolidationReport: ...
    async def edge_types(self, **scope: Unpack[ScopeIds]) -> EdgeTypes: ...
    async def declare(
        self,
        type: str,
        *,
        functional: bool = False,
        newer_ends_older: bool = False,
        symmetric: bool = False,
        transitive: bool = False,
        acyclic: bool = False,
        pierces: bool = False,
        inverse: str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> EdgeDeclaration: ...
    async def list_files(
        self,
        path: str = "/",
        *,
        all: bool = False,
        as_of: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> FileList: ...
    async def read_file(
        self,
        path: str,
        *,
        version: bytes | str | None = None,
        as_of: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> FileText: ...
    async def glob_files(
        self, pattern: str, *, as_of: Instant | None = None, **scope: Unpack[ScopeIds]
    ) -> FilePaths: ...
    async def grep_files(
        self,
        pattern: str,
        *,
        path: str = "/",
        glob: str | None = None,
        ignore_case: bool = False,
        literal: bool = False,
        limit: int = 100,
        **scope: Unpack[ScopeIds],
    ) -> FileMatches: ...
    async def write_file(
        self,
        path: str,
        text: str,
        *,
        version: bytes | str | None = None,
        new: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> FileChange: ...
    async def edit_file(
        self,
        path: str,
        old: str,
        new: str,
        *,
        every: bool = False,
        version: bytes | str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> FileChange: ...
    async def move_file(self, path: str, target: str, **scope: Unpack[ScopeIds]) -> FileChange: ...
    async def delete_file(
        self, path: str, *, version: bytes | str | None = None, **scope: Unpack[ScopeIds]
    ) -> FileChange: ...
    async def access(self) -> CallerAccess: ...
    async def doctor(self) -> Diagnosis: ...
    async def tokens(self) -> TokenList: ...
    async def add_token(
        self,
        name: str,
        *,
        role: str = "curate",
        expires: Instant | None = None,
        origin: str | None = None,
        per_minute: int | None = None,
        memories_per_day: int | None = None,
        writes_into: Sequence[str] | None = None,
        tenant: str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> IssuedToken: ...
    async def rotate_token(self, name: str) -> IssuedToken: ...
    async def revoke_token(self, name: str) -> RevokedToken: ...
    async def erase_tenant(
        self, tenant: str, *, confirm: str | None = None, receipt: bool = False
    ) -> TenantErasure: ...
