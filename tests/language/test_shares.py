"""What everyday texts have in common."""

from __future__ import annotations

import pytest

from worlddb.language.shares import share_of
from worlddb.language.words import words


@pytest.mark.parametrize("said", ["get", "getting", "got", "went", "things", "really"])
def test_a_common_word_is_known_in_every_form(said: str) -> None:
    assert all(0 < share_of(token) < 0.5 for token in words(said))


@pytest.mark.parametrize("said", ["walrus", "Oslo", "married", "kindergarten", "1700"])
def test_what_texts_are_about_is_not_common(said: str) -> None:
    assert [share_of(token) for token in words(said)] == [0.0] * len(words(said))
