"""Does a question find its world? Attention against equal weights, the mean, and content alone.

python -m bench.world_study [--embedder wordllama] [--seeds 5]
python -m bench.world_study --data multihop.json    # real texts, see `passage_task`

The made-up task: two worlds for each of twelve themes. Both are called "Notes on sailing", so the
content tells the theme and not which of the two. Each has a few sentences about its own half of the
theme's words, among many about other themes, as notes and chats have. A question names two words of
one half. So the content alone cannot answer, and what is said about other things must not drown
what the world is about.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb import embedder_named
from worlddb.embed.embedder import Embedder, Vector, checked
from worlddb.evaluate.data_sets import opened
from worlddb.evaluate.figure_summary import wilson
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
PASSAGE_CHATTER = (0, 5, 20)  # a passage has four sentences: from nothing else to five times that
FIRST = 5  # worlds among which the right one counts as found: a reader looks at a few
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


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


def passage_task(path: str, name: str, chatter: int, seed: int) -> Task:
    """Return a task of real texts: each title is a world, its passage's sentences live in it.

    Among them are sentences of other passages, as many as `chatter`. Asked for are the gold
    passages whose titles the question does not say, so that the world's name cannot answer alone.
    """
    with opened(path) as file:
        group = json.load(file)[name]
    titles = list(group["passages"])
    texts = group["passages"].values()
    own = [[part for part in SENTENCE_END.split(text) if part] for text in texts]
    every = [sentence for part in own for sentence in part]
    rng = random.Random(seed)
    places = {title: number for number, title in enumerate(titles)}
    plain = [title.split(" (")[0] for title in titles]
    questions = [
        (one["question"], places[title])
        for one in group["questions"]
        for title in one["gold"]
        if title in places and plain[places[title]].casefold() not in one["question"].casefold()
    ]
    children = [part + [rng.choice(every) for _ in range(chatter)] for part in own]
    return Task(plain, children, questions)


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


def found_first(embedder: Embedder, task: Task, first: int) -> dict[str, NDArray[np.bool_]]:
    """Return for each way which questions have their world among the first ones."""
    sentences = {text: None for texts in task.children for text in texts}
    places = {text: place for place, text in enumerate(sentences)}
    read = checked(embedder, list(sentences), "document")
    asked = checked(embedder, [text for text, _ in task.questions], "query")
    gold = np.array([number for _, number in task.questions])
    contents = checked(embedder, task.contents, "document")
    children = [read[[places[text] for text in texts]] for texts in task.children]

    def found(way: Callable[[Vector, Vector], Vector]) -> NDArray[np.bool_]:
        pairs = zip(contents, children, strict=True)
        worlds: NDArray[np.float32] = np.stack([way(content, inside) for content, inside in pairs])
        order = np.argsort(-(asked @ worlds.T), axis=1, kind="stable")[:, :first]
        is_first: NDArray[np.bool_] = np.any(order == gold[:, None], axis=1)
        return is_first

    return {name: found(way) for name, way in WAYS.items()}


def made_up(embedder: Embedder, seeds: int) -> None:
    """Print the share of questions whose world comes first in the made-up task."""
    print(f"{'other sentences':>16} " + " ".join(f"{name:>14}" for name in WAYS))
    for chatter in CHATTER:
        found = [found_first(embedder, made_task(seed, chatter), 1) for seed in range(seeds)]
        means = (np.mean([one[name].mean() for one in found]) for name in WAYS)
        print(f"{chatter:>16} " + " ".join(f"{mean:>14.3f}" for mean in means))


def passages(embedder: Embedder, path: str, name: str) -> None:
    """Print the share of questions whose world is among the first five, with 95 % intervals."""
    for chatter in PASSAGE_CHATTER:
        task = passage_task(path, name, chatter, seed=0)
        count = len(task.questions)
        print(f"{name}: {len(task.contents)} worlds, {count} questions, {chatter} other sentences")
        ways = found_first(embedder, task, FIRST)
        for way, found in ways.items():
            low, high = wilson(int(found.sum()), count)
            more = ways["attention"].astype(np.float64) - found
            off = 1.96 * more.std() / np.sqrt(count)  # 95 % of a normal distribution
            print(
                f"  {way:>14} {found.mean():.3f} [{low:.3f}, {high:.3f}]"
                f"  attention is {more.mean():+.3f} ± {off:.3f}"
            )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", help="2Wiki and HotpotQA, as worlddb eval multihop takes them")
    parser.add_argument("--sets", default="hotpot,2wiki")
    args = parser.parse_args()
    embedder = embedder_named(args.embedder)
    if args.data is None:
        made_up(embedder, args.seeds)
    else:
        for name in args.sets.split(","):
            passages(embedder, args.data, name)


if __name__ == "__main__":
    main()
