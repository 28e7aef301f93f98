"""Token vectors: kept beside the vectors, read for the best of a search, exact, and checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import apsw
import numpy as np
import pytest
from numpy.typing import NDArray

import worlddb
from worlddb import CorruptionError, ProviderError, RecallSettings, Weights, WorldDB
from worlddb.index import vectors
from worlddb.index.bm25 import SaidWords, unlikely
from worlddb.index.vectors import TOKEN_DIM, late_interaction_scores

from .exact_texts import ExactEmbedder

WORDS = {"red": 0, "bike": 1, "shed": 2, "tea": 3, "blue": 4}


def word(text: str) -> NDArray[np.int8]:
    """Return a row for each word that is known: 127 in a place of its own."""
    rows = np.zeros((0, TOKEN_DIM), dtype=np.int8)
    for one in text.lower().replace(":", " ").split():
        if one in WORDS:
            row = np.zeros((1, TOKEN_DIM), dtype=np.int8)
            row[0, WORDS[one]] = 127
            rows = np.concatenate((rows, row))
    return rows


class ReadingEmbedder(ExactEmbedder):
    """Vectors that say nothing, and token vectors that say which words there are."""

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), self.dim), dtype=np.float32)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.documents.update(texts)
        return np.ones((len(texts), self.dim), dtype=np.float32)

    def read_question(self, text: str) -> NDArray[np.int8]:
        return word(text)

    def read_texts(self, texts: Sequence[str]) -> list[NDArray[np.int8]]:
        return [word(text) for text in texts]


TEXTS = ("the blue bike", "the red shed", "the red bike", "tea", "nothing of it")
BY_TOKENS = RecallSettings(
    weights={"vector": 1.0},
    weighing=Weights(vector=0, following=0, world=0, opening=0, reply=0, speaker=0, date=0),
)


def written(path: Path | str, embedder: ExactEmbedder) -> WorldDB:
    db = worlddb.open(path, embedder=embedder)
    with db.transaction(actor="test") as tx:
        for text in TEXTS:
            tx.create_node(type="Memory", content=text)
    return db


def contents(db: WorldDB, question: str, settings: RecallSettings = BY_TOKENS) -> list[str]:
    return [hit.node.content for hit in db.recall(question, settings=settings)]


def test_what_has_all_words_of_the_question_comes_before_what_has_some() -> None:
    with written(":memory:", ReadingEmbedder()) as db:
        found = contents(db, "red bike")
    assert found[0] == "the red bike"
    assert set(found[1:3]) <= {"the blue bike", "the red shed"}


def test_token_vectors_are_kept_in_the_store_and_found_by_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with written(path, ReadingEmbedder()) as db:
        first = contents(db, "red bike")
    embedder = ReadingEmbedder()
    with worlddb.open(path, embedder=embedder) as db:
        assert contents(db, "red bike") == first
        assert db.check() == []
    assert not embedder.documents


def test_a_store_that_may_only_be_read_is_searched_by_token_vectors_too(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    written(path, ReadingEmbedder()).close()
    with worlddb.open(path, embedder=ReadingEmbedder(), read_only=True) as db:
        assert contents(db, "red bike")[0] == "the red bike"


def test_without_their_weight_token_vectors_change_nothing() -> None:
    without = RecallSettings(weights={"vector": 1.0}, weighing=Weights(late=0), recency=False)
    with written(":memory:", ReadingEmbedder()) as db:
        plain = db.recall("red bike", settings=without)
        read = db.recall("red bike", settings=BY_TOKENS)
    # By scores, not by order: ids are drawn, and their order may be the one that reading gives.
    assert len({hit.score for hit in plain}) == 1
    assert [hit.node.id for hit in plain] == sorted(hit.node.id for hit in plain)
    assert len({hit.score for hit in read}) > 1


def test_another_embedder_takes_its_token_vectors_away(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with written(path, ReadingEmbedder("one")) as db:
        db.recall("red bike")
        db.reindex(ExactEmbedder("two"))
        assert db.check() == []
    con = apsw.Connection(str(path))
    assert list(con.execute("SELECT * FROM tokens")) == []
    con.close()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE tokens SET vectors = x'0102' WHERE node = 2", "they are malformed"),
        ("UPDATE tokens SET model = 7 WHERE node = 2", "there is no such model"),
        ("UPDATE tokens SET node = 99 WHERE node = 2", "is not embedded"),
    ],
)
def test_damaged_token_vectors_are_found_by_check(tmp_path: Path, damage: str, said: str) -> None:
    path = tmp_path / "m.db"
    with written(path, ReadingEmbedder()) as db:
        db.recall("red bike")
    con = apsw.Connection(str(path))
    con.execute(damage)
    con.close()
    with worlddb.open(path, embedder=ReadingEmbedder()) as db:
        assert said in str(db.check())
        if "0102" in damage:
            with pytest.raises(CorruptionError, match="damaged"):
                db.recall("red bike")


def test_an_embedder_with_token_vectors_of_another_size_is_refused() -> None:
    class Wrong(ReadingEmbedder):
        def read_texts(self, texts: Sequence[str]) -> list[NDArray[np.int8]]:
            return [word(text)[:, :5] for text in texts]

    with written(":memory:", Wrong()) as db, pytest.raises(ProviderError, match="rows of 128"):
        db.recall("red bike")


def test_equal_texts_are_equally_close_wherever_they_stand() -> None:
    rng = np.random.default_rng(3)
    some = rng.integers(-127, 128, (40, 9, TOKEN_DIM)).astype(np.int8)
    asked = rng.integers(-127, 128, (7, TOKEN_DIM)).astype(np.int8)
    texts = [*some, some[0], some[17][:4], some[0]]
    scores = late_interaction_scores(asked, texts)
    assert scores[0] == scores[40] == scores[42]
    order = rng.permutation(len(texts))
    assert np.allclose(
        late_interaction_scores(asked, [texts[place] for place in order]), scores[order]
    )


def test_texts_or_questions_of_no_words_have_a_score_too() -> None:
    nothing = np.zeros((0, TOKEN_DIM), dtype=np.int8)
    assert late_interaction_scores(word("red"), []).tolist() == []
    assert late_interaction_scores(nothing, [word("red"), nothing]).tolist() == [0.0, 0.0]
    with_word, without = late_interaction_scores(word("red"), [word("red"), nothing])
    assert with_word > without


DIRECTIONS = {"dog": (1.0, 0.0), "beagle": (0.8, 0.6), "rent": (0.0, 1.0), "bread": (-1.0, 0.0)}


def test_texts_meet_words_by_the_word_most_like_each_of_them() -> None:
    made: list[str] = []

    def embed(words: Sequence[str]) -> NDArray[np.float32]:
        made.extend(words)
        return np.array([DIRECTIONS.get(word, (0.0, 0.0)) for word in words], dtype=np.float32)

    said = SaidWords()
    texts = ("A beagle!", "", "Bread, and the rent.", "a BEAGLE and a beagle", "the 1984 of")
    for at, text in enumerate(texts):
        said.add(at, text)
    asked = {"dog": 3.0, "rent": 1.0}
    met = said.met(range(5), asked, embed)
    assert met == pytest.approx(
        [(3 * 0.8 + 0.6) / 4, 0.0, 1 / 4, (3 * 0.8 + 0.6) / 4, 0.0], abs=0.1
    )
    assert met[0] == met[3]
    assert met[1] == met[4] == 0.0, "no word, so none that is unlikely"
    assert Counter(made)["beagle"] == 1, "the vector of a word is made once"
    said.add(5, "Dog")
    assert said.met([5, 0], asked, embed) == pytest.approx([3 / 4, (3 * 0.8 + 0.6) / 4], abs=0.1)
    assert said.met([0], {}, embed).tolist() == [0.0]
    assert not len(said.met([], asked, embed))


def test_a_similar_word_counts_by_how_unlikely_it_is_in_a_text_of_that_length() -> None:
    # Forty texts of four words; one has the word "beagle", another has it among thirty-six others.
    near = np.zeros((1, 4 * 40 + 4 + 37), dtype=np.float32)
    short, long = 160, 164
    near[0, short] = near[0, long] = 0.8
    lengths = np.array([4] * 40 + [4, 37])
    best = np.array([[0.0] * 40 + [0.8, 0.8]], dtype=np.float32)
    found = unlikely(near, best, lengths)[0]
    assert found[:40].tolist() == [0.0] * 40, "what has no similar word gains nothing"
    assert 0.5 < found[40] < 1.0, "two of 201 words are as near, and it has four"
    assert 0.0 < found[41] < 0.2, "of 37 words one is near to anything"

    def embed(words: Sequence[str]) -> NDArray[np.float32]:
        return np.array([DIRECTIONS.get(word, (0.0, 0.0)) for word in words], dtype=np.float32)

    said = SaidWords()
    trees = ["oak", "elm", "ash", "fir", "yew", "box", "bay", "fig"]
    long_text = " ".join(one + other for one in trees for other in trees)
    for at, text in enumerate(
        [*["oak elm ash fir"] * 40, "our beagle barks", long_text + " beagle"]
    ):
        said.add(at, text)
    met = said.met(range(42), {"dog": 1.0}, embed)
    assert met[40] > met[41] + 0.5 > 0.8 + 0.5


def test_in_a_small_world_no_word_is_unlikely() -> None:
    near = np.array([[0.9, 0.0, 0.1, 0.0, 0.2, 0.0]], dtype=np.float32)
    best, lengths = np.array([[0.9, 0.1, 0.2]], dtype=np.float32), np.array([2, 2, 2])
    found = unlikely(near, best, lengths)[0]
    assert found[0] == found.max()
    assert found.max() < 0.1


def test_token_vectors_are_kept_until_something_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    with written(":memory:", ReadingEmbedder()) as db:
        before = contents(db, "red bike")
        kept = db.engine.search.vectors()._tokens
        assert {len(tokens) for tokens in kept._kept.values()} == {1, 2}
        with db.transaction(actor="test") as tx:
            new = tx.create_node(type="Memory", content="red tea in the red shed").id
        assert set(contents(db, "red bike")) == {*before, "red tea in the red shed"}
        db.erase(new)
        assert contents(db, "red bike") == before
        assert {len(tokens) for tokens in kept._kept.values()} == {1, 2}
        monkeypatch.setattr(vectors, "TOKENS_KEPT_BYTES", 3 * TOKEN_DIM)
        with db.transaction(actor="test") as tx:
            tx.create_node(type="Memory", content="blue tea")
        assert set(contents(db, "red bike")) == {*before, "blue tea"}
        assert sum(tokens.nbytes for tokens in kept._kept.values()) <= 3 * TOKEN_DIM
