"""recall and reindex: questions on the command line, and the vectors behind them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import worlddb as engine

from .command import Result, in_process, on_terminal
from .samples import Sample, make_sample

HASH = ("--embedder", "hash")
HEAD = re.compile(r"^\d+\. [0-9a-f]{12}  \w+")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A store that these tests search, and so embed."""
    return make_sample(tmp_path_factory.mktemp("asked") / "memory.db")


def recall(store: Sample, *arguments: object) -> Result:
    where = () if "--scope" in arguments else ("--everyone",)
    return in_process("recall", *arguments, *where, *HASH, "--db", store.path)


def test_recall_shows_the_best_hits_with_their_times_and_texts(asked: Sample) -> None:
    done = in_process("recall", "Who is the CEO?", "--everyone", "-k", 2, *HASH, "--db", asked.path)
    assert (done.code, done.err) == (0, "")
    first, text, *rest = done.out.splitlines()
    head, _, confidence = first.partition("  confidence ")
    assert head == f"1. {asked.new.id.short}  Fact  2025-01-01T00:00:00Z"
    assert 0 < float(confidence) <= 1
    assert text == "   the CEO is B"
    assert sum(bool(HEAD.match(line)) for line in rest) == 1
    assert "the CEO is A" not in done.out


def test_recall_leaves_out_hits_below_a_confidence_and_refuses_what_is_none(asked: Sample) -> None:
    told = recall(asked, "CEO", "--json").data
    least = told["hits"][0]["confidence"]
    kept = recall(asked, "CEO", "--json", "--min-confidence", least).data["hits"]
    assert [hit["node"]["id"] for hit in kept] == [
        hit["node"]["id"] for hit in told["hits"] if hit["confidence"] >= least
    ]
    assert recall(asked, "CEO", "--json", "--min-confidence", 1).data["hits"] == []
    assert "from 0 to 1" in recall(asked, "CEO", "--min-confidence", 2).err
    explained = recall(asked, "CEO", "--explain").out
    assert f"confidence that an answer is among the hits: {told['confidence']:.2f}" in explained


def test_recall_says_when_perhaps_no_answer_is_remembered(tmp_path: Path) -> None:
    with engine.Memory(tmp_path / "m.db") as memory:
        for text in ("The alarm code is 2204.", "I bought a bicycle.", "Tom wears size 31."):
            memory.write(text, user_id="default")
    foreign = in_process("recall", "Which concerto was rehearsed?", "--db", tmp_path / "m.db")
    assert HEAD.match(foreign.out)
    assert "perhaps no answer is remembered" in foreign.err
    own = in_process("recall", "What is the alarm code?", "--db", tmp_path / "m.db")
    assert (own.err, "2204" in own.out) == ("", True)


def test_recall_as_json_is_the_answer_of_the_engine(asked: Sample) -> None:
    done = recall(asked, "CEO", "--json", "-k", 3)
    with engine.open(asked.path, embedder="hash") as db:
        assert done.data == db.recall("CEO", k=3).to_json()
    assert done.data["question"] == "CEO"
    assert done.data["hits"][0]["node"]["id"] == str(asked.new.id)
    assert set(done.data["hits"][0]["lanes"]) <= {"text", "vector", "graph"}
    assert recall(asked, "--json", "CEO", "-k", 3).out == done.out


def test_recall_explains_ranks_scores_conflicts_and_sources(asked: Sample) -> None:
    plain = recall(asked, "CEO", "--include-retired", "-k", 2).out
    assert f"   contradicted by {asked.old.id.short}" in plain.splitlines()
    assert "fused" not in plain
    explained = recall(asked, "CEO", "--ended", "-k", 2, "--explain").out
    line = next(line for line in explained.splitlines() if "fused" in line)
    assert re.fullmatch(r"   score -?\d+\.\d{3}, fused 0\.\d{4}: text #\d+ \(\d+\.\d{3}\).*", line)
    assert "vector #" in line
    told = next(line for line in explained.splitlines() if line.startswith("   score = "))
    parts = re.findall(r"([+-]\d+\.\d\d) (\w+)", told)
    assert {"text", "vector"} <= {name for _, name in parts}
    score = float(line.split()[1].rstrip(","))
    assert sum(float(value) for value, _ in parts) == pytest.approx(score, abs=0.05)


