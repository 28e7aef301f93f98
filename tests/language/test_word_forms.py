"""Stems: inflections of one word meet, different words do not, and nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinning import examples
from worlddb.language.word_forms import CACHE_MAX, LETTERS_MAX, stem

# What the published algorithm makes of words that go through each of its steps.
PUBLISHED = """
caresses caress; ties tie; cries cri; gaps gap; gas gas; kiwis kiwi; this this; bus bus
dress dress; agreed agre; feed feed; bleed bleed; proceed proceed; plastered plaster; bled bled
motoring motor; sing sing; string string; luxuriated luxuri; troubled troubl; sized size
hopping hop; hoped hope; hoping hope; falling fall; hissing hiss; fizzed fizz; failing fail
filing file; adding add; egged egg; cry cri; by by; say say; enjoy enjoy; happy happi; yes yes
youth youth; boyish boyish; flying fli; relational relat; conditional condit; rational ration
fluency fluenci; hesitancy hesit; digitizer digit; conformably conform; radically radic
differently differ; vilely vile; analogously analog; vietnamization vietnam; predication predic
operator oper; feudalism feudal; decisiveness decis; hopefulness hope; callousness callous
formality formal; sensitivity sensit; sensibility sensibl; geology geolog; geologist geolog
hopefully hope; carelessly careless; badly bad; triplicate triplic; formative format
formalize formal; electricity electr; electrical electr; hopeful hope; goodness good
revival reviv; allowance allow; inference infer; airliner airlin; adjustable adjust
defensible defens; irritant irrit; replacement replac; adjustment adjust; dependent depend
adoption adopt; religion religion; communism communism; activate activ; angularity angular
homologous homolog
effective effect; bowdlerize bowdler; probate probat; rate rate; cease ceas; controlled control
roll roll; news news; skies sky; dying die; early earli; only onli; singly singl
generally general; generously generous; community communiti; communication communic
evening evening; knightly knight; consistency consist; consolation consol; kneeling kneel
conversation convers
"""

SAME = """
buy buys buying bought; go goes going went gone; run runs running ran; meet meeting met
take takes taking took taken; give gave given giving; eat ate eaten eating; write wrote written
be is are was were been being; do does did done doing; have has had having; think thought thoughts
child children; woman women; man men; foot feet; tooth teeth; mouse mice; wife wives; knife knives
move moved moving moves; relationship relationships
organize organized organizing organise organised; colour colors coloured
favourite favorite favourites; neighbour neighbors; travelling traveled; theatre theaters
centre center; program programmes; realised realize; january jan; sept september
"""

APART = """
university universe; organ organize; general generate; community communicate; customer custom
animal anime; several sever; position positive; internal intern; experience experiment; news new
important import; author authority; past paste; later lateral; march may; police policy
"""


def rows(table: str) -> list[list[str]]:
    return [row.split() for row in table.replace("\n", ";").split(";") if row.strip()]


@pytest.mark.parametrize(("word", "expected"), rows(PUBLISHED))
def test_a_word_has_the_stem_the_published_algorithm_gives(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize("forms", rows(SAME), ids=lambda forms: forms[0])
def test_the_forms_and_spellings_of_one_word_have_one_stem(forms: list[str]) -> None:
    assert {stem(form) for form in forms} == {stem(forms[0])}


@pytest.mark.parametrize("pair", rows(APART), ids=lambda pair: pair[0])
def test_words_of_different_meaning_keep_different_stems(pair: list[str]) -> None:
    assert stem(pair[0]) != stem(pair[1])


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a",
        "am",
        "as",
        "us",
        "4o",
        "90s",
        "gpt4",
        "привет",
        "東京",
        "naïves",
        "3·14",
        "o'briens",
    ],
)
def test_what_is_short_or_not_made_of_english_letters_is_left_alone(token: str) -> None:
    assert stem(token) == token


def test_what_is_longer_than_any_word_is_left_alone() -> None:
    assert stem("ab" * (LETTERS_MAX // 2) + "s") == "ab" * (LETTERS_MAX // 2) + "s"
    assert stem("x" * (LETTERS_MAX - 4) + "ings") != "x" * (LETTERS_MAX - 4) + "ings"


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=8, max_size=20))
@settings(max_examples=examples(500, 200), deadline=None, derandomize=True, database=None)
def test_a_stem_is_lower_case_letters_and_starts_like_its_word(word: str) -> None:
    found = stem(word)
    assert found.isascii()
    assert found.isalpha()
    assert found.islower()
    assert found[0] == word[0]
    assert stem(word) == found


def test_the_cache_is_bounded() -> None:
    assert stem.cache_info().maxsize == CACHE_MAX
