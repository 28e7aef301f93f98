"""Words: the tokens that text becomes, for the full-text index and for ranking alike.

    text ── split at white space ──▶ chunks ── fold, parse, stem (cached) ──▶ tokens

W1  A token is made of a-z, 0-9 and characters outside ASCII that are no space, punctuation or
    surrogate (but "·", our decimal point); at most 64. SQLite's `ascii` tokenizer sees the same.
W2  `words`, `indexed`, `asked` and `spans` come from one parser, so they never disagree.
W3  A chunk's tokens depend on the chunk alone: that is what makes the cache possible, and the
    cache is what makes a short text cost a few microseconds.

What a chunk gives, beside the stems of its words:

    O'Brien     brien obrien        names bound by an apostrophe, an ampersand or one hyphen are
    AT&T        at t att            found by their parts and written together
    C++ C#      c cplusplus, …      special names have a token of their own (.NET: net dotnet)
    don't       do not              's, 'm, 're, 've, 'll and 'd are dropped
    $1,200.50   dollar 1200 1200·50 digits are grouped; a decimal is found by its whole part too
    5/30/2023   5 30 2023 may       a date has its month's name if there is one way to read it
    7:30pm 3rd  7 30 pm, 3          units and ordinals leave the number alone
    U.S.        usa                 initials are joined
    东京都      东 东京 京 京都 都  scripts without spaces: characters and pairs; a question asks
                                    for the pairs, or for the character if there is but one

Two to twelve are digits; "one" is not, for it is mostly a pronoun. Only lowerCamelCase is cut
inside a word: other words with capitals in them are names (iPhone, YouTube).

Not here: ranking, query syntax, stems of other languages than English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from itertools import chain

from worlddb.language.fold import aligned, fold, folded
from worlddb.language.parse import Piece, pieces, token, units
from worlddb.language.stem import stem

__all__ = ["STOP", "asked", "folded", "indexed", "spans", "words"]

CACHE_MAX = 1 << 16
CHUNK_KEPT_MAX = 48

_CHUNK = re.compile(r"\S+")
_CAMEL = re.compile(r"(?<![A-Za-z])[a-z]{2,}+(?:[A-Z][a-z]++)+(?![A-Za-z])")
_CAMEL_PART = re.compile(r"[A-Z]?[a-z]+")

# Function words that carry no signal in a question about what somebody said or did; short on
# purpose. Not in it: "not" and "no"; "may" and "will" (a month and a name); "many", "last",
# "first", "before", "after", "ago". As tokens are: "did" is in it as "do".
_STOP = """
a an the this that these those there
i me my mine myself we us our ours you your yours he him his she her hers it its
they them their theirs who whom whose what which when where why how
be am do have can could would should shall
and or but if so as than then of to in on at for from with by about into
"""
STOP = frozenset(map(stem, _STOP.split()))


def words(text: str) -> list[str]:
    """Return every token of `text` in order, stop words included."""
    return list(chain.from_iterable(map(_TOKENS.__getitem__, text.split())))


def indexed(text: str) -> str:
    """Return the tokens of `text` joined by a space: what the full-text index is given."""
    joined = " ".join(map(_JOINED.__getitem__, text.split()))
    # Chunks without any token, such as a dash between two spaces, have left a gap.
    return " ".join(joined.split()) if "  " in joined or joined[:1] in " " else joined.rstrip()


def asked(text: str) -> list[str]:
    """Return the distinct tokens a question asks for, in order.

    Stop words are dropped if anything else remains; single characters of a script without spaces
    are dropped where a pair holds them.
    """
    tokens = list(dict.fromkeys(words(text)))
    if not text.isascii():
        pairs = [parts for parts in map(units, tokens) if len(parts) > 1]
        covered = {unit for parts in pairs for unit in parts}
        tokens = [word for word in tokens if word not in covered]
    return [word for word in tokens if word not in STOP] or tokens


def spans(text: str, only: Set[str] | None = None) -> Iterator[Piece]:
    """Yield (token, start, end) for each token: it stands for `text[start:end]`.

    The tokens are those of `words(text)`, in the same order; with `only`, those of them that are
    in it. Tokens of one chunk may overlap ("o'brien" is also "brien").
    """
    for match in _CHUNK.finditer(text):
        chunk, at = match[0], match.start()
        if only is not None and len(chunk) <= CHUNK_KEPT_MAX and only.isdisjoint(_TOKENS[chunk]):
            continue
        plain, starts, ends = aligned(chunk)
        found = _parsed(chunk, plain)
        if only is not None:
            found = [piece for piece in found if piece[0] in only]
        for name, start, end in found:
            yield name, at + starts[start], at + ends[end - 1]


class _Tokens(dict[str, tuple[str, ...]]):
    """Chunk → its tokens. Two generations: bounded, and never cold all at once."""

    def __init__(self) -> None:
        self._older: dict[str, tuple[str, ...]] = {}

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        found = self._older.get(chunk)
        if found is None:
            found = tuple([piece[0] for piece in _parsed(chunk, fold(chunk))])
        if len(chunk) <= CHUNK_KEPT_MAX:
            if len(self) >= CACHE_MAX:
                self._older = self.copy()
                self.clear()
            self[chunk] = found
        return found


class _Joined(dict[str, str]):
    """Chunk → its tokens joined, so that a bulk load does not join them over and over."""

    def __missing__(self, chunk: str) -> str:
        found = " ".join(_TOKENS[chunk])
        if len(chunk) <= CHUNK_KEPT_MAX:
            if len(self) >= CACHE_MAX:
                self.clear()
            self[chunk] = found
        return found


_TOKENS = _Tokens()
_JOINED = _Joined()


def _parsed(chunk: str, plain: str) -> list[Piece]:
    """Return the pieces of a chunk that folds to `plain`, with offsets into `plain`."""
    found = pieces(plain)
    if not chunk.islower() and chunk.isascii():
        for name in _CAMEL.finditer(chunk):
            for part in _CAMEL_PART.finditer(name[0]):
                start = name.start() + part.start()
                found.append((token(part[0].lower()), start, start + len(part[0])))
    return found
