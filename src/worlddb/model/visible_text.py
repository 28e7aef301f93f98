"""Visible text: stored texts as people and models see them, and how many tokens they take.

Whoever wrote a text may have put characters into it that move the cursor (ANSI), turn the direction
of what follows (bidi), or are not shown at all. Where a text is shown, they are escapes. What is
stored, and what programs get as data, stays as it was written.
"""

from __future__ import annotations

import json
import re

# Token estimate: about how many tokens of a language model a text takes, never far too few.
#
# No tokenizer is shipped with every model, so this counts as a coarse one would: a word of letters
# takes a token for each four letters begun, a digit one, other signs in a row one for each two.
# Signs outside ASCII are counted by their bytes: the rarer a script, the more of them. What is
# longer than any word is a key or a code, of which each letter counts. `bench/prompt_tokens.py`
# compares the estimate with a real tokenizer.

LETTERS_PER_TOKEN = 4  # A common word is one token whatever its length; a rare one has several.
WORD_LETTERS_MAX = 24  # Hardly a word is longer, in German either; tokenizers know no part of keys.
SIGNS_PER_TOKEN = 2  # Signs that often stand together, such as `":"`, are one token.
SPACES_PER_TOKEN = 2  # Indents of two or four are one token or two.
TOKENS_BY_BYTES = (0, 1, 1, 2, 4)
"""Tokens of a sign by its bytes: letters of two are one token; those of three, as in Chinese, one
or two; a tokenizer spells emoji and rare signs, of four, byte by byte."""
_PIECES = re.compile(
    r"[A-Za-z]+|[0-9]+|[^\x00-\x7f]+|[^\sA-Za-z0-9\x80-\U0010ffff]+|\n+|[^\S\n]{2,}"
)
_HUMPS = re.compile(r"[A-Z]+|[A-Z]?[a-z]+")


def tokens_at_most(text: str) -> int:
    """Return about how many tokens a text takes in a prompt; rather too many than too few."""
    count = 0
    for piece in _PIECES.findall(text):
        first, size = piece[0], len(piece)
        if not first.isascii():
            count += sum(TOKENS_BY_BYTES[len(one.encode("utf-8", "replace"))] for one in piece)
        elif first.isalpha():
            count += _of_letters(piece, size)
        elif first.isdigit() or first == "\n":  # Some tokenizers give each of them a token.
            count += size
        else:
            count -= -size // (SPACES_PER_TOKEN if first.isspace() else SIGNS_PER_TOKEN)
    return count


def _of_letters(word: str, size: int) -> int:
    """Return the tokens of letters in a row; a change of case inside begins another piece."""
    if size > WORD_LETTERS_MAX:
        return size - WORD_LETTERS_MAX + _of_letters(word[:WORD_LETTERS_MAX], WORD_LETTERS_MAX)
    if size == 1 or word[1:].islower():
        return -(-size // LETTERS_PER_TOKEN)
    humps = map(len, _HUMPS.findall(word))
    return sum(min(hump, 1 - (-hump // LETTERS_PER_TOKEN)) for hump in humps)


# Visible text.

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters but tab and line feed, direction marks, and what has no width and no glyph."""


def visible(text: str) -> str:
    r"""Return a text with hidden characters as escapes such as \u202e."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def visible_json(document: str) -> str:
    """Return a JSON document with hidden characters as JSON escapes; it says the same."""
    return _UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], document)
