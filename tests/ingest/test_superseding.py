"""Superseding: a new fact ends the one it replaces, and no other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import worlddb
from thinning import examples
from worlddb import AsOf, Draft, DraftEdge, DraftNode, Memory, Message, NodeDraft, WorldDB
from worlddb.claims.claim import adds_up, agree, claim_metadata
from worlddb.claims.claim_edges import NewClaims, standing_claims
from worlddb.model.address import ROOT_ID, Id
from worlddb.model.inputs import to_micros
from worlddb.model.records import NOW, Span
from worlddb.models.model_tasks import LlmExtractor
from worlddb.view.visibility import moment_of


def day(year: int, month: int = 1) -> datetime:
    return datetime(year, month, 1, 12, tzinfo=UTC)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[WorldDB]:
    with worlddb.open(tmp_path / "a.db", durability="normal", embedder="none") as opened:
        yield opened


def say(db: WorldDB, text: str, at: datetime, **options: object) -> worlddb.Ingested:
    return db.ingest(text, at=at, recluster="off", **options)  # type: ignore[arg-type]


def live(db: WorldDB) -> list[str]:
    found = db.query().filter_type("Memory").execute()
    return sorted(node.content for node in found)


class Model:
    """An extractor that tells of a text what a model told it: lines of subject|relation|value."""

    name = "model"

    def __init__(self, *told: tuple[str, str, str], functional: bool = True) -> None:
        self.told = told
        self.functional = functional
        self.quoted = True
        self.begins: datetime | None = None

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        text = messages[0].text
        nodes = [DraftNode(key="memory", type="Memory", content=text, created_at=at, valid_from=at)]
        edges = []
        span = Span(message=0, start=0, end=len(text), text=text)
        for number, (subject, relation, value) in enumerate(self.told):
            fact = f"fact:{number}"
            if subject not in {node.key for node in nodes}:
                nodes.append(DraftNode(key=subject, type="Entity", name=subject, resolvable=True))
            content = f"{subject} {relation} {value}, as of {at.year}."
            begins = self.begins or at
            nodes.append(
                DraftNode(key=fact, type="Fact", content=content, created_at=at, valid_from=begins)
            )
            edges.append(DraftEdge(type="derived_from", source=fact, target="memory"))
            said = claim_metadata(relation, value, self.functional)
            spans = (span,) if self.quoted else ()
            edges.append(
                DraftEdge(type="refers_to", source=fact, target=subject, metadata=said, spans=spans)
            )
        return Draft(nodes=tuple(nodes), edges=tuple(edges))


def facts(db: WorldDB) -> list[str]:
    return sorted(node.content for node in db.query().filter_type("Fact").execute())


def tell(db: WorldDB, told: tuple[str, str, str], at: datetime, **options: object) -> Id:
    """Ingest one fact of a model, and return its id."""
    model = Model(told)
    for name in ("quoted", "begins", "functional"):
        if name in options:
            setattr(model, name, options.pop(name))
    text = f"{' '.join(told)} as told at {at:%Y-%m}"
    ingested = say(db, text, at, extractor=model, **options)
    return next(ident for ident in ingested.memories if db.get(ident).type == "Fact")


def told_by_a_model(text: str, quote: str, relation: str, value: str) -> str:
    """Return the answer of a language model that tells one functional fact of the user."""
    fact = {"text": text, "subject": "user", "quote": quote, "relation": relation, "value": value}
    return json.dumps({"facts": [{**fact, "functional": True}]})


# -- by the rules ----------------------------------------------------------------------------------


def test_moving_ends_where_one_lived_with_evidence(db: WorldDB) -> None:
    rome = say(db, "I live in Rome.", day(2024))
    oslo = say(db, "I moved to Oslo.", day(2025))
    assert oslo.superseded == rome.memories
    assert db.get(rome.memories[0]).valid_to == day(2025)
    (edge,) = db.edges(oslo.memories[0], types=["supersedes"])
    assert edge.target == rome.memories[0]
    assert edge.metadata == {
        "relation": "lives in",
        "was": "Rome",
        "now": "Oslo",
        "evidence": "I moved to Oslo.",
    }
    assert db.check() == []


def test_recall_shows_the_present_and_each_time_its_own(db: WorldDB) -> None:
    say(db, "I live in Rome.", day(2024))
    before = max(commit.time for commit in db.log())
    say(db, "I live in Oslo.", day(2025))

    def shown(as_of: AsOf) -> list[str]:
        return [hit.node.content for hit in db.recall("where do I live", as_of=as_of)]

    assert shown(AsOf()) == ["I live in Oslo."]
    assert shown(AsOf(valid=day(2024, 6))) == ["I live in Rome."]
    assert shown(AsOf(valid=day(2025, 6))) == ["I live in Oslo."]
    assert shown(AsOf(valid=day(2025, 6), known=before)) == ["I live in Rome."]


def test_a_chain_that_moves_back_is_a_new_fact_each_time(db: WorldDB) -> None:
    say(db, "I live in Rome.", day(2022))
    say(db, "I live in Oslo.", day(2023))
    again = say(db, "I live in Rome.", day(2024))
    assert again.created
    assert live(db) == ["I live in Rome."]
    assert db.get(again.memories[0]).valid_from == day(2024)
    assert db.check() == []


def test_no_longer_ends_a_fact_without_a_new_one_and_can_be_taken_back(db: WorldDB) -> None:
    say(db, "I work at Google.", day(2022))
    say(db, "I work at Google, and I like it.", day(2022, 2))
    left = say(db, "I no longer work at Google.", day(2023))
    assert len(left.superseded) == 2
    assert "I work at Google." not in live(db)
    other = say(db, "I no longer work at Netflix.", day(2023, 2))
    assert other.superseded == ()
    back = say(db, "I work at Google.", day(2024))
    assert back.superseded == left.memories
    elsewhere = say(db, "I work at Spotify.", day(2025))
    assert elsewhere.superseded == back.memories
    assert "I no longer work at Netflix." in live(db)


def test_of_a_text_that_says_more_only_the_sentence_ends_as_a_fact(db: WorldDB) -> None:
    long = "I like tea. I live in Rome with my cat. Tom called."
    first = say(db, long, day(2024))
    oslo = say(db, "I moved to Oslo.", day(2025))
    assert live(db) == [long, "I moved to Oslo."]
    (ended,) = oslo.superseded
    fact = db.get(ended)
    assert (fact.type, fact.content) == ("Fact", "I live in Rome")
    assert (fact.valid_from, fact.valid_to) == (day(2024), day(2025))
    assert fact.parent == db.get(first.memories[0]).parent
    (source,) = db.edges(ended, types=["derived_from"])
    assert source.target == first.memories[0]
    third = say(db, "I moved to Paris.", day(2026))
    assert third.superseded == oslo.memories
    assert len(db.edges(ended, direction="in", types=["supersedes"])) == 1  # not once more
    assert db.check() == []


def test_two_claims_of_one_sentence_end_and_are_ended_each_for_itself(db: WorldDB) -> None:
    oslo = say(db, "I live in Oslo.", day(2023))
    tern = say(db, "I work at Tern.", day(2023, 2))
    both = say(db, "User lives in Rome and works at Kolibri.", day(2024))
    assert set(both.superseded) == {*oslo.memories, *tern.memories}
    paris = say(db, "I moved to Paris.", day(2025))
    (ended,) = paris.superseded
    assert db.get(ended).content == "User lives in Rome"
    assert db.get(both.memories[0]).valid_to is None
    ibis = say(db, "I work at Ibis and live in Paris.", day(2026))
    (ended,) = ibis.superseded
    assert (db.get(ended).content, db.get(ended).valid_to) == ("works at Kolibri.", day(2026))
    assert db.get(paris.memories[0]).valid_to is None
    assert db.check() == []


def test_turns_of_one_chat_replace_each_other_in_their_order(db: WorldDB) -> None:
    told = db.ingest(
        [
            {"role": "user", "content": "I live in Rome."},
            {"role": "assistant", "content": "How nice!"},
            {"role": "user", "content": "Sorry. I moved to Oslo."},
        ],
        at=day(2024),
        recluster="off",
    )
    (ended,) = told.superseded
    assert db.get(ended).content == "I live in Rome."
    assert db.check() == []


def test_a_date_in_the_text_is_where_the_old_fact_ends(db: WorldDB) -> None:
    rome = say(db, "I live in Rome.", day(2024))
    say(db, "I moved to Oslo in March 2024.", day(2025))
    ends = db.get(rome.memories[0]).valid_to
    assert ends == datetime(2024, 3, 31, tzinfo=UTC)


NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Porto.", "I moved to Lisbon yesterday."),
        ("I live in Porto.", "I moved to Lisbon on May 20."),
        ("I live in Porto.", "I moved to Lisbon last week."),
        ("I live in Porto. Tom called.", "I've lived in Lisbon since last week."),
        ("I work at Google.", "I started a new job at Netflix yesterday."),
        ("I work at Google.", "I quit my job at Google yesterday."),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_news_ends_what_was_said_shortly_before_although_it_names_an_earlier_day(
    db: WorldDB, old: str, new: str, late: bool
) -> None:
    said = [(old, NOON), (new, NOON + timedelta(hours=1))]
    told = [say(db, text, at) for text, at in (reversed(said) if late else said)]
    (ended,) = told[1].superseded
    node = db.get(ended)
    assert node.content == old.removesuffix(" Tom called.")
    # Not the day before, when it had not begun.
    assert (node.valid_from, node.valid_to) == (NOON, NOON + timedelta(hours=1))
    half = [
        found.content for found in db.query().as_of(valid=NOON + timedelta(minutes=1)).execute()
    ]
    assert old.removesuffix(" Tom called.") in half
    assert db.check() == []


@pytest.mark.parametrize("more", ["", " Tom called."])
def test_no_memory_ends_before_it_is_valid_whatever_days_are_named(db: WorldDB, more: str) -> None:
    say(db, f"I've lived in Porto since 2020.{more}", NOON)
    later = NOON + timedelta(days=1)
    (ended,) = say(db, "I moved to Lisbon in March 2025.", later).superseded
    node = db.get(ended)
    # The sentence of a longer text is a fact of its own, which was true since 2020.
    wanted = datetime(2025, 3, 31, tzinfo=UTC) if more else later
    assert node.valid_to == wanted
    assert node.valid_from < node.valid_to
    assert db.check() == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I moved to Porto.", "I moved to Lisbon yesterday."),
        ("I now live in Porto.", "I moved to Lisbon yesterday."),
        ("I live in Porto.", "I moved to Lisbon in March 2026."),
        ("I live in Porto.", "I've lived in Lisbon since 2010."),
        ("I live in Porto.", "Sarah moved to Lisbon yesterday."),
        ("I live in Porto.", "I flew to Lisbon yesterday."),
    ],
)
def test_history_and_what_a_later_change_was_told_of_end_nothing(
    db: WorldDB, old: str, new: str
) -> None:
    first = say(db, old, NOON)
    assert say(db, new, NOON + timedelta(hours=1)).superseded == ()
    assert db.get(first.memories[0]).valid_to is None


def test_history_told_late_ends_where_the_known_change_begins(db: WorldDB) -> None:
    first = say(db, "I moved to Porto on May 19.", NOON)
    late = say(db, "I moved to Lisbon on May 18.", NOON + timedelta(hours=1))
    (ended,) = late.superseded
    fact = db.get(ended)
    assert fact.type == "Fact"
    assert fact.valid_to is not None
    assert (fact.valid_from.day, fact.valid_to.day) == (18, 19)
    # Both texts stay: each tells of a day on which it was so.
    assert db.get(first.memories[0]).valid_to is None
    assert db.get(late.memories[0]).valid_to is None
    (hit,) = (hit for hit in db.recall("Did I move to Lisbon?") if hit.id == late.memories[0])
    assert [old.by for old in hit.outdated] == [first.memories[0]]
    assert db.check() == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Rome.", "Sarah lives in Oslo."),
        ("Sarah Chen lives in Rome.", "Sarah Miller lives in Oslo."),
        ("I live in Rome.", "I work at Google."),
        ("I live in Rome.", "I visited Oslo."),
        ("I visited Rome.", "I visited Oslo."),
        ("I have been to Rome.", "I have been to Oslo."),
        ("I like tea.", "I like coffee."),
        ("I speak French.", "I speak Spanish."),
        ("Tom is my friend.", "Sarah is my friend."),
        ("My favorite color is green.", "My favorite food is pizza."),
        ("My email is a@x.org.", "My work email is b@x.org."),
        ("My wife is Anna.", "My manager is Priya."),
        ("I live in Oslo.", "I live in Oslo, Norway."),
        ("I live in Norway.", "I live in Oslo."),
        ("I live in Oslo.", "I live in Norway."),
        ("I live in Tokyo.", "I live in Harajuku."),
        ("I live in Harajuku.", "I live in Tokyo."),
        ("My manager is Priya.", "My manager is Priya Shah."),
        ("My phone number is 555-123-4567.", "My phone number is +1 555 123 4567."),
        ("I live in Rome.", "I used to live in Oslo."),
        ("I live in Rome.", "I lived in Oslo from 2010 to 2014."),
        ("I live in Rome.", "I'll move to Oslo."),
        ("I live in Rome.", "Do you think I live in Oslo?"),
        ("I live in Rome.", "If I live in Oslo, I need a coat."),
        ("I live in Rome.", "She said I live in Oslo."),
        ("I live in Rome.", "I don't live in Oslo."),
        ("I live in Rome.", "I no longer live in Oslo."),
        ("I live in Rome.", "Yes, I live in Rome."),
        ("I live in Rome.", "I moved to Oslo in 2010."),
        ("I live in Rome.", "Sarah lives in Oslo and works at Google."),
        ("I live in Rome.", "I used to live in Oslo and work at Google."),
        ("I live in Rome.", "If I live in Oslo and work at Google, I need a coat."),
        ("I live in Rome.", "I don't live in Oslo and work at Google."),
        ("I work at Google.", "I no longer live in Rome and work at Tern."),
    ],
)
def test_what_is_not_replaced_stays(db: WorldDB, old: str, new: str) -> None:
    first = say(db, old, day(2024))
    assert say(db, new, day(2025)).superseded == ()
    assert db.get(first.memories[0]).valid_to is None
    assert live(db) == sorted([old, new])


def test_the_order_of_writing_does_not_matter(tmp_path: Path) -> None:
    said = [("I live in Rome.", 2022), ("I live in Oslo.", 2023), ("I live in Paris.", 2024)]
    for number, order in enumerate(permutations(said)):
        with worlddb.open(tmp_path / f"{number}.db", embedder="none") as db:
            ids = {text: say(db, text, day(year)).memories[0] for text, year in order}
            assert live(db) == ["I live in Paris."]
            ends = [db.get(ids[text]).valid_to for text, _ in said]
            assert ends == [day(2023), day(2024), None]
            held = db.query().as_of(valid=day(2023, 6)).filter_type("Memory").execute()
            assert [node.content for node in held] == ["I live in Oslo."]
            assert db.check() == []


@pytest.mark.parametrize("more", ["", " Tom called."])
def test_what_was_retired_is_no_part_of_the_time_line(db: WorldDB, more: str) -> None:
    (wrong,) = say(db, f"I live in Oslo.{more}", day(2023)).memories
    with db.transaction() as tx:
        tx.retire(wrong)
    late = say(db, "I live in Rome.", day(2022))
    assert late.superseded == ()
    assert db.get(late.memories[0]).valid_to is None


def test_an_edge_of_a_known_entity_begins_when_it_was_said(db: WorldDB) -> None:
    say(db, "Anna Berg called.", day(2020))
    say(db, "Anna Berg is my sister.", day(2024))
    say(db, "Anna Berg is my sister.", day(2025))
    (anna,) = (
        node for node in db.query().filter_type("Entity").execute() if node.name == "Anna Berg"
    )
    (sister,) = db.edges(anna.id, "out")
    assert (sister.metadata["relation"], sister.valid_from) == ("sister", day(2024))


def test_a_drafted_edge_has_its_own_time(db: WorldDB) -> None:
    class Reads:
        name = "reads"

        def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
            return Draft(
                nodes=(
                    DraftNode(key="m", type="Memory", content=messages[0].text, created_at=at),
                    DraftNode(key="p", type="Entity", name="Pat", resolvable=True),
                    DraftNode(key="c", type="Place", name="Rome", resolvable=True),
                ),
                edges=(
                    DraftEdge(
                        type="refers_to",
                        source="p",
                        target="c",
                        valid_from=day(2010),
                        valid_to=day(2012),
                    ),
                ),
            )

    say(db, "Pat was in Rome from 2010 to 2012.", day(2024), extractor=Reads())
    (pat,) = (node for node in db.query().filter_type("Entity").execute() if node.name == "Pat")
    (edge,) = db.edges(pat.id, "out", include_superseded=True)
    assert (edge.valid_from, edge.valid_to) == (day(2010), day(2012))


def test_of_many_who_write_at_once_the_latest_word_stands(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    places = ("Rome", "Oslo", "Paris", "Madrid", "Berlin", "London", "Dublin", "Vienna")
    with worlddb.open(path, embedder="none") as first, worlddb.open(path, embedder="none") as other:
        say(first, "I live in Lisbon.", day(2000))

        def write(numbers: Sequence[int], db: WorldDB) -> None:
            for number in numbers:
                say(db, f"I live in {places[number]}.", day(2001 + number))

        with ThreadPoolExecutor(4) as pool:
            done = [
                pool.submit(write, range(start, len(places), 4), (first, other)[start % 2])
                for start in range(4)
            ]
            for each in done:
                each.result()
        assert live(first) == ["I live in Vienna."]
        assert first.check() == []


def test_it_can_be_switched_off(db: WorldDB) -> None:
    say(db, "I live in Rome.", day(2024))
    assert say(db, "I live in Oslo.", day(2025), supersede=False).superseded == ()
    assert len(live(db)) == 2
    with Memory(db, supersede=False, recluster="off") as memory:
        memory.write("I live in Rome.", at=day(2024))
        assert memory.write("I live in Oslo.", at=day(2025)).superseded == ()


# -- in scopes -------------------------------------------------------------------------------------


def test_users_do_not_end_each_other_s_facts(db: WorldDB) -> None:
    with Memory(db, recluster="off") as memory:
        ada = memory.write("I live in Rome.", user_id="ada", agent_id="bot", at=day(2024))
        bob = memory.write("I live in Oslo.", user_id="bob", agent_id="bot", at=day(2025))
        assert bob.superseded == ()
        root = say(db, "I live in Paris.", day(2026))
        assert root.superseded == ()
        assert memory.read(ada.id).retired is False
        moved = memory.write("I live in Madrid.", user_id="ada", run_id="r2", at=day(2026))
        assert moved.superseded == (ada.id,)


def test_what_only_a_member_of_the_world_says_stays(db: WorldDB) -> None:
    with Memory(db, recluster="off") as memory:
        of_ada = memory.write("Sarah lives in Rome.", user_id="ada", agent_id="bot", at=day(2024))
        of_bot = memory.write("Sarah lives in Oslo.", agent_id="bot", at=day(2025))
        (sarah,) = (entity for entity in of_ada.entities if entity.name == "Sarah")
        assert sarah.id in {entity.id for entity in of_bot.entities}  # the same Sarah
        assert of_bot.superseded == ()


@pytest.mark.parametrize("scope", ["agent_id", "app_id"])
def test_where_many_speak_only_the_facts_of_the_named_are_replaced(db: WorldDB, scope: str) -> None:
    with Memory(db, recluster="off", **{scope: "shop"}) as memory:  # type: ignore[arg-type]
        memory.write("I live in Rome.", at=day(2024))
        assert memory.write("I live in Oslo.", at=day(2025)).superseded == ()
        first = memory.write("Sarah lives in Rome.", at=day(2024))
        assert memory.write("Sarah lives in Oslo.", at=day(2025)).superseded == (first.id,)


def test_a_fact_of_a_member_is_in_the_same_scopes_as_what_it_was_read_from(db: WorldDB) -> None:
    with Memory(db, recluster="off") as memory:
        memory.write("I like tea. I live in Rome.", user_id="a", agent_id="b", at=day(2024))
        moved = memory.write("I moved to Oslo.", user_id="a", agent_id="b", at=day(2025))
        (ended,) = moved.superseded
        shown = memory.read(ended, user_id="a", agent_id="b")
        assert shown.retired
        assert {str(name) for name in shown.scopes} == {"user:a", "agent:b"}


def test_an_amendment_supersedes_what_it_amends_once(db: WorldDB) -> None:
    with Memory(db, recluster="off") as memory:
        old = memory.write("I live in Rome.", at=day(2024))
        new = memory.amend(old.id, "I live in Oslo.", at=day(2025))
        assert new.superseded == (old.id,)
        assert memory.read(new.id).supersedes == (old.id,)


# -- by a model ------------------------------------------------------------------------------------


def test_a_model_s_fact_ends_the_earlier_one_and_leaves_the_memories(db: WorldDB) -> None:
    old = tell(db, ("Ada", "lives in", "Rome"), day(2024))
    new = tell(db, ("Ada", "LIVES_IN", "Oslo"), day(2025))
    assert facts(db) == ["Ada LIVES_IN Oslo, as of 2025."]
    assert len(live(db)) == 2
    (edge,) = db.edges(new, types=["supersedes"])
    assert (edge.target, edge.metadata["was"], edge.metadata["now"]) == (old, "Rome", "Oslo")
    assert edge.metadata["evidence"] == "Ada LIVES_IN Oslo as told at 2025-01"


def test_a_fact_ends_where_the_new_one_began_not_where_it_was_told(db: WorldDB) -> None:
    old = tell(db, ("Ada", "lives in", "Rome"), day(2022))
    tell(db, ("Ada", "lives in", "Oslo"), day(2025), begins=day(2024))
    assert db.get(old).valid_to == day(2024)


@pytest.mark.parametrize(
    ("told", "options"),
    [
        (("Ada", "visited", "Oslo"), {}),
        (("Ada", "lives in", "the Rome!"), {}),
        (("Bob", "lives in", "Oslo"), {}),
        (("Ada", "works at", "Oslo"), {}),
        (("Ada", "lives in", "Oslo"), {"functional": False}),
        (("Ada", "lives in", "Oslo"), {"quoted": False}),
        (("Ada", "lives in", "Oslo"), {"begins": day(2010)}),
        (("Ada", "lives in", "Oslo"), {"begins": day(2030)}),
    ],
)
def test_a_model_s_fact_that_replaces_nothing_ends_nothing(
    db: WorldDB, told: tuple[str, str, str], options: dict[str, object]
) -> None:
    rome = tell(db, ("Ada", "lives in", "Rome"), day(2024))
    seen = tell(db, ("Ada", "visited", "Rome"), day(2024, 2))
    tell(db, told, day(2025), **options)
    assert db.get(rome).valid_to is None
    assert db.get(seen).valid_to is None


def test_what_has_ended_is_not_touched_again(db: WorldDB) -> None:
    old = tell(db, ("Ada", "lives in", "Rome"), day(2020))
    with db.transaction() as tx:
        tx.retire(old, at=day(2021))
    tell(db, ("Ada", "lives in", "Oslo"), day(2025))
    assert db.get(old).valid_to == day(2021)
    assert db.edges(old, direction="in", types=["supersedes"]) == []


def test_a_namesake_counts_only_after_the_merge_was_accepted(db: WorldDB) -> None:
    first = tell(db, ("Sarah Chen", "lives in", "Rome"), day(2022))
    second = tell(db, ("Sara Chen", "lives in", "Oslo"), day(2023))
    assert db.get(first).valid_to is None
    (proposal,) = db.proposals()
    db.accept_merge(proposal.edge)
    assert db.get(first).valid_to == day(2023)
    third = tell(db, ("Sara Chen", "lives in", "Paris"), day(2024))
    assert db.get(second).valid_to == day(2024)
    assert db.get(third).valid_to is None


def test_a_text_with_more_in_it_that_a_model_hangs_a_claim_on_is_not_ended(db: WorldDB) -> None:
    class Careless(Model):
        def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
            draft = super().extract(messages, at)
            edges = tuple(
                DraftEdge(
                    type=edge.type,
                    source="memory",
                    target=edge.target,
                    metadata=edge.metadata,
                    spans=edge.spans,
                )
                for edge in draft.edges
                if edge.type == "refers_to"
            )
            return Draft(nodes=draft.nodes, edges=edges)

    old = say(db, "Ada said much", day(2022), extractor=Careless(("Ada", "lives in", "Rome")))
    say(db, "Ada said more", day(2023), extractor=Careless(("Ada", "lives in", "Oslo")))
    assert db.get(old.memories[0]).valid_to is None


@pytest.mark.parametrize(
    ("quote", "ended"),
    [
        ("I live in Oslo", True),
        ("I moved to Oslo", True),
        ("I was promoted and live in Oslo", True),
        ("I used to live in Oslo", False),
        ("I might live in Oslo", False),
        ("I moved to Oslo this week", True),
        ("I live in Oslo this week", False),
        ("I live in Oslo on Fridays", False),
        ("if I live in Oslo", False),
        ("She said I live in Oslo", False),
        ("I don't live in Oslo", False),
        ("Do I live in Oslo?", False),
        ("words that are not there", False),
    ],
)
def test_what_a_language_model_makes_of_a_doubtful_sentence_ends_nothing(
    db: WorldDB, quote: str, ended: bool
) -> None:
    def extractor(value: str, said: str) -> LlmExtractor:
        answer = told_by_a_model(f"The user lives in {value}.", said, "lives in", value)
        return LlmExtractor(lambda messages: answer)

    say(db, "I live in Rome", day(2024), extractor=extractor("Rome", "I live in Rome"))
    text = "Well. She said I live in Oslo" if quote.startswith("words") else f"Well. {quote}"
    told = say(db, text, day(2025), extractor=extractor("Oslo", quote))
    assert [db.get(ident).content for ident in told.superseded] == (
        ["The user lives in Rome."] if ended else []
    )


def test_a_language_model_s_no_longer_ends_the_fact_it_names(db: WorldDB) -> None:
    def model(value: str, quote: str) -> LlmExtractor:
        answer = told_by_a_model(quote, quote, "works at", value)
        return LlmExtractor(lambda messages: answer)

    first = say(db, "I work at Tern now", day(2024), extractor=model("Tern", "I work at Tern"))
    left = "I no longer work at Tern"
    told = say(db, f"Sad. {left}", day(2025), extractor=model("Tern", left))
    assert set(told.superseded) <= set(first.memories)
    assert len(told.superseded) == 1


def test_what_waited_for_a_model_takes_its_place_in_time(db: WorldDB) -> None:
    def broken(messages: object) -> str:
        raise ConnectionError("down")

    def working(messages: object) -> str:
        return told_by_a_model("The user lives in Rome.", "I live in Rome", "lives in", "Rome")

    say(db, "I live in Rome, you know", day(2024), extractor=LlmExtractor(broken))
    say(db, "I live in Oslo.", day(2025))
    db.extract_pending(LlmExtractor(working), recluster="off")
    (fact,) = db.query().filter_type("Fact").include_superseded().execute()
    assert (fact.valid_from, fact.valid_to) == (day(2024), day(2025))
    assert "I live in Oslo." in live(db)


# -- whatever is said ------------------------------------------------------------------------------

SUBJECTS = ("Ada", "Bob")
RELATIONS = ("lives in", "works at", "visited", "speaks")
VALUES = ("Rome", "Oslo", "Paris")
SAID = st.lists(
    st.tuples(
        st.sampled_from(SUBJECTS),
        st.sampled_from(RELATIONS),
        st.sampled_from(VALUES),
        st.integers(2000, 2020),
    ),
    max_size=10,
    unique_by=lambda item: item[3],
)


@settings(max_examples=examples(40, 15), derandomize=True, deadline=None, database=None)
@given(SAID)
def test_a_fact_is_only_ever_ended_by_a_later_one_of_its_subject_and_relation(
    said: list[tuple[str, str, str, int]],
) -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        ids = {item: tell(db, item[:3], day(item[3])) for item in said}
        by_id = {ident: item for item, ident in ids.items()}
        for item, ident in ids.items():
            node = db.get(ident)
            edges = db.edges(ident, direction="in", types=["supersedes"])
            assert (node.valid_to is not None) == bool(edges)
            for edge in edges:
                subject, relation, value, year = by_id[edge.source]
                assert (subject, relation) == item[:2]
                assert relation in ("lives in", "works at")
                assert value != item[2]
                assert year > item[3]
                assert node.valid_to is not None
                assert node.valid_to <= day(year)
        for subject in SUBJECTS:
            for relation in RELATIONS[:2]:
                about = [item for item in said if item[:2] == (subject, relation)]
                values = {item[2] for item in about if db.get(ids[item]).valid_to is None}
                last = max(about, key=lambda item: item[3], default=None)
                assert values == ({last[2]} if last else set())
        assert db.check() == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Oslo", "oslo", True),
        ("The Hague", "Hague", True),
        ("Oslo", "Oslo, Norway", True),
        ("NYC", "New York", False),
        ("York", "New York", True),
        ("Oslo", "Rome", False),
        ("😀", "😢", False),
    ],
)
def test_values_agree_if_one_only_says_more(one: str, other: str, same: bool) -> None:
    assert agree(one, other) is agree(other, one) is same


def test_what_adds_up_is_never_functional() -> None:
    assert all(map(adds_up, ("visited", "Likes", "speaks", "has been to", "friend of", "favorite")))
    assert not any(map(adds_up, ("lives in", "works at", "favorite color", "studies at", "email")))


@pytest.mark.parametrize("by", ["memory", "engine"])
def test_what_is_said_after_the_clock_was_set_back_is_the_later_statement(by: str) -> None:
    now = [1_000_000_000_000_000]
    with worlddb.Memory(":memory:", user_id="ada", clock=lambda: now[0]) as memory:
        write = memory.write if by == "memory" else memory.db.ingest
        write("I live in Rome.")
        now[0] -= 5_000_000
        write("I moved to Paris.")
        scope = None if by == "engine" else memory.list_scopes()[0].id
        best = memory.db.recall("Where do I live?", scope=scope, k=1)[0]
        assert best.node.content == "I moved to Paris."


def test_a_sentence_reads_no_more_of_a_long_time_line_than_it_can_change(db: WorldDB) -> None:
    towns = ("Rome", "Oslo", "Lima", "Bern")
    for number in range(20):
        said = say(db, f"I moved to {towns[number % 4]}.", day(2000 + number))
        assert len(said.superseded) == (number > 0)
    user = next(node for node in db.query().execute() if node.name == "user")
    now = to_micros(day(2022), "now")
    with db.engine.store.read() as reader:
        about = ROOT_ID, moment_of(reader, NOW, now)
        early = to_micros(day(1990), "early")
        first, last = (
            standing_claims(
                reader, {user.id: {"lives in": NewClaims(times={(time, time)})}}, *about
            )[user.id]
            for time in (early, now)
        )
    assert [len(found) for found in (first, last)] == [20, 1]
    # Told late, a stay of one month in the middle ends what was before it, and nothing else.
    late = say(db, "I moved to Kyiv.", day(2010, 6))
    assert len(late.superseded) == 2


@pytest.mark.parametrize("towns", [("Rome",), ("Rome", "Oslo")])
def test_a_long_text_reads_no_more_however_often_its_relation_was_stated(
    db: WorldDB, towns: tuple[str, ...]
) -> None:
    for number in range(20):
        town = towns[number % len(towns)]
        said = say(db, f"I live in {town}. It rained {number} times.", day(2000 + number))
        assert len(said.superseded) == (number > 0 and len(towns) > 1)
    user = next(node for node in db.query().execute() if node.name == "user")
    now = to_micros(day(2022), "now")
    with db.engine.store.read() as reader:
        row = reader.node_row(user.id)
        assert row is not None
        wanted = {'"relation":"lives in"': '"value":"Rome"'}
        rows = reader.sweep.standing([row], "refers_to", wanted, (now, now))
    # What a fact stands for, and what says the same, is not read again.
    assert len([row for row in rows if not row.stands_for]) == len(towns) - 1


def test_a_relation_can_be_stated_a_thousand_times(db: WorldDB) -> None:
    say(db, "I live in Rome.", day(2000))
    user = next(node for node in db.query().execute() if node.name == "user")
    with db.transaction(actor="test") as tx:
        drafts = [NodeDraft(type="Memory", content=f"It rained {n} times.") for n in range(1_100)]
        for number, ident in enumerate(tx.create_nodes(drafts)):
            said = claim_metadata("lives in", f"Zorb {number}", True, vague=True)
            said["text"] = drafts[number].content
            tx.write_edge("refers_to", ident, user.id, metadata=said)
    assert say(db, "I moved to Paris.", day(2040)).superseded
