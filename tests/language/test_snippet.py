"""Snippets: the part of a text that shows why it was found, and where in it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinning import examples
from worlddb.errors import InvalidInputError
from worlddb.language.snippet import ELLIPSIS, Snippet, snippet
from worlddb.language.text_tokens import asked, words

FILLER = "Nothing of interest happened on that day. "
FLIGHT = "On May 30 we flew from Zürich to Tokyo; Jean-Luc paid $1,200.50 for tickets."
LONG = FILLER * 20 + FLIGHT + " " + FILLER * 20

# Small alphabets, so that queries often hit.
LETTERS = st.text("ab c\n", max_size=400)
SCRIPTS = st.text("东京都 はe\u0301x'1,０", max_size=120)


def matched(found: Snippet) -> list[str]:
    return [found.text[start:end] for start, end in found.spans]


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("I bought a bike", "buying bikes", "I **bought** a **bike**"),
        ("We met Sarah's mother", "Sarah", "We met **Sarah**'s mother"),
        ("to ZÜRICH!", "zurich", "to **ZÜRICH**!"),
        ("meet O’Brien here", "OBrien", "meet **O’Brien** here"),
        ("it cost $1,200.50.", "1200", "it cost $**1,200.50**."),
        ("learn C++ or C", "C++", "learn **C++** or **C**"),
        ("at 7:30pm", "7 pm", "at **7**:30**pm**"),
        ("我们去了上野公园。", "上野公园在哪里", "我们去了**上野公园**。"),
        ("東京に行った", "京", "東**京**に行った"),
        ("ｶﾞﾗｽの靴", "ガラス", "**ｶﾞﾗｽ**の靴"),
        ("cafe\u0301 au lait", "café", "**cafe\u0301** au lait"),
        ("the ﬁnest ﬁnish", "finish", "the ﬁnest **ﬁnish**"),
        ("cake 🎂🎂!", "🎂", "cake **🎂🎂**!"),
        ("a  b\n\nc", "c", "a b **c**"),
        ("what is it", "what is it", "**what** **is** **it**"),
        ("what a bike it is", "what is a bike", "what a **bike** it is"),
        ("nothing", "else", "nothing"),
        ("nothing", "", "nothing"),
        ("", "else", ""),
    ],
)
def test_a_short_text_is_shown_whole_with_its_matches(text: str, query: str, marked: str) -> None:
    assert snippet(text, query).marked() == marked


def test_marks_can_be_chosen() -> None:
    assert snippet("a bike", "bike").marked("<b>", "</b>") == "a <b>bike</b>"


def test_the_window_with_the_most_asked_words_is_shown_among_its_context() -> None:
    found = snippet("Tickets! " + LONG + " Tokyo.", "Who paid for the tickets to Tokyo?")
    assert matched(found) == ["Tokyo", "paid", "tickets"]
    assert found.text.startswith(ELLIPSIS)
    assert found.text.endswith(ELLIPSIS)
    assert FLIGHT in found.text


def test_a_rare_word_outweighs_a_frequent_one() -> None:
    days = "tomorrow and yesterday " * 30
    text = f"{days}{FILLER * 2}then the zebra came. {FILLER * 2}{days}"
    assert matched(snippet(text, "zebra tomorrow yesterday", width=60)) == ["zebra"]


def test_what_stands_before_the_first_match_is_shown_too() -> None:
    found = snippet(f"{FILLER * 5}I ride a bike, a red bike, {'bike ' * 50}", "bike", width=80)
    assert "on that day. I ride a bike" in found.text


def test_of_equal_windows_the_first_is_shown() -> None:
    found = snippet(f"First a bike. {FILLER * 5}Then a bike. {FILLER * 5}", "bike")
    assert found.text.startswith("First a bike.")


def test_without_a_match_the_beginning_is_shown() -> None:
    found = snippet(LONG, "zebra", width=50)
    assert found == Snippet("Nothing of interest happened on that day." + ELLIPSIS, ())


def test_words_are_not_cut() -> None:
    parts = set(LONG.split())
    for width in range(20, 200):
        shown = snippet(LONG, "Jean-Luc Tokyo", width=width).text
        assert set(shown.strip(ELLIPSIS).split()) <= parts
        assert len(shown) <= width


def test_a_script_without_spaces_is_cut_between_characters_and_not_before_a_mark() -> None:
    text = "か\u3099き\u3099く\u3099" * 50 + "東京" + "か\u3099き\u3099く\u3099" * 50
    for width in range(16, 60):
        found = snippet(text, "東京", width=width)
        assert matched(found) == ["東京"]
        assert len(found.text) <= width
        assert found.text[1] != "\u3099"


def test_a_word_longer_than_the_width_is_cut_inside() -> None:
    found = snippet("a" * 500 + " bike", "a" * 500, width=40)
    assert len(found.text) <= 40
    assert matched(found) == ["a" * 38]


@pytest.mark.parametrize("width", [15, 0, -1])
def test_too_narrow_a_width_is_refused(width: int) -> None:
    with pytest.raises(InvalidInputError, match=f"width: {width} is too narrow; give at least 16"):
        snippet("text", "text", width=width)


@given(LETTERS | SCRIPTS, LETTERS | SCRIPTS, st.integers(16, 80))
@settings(max_examples=examples(500, 200), deadline=None, derandomize=True, database=None)
def test_a_snippet_is_part_of_its_text_and_its_matches_are_asked_for(
    text: str, query: str, width: int
) -> None:
    found = snippet(text, query, width=width)
    line = " ".join(text.split())
    assert len(found.text) <= width
    assert found.text.strip(ELLIPSIS) in line
    assert (found.text == line) == (len(line) <= width)
    assert list(found.spans) == sorted(found.spans)
    ends = [0, *(end for _, end in found.spans)]
    for last, (start, end) in zip(ends, found.spans, strict=False):
        assert last <= start < end <= len(found.text)
    wanted = set(asked(query))
    assert bool(found.spans) == bool(wanted & set(words(text)))
    if len(line) <= width:
        for part in matched(found):
            assert wanted & set(words(part))
    assert found.marked("", "") == found.text