def test_recall_shows_where_a_memory_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "sourced.db"
    with engine.open(path) as db, db.transaction() as tx:
        tx.create_node(type="Fact", content="it rains", source=["mail/1", "diary\n2. forged"])
    done = in_process("recall", "rain", "--everyone", "--explain", *HASH, "--db", path)
    assert done.out.splitlines()[-1] == "   from mail/1, diary 2. forged"


def test_recall_returns_at_most_k_and_as_many_tokens_as_allowed(asked: Sample) -> None:
    for count in (1, 5):
        found = recall(asked, "filler", "-k", count, "--json").data["hits"]
        assert len(found) == count
    short = recall(asked, "filler", "--max-tokens", 50, "--json").data["hits"]
    assert 1 <= len(short) < 10
    assert sum(hit["tokens"] for hit in short) <= 50


def test_recall_looks_inside_a_world_and_only_there(asked: Sample) -> None:
    inside = recall(asked, "the CEO or Ada Lovelace", "--scope", asked.topic.id, "--json").data
    assert {hit["node"]["parent"] for hit in inside["hits"]} == {str(asked.topic.id)}
    short = recall(asked, "the CEO or Ada Lovelace", "--scope", asked.topic.id.short, "--json")
    assert short.data == inside
    both = recall(
        *(asked, "Ada Lovelace", "--scope", asked.topic.id, "--scope", asked.scope.id, "--json")
    )
    assert both.code == 0


def test_recall_keeps_to_types(asked: Sample) -> None:
    found = recall(asked, "Ada Tesla CEO", "--type", "Entity", "--json").data["hits"]
    assert [hit["node"]["id"] for hit in found] == [str(asked.person.id)]
    two = recall(asked, "Ada CEO", "--type", "Entity", "--type", "Fact", "--json").data["hits"]
    assert {hit["node"]["type"] for hit in two} == {"Entity", "Fact"}
    assert recall(asked, "Ada", "--type", "Nothing").out == ""


def test_recall_answers_what_was_true_and_what_was_known_at_a_time(asked: Sample) -> None:
    def first(*arguments: object) -> list[str]:
        hits = recall(asked, "the CEO", "--json", "--type", "Fact", *arguments).data["hits"]
        return [hit["node"]["content"] for hit in hits if "CEO" in hit["node"]["content"]]

    assert first() == ["the CEO is B"]
    assert sorted(first("--ended")) == ["the CEO is A", "the CEO is B"]
    assert first("--as-of", "2021-01-01T00:00Z") == ["the CEO is A"]
    assert first("--known-at", asked.old.known_from.isoformat()) == ["the CEO is A"]
    assert first("--known-at", "1999-01-01T00:00Z") == []


def test_recall_of_hostile_content_cannot_forge_a_hit_or_move_the_cursor(tmp_path: Path) -> None:
    path = tmp_path / "hostile.db"
    forged = "2. 0123456789ab  Fact  2026-01-01T00:00:00Z"
    with engine.open(path) as db, db.transaction() as tx:
        tx.create_node(
            type="Fact",
            name=f"\x1b[2J name\n{forged}",
            content=f"rain \x1b[31m \u202e red\n{forged}\n   the CEO is evil",
        )
    done = in_process("recall", "rain", "--everyone", *HASH, "--db", path)
    assert len(done.out.splitlines()) == 2
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out


def test_recall_that_finds_nothing_says_so_beside_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    engine.open(path).close()
    done = in_process("recall", "anything", *HASH, "--db", path)
    assert (done.code, done.out, done.err) == (0, "", "nothing found\n")
    assert in_process("recall", "anything", "--json", *HASH, "--db", path).data["hits"] == []


