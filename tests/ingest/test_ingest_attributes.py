"""Attributes of drafted nodes: kept with the node, and compared when the name comes up again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import pytest

import worlddb
from worlddb import Draft, DraftNode, Id, Ingested, InvalidInputError, Message, NodeDraft, WorldDB


class People:
    """An extractor for tests: `name; attribute=value; …` is a person."""

    name = "people"

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        name, *rest = messages[0].text.split("; ")
        attributes = dict(item.split("=", 1) for item in rest)
        node = DraftNode(key="p", type="Person", name=name, attributes=attributes, resolvable=True)
        return Draft(nodes=(node,))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[WorldDB]:
    with worlddb.open(tmp_path / "a.db", durability="normal", embedder="none") as opened:
        yield opened


def take(db: WorldDB, text: str) -> Ingested:
    return db.ingest(text, extractor=People(), recluster="off")


def told(db: WorldDB, ident: Id) -> dict[str, str]:
    return {key: str(value) for key, value in db.get(ident).metadata.items()}


def test_attributes_are_kept_in_the_metadata_of_the_node(db: WorldDB) -> None:
    (ident,) = take(db, "Ann Smith; birth_date=1990-02-03; city=Oslo; note= ").created
    assert told(db, ident) == {"attribute:birth_date": "1990-02-03", "attribute:city": "Oslo"}


def test_a_node_that_is_used_again_gets_what_is_new(db: WorldDB) -> None:
    (ident,) = take(db, "Ann Smith; birth_date=1990-02-03; city=Oslo").created
    again = take(db, "Ann Smith; birth_date=1990-02-03; city=Rome; email=ann@x.org")
    assert again.reused == (ident,)
    assert told(db, ident) == {
        "attribute:birth_date": "1990-02-03",
        "attribute:city": "Rome",
        "attribute:email": "ann@x.org",
    }
    before = len(db.log())
    take(db, "Ann Smith; birth_date=1990-02-03; city=Rome")
    assert len(db.log()) == before


def test_a_namesake_born_on_another_day_is_another(db: WorldDB) -> None:
    (one,) = take(db, "Ann Smith; birth_date=1990-02-03").created
    (other,) = take(db, "Ann Smith; birth_date=1971-11-30").created
    assert one != other
    assert take(db, "Ann Smith; birth_date=1971-11-30").reused == (other,)
    assert db.proposals() == []


def test_an_attribute_that_agrees_lifts_a_doubtful_name(db: WorldDB) -> None:
    (one,) = take(db, "Ann Smith; email=ann@x.org").created
    take(db, "Bea Jones; email=bea@x.org")
    assert take(db, "Jones").proposals == ()
    (proposal,) = take(db, "Smith; email=ann@x.org").proposals
    assert proposal.right == one
    assert proposal.evidence["attributes"] == {"agree": ["email"]}


def test_what_was_told_earlier_still_agrees(db: WorldDB) -> None:
    (one,) = take(db, "Ann Smith; email=ann@x.org; city=Oslo; birth_date=1990-02-03").created
    assert take(db, "Ann Smith; email=ann@new.org; birth_date=1990-02-03").reused == (one,)
    (proposal,) = take(db, "Smith; email=ann@x.org").proposals
    assert proposal.right == one


def test_among_many_namesakes_an_attribute_finds_the_one(db: WorldDB) -> None:
    (one,) = take(db, "Ann Smith; email=ann@x.org; birth_date=1990-02-03").created
    with db.transaction() as tx:
        tx.create_nodes(NodeDraft(type="Person", name="Ann Smith") for _ in range(150))
    outcome = take(db, "Ann Smith; email=ann@x.org; birth_date=1990-02-03")
    assert outcome.reused == (one,)


def test_attributes_survive_export_and_replay(db: WorldDB, tmp_path: Path) -> None:
    (ident,) = take(db, "Ann Smith; birth_date=1990-02-03; city=Oslo").created
    take(db, "Ann Smith; birth_date=1990-02-03; city=Rome")
    with worlddb.open(tmp_path / "b.db", embedder="none") as other:
        other.replay(db.export())
        assert other.root_state == db.root_state
        assert told(other, ident) == told(db, ident)
        assert other.check() == []
        assert take(other, "Ann Smith; birth_date=1971-11-30").reused == ()
        assert take(other, "Ann Smith; birth_date=1990-02-03; email=a@x.org").reused == (ident,)
    assert db.check() == []


def test_an_attribute_that_is_no_text_is_refused_and_nothing_is_written(db: WorldDB) -> None:
    with pytest.raises(InvalidInputError):
        take(db, "Ann Smith; city=\ud800")
    assert len(db.log()) == 1
