"""WordPiece: text to token ids, as models of the BERT family (uncased) learned them.

    text ──clean, fold──▶ words and signs ──longest known pieces──▶ [CLS] ids … [SEP]

Small enough to be read, so that the model needs no tokenizer library. It gives the ids that those
libraries give, except for some hundred rare characters that are newer than their tables, and that
"[SEP]" written in a text is text here, not a control token.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

CLS, SEP, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
CONTINUED = "##"
WORD_CHARS_MAX = 100
"""A longer word is unknown as a whole: that is how the models were trained."""
WORDS_KEPT_MAX = 50_000

# Controls, format marks, private use, and the accents that decomposing set apart.
_DROPPED = {"Cc", "Cf", "Co", "Cs", "Mn"}
# Blocks whose characters are words of their own.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """A tokenizer over a vocabulary: a list of pieces in which a piece's place is its id.

    Raises:
        ValueError: the vocabulary lacks one of the control tokens.
    """

    def __init__(self, vocabulary: Sequence[str], *, tokens_max: int = 512) -> None:
        self._vocabulary = vocabulary
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        missing = [token for token in (CLS, SEP, UNKNOWN) if token not in self._ids]
        if missing:
            raise ValueError(f"the vocabulary has no {', '.join(missing)}")
        self._tokens_max = tokens_max
        self._folding = _Folding()
        self._known: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text` between its two marks, cut to the most tokens there may be."""
        ids = [self._ids[CLS]]
        for word in self._words(text):
            ids += self._pieces(word)
            if len(ids) >= self._tokens_max:
                break
        return [*ids[: self._tokens_max - 1], self._ids[SEP]]

    def pieces_of(self, ids: Sequence[int]) -> list[str]:
        """Return the pieces that ids stand for."""
        return [self._vocabulary[number] for number in ids]

    def _words(self, text: str) -> list[str]:
        return unicodedata.normalize("NFD", text).translate(self._folding).split(" ")

    def _pieces(self, word: str) -> tuple[int, ...]:
        pieces = self._known.get(word)
        if pieces is None:
            try:
                pieces = tuple(self._longest_pieces(word))
            except KeyError:
                pieces = (self._ids[UNKNOWN],)
            if len(self._known) >= WORDS_KEPT_MAX:
                self._known.clear()
            self._known[word] = pieces
        return pieces

    def _longest_pieces(self, word: str) -> Iterator[int]:
        """Yield the ids of the longest known pieces, from the left.

        Raises:
            KeyError: the word cannot be put together from pieces.
        """
        if len(word) > WORD_CHARS_MAX:
            raise KeyError(word)
        start = 0
        while start < len(word):
            mark = CONTINUED if start else ""
            end = len(word)
            while mark + word[start:end] not in self._ids:
                end -= 1
                if end == start:
                    raise KeyError(word)
            yield self._ids[mark + word[start:end]]
            start = end


class _Folding(dict[int, str]):
    """What each character becomes, worked out when it is first met; for `str.translate`."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _folded(chr(code))
        return folded


def _folded(character: str) -> str:
    """Return a character of decomposed text in lower case, apart from its neighbours if a word."""
    category = unicodedata.category(character)
    if character in "\t\n\r":
        return " "
    if character in "\0\ufffd" or category in _DROPPED:
        return ""
    if character.isspace():
        return " "
    code = ord(character)
    if _is_sign(character, category) or any(low <= code <= high for low, high in _IDEOGRAPHS):
        return f" {character} "
    return character.lower()


def _is_sign(character: str, category: str) -> bool:
    """Return whether a character is punctuation, or one of ASCII's symbols."""
    return category.startswith("P") or ("!" <= character <= "~" and not character.isalnum())
