"""Rules: how names, aliases, relations and dates come together in one draft."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from language.english.scoring import AT, drafted, items
from worlddb.ingest.extractors import RulesExtractor, VerbatimExtractor
from worlddb.model.inputs import EPOCH
from worlddb.model.records import Draft, DraftEdge, DraftNode, Message


def node(draft: Draft, name: str) -> DraftNode:
    return next(node for node in draft.nodes if node.name == name and node.type != "Turn")


def edges(draft: Draft, source: str, target: str) -> list[DraftEdge]:
    return [edge for edge in draft.edges if (edge.source, edge.target) == (source, target)]


def test_the_nodes_of_verbatim_come_first_and_unchanged() -> None:
    messages = [Message(text="I met Sarah.", speaker="Tom"), Message(text="Nice!", speaker="Ann")]
    verbatim = VerbatimExtractor().extract(messages, AT)
    draft = RulesExtractor().extract(messages, AT)
    assert draft.nodes[: len(verbatim.nodes)] == verbatim.nodes
    assert len(draft.nodes) > len(verbatim.nodes)


def test_a_name_is_one_resolvable_node_and_one_edge_however_often_it_is_said() -> None:
    draft = drafted("I met Sarah. Sarah was happy, and I like Sarah.")
    sarah = node(draft, "Sarah")
    assert sarah.type == "Entity"
    assert sarah.resolvable
    assert [(span.start, span.end) for span in sarah.spans] == [(6, 11), (13, 18), (41, 46)]
    (edge,) = draft.edges
    assert (edge.type, edge.source, edge.target) == ("refers_to", "memory", sarah.key)
    assert edge.metadata == {"span": [6, 11], "text": "Sarah"}
    assert edge.spans == sarah.spans


def test_each_turn_that_names_somebody_refers_to_them() -> None:
    draft = drafted(("Tom", "I met Priya."), ("Ann", "Priya is great."), ("Tom", "I know."))
    priya = node(draft, "Priya")
    assert [edge.source for edge in draft.edges if edge.target == priya.key] == ["turn:0", "turn:1"]


def test_a_first_name_after_the_full_name_is_the_same_person() -> None:
    draft = drafted("I met Sarah Chen. Sarah is nice, and Chen is her own name.")
    assert node(draft, "Sarah Chen").aliases == ("Sarah", "Chen")
    assert items(draft) >= {("name", "Sarah Chen")}
    assert ("name", "Sarah") not in items(draft)


def test_a_first_name_that_two_people_share_is_neither_of_them() -> None:
    draft = drafted("I met Sarah Chen and Sarah Miller. Then Sarah left.")
    assert {name for kind, name in items(draft)} == {"Sarah Chen", "Sarah Miller", "Sarah"}


def test_a_place_is_no_short_form_of_a_longer_one() -> None:
    draft = drafted("We drove from Virginia Beach through Virginia, and from York to New York.")
    names = {item[1] for item in items(draft)}
    assert names == {"Virginia Beach", "Virginia", "York", "New York"}


def test_a_titled_surname_belongs_to_the_full_name_with_that_title() -> None:
    draft = drafted("We saw Dr. Sarah Chen. Dr. Chen was kind, Mr. Chen was not.")
    assert node(draft, "Dr. Sarah Chen").aliases == ("Dr. Chen",)
    assert ("name", "Mr. Chen") in items(draft)


def test_a_word_at_the_start_of_a_sentence_is_a_name_if_it_is_one_elsewhere() -> None:
    assert items(drafted("Zubrowka is cold.")) == set()
    assert items(drafted("Zubrowka is cold. I moved to Zubrowka.")) == {("name", "Zubrowka")}
    later = drafted(("Tom", "Zubrowka is cold."), ("Ann", "I love to be in Zubrowka."))
    place = node(later, "Zubrowka").key
    assert [edge.source for edge in later.edges if edge.target == place] == ["turn:0", "turn:1"]


def test_a_word_that_may_be_a_name_is_left_to_the_store() -> None:
    zubrowka = node(drafted("Zubrowka is cold."), "Zubrowka")
    assert zubrowka.known_only


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("zubrowka is cold", "zubrowka"),
        ("i think zubrowka closes at the Kulturhaus", "zubrowka"),
        ("We met at Pebble on Monday.", "Pebble"),
        ("Pebble's office is above the bakery.", "Pebble"),
    ],
)
def test_so_are_small_words_that_are_no_ordinary_ones_and_ordinary_ones_with_a_capital(
    text: str, name: str
) -> None:
    assert node(drafted(text), name).known_only


@pytest.mark.parametrize("text", ["i had a great day", "the Internet was down", "A Pebble fell."])
def test_ordinary_words_are_not_even_looked_up(text: str) -> None:
    assert {item.name for item in drafted(text).nodes if item.type == "Entity"} == set()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The CEO of Acme is Ingrid Solheim.", {"Ingrid Solheim"}),
        ("Li Na won the chess evening, beating Anders.", {"Li Na", "Anders"}),
        ("It was too hot for Ji-woo.", {"Ji-woo"}),
        ("It is a Paris-based firm.", set()),
    ],
)
def test_capitals_small_names_and_hyphens_do_not_hide_who_is_named(
    text: str, names: set[str]
) -> None:
    assert {name for kind, name in items(drafted(text)) if kind == "name"} == names


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Sarah Chen drinks tea.", "Sarah Chen"),
        ("Lucía prefers tea", "Lucía"),
        ("The author of Oliver Twist is Charles Dickens.", "Oliver Twist"),
        ("Oslo Airport: the main airport of Norway.", "Oslo Airport"),
        ("# Oslo Airport\n\nThe main airport of Norway.", "Oslo Airport"),
        ("Tesla (company): a maker of cars from Texas.", "Tesla (company)"),
        ("White panther: A white panther is a white cat from Africa.", "White panther"),
        ("東京: 日本の首都。", "東京"),
    ],
)
def test_a_text_is_about_its_title_or_the_name_it_opens_with(text: str, subject: str) -> None:
    draft = drafted(text)
    about = [edge.target for edge in draft.edges if edge.metadata.get("role") == "about"]
    assert about == [node(draft, subject).key]


@pytest.mark.parametrize(
    "text",
    [
        "Note: call Sarah back.",
        "I met Sarah.",
        "Here is the list: milk and eggs.",
        "Shopping List: milk and eggs",
        "It was Sarah who called.",
    ],
)
def test_a_text_without_title_and_opening_name_is_about_nobody(text: str) -> None:
    assert not any(edge.metadata.get("role") for edge in drafted(text).edges)


def test_a_turn_is_about_its_speaker() -> None:
    draft = drafted(("Caroline", "I moved."), ("user", "Where to?"), ("Caroline", "To Oslo."))
    spoken = [edge for edge in draft.edges if edge.target == node(draft, "Caroline").key]
    assert [(edge.source, edge.metadata["role"]) for edge in spoken] == [
        ("turn:0", "about"),
        ("turn:2", "about"),
    ]


def test_part_of_what_is_meant_is_no_name() -> None:
    assert items(drafted("We shop on Cyber Monday and eat on Taco Tuesday.")) == set()
    assert items(drafted("I like the Cliffs of Moher and the band Heal the Bay.")) == set()
    assert items(drafted("I met Joe Monday, and the President of France.")) == {
        ("name", "Joe"),
        ("name", "France"),
    }


def test_a_relation_is_an_edge_from_the_one_to_whose_it_is() -> None:
    draft = drafted("My sister Anna came.")
    user, anna = node(draft, "user"), node(draft, "Anna")
    assert user.resolvable
    (edge,) = edges(draft, anna.key, user.key)
    assert edge.type == "refers_to"
    assert edge.metadata == {"relation": "sister", "span": [0, 14], "text": "My sister Anna"}
    assert edges(draft, "memory", user.key) == []


def test_what_another_speaker_owns_is_theirs_in_relation_and_alias() -> None:
    draft = drafted(("Caroline", "My manager Sarah left."), ("Melanie", "Oh no."))
    assert node(draft, "Sarah").aliases == ("Caroline's manager",)
    (edge,) = edges(draft, node(draft, "Sarah").key, node(draft, "Caroline").key)
    assert edge.metadata["relation"] == "manager"


def test_yours_is_the_listener_s_if_there_is_one_listener() -> None:
    two = drafted(("Caroline", "How is your dog Max doing?"), ("Melanie", "He is fine."))
    assert node(two, "Max").aliases == ("Melanie's dog",)
    user = drafted(("assistant", "How is your dog Max doing?"), ("user", "He is fine."))
    assert node(user, "Max").aliases == ("my dog",)
    alone = drafted(("assistant", "How is your dog Max doing?"))
    assert items(alone) == {("name", "Max")}
    three = drafted(("A", "How is your dog Max?"), ("B", "He is fine."), ("C", "Who is that?"))
    assert items(three) == {("name", "Max")}


@pytest.mark.parametrize(
    "text",
    [
        "How is your dog, Melanie?",
        "I love my dog, Melanie!",
        "I love my dog, Mel, he is the best.",
        "I told my sister, Melanie, that we are coming.",
        "You should call your sister, Joe.",
    ],
)
def test_whoever_is_spoken_to_is_not_what_stands_before_the_comma(text: str) -> None:
    draft = drafted(("Caroline", text), ("Melanie", "Thank you, I will."))
    assert not [item for item in items(draft) if item[0] != "name"]


def test_what_is_quoted_is_of_another_speaker_and_another_day() -> None:
    draft = drafted('Tom said, "My sister Anna is ill, she called yesterday." I was sad.')
    assert items(draft) == {("name", "Tom"), ("name", "Anna")}
    draft = drafted("Tom said: “I'm Anna, my dog Rex died.” Today my dog Max is fine.")
    assert items(draft) >= {("role", "Max", "dog"), ("date", "2023-05-03")}
    assert not {item for item in items(draft) if item[0] == "alias"} - {("alias", "Max", "my dog")}


def test_letters_after_a_long_name_are_evidence_too() -> None:
    draft = drafted("I joined the Zurich Otter Foundation (ZOF) today.")
    zof = node(draft, "Zurich Otter Foundation")
    assert zof.aliases == ("ZOF",)
    assert [span.text for span in zof.spans] == ["Zurich Otter Foundation", "ZOF"]


def test_a_message_to_somebody_may_end_in_their_name() -> None:
    assert ("role", "Max", "dog") in items(drafted("I love my dog, Max."))
    assert items(drafted(("Caroline", "I love my dog, Max."))) == {("name", "Max")}


def test_an_alias_that_two_of_the_draft_bear_is_given_to_neither() -> None:
    draft = drafted("My sister Anna came, and then my sister Beth left.")
    assert node(draft, "Anna").aliases == node(draft, "Beth").aliases == ()
    assert items(draft) >= {("role", "Anna", "sister"), ("role", "Beth", "sister")}


def test_what_people_have_many_of_names_nobody() -> None:
    draft = drafted("My friend Rachel came, my neighbor Joe too.")
    assert not [item for item in items(draft) if item[0] == "alias"]
    assert items(draft) >= {("role", "Rachel", "friend"), ("role", "Joe", "neighbor")}


def test_a_speaker_s_own_name_leads_to_the_speaker() -> None:
    draft = drafted("My name is Ana Silva. Ana is short for nothing.")
    assert node(draft, "user").aliases == ("Ana Silva", "Ana")
    (edge,) = draft.edges
    assert edge.target == node(draft, "user").key


def test_a_speaker_who_is_named_by_another_is_one_node() -> None:
    draft = drafted(("Caroline Hayes", "My cat Bo is ill."), ("Joe", "Sorry to hear, Caroline!"))
    assert node(draft, "Caroline Hayes").aliases == ("Caroline",)
    names = [each.name for each in draft.nodes if each.type == "Entity"]
    assert names == ["Caroline Hayes", "Joe", "Bo"]


def test_speakers_without_a_name_are_not_looked_for() -> None:
    draft = drafted(("Assistant", "Hello. Assistant is what I am."), ("User", "User is who I am."))
    assert draft.edges == ()


def test_another_name_in_the_text_is_the_same_node_from_then_on() -> None:
    draft = drafted("Robert, also known as Bob, came. Then Bob left.")
    assert node(draft, "Robert").aliases == ("Bob",)
    assert len(node(draft, "Robert").spans) == 3


def test_a_date_is_one_node_from_the_epoch_with_the_days_on_the_edge() -> None:
    draft = drafted("We met yesterday, that is on May 2nd, 2023, and it rained last week.")
    day, week = node(draft, "2023-05-02"), node(draft, "2023-W17")
    assert (day.type, day.created_at, day.resolvable) == ("Date", EPOCH, True)
    assert [span.text for span in day.spans] == ["yesterday", "May 2nd, 2023"]
    (edge,) = edges(draft, "memory", day.key)
    assert edge.metadata == {
        "span": [7, 16],
        "text": "yesterday",
        "from": "2023-05-02",
        "to": "2023-05-02",
    }
    (edge,) = edges(draft, "memory", week.key)
    assert (edge.metadata["from"], edge.metadata["to"]) == ("2023-04-24", "2023-04-30")


def test_a_relative_date_is_seen_from_the_message_s_own_day() -> None:
    said = AT - timedelta(days=10)
    messages = [Message(text="It rained yesterday."), Message(text="It rained today.", at=said)]
    draft = RulesExtractor().extract(messages, AT)
    assert [each.name for each in draft.nodes if each.type == "Date"] == [
        "2023-05-02",
        "2023-04-23",
    ]


def test_a_day_is_the_speaker_s_own_where_the_time_says_its_offset() -> None:
    late = datetime(2023, 5, 3, 23, 30, tzinfo=timezone(timedelta(hours=-7)))
    assert late.astimezone(UTC).day == 4
    assert items(drafted("I ran today.", at=late)) == {("date", "2023-05-03")}


def test_text_in_another_language_stays_verbatim_beside_english() -> None:
    draft = drafted(
        ("Ana", "Mi hermana Lucía vive en Madrid desde marzo."),
        ("Joe", "My brother Tom lives in Paris."),
    )
    assert {item[1] for item in items(draft) if item[0] == "name"} == {"Tom", "Paris"}


def test_equal_messages_give_equal_drafts() -> None:
    text = "Last Friday my manager Sarah Chen and Tom's wife Mary went to Lisbon with Google."
    assert drafted(text) == drafted(text)
