"""English words: the word lists of the pack as sets, and what is judged by them.

Every list is of our own making and far from complete. What is in none of them is judged by its
place in the sentence.
"""

from __future__ import annotations

import re

from worlddb.language.known_names import known
from worlddb.language.word_lists import words_of


def listed(name: str, section: str) -> frozenset[str]:
    """Return a section of a word list of this pack."""
    return words_of("language.english", f"{name}.txt", section)


GIVEN = known().told - known().doubtful
"""Given names that are nothing else: a name wherever they stand."""
NEVER = listed("words", "never")
GIVEN_PERHAPS = known().doubtful - NEVER  # no June, no August
GIVEN_NAMES = GIVEN | GIVEN_PERHAPS

STARTERS = listed("words", "starters")
VOCABULARY = listed("words", "vocabulary")
ORDINARY = STARTERS | VOCABULARY
SMALL = listed("words", "small")
PEOPLES = listed("words", "peoples")

BRANDS = listed("organisations", "brands")
PHRASES = listed("organisations", "phrases")
ACRONYMS = listed("organisations", "acronyms")
HEADS = listed("organisations", "heads")

TITLES_SHORT = listed("roles", "titles short")
TITLES = TITLES_SHORT | listed("roles", "titles")
PERSONS = listed("roles", "persons")
MANY = listed("roles", "many")
BREEDS = listed("roles", "breeds")
PETS = BREEDS | listed("roles", "pets")
THINGS = listed("roles", "things")

_SUFFIX = re.compile(
    r"(?:ing|ings|tion|tions|sion|sions|ness|ment|ments|ism|isms|ology|ologist|ologists|graphy"
    r"|ically|fully|ously|ively|ably|ibly|able|ible|less|ful|ous|ward|wards|wise|ship|hood"
    r"|ist|ists|cian|cians|ity|ities|ance|ence|ally|edly|ingly|ified|ized|ised|ated|ted|ned|red"
    r"|ssed|ched|shed|sted|lled|rred|pped|ked|ved|yed|sed|zed|ced|ged)$"
)


def looks_ordinary(word: str) -> bool:
    """Return whether a word, in lower case, is an ordinary one: by the list or by its ending."""
    if word in ORDINARY or (word.endswith("s") and word[:-1] in VOCABULARY):
        return True
    return len(word) > 5 and _SUFFIX.search(word) is not None


def of_a_people(word: str) -> bool:
    """Return whether a word, in lower case, says of what nation, language or faith."""
    return word in PEOPLES or (word.endswith("s") and word[:-1] in PEOPLES)
