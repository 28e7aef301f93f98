"""Linked sets: multi-hop passages, and facts that replace one another.

Each function yields the cases of one item of a file, or raises `KeyError` or `LayoutError`.

Multi-hop: an object from the name of a set to its `passages` (title → text) and `questions` (`id`,
`question`, `answer`, `gold`: titles). The passages of a set are one case; each is a memory that
begins with its title and a colon.

FactConsolidation: `context` (numbered facts, one per line; a later fact replaces an earlier one of
the same subject and relation), `questions`, `answers` (accepted texts), `metadata` with `source`
(`sh` single-hop, `mh` multi-hop). The file marks no gold, so rules find it. The *value* of a fact
is its end; facts that differ only in the value are twins, and the last twin is current.

    single-hop   the current fact that ends with an accepted answer and shares most words with the
                 question
    multi-hop    the shortest chain of current facts that ends with an accepted answer: each begins
                 with the value of the one before, the first with a name in the question
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from worlddb.evaluate.benchmark_cases import (
    Case,
    CaseSession,
    CaseTurn,
    GoldQuestion,
    LayoutError,
    list_in,
    object_in,
    reference_in,
    text_in,
)

WRITTEN_AT = datetime(2024, 1, 1, tzinfo=UTC)  # Passages and facts have no date of their own.
SPEAKER = "user"
CHAIN_MAX = 4  # hops of the longest questions
VALUE_WORDS_MAX = 9  # words of the longest value

_NUMBERED = re.compile(r"(\d+)\.\s+(.+)")
_WORD = re.compile(r"\w[\w.'’&-]*")
# Words before the subject of a fact: "The author of …", "The type of music that … plays".
_LEADING = frozenset(("", "of", "that", "where", "the", "in", "for"))


def multihop_cases(item: dict[str, Any], place: int) -> Iterator[Case]:
    """Yield each set of passages with its questions."""
    for name, given in item.items():
        group = object_in(given, name)
        passages = object_in(group["passages"], f"{name}, passages")
        places = {title: number for number, title in enumerate(passages)}
        sessions = tuple(
            _memory(f"{title}: {text_in(text, f'{name}, passages, {title}')}", WRITTEN_AT)
            for title, text in passages.items()
        )
        questions = []
        for number, one in enumerate(list_in(group["questions"], f"{name}, questions"), 1):
            what = f"{name}, questions, {number}"
            asked = object_in(one, what)
            gold = [str(title) for title in list_in(asked["gold"], f"{what}, gold")]
            found = frozenset((places[title], 0) for title in gold if title in places)
            questions.append(
                GoldQuestion.of_turns(
                    f"{name}:{asked['id']}",
                    name,
                    text_in(asked["question"], what),
                    found,
                    reference=reference_in(asked["answer"], f"{what}, answer"),
                    gold_missing=sum(title not in places for title in gold),
                )
            )
        yield Case(sessions, tuple(questions))


def facts_cases(item: dict[str, Any], place: int) -> Iterator[Case]:
    """Yield the facts of an item with its questions."""
    source = text_in(object_in(item["metadata"], "metadata")["source"], "metadata, source")
    facts = [match[2] for match in _NUMBERED.finditer(text_in(item["context"], "context"))]
    if not facts:
        raise LayoutError("context: has no numbered facts")
    book = FactBook(facts)
    is_chain = "_mh" in source
    questions = []
    asked = list_in(item["questions"], "questions")
    for number, (one, accepted) in enumerate(zip(asked, item["answers"], strict=True), 1):
        text = text_in(one, f"questions, {number}")
        answers = [str(answer) for answer in list_in(accepted, f"answers, {number}")]
        gold = book.chain(text, answers) if is_chain else book.single(text, answers)
        questions.append(
            GoldQuestion.of_turns(
                f"{source}:{number}",
                "multi-hop" if is_chain else "single-hop",
                text,
                frozenset((fact, 0) for fact in gold),
                reference="; ".join(answers) or "no answer",
                last=(gold[-1], 0) if gold and is_chain else None,
                outdated=frozenset((twin, 0) for fact in gold for twin in book.twins(fact)),
            )
        )
    said = tuple(
        _memory(fact, WRITTEN_AT + timedelta(minutes=number)) for number, fact in enumerate(facts)
    )
    yield Case(said, tuple(questions))


def _memory(text: str, at: datetime) -> CaseSession:
    return CaseSession(at, (CaseTurn(SPEAKER, text),))


class _Fact(NamedTuple):
    """The words of a fact, as written and in lower case."""

    written: Sequence[str]
    plain: Sequence[str]


class FactBook:
    """Numbered facts; finds those that answer a question."""

    def __init__(self, facts: Sequence[str]) -> None:
        self._facts = [_fact(text) for text in facts]
        endings: dict[tuple[str, ...], list[int]] = {}
        for number, fact in enumerate(self._facts):
            for size in range(1, min(VALUE_WORDS_MAX, len(fact.plain) - 1) + 1):
                endings.setdefault(tuple(fact.plain[-size:]), []).append(number)
        self._endings: Mapping[tuple[str, ...], Sequence[int]] = endings

    def twins(self, number: int) -> list[int]:
        """Return the earlier facts that differ from a fact only in the value."""
        return [
            other
            for other in range(number)
            if self._frame_size(number, other) >= self._subject_size(number)
        ]

    def single(self, question: str, answers: Sequence[str]) -> list[int]:
        """Return the fact that answers a single-hop question; empty if none does."""
        said = set(_fact(question).plain)
        found = self._stating(answers)
        shared = {fact: len(said & set(self._facts[fact].plain)) for fact in found}
        return [max(found, key=lambda fact: (shared[fact], fact))] if found else []

    def chain(self, question: str, answers: Sequence[str]) -> list[int]:
        """Return the shortest chain of facts that answers a question; empty if there is none."""
        said = _fact(question)
        chains = [
            ([fact], len(_fact(answer).plain))
            for answer in answers
            for fact in self._stating([answer])
        ]
        for _ in range(CHAIN_MAX):
            complete = [chain for chain, size in chains if self._is_named(chain[0], size, said)]
            if complete and len(complete[0]) > 1:
                return max(complete, key=lambda chain: (self._shared(chain, said), chain))
            chains = [
                ([before, *chain], size_before)
                for chain, size in chains
                for before, size_before in self._before(chain[0], size)
                if before not in chain
            ]
        return []

    def _stating(self, answers: Sequence[str]) -> list[int]:
        """Return the current facts that end with an answer."""
        found: list[int] = []
        for answer in answers:
            value = tuple(_fact(answer).plain)
            facts = self._endings.get(value, ())
            found += [fact for fact in facts if not self._is_replaced(fact, len(value))]
        return found

    def _is_replaced(self, number: int, value_size: int) -> bool:
        frame = self._facts[number].plain[: -value_size or None]
        return any(
            other.plain[: len(frame)] == frame and other.plain != self._facts[number].plain
            for other in self._facts[number + 1 :]
        )

    def _before(self, number: int, value_size: int) -> Iterator[tuple[int, int]]:
        """Yield the facts whose value is the beginning of a fact, with the size of the value."""
        plain = self._facts[number].plain[: -value_size or None]
        for start in range(len(plain)):
            if start and plain[start - 1] not in _LEADING:
                continue
            for end in range(len(plain), start, -1):
                for fact in self._endings.get(tuple(plain[start:end]), ()):
                    before = self._facts[fact].plain
                    edge = before[-(end - start) - 1]
                    if (
                        fact != number
                        and edge.islower()
                        and not self._is_replaced(fact, end - start)
                    ):
                        yield fact, end - start

    def _is_named(self, number: int, value_size: int, said: _Fact) -> bool:
        """Return whether a question names the subject of a fact."""
        fact = self._facts[number]
        for start in range(len(fact.plain) - value_size):
            if start and fact.plain[start - 1] not in _LEADING:
                continue
            for end in range(len(fact.plain) - value_size, start, -1):
                is_name = any(word[0].isupper() for word in fact.written[start:end] if start)
                is_name |= start == 0 and end - start > 0 and fact.plain[0] not in _LEADING
                if is_name and _has(said.plain, fact.plain[start:end]):
                    return True
        return False

    def _shared(self, chain: Sequence[int], said: _Fact) -> int:
        words = {word for number in chain for word in self._facts[number].plain}
        return len(words & set(said.plain))

    def _frame_size(self, one: int, other: int) -> int:
        """Return the length of the common prefix of two facts, in words; 0 for the same fact."""
        left, right = self._facts[one].plain, self._facts[other].plain
        if left == right:
            return 0
        size = 0
        while size < min(len(left), len(right)) and left[size] == right[size]:
            size += 1
        return size

    def _subject_size(self, number: int) -> int:
        """Return the length of a fact before its value: up to its last lower-case word."""
        written = self._facts[number].written
        lower = [at for at, word in enumerate(written[:-1]) if word[0].islower()]
        return lower[-1] + 1 if lower else len(written)


def _fact(text: str) -> _Fact:
    written = [word.rstrip(".") for word in _WORD.findall(text)]
    return _Fact(written, [word.casefold() for word in written])


def _has(words: Sequence[str], phrase: Sequence[str]) -> bool:
    """Return whether a phrase occurs in some words."""
    size = len(phrase)
    return any(list(words[at : at + size]) == list(phrase) for at in range(len(words) - size + 1))
