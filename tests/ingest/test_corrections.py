"""Corrections: how people put it that something is otherwise now, and what only sounds like it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

import worlddb
from worlddb import WorldDB


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with worlddb.open(":memory:", embedder="none") as opened:
        yield opened


def ended(db: WorldDB, *texts: str) -> list[str]:
    """Say something each month; return the texts that have ended, each as it was said."""
    found = []
    for month, text in enumerate(texts, 1):
        at = datetime(2026, month, 1, tzinfo=UTC)
        told = db.ingest(text, at=at, recluster="off")
        found += [db.get(ident).content for ident in told.superseded]
    return found


PASSING = [
    ("I live in Rome.", "I'm based in Berlin this week."),
    ("I live in Rome.", "I'm based in Berlin today."),
    ("I live in Rome.", "Today I'm based in Berlin."),
    ("I live in Rome.", "I'm living in Berlin this month."),
    ("I live in Rome.", "I live in Berlin with Tom this summer."),
    ("I work at Google.", "I work at Stanford as a volunteer."),
    ("I work at Google.", "I work at Stanford as a guest lecturer on Fridays."),
    ("I work at Google.", "I work for Meta as a contractor on Mondays."),
    ("I work at Google.", "I work for Meta as an engineer two days a week."),
    ("I work at Google.", "I work for Meta this week."),
    ("I work at Google.", "I joined Oxfam as a volunteer coach."),
    ("I'm a nurse.", "I work as a guest lecturer."),
    ("My manager is Anna.", "My manager is Tom this week."),
    ("My favourite colour is green.", "My favourite colour is red today."),
]


@pytest.mark.parametrize(("old", "new"), PASSING)
def test_what_may_pass_or_is_beside_ends_nothing(db: WorldDB, old: str, new: str) -> None:
    assert ended(db, old, new) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Rome.", "I moved to Berlin this week."),
        ("I live in Rome.", "Today I moved to Berlin."),
        ("I live in Rome.", "As of today, I live in Berlin."),
        ("I live in Rome.", "I live in Berlin, and I ski on Sundays."),
        ("I work at Google.", "I work at Stanford as a lecturer."),
        ("I work at Google.", "I started a new job at Meta this month."),
    ],
)
def test_what_happened_in_a_short_time_is_no_passing_state(db: WorldDB, old: str, new: str) -> None:
    assert ended(db, old, new) == [old]


CORRECTED = [
    ("I live in Rome.", "I live in Dublin, not Rome."),
    ("I live in Rome.", "No, I live in Dublin, not Rome."),
    ("I live in Rome.", "I left Rome and now live in Lyon."),
    ("I live in Rome.", "My home is now in Lyon."),
    ("I live in Italy.", "I live in Rome, not Italy."),
    ("My manager is Anna.", "My manager is now Lars."),
    ("My manager is Anna.", "My new manager is Lars."),
    ("My manager is Berta.", "My manager is Wei now."),
    ("My boss is Kwame.", "My boss is Chidi, not Kwame."),
    ("My wife's name is Anna.", "My wife's name is Maria."),
    ("My wife is Siobhan.", "My wife's name is Élodie."),
    ("I work at Google.", "I work at 7-Eleven now."),
    ("I work at Google.", "I work at St. Mary's Hospital now."),
    ("I work at St. Mary's Hospital.", "I no longer work at St. Mary's Hospital."),
    ("I eat meat.", "I no longer eat meat."),
    ("I eat red meat.", "I don't eat red meat anymore."),
    ("I smoke.", "I quit smoking."),
    ("I smoke.", "I stopped smoking last month."),
    ("The user smokes.", "The user no longer smokes."),
    ("I no longer drink coffee.", "I drink coffee."),
    ("I prefer dark mode.", "I prefer light mode now."),
    ("User prefers dark mode", "The user now prefers light mode."),
    ("Prefers dark mode", "Now prefers light mode"),
    ("I prefer detailed answers.", "I now prefer concise answers."),
    ("I prefer dark mode.", "I no longer prefer dark mode."),
    ("Our standup is at 9am.", "Our standup is now at 10am."),
    ("Our standup is at 9am.", "Our stand-up was moved to 9:30 a.m."),
]


@pytest.mark.parametrize(("old", "new"), CORRECTED)
def test_a_plain_correction_ends_what_it_corrects(db: WorldDB, old: str, new: str) -> None:
    assert ended(db, old, new) == [old]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Rome.", "I live in Dublin, not far from the sea."),
        ("I live in Rome.", "I left Rome and might live in Lyon."),
        ("I live in Rome.", "My home is in Lyon."),
        ("My manager is Anna.", "My manager is Great."),
        ("My manager is Anna.", "My manager is Busy."),
        ("My wife is Anna.", "My wife is Catholic."),
        ("My partner is Anna.", "My partner is Acme."),
        ("My manager is Anna.", "My boss is Lars."),
        ("My manager is Lars.", "My manager is Lars Berg."),
        ("My wife's name is Anna.", "My wife's maiden name is Berg."),
        ("I eat meat.", "I eat fish."),
        ("I eat meat.", "I no longer eat fish."),
        ("I eat meat.", "I don't eat meat on Fridays."),
        ("I smoke.", "I quit smoking but started again."),
        ("I smoke.", "I stopped smoking for a week."),
        ("I smoke.", "I stopped smoking in the house."),
        ("I smoke.", "I might quit smoking."),
        ("I smoke.", "Tom quit smoking."),
        ("I eat it.", "I no longer eat it."),
        ("I drink.", "I stopped drinking last night."),
        ("I prefer dark mode.", "I prefer light mode."),
        ("I prefer dark mode.", "I prefer light mode on my phone now."),
        ("I prefer dark mode.", "I prefer light mode today."),
        ("I prefer short meetings.", "I prefer morning meetings now."),
        ("I prefer tea.", "I prefer coffee now."),
        ("I prefer dark mode.", "I prefer light mode now, but dark mode at night."),
        ("Our standup is at 9am.", "Our standup moved to 10am yesterday."),
        ("Our standup is at 9am.", "Yesterday our standup moved to 10am."),
        ("I work at Tern.", "I work at Google, not for Google."),
        ("Our standup is at 9am.", "Our standup is at 2pm."),
        ("Our standup is at 9am.", "Our standup moved to 10am today."),
        ("Our standup is at 9am.", "Our standup is now at 10am this week."),
        ("Our standup is at 9am.", "Our standup was moved to 10am on Monday."),
        ("Our standup is at 9am.", "Our retro is now at 10am."),
        ("Our standup is at 9am.", "Our standup is now at 9:00 a.m."),
    ],
)
def test_what_only_sounds_like_a_correction_ends_nothing(db: WorldDB, old: str, new: str) -> None:
    assert ended(db, old, new) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I drink coffee.", "I no longer drink coffee with sugar."),
        ("I smoke.", "I no longer smoke so much."),
        ("I smoke.", "I don't smoke anymore after dinner."),
        ("I eat meat.", "I no longer eat meat so often."),
        ("I eat lunch.", "I no longer eat lunch with Tom."),
        ("I drink coffee.", "I stopped drinking coffee so late."),
        ("I prefer morning meetings.", "I no longer prefer morning meetings with Tom."),
        ("I eat meat.", "I stopped eating meat because the phone rang."),
        ("I eat meat.", "I stopped eating meat this morning."),
        ("I smoke.", "I quit smoking but fell off the wagon."),
        ("I quit smoking.", "I smoke so rarely."),
        ("I no longer drink coffee.", "I drink coffee but decaf."),
        ("I live in Rome.", "I live in Italy, not Spain."),
        ("I live in Boston.", "I live in Massachusetts, not Maine."),
        ("I live in Boston.", "I live in Back Bay, not Beacon Hill."),
        ("I live in Rome.", "Sometimes, I live in Dublin."),
        ("I live in Rome.", "On paper, I live in Dublin."),
        ("I live in Rome.", "On weekdays, I live in Dublin."),
        ("I live in Rome.", "Every summer, I live in Dublin."),
        ("I live in Rome.", "This week, I live in Dublin."),
        ("I live in Rome.", "Probably, I live in Dublin."),
        ("I live in Rome.", "Two days a week, I live in Dublin."),
        ("I live in Rome.", "Tomorrow, I live in Dublin."),
        ("I live in Rome.", "Hopefully, I live in Dublin."),
        ("I live in Rome.", "Formerly, I live in Dublin."),
        ("Our standup is at 9am.", "Tomorrow, our standup is now at 10am."),
        ("Our standup is at 9am.", "It's a holiday on Monday, so our standup is now at 10am."),
        ("Our standup is at 9am.", "With Tom away, our standup is now at 10am."),
        ("I drink coffee.", "At work, I no longer drink coffee."),
        ("I eat meat.", "On Fridays, I no longer eat meat."),
        ("I prefer dark mode.", "On my phone, I now prefer light mode."),
        ("My wife is Anna.", "My wife is Puerto Rican."),
        ("My wife is Anna.", "My wife is Igbo."),
        ("My manager is Sarah.", "My manager is Batman."),
        ("My manager is Sarah.", "My manager is Hangry."),
        ("I live in Rome.", "My home is now in Escrow."),
        ("I work at Google.", "I work at 4K."),
        ("I eat meat.", "We no longer eat meat."),
    ],
)
def test_what_narrows_or_frames_a_statement_ends_nothing(db: WorldDB, old: str, new: str) -> None:
    assert ended(db, old, new) == []
