"""WorldDB: a memory engine for AI agents. One file, no server, no model needed to start.

The names below are loaded when they are first used, so that `import worlddb` costs nothing and the
command line can answer `--help` without opening the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from worlddb.db import WorldDB, open
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

_NAMES_OF = {
    "worlddb.db": "WorldDB open",
    "worlddb.errors": (
        "ConflictError CorruptionError FormatError InvalidInputError NotFoundError ProviderError "
        "RejectedError StorageError WorldDBError"
    ),
    "worlddb.model.id": "Id",
    "worlddb.model.limits": "Limits",
    "worlddb.model.proof": "Proof verify_proof",
    "worlddb.model.query": "Query",
    "worlddb.model.values": (
        "NOW AsOf Change Commit Conflict Diff Edge EdgeDraft Node NodeDraft Problem Proposal"
    ),
    "worlddb.ontology.protocol": "EdgeHandler WriteContext",
    "worlddb.read.query": "QueryBuilder QuerySpec",
    "worlddb.read.subgraph": "Subgraph",
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
