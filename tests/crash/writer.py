"""A writer to be killed: commits forever and says so, one line of JSON for each.

    python writer.py PATH SEED CHECKPOINT_PAGES

The first line is "opening", before the file is touched; the second is the head it found. Every
other line is an acknowledged commit: it is printed only after the transaction has returned. With
WORLDDB_TEST_KEY the store is encrypted.
"""

from __future__ import annotations

import json
import os
import random
import sys
from itertools import pairwise
from typing import Any

import worlddb
from worlddb.store.sqlite import gate as checkpoint
from worlddb.store.sqlite.database_file import PAGE_BYTES


def say(value: Any) -> None:
    """Print one line at once, so that the reader has it whatever happens next."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


class Writer:
    """Writes what agents write: facts, links, corrections, merges, and now and then a load."""

    def __init__(self, db: worlddb.WorldDB, seed: int) -> None:
        self.db = db
        self.random = random.Random(seed)
        self.count = 0
        self.nodes = [node.id for node in db.children(include_superseded=True)][-200:]
        self.links: list[worlddb.Id] = []

    def commit(self) -> None:
        """Make one commit of a random kind and acknowledge it."""
        kinds = (self.fact, self.correction, self.unlinking, self.world, self.doubts, self.load)
        kind = self.random.choices(kinds, weights=(40, 20, 12, 12, 12, 4))[0]
        bulk = kind == self.load and self.random.random() < 0.3
        with self.db.transaction(actor=kind.__name__, bulk=bulk) as tx:
            node = kind(tx)
        assert tx.commit is not None
        self.nodes = [*self.nodes[-200:], node]
        say({"seq": tx.commit.seq, "hash": str(tx.commit.hash), "node": str(node)})

    def make(self, tx: worlddb.Transaction, **fields: Any) -> worlddb.Id:
        """Create a node with a name of its own."""
        self.count += 1
        name = f"{self.db.log(limit=1, newest_first=True)[0].seq} {self.count}"
        return tx.create_node(**{"type": "Fact", "name": name, **fields}).id

    def fact(self, tx: worlddb.Transaction) -> worlddb.Id:
        """Add a node with a note, linked to an older one."""
        node = self.make(tx, content="rain in Lisbon", source="a diary", aliases=["weather"])
        if self.nodes:
            edge = tx.write_edge("refers_to", node, self.random.choice(self.nodes))
            self.links.append(edge.id)
        return node

    def correction(self, tx: worlddb.Transaction) -> worlddb.Id:
        """Supersede an older node."""
        node = self.make(tx, content="sun in Lisbon")
        if self.nodes:
            tx.write_edge("supersedes", node, self.random.choice(self.nodes))
        return node

    def unlinking(self, tx: worlddb.Transaction) -> worlddb.Id:
        """Delete an edge this process wrote."""
        if self.links:
            tx.delete_edge(self.links.pop(self.random.randrange(len(self.links))))
        return self.make(tx, type="Event")

    def world(self, tx: worlddb.Transaction) -> worlddb.Id:
        """Make a world with members, one of them moved in by an edge."""
        world = self.make(tx, type="Topic")
        for _ in range(self.random.randrange(1, 6)):
            self.make(tx, parent=world)
        tx.write_edge("contains", world, self.make(tx))
        return world

    def doubts(self, tx: worlddb.Transaction) -> worlddb.Id:
        """Stage a merge and a conflict."""
        left, right = self.make(tx, type="Entity"), self.make(tx, type="Entity")
        tx.write_edge("contradicts", left, right, metadata={"reason": "two birthdays"})
        merge = tx.write_edge("same_as", left, right)
        if self.random.random() < 0.5:
            tx.decide_merge(merge.id, "accepted")
        return left

    def load(self, tx: worlddb.Transaction) -> worlddb.Id:
        """Write a few hundred nodes and edges at once."""
        world = self.make(tx, type="Topic")
        drafts = [
            worlddb.NodeDraft(type="Turn", name=f"turn {i}", content="a word " * 20, parent=world)
            for i in range(self.random.randrange(200, 400))
        ]
        ids = tx.create_nodes(drafts)
        links = [worlddb.EdgeDraft(source=a, target=b) for a, b in pairwise(ids)]
        tx.write_edges("refers_to", links)
        return world


def run(path: str, seed: int, checkpoint_pages: int) -> None:
    """Open the store and commit until killed."""
    # A smaller log than in service, so that a short life sees many background checkpoints.
    checkpoint.LOG_BYTES_MIN = checkpoint_pages * PAGE_BYTES
    say("opening")
    with worlddb.open(path, key=os.environ.get("WORLDDB_TEST_KEY")) as db:
        say(db.log(limit=1, newest_first=True)[0].seq)
        writer = Writer(db, seed)
        while True:
            writer.commit()


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
