"""The other processes that the tests of vectors start: one role each.

    python child.py ROLE PATH [more]

A role says what it has done as lines of JSON on its standard output, and waits for a line on its
standard input where the test decides when it goes on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

import worlddb
from index.exact_texts import ExactEmbedder
from worlddb.index import vectors


def say(value: Any) -> None:
    """Print one line of JSON at once."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def wait() -> None:
    """Wait until the test says to go on."""
    sys.stdin.readline()


class Announcing(ExactEmbedder):
    """Says what it is about to embed, and waits for leave."""

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        say(list(texts))
        wait()
        return super().embed_documents(texts)


def hold(path: str) -> None:
    """Keep the write lock until told."""
    with worlddb.open(path) as db:
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="held")
            say("held")
            wait()
        say("released")
        wait()


def race(path: str, batch: str) -> None:
    """Embed everything, together with others, and say what this process embedded."""
    vectors.EMBED_BATCH = int(batch)
    embedder = ExactEmbedder()
    with worlddb.open(path, embedder=embedder) as db:
        say("ready")
        wait()
        db.reindex()
    say(dict(embedder.documents))


def embed(path: str, model_id: str, batch: str) -> None:
    """Embed everything by a model, one announced batch after the other."""
    vectors.EMBED_BATCH = int(batch)
    embedder = Announcing(model_id)
    embedder.batch_size = int(batch)
    with worlddb.open(path) as db:
        db.reindex(embedder)
    say("done")


ROLES: dict[str, Callable[..., None]] = {"hold": hold, "race": race, "embed": embed}

if __name__ == "__main__":
    ROLES[sys.argv[1]](*sys.argv[2:])
