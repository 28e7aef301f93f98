"""consolidate: what a run does, or would do, told on the terminal and as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

import worlddb as engine
from worlddb import Id

from .command import in_process


@pytest.fixture
def store(tmp_path: Path) -> tuple[Path, Id]:
    """A store with a topic of two facts, and a chain of causes."""
    path = tmp_path / "own.db"
    with engine.open(path) as db, db.transaction() as tx:
        topic = tx.create_node(type="Topic", name="Tesla").id
        for text in ("Founded in 2003.", "The Roadster cost $109,000."):
            tx.create_node(type="Fact", content=text, parent=topic)
        chain = [tx.create_node(type="Event", name=name).id for name in "abc"]
        tx.write_edge("causes", chain[0], chain[1])
        tx.write_edge("causes", chain[1], chain[2])
    return path, topic


def test_a_dry_run_says_what_would_be_done_and_does_nothing(store: tuple[Path, Id]) -> None:
    path, topic = store
    done = in_process("consolidate", "--dry-run", "--db", path)
    assert (done.code, done.err) == (0, "")
    header, *rows, told = done.out.splitlines()
    assert header.split() == ["what", "to", "do", "id", "about"]
    assert rows[0].split()[:3] == ["summary", "write", topic.short]
    assert [row.split()[:2] for row in rows][1:] == [["edge", "infer"]]
    assert told.endswith(
        "nothing was written; a run would write 1 summaries, refresh 0, retire 0, infer 1 edges, "
        "flag 0 contradictions"
    )
    assert done.out.count("written") == 1
    with engine.open(path) as db:
        assert len(db.log()) == 2


def test_a_run_says_what_was_done(store: tuple[Path, Id]) -> None:
    path, topic = store
    done = in_process("consolidate", "--db", path)
    assert f"summary  written   {topic.short}  Tesla (2)" in done.out
    assert "summaries written 1, refreshed 0, retired 0; edges inferred 1;" in done.out


def test_a_run_is_told_as_json_and_a_second_one_does_nothing(store: tuple[Path, Id]) -> None:
    path, topic = store
    done = in_process("consolidate", "--json", "--db", path, "--actor", "night")
    assert done.code == 0
    assert done.data["path"] == str(path)
    assert (done.data["written"], len(done.data["inferred"])) == (1, 1)
    assert done.data["summaries"][0]["world"] == str(topic)
    assert (done.data["complete"], done.data["error"]) == (True, None)
    with engine.open(path) as db:
        assert [commit.actor for commit in db.log(after=1)] == ["night", "night"]
        assert [commit.seq for commit in db.log(after=1)] == done.data["commits"]
    again = in_process("consolidate", "--json", "--db", path)
    assert (again.data["summaries"], again.data["commits"]) == ([], [])
    assert in_process("check", "--db", path).code == 0


def test_parts_worlds_ages_and_limits_can_be_chosen(store: tuple[Path, Id]) -> None:
    path, topic = store
    young = in_process("consolidate", "--json", "--db", path, "--min-age", 3600, "--dry-run")
    assert (young.data["summaries"], len(young.data["inferred"])) == ([], 1)
    edges = in_process("consolidate", "--json", "--db", path, "--only", "closure", "--dry-run")
    assert (edges.data["written"], len(edges.data["inferred"])) == (0, 1)
    inside = in_process("consolidate", "--json", "--db", path, "--world", str(topic)[:10])
    assert (inside.data["written"], inside.data["inferred"]) == (1, [])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--max-worlds", "0"], 2),
        (["--only", "magic"], 2),
        (["--min-age", "-5"], 2),
        (["--world", "ab" * 32], 3),
    ],
)
def test_bad_arguments_are_refused(store: tuple[Path, Id], arguments: list[str], code: int) -> None:
    assert in_process("consolidate", "--db", store[0], *arguments).code == code


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert in_process("consolidate", "--db", tmp_path / "none.db").code == 8
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_configured_is_refused_before_anything_is_written(
    store: tuple[Path, Id],
) -> None:
    done = in_process("consolidate", "--summarizer", "llm", "--db", store[0])
    assert (done.code, done.out) == (2, "")
    assert in_process("consolidate", "--summarizer", "llm", "--dry-run", "--db", store[0]).code == 0
    with engine.open(store[0]) as db:
        assert len(db.log()) == 2
