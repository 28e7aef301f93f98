"""Text as a start set: any word, all of them, a phrase; held in memory and through the store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import worlddb
from worlddb import InvalidInputError, QuerySpec, WorldDB
from worlddb.index.search import HeldWorlds

TEXTS = (
    "the quick brown fox",
    "brown and quick is the fox",
    "quick fox",
    "东京都庁へ行く",
    "京东方",
    "I paid $1,200.50 for the brown chair",
)


@pytest.fixture(params=["held", "wide"])
def db(request: pytest.FixtureRequest) -> Iterator[WorldDB]:
    with worlddb.open(":memory:", embedder="none") as opened:
        with opened.transaction() as tx:
            for text in TEXTS:
                tx.create_node(type="Fact", content=text)
        if request.param == "wide":
            opened.engine.search._interiors = HeldWorlds(held_max=0)
        yield opened


def found(db: WorldDB, text: str, match: worlddb.TextMatch = "any") -> set[str]:
    return {node.content for node in db.query().text(text, match).execute()}


def test_any_word_will_do_unless_told_otherwise(db: WorldDB) -> None:
    assert found(db, "quick brown") == {*TEXTS[:3], TEXTS[5]}


def test_all_words_must_be_there(db: WorldDB) -> None:
    assert found(db, "quick brown", "all") == set(TEXTS[:2])


def test_a_phrase_has_its_words_one_after_the_other(db: WorldDB) -> None:
    assert found(db, "quick brown", "phrase") == {TEXTS[0]}
    assert found(db, "brown quick", "phrase") == set()


def test_stop_words_count_in_a_phrase(db: WorldDB) -> None:
    assert found(db, "is the fox", "phrase") == {TEXTS[1]}


def test_a_phrase_of_a_script_without_spaces_is_found(db: WorldDB) -> None:
    assert found(db, "东京都", "phrase") == {TEXTS[3]}
    assert found(db, "东京", "any") == {TEXTS[3]}


def test_an_amount_is_found_however_it_is_written(db: WorldDB) -> None:
    assert found(db, "1200.50", "all") == {TEXTS[5]}


@pytest.mark.parametrize("text", ['quick" OR "chair', "name : quick", "quick NOT fox", "qu*", "^a"])
def test_no_word_is_syntax(db: WorldDB, text: str) -> None:
    assert found(db, text, "phrase") == set()


def test_a_spec_says_how_to_match(db: WorldDB) -> None:
    spec = QuerySpec.from_dict({"text": "quick brown", "match": "phrase"})
    assert [node.content for node in db.run(spec)] == [TEXTS[0]]
    assert QuerySpec.from_dict(spec.to_dict()) == spec


def test_an_unknown_way_to_match_is_refused(db: WorldDB) -> None:
    with pytest.raises(InvalidInputError, match="any, all, phrase"):
        db.query().text("quick", "some")  # type: ignore[arg-type]
