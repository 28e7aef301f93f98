"""Spreading: from a name to texts about it, and on to texts about what these mention."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from recall.search_stage import delete, edge, fact, found, hold_at_most, lanes, open_store
from worlddb import Hit, Id, Memory, Recall, RecallSettings, WorldDB
from worlddb.index.ranking_numbers import SCALARS
from worlddb.recall.ranker import compared, standing_out

BY_NAME = lanes("graph")
FILM, DIRECTOR, MOTHER = "Polish-Russian War", "Xawery Zulawski", "Malgorzata Braunek"
TEXTS = (
    f"{FILM}: {FILM} is a film of 2009 directed by {DIRECTOR}.",
    f"{DIRECTOR}: {DIRECTOR} is a film director. He is the son of {MOTHER}.",
    f"{MOTHER}: {MOTHER} was an actress who played in The Deluge.",
)
QUESTION = f"Who is the mother of the director of {FILM}?"


@pytest.fixture(params=[1 << 20, 0], ids=["held", "wide"])
def db(request: pytest.FixtureRequest) -> Iterator[WorldDB]:
    """Yield a store whose worlds are all held in memory, and then one where none is."""
    with open_store() as db:
        yield hold_at_most(db, request.param)


@pytest.fixture(params=[1 << 20, 0], ids=["held", "wide"])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    """Yield a memory of three texts that lead from one to the next, among others."""
    with Memory(":memory:", user_id="ada", embedder="hash", recluster="off") as memory:
        for text in TEXTS:
            memory.write(text)
        for number in range(30):
            memory.write(f"The mother of player {number} watched a war film.")
        hold_at_most(memory.db, request.param)
        yield memory


def about(db: WorldDB, name: str, text: str) -> tuple[Id, Id]:
    """Make an entity and a fact that is about it."""
    entity, said = fact(db, "", type="Entity", name=name), fact(db, text)
    edge(db, "refers_to", said, entity, metadata={"role": "about"})
    return entity, said


def path_of(hit: Hit) -> list[tuple[str, str]]:
    return [(step.relation, step.name[:20]) for step in hit.path]


def hit_with(answer: Recall, text: str) -> Hit:
    return next(hit for hit in answer if hit.node.content == text)


def test_a_chain_of_texts_comes_first_and_each_hit_tells_its_path(memory: Memory) -> None:
    answer = memory.recall(QUESTION, k=3)
    assert [hit.node.content for hit in answer] == list(TEXTS)
    last = hit_with(answer, TEXTS[2])
    assert path_of(last) == [
        ("says", FILM),
        ("about", TEXTS[0][:20]),
        ("mentions", DIRECTOR),
        ("about", TEXTS[1][:20]),
        ("mentions", MOTHER),
        ("about", TEXTS[2][:20]),
    ]
    for step in last.path[1:]:
        assert step.edge is not None
        (edge,) = (
            one for one in memory.db.edges(step.node, direction="both") if one.id == step.edge
        )
        assert step.node in (edge.source, edge.target)


def test_a_turn_on_a_path_is_told_by_its_text_and_not_by_its_speaker() -> None:
    with Memory(":memory:", embedder="none", user_id="ada") as memory:
        memory.write(messages=[{"role": "user", "content": text} for text in TEXTS])
        [told] = [hit for hit in memory.recall(QUESTION) if hit.node.content == TEXTS[1]]
    assert (told.path[-1].name, told.node.name) == (TEXTS[1][:60], "user")


def test_without_the_graph_lane_the_chain_is_not_followed(memory: Memory) -> None:
    settings = RecallSettings(weights={"text": 1.0, "vector": 1.0})
    answer = memory.recall(QUESTION, k=3, settings=settings)
    assert [hit.node.content for hit in answer] != list(TEXTS)
    assert not any(hit.path for hit in answer)


def test_a_text_about_a_name_is_ahead_of_one_that_mentions_it(db: WorldDB) -> None:
    entity, subject = about(db, "Ada", "a first thing")
    mention = fact(db, "a second thing")
    edge(db, "refers_to", mention, entity)
    answer = db.recall("Ada", settings=BY_NAME)
    assert found(answer) == [subject, mention]
    first, second = (hit.lanes["graph"].score for hit in answer)
    assert first == 1.0, "the name gives it all it can; what mentions the name leads nowhere new"
    assert second == SCALARS.mention_share


@pytest.mark.parametrize("turns", [False, True])
def test_a_name_speaks_for_what_says_the_rest_of_the_question(turns: bool) -> None:
    texts = (
        "My sister Ana is visiting from Porto in May, she can't eat nuts.",
        "The new dishwasher guy, Sami, speaks Arabic and French.",
        "Pieter wants the croissant batch to be 120 pieces on weekends, 80 on weekdays.",
        "Pieter is leaving in June; Lotte will be head of pastry.",
        "Sami gave me the book back yesterday.",
        "Ana's flight lands at Zaventem on May 9 at 17:40.",
    )
    questions = {
        "What can't Ana eat?": texts[0],
        "Which languages does Sami speak?": texts[1],
        "How many pieces does Pieter want on weekdays?": texts[2],
        "When does Pieter leave?": texts[3],
        "When does Ana's flight land?": texts[5],
    }
    with Memory(":memory:") as memory:
        for text in texts:
            if turns:
                memory.write(messages=[{"role": "user", "content": text}], user_id="marta")
            else:
                memory.write(text, user_id="marta")
        plain = RecallSettings(recency=False)  # Which of two texts is newer has tests of its own.
        found = {
            asked: memory.recall(asked, user_id="marta", settings=plain)[0].node.content
            for asked in questions
        }
    assert found == questions


def test_the_texts_about_a_name_share_what_it_gives(db: WorldDB) -> None:
    entity, _ = about(db, "Ada", "a first thing")
    for number in range(3):
        edge(db, "refers_to", fact(db, f"thing {number}"), entity, metadata={"role": "about"})
    answer = db.recall("Ada", settings=BY_NAME)
    assert [hit.lanes["graph"].score for hit in answer] == [0.5] * 4


def test_a_hub_passes_nothing_on(db: WorldDB) -> None:
    _, first = about(db, "Ada", "a first thing")
    hub, _ = about(db, "Everybody", "one of many")
    edge(db, "refers_to", first, hub)
    assert len(db.recall("Ada", settings=BY_NAME)) == 2
    for number in range(SCALARS.hub_max):
        edge(db, "refers_to", fact(db, f"thing {number}"), hub, metadata={"role": "about"})
    assert found(db.recall("Ada", settings=BY_NAME)) == [first]


def test_what_has_ended_makes_no_hub(db: WorldDB) -> None:
    """As many edges as a hub has, but few of them hold: the newest are all over."""
    _, first = about(db, "Ada", "a first thing")
    other, second = about(db, "Bob", "a second thing")
    edge(db, "refers_to", first, other)
    texts = [fact(db, f"thing {number}") for number in range(SCALARS.hub_max)]
    now = datetime.now(UTC)
    ended = {"valid_from": now - timedelta(days=9), "valid_to": now - timedelta(days=1)}
    for text in texts:
        edge(db, "refers_to", text, other, metadata={"role": "about"}, **ended)
    assert found(db.recall("Ada", settings=BY_NAME)) == [first, second]


def test_an_edge_that_does_not_hold_leads_nowhere(db: WorldDB) -> None:
    _, first = about(db, "Ada", "a first thing")
    other, second = about(db, "Bob", "a second thing")
    now = datetime.now(UTC)
    with db.transaction() as tx:
        link = tx.write_edge("refers_to", first, other, valid_from=now - timedelta(days=9))
    assert found(db.recall("Ada", settings=BY_NAME)) == [first, second]
    with db.transaction() as tx:
        tx.delete_edge(link.id)
    assert found(db.recall("Ada", settings=BY_NAME)) == [first]


def test_an_accepted_class_is_one_subject(db: WorldDB) -> None:
    _, first = about(db, "Ada", "a first thing")
    bob, _ = about(db, "Bob", "a second thing")
    robert, third = about(db, "Robert", "a third thing")
    edge(db, "refers_to", first, bob)
    same = edge(db, "same_as", bob, robert)
    assert third not in found(db.recall("Ada", settings=BY_NAME))
    db.accept_merge(same)
    assert third in found(db.recall("Ada", settings=BY_NAME))


def test_what_is_outside_the_scope_is_not_led_to() -> None:
    with Memory(":memory:", embedder="hash", recluster="off") as memory:
        memory.write(TEXTS[0], user_id="ada")
        memory.write(TEXTS[1], user_id="bob")
        answer = memory.recall(QUESTION, user_id="ada")
        assert [hit.node.content for hit in answer] == [TEXTS[0]]


def test_a_name_that_became_known_later_is_followed(db: WorldDB) -> None:
    _, first = about(db, "Ada", "a thing that Grace Hopper knew")
    _, second = about(db, "Grace Hopper", "a second thing")
    answer = db.recall("Ada", settings=BY_NAME)
    assert found(answer) == [first, second]
    assert [step.relation for step in answer[1].path] == ["says", "about", "says", "about"]


def test_a_claim_is_found_in_a_large_scope(memory: Memory) -> None:
    memory.write("I live in Rome.", at="2025-01-01T00:00:00Z")
    memory.write("I moved to Paris.", at="2025-02-01T00:00:00Z")
    assert memory.recall("Where do I live?")[0].node.content == "I moved to Paris."


def test_a_statement_is_about_what_it_opens_with_even_if_that_is_no_name(memory: Memory) -> None:
    memory.write("Ida Berg plays the game of water polo.", at="2025-01-01T00:00:00Z")
    memory.write("water polo was invented in Scotland.", at="2025-01-02T00:00:00Z")
    answer = memory.recall("In which country was the game of Ida Berg invented?", k=2)
    assert [hit.node.content for hit in answer] == [
        "Ida Berg plays the game of water polo.",
        "water polo was invented in Scotland.",
    ]


def test_a_chain_follows_the_latest_fact(memory: Memory) -> None:
    memory.write("Ida Berg is married to Tom Hill.", at="2025-01-01T00:00:00Z")
    memory.write("Tom Hill is a citizen of Norway.", at="2025-01-02T00:00:00Z")
    memory.write("Bo Lind is a citizen of Peru.", at="2025-01-03T00:00:00Z")
    memory.write("Ida Berg is married to Bo Lind.", at="2025-01-04T00:00:00Z")
    answer = memory.recall("What is the country of citizenship of the spouse of Ida Berg?", k=10)
    found = [hit.node.content for hit in answer]
    assert found[0] == "Ida Berg is married to Bo Lind."
    old, new = "Tom Hill is a citizen of Norway.", "Bo Lind is a citizen of Peru."
    assert new in found
    assert old not in found[: found.index(new)]


# -- inside a world --------------------------------------------------------------------------------


def test_a_text_gives_nothing_to_one_that_opens_like_it(memory: Memory) -> None:
    old, new = (f"The patron saint of Orlowo is {saint}." for saint in ("Roch", "Barbara"))
    for number, text in enumerate((old, new)):
        memory.write(text, at=datetime(2024, 1, 1 + number, tzinfo=UTC))
    answer = memory.recall("Who is the patron saint of Orlowo?", k=5)
    assert [hit.node.content for hit in answer][:2] == [new, old]
    assert all(hit_with(answer, text).weighed["spread"] == 0 for text in (old, new))


def test_a_name_inside_what_a_text_opens_with_is_not_that_text(db: WorldDB) -> None:
    fact(db, "The harbour of Lower Castle is small.")
    assert found(db.recall("Who is the mayor of Lower Castle?", settings=BY_NAME)) == []


def test_no_way_leads_through_a_node_outside_the_world(db: WorldDB) -> None:
    mine = fact(db, "", type="Scope", name="mine")
    ada = fact(db, "", type="Entity", name="Ada", parent=mine)
    outside = fact(db, "", type="Entity", name="Zork")
    first, second = fact(db, "a first thing", parent=mine), fact(db, "another", parent=mine)
    edge(db, "refers_to", first, ada, metadata={"role": "about"})
    edge(db, "refers_to", first, outside)
    edge(db, "refers_to", second, outside, metadata={"role": "about"})
    assert found(db.recall("Ada", scope=mine, settings=BY_NAME)) == [first]
    assert set(found(db.recall("Ada", settings=BY_NAME))) == {first, second}


def test_no_relation_leads_through_a_node_outside_the_world(db: WorldDB) -> None:
    mine = fact(db, "", type="Scope", name="mine")
    ada, bob = (fact(db, "", type="Entity", name=name, parent=mine) for name in ("Ada", "Bob"))
    outside = fact(db, "", type="Entity", name="Zork")
    first, second = fact(db, "a first thing", parent=mine), fact(db, "another", parent=mine)
    edge(db, "refers_to", first, ada, metadata={"role": "about"})
    edge(db, "refers_to", first, bob)
    edge(db, "refers_to", bob, outside, metadata={"relation": "sister"})
    edge(db, "refers_to", second, outside, metadata={"role": "about"})
    assert found(db.recall("Ada", scope=mine, settings=BY_NAME)) == [first]
    assert set(found(db.recall("Ada", settings=BY_NAME))) == {first, second}


def test_a_name_inside_only_one_of_two_worlds_does_not_count(db: WorldDB) -> None:
    mine, other = (fact(db, "", type="Scope", name=name) for name in ("mine", "other"))
    york = fact(db, "", type="Entity", name="New York", parent=mine)
    fact(db, "", type="Entity", name="New York Times", parent=mine)
    said = fact(db, "a large city", parent=mine)
    edge(db, "refers_to", said, york)
    for row in (york, said, *(fact(db, f"thing {number}") for number in range(9))):
        edge(db, "contains", other, row)
    asked = "Is New York Times good?"
    answer = db.recall(asked, scope=mine, within=[[other]], settings=BY_NAME)
    assert found(answer) == [said]


def test_a_name_that_many_texts_mention_leads_on_less(db: WorldDB) -> None:
    about(db, "Quill Ltd", "Quill Ltd makes ink.")
    rare, of_rare = about(db, "Ada Osborne", "Ada Osborne lives in Leeds.")
    common, of_common = about(db, "Belgium", "A bobsleigh team is there.")
    start = fact(db, "Quill Ltd was founded by Ada Osborne in Belgium.")
    for target in (rare, common):
        edge(db, "refers_to", start, target)
    for number in range(40):
        edge(db, "refers_to", fact(db, f"Belgium has town {number}."), common)
    answer = db.recall("Who founded Quill Ltd?", k=60)
    gains = {hit.node.id: hit.weighed.get("spread", 0.0) for hit in answer}
    assert gains[of_rare] > 1.3 * gains[of_common] > 0


@pytest.mark.parametrize("others", [2_000, 8_000])
def test_candidates_stand_out_by_all_that_are_not_gathered(others: int) -> None:
    """The best of a world, with a sample of the rest, stand out as in the whole world."""
    scores = np.random.default_rng(1).gamma(0.5, size=others)
    best, rest = np.sort(scores)[-100:], np.sort(scores)[:-100]
    whole = standing_out(np.sort(scores), 0.0, 1)
    known, usual = compared(best, rest[::4], others)
    assert known == pytest.approx(whole[-100:], rel=0.02)
    assert usual == pytest.approx(float(np.median(whole)), abs=0.05)


def test_what_is_kept_of_references_follows_new_and_deleted_ones(db: WorldDB) -> None:
    entity, first = about(db, "Anna Berg", "Tea is what she likes.")
    assert found(db.recall("Anna Berg", settings=BY_NAME)) == [first]
    second = fact(db, "Chess is a game she plays.")
    link = edge(db, "refers_to", second, entity, metadata={"role": "about"})
    assert set(found(db.recall("Anna Berg", settings=BY_NAME))) == {first, second}
    delete(db, link)
    assert found(db.recall("Anna Berg", settings=BY_NAME)) == [first]
    edge(db, "refers_to", second, entity, metadata={"role": "about"})
    assert set(found(db.recall("Anna Berg", settings=BY_NAME))) == {first, second}
    db.erase(first)
    assert found(db.recall("Anna Berg", settings=BY_NAME)) == [second]
