"""prove: a proof that holds, and everything that is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from worlddb import Id

from .command import in_process
from .samples import Sample

Forge = Callable[[dict[str, Any]], object]


def proof_of(sample: Sample, ident: Id) -> dict[str, Any]:
    proof: dict[str, Any] = in_process("prove", ident, "--json", "--db", sample.path).data
    return proof


def test_a_proof_holds_without_the_store(sample: Sample, tmp_path: Path) -> None:
    made = in_process("prove", sample.new.id.short, "--json", "--db", sample.path)
    assert made.data["id"] == str(sample.new.id)
    assert made.data["root_state"] == str(sample.root_state)
    file = tmp_path / "proof.json"
    file.write_text(made.out)
    flags = ("--verify", file, "--root-state", sample.root_state)
    done = in_process("prove", *flags, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"holds: node {sample.new.id} stands under {sample.root_state}\n"
    assert in_process("prove", *flags, "--json").data == {
        "holds": True,
        "id": str(sample.new.id),
        "state": str(sample.new.id),
        "root_state": str(sample.root_state),
    }
    assert [path.name for path in tmp_path.iterdir()] == ["proof.json"]


def test_a_proof_can_be_checked_from_stdin(sample: Sample) -> None:
    made = in_process("prove", sample.topic.id, "--json", "--db", sample.path)
    flags = ("prove", "--verify", "-", "--root-state", sample.root_state)
    assert in_process(*flags, stdin=made.out.encode()).code == 0


def test_prove_shows_the_worlds_on_the_way_up(sample: Sample) -> None:
    done = in_process("prove", sample.new.id.short, "--db", sample.path)
    assert done.code == 0
    assert str(sample.root_state) in done.out
    steps = [line.split() for line in done.out.splitlines()[-2:]]
    assert [(step[0], step[1], step[-1]) for step in steps] == [
        (sample.topic.id.short, "Topic", "Tesla"),
        ("7e27dba7b60f", "World", "root"),
    ]


def test_a_proof_does_not_hold_under_another_root_state(sample: Sample, tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(proof_of(sample, sample.new.id)))
    done = in_process("prove", "--verify", file, "--root-state", "ab" * 32)
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith("does not hold")
    as_json = in_process("prove", "--json", "--verify", file, "--root-state", "ab" * 32)
    assert (as_json.code, as_json.data["holds"]) == (1, False)


FORGERIES: dict[str, Forge] = {
    "another id": lambda proof: proof.update(id="ab" * 32),
    "another state": lambda proof: proof.update(state="ab" * 32),
    "another name on the way": lambda proof: proof["steps"][0].update(name="Tesler"),
    "another content on the way": lambda proof: proof["steps"][1].update(content="!"),
    "another birth time": lambda proof: proof["steps"][0].update(created_at=1),
    "a step left out": lambda proof: proof["steps"].pop(),
    "the first step left out": lambda proof: proof["steps"].pop(0),
    "the siblings left out": lambda proof: proof["steps"][0].update(
        bucket=[item for item in proof["steps"][0]["bucket"] if item.startswith(proof["id"])]
    ),
    "no steps, and the root's state": lambda proof: proof.update(
        id="ab" * 32, state=proof["root_state"], steps=[]
    ),
    "no id": lambda proof: proof.pop("id"),
    "no steps at all": lambda proof: proof.pop("steps"),
    "steps that are a number": lambda proof: proof.update(steps=1),
    "a step that is text": lambda proof: proof.update(steps=["up"]),
    "a step of unknown shape": lambda proof: proof["steps"][0].update(colour="red"),
    "a birth time that is text": lambda proof: proof["steps"][0].update(created_at="now"),
    "a birth time beyond 64 bits": lambda proof: proof["steps"][0].update(created_at=2**80),
    "more forks than digits": lambda proof: proof["steps"][0].update(
        forks=[["ab" * 32] * 16] * 200
    ),
    "digests that are no hex": lambda proof: proof["steps"][0].update(edges="zz"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_proof_does_not_hold(sample: Sample, tmp_path: Path, forgery: str) -> None:
    proof = proof_of(sample, sample.new.id)
    FORGERIES[forgery](proof)
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(proof))
    done = in_process("prove", "--verify", file, "--root-state", sample.root_state)
    assert (done.code, done.err) == (1, "")


def test_the_root_world_has_a_proof_too(sample: Sample, tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(proof_of(sample, Id(sample.topic.parent or b""))))
    done = in_process("prove", "--verify", file, "--root-state", sample.root_state)
    assert done.code == 0


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"not json", 6), (b"[]", 6), (b"\xff\xfe", 6), (b"[" * 100_000, 6), (b"{}", 1)],
)
def test_what_is_no_proof_at_all_is_told_apart(tmp_path: Path, content: bytes, code: int) -> None:
    file = tmp_path / "proof.json"
    file.write_bytes(content)
    done = in_process("prove", "--verify", file, "--root-state", "ab" * 32)
    assert done.code == code


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["3f2a", "--verify", "proof.json", "--root-state", "ab" * 32], 2),
        (["--verify", "proof.json"], 2),
        (["3f2a", "--root-state", "ab" * 32], 2),
        (["--verify", "proof.json", "--root-state", "f912"], 2),
        (["--verify", "missing.json", "--root-state", "ab" * 32], 8),
    ],
)
def test_prove_wants_an_id_or_a_proof_with_a_whole_root_state(
    tmp_path: Path, arguments: list[str], code: int
) -> None:
    done = in_process("prove", *arguments, cwd=tmp_path)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("worlddb: ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("root", ["ab", "no hex", "ab" * 33, ""])
def test_a_root_state_that_is_none_is_told_by_its_name(root: str) -> None:
    done = in_process("prove", "--verify", "nope", f"--root-state={root}")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"worlddb: --root-state {root!r}"[:90])
    assert "give the 64 hexadecimal digits of a root state" in done.err
