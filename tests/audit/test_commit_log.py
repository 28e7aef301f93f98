"""The commit log: proofs that nothing was rewritten, and everything that is none."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import worlddb
from worlddb import HistoryProof, Memory, WorldDB, verify_history

EXAMPLE = Path(__file__).parents[2] / "examples" / "verify_history.py"
COMMITS = 20


@pytest.fixture(scope="module")
def grown() -> tuple[list[HistoryProof], Callable[..., bool]]:
    """Every proof from every earlier commit to the last of stores of 1 to 20 commits."""
    proofs = []
    with worlddb.open(":memory:", embedder="none") as db:
        for number in range(COMMITS):
            proofs += [db.prove_history(since) for since in range(number + 1)]
            add(db, str(number))
    return proofs, runpy.run_path(str(EXAMPLE))["holds"]


def add(db: WorldDB, text: str) -> worlddb.Node:
    with db.transaction() as tx:
        return tx.create_node(type="Fact", content=text)


def test_every_proof_holds_under_the_heads_that_were_kept(
    grown: tuple[list[HistoryProof], Callable[..., bool]],
) -> None:
    proofs, stand_alone = grown
    heads = {proof.last.commit: proof.last.log_head for proof in proofs}
    assert len(set(heads.values())) == COMMITS
    for proof in proofs:
        both = heads[proof.first.commit], heads[proof.last.commit]
        assert verify_history(proof, *both), (proof.first.commit, proof.last.commit)
        data = json.loads(json.dumps(proof.to_dict()))
        assert verify_history(data, *map(str, both))
        assert stand_alone(data, *map(str, both))
        assert len(proof.path) <= 2 * COMMITS.bit_length()


def test_no_changed_proof_holds(grown: tuple[list[HistoryProof], Callable[..., bool]]) -> None:
    proofs, stand_alone = grown
    heads = {proof.last.commit: str(proof.last.log_head) for proof in proofs}
    chosen = next(one for one in proofs if (one.first.commit, one.last.commit) == (10, 18))
    whole = chosen.to_dict()
    both = heads[10], heads[18]

    def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(json.dumps(whole))
        change(data)
        return data

    wrong = [
        changed(lambda data: data["path"].pop()),
        changed(lambda data: data["path"].append("ab" * 32)),
        changed(lambda data: data["path"].reverse()),
        changed(lambda data: data["first"].update(root_state="ab" * 32)),
        changed(lambda data: data["last"].update(hash="ab" * 32)),
        changed(lambda data: data["first"].update(commit=9)),
        changed(lambda data: data["last"].update(commit=19)),
        changed(lambda data: data["last"].update(log_head=heads[17])),
    ]
    for data in wrong:
        assert not verify_history(data, *both)
        assert not stand_alone(data, *both)
    assert not verify_history(whole, heads[9], heads[18])
    for junk in ({}, {"first": 1, "last": 2, "path": 3}, changed(lambda data: data.pop("path"))):
        assert not verify_history(junk)


def test_a_rewritten_commit_breaks_the_proof() -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        add(db, "a"), add(db, "b")
        kept = db.prove_history().last
    with worlddb.open(":memory:", embedder="none") as other:
        add(other, "a"), add(other, "B"), add(other, "c")
        proof = other.prove_history(kept.commit)
        assert verify_history(proof)
        assert not verify_history(proof, kept.log_head)


def test_a_proof_holds_across_an_erasure() -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        node = add(db, "secret")
        add(db, "b")
        kept = db.prove_history().last
        db.erase(node.id)
        assert verify_history(db.prove_history(kept.commit), kept.log_head)


def test_there_has_to_be_such_a_commit_and_a_bound_caller_gets_no_proof() -> None:
    with Memory(":memory:", embedder="none") as memory:
        with pytest.raises(worlddb.NotFoundError):
            memory.prove_history(9)
        with pytest.raises(worlddb.InvalidInputError):
            memory.prove_history("1")  # type: ignore[arg-type]
        with pytest.raises(worlddb.RejectedError):
            memory.bound(user_id="ada").prove_history()
