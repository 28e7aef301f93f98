"""Properties: whatever the text, the draft says nothing that the text does not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, date, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from language.english.name_sentences import CASES
from thinning import DEEP, examples
from worlddb.ingest.extractors import RulesExtractor, VerbatimExtractor
from worlddb.model.records import Draft, DraftEdge, DraftNode, Message

AT = datetime(2023, 5, 3, 12, tzinfo=UTC)
THOROUGH = settings(max_examples=examples(400, 120), derandomize=True, deadline=None, database=None)
SIZES = (20_000, 80_000) if DEEP else (10_000, 40_000)

# What the rules look at, so that random texts run into them.
SCRAPS = """
I my our your is called named name's also known as aka formerly née (née goes by we call him her me
sister dog, manager brother's company doctor sisters and or , . ! ? ; : ( ) " “ ” ' ’ - — … ** ` ```
Sarah Chen Dr. Mr. J. K. van der de of the Bank University Paris Google IBM (IBM) X iPhone 15 GPT-4o
O'Neil Jean-Luc Will May March Monday Friday last next this weekend week yesterday today ago two in
on 2019 2023-05-03 3rd 5/30/2023 30.5.2023 since by from now Max Luna I'm Hi Mom Christmas German
live lives in moved to work works at for no longer now favorite color is green email phone number
555-1234 nurse turned 31 years old changed my birthday May 3 don't anymore Oslo Rome since
LOVE NASA http://a.b/C sarah@x.com @tom #Tag Foo_bar call(Sarah) {"a": "B"} | A | # Title İstanbul
ß ſ K Ǆ \ud800 \udfff \x00 \u200b 😀 👩‍👩‍👧 東京 Москва \n \r\n \t \x85 \u2028
"""
SCRAP = st.sampled_from([*dict.fromkeys(SCRAPS.split(" ")), "\n\n"])
TEXTS = st.one_of(
    st.text(max_size=200),
    st.text(alphabet=st.characters(codec=None), max_size=200),  # lone surrogates too
    st.lists(SCRAP, max_size=60).map(" ".join),
    st.lists(SCRAP, max_size=60).map("".join),
)
SPEAKERS = st.sampled_from(["user", "assistant", "Sarah", "Sarah Chen", "Mel", "李", "o'neil", ""])
MESSAGES = st.lists(
    st.builds(
        Message,
        text=TEXTS,
        speaker=SPEAKERS,
        at=st.none() | st.datetimes(timezones=st.just(UTC)),
    ),
    max_size=4,
)


def check(messages: list[Message], draft: Draft) -> None:
    """Check that a draft stands on its messages."""
    nodes = {node.key: node for node in draft.nodes}
    assert len(nodes) == len(draft.nodes)
    verbatim = VerbatimExtractor().extract(messages, AT)
    assert draft.nodes[: len(verbatim.nodes)] == verbatim.nodes
    read = draft.nodes[len(verbatim.nodes) :]
    assert len({(node.type, node.name) for node in read}) == len(read)
    # That a turn is about its speaker is not read out of the text.
    spoken = {edge.target for edge in draft.edges if not edge.spans}
    assert {nodes[key].name for key in spoken} <= {message.speaker for message in messages}
    evidence = [part.spans for part in read if part.key not in spoken]
    evidence += [edge.spans for edge in draft.edges if edge.spans]
    for spans in evidence:
        assert spans
        for span in spans:
            text = messages[span.message].text
            assert 0 <= span.start < span.end <= len(text)
            assert span.text == text[span.start : span.end]
    speakers = {message.speaker for message in messages}
    for node in read:
        assert node.resolvable
        if node.type == "Date":
            assert not node.aliases
        else:
            assert node.type == "Entity"
            assert node.name in speakers or any(node.name in each.text for each in messages)
            assert all(alias.strip() for alias in node.aliases)
    check_edges(messages, draft)


def check_edges(messages: list[Message], draft: Draft) -> None:
    nodes = {node.key: node for node in draft.nodes}
    assert len({(edge.source, edge.target, str(edge.metadata)) for edge in draft.edges}) == len(
        draft.edges
    )
    for edge in draft.edges:
        assert edge.type == "refers_to"
        assert edge.source != edge.target
        if not edge.spans:
            assert edge.metadata == {"role": "about", "text": nodes[edge.target].name}
            continue
        first = edge.spans[0]
        assert edge.metadata["span"] == [first.start, first.end]
        assert edge.metadata["text"] == first.text
        if "functional" in edge.metadata:
            check_claim(messages, nodes[edge.source], nodes[edge.target], edge)
        elif "relation" in edge.metadata:
            assert nodes[edge.source].type == nodes[edge.target].type == "Entity"
            assert edge.metadata["relation"].split()[-1] in first.text.lower()
        else:
            source = nodes[edge.source]
            assert source.type in ("Memory", "Turn")
            assert all(messages[span.message].text == source.content for span in edge.spans)
        if nodes[edge.target].type == "Date":
            first_day = date.fromisoformat(edge.metadata["from"])
            last_day = date.fromisoformat(edge.metadata["to"])
            assert first_day <= last_day
            assert nodes[edge.target].name[:4] in (f"{first_day:%G}", f"{first_day.year:04}")


def check_claim(
    messages: list[Message], source: DraftNode, target: DraftNode, edge: DraftEdge
) -> None:
    assert source.type in ("Memory", "Turn")
    assert target.type == "Entity"
    assert edge.metadata["functional"] is True
    for word in (edge.metadata.get("value", ""), edge.metadata.get("was", "")):
        assert word in edge.metadata["text"]
    assert all(messages[span.message].text == source.content for span in edge.spans)


@THOROUGH
@given(MESSAGES)
@example([Message(text="my dog, Max, and I met Sarah (my sister) yesterday", speaker="Sarah")])
def test_whatever_is_said_everything_read_out_of_it_stands_in_it(messages: list[Message]) -> None:
    draft = RulesExtractor().extract(messages, AT)
    check(messages, draft)
    assert RulesExtractor().extract(messages, AT) == draft


def test_conversations_of_real_sentences_stand_on_what_was_said() -> None:
    random_ = random.Random(7)
    for _ in range(100):
        some = random_.sample(CASES, 6)
        names = ("Caroline", "user", "Tom Lee")
        messages = [Message(text=case.text, speaker=random_.choice(names)) for case in some]
        check(messages, RulesExtractor().extract(messages, AT))


CODE = '''
import os
from collections import Counter

class SarahChen(Person):
    """My manager Sarah."""
    CITY = "Paris"

    def visit(self, Tom: Person) -> None:
        London = self.Find(Tom, "Yesterday")
        print(London.Name); return None

if __name__ == "__main__":
    SarahChen().visit(Tom)
'''
JSON = '{"user": {"name": "Sarah Chen", "city": "Paris"}, "when": "yesterday"}'
MARKDOWN = """# Trip With Sarah
## Day One In Paris
| Who | Where |
|---|---|
| Tom | London |

