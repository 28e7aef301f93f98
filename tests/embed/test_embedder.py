"""The one way to call an embedder: what it is given, and what it may answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worlddb.embed.embedder import HashEmbedder, Kind, checked
from worlddb.errors import InvalidInputError, NotFoundError, ProviderError

KINDS: list[Kind] = ["query", "document"]


class Given:
    """An embedder that notes what it is given and answers what the test wants."""

    model_id = "given-3"
    dim = 3

    def __init__(self, answer: Any = None, *, batch_size: int | None = None) -> None:
        self.answer = answer
        self.calls: list[tuple[str, list[str]]] = []
        if batch_size is not None:
            self.batch_size = batch_size

    def embed_queries(self, texts: Sequence[str]) -> Any:
        return self._embed("query", texts)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return self._embed("document", texts)

    def _embed(self, kind: str, texts: Sequence[str]) -> Any:
        self.calls.append((kind, list(texts)))
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return self.answer
        return np.array([[len(text), 1, 0] for text in texts], dtype=np.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_float32_rows_of_unit_length_in_the_order_of_the_texts(kind: Kind) -> None:
    embedder = Given()
    vectors = checked(embedder, ["a", "bb", "ccc"], kind)
    assert vectors.dtype == np.float32
    assert vectors.shape == (3, 3)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(vectors[:, 0] / vectors[:, 1], [1, 2, 3], rtol=1e-6)
    assert embedder.calls == [(kind, ["a", "bb", "ccc"])]


def test_texts_go_in_batches_of_the_size_the_embedder_likes() -> None:
    texts = [f"t{number}" for number in range(600)]
    small = Given(batch_size=7)
    assert checked(small, texts, "document").shape == (600, 3)
    assert {len(batch) for _, batch in small.calls} == {7, 600 % 7}
    assert [text for _, batch in small.calls for text in batch] == texts
    usual = Given()
    checked(usual, texts, "document")
    assert [len(batch) for _, batch in usual.calls] == [256, 256, 88]


def test_blank_texts_never_reach_the_model_and_become_zero() -> None:
    embedder = Given(batch_size=2)
    texts = ["", "one", " \n\t", "\0", "two", "\u2003", "three"]
    vectors = checked(embedder, texts, "document")
    assert [batch for _, batch in embedder.calls] == [["one", "two"], ["three"]]
    assert [bool(row.any()) for row in vectors] == [False, True, False, False, True, False, True]
    assert checked(Given(), ["", " "], "query").tolist() == [[0, 0, 0]] * 2


def test_no_texts_give_no_rows() -> None:
    assert checked(Given(), [], "query").shape == (0, 3)


def test_lone_surrogates_and_nul_are_replaced_and_pairs_put_together() -> None:
    embedder = Given()
    checked(embedder, ["a\ud800b", "\udfff", "c\0d", "\ud83d\ude00", "plain é日"], "document")
    assert embedder.calls == [("document", ["a�b", "�", "c d", "😀", "plain é日"])]


@settings(derandomize=True, deadline=None, database=None, max_examples=200)
@given(st.lists(st.text(st.characters(), max_size=20), max_size=8))
def test_any_text_has_a_vector_of_unit_length_or_zero(texts: list[str]) -> None:
    vectors = checked(HashEmbedder(), texts, "document")
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.all((np.abs(lengths - 1) < 1e-5) | (lengths == 0))


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (np.zeros((2, 3)), r"shape \(2, 3\) for 1 texts; expected \(1, 3\)"),
        (np.zeros((1, 4)), r"shape \(1, 4\)"),
        (np.zeros(3), r"shape \(3,\)"),
        ([[1, 2, 3], [4]], "failed to embed"),
        ([["a", "b", "c"]], "instead of numbers"),
        (np.ones((1, 3), dtype=complex), "complex128"),
        (np.array([[1, np.nan, 0]]), "NaN or infinite"),
        (np.array([[1, np.inf, 0]]), "NaN or infinite"),
        (np.array([[1e300, 0, 0]]), "NaN or infinite"),
        (RuntimeError("out of memory"), "RuntimeError: out of memory"),
    ],
)
def test_a_bad_answer_is_refused_with_the_models_name(answer: Any, complaint: str) -> None:
    with pytest.raises(ProviderError, match=complaint) as caught:
        checked(Given(answer), ["text"], "document")
    assert str(caught.value).startswith("given-3: ")


def test_an_error_of_ours_passes_as_it_is() -> None:
    with pytest.raises(NotFoundError, match="as it was"):
        checked(Given(NotFoundError("as it was")), ["text"], "query")


def test_very_large_and_very_small_vectors_keep_their_direction() -> None:
    for size in (1e30, 1e-30):
        vectors = checked(Given(np.array([[3 * size, 4 * size, 0]])), ["text"], "query")
        np.testing.assert_allclose(vectors, [[0.6, 0.8, 0]], rtol=1e-6)


def test_a_zero_answer_stays_zero_and_whole_numbers_are_numbers() -> None:
    assert checked(Given(np.zeros((1, 3))), ["text"], "query").tolist() == [[0, 0, 0]]
    assert checked(Given(np.array([[0, 2, 0]])), ["text"], "query").tolist() == [[0, 1, 0]]


@pytest.mark.parametrize("dim", [0, -1, None, "3"])
def test_a_dim_that_is_no_number_of_values_is_refused(dim: Any) -> None:
    embedder = Given()
    embedder.dim = dim
    with pytest.raises(ProviderError, match="given-3: its dim is"):
        checked(embedder, ["text"], "query")


@pytest.mark.parametrize("texts", ["one text", b"bytes", None, 7, [b"x"], ["fine", None]])
def test_what_is_no_list_of_texts_is_refused(texts: Any) -> None:
    with pytest.raises(InvalidInputError, match="texts"):
        checked(Given(), texts, "query")


def test_a_kind_that_is_neither_query_nor_document_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="use one of query, document"):
        checked(Given(), ["text"], "passage")  # type: ignore[arg-type]
