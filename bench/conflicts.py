"""How many conflicting facts are linked as such: `python -m bench.conflicts --data FILE`.

The file is FactConsolidation (`worlddb eval facts`). Each numbered fact is a memory of one scope, a
minute after the one before; no model takes part. Two facts that differ in nothing but the value
are twins by a rule of the evaluation, which knows nothing of the engine. Printed are the twins that
are linked, the twins that are not, and the links between facts that are no twins by that rule:
with `--errors` each of them, to be read, since the rule misses some values of several words.
"""

from __future__ import annotations

import argparse
import json
import re
from datetime import timedelta

import worlddb
from worlddb.evaluate.data_formats import WRITTEN_AT, FactBook
from worlddb.evaluate.data_sets import opened

Pair = tuple[int, int]

NUMBERED = re.compile(r"\d+\.\s+(.+)")


def linked_pairs(facts: list[str]) -> set[Pair]:
    """Return which facts are linked as conflicts, by their numbers, when all are written."""
    with worlddb.open(":memory:", embedder="none") as db, worlddb.Memory(db) as memory:
        numbers = {
            memory.write(fact, user_id="reader", at=WRITTEN_AT + timedelta(minutes=number)).id: (
                number
            )
            for number, fact in enumerate(facts)
        }
        pairs = [
            sorted((numbers[one.left], numbers[one.right]))
            for one in db.conflicts(include_settled=True)
            if one.left in numbers and one.right in numbers
        ]
        return {(earlier, later) for earlier, later in pairs}


def twin_pairs(facts: list[str]) -> set[Pair]:
    """Return which facts differ in nothing but the value."""
    book = FactBook(facts)
    return {(earlier, later) for later in range(len(facts)) for earlier in book.twins(later)}


def main() -> None:
    """Print the figures of each list of facts in a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--errors", action="store_true")
    args = parser.parse_args()
    with opened(args.data) as file:
        contexts = dict.fromkeys(item["context"] for item in json.load(file))
    for context in contexts:
        facts = NUMBERED.findall(context)
        linked, twins = linked_pairs(facts), twin_pairs(facts)
        print(f"{len(facts)} facts, {len(linked)} links, {len(twins & linked)} between twins")
        unlike = {"twins, not linked": twins - linked, "linked, no twins": linked - twins}
        for name, pairs in unlike.items():
            print(f"  {name}: {len(pairs)}")
            for earlier, later in sorted(pairs) if args.errors else ():
                print(f"    {facts[earlier]} | {facts[later]}")


if __name__ == "__main__":
    main()
