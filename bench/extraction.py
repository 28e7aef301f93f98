"""Precision and recall of the rules extractor: `python -m bench.extraction [--errors]`.

Five sets of sentences, labelled with the claims and names a careful reader would write down:

fresh   `bench/data/fresh_sentences.jsonl`. Composed without a look at the rules, and frozen:
        **no rule, word list or test is ever tuned on it.** A miss here is a figure, not a bug.
        Over half of the sentences state nothing that a later statement could replace.
tuned   the sentences of `tests/language/english/`, on which the rules were developed. Its labels
        are of claims that replace others; those that only yield ("I'm a nurse") do not count.
subjects  `bench/data/fresh_subjects.jsonl`. Plain sentences, titles, headings and notes, with the
        entities they name and those they are about. Frozen like the first set.

names     `bench/data/fresh_names.jsonl`. The same, written later: names at the start of a
          sentence, with accents, in small letters, and words that are no names there. They were
          in sight while errors were mended.

relations `bench/data/fresh_relations.jsonl`. Sentences with and without a relation between things
        (`causes`, `precedes`, `contradicts`, `subtype_of`, `implies`), half of them written after
        the rules.

A claim is right if subject, relation and value agree ("Oslo" agrees with "Oslo, Norway"). A label
may list equivalent relations or spellings of a name, separated by "|". Intervals: Wilson, 95 %.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, TypeVar

from worlddb.claims.claim import agree
from worlddb.claims.claim_edges import claimed
from worlddb.evaluate.figure_summary import wilson
from worlddb.ingest.extractors import extractor_named
from worlddb.model.records import Draft, Message

# The days on which the sentences are taken to be said: fresh ones when they were written.
SAID = {
    "fresh": datetime(2026, 11, 16, 12, tzinfo=UTC),
    "tuned": datetime(2023, 5, 3, 12, tzinfo=UTC),
}
HERE = Path(__file__).parent
FRESH = HERE / "data" / "fresh_sentences.jsonl"
SUBJECTS = HERE / "data" / "fresh_subjects.jsonl"
RELATIONS = HERE / "data" / "fresh_relations.jsonl"
NAMES = HERE / "data" / "fresh_names.jsonl"
TESTS = HERE.parent / "tests"

Item = TypeVar("Item")
Same = Callable[[Item, Item], bool]


class Stated(NamedTuple):
    """A claim as it is compared: `value` holds, or `was` is said to be over."""

    subject: str
    relation: str
    value: str
    was: str


class Sentence(NamedTuple):
    """A text with its labels; `names` or `claims` is None where a set does not label them."""

    text: str
    claims: tuple[Stated, ...] | None
    names: tuple[str, ...] | None


class Score(NamedTuple):
    """What was found and expected (right), found only (wrong), expected only (missed)."""

    right: int
    wrong: int
    missed: int

    def line(self, what: str) -> str:
        """Return precision and recall as one printed row."""
        shares = []
        for name, total in (
            ("precision", self.right + self.wrong),
            ("recall", self.right + self.missed),
        ):
            low, high = wilson(self.right, total) if total else (0.0, 1.0)
            share = self.right / total if total else 0.0
            shares.append(f"{name} {share:6.1%} [{low:.1%}, {high:.1%}]")
        counts = f"{self.right} right, {self.wrong} wrong, {self.missed} missed"
        return f"{what:13} {shares[0]}  {shares[1]}  ({counts})"


def fresh() -> Iterator[Sentence]:
    """Yield the frozen sentences."""
    for line in FRESH.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        claims = tuple(
            Stated(one["subject"], one["relation"], one.get("value", ""), one.get("was", ""))
            for one in row["claims"]
        )
        yield Sentence(row["text"], claims, tuple(row["names"]))


def subjects(path: Path = SUBJECTS) -> Iterator[tuple[Sentence, tuple[str, ...]]]:
    """Yield the frozen sentences of a set with subjects, each with what it is about."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield Sentence(row["text"], None, tuple(row["names"])), tuple(row["about"])


def tuned() -> Iterator[Sentence]:
    """Yield the sentences that the tests of the English reader hold."""
    sys.path.insert(0, str(TESTS))
    claims = import_module("language.english.claim_sentences")
    for case in import_module("language.english.name_sentences").CASES:
        yield Sentence(case.text, None, case.names)
    for text, subject, relation, value, was in claims.CLAIMS:
        yield Sentence(text, (Stated(_subject(subject), relation, value, was),), None)
    for text, relation, value, was in claims.NOTES:
        yield Sentence(text, (Stated("I", relation, value, was),), None)
    for text in claims.NO_CLAIMS:
        yield Sentence(text, (), None)


def _subject(key: str) -> str:
    return "I" if key == "entity:user" else key.removeprefix("entity:")


