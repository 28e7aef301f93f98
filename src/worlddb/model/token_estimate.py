"""Token estimate: about how many tokens of a language model a text takes, never far too few.

No tokenizer is shipped with every model, so this counts as a coarse one would: a word of letters
takes a token for each four letters begun; digits, and other signs in a row, one for each two. Signs
outside ASCII take one for each two of their bytes. `bench/prompt_tokens.py` compares the estimate
with a real tokenizer.
"""

from __future__ import annotations

import re

LETTERS_PER_TOKEN = 4  # A common word is one token whatever its length; a rare one has several.
DIGITS_PER_TOKEN = 2  # Tokenizers put one to three digits into a token.
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
