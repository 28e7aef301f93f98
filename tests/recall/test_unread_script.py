"""Where the embedder cannot read the question, words tell which texts belong together."""

from __future__ import annotations

import worlddb
from worlddb.embed.embedder import HashEmbedder

TOLD = "我用的美妆产品是雪花精华露。"
MORE = "雪花精华露真的很舒服，皮肤变好了。"
OTHERS = ("昨天的会议在南京。", "他喜欢攀岩和游泳。", "火车下午三点出发。", "新的公司在青岛。")
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