def stated_in(draft: Draft, *, yielding: bool) -> list[Stated]:
    """Return the functional claims of a draft, with or without those that only yield."""
    found = []
    for edge in draft.edges:
        said = claimed(edge.metadata)
        counts = yielding or edge.metadata.get("yields") is not True
        if said is not None and said.functional and counts:
            found.append(Stated(_subject(edge.target), said.relation, said.value, said.was))
    return found


def names_in(draft: Draft) -> list[str]:
    """Return the entities that a draft refers to by name."""
    named = {edge.target for edge in draft.edges if "relation" not in edge.metadata}
    # Without a store, a word that is a name only if the store knows it is none.
    entities = (node for node in draft.nodes if node.type == "Entity" and not node.known_only)
    return [node.name for node in entities if node.key in named]


def subjects_in(draft: Draft) -> list[str]:
    """Return the entities that a draft is about."""
    about = {edge.target for edge in draft.edges if edge.metadata.get("role") == "about"}
    return [node.name for node in draft.nodes if node.key in about and not node.known_only]


def relations() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield the frozen sentences, each with the relations that it states."""
    for line in RELATIONS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield row["text"], [(it["type"], it["source"], it["target"]) for it in row["relations"]]


def relations_in(draft: Draft) -> list[tuple[str, str, str]]:
    """Return the edges between things of a draft: their type, and the names of their ends."""
    names = {node.key: node.name for node in draft.nodes}
    types = ("causes", "precedes", "contradicts", "subtype_of", "instance_of", "implies")
    return [
        (edge.type, names[edge.source], names[edge.target])
        for edge in draft.edges
        if edge.type in types
    ]


def same_claim(found: Stated, wanted: Stated) -> bool:
    """Return whether a claim is the one that a label means."""
    if found.subject.lower() != wanted.subject.lower():
        return False
    if found.relation not in wanted.relation.split("|"):
        return False
    if wanted.was and not agree(found.was, wanted.was):
        return False
    if not wanted.value:
        return not found.value
    return bool(found.value) and agree(found.value, wanted.value)


def same_name(found: str, wanted: str) -> bool:
    """Return whether a name is the one that a label means."""
    return found.lower() in wanted.lower().split("|")


class Tally:
    """Counts what was found against what was expected."""

    def __init__(self, what: str, *, errors: bool) -> None:
        self.what = what
        self.errors = errors
        self.right = self.wrong = self.missed = 0

    def add(
        self, text: str, found: Sequence[Item], wanted: Sequence[Item], same: Same[Item]
    ) -> None:
        """Count one sentence."""
        wrong = [one for one in found if not any(same(one, label) for label in wanted)]
        missed = [label for label in wanted if not any(same(one, label) for one in found)]
        self.right += len(wanted) - len(missed)
        self.wrong += len(wrong)
        self.missed += len(missed)
        if self.errors and (wrong or missed):
            print(f"{self.what}: {text}\n    wrong {wrong}\n    missed {missed}")

    def score(self) -> Score:
        """Return the counts."""
        return Score(self.right, self.wrong, self.missed)


def score(
    sentences: Iterable[Sentence], said: datetime, *, yielding: bool, errors: bool
) -> tuple[Score, Score]:
    """Return the scores of claims and of names over some sentences."""
    extractor = extractor_named("rules")
    claims, names = Tally("claims", errors=errors), Tally("names", errors=errors)
    for each in sentences:
        draft = extractor.extract([Message(text=each.text, speaker="user")], said)
        if each.claims is not None:
            claims.add(each.text, stated_in(draft, yielding=yielding), each.claims, same_claim)
        if each.names is not None:
            names.add(each.text, names_in(draft), each.names, same_name)
    return claims.score(), names.score()


def main() -> None:
    """Print the figures of all sets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--errors", action="store_true", help="print what was wrong or missed")
    arguments = parser.parse_args()
    for name, sentences in (("fresh", list(fresh())), ("tuned", list(tuned()))):
        claims, names = score(
            sentences, SAID[name], yielding=name == "fresh", errors=arguments.errors
        )
        print(f"{name}: {len(sentences)} sentences")
        print(claims.line("  claims"))
        print(names.line("  entities"))
    for what, path in (("subjects", SUBJECTS), ("names", NAMES)):
        labelled = list(subjects(path))
        found = score(
            (one for one, _ in labelled), SAID["fresh"], yielding=False, errors=arguments.errors
        )
        about = Tally("about", errors=arguments.errors)
        for one, wanted in labelled:
            draft = extractor_named("rules").extract([Message(text=one.text)], SAID["fresh"])
            about.add(one.text, subjects_in(draft), wanted, same_name)
        print(f"{what}: {len(labelled)} sentences")
        print(found[1].line("  entities"))
        print(about.score().line("  about"))
    stated = Tally("relations", errors=arguments.errors)
    for text, ends in relations():
        draft = extractor_named("rules").extract([Message(text=text)], SAID["fresh"])
        stated.add(text, relations_in(draft), ends, lambda one, other: one == other)
    print(stated.score().line("relations"))


if __name__ == "__main__":
    main()
