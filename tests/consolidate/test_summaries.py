"""Summaries: which worlds get one, what it stands for, when it is replaced, and when it goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from consolidate.stage import (
    DAY,
    Clock,
    Noting,
    details,
    fact,
    open_store,
    retire,
    shape,
    summaries,
    world,
)
from worlddb import AsOf, Id, InvalidInputError, Message, NotFoundError, ProviderError, WorldDB
from worlddb.consolidate import summary_writer


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with open_store() as db:
        yield db


# -- what a summary is -----------------------------------------------------------------------------


def test_a_world_with_two_details_gets_a_summary_that_leads_to_them(db: WorldDB) -> None:
    tesla = world(db, "Tesla", ["Founded in 2003.", "The Roadster cost $109,000."])
    report = db.consolidate()
    (summary,) = summaries(db, tesla)
    assert (summary.type, summary.name, summary.parent) == ("Summary", "Tesla", tesla)
    assert details(db, summary) == {node.id for node in db.children(tesla)} - {summary.id}
    assert "Founded in 2003" in summary.content
    assert "$109,000" in summary.content
    assert summary.provenance[0] == "summarizer:extractive"
    (change,) = report.summaries
    assert (change.action, change.world, change.title) == ("written", tesla, "Tesla")
    assert (change.summary, change.details) == (summary.id, 2)
    assert report.is_complete
    assert db.check() == []


def test_every_commit_of_a_run_is_the_consolidators(db: WorldDB) -> None:
    world(db, "Tesla", ["a", "b"])
    report = db.consolidate()
    assert [(commit.seq, commit.actor) for commit in db.log(after=1)] == [
        (seq, "consolidator") for seq in report.commits
    ]
    fact(db, "c", db.children()[0].id)
    db.consolidate(actor="night shift")
    assert db.log()[-1].actor == "night shift"


def test_a_second_run_does_nothing_and_commits_nothing(db: WorldDB) -> None:
    outer = world(db, "outer", ["x", "y"])
    world(db, "inner", ["a", "b"], outer)
    db.consolidate()
    before = db.log()
    report = db.consolidate()
    assert (report.summaries, report.commits, report.worlds) == ((), (), 2)
    assert db.log() == before


@pytest.mark.parametrize("held", [(), ("one",)])
def test_a_world_with_less_than_two_details_gets_none(db: WorldDB, held: Sequence[str]) -> None:
    small = world(db, "small", held)
    assert db.consolidate().summaries == ()
    assert summaries(db, small) == []


def test_a_name_alone_is_no_detail(db: WorldDB) -> None:
    place = world(db, "Scope of Ada", ["one", "two"])
    with db.transaction() as tx:
        entity = tx.create_node(type="Entity", name="Sarah", parent=place).id
    db.consolidate()
    assert entity not in details(db, summaries(db, place)[0])


def test_the_root_is_no_world_to_summarise(db: WorldDB) -> None:
    fact(db, "one")
    fact(db, "two")
    assert db.consolidate().summaries == ()
    assert db.consolidate(db.root_id).summaries == ()


def test_members_are_told_like_inhabitants(db: WorldDB) -> None:
    scope = world(db, "scope", ["mine"])
    shared = fact(db, "shared")
    other = world(db, "elsewhere", ["not ours"])
    with db.transaction() as tx:
        edge = tx.write_edge("contains", scope, db.children(other)[0].id)
        tx.write_edge("contains", scope, shared)  # Homeless, so it moves in.
    db.consolidate()
    (summary,) = summaries(db, scope)
    assert {"mine", "shared", "not ours"} == {db.get(it).content for it in details(db, summary)}
    with db.transaction() as tx:
        tx.delete_edge(edge.id)
    db.consolidate()
    (summary,) = summaries(db, scope)
    assert {"mine", "shared"} == {db.get(it).content for it in details(db, summary)}


def test_a_summarizer_is_asked_in_the_order_of_time_with_who_said_what(db: WorldDB) -> None:
    with db.transaction() as tx:
        chat = tx.create_node(type="Session", name="chat").id
        for day, who, said in ((3, "Bob", "third"), (1, "Ann", "first"), (2, "Bob", "second")):
            when = f"2025-01-0{day}T00:00:00+00:00"
            tx.create_node(type="Turn", name=who, content=said, created_at=when, parent=chat)
    noting = Noting()
    db.consolidate(summarizer=noting)
    ((title, messages),) = noting.asked
    assert title == "chat"
    assert [(it.speaker, it.text) for it in messages] == [
        ("Ann", "first"),
        ("Bob", "second"),
        ("Bob", "third"),
    ]
    assert summaries(db, chat)[0].provenance[0] == "summarizer:noting"


# -- worlds in worlds ------------------------------------------------------------------------------


def test_a_world_of_worlds_is_summed_up_from_their_summaries(db: WorldDB) -> None:
    outer = world(db, "outer")
    inner = [world(db, name, ["a " + name, "b " + name], outer) for name in ("one", "two")]
    noting = Noting()
    report = db.consolidate(summarizer=noting)
    assert [change.title for change in report.summaries] == ["one", "two", "outer"]
    (top,) = summaries(db, outer)
    below = [summaries(db, it)[0] for it in inner]
    assert details(db, top) == {*inner, *(node.id for node in below)}
    assert [it.text for it in noting.asked[-1][1]] == [node.content for node in below]
    assert [it.speaker for it in noting.asked[-1][1]] == ["one", "two"]


def test_a_change_deep_inside_reaches_every_summary_above_it_and_no_other(db: WorldDB) -> None:
    outer = world(db, "outer", ["x"])
    one, two = (world(db, name, ["a", "b"], outer) for name in ("one", "two"))
    db.consolidate()
    kept = summaries(db, two)
    added = fact(db, "new", one)
    report = db.consolidate()
    assert [(it.action, it.title) for it in report.summaries] == [
        ("refreshed", "one"),
        ("refreshed", "outer"),
    ]
    assert summaries(db, two) == kept
    (low,) = summaries(db, one)
    assert added in details(db, low)
    assert low.id in details(db, summaries(db, outer)[0])


def test_only_the_named_world_and_those_inside_it_are_looked_at(db: WorldDB) -> None:
    outer = world(db, "outer", ["x", "y"])
    inner = world(db, "inner", ["a", "b"], outer)
    other = world(db, "other", ["c", "d"])
    report = db.consolidate(str(outer)[:12])
    assert {it.world for it in report.summaries} == {outer, inner}
    assert summaries(db, other) == []


# -- change ----------------------------------------------------------------------------------------


def test_a_newer_summary_supersedes_the_old_one(db: WorldDB) -> None:
    tesla = world(db, "Tesla", ["a", "b"])
    db.consolidate()
    (old,) = summaries(db, tesla)
    then = db.log()[-1].time
    fact(db, "c", tesla)
    report = db.consolidate()
    (new,) = summaries(db, tesla)
    assert [(it.action, it.summary) for it in report.summaries] == [("refreshed", new.id)]
    assert [edge.target for edge in db.edges(new.id, "out", ["supersedes"])] == [old.id]
    assert db.get(old.id).valid_to == new.valid_from
    assert {"a", "b", "c"} == {db.get(it).content for it in details(db, new)}
    assert summaries_then(db, tesla, then) == [old.id]


def summaries_then(db: WorldDB, inside: Id, known: object) -> list[Id]:
    found = db.children(inside, as_of=AsOf(known=known))  # type: ignore[arg-type]
    return [node.id for node in found if node.type == "Summary"]


def test_what_was_retired_is_told_no_longer(db: WorldDB) -> None:
    tesla = world(db, "Tesla", ["Ada left.", "Bob stays.", "Cleo came."])
    db.consolidate()
    gone = next(node for node in db.children(tesla) if node.content == "Ada left.")
    retire(db, gone.id)
    assert [it.action for it in db.consolidate().summaries] == ["refreshed"]
    (summary,) = summaries(db, tesla)
    assert "Ada" not in summary.content
    assert gone.id not in details(db, summary)


def test_a_summary_is_retired_with_its_sources(db: WorldDB) -> None:
    outer = world(db, "outer")
    tesla = world(db, "Tesla", ["a", "b"], outer)
    world(db, "other", ["c", "d"], outer)
    db.consolidate()
    (summary,) = summaries(db, tesla)
    retire(db, *(node.id for node in db.children(tesla) if node.type == "Fact"))
    report = db.consolidate()
    assert [(it.action, it.title) for it in report.summaries] == [
        ("retired", "Tesla"),
        ("retired", "outer"),
    ]
    assert report.summaries[0].summary == summary.id
    assert summaries(db, tesla) == summaries(db, outer) == []
    assert db.get(summary.id).valid_to is not None
    assert db.consolidate().commits == ()


def test_the_summary_of_a_world_that_has_ended_is_retired(db: WorldDB) -> None:
    tesla = world(db, "Tesla", ["a", "b"])
    db.consolidate()
    retire(db, tesla)
    assert [it.action for it in db.consolidate().summaries] == ["retired"]
    assert summaries(db, tesla) == []


def test_a_summary_that_somebody_retired_is_made_again(db: WorldDB) -> None:
    tesla = world(db, "Tesla", ["a", "b"])
    db.consolidate()
    retire(db, summaries(db, tesla)[0].id)
    assert [it.action for it in db.consolidate().summaries] == ["written"]


def test_somebody_elses_summary_is_a_detail_like_any_other(db: WorldDB) -> None:
    tesla = world(db, "Tesla", ["a", "b"])
    with db.transaction() as tx:
        own = tx.create_node(type="Summary", content="my own words", parent=tesla).id
        tx.write_edge("derived_from", own, db.children(tesla)[0].id)
    db.consolidate()
    (made,) = [node for node in summaries(db, tesla) if node.id != own]
    assert own in details(db, made)
    assert db.get(own).valid_to is None


# -- bounds ----------------------------------------------------------------------------------------


def test_young_worlds_are_left_alone_until_they_are_old_enough() -> None:
    clock = Clock()
    with open_store(clock=clock) as db:
        world(db, "Tesla", ["a", "b"])
        assert db.consolidate(min_age=timedelta(hours=1)).summaries == ()
        clock.now += DAY
        assert len(db.consolidate(min_age=3600).summaries) == 1


def test_a_run_is_bounded_and_the_next_one_goes_on(db: WorldDB) -> None:
    outer = world(db, "outer")
    for number in range(5):
        world(db, f"inner {number}", ["a", "b"], outer)
    left = []
    for _ in range(3):
        report = db.consolidate(worlds_max=2)
        assert len(report.summaries) == 2
        left.append((report.left, report.is_complete))
    assert left == [(4, False), (2, False), (0, True)]
    assert db.consolidate().commits == ()


def test_a_large_world_gets_several_summaries_and_only_the_last_one_changes(
    db: WorldDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary_writer, "DETAILS_MAX", 3)
    big = world(db, "big", [f"fact {number}" for number in range(7)])
    db.consolidate()
    parts = summaries(db, big)
    assert [len(details(db, part)) for part in parts] == [3, 3, 1]
    for number in range(7, 10):
        fact(db, f"fact {number}", big)
    db.consolidate()
    after = summaries(db, big)
    assert after[:2] == parts[:2]
    assert [len(details(db, part)) for part in after] == [3, 3, 3, 1]
    covered = set().union(*(details(db, part) for part in after))
    assert covered == {node.id for node in db.children(big) if node.type == "Fact"}
    retire(db, *details(db, after[0]))
    assert [it.action for it in db.consolidate().summaries] == ["retired"]
    assert db.consolidate().commits == ()


@pytest.mark.parametrize(
    "options",
    [
        {"worlds_max": 0},
        {"edges_max": 1.5},
        {"min_age": -1},
        {"min_age": timedelta(seconds=-1)},
        {"min_age": float("nan")},
        {"min_age": "an hour"},
        {"only": ()},
        {"only": ("summaries", "magic")},
        {"summarizer": "extractive"},
        {"actor": 5},
    ],
)
def test_bad_options_are_refused_before_anything_is_written(
    db: WorldDB, options: dict[str, object]
) -> None:
    world(db, "Tesla", ["a", "b"])
    before = db.log()
    with pytest.raises(InvalidInputError):
        db.consolidate(**options)  # type: ignore[arg-type]
    assert db.log() == before


def test_an_unknown_world_is_an_error(db: WorldDB) -> None:
    with pytest.raises(NotFoundError):
        db.consolidate("ab" * 32)


# -- dry runs, failures, interruptions -------------------------------------------------------------


def decisions(db: WorldDB, **options: object) -> list[tuple[str, str, int]]:
    report = db.consolidate(**options)  # type: ignore[arg-type]
    return [(it.action, str(it.world), it.details) for it in report.summaries]


def nested(db: WorldDB) -> Id:
    """Make worlds three deep of which some have summaries, fresh, stale and obsolete."""
    outer = world(db, "outer", ["x"])
    middle = [world(db, f"middle {number}", ["m"], outer) for number in range(2)]
    deep = [world(db, f"deep {number}", ["a", "b"], middle[number % 2]) for number in range(4)]
    db.consolidate()
    fact(db, "new", deep[0])
    retire(db, *(node.id for node in db.children(deep[1]) if node.type == "Fact"))
    world(db, "fresh", ["c", "d"], middle[0])
    return outer


def test_a_dry_run_writes_nothing_and_decides_the_same() -> None:
    with open_store() as db:
        nested(db)
        before = list(db.export())
        noting = Noting()
        planned = decisions(db, dry_run=True, summarizer=noting)
        assert list(db.export()) == before
        assert noting.asked == []
        assert len(planned) > 4
        assert decisions(db) == planned
        assert decisions(db, dry_run=True) == []


class Broken(Noting):
    """Fails at the nth question."""

    def __init__(self, nth: int, error: BaseException) -> None:
        super().__init__()
        self.nth = nth
        self.error = error

    def summarize(self, title: str, messages: Sequence[Message]) -> str:
        if len(self.asked) == self.nth:
            raise self.error
        return super().summarize(title, messages)


def test_a_run_that_is_stopped_anywhere_is_finished_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(summary_writer, "SUMMARIES_PER_COMMIT", 2)
    with open_store() as whole:
        nested(whole)
        noting = Noting()
        whole.consolidate(summarizer=noting)
        expected, total = shape(whole), len(noting.asked)
    assert total > 4
    for nth in range(total):
        with open_store() as db:
            nested(db)
            with pytest.raises(KeyboardInterrupt):
                db.consolidate(summarizer=Broken(nth, KeyboardInterrupt()))
            assert db.check() == []
            db.consolidate(summarizer=Noting())
            assert shape(db) == expected
            assert db.consolidate(summarizer=Noting()).commits == ()


def test_a_model_that_fails_loses_nothing_and_is_told(db: WorldDB) -> None:
    for number in range(4):
        world(db, f"world {number}", ["a", "b"])
    events = facts_in_a_chain(db)
    report = db.consolidate(summarizer=Broken(2, ProviderError("the model is asleep")))
    assert report.error == "ProviderError: the model is asleep"
    assert report.written == 2
    assert not report.is_complete
    assert len(report.inferred) == 1  # The rest goes on without the model.
    assert len(events) == 3
    assert db.consolidate(summarizer=Noting()).written == 2


def facts_in_a_chain(db: WorldDB) -> list[Id]:
    with db.transaction() as tx:
        made = [tx.create_node(type="Event", name=name).id for name in "abc"]
        tx.write_edge("causes", made[0], made[1])
        tx.write_edge("causes", made[1], made[2])
    return made


@pytest.mark.parametrize("said", ["", "  \n ", None])
def test_a_summarizer_that_says_nothing_has_failed(db: WorldDB, said: str) -> None:
    class Silent(Noting):
        def summarize(self, title: str, messages: Sequence[Message]) -> str:
            return said

    world(db, "Tesla", ["a", "b"])
    assert "returned no text" in str(db.consolidate(summarizer=Silent()).error)


def test_what_no_store_can_hold_is_made_fit(db: WorldDB) -> None:
    class Odd(Noting):
        def summarize(self, title: str, messages: Sequence[Message]) -> str:
            return "nul \0 lone \ud800 " + "line\n" * 300_000

    tesla = world(db, "Tesla", ["a", "b"])
    assert db.consolidate(summarizer=Odd()).error is None
    assert summaries(db, tesla)[0].content.startswith("nul   lone ? line\nline")
    assert db.check() == []


class Meddling(Noting):
    """Writes to the store, from another connection, while it is being asked."""

    def __init__(self, path: Path, into: Id) -> None:
        super().__init__()
        self.path = path
        self.into: Id | None = into

    def summarize(self, title: str, messages: Sequence[Message]) -> str:
        if self.into is not None:
            with open_store(self.path) as other:
                fact(other, "meanwhile", self.into)
            self.into = None
        return super().summarize(title, messages)


def test_a_world_that_changes_while_it_is_summarised_is_left_for_the_next_run(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    with open_store(path) as db:
        busy, calm = world(db, "busy", ["a", "b"]), world(db, "calm", ["c", "d"])
        report = db.consolidate(summarizer=Meddling(path, busy))
        assert report.skipped == (busy,)
        assert not report.is_complete
        assert summaries(db, busy) == []
        assert len(summaries(db, calm)) == 1
        assert [it.world for it in db.consolidate().summaries] == [busy]
        assert "meanwhile" in summaries(db, busy)[0].content


def test_no_summarizer_runs_inside_a_transaction(tmp_path: Path) -> None:
    """If one did, the other writer would wait for the lock until its patience ends."""
    path = tmp_path / "store.db"
    with open_store(path) as db:
        world(db, "one", ["a", "b"])
        elsewhere = world(db, "two")
        assert db.consolidate(summarizer=Meddling(path, elsewhere)).written == 1
