"""read, children, log and diff: what is there, and what happened."""

from __future__ import annotations

from itertools import pairwise

import pytest

import worlddb as engine

from .command import in_process
from .samples import HOSTILE, Sample


def test_read_shows_a_node_found_by_the_start_of_its_id(sample: Sample) -> None:
    done = in_process("read", sample.topic.id.short, "--db", sample.path)
    assert done.code == 0
    assert done.err == ""
    fields = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert fields["id"] == str(sample.topic.id)
    assert fields["type"] == "Topic"
    assert fields["name"] == "Tesla"
    assert fields["aliases"] == "TSLA, 特斯拉"
    assert fields["provenance"] == "mail/1"
    assert fields["created_at"] == sample.topic.created_at.isoformat().replace("+00:00", "Z")


def test_read_as_json_is_the_whole_node(sample: Sample) -> None:
    done = in_process("read", "--json", sample.old.id, "--db", sample.path)
    with engine.open(sample.path, create=False) as db:
        assert done.data == db.get(sample.old.id).to_dict()
    assert done.data["valid_to"] == "2025-01-01T00:00:00+00:00"


def test_read_lists_the_edges_of_a_node_both_ways(sample: Sample) -> None:
    done = in_process("read", sample.new.id, "--edges", "--db", sample.path)
    rows = [line.split() for line in done.out.splitlines()[-3:]]
    assert [row[0] for row in rows[:2]] == [sample.supersedes.id.short, sample.refers.id.short]
    assert [row[1:4] for row in rows] == [
        ["out", "supersedes", sample.old.id.short],
        ["out", "refers_to", sample.person.id.short],
        ["in", "contradicts", sample.old.id.short],
    ]
    path = ("--db", sample.path)
    edges = in_process("read", sample.new.id, "--edges", "--json", *path).data["edges"]
    assert [edge["type"] for edge in edges] == ["supersedes", "refers_to", "contradicts"]
    assert edges[0]["metadata"] == {"why": "press", "n": [1.5, None, True]}


def test_read_answers_as_of_both_clocks(sample: Sample) -> None:
    before = sample.new.known_from.replace(microsecond=0).isoformat()
    assert sample.old.known_from < sample.new.known_from
    earlier = sample.old.known_from.isoformat()
    then = in_process("read", sample.old.id, "--known-at", earlier, "--json", "--db", sample.path)
    assert then.data["valid_to"] is None
    now = in_process("read", sample.old.id, "--known-at", before, "--json", "--db", sample.path)
    assert now.data["valid_to"] is not None
    gone = in_process("read", sample.old.id, "--as-of", "2025-06-01T00:00:00Z", "--db", sample.path)
    assert (gone.code, gone.out) == (3, "")


