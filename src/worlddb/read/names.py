"""Names: how a node is called, and how a question says it.

Both are cut into words the same way, so "Dr. Smith's" names Dr. Smith, and "McDonald's" itself.
People are also called by their first name alone. What is one is taken from a list of given names,
and how it is written in the question must not speak against it.
"""

from __future__ import annotations

import re
from itertools import pairwise

from worlddb.language.fold import fold
from worlddb.language.words import folded
from worlddb.resolve.known import is_given, is_name
from worlddb.resolve.names import read_name
from worlddb.resolve.vocabulary import ALSO_WORDS

NAME_WORDS_MAX = 6
NAME_CHARS_MAX = 80
FIRST_NAMED = frozenset({"Entity", "Person"})
FULL_WORDS_MAX = 4

_WORD = re.compile(r"[^\W_](?:[\w.'’&+#-]*[\w+#])?")
_POSSESSIVE = re.compile(r"['’]s$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?:;\n\"“”(]")


def said_words(text: str) -> list[str]:
    """Return the words of a name or a question, without punctuation around them and "'s"."""
    return [_POSSESSIVE.sub("", match.group()) for match in _WORD.finditer(text)]


def name_key(name: str) -> str:
    """Return the key under which a node is found by its name; empty for what is no name."""
    return folded(" ".join(said_words(name))) if len(name) <= NAME_CHARS_MAX else ""


def first_name(type_: str, name: str) -> str:
    """Return the first name of somebody who has more than that; empty for everybody else."""
    if type_ not in FIRST_NAMED or len(name) > NAME_CHARS_MAX:
        return ""
    words = name.split()
    if len(words) < 2 or not any(is_given(fold(word)) for word in words[:2]):
        return ""
    full = read_name(name)
    if full.legal or full.ordered or full.numbers or not 1 < len(full.words) <= FULL_WORDS_MAX:
        return ""
    first, last = full.words[0], full.words[-1]
    # Mark Miller is somebody, the Jordan River is not.
    return first if is_given(first) and (first not in ALSO_WORDS or is_name(last)) else ""


def said_firsts(question: str) -> dict[int, str]:
    """Return which words of a question, by number, may be a first name that stands alone.

    A name beside it makes it a part of another one. A name that is a word, too, needs a capital,
    and not that of a sentence's beginning: "Did Will come?"
    """
    if question.isupper():
        question = question.lower()
    words = list(_WORD.finditer(question))
    gaps = [question[one.end() : other.start()] for one, other in pairwise(words)]
    begins = [True, *(_SENTENCE_END.search(gap) is not None for gap in gaps)]
    found: dict[int, str] = {}
    for number, match in enumerate(words):
        said = _POSSESSIVE.sub("", match.group())
        first = fold(said)
        if not is_given(first):
            continue
        if first in ALSO_WORDS and (begins[number] or said.islower()):
            continue
        goes_on = said == match.group() and number < len(gaps) and gaps[number].isspace()
        if goes_on and _is_named(words[number + 1].group(), begins=False):
            continue
        if number and gaps[number - 1].isspace():
            if _is_named(words[number - 1].group(), begins=begins[number - 1]):
                continue
        found[number] = first
    return found


def _is_named(word: str, *, begins: bool) -> bool:
    """Tell whether a word beside a first name looks like a part of the same name."""
    return is_name(fold(word)) or (word[0].isupper() and not begins)
