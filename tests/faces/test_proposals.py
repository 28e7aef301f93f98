"""`worlddb proposals`: listing and deciding, one or many, with filters and a dry run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from worlddb import Id, open

from .command import in_process as inside


class Staged(NamedTuple):
    path: Path
    edges: dict[str, Id]


@pytest.fixture
def staged(tmp_path: Path) -> Staged:
    path = tmp_path / "a.db"
    edges: dict[str, Id] = {}
    with open(path, durability="normal") as db, db.transaction() as tx:
        for name, other, tier, score in (
            ("Sara Chen", "Sarah Chen", "fuzzy", 0.97),
            ("Jon Smyth", "John Smyth", "fuzzy", 0.6),
            ("Filip Roth", "Philip Roth", "phonetic", 0.55),
        ):
            left = tx.create_node(type="Entity", name=name).id
            right = tx.create_node(type="Entity", name=other).id
            metadata = {"tier": tier, "score": score}
            edges[name] = tx.write_edge("same_as", left, right, metadata=metadata).id
    return Staged(path, edges)


def chosen(staged: Staged, *arguments: str) -> list[str]:
    done = inside("proposals", *arguments, "--db", staged.path, "--json")
    assert (done.code, done.err) == (0, "")
    rows: list[dict[str, Any]] = done.data["proposals"]
    return [row["left_name"] for row in rows]


def statuses(staged: Staged) -> dict[str, str]:
    with open(staged.path) as db:
        return {db.get(item.left).name: item.status for item in db.proposals(None)}


def test_what_waits_is_listed_surest_first(staged: Staged) -> None:
    assert chosen(staged) == ["Sara Chen", "Jon Smyth", "Filip Roth"]
    done = inside("proposals", "--db", staged.path)
    columns = ["edge", "status", "tier", "score", "left", "right", "world"]
    assert done.out.splitlines()[0].split() == columns
    assert "0.970" in done.out
    assert "Sarah Chen" in done.out


def test_where_there_are_none_that_is_said(staged: Staged) -> None:
    done = inside("proposals", "--status", "rejected", "--db", staged.path)
    assert (done.code, done.out, done.err) == (0, "", "no proposals\n")
    none = inside("proposals", "reject", "--tier", "exact", "--yes", "--db", staged.path)
    assert (none.code, none.out) == (0, "0 decided: reject\n")


def test_filters_choose(staged: Staged) -> None:
    assert chosen(staged, "--tier", "phonetic") == ["Filip Roth"]
    assert chosen(staged, "--min-score", "0.6") == ["Sara Chen", "Jon Smyth"]
    assert chosen(staged, "--max-score", "0.6") == ["Jon Smyth", "Filip Roth"]
    assert chosen(staged, "--name", "SMYTH") == ["Jon Smyth"]
    assert chosen(staged, "--status", "accepted") == []


def test_each_side_is_shown_with_its_world(staged: Staged) -> None:
    with open(staged.path) as db, db.transaction() as tx:
        worlds = [tx.create_node(type="Scope", name=name).id for name in ("anna", "")]
        ends = [tx.create_node(type="Entity", name="Ada", parent=world).id for world in worlds]
        tx.write_edge("same_as", *ends, metadata={"tier": "exact"})
        root = str(db.root_id)
    done = inside("proposals", "--db", staged.path)
    rows = {line.split()[2]: line for line in done.out.splitlines()[1:]}
    assert rows["exact"].endswith(f"anna | {worlds[1].short}")
    assert rows["phonetic"].split()[-1] == "root"
    listed = inside("proposals", "--db", staged.path, "--json").data["proposals"]
    found = {row["tier"]: row["worlds"] for row in listed}
    assert found["exact"] == [str(world) for world in worlds]
    assert found["phonetic"] == [root, root]


def test_a_tier_that_there_is_not_is_refused(staged: Staged) -> None:
    done = inside("proposals", "accept", "--tier", "fuzy", "--yes", "--db", staged.path)
    assert done.code == 2
    assert "'fuzy'" in done.err
    assert "fuzzy" in done.err
    assert set(statuses(staged).values()) == {"pending"}
    assert chosen(staged, "--tier", "embedding") == []


def test_a_tier_of_somebody_elses_making_can_be_chosen(staged: Staged) -> None:
    with open(staged.path) as db, db.transaction() as tx:
        ends = [tx.create_node(type="Entity", name="Ada").id for _ in range(2)]
        tx.write_edge("same_as", *ends, metadata={"tier": "my rule"})
    assert chosen(staged, "--tier", "my rule") == ["Ada"]


def test_one_is_decided_by_the_start_of_its_id(staged: Staged) -> None:
    short = staged.edges["Jon Smyth"].short
    done = inside("proposals", "reject", short, "--db", staged.path, "--actor", "anna")
    assert done.code == 0
    assert statuses(staged)["Jon Smyth"] == "rejected"
    with open(staged.path) as db:
        assert db.log(limit=1, newest_first=True)[0].actor == "anna"


def test_a_dry_run_decides_nothing(staged: Staged) -> None:
    assert chosen(staged, "accept", "--tier", "fuzzy", "--dry-run") == ["Sara Chen", "Jon Smyth"]
    assert set(statuses(staged).values()) == {"pending"}


def test_many_are_decided_in_one_commit_when_told_so(staged: Staged) -> None:
    with open(staged.path) as db:
        before = len(db.log())
    assert chosen(staged, "accept", "--tier", "fuzzy", "--yes") == ["Sara Chen", "Jon Smyth"]
    assert statuses(staged) == {
        "Sara Chen": "accepted",
        "Jon Smyth": "accepted",
        "Filip Roth": "pending",
    }
    with open(staged.path) as db:
        assert len(db.log()) == before + 1
    assert chosen(staged, "undo", "--yes") == ["Sara Chen", "Jon Smyth"]
    assert set(statuses(staged).values()) == {"pending"}


def test_many_are_not_decided_by_accident(staged: Staged) -> None:
    done = inside("proposals", "accept", "--db", staged.path)
    assert done.code == 2
    assert "--yes" in done.err
    assert set(statuses(staged).values()) == {"pending"}


def test_an_edge_that_proposes_nothing_is_refused(staged: Staged) -> None:
    with open(staged.path) as db, db.transaction() as tx:
        ends = [tx.create_node(type="Fact", content=text).id for text in ("a", "b")]
        other = tx.write_edge("refers_to", *ends).id
    done = inside("proposals", "accept", str(other), "--db", staged.path)
    assert done.code == 2
    assert "no proposal" in done.err


def test_all_or_none_are_decided(staged: Staged) -> None:
    inside("proposals", "reject", staged.edges["Sara Chen"].short, "--db", staged.path)
    both = [str(staged.edges[name]) for name in ("Jon Smyth", "Sara Chen")]
    done = inside("proposals", "accept", *both, "--db", staged.path)
    assert done.code != 0
    assert statuses(staged)["Jon Smyth"] == "pending"