def test_text_from_a_node_cannot_command_the_terminal(sample: Sample) -> None:
    shown = in_process("read", sample.hostile.id, "--db", sample.path).out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\\x1b[31m alert \\u202e reversed\nsecond line\ttab \\u2028 end" in shown
    row = in_process("children", "--include-superseded", "--db", sample.path).out
    assert "red \\x1b[31m alert \\u202e reversed second line tab end" in row
    as_json = in_process("read", sample.hostile.id, "--json", "--db", sample.path)
    assert as_json.data["content"] == HOSTILE


def test_children_lists_the_root_world_in_the_order_of_writing(sample: Sample) -> None:
    done = in_process("children", "--db", sample.path)
    assert [row.split()[:2] for row in done.rows] == [
        [sample.topic.id.short, "Topic"],
        [sample.person.id.short, "Entity"],
        [sample.scope.id.short, "Scope"],
    ]
    assert done.out.splitlines()[0].split()[:3] == ["id", "type", "valid_from"]


def test_children_leaves_out_what_has_ended_unless_asked(sample: Sample) -> None:
    ids = {
        flag: [
            node["id"]
            for node in in_process(
                "children", sample.topic.id.short, "--json", *flag, "--db", sample.path
            ).data
        ]
        for flag in [(), ("--include-superseded",), ("--as-of", "2024-01-01T00:00:00Z")]
    }
    assert str(sample.old.id) not in ids[()]
    assert len(ids[()]) == 41
    assert set(ids["--include-superseded",]) == {*ids[()], str(sample.old.id)}
    assert ids["--as-of", "2024-01-01T00:00:00Z"] == [str(sample.old.id)]


def test_log_lists_commits_oldest_first_with_short_ids(sample: Sample) -> None:
    done = in_process("log", "--db", sample.path)
    with engine.open(sample.path, create=False) as db:
        commits = db.log()
    for row, commit in zip(done.rows, commits, strict=True):
        time = commit.time.isoformat().replace("+00:00", "Z")
        counts = [str(commit.nodes), str(commit.edges), str(len(commit.changes))]
        ids = [commit.root_state.short, commit.hash.short]
        assert row.split() == [str(commit.seq), time, *counts, *ids, commit.actor]


def test_log_as_json_chains_by_hash_and_gives_times_as_text(sample: Sample) -> None:
    commits = in_process("log", "--json", "--db", sample.path).data
    assert [commit["seq"] for commit in commits] == list(range(len(commits)))
    assert all(later["previous"] == earlier["hash"] for earlier, later in pairwise(commits))
    assert commits[-1]["root_state"] == str(sample.root_state)
    closing = [change for commit in commits for change in commit["changes"]]
    ended = next(change for change in closing if change["id"] == str(sample.old.id))
    assert ended["detail"]["valid_to"] == "2025-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--limit", "2"], [3, 4]),
        (["--newest-first", "--limit", "2"], [4, 3]),
        (["--after", "2"], [3, 4]),
        (["--after", "1", "--limit", "1"], [2]),
        (["--after", "99"], []),
        (["--limit", "0"], []),
    ],
)
def test_log_can_be_cut_from_both_ends(
    sample: Sample, flags: list[str], expected: list[int]
) -> None:
    commits = in_process("log", *flags, "--json", "--db", sample.path).data
    assert [commit["seq"] for commit in commits] == expected


def test_diff_shows_what_one_commit_did(sample: Sample) -> None:
    done = in_process("diff", 1, 2, "--db", sample.path)
    cells = [row.split() for row in done.rows]
    assert ["+", "node", sample.new.id.short, "Fact", "the", "CEO", "is", "B"] in cells
    edge = [sample.supersedes.id.short, "supersedes", sample.new.id.short, "→", sample.old.id.short]
    assert ["+", "edge", *edge] in cells
    closed = next(row for row in done.rows if row.startswith("~  close_node"))
    assert sample.old.id.short in closed
    assert f"by {sample.supersedes.id.short}, valid_to 2025-01-01T00:00:00Z" in closed


def test_diff_without_an_end_goes_to_the_last_commit(sample: Sample) -> None:
    done = in_process("diff", 0, "--json", "--db", sample.path).data
    with engine.open(sample.path, create=False) as db:
        found = db.diff(0, 4)
    assert (done["from"], done["to"]) == (0, 4)
    assert done["nodes"] == [node.to_dict() for node in found.nodes]
    assert done["edges"] == [edge.to_dict() for edge in found.edges]
    assert [change["kind"] for change in done["changes"]] == [it.kind for it in found.changes]
    assert in_process("diff", 4, "--json", "--db", sample.path).data["nodes"] == []


def test_reading_leaves_nothing_beside_the_store(own: Sample) -> None:
    before = own.path.read_bytes()
    for command in ("log", "children", "check"):
        assert in_process(command, "--db", own.path).code == 0
    assert in_process("export", "--db", own.path).code == 0
    assert [path.name for path in own.path.parent.iterdir()] == [own.path.name]
    assert own.path.read_bytes() == before
