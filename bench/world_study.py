"""Does a question find its world? Attention against equal weights, the mean, and content alone.

python -m bench.world_study [--embedder wordllama] [--seeds 5]

The task: two worlds for each of twelve themes. Both are called "Notes on sailing", so the content
tells the theme and not which of the two. Each has a few sentences about its own half of the theme's
words, among many about other themes, as notes and chats have. A question names two words of one
half. So the content alone cannot answer, and what is said about other things must not drown what
the world is about.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb import embedder_named
from worlddb.embed.embedder import Embedder, Vector, checked
from worlddb.index.composed_worlds import Pool, changed, effective, empty_pool

THEMES = {
    "sailing": "rudder mast anchor harbour jib keel buoy tide sextant rope halyard regatta",
    "baking": "sourdough oven yeast flour crust apron dough glaze muffin cinnamon brioche tin",
    "taxes": "deduction invoice audit receipt refund ledger allowance accountant bracket fee form",
    "gardening": "compost trowel tomato seedling hedge mulch pruning greenhouse slug tulip rake",
    "the orchestra": "violin oboe rehearsal score bassoon overture cello timpani bow symphony",
    "chess": "bishop gambit endgame rook checkmate castling pawn knight opening stalemate clock",
    "the hospital": "surgeon ward bandage x-ray nurse anaesthetic prescription stretcher fever",
    "the railway": "locomotive platform signal carriage timetable junction freight ticket tunnel",
    "astronomy": "telescope nebula comet orbit eclipse galaxy lens meteor planet constellation",
    "carpentry": "chisel plywood dowel sandpaper lathe varnish hinge saw drill workbench clamp",
    "football": "striker penalty goalkeeper offside referee midfield tackle stadium header league",
    "the court": "verdict witness jury appeal contract plaintiff statute bail testimony judge",
}
SAID = (
    "We talked about the {} and the {}.",
    "Somebody asked for the {}, and then for the {}.",
    "The {} and the {} were on the list.",
)
ASKED = ("What was said about the {} and the {}?", "Where did the {} and the {} come up?")
OWN, QUESTIONS = 4, 4
"""Sentences about its own theme in each world, and questions about each world."""
CHATTER = (20, 60, 200)  # sentences about other themes: from a short note to a long chat


class Task(NamedTuple):
    """The content and the sentences of each world, and questions with the number of their world."""

    contents: list[str]
    children: list[list[str]]
    questions: list[tuple[str, int]]


def made_task(seed: int, chatter: int) -> Task:
    """Return the task of a seed, with so many sentences about other themes in each world."""
    rng = random.Random(seed)
    halves: list[tuple[str, list[str]]] = []
    for theme, text in THEMES.items():
        words = text.split()
        rng.shuffle(words)
        middle = len(words) // 2
        halves += [(theme, words[:middle]), (theme, words[middle:])]

    def said(words: Sequence[str]) -> str:
        return rng.choice(SAID).format(*rng.sample(words, 2))

    task = Task([], [], [])
    for number, (theme, words) in enumerate(halves):
        others = [other for other in halves if other[0] != theme]
        sentences = [said(words) for _ in range(OWN)]
        sentences += [said(rng.choice(others)[1]) for _ in range(chatter)]
        task.contents.append(f"Notes on {theme}")
        task.children.append(sentences)
        for _ in range(QUESTIONS):
            task.questions.append((rng.choice(ASKED).format(*rng.sample(words, 2)), number))
    return task


def _equal(content: Vector, children: Vector) -> Vector:
    total = children.astype(np.float64).sum(axis=0)
    return effective(content, Pool(len(children), float(len(children)), total), "attention")


def _attention(content: Vector, children: Vector) -> Vector:
    empty = empty_pool(len(content))
    pool = changed(empty, content, children[:0], children, "attention")
    return effective(content, pool, "attention")


def _mean(content: Vector, children: Vector) -> Vector:
    empty = empty_pool(len(content))
    return effective(content, changed(empty, content, children[:0], children, "mean"), "mean")


WAYS: dict[str, Callable[[Vector, Vector], Vector]] = {
    "attention": _attention,
    "equal weights": _equal,
    "mean": _mean,
    "content alone": lambda content, children: content,
}


def shares(embedder: Embedder, seed: int, chatter: int) -> dict[str, float]:
    """Return the share of questions whose world comes first, for each way to compose worlds."""
    task = made_task(seed, chatter)
    asked = checked(embedder, [text for text, _ in task.questions], "query")
    gold = np.array([number for _, number in task.questions])
    contents = checked(embedder, task.contents, "document")
    children = [checked(embedder, texts, "document") for texts in task.children]

    def share(way: Callable[[Vector, Vector], Vector]) -> float:
        worlds: NDArray[np.float32] = np.stack(
            [way(content, inside) for content, inside in zip(contents, children, strict=True)]
        )
        return float(np.mean(np.argmax(asked @ worlds.T, axis=1) == gold))

    return {name: share(way) for name, way in WAYS.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    embedder = embedder_named(args.embedder)
    print(f"{'other sentences':>16} " + " ".join(f"{name:>14}" for name in WAYS))
    for chatter in CHATTER:
        found = [shares(embedder, seed, chatter) for seed in range(args.seeds)]
        means = (np.mean([one[name] for one in found]) for name in WAYS)
        print(f"{chatter:>16} " + " ".join(f"{mean:>14.3f}" for mean in means))


if __name__ == "__main__":
    main()
