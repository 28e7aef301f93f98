"""The hash embedder: same everywhere, and still of some use."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from worlddb.embed.embedder import HashEmbedder, checked
from worlddb.errors import InvalidInputError

PROGRAM = """
from worlddb.embed.embedder import HashEmbedder
print(HashEmbedder(8).embed_documents(["Ada lives in Zürich.", "!?", "日本語"]).tobytes().hex())
"""


def test_it_says_what_it_is() -> None:
    assert (HashEmbedder().model_id, HashEmbedder().dim) == ("hash-64", 64)
    assert (HashEmbedder(dim=128).model_id, HashEmbedder(dim=128).dim) == ("hash-128", 128)


def test_the_vectors_never_change() -> None:
    """A store that was written with `hash-8` must be readable for ever."""
    vectors = HashEmbedder(8).embed_documents(["Ada lives in Zürich.", "!?"])
    pinned = [
        [-0.2236, 0, 0.4472, 0.6708, -0.4472, 0.2236, -0.2236, 0],
        [0, 0.4082, 0, -0.4082, -0.8165, 0, 0, 0],
    ]
    np.testing.assert_allclose(vectors, pinned, atol=1e-4)


def test_another_process_with_another_hash_seed_gives_the_same_bytes() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_a_text_has_the_same_vector_in_every_batch() -> None:
    texts = [f"fact number {number} about Ada" for number in range(50)]
    alone = np.concatenate([HashEmbedder().embed_documents([text]) for text in texts])
    assert np.array_equal(alone, HashEmbedder().embed_documents(texts))


def test_texts_that_share_words_or_parts_of_words_are_closer() -> None:
    question, same, part, other = checked(
        HashEmbedder(256),
        ["Where does Ada live?", "Ada lives in Zurich", "living with ADA", "42 tons of gravel"],
        "document",
    )
    assert question @ same > question @ other + 0.2
    assert question @ part > question @ other


def test_case_and_compatibility_forms_make_no_difference() -> None:
    plain, shouted, wide = HashEmbedder().embed_documents(["ada", "ADA", "Ａｄａ"])
    assert np.array_equal(plain, shouted)
    assert np.array_equal(plain, wide)


def test_order_of_words_makes_no_difference_but_spelling_does() -> None:
    one, two, three = HashEmbedder().embed_documents(["to be or not", "not or be to", "to bee or"])
    assert np.array_equal(one, two)
    assert not np.allclose(one, three)


@pytest.mark.parametrize("dim", [0, -1, 4097, 1.5, "64", True])
def test_a_size_that_makes_no_sense_is_refused(dim: int) -> None:
    with pytest.raises(InvalidInputError, match="dim"):
        HashEmbedder(dim)


def test_more_words_than_are_kept_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"word{number}" for number in range(100)]
    expected = HashEmbedder().embed_documents(texts)
    monkeypatch.setattr("worlddb.embed.embedder.HASH_WORDS_CACHED_MAX", 10)
    assert np.array_equal(HashEmbedder().embed_documents(texts), expected)
