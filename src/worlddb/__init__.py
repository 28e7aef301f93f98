"""WorldDB: a memory engine for AI agents. One file, no server, no model needed to start.

The names below are loaded when they are first used, so that `import worlddb` costs nothing and the
command line can answer `--help` without opening the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from worlddb.api.erasing import Receipt
    from worlddb.api.ingesting import Ingested
    from worlddb.api.later import Reclustered
    from worlddb.bridge.chat import Chat, ChatSettings, Usage
    from worlddb.bridge.configured import chat_from
    from worlddb.bridge.extractor import LlmExtractor
    from worlddb.bridge.summarizer import LlmSummarizer
    from worlddb.bridge.tiebreaker import LlmTiebreaker
    from worlddb.db import WorldDB, open
    from worlddb.embed.names import embedder_named
    from worlddb.embed.protocol import Embedder
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
    from worlddb.memory import Memory
    from worlddb.memory.values import (
        Linked,
        MemoryPage,
        Remembered,
        Retired,
        Scope,
        ScopePage,
        Written,
    )
    from worlddb.model.claims import Claim
    from worlddb.model.drafts import Draft, DraftEdge, DraftNode, Extractor, Message, Span
    from worlddb.model.id import Id
    from worlddb.model.limits import Limits
    from worlddb.model.pending import Extracted, Pending
    from worlddb.model.proof import Proof, verify_proof
    from worlddb.model.query import Query, TextMatch
    from worlddb.model.retention import RetentionSettings
    from worlddb.model.scopes import ScopeName
    from worlddb.model.summaries import Summarizer
    from worlddb.model.values import (
        NOW,
        AsOf,
        Change,
        Commit,
        Conflict,
        Diff,
        Edge,
        EdgeDraft,
        Identity,
        Node,
        NodeDraft,
        Problem,
        Proposal,
    )
    from worlddb.ontology.protocol import EdgeHandler, WriteContext
    from worlddb.read.asking import RecallSettings
    from worlddb.read.hits import Hit, LaneRank, Outdated, Recall
    from worlddb.read.plan import Plan
    from worlddb.read.query import QueryBuilder, QuerySpec
    from worlddb.read.subgraph import Subgraph
    from worlddb.read.weigh import Weights
    from worlddb.resolve.settings import ResolverSettings
    from worlddb.sleep.background import Background, BackgroundRun
    from worlddb.sleep.extractive import ExtractiveSummarizer
    from worlddb.sleep.report import ConsolidationReport, Contradiction, InferredEdge, SummaryChange
    from worlddb.sleep.retention import Fading
    from worlddb.write.ontology import Ontology
    from worlddb.write.transaction import Transaction

__all__ = [
    "NOW",
    "AsOf",
    "Background",
    "BackgroundRun",
    "Change",
    "Chat",
    "ChatSettings",
    "Claim",
    "Commit",
    "Conflict",
    "ConflictError",
    "ConsolidationReport",
    "Contradiction",
    "CorruptionError",
    "Diff",
    "Draft",
    "DraftEdge",
    "DraftNode",
    "Edge",
    "EdgeDraft",
    "EdgeHandler",
    "Embedder",
    "Extracted",
    "ExtractiveSummarizer",
    "Extractor",
    "Fading",
    "FormatError",
    "Hit",
    "Id",
    "Identity",
    "InferredEdge",
    "Ingested",
    "InvalidInputError",
    "LaneRank",
    "Limits",
    "Linked",
    "LlmExtractor",
    "LlmSummarizer",
    "LlmTiebreaker",
    "Memory",
    "MemoryPage",
    "Message",
    "Node",
    "NodeDraft",
    "NotFoundError",
    "Ontology",
    "Outdated",
    "Pending",
    "Plan",
    "Problem",
    "Proof",
    "Proposal",
    "ProviderError",
    "Query",
    "QueryBuilder",
    "QuerySpec",
    "Recall",
    "RecallSettings",
    "Receipt",
    "Reclustered",
    "RejectedError",
    "Remembered",
    "ResolverSettings",
    "RetentionSettings",
    "Retired",
    "Scope",
    "ScopeName",
    "ScopePage",
    "Span",
    "StorageError",
    "Subgraph",
    "Summarizer",
    "SummaryChange",
    "TextMatch",
    "Transaction",
    "Usage",
    "Weights",
    "WorldDB",
    "WorldDBError",
    "WriteContext",
    "Written",
    "chat_from",
    "embedder_named",
    "open",
    "verify_proof",
]

_NAMES_OF = {
    "worlddb.api.erasing": "Receipt",
    "worlddb.bridge.chat": "Chat ChatSettings Usage",
    "worlddb.bridge.configured": "chat_from",
    "worlddb.bridge.extractor": "LlmExtractor",
    "worlddb.bridge.summarizer": "LlmSummarizer",
    "worlddb.bridge.tiebreaker": "LlmTiebreaker",
    "worlddb.model.claims": "Claim",
    "worlddb.model.pending": "Extracted Pending",
    "worlddb.model.retention": "RetentionSettings",
    "worlddb.model.summaries": "Summarizer",
    "worlddb.sleep.background": "Background BackgroundRun",
    "worlddb.sleep.extractive": "ExtractiveSummarizer",
    "worlddb.sleep.report": "ConsolidationReport Contradiction InferredEdge SummaryChange",
    "worlddb.sleep.retention": "Fading",
    "worlddb.api.ingesting": "Ingested",
    "worlddb.api.later": "Reclustered",
    "worlddb.db": "WorldDB open",
    "worlddb.errors": (
        "ConflictError CorruptionError FormatError InvalidInputError NotFoundError ProviderError "
        "RejectedError StorageError WorldDBError"
    ),
    "worlddb.memory": "Memory",
    "worlddb.memory.values": "Linked MemoryPage Remembered Retired Scope ScopePage Written",
    "worlddb.model.drafts": "Draft DraftEdge DraftNode Extractor Message Span",
    "worlddb.model.id": "Id",
    "worlddb.model.limits": "Limits",
    "worlddb.model.proof": "Proof verify_proof",
    "worlddb.model.query": "Query TextMatch",
    "worlddb.model.scopes": "ScopeName",
    "worlddb.model.values": (
        "NOW AsOf Change Commit Conflict Diff Edge EdgeDraft Identity Node NodeDraft Problem "
        "Proposal"
    ),
    "worlddb.ontology.protocol": "EdgeHandler WriteContext",
    "worlddb.embed.names": "embedder_named",
    "worlddb.embed.protocol": "Embedder",
    "worlddb.read.hits": "Hit LaneRank Outdated Recall",
    "worlddb.read.plan": "Plan",
    "worlddb.read.query": "QueryBuilder QuerySpec",
    "worlddb.read.asking": "RecallSettings",
    "worlddb.read.weigh": "Weights",
    "worlddb.read.subgraph": "Subgraph",
    "worlddb.resolve.settings": "ResolverSettings",
    "worlddb.write.ontology": "Ontology",
    "worlddb.write.transaction": "Transaction",
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
