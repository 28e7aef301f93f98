"""WorldDB: a memory engine for AI agents. One file, no server, no model needed to start.

The names below are loaded when they are first used, so that `import worlddb` costs nothing and the
command line can answer `--help` without opening the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from worlddb.audit.erasure_receipt import Receipt
    from worlddb.audit.read_audit import ReadEntry
    from worlddb.audit.undo import Kept, Undone
    from worlddb.claims.claim import Claim
    from worlddb.consolidate.consolidation_run import (
        ConsolidationReport,
        Contradiction,
        InferredEdge,
        SummaryChange,
    )
    from worlddb.consolidate.consolidator import Background, BackgroundRun
    from worlddb.consolidate.extractive_summarizer import ExtractiveSummarizer
    from worlddb.consolidate.fading_report import Fading
    from worlddb.embed.embedder import Embedder
    from worlddb.embed.embedder_catalog import embedder_named
    from worlddb.errors import (
        ConflictError,
        CorruptionError,
        FormatError,
        InvalidInputError,
        NotFoundError,
        ProviderError,
        RejectedError,
        StorageError,
        StoreKeyError,
        WorldDBError,
    )
    from worlddb.faces.client_calls import AsyncClient, AsyncMemory, Client
    from worlddb.faces.diagnosis import Diagnosis, DoctorFinding
    from worlddb.faces.server_calls import (
        CallerAccess,
        IssuedToken,
        RevokedToken,
        TokenEntry,
        TokenList,
    )
    from worlddb.faces.tenant_erasure import TenantErasure
    from worlddb.files.file_tree import (
        FileChange,
        FileEntry,
        FileList,
        FileMatch,
        FileMatches,
        FilePaths,
        FileText,
        FileVersion,
    )
    from worlddb.files.versioned_files import FileChanges, Files
    from worlddb.identity.match_values import ResolverSettings
    from worlddb.ingest.background_queue import Reclustered
    from worlddb.ingest.branch_merge import Merged
    from worlddb.ingest.identity_change import Split
    from worlddb.ingest.ingestion import Ingested
    from worlddb.ingest.merge_conflicts import MergeConflict
    from worlddb.memory.listings import (
        FadingMemory,
        FadingPage,
        Interior,
        PendingMemory,
        PendingPage,
    )
    from worlddb.memory.memory import Memory
    from worlddb.memory.receipts import ScopeExport, Verification
    from worlddb.memory.results import (
        CommitPage,
        ConflictPage,
        EdgeTypeEntry,
        EdgeTypes,
        Linked,
        MemoryPage,
        MergeProposal,
        PromptContext,
        ProposalPage,
        Proven,
        ReadPage,
        Remembered,
        Retired,
        Scope,
        ScopePage,
        Soundness,
        ToldConflict,
        Written,
    )
    from worlddb.memory.scope_grants import Grant, Grants
    from worlddb.memory.scope_policies import (
        DueMemories,
        RetentionPolicies,
        RetentionPolicy,
        RetentionReport,
        TrustSettings,
    )
    from worlddb.model.address import Id
    from worlddb.model.inputs import Limits, ScopeName
    from worlddb.model.proof import Checkpoint, HistoryProof, Proof, verify_history, verify_proof
    from worlddb.model.records import (
        NOW,
        AsOf,
        Branch,
        Branches,
        Change,
        Commit,
        Conflict,
        Diff,
        Draft,
        DraftEdge,
        DraftNode,
        Edge,
        EdgeDraft,
        Extracted,
        Extractor,
        Identity,
        Message,
        Node,
        NodeDraft,
        Pending,
        Problem,
        Proposal,
        Query,
        Span,
        Summarizer,
        TextMatch,
    )
    from worlddb.model.retention_curve import RetentionSettings
    from worlddb.models.chat_client import Chat, ChatSettings, Usage, chat_from
    from worlddb.models.model_tasks import LlmExtractor, LlmSummarizer, LlmTiebreaker
    from worlddb.ontology.edge_types import EdgeHandler, WriteContext
    from worlddb.ontology.registry import EdgeDeclaration
    from worlddb.query.pipeline import Subgraph
    from worlddb.query.query_builder import Plan, QueryBuilder
    from worlddb.query.query_spec import QuerySpec
    from worlddb.recall.activation import PathStep
    from worlddb.recall.hits import Hit, LaneRank, MaybeOutdated, Outdated, Recall
    from worlddb.recall.question import RecallSettings
    from worlddb.recall.ranker import Weights
    from worlddb.world_db import WorldDB, open
    from worlddb.write.revival import Restored
    from worlddb.write.transaction import Ontology, Transaction

# fmt: off
__all__ = [
    "NOW", "AsOf", "AsyncClient", "AsyncMemory", "Background", "BackgroundRun", "Branch",
    "Branches", "CallerAccess", "Change", "Chat", "ChatSettings", "Checkpoint", "Claim", "Client",
    "Commit", "CommitPage", "Conflict", "ConflictError", "ConflictPage", "ConsolidationReport",
    "Contradiction", "CorruptionError", "Diagnosis", "Diff", "DoctorFinding", "Draft", "DraftEdge",
    "DraftNode", "DueMemories", "Edge", "EdgeDeclaration", "EdgeDraft", "EdgeHandler",
    "EdgeTypeEntry", "EdgeTypes", "Embedder", "Extracted", "ExtractiveSummarizer", "Extractor",
    "Fading", "FadingMemory", "FadingPage", "FileChange", "FileChanges", "FileEntry", "FileList",
    "FileMatch", "FileMatches", "FilePaths", "FileText", "FileVersion", "Files", "FormatError",
    "Grant", "Grants", "HistoryProof", "Hit", "Id", "Identity", "InferredEdge", "Ingested",
    "Interior", "InvalidInputError", "IssuedToken", "Kept", "LaneRank", "Limits", "Linked",
    "LlmExtractor", "LlmSummarizer", "LlmTiebreaker", "MaybeOutdated", "Memory", "MemoryPage",
    "MergeConflict", "MergeProposal", "Merged", "Message", "Node", "NodeDraft", "NotFoundError",
    "Ontology", "Outdated", "PathStep", "Pending", "PendingMemory", "PendingPage", "Plan",
    "Problem", "PromptContext", "Proof", "Proposal", "ProposalPage", "Proven", "ProviderError",
    "Query", "QueryBuilder", "QuerySpec", "ReadEntry", "ReadPage", "Recall", "RecallSettings",
    "Receipt", "Reclustered", "RejectedError", "Remembered", "ResolverSettings", "Restored",
    "RetentionPolicies", "RetentionPolicy", "RetentionReport", "RetentionSettings", "Retired",
    "RevokedToken", "Scope", "ScopeExport", "ScopeName", "ScopePage", "Soundness", "Span", "Split",
    "StorageError", "StoreKeyError", "Subgraph", "Summarizer", "SummaryChange", "TenantErasure",
    "TextMatch", "TokenEntry", "TokenList", "ToldConflict", "Transaction", "TrustSettings",
    "Undone", "Usage", "Verification", "Weights", "WorldDB", "WorldDBError", "WriteContext",
    "Written", "chat_from", "embedder_named", "open", "verify_history", "verify_proof",
]
# fmt: on

_NAMES_OF = {
    "worlddb.audit.erasure_receipt": "Receipt",
    "worlddb.audit.read_audit": "ReadEntry",
    "worlddb.audit.undo": "Kept Undone",
    "worlddb.claims.claim": "Claim",
    "worlddb.consolidate.consolidation_run": (
        "ConsolidationReport Contradiction InferredEdge SummaryChange"
    ),
    "worlddb.consolidate.consolidator": "Background BackgroundRun",
    "worlddb.consolidate.extractive_summarizer": "ExtractiveSummarizer",
    "worlddb.consolidate.fading_report": "Fading",
    "worlddb.embed.embedder": "Embedder",
    "worlddb.embed.embedder_catalog": "embedder_named",
    "worlddb.errors": (
        "ConflictError CorruptionError FormatError InvalidInputError NotFoundError "
        "ProviderError RejectedError StorageError StoreKeyError WorldDBError"
    ),
    "worlddb.faces.client_calls": "AsyncClient AsyncMemory Client",
    "worlddb.faces.diagnosis": "Diagnosis DoctorFinding",
    "worlddb.faces.server_calls": "CallerAccess IssuedToken RevokedToken TokenEntry TokenList",
    "worlddb.faces.tenant_erasure": "TenantErasure",
    "worlddb.files.file_tree": (
        "FileChange FileEntry FileList FileMatch FileMatches FilePaths FileText FileVersion"
    ),
    "worlddb.files.versioned_files": "FileChanges Files",
    "worlddb.identity.match_values": "ResolverSettings",
    "worlddb.ingest.background_queue": "Reclustered",
    "worlddb.ingest.branch_merge": "Merged",
    "worlddb.ingest.identity_change": "Split",
    "worlddb.ingest.ingestion": "Ingested",
    "worlddb.ingest.merge_conflicts": "MergeConflict",
    "worlddb.memory.listings": "FadingMemory FadingPage Interior PendingMemory PendingPage",
    "worlddb.memory.memory": "Memory",
    "worlddb.memory.receipts": "ScopeExport Verification",
    "worlddb.memory.results": (
        "CommitPage ConflictPage EdgeTypeEntry EdgeTypes Linked MemoryPage MergeProposal "
        "PromptContext ProposalPage Proven ReadPage Remembered Retired Scope ScopePage "
        "Soundness ToldConflict Written"
    ),
    "worlddb.memory.scope_grants": "Grant Grants",
    "worlddb.memory.scope_policies": (
        "DueMemories RetentionPolicies RetentionPolicy RetentionReport TrustSettings"
    ),
    "worlddb.model.address": "Id",
    "worlddb.model.inputs": "Limits ScopeName",
    "worlddb.model.proof": "Checkpoint HistoryProof Proof verify_history verify_proof",
    "worlddb.model.records": (
        "AsOf Branch Branches Change Commit Conflict Diff Draft DraftEdge DraftNode Edge "
        "EdgeDraft Extracted Extractor Identity Message NOW Node NodeDraft Pending Problem "
        "Proposal Query Span Summarizer TextMatch"
    ),
    "worlddb.model.retention_curve": "RetentionSettings",
    "worlddb.models.chat_client": "Chat ChatSettings Usage chat_from",
    "worlddb.models.model_tasks": "LlmExtractor LlmSummarizer LlmTiebreaker",
    "worlddb.ontology.registry": "EdgeDeclaration",
    "worlddb.ontology.edge_types": "EdgeHandler WriteContext",
    "worlddb.query.pipeline": "Subgraph",
    "worlddb.query.query_builder": "Plan QueryBuilder",
    "worlddb.query.query_spec": "QuerySpec",
    "worlddb.recall.activation": "PathStep",
    "worlddb.recall.hits": "Hit LaneRank MaybeOutdated Outdated Recall",
    "worlddb.recall.ranker": "Weights",
    "worlddb.recall.question": "RecallSettings",
    "worlddb.world_db": "WorldDB open",
    "worlddb.write.revival": "Restored",
    "worlddb.write.transaction": "Ontology Transaction",
}
_HOME = {name: module for module, names in _NAMES_OF.items() for name in names.split()}

# Hidden from type checkers: to them a module with `__getattr__` has every name, typos too.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load a public name from its module and keep it."""
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return list(__all__)
