"""The triples that the comparison of two texts is fitted to and judged by.

A triple is a question, an older and a later text. `data/update_topics.txt` has topics of everyday
life in nine languages, from which triples are composed. The files of `GROUPS` have one question and
one older text a line, with later ones that answer it anew and later ones that do not. What follows
from a line is in the triples, too: an update of an update, the older text after an update, and a
later text after one that was no answer. `everyday_updates.json` and `further_updates.json` have
single pairs. Nothing is fitted to the files of `BLIND`. All were written for this
purpose, those of the languages, the third, the fourth and everyday life by a language model.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from worlddb.language.statement import statement_of

DATA = Path(__file__).parent / "data"
TOPICS = "update_topics.txt"
GROUPS = {
    "update_pairs.jsonl": "first",
    "update_pairs_apart.jsonl": "second",
    "update_pairs_third.jsonl": "third",
    "update_pairs_fourth.jsonl": "fourth",
    "update_pairs_languages.jsonl": "languages",
    "update_pairs_everyday.jsonl": "everyday",
    "update_pairs_private.jsonl": "private",
    "update_pairs_households.jsonl": "households",
    "update_pairs_work.jsonl": "work",
    "update_pairs_world.jsonl": "world",
    "update_pairs_others.jsonl": "others",
    "update_pairs_scenes.jsonl": "scenes",
    "update_pairs_tester.jsonl": "tester",
    "update_pairs_facts.jsonl": "facts",
}
"""Files, and who wrote them: a figure for one author comes from a fit without that author."""
SINGLES = ("everyday_updates.json", "further_updates.json")
BLIND = tuple(
    f"update_blind{name}.jsonl" for name in ("", "_further", "_third", "_fourth", "_fifth")
)
FITTED = (TOPICS, *GROUPS, *SINGLES)
COMPOSED_UPDATES = 3  # triples of each phrasing of an update
REMARKS = 3  # about the older value, of each topic
CHAINED = 2  # updates of an update, of each line
BESIDE = ("person", "thing", "attribute", "event", "past", "plan")
"""Kinds of decoys that do not answer the question: an update after them replaces nothing."""


class Triple(NamedTuple):
    """A question, two texts, whether the later answers anew, and where the triple comes from.

    `kind` is "update", or why the later text is none. `key` names the line or the topic.
    """

    topic: str
    language: str
    question: str
    older: str
    newer: str
    label: int
    source: str = "given"
    kind: str = ""
    author: str = ""
    key: str = ""

    @property
    def is_compared(self) -> bool:
        """Whether both texts are statements: others are never compared."""
        return None not in (statement_of(self.older), statement_of(self.newer))


class Topic(NamedTuple):
    """A topic of the file: its parts by their letter, and the decoys by kind."""

    topic: str
    language: str
    parts: dict[str, list[str]]
    decoys: dict[str, list[str]]

    def filled(self, chance: random.Random) -> Callable[[str], str]:
        """Return a function that puts one pair of values into phrasings."""
        marks = dict(zip("ab", chance.sample(self.parts["v"], 2), strict=True))
        if "t" in self.parts:
            marks |= zip("ts", chance.sample(self.parts["t"], 2), strict=True)
        return lambda text: _capital(re.sub(r"{(\w)}", lambda it: marks[it[1]], text))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def topics() -> list[Topic]:
    """Return the topics of the file."""
    found: list[Topic] = []
    for line in (DATA / TOPICS).read_text(encoding="utf-8").splitlines():
        if line.startswith("="):
            topic, language = line[2:].split()[:2]
            found.append(Topic(topic, language, {}, {}))
        elif line and not line.startswith("#"):
            head, _, rest = line.partition(": ")
            kept = found[-1].decoys if head.startswith("d ") else found[-1].parts
            kept[head.removeprefix("d ")] = [part.strip() for part in rest.split("|")]
    return found


def composed(chance: random.Random) -> Iterator[Triple]:
    """Yield triples of all topics: each phrasing of an update some times, each decoy twice.

    The older phrasing with another value is an update, too. What repeats the older text and says
    something more is none, nor are remarks about the older value, which fit any topic.
    """
    every = topics()
    fillers = {it.language: it.parts["f"] for it in every if it.topic == "fillers"}
    remarks = {it.language: it.decoys["remark"] for it in every if it.topic == "remarks"}
    for topic in every:
        if topic.topic in ("fillers", "remarks"):
            continue
        parts, end = topic.parts, ("first", topic.topic)
        later = [(text, 1) for text in parts["u"]] * COMPOSED_UPDATES
        later += [(text, 0) for texts in topic.decoys.values() for text in texts] * 2
        said = remarks.get(topic.language, ())
        later += [(text, 0) for text in chance.sample(said, min(REMARKS, len(said)))]
        later += [(text.replace("{a}", "{b}"), 1) for text in parts["o"]]
        for text, label in later:
            fill = topic.filled(chance)
            older, question = chance.choice(parts["o"]), chance.choice(parts["q"])
            head = topic.topic, topic.language, fill(question)
            yield Triple(*head, fill(older), fill(text), label, "composed", _kind(label), *end)
        for older in parts["o"]:
            fill = topic.filled(chance)
            more = f"{fill(older)} {chance.choice(fillers[topic.language])}"
            question = fill(chance.choice(parts["q"]))
            head = topic.topic, topic.language, question
            yield Triple(*head, fill(older), more, 0, "composed", "repeat", *end)


def grouped(name: str, chance: random.Random) -> Iterator[Triple]:
    """Yield the pairs of the lines with several later texts, and those that follow."""
    for number, item in enumerate(lines(name)):
        key = f"{name} {number}"
        head = item["topic"], item["language"], item["question"]
        older, updates, decoys = item["older"], item["updates"], item["decoys"]
        end = GROUPS[name], key
        yield from (Triple(*head, older, it, 1, "given", "update", *end) for it in updates)
        yield from (Triple(*head, older, it, 0, "given", kind, *end) for kind, it in decoys)
        others = [it for kind, it in decoys if kind in BESIDE]
        for update in updates:
            for before in chance.sample(updates, min(CHAINED, len(updates))):
                if before != update:
                    yield Triple(*head, before, update, 1, "chained", "update", *end)
            yield Triple(*head, update, older, 1, "chained", "update", *end)
            if others:
                before = chance.choice(others)
                yield Triple(*head, before, update, 0, "unasked", "unasked", *end)
        for kind, it in decoys:
            if kind not in ("same", "repeat"):
                yield Triple(*head, chance.choice(updates), it, 0, "chained", kind, *end)


def single() -> Iterator[Triple]:
    """Yield the pairs of the files of single ones."""
    for name in SINGLES:
        pairs = json.loads((DATA / name).read_text(encoding="utf-8"))
        for label, kind in enumerate(("decoys", "updates")):
            for old, new, asked in pairs[kind]:
                yield Triple("", "en", asked, old, new, label, "given", _kind(label), "first", old)


def _kind(label: int) -> str:
    return "update" if label else "other"


def blind(name: str) -> list[Triple]:
    """Return the pairs of a file that is not fitted to; some have their own names for the parts."""
    return [
        Triple(
            it.get("topic", it["question"]),
            it["language"],
            it["question"],
            it["older"] if "older" in it else it["old"],
            it["newer"] if "newer" in it else it["new"],
            it.get("label", int(it.get("kind") == "update")),
        )
        for it in lines(name)
    ]


def fitted(chance: random.Random) -> list[Triple]:
    """Return all triples that are fitted to."""
    found = [it for name in GROUPS for it in grouped(name, chance)]
    found += [*single(), *composed(chance)]
    return [it for it in found if it.is_compared]


def lines(name: str) -> list[dict[str, Any]]:
    """Return the objects of a file with one a line."""
    return [json.loads(it) for it in (DATA / name).read_text(encoding="utf-8").splitlines()]
