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
# Signs outside ASCII take one for each two of their bytes. `bench/prompt_tokens.py` compares the
# estimate with a real tokenizer.

LETTERS_PER_TOKEN = 4  # A common word is one token whatever its length; a rare one has several.
DIGITS_PER_TOKEN = 1  # Some tokenizers give each digit a token, others up to three.
SIGNS_PER_TOKEN = 2  # Signs that often stand together, such as `":"`, are one token.
BYTES_PER_TOKEN = 2  # A sign of a script beside Latin has two or three bytes and takes one or two.
_PIECES = re.compile(
    r"[A-Za-z]+|[0-9]+|[^\x00-\x7f]+|[^\sA-Za-z0-9\x80-\U0010ffff]+|\n+|[^\S\n]{2,}"
)


def tokens_at_most(text: str) -> int:
    """Return about how many tokens a text takes in a prompt; rather too many than too few."""
    count = 0
    for piece in _PIECES.findall(text):
        first = piece[0]
        if first.isascii() and first.isalpha():
            count += -(-len(piece) // LETTERS_PER_TOKEN)
        elif first.isascii() and first.isdigit():
            count += -(-len(piece) // DIGITS_PER_TOKEN)
        elif first.isspace():
            count += 1
        elif first.isascii():
            count += -(-len(piece) // SIGNS_PER_TOKEN)
        else:
            count += -(-len(piece.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
    return count


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