- **Paris**
- `Sarah.visit(London)`
- <a href="https://example.com/Tom">https://Example.com/Sarah</a>
"""
HTML = '<div class="Sarah"><span id="Paris"></span></div>'
SQL = "SELECT Name FROM Users WHERE City = 'Paris' AND Manager = 'Sarah';"


@pytest.mark.parametrize("text", [JSON, HTML, SQL, "```\n" + CODE + "```", "so it is:\n```" + CODE])
def test_nothing_is_read_out_of_code_and_data(text: str) -> None:
    draft = RulesExtractor().extract([Message(text=text)], AT)
    assert [node.type for node in draft.nodes] == ["Memory"]


def test_of_headings_only_the_first_is_read_which_the_text_is_filed_under() -> None:
    draft = RulesExtractor().extract([Message(text=MARKDOWN)], AT)
    assert [node.name for node in draft.nodes if node.type == "Entity"] == ["Trip With Sarah"]


LONG = {
    "prose": " ".join(case.text for case in CASES),
    "one word": "a",
    "one capital": "A",
    "names": "I met Sarah Chen. ",
    "many names": "",
    "dots": "a.",
    "spaces": " ",
    "lines": "\n",
    "mine": "my sister Anna and ",
    "quotes": '"A ',
    "brackets": "(my ",
    "identifiers": "a_",
    "addresses": "a@",
    "tags": "<a",
    "paths": "/a",
    "digits": "12 ",
    "dates": "May 3 last Friday in 2019 ",
    "code": "a = b; ",
    "bold": "**a",
    "initials": "J. ",
    "possessive": "A's ",
    "hyphens": "A-",
    "called": "Robert we call him ",
    "of": "University of ",
    "claims": "I live in Rome. ",
    "clauses": "I live in Rome and ",
    "many values": "",
    "withdrawals": "I moved to Oslo. Just kidding! ",
    "abbreviations": "I live in St. ",
}


def long_text(kind: str, size: int) -> str:
    if kind == "many names":
        letters = random.Random(3)
        words = ("".join(letters.choices("bcdfgaeiou", k=7)).title() for _ in range(size // 12))
        return " ".join(f"met {word}" for word in words)
    if kind == "many values":
        return " ".join(f"My email is a{number}@x.com." for number in range(size // 25))
    return (LONG[kind] * (size // max(len(LONG[kind]), 1) + 1))[:size]


@pytest.mark.parametrize("kind", LONG)
def test_reading_takes_time_in_proportion_to_the_text(kind: str) -> None:
    extractor = RulesExtractor()
    short, long = (
        [Message(text="I think that this is it. " + long_text(kind, size))] for size in SIZES
    )
    draft = extractor.extract(long, AT)
    if kind in ("prose", "many names", "names"):
        assert len(draft.nodes) > 1

    def is_linear() -> bool:
        # Four times the text; a quadratic reader would take sixteen times as long.
        return _seconds(extractor, long) < 8 * _seconds(extractor, short) + 0.002

    assert any(is_linear() for _ in range(10))


def test_a_message_of_forty_words_takes_a_fraction_of_a_millisecond() -> None:
    """Budget: what a loop over ten thousand numbers takes; the bound leaves room for noise."""
    text = (
        "Last Friday I had lunch with my manager Sarah Chen at Golden Gate Park, and she told me"
        " that Google wants to open an office in Lisbon next year. My dog Max ran after a squirrel."
    )
    extractor, messages = RulesExtractor(), [Message(text=text)]

    def is_quick() -> bool:
        loop = min(_taken(lambda: sum(n * n for n in range(10_000))) for _ in range(50))
        return min(_seconds(extractor, messages) for _ in range(50)) < 3 * loop

    assert any(is_quick() for _ in range(10))


def _seconds(extractor: RulesExtractor, messages: list[Message]) -> float:
    return _taken(lambda: extractor.extract(messages, AT))


def _taken(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
