"""Places: which names are known as towns, states and countries, from `place_names.txt`."""

from __future__ import annotations

from worlddb.language.word_lists import sections, words_of

CITY, STATE, COUNTRY, CONTINENT = range(4)


def _words(section: str) -> frozenset[str]:
    return words_of("language", "place_names.txt", section)


_WIDTHS = {
    **dict.fromkeys(_words("states"), STATE),
    **dict.fromkeys(_words("countries"), COUNTRY),
    **dict.fromkeys(_words("continents"), CONTINENT),
}
_SINGLE = frozenset(name for name in _WIDTHS if " " not in name)

PLACE_NAMES = _words("names") | (_SINGLE - _words("words too"))
"""Places that are known as such wherever their name stands, of one word."""
TOWNS = PLACE_NAMES | _words("towns")
"""Places one may live in: their names may be words or given names as well (Nice, Florence)."""

_SPELLINGS = {
    other: usual
    for usual, *others in sections("language", "place_names.txt")["spellings"]
    for other in others
}


def town_of(words: tuple[str, ...]) -> str:
    """Return the usual name of a town that has several, from the words of one in lower case."""
    name = " ".join(words)
    return _SPELLINGS.get(name, name)


def width_of(words: tuple[str, ...]) -> int:
    """Return how wide a place is, from the words of its name in lower case; a city by default."""
    return _WIDTHS.get(" ".join(words), CITY)
