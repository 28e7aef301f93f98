"""Question vector: the vector of a question, with its words weighed by how rare they are."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
from numpy.typing import NDArray

from worlddb.index.held_world import HeldWorld
from worlddb.index.ranking_numbers import SCALARS
from worlddb.index.search import Search
from worlddb.index.store_search import is_whole
from worlddb.language.ranking_features import question_parts, written_rarity
from worlddb.language.text_tokens import words
from worlddb.view.visibility import View

Vector = NDArray[np.float32]


def held_question(
    search: Search, interior: HeldWorld, text: str, vector: Vector | None
) -> Vector | None:
    """Return the vector of a question to a world that is held in memory."""
    known = interior.text
    return _weighed(search, text, vector, interior.languages, known.rarity, known.rarity_max)


def stored_question(search: Search, view: View, text: str, vector: Vector | None) -> Vector | None:
    """Return the vector of a question to the whole store; of less than that, as it is."""
    if vector is None or not is_whole(view):
        return vector
    wide = search.wide()
    languages = wide.languages(view.reader)
    forms = [words(text), *(words(text, code) for code in languages)]
    rarity = wide.rarity_of(view, sorted({word for form in forms for word in form}))
    return _weighed(search, text, vector, languages, rarity.__getitem__, rarity[""])


def _weighed(
    search: Search,
    text: str,
    vector: Vector | None,
    languages: Collection[str],
    rarity: Callable[[str], float],
    top: float,
) -> Vector | None:
    if vector is None:
        return None
    parts = question_parts(
        text,
        lambda said: written_rarity(said, languages, rarity, top),
        top,
        frame_weight=SCALARS.frame_weight,
        rarity_power=SCALARS.rarity_power,
    )
    return search.vectors().ask_weighed(parts, vector)
