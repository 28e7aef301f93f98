"""Random writes on a branch, merged into a trunk that has not moved, are those writes on the trunk.

And whatever a trunk does meanwhile, a branch reads as it was forked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from thinning import DEEP
from worlddb import WorldDB

from .test_fuzz import Fuzzer

BEFORE, AFTER = (150, 150) if DEEP else (60, 60)


def present(db: WorldDB) -> dict[str, Any]:
    """Return everything that a store says, without when and by whom it was written."""
    everything = db.query().include_superseded().execute()
    fields = [
        "id",
        "state",
        "type",
        "name",
        "content",
        "created_at",
        "parent",
        "valid_from",
        "valid_to",
        "aliases",
    ]
    fields += ["provenance", "metadata", "origins"]
    nodes = {node.id: [getattr(node, one) for one in fields] for node in everything.nodes}
    edges = {
        edge.id: (edge.type, edge.source, edge.target, edge.valid_from, edge.valid_to)
        for ident in nodes
        for edge in db.edges(ident, include_superseded=True)
    }
    proposals = {(one.edge, one.status, one.tier, one.score) for one in db.proposals(None)}
    conflicts = {(one.edge, one.reason) for one in db.conflicts()}
    return {"nodes": nodes, "edges": edges, "proposals": proposals, "conflicts": conflicts}


@pytest.mark.parametrize("seed", range(6 if DEEP else 3))
def test_a_merge_into_a_trunk_that_has_not_moved_is_the_same_writes(
    tmp_path: Path, seed: int
) -> None:
    fuzzer = Fuzzer(seed, str(tmp_path / "store.db"))
    trunk = fuzzer.db
    for _ in range(BEFORE):
        fuzzer.step()
    with trunk.branch("try") as branch:
        fuzzer.db = branch
        for _ in range(AFTER):
            fuzzer.step()
        fuzzer.check()
        merged = trunk.merge("try")
        assert merged.conflicts == ()
        assert trunk.root_state == branch.root_state
        said, wanted = present(trunk), present(branch)
        for part, expected in wanted.items():
            assert said[part] == expected, part
    assert trunk.check() == []
    trunk.close()


@pytest.mark.parametrize("seed", range(6 if DEEP else 3))
def test_a_branch_stays_as_it_was_forked_while_the_trunk_goes_on(tmp_path: Path, seed: int) -> None:
    fuzzer = Fuzzer(seed, str(tmp_path / "store.db"))
    for _ in range(BEFORE):
        fuzzer.step()
    wanted = present(fuzzer.db)
    with fuzzer.db.branch("try") as branch:
        root = branch.root_state
        for _ in range(AFTER):
            fuzzer.step()
        fuzzer.db.close()  # Moves the log into the file below the branch.
        assert branch.root_state == root
        assert present(branch) == wanted
        assert branch.check() == []
