"""Names: how a node is called, and how a question says it.

Both are cut into words the same way, so "Dr. Smith's" names Dr. Smith, and "McDonald's" itself.
"""

from __future__ import annotations

import re

from worlddb.language.words import folded

NAME_WORDS_MAX = 6
NAME_CHARS_MAX = 80

_WORD = re.compile(r"[^\W_](?:[\w.'’&+#-]*[\w+#])?")
_POSSESSIVE = re.compile(r"['’]s$", re.IGNORECASE)


def said_words(text: str) -> list[str]:
    """Return the words of a name or a question, without punctuation around them and "'s"."""
    return [_POSSESSIVE.sub("", match.group()) for match in _WORD.finditer(text)]


def name_key(name: str) -> str:
    """Return the key under which a node is found by its name; empty for what is no name."""
    return folded(" ".join(said_words(name))) if len(name) <= NAME_CHARS_MAX else ""