def test_what_is_in_no_scope_is_found_for_everyone_and_an_empty_answer_says_so(
    asked: Sample, tmp_path: Path
) -> None:
    done = in_process("recall", "CEO", *HASH, "--db", asked.path)
    assert (done.code, done.out) == (0, "")
    assert done.err == "nothing found for user:default; --everyone searches the whole store\n"
    assert "the CEO is B" in recall(asked, "CEO").out
    listed = in_process("list", "--db", asked.path)
    assert listed.err.endswith("; 'worlddb children' lists nodes that are in no scope\n")
    path = tmp_path / "others.db"
    for user in ("bob", "eve"):
        assert in_process("write", "tea", "--user-id", user, "--db", path).code == 0
    assert in_process("recall", "tea", *HASH, "--db", path).err == (
        "nothing found for user:default; there are others: --user-id bob, --user-id eve; "
        "--everyone searches the whole store\n"
    )
    theirs = in_process("recall", "tea", *HASH, "--db", path, env={"WORLDDB_SCOPE": "ada"})
    assert theirs.err.startswith("nothing found for user:ada; there are others: ")
    named = in_process("recall", "tea", "--user-id", "ada", *HASH, "--db", path)
    assert named.err == "nothing found\n"
    every = in_process("recall", "tea", "--everyone", *HASH, "--db", path).out.splitlines()
    assert {line.split()[-1] for line in every if HEAD.match(line)} == {"user:bob", "user:eve"}


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        ((), 2, "question: give at least one word, or names"),
        (("",), 2, "question: give at least one word"),
        (("   ",), 2, "question: give at least one word"),
        (("x" * 70_000,), 2, "question: 70,000 bytes"),
        (("CEO", "-k", "0"), 2, "k: "),
        (("CEO", "-k", "-1"), 2, "not a whole number"),
        (("CEO", "-k", "many"), 2, "not a whole number"),
        (("CEO", "--max-tokens", "0"), 2, "--max-tokens"),
        (("CEO", "--scope", "ffff"), 3, "ffff"),
        (("CEO", "--scope", "zz"), 2, "zz"),
        (("CEO", "--as-of", "yesterday"), 2, "--as-of"),
        (("CEO", "--known-at", "2026-01-01T09:30"), 2, "--known-at"),
    ],
)
def test_a_wrong_question_is_one_line_and_a_code(
    asked: Sample, arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    done = recall(asked, *arguments)
    assert (done.code, done.out) == (code, ""), done.err
    assert complaint in done.err
    assert done.err.startswith("worlddb: ")
    assert done.err.count("\n") == 1


def test_recall_without_a_store_makes_none(tmp_path: Path) -> None:
    for command in (("recall", "CEO"), ("reindex",)):
        done = in_process(*command, "--db", tmp_path / "typo.db")
        assert (done.code, done.out) == (8, "")
        assert "there is no store here" in done.err
    assert list(tmp_path.iterdir()) == []


def test_reindexing_without_an_embedder_embeds_nothing_and_says_so(own: Sample) -> None:
    done = in_process("reindex", "--embedder", "none", "--db", own.path)
    assert (done.code, done.err) == (0, "")
    assert "no embedder is chosen" in done.out


def test_another_embedder_than_the_stores_is_a_conflict_that_names_the_command(
    own: Sample,
) -> None:
    assert in_process("recall", "CEO", "--everyone", *HASH, "--db", own.path).code == 0
    done = in_process("recall", "CEO", "--everyone", "--embedder", "hash-32", "--db", own.path)
    assert (done.code, done.out) == (4, "")
    assert f"worlddb reindex --embedder hash-32 --db {own.path}" in done.err
    by_environment = in_process(
        *("recall", "CEO", "--everyone", "--db", own.path), env={"WORLDDB_EMBEDDER": "hash-32"}
    )
    assert by_environment.code == 4
    unknown = in_process("recall", "CEO", "--everyone", "--embedder", "gpt-9", "--db", own.path)
    assert unknown.code == 2
    assert "no such embedder" in unknown.err
    words_only = in_process(
        "recall", "CEO", "--everyone", "--embedder", "none", "--explain", "--db", own.path
    )
    assert words_only.code == 0
    assert "vector #" not in words_only.out


def test_reindex_says_how_many_nodes_are_embedded_and_by_what(own: Sample) -> None:
    with engine.open(own.path) as db, db.engine.store.read() as reader:
        nodes = reader.head().nodes - 1
    done = in_process("reindex", *HASH, "--db", own.path)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{own.path}: all {nodes} nodes are embedded by hash-64\n"
    again = in_process("reindex", "--json", "--db", own.path)
    assert again.data == {"path": str(own.path), "model": "hash-64", "nodes": nodes}
    with engine.open(own.path) as db:
        assert db.check() == []


def test_reindex_changes_the_model_and_recall_follows(own: Sample) -> None:
    for name in ("hash", "hash-32", "hash-16"):
        done = in_process("reindex", "--embedder", name, "--json", "--db", own.path)
        assert done.code == 0
        assert done.data["model"] == {"hash": "hash-64"}.get(name, name)
        assert in_process("recall", "CEO", "--everyone", "--db", own.path).out.startswith("1. ")
    by_environment = in_process(
        "reindex", "--json", "--db", own.path, env={"WORLDDB_EMBEDDER": "hash-8"}
    )
    assert by_environment.data["model"] == "hash-8"


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("--embedder", "gpt-9"), 2, "choose one of wordllama"),
        (("surplus",), 2, "surplus"),
    ],
)
def test_a_reindex_that_cannot_be_leaves_the_vectors_as_they_were(
    own: Sample, arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    assert in_process("reindex", *HASH, "--db", own.path).code == 0
    done = in_process("reindex", *arguments, "--db", own.path)
    assert (done.code, done.out) == (code, "")
    assert complaint in done.err
    assert in_process("reindex", "--json", "--db", own.path).data["model"] == "hash-64"


def test_a_model_that_is_not_installed_leaves_the_vectors_as_they_were(
    own: Sample, tmp_path: Path
) -> None:
    assert in_process("reindex", *HASH, "--db", own.path).code == 0
    done = in_process(
        *("reindex", "--embedder", "arctic-embed-s", "--db", own.path),
        env={"WORLDDB_MODELS": str(tmp_path / "none")},
    )
    assert (done.code, done.out) == (9, "")
    assert "worlddb models install arctic-embed-s" in done.err
    assert in_process("reindex", "--json", "--db", own.path).data["model"] == "hash-64"


def test_a_custom_embedder_is_asked_for(own: Sample) -> None:
    with engine.open(own.path, embedder="hash") as db:
        db.reindex()
        with db.engine.store.derive() as session:
            session.con.execute("UPDATE models SET id = 'of my own'")  # type: ignore[attr-defined]
    for command in (("recall", "CEO", "--everyone"), ("reindex",)):
        done = in_process(*command, "--db", own.path)
        assert done.code == 9
        assert "made by 'of my own'" in done.err
    assert in_process("reindex", *HASH, "--db", own.path).code == 0


def test_on_a_terminal_reindex_draws_and_clears_its_line(own: Sample) -> None:
    code, screen = on_terminal("reindex", *HASH, "--db", own.path)
    assert code == 0
    assert screen.rstrip().endswith("nodes are embedded by hash-64")
    assert screen.rindex("\x1b[K") < screen.index("all ")


def test_a_filter_holds_also_for_everyone_and_inside_a_world(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with engine.Memory(path) as memory:
        memory.write("The kettle is red.", user_id="ada", metadata={"room": "x"})
        memory.write("The kettle is blue.", user_id="ada", metadata={"room": "y"})
    ada = str(engine.ScopeName("user", "ada").id())
    for inside in (["--everyone"], ["--scope", ada], ["--user-id", "ada"]):
        filtered = ("recall", "kettle", "--where", '{"room": "x"}', *inside, "--json")
        hits = in_process(*filtered, "--db", path).data["hits"]
        assert [hit["node"]["content"] for hit in hits] == ["The kettle is red."]
    done = in_process("recall", "x", "--summaries", "first", "--everyone", "--db", path)
    assert (done.code, "name a scope" in done.err) == (2, True)
