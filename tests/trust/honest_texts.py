"""Honest texts: how many an assistant writes of its own that are taken for echoes of pages.

python tests/trust/honest_texts.py        prints all figures of docs/trust.md

The texts are those of three conversations that have nothing to do with each other. Whatever of one
is lowered in trust beside pages made of another is lowered by mistake. Beside pages of the same
conversation, names and topics are the same, and nothing is quoted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from worlddb import Memory

DATA = Path(__file__).parents[2] / "bench" / "data" / "fresh_conversations.json"


class Lowered(NamedTuple):
    """How many texts were lowered in trust, of how many."""

    lowered: int
    written: int

    def __add__(self, other: object) -> Lowered:
        assert isinstance(other, Lowered)
        return Lowered(self.lowered + other.lowered, self.written + other.written)


def conversations() -> list[list[list[str]]]:
    """Return the sessions of each conversation, as the texts of their turns."""
    return [
        [[turn["content"] for turn in session["turns"]] for session in one["sessions"]]
        for one in json.loads(DATA.read_text(encoding="utf-8"))
    ]


def beside_pages(pages: Sequence[Sequence[str]], said: Sequence[Sequence[str]]) -> Lowered:
    """Write sessions as pages, then each turn of others as a note of the assistant."""
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        for page in pages:
            memory.write("\n".join(page), origin="web")
        done = [memory.write(text, origin="assistant") for turns in said for text in turns]
        return Lowered(sum(memory.read(one.id).trust != "full" for one in done), len(done))


def after_a_tool(pages: Sequence[Sequence[str]], said: Sequence[Sequence[str]]) -> Lowered:
    """Write chats in which a tool returns a page, and the assistant says something else."""
    found = Lowered(0, 0)
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        for page, turns in zip(pages, said, strict=False):
            chat = [{"role": "tool", "content": "\n".join(page)}]
            chat += [{"role": "assistant", "content": text} for text in turns]
            children = memory.db.children(memory.write(messages=chat).id)
            origins = [one.origin for one in children if one.content in turns]
            found += Lowered(sum(one != "assistant" for one in origins), len(origins))
    return found


def main() -> None:
    """Print the figures."""
    every, none = conversations(), Lowered(0, 0)
    pairs = list(permutations(every, 2))
    print("beside pages about other things", sum((beside_pages(*pair) for pair in pairs), none))
    halves = [(one[: len(one) // 2], one[len(one) // 2 :]) for one in every]
    print("beside pages about the same things", sum((beside_pages(*pair) for pair in halves), none))
    print("after a tool in the same chat", sum((after_a_tool(*pair) for pair in pairs), none))


if __name__ == "__main__":
    main()
