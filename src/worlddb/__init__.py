"""WorldDB: a memory engine for AI agents. One file, no server, no model needed to start."""

from __future__ import annotations

from worlddb.db import Ontology, WorldDB, open
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
from worlddb.model.id import Id
from worlddb.model.limits import Limits
from worlddb.model.proof import Proof, verify_proof
from worlddb.model.query import Query
from worlddb.model.values import (
    NOW,
    AsOf,
    Change,
    Commit,
    Conflict,
    Diff,
    Edge,
    EdgeDraft,
    Node,
    NodeDraft,
    Problem,
    Proposal,
)
from worlddb.ontology.protocol import EdgeHandler, WriteContext
from worlddb.read.query import QueryBuilder, QuerySpec
from worlddb.read.subgraph import Subgraph
from worlddb.write.transaction import Transaction

__version__ = "0.1.0"

__all__ = [
    "NOW",
    "AsOf",
    "Change",
    "Commit",
    "Conflict",
    "ConflictError",
    "CorruptionError",
    "Diff",
    "Edge",
    "EdgeDraft",
    "EdgeHandler",
    "FormatError",
    "Id",
    "InvalidInputError",
    "Limits",
    "Node",
    "NodeDraft",
    "NotFoundError",
    "Ontology",
    "Problem",
    "Proof",
    "Proposal",
    "ProviderError",
    "Query",
    "QueryBuilder",
    "QuerySpec",
    "RejectedError",
    "StorageError",
    "Subgraph",
    "Transaction",
    "WorldDB",
    "WorldDBError",
    "WriteContext",
    "open",
    "verify_proof",
]
