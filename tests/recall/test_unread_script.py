"""Where the embedder cannot read the question, words tell which texts belong together."""

from __future__ import annotations

import pytest

import worlddb
from worlddb import RecallSettings, Weights
from worlddb.embed.embedder import HashEmbedder

TOLD = "我用的美妆产品是雪花精华露。"
MORE = "雪花精华露真的很舒服，皮肤变好了。"
OTHERS = ("昨天的会议在南京。", "他喜欢攀岩和游泳。", "火车下午三点出发。", "新的公司在青岛。")
QUESTION = "我用的美妆产品是什么？"


class Blind(HashEmbedder):
    """Knows no script."""

    def reads(self, text: str) -> bool:
        return False


@pytest.mark.parametrize("feedback", [0.0, Weights().feedback])
def test_what_has_the_words_of_the_best_text_follows_it(feedback: float) -> None:
    with worlddb.open(":memory:", embedder=Blind()) as db:
        with db.transaction(actor="test") as tx:
            for number, text in enumerate((*OTHERS, TOLD, MORE)):
                world = tx.create_node(type="Session", name=f"day {number}").id
                tx.create_node(type="Turn", name="user", content=text, parent=world)
        settings = RecallSettings(weighing=Weights(feedback=feedback))
        found = db.recall(QUESTION, types=["Turn"], settings=settings)
        assert found[0].node.content == TOLD
        assert "vector" not in found[0].weighed
        assert (found[1].node.content == MORE) == bool(feedback)
