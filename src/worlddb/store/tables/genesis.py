"""Genesis: the root world and commit 0, the same in every store."""

from __future__ import annotations

from blake3 import blake3

from worlddb.model.address import ROOT_ID, ROOT_NAME, ROOT_TYPE, short_key
from worlddb.model.records import GENESIS, commit_hash, node_record, state_digest
from worlddb.store.rows import ROOT_ROW, CommitRow, NewNode, NewText

FIRST_ACTOR = "worlddb"
ROOT_TEXT = NewText(ROOT_ROW, ROOT_NAME, "")


def root_node() -> NewNode:
    """Return the row of the root world."""
    return NewNode(
        *(ROOT_ROW, short_key(ROOT_ID), ROOT_ID, ROOT_TYPE, ROOT_NAME, "", 0, None, 0, None),
        born=0,
        blind=b"",
        content_key=None,
    )


def first_commit() -> CommitRow:
    """Return the row of commit 0."""
    nothing = blake3().digest()
    digests = {
        "nodes": blake3(node_record(ROOT_ID, GENESIS, 0, None)).digest(),
        "edges": nothing,
        "notes": nothing,
        "states": state_digest(()),
    }
    hash_ = commit_hash(GENESIS, 0, 0, FIRST_ACTOR, ROOT_ID, digests, "[]")
    return CommitRow(0, 0, FIRST_ACTOR, ROOT_ID, hash_, ROOT_ROW, 0, 0, changes="[]")
