"""The words of a question: near a turn, and alone where the embedder cannot read them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import worlddb
from worlddb.embed.embedder import HashEmbedder
from worlddb.index.bm25 import Bm25, WordCover, nearness
from worlddb.index.ranking_numbers import SCALARS
from worlddb.recall.ranker import turns_before

FADING = replace(SCALARS, said_before=0.5, said_after=0.25, said_alone=0.5)

TOLD = "我用的美妆产品是雪花精华露。"
MORE = "雪花精华露真的很舒服，皮肤变好了。"
OTHERS = ("昨天的会议在南京。", "他喜欢攀岩和游泳。", "火车下午三点出发。", "新的公司在青岛。")
ANSWER = "The crumb of the bread was dense."
QUESTION = "我用的美妆产品是什么？"


class Blind(HashEmbedder):
    """Knows no script."""

    def reads(self, text: str) -> bool:
        return False


def test_what_has_the_words_of_the_best_text_follows_it() -> None:
    with worlddb.open(":memory:", embedder=Blind()) as db:
        with db.transaction(actor="test") as tx:
            for number, text in enumerate((*OTHERS, TOLD, MORE)):
                world = tx.create_node(type="Session", name=f"day {number}").id
                tx.create_node(type="Turn", name="user", content=text, parent=world)
        found = db.recall(QUESTION, types=["Turn"])
        assert [hit.node.content for hit in found.hits[:2]] == [TOLD, MORE]
        gained = {hit.node.content: hit.weighed["feedback"] for hit in found}
        assert gained.pop(TOLD) > gained.pop(MORE) > max(gained.values(), default=-1.0)
        assert "vector" not in found[0].weighed


def test_a_word_counts_less_with_each_turn_between_and_not_in_another_conversation() -> None:
    has = np.array([[False, True, False, False, False, False]])
    first = np.array([True, False, False, False, True, False])
    assert nearness(has, first, FADING).tolist() == [[0.25, 1.0, 0.5, 0.25, 0.0, 0.0]]
    two = np.array([[True, False, False, True, False, False]])
    assert nearness(two, first, FADING)[0, 1:3].tolist() == [0.5, 0.25]  # the nearer one counts


def test_what_was_said_around_is_told_by_conversation_whatever_the_order_of_writing() -> None:
    index = Bm25()
    for said in ("lake tent", "train", "yes", "no", "tent"):
        index.add(said.split())
    parents = np.array([1, 2, 1, 2, 1])
    before = turns_before(parents, np.array([True, True, True, True, False]))
    cover = WordCover(index, {"lake": 1.0}, np.arange(5), np.ones(5, dtype=bool))
    assert cover.around(parents, before, FADING).tolist() == [1.0, 0.0, 0.5, 0.0, 0.0]
    assert cover.shares.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    memories = turns_before(parents, np.zeros(5, dtype=bool))
    assert cover.around(parents, memories, FADING).tolist() == [0.5, 0.0, 0.0, 0.0, 0.0]


def test_an_answer_is_found_by_the_word_that_a_turn_before_it_has() -> None:
    with worlddb.open(":memory:") as db:
        db.ingest(
            [
                {"role": "user", "content": "Did the sourdough come out well?"},
                {"role": "assistant", "content": "How was the bread in the end?"},
                {"role": "user", "content": ANSWER},
            ],
            extractor="verbatim",
        )
        weighed = {hit.node.content: hit.weighed for hit in db.recall("sourdough", k=3)}
        asked, answer = weighed["How was the bread in the end?"], weighed[ANSWER]
        assert asked["around"] > answer["around"] > 0.0
        assert answer["cover"] == 0.0


def test_without_an_embedder_the_best_text_leads_on_by_words_that_were_not_asked() -> None:
    told, meant = "My cousin lives in Ulm.", "My cousin has a hobby, the oboe."
    others = ("A fair shows a hobby, the trains.", "Pears are ripe.", "We sang.", "Rain fell.")
    with worlddb.open(":memory:", embedder="none") as db:
        with db.transaction(actor="test") as tx:
            for number, text in enumerate((*others, told, meant)):
                world = tx.create_node(type="Session", name=f"day {number}").id
                tx.create_node(type="Turn", name="user", content=text, parent=world)
        found = db.recall("Which hobby has the one who lives in Ulm?", types=["Turn"])
        gained = {hit.node.content: hit.weighed["feedback"] for hit in found}
        assert gained[told] >= gained[meant] > gained[others[0]]
