"""What a hook should leave out: `python -m bench.injected_hits FORMAT:FILE …`.

A hook recalls with every prompt, and most prompts have nothing to do with most memories. For each
least confidence, this prints how many of the first hits are given to a question of the same
conversation, which share of the gold among the first hits is kept, and how many hits are given to a
question of another conversation, which nothing here answers.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import worlddb
from worlddb.evaluate.benchmark_cases import Case, GoldQuestion
from worlddb.evaluate.case_recall import VERBATIM_TYPES, ingest
from worlddb.evaluate.data_sets import load_cases
from worlddb.faces.hooks.hook_actions import CONFIDENCE_MIN, HITS

LEAST = sorted({0.0, 0.01, CONFIDENCE_MIN, 0.02, 0.03, 0.05, 0.1})
SEED = 3


class GivenHit(NamedTuple):
    """One of the first hits: how sure, and whether it is gold."""

    confidence: float
    is_gold: bool


def answers(
    cases: Sequence[Case], questions_max: int
) -> Iterator[tuple[list[list[GivenHit]], list[list[GivenHit]]]]:
    """Yield the first hits of each conversation's own questions, and of those of the next one."""
    drawn = random.Random(SEED)
    for number, case in enumerate(cases):
        other = cases[(number + 1) % len(cases)]
        with worlddb.open(":memory:") as db:
            places = ingest(db, case)
            last = max(session.at for session in case.sessions)

            def hits(question: GoldQuestion, gold: bool) -> list[GivenHit]:
                found = db.recall(question.text, k=HITS, types=VERBATIM_TYPES, at=last)  # noqa: B023
                turns = question.turns if gold else ()
                return [
                    GivenHit(hit.confidence, tuple(places.get(hit.id, ())) in turns)  # noqa: B023
                    for hit in found
                ]

            own = _drawn(drawn, [one for one in case.questions if one.is_measured], questions_max)
            foreign = _drawn(drawn, other.questions, questions_max)
            yield [hits(one, True) for one in own], [hits(one, False) for one in foreign]


def _drawn(
    drawn: random.Random, questions: Sequence[GoldQuestion], most: int
) -> Sequence[GoldQuestion]:
    return drawn.sample(list(questions), min(most, len(questions)))


def main() -> None:
    """Print a table for each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FORMAT:FILE")
    parser.add_argument("--cases-max", type=int, default=6, help="conversations of a file")
    parser.add_argument("--questions-max", type=int, default=40, help="of a conversation")
    options = parser.parse_args()
    for named in options.files:
        form, _, path = named.partition(":")
        cases = list(load_cases(path, form))[: options.cases_max]
        both = list(answers(cases, options.questions_max))
        own = [hits for found, _ in both for hits in found]
        foreign = [hits for _, found in both for hits in found]
        gold = sum(one.is_gold for hits in own for one in hits)
        print(f"\n{form}: {len(own)} questions, {len(foreign)} of others; of {HITS} hits\n")
        print("| least confidence | hits given | gold kept | hits given to others |")
        print("|---|---|---|---|")
        for least in LEAST:
            given = [[one for one in hits if one.confidence >= least] for hits in own]
            kept = sum(one.is_gold for hits in given for one in hits)
            noise = sum(one.confidence >= least for hits in foreign for one in hits)
            print(
                f"| {least:.3f} | {sum(map(len, given)) / len(own):.1f} | {kept / gold:.3f} "
                f"| {noise / len(foreign):.1f} |"
            )


if __name__ == "__main__":
    main()
