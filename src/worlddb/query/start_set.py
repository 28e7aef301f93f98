"""Start set: the nodes that a query by words or by vector starts from.

A held world is searched completely, so its start sets are complete. In a larger world a start set
ends after `WIDE_MAX` nodes, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb.errors import InvalidInputError
from worlddb.index.held_world import (
    HeldWorld,
    Scores,
    VectorRows,
    ranked,
    text_scores,
    weighed_words,
)
from worlddb.index.search import Search
from worlddb.index.store_search import Found, is_whole
from worlddb.language.text_tokens import asked, language_of, words
from worlddb.model.records import TextMatch
from worlddb.store.interface import Reader
from worlddb.view.visibility import View

WIDE_MAX = 16_384
"""Nodes of a start set in a world too large to be held: as many as the largest held world."""


class StartSet(NamedTuple):
    """The rows that a query starts from, best first, and how the set was cut, if it was."""

    rows: list[int]
    cut: str | None = None


def find_rows(
    search: Search,
    view: View,
    *,
    text: str | None,
    match: TextMatch,
    vector: Sequence[float] | None,
    most: int | None,
) -> StartSet:
    """Return the visible rows that match the text, or are nearest the vector, best first.

    `most` is the number of rows that the caller needs; None for all.

    Raises:
        InvalidInputError: the vector does not fit this store's vectors.
    """
    reader = view.reader
    with search.interior(reader, view.worlds, view.moment, view.members) as interior:
        if interior is None:
            if most is None and text is not None and match == "any":
                wide = search.wide()
                every = wide.every(view, asked(text, wide.languages(view)), WIDE_MAX)
                if every is not None:
                    return StartSet([row for row, _ in every])
            size = _size(search, view)
            wanted = min(WIDE_MAX if most is None else most, max(size, 1))
            found = _wide(search, view, text=text, match=match, vector=vector, most=wanted)
            by_any = text is not None and match == "any"  # Only the rarer words were searched.
            if most is None and (by_any or len(found) >= wanted) and len(found) < size:
                return StartSet([row for row, _ in found], _cut(text, len(found)))
            return StartSet([row for row, _ in found])
        interior, within = interior.narrowed(view, [None] * len(view.within))
        seen = interior.seen(view.moment, ended=view.include_ended, types=view.types) & within
        if text is not None:
            scores = text_scores(interior, text)
            if match != "any":
                scores = _strict(reader, interior, scores, text, match == "phrase")
        else:
            matrix = interior.vectors(reader, search.vectors())
            scores = VectorRows(matrix, np.arange(len(matrix))).of(checked_vector(search, vector))
            # Scores from 0 to 2, and 0 for a node without a vector: the farthest node still counts.
            scores = np.where(matrix.any(axis=1), scores + 1 + 1e-9, 0)
        wanted = len(interior) if most is None else most
        positions = ranked(np.where(seen, scores, 0), interior.ids, wanted)
        return StartSet([interior.rows[at] for at in positions])


def _size(search: Search, view: View) -> int:
    """Return the number of nodes that could be found."""
    if is_whole(view):
        return view.reader.head().nodes - 1  # The root is never found.
    return len(search.wide().rows_inside(view))


def _cut(text: str | None, kept: int) -> str:
    """Return a sentence that says how a start set was cut."""
    best = "nearest the vector" if text is None else f"that match {text!r:.100} best"
    return f"the start set has only the {kept:,} nodes {best}; look inside a smaller world for all"


def _strict(reader: Reader, interior: HeldWorld, scores: Scores, text: str, phrase: bool) -> Scores:
    """Return the scores of the positions with all the words, or with the phrase.

    A position keeps a small score if the words are too common to have one.
    """
    kept = interior.text.has_all(words(text))
    for code in interior.languages:
        kept |= interior.text.has_all(words(text, code))
    if phrase:
        positions = {interior.rows[at]: at for at in np.flatnonzero(kept).tolist()}
        for body in reader.bodies(positions):
            language = language_of(body.content)
            kept[positions[body.row]] = _follows(words(body.name), words(text)) or _follows(
                words(body.content, language), words(text, language)
            )
    return np.where(kept, scores + 1e-9, 0.0)


def _follows(text: list[str], said: list[str]) -> bool:
    """Return whether the words occur in a text one after the other."""
    size = len(said)
    return any(text[at : at + size] == said for at in range(len(text) - size + 1))


def _wide(
    search: Search,
    view: View,
    *,
    text: str | None,
    match: TextMatch,
    vector: Sequence[float] | None,
    most: int,
) -> Found:
    """Search through the indexes of the whole store."""
    wide = search.wide()
    if text is None:
        return wide.nearest(view, search.vectors(), checked_vector(search, vector), most)
    if match != "any":
        found = wide.strict(view, words(text), match == "phrase", most)
        for code in sorted(wide.languages(view)):
            found += wide.strict(view, words(text, code), match == "phrase", most)
        best = dict(sorted(found, key=lambda item: item[1]))  # the better of two scores
        return [(row, best[row]) for row in dict.fromkeys(row for row, _ in found)][:most]
    return wide.text(view, weighed_words(text, wide.languages(view)), most)


def checked_vector(search: Search, vector: Sequence[float] | None) -> NDArray[np.float32]:
    """Return a caller's vector at unit length."""
    dim = search.vectors().dim
    given = np.asarray(vector, dtype=np.float64)
    if given.shape != (dim,):
        raise InvalidInputError(
            f"vector: has shape {given.shape}, but this store's vectors are of "
            f"{search.vectors().model_id} and have {dim} numbers"
        )
    largest = float(np.abs(given).max())
    if not np.isfinite(largest) or largest == 0:
        raise InvalidInputError("vector: has NaN or infinite values, or only zeros")
    given = given / largest  # first, because the square of a large number is infinite
    return np.asarray(given / np.linalg.norm(given), dtype=np.float32)
