"""WorldDB: a memory engine for AI agents. One file, no server, no model needed to start.

The names below are loaded when they are first used, so that `import worlddb` costs nothing and the
command line can answer `--help` without opening the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from worlddb.api.ingesting import Ingested
    from worlddb.api.later import Reclustered
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
    from worlddb.model.drafts import Draft, DraftEdge, DraftNode, Extractor, Message, Span
    from worlddb.model.id import Id
    from worlddb.model.limits import Limits
    from worlddb.model.proof import Proof, verify_proof
    from worlddb.model.query import Query, TextMatch
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
    from worlddb.read.hits import Hit, LaneRank, Recall
    from worlddb.read.plan import Plan
    from worlddb.read.query import QueryBuilder, QuerySpec
    from worlddb.read.recall import RecallSettings
    from worlddb.read.subgraph import Subgraph
    from worlddb.read.weigh import Weights
    from worlddb.resolve.settings import ResolverSettings
    from worlddb.write.ontology import Ontology
    from worlddb.write.transaction import Transaction

__all__ = [
    "NOW",
    "AsOf",
    "Change",
    "Commit",
    "Conflict",
    "ConflictError",
    "CorruptionError",
    "Diff",
    "Draft",
    "DraftEdge",
    "DraftNode",
    "Edge",
    "EdgeDraft",
    "EdgeHandler",
    "Embedder",
    "Extractor",
    "FormatError",
    "Hit",
    "Id",
    "Identity",
    "Ingested",
    "InvalidInputError",
    "LaneRank",
    "Limits",
    "Message",
    "Node",
    "NodeDraft",
    "NotFoundError",
    "Ontology",
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
    "Reclustered",
    "RejectedError",
    "ResolverSettings",
    "Span",
    "StorageError",
    "Subgraph",
    "TextMatch",
    "Transaction",
    "Weights",
    "WorldDB",
    "WorldDBError",
    "WriteContext",
    "embedder_named",
    "open",
    "verify_proof",
]

_NAMES_OF = {
    "worlddb.api.ingesting": "Ingested",
    "worlddb.api.later": "Reclustered",
    "worlddb.db": "WorldDB open",
    "worlddb.errors": (
        "ConflictError CorruptionError FormatError InvalidInputError NotFoundError ProviderError "
        "RejectedError StorageError WorldDBError"
    ),
    "worlddb.model.drafts": "Draft DraftEdge DraftNode Extractor Message Span",
    "worlddb.model.id": "Id",
    "worlddb.model.limits": "Limits",
    "worlddb.model.proof": "Proof verify_proof",
    "worlddb.model.query": "Query TextMatch",
    "worlddb.model.values": (
        "NOW AsOf Change Commit Conflict Diff Edge EdgeDraft Identity Node NodeDraft Problem "
        "Proposal"
    ),
    "worlddb.ontology.protocol": "EdgeHandler WriteContext",
    "worlddb.embed.names": "embedder_named",
    "worlddb.embed.protocol": "Embedder",
    "worlddb.read.hits": "Hit LaneRank Recall",
    "worlddb.read.plan": "Plan",
    "worlddb.read.query": "QueryBuilder QuerySpec",
    "worlddb.read.recall": "RecallSettings",
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
