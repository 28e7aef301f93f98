"""Prepared writes: carried out in groups, they are as if written one by one."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from worlddb import Memory
from worlddb.errors import ConflictError, InvalidInputError, WorldDBError
from worlddb.ingest.extractors import RulesExtractor
from worlddb.ingest.ingestion import DatedDraft
from worlddb.memory.memory import prepare_write, write_prepared
from worlddb.memory.prepared_write import PreparedWrite, redated
from worlddb.memory.results import Written
from worlddb.model.inputs import from_micros, to_micros
from worlddb.model.records import Message
from worlddb.store.sqlite.gate import Gate

TEXTS = (
    "I moved to Paris.",
    "I live in Rome now.",
    "My manager Sarah Chen likes green tea.",
    "Yesterday Omar Haddad flew to Lisbon, and on 3 May he comes back.",
    "Sarah Chen, also known as SC, works at Tern since 2019.",
    "The Great Storm caused the Severn Flood.",
)
NOON = datetime(2026, 5, 2, 12, 0, 0, 1, UTC)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "m.db", embedder="none", recluster="off", user_id="ada") as made:
        yield made


def prepared(memory: Memory, text: str, **options: Any) -> PreparedWrite:
    made = prepare_write(memory, text=text, **options)
    assert made is not None
    sent: PreparedWrite = pickle.loads(pickle.dumps(made))  # As between two processes.
    return sent


def written(results: list[Written | Exception]) -> list[Written]:
    assert not [one for one in results if isinstance(one, Exception)]
    return [one for one in results if isinstance(one, Written)]


def test_a_group_writes_what_single_writes_would(tmp_path: Path, memory: Memory) -> None:
    done = written(write_prepared([(memory, prepared(memory, text)) for text in TEXTS]))
    with Memory(tmp_path / "single.db", embedder="none", recluster="off", user_id="ada") as single:
        alone = [single.write(text) for text in TEXTS]
        assert [
            ([(link.name, link.type, link.created) for link in one.entities], one.created)
            for one in done
        ] == [
            ([(link.name, link.type, link.created) for link in one.entities], one.created)
            for one in alone
        ]
        assert [len(one.superseded) for one in done] == [len(one.superseded) for one in alone]
        assert sum(len(one.superseded) for one in done)
        query = "Where do I live?"
        assert [hit.node.content for hit in memory.recall(query).hits] == [
            hit.node.content for hit in single.recall(query).hits
        ]
    commits = [one.commit.seq for one in done if one.commit is not None]
    assert commits == list(range(commits[0], commits[0] + len(TEXTS)))
    assert memory.db.check() == []


def test_what_is_wrong_with_one_write_is_not_the_others_concern(memory: Memory) -> None:
    memory.write("The first.", idempotency_key="k")
    group = [
        (memory, prepared(memory, "Before it.")),
        (memory, prepared(memory, "Another text.", idempotency_key="k")),
        (memory, prepared(memory, "After it.")),
        (memory, prepared(memory, "The first.", idempotency_key="k")),
    ]
    first, refused, last, again = write_prepared(group)
    assert isinstance(first, Written)
    assert isinstance(refused, ConflictError)
    assert isinstance(last, Written)
    assert isinstance(again, Written)
    assert not again.created
    texts = {one.text for one in memory.list().memories}
    assert texts == {"The first.", "Before it.", "After it."}
    assert memory.db.check() == []


def test_the_same_text_twice_in_a_group_is_one_memory(memory: Memory) -> None:
    pair = [(memory, prepared(memory, "Ada likes tea.")) for _ in range(2)]
    one, two = written(write_prepared(pair))
    assert (one.created, two.created, two.id) == (True, False, one.id)


def test_a_key_twice_in_a_group_writes_once(memory: Memory) -> None:
    pair = [(memory, prepared(memory, "I like tea.", idempotency_key="k")) for _ in range(2)]
    one, two = written(write_prepared(pair))
    assert (one.created, two.created, two.id) == (True, False, one.id)


def test_a_commit_that_fails_is_the_error_of_each_write(memory: Memory) -> None:
    memory.write("There before.")
    group = [(memory, prepared(memory, text)) for text in TEXTS]
    store: Any = memory.db.engine.store
    store._writer.set_commit_hook(lambda: True)
    results = write_prepared(group)
    store._writer.set_commit_hook(None)
    assert all(isinstance(one, WorldDBError) for one in results), results
    assert [one.text for one in memory.list().memories] == ["There before."]
    written(write_prepared(group))
    # One more than the texts, but who lives in Rome is in Paris no longer.
    assert len(memory.list(limit=100).memories) == len(TEXTS)
    assert memory.db.check() == []


def test_writes_that_find_the_store_busy_wait_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float | None] = []
    take = Gate.take

    def noted(gate: Gate, turn: Any, timeout_s: float | None = None) -> None:
        waits.append(timeout_s)
        take(gate, turn, timeout_s)

    path = tmp_path / "busy.db"
    with Memory(path, embedder="none", recluster="off", busy_timeout_s=0.2) as memory:
        group = [(memory, prepared(memory, text)) for text in TEXTS]
        with ThreadPoolExecutor(1) as other, memory.db.transaction(actor="test") as tx:
            tx.create_node(type="Topic", name="in the way")
            with monkeypatch.context() as patch:
                patch.setattr(Gate, "take", noted)
                refused = other.submit(write_prepared, group).result()
        assert all(isinstance(one, ConflictError) for one in refused)
        assert waits == [0.2] + [0.0] * (len(TEXTS) - 1)
        assert len(written(write_prepared(group))) == len(TEXTS)


def test_a_text_that_waited_begins_after_the_commits_it_waited_for(memory: Memory) -> None:
    waiting = prepared(memory, "I live in Rome.")
    earlier = memory.write("I live in Paris.")
    (late,) = written(write_prepared([(memory, waiting)]))
    begins = memory.read(late.id).valid_from
    assert begins is not None
    assert earlier.commit is not None
    assert begins > earlier.commit.time
    assert [one.id for one in memory.list().memories] == [late.id]  # Rome ended Paris.


@pytest.mark.parametrize("text", TEXTS)
def test_a_draft_of_the_same_day_is_as_if_read_later(text: str) -> None:
    later = NOON + timedelta(hours=3)
    read = [
        DatedDraft(RulesExtractor().extract([Message(text=text)], at), None, to_micros(at, "at"))
        for at in (NOON, later)
    ]
    assert redated(read[0], read[1].at) == read[1]
    assert read[0] != read[1]


def test_a_draft_of_another_day_is_read_again() -> None:
    draft = RulesExtractor().extract([Message(text="I came yesterday.")], NOON)
    read = DatedDraft(draft, None, to_micros(NOON, "at"))
    assert redated(read, to_micros(NOON + timedelta(days=1), "at")) is None
    midnight = from_micros(to_micros(NOON.replace(hour=0, microsecond=0), "at"))
    read = DatedDraft(RulesExtractor().extract([Message(text="I came.")], midnight), None, 0)
    assert redated(read._replace(at=to_micros(midnight, "at")), to_micros(NOON, "at")) is None


def test_what_only_write_can_do_is_not_prepared(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes")
    assert prepare_write(memory, document=tmp_path / "notes.md") is None
    assert prepare_write(memory, text="long " * 1_000) is None
    assert prepare_write(memory, text="I like tea.", extractor=RulesExtractor()) is None
    bound = memory.bound(user_id="ada")
    assert prepare_write(bound, text="I like tea.", user_id="ada") is not None
    assert prepare_write(bound, text="I like tea.", user_id="bob") is None  # A grant may open it.


def test_what_is_wrong_is_refused_before_it_waits(memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match="there is no text"):
        prepare_write(memory, text=" ")
    with pytest.raises(InvalidInputError, match="metadata"):
        prepare_write(memory, text="I like tea.", metadata={"a": object()})
    with pytest.raises(InvalidInputError, match="idempotency_key"):
        prepare_write(memory, text="I like tea.", idempotency_key=" ")


def test_a_chat_and_its_continuation_fit_into_one_group(memory: Memory) -> None:
    turns = [{"role": "user", "content": "I moved to Paris"}]
    more = [*turns, {"role": "assistant", "content": "Nice!"}]
    group = []
    for messages in (turns, more):
        made = prepare_write(memory, messages=messages, run_id="r1")
        assert made is not None
        group.append((memory, made))
    written(write_prepared(group))
    (session,) = memory.list(run_id="r1", limit=100).memories
    assert session.text == "user: I moved to Paris\nassistant: Nice!"
    assert memory.db.check() == []
