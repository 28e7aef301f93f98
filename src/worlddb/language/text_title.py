r"""The title of a text: what stands before a colon, or in a heading above it.

    "Polish-Russian War: a film of 2009 …"        ──▶  Polish-Russian War
    "# Polish-Russian War\n\nA film of 2009 …"    ──▶  Polish-Russian War

A title is what the text is filed under, so the text is about it. Many texts begin with a few words
and a colon that are no title ("Note: …", "Here is the list: …"). So a title is written with
capitals, or the text after it begins with the same words; and it has at least one word that is not
an ordinary one, unless the text repeats it. A statement without a title is about what stands before
its verb (`opening_of`), be it a name or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from worlddb.language.text_tokens import STOP

TITLE_CHARS_MAX = 100  # longer than most titles of works and encyclopedia entries
TITLE_WORDS_MAX = 14

_COLON = re.compile(r":\s+(?=\S)")
_HEADING = re.compile(r"\s*#{1,6}[ \t]+(\S[^\n]*?)[ \t#]*\n\s*(?=\S)")
_WORD = re.compile(r"[^\W_][\w'’&.-]*")
_LEADING = re.compile(r"[\"“”'‘’(\[*\s]*(?:the|a|an)?\s*[\"“”'‘’*]*", re.IGNORECASE)
_SMALL = re.compile(
    "a|an|and|as|at|by|de|del|der|des|di|du|en|et|for|from|in|into|la|le|of|on|or|the|to|und|van|"
    "von|vs|with|y"
)  # words that titles write without a capital, in the languages that do so


class Title(NamedTuple):
    """Where a title stands in a text, and where the text under it begins."""

    start: int
    end: int
    body: int


def title_of(text: str, is_ordinary: Callable[[str], bool]) -> Title | None:
    """Return the title of a text, if it surely has one; `is_ordinary` judges words in lower case.

    Among several colons the one wins before which stands what the text goes on with:
    "Alien: Covenant: Alien: Covenant is a film" is about Alien: Covenant.
    """
    heading = _HEADING.match(text)
    if heading is not None and heading.end(1) - heading.start(1) <= TITLE_CHARS_MAX:
        return Title(*heading.span(1), heading.end())
    first: Title | None = None
    for colon in _COLON.finditer(text, 1, TITLE_CHARS_MAX + 2):
        title = text[: colon.start()]
        start = len(title) - len(title.lstrip())
        if "\n" in title or len(_WORD.findall(title)) > TITLE_WORDS_MAX:
            break
        found = Title(start, colon.start(), colon.end())
        if _repeats(text, found):
            return found
        if first is None and _is_titled(title.strip(), is_ordinary):
            first = found
    return first


def _repeats(text: str, title: Title) -> bool:
    """Return whether the text under a title begins with the words of the title."""
    words = text[title.start : title.end].partition(" (")[0].casefold()
    if not words:
        return False
    leading = _LEADING.match(text, title.body)
    places = {title.body, leading.end() if leading else title.body}
    return any(text[at : at + len(words)].casefold() == words for at in places)


def _is_titled(title: str, is_ordinary: Callable[[str], bool]) -> bool:
    """Return whether all words that may have capitals have them, and not all are ordinary."""
    words = _WORD.findall(title.partition(" (")[0])
    if not words or words[0][0].islower():
        return False
    plain = [word for word in words if not _SMALL.fullmatch(word.lower())]
    if any(word[0].islower() for word in plain):
        return False
    return any(word[0].isalpha() and not is_ordinary(word.lower()) for word in plain)


_PART = r"[^\W_][\w'’&.-]*"
_OPENING = re.compile(
    rf"(?:The |An? )?(?P<phrase>{_PART}(?: {_PART}){{0,5}}?) (?:is|are|was|were|has|had) "
    rf"|(?P<name>(?=[^\Wa-z]){_PART}(?: (?=[^\Wa-z]){_PART}){{1,4}}) [a-z]+(?:s|ed) "
)


def opening_of(text: str) -> str:
    """Return the words that a statement opens with, before its verb; empty if there are none.

    "basketball was created in …" is about basketball, which is no name. What begins with a word
    that names nothing by itself ("it", "my") is no subject.
    """
    match = _OPENING.match(text)
    phrase = (match["phrase"] or match["name"]) if match is not None else ""
    return "" if not phrase or phrase.split()[0].lower() in STOP else phrase
