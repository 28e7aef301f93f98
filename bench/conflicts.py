"""Which conflicting statements are linked as such.

    python -m bench.conflicts                 everyday pairs in many languages
    python -m bench.conflicts --left-out      the frames that are fitted to, left out of the fit
    python -m bench.conflicts --data FILE     FactConsolidation (`worlddb eval facts`)
    python -m bench.conflicts --write         fit to all frames, write `rival_frames.json`

The everyday pairs (`data/conflict_pairs.jsonl`) are in no fit. The development part was looked at
while the signs were made, the final part only when all else was fixed. Frames to fit to are in
`data/conflict_frames.txt`; they are left out in ten random parts, and by language. Intervals:
Wilson, 95 %.

In FactConsolidation, each numbered fact is a memory of one scope, a minute after the one before; no
model takes part. Two facts that differ in nothing but the value are twins by a rule of the
evaluation, which knows nothing of the engine. Printed are the twins that are linked, the twins that
are not, and the links between facts that are no twins by that rule: with `--errors` each of them,
to be read, since the rule misses some values of several words.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np

import worlddb
from worlddb.evaluate.data_formats import WRITTEN_AT, FactBook
from worlddb.evaluate.data_sets import opened
from worlddb.evaluate.figure_summary import wilson
from worlddb.language.rival_frames import frame_of, frame_signs, is_rival
from worlddb.language.statement import statement_of

Pair = tuple[int, int]

NUMBERED = re.compile(r"\d+\.\s+(.+)")
DATA = Path(__file__).parent / "data"
PAIRS = DATA / "conflict_pairs.jsonl"
FRAMES = DATA / "conflict_frames.txt"
FILE = Path(worlddb.__file__).parent / "language" / "rival_frames.json"
SLOT = re.compile(r"\{([^|}]*)\|([^}]*)\}")
ENOUGH = 1.0  # a probability of .73: a false link is worse than a missed one
SEEN_MIN = 2  # a sign of one frame alone tells nothing of another one
WEIGHT_MIN = 0.02  # less changes no sum that matters
RIDGE = 0.001  # of .0005 to .004, the best balance on the frames left out
STEPS = 400
PARTS = 10


class Statements(NamedTuple):
    """An earlier and a later statement, and whether only one of them can be true."""

    language: str
    conflict: bool
    old: str
    new: str

    def signs(self) -> frozenset[str] | None:
        """Return the signs of the common frame; None if they have none."""
        old, new = statement_of(self.old), statement_of(self.new)
        frame = frame_of(old, new) if old is not None and new is not None and new.is_so else None
        return None if frame is None else frame_signs(frame)

    def is_linked(self) -> bool:
        """Return whether the engine takes them for rivals."""
        old, new = statement_of(self.old), statement_of(self.new)
        return old is not None and new is not None and is_rival(old, new)


def everyday(part: str) -> list[Statements]:
    """Return the pairs of one part."""
    rows = map(json.loads, PAIRS.read_text(encoding="utf-8").splitlines())
    return [
        Statements(row["language"], row["conflict"], row["old"], row["new"])
        for row in rows
        if row["part"] == part
    ]


def fitted() -> Iterator[Statements]:
    """Yield the frames to fit to, each with its two values."""
    language = ""
    for line in FRAMES.read_text(encoding="utf-8").splitlines():
        mark, _, text = line.partition(" ")
        if mark == "=":
            language = text
        elif mark in ("+", "-"):
            yield Statements(language, mark == "+", SLOT.sub(r"\1", text), SLOT.sub(r"\2", text))


# -- the fit ---------------------------------------------------------------------------------------


def fit(frames: Iterable[tuple[frozenset[str] | None, bool]]) -> dict[str, float]:
    """Return the weights of a ridge logistic regression (accelerated gradient descent)."""
    rows = [(signs, is_one) for signs, is_one in frames if signs is not None]
    seen = Counter(sign for signs, _ in rows for sign in signs)
    names = sorted(sign for sign, count in seen.items() if count >= SEEN_MIN)
    number = {name: at for at, name in enumerate(names)}
    cells = [
        (row, number[it]) for row, (signs, _) in enumerate(rows) for it in signs & number.keys()
    ]
    row_of, sign_of = np.array(sorted(cells)).T
    labels = np.array([float(is_one) for _, is_one in rows])
    steepness = 0.1 * np.bincount(row_of).max() + RIDGE
    weights = ahead = np.zeros(len(names))
    for step in range(STEPS):
        chances = 1 / (1 + np.exp(-np.bincount(row_of, ahead[sign_of], len(rows))))
        slope = np.bincount(sign_of, (chances - labels)[row_of], len(names)) / len(rows)
        moved = ahead - (slope + RIDGE * ahead) / steepness
        ahead = moved + step / (step + 3) * (moved - weights)
        weights = moved
    return dict(zip(names, weights.tolist(), strict=True))


def write(frames: Sequence[Statements]) -> None:
    """Fit to all frames, and write the file."""
    weights = fit((one.signs(), one.conflict) for one in frames)
    content = {
        "data": FRAMES.name,
        "data_sha256": hashlib.sha256(FRAMES.read_bytes()).hexdigest(),
        "frames": len(frames),
        "command": "python -m bench.conflicts --write",
        "enough": ENOUGH,
        "weights": {it: round(one, 2) for it, one in weights.items() if abs(one) >= WEIGHT_MIN},
    }
    FILE.write_text(json.dumps(content, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def left_out(frames: Sequence[Statements], parts: Sequence[object]) -> Iterator[tuple[bool, bool]]:
    """Yield whether each frame is a conflict, and is taken for one by a fit without its part."""
    rows = [(one.signs(), one.conflict) for one in frames]
    for part in dict.fromkeys(parts):
        weights = fit(row for row, its in zip(rows, parts, strict=True) if its != part)
        for (signs, is_one), its in zip(rows, parts, strict=True):
            if its == part:
                total = sum(weights.get(sign, 0.0) for sign in signs or ())
                yield is_one, signs is not None and total >= ENOUGH


def show(name: str, found: Iterable[tuple[bool, bool]]) -> None:
    """Print how many conflicts are found, and how many other pairs are linked."""
    counts = Counter(found)
    shares = []
    for is_one in (True, False):
        linked, total = counts[is_one, True], counts[is_one, True] + counts[is_one, False]
        low, high = wilson(linked, total)
        shares.append(f"{linked:4} of {total:4} ({linked / total:.3f}, {low:.3f}–{high:.3f})")
    print(f"{name:34} conflicts linked {shares[0]}   others linked {shares[1]}")


# -- FactConsolidation -----------------------------------------------------------------------------


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


def show_facts(path: str, *, errors: bool) -> None:
    """Print the figures of each list of facts in a file."""
    with opened(path) as file:
        contexts = dict.fromkeys(item["context"] for item in json.load(file))
    for context in contexts:
        facts = NUMBERED.findall(context)
        linked, twins = linked_pairs(facts), twin_pairs(facts)
        print(f"{len(facts)} facts, {len(linked)} links, {len(twins & linked)} between twins")
        unlike = {"twins, not linked": twins - linked, "linked, no twins": linked - twins}
        for name, pairs in unlike.items():
            print(f"  {name}: {len(pairs)}")
            for earlier, later in sorted(pairs) if errors else ():
                print(f"    {facts[earlier]} | {facts[later]}")


def show_pairs(part: str, *, errors: bool) -> None:
    """Print the figures of one part of the everyday pairs, and of its languages left out."""
    pairs = everyday(part)
    known = {one.language for one in fitted()}
    show(f"{part} part", ((one.conflict, one.is_linked()) for one in pairs))
    apart = [one for one in pairs if one.language not in known]
    show("  languages without fitted frames", ((one.conflict, one.is_linked()) for one in apart))
    for one in pairs if errors else ():
        if one.is_linked() != one.conflict:
            print(
                f"    {'missed' if one.conflict else 'false'} ({one.language}): {one.old} {one.new}"
            )


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="a file of FactConsolidation")
    parser.add_argument(
        "--part", choices=("development", "final"), help="only one part of the pairs"
    )
    parser.add_argument("--left-out", action="store_true", help="frames left out of the fit")
    parser.add_argument("--write", action="store_true", help="fit to all frames, write the file")
    parser.add_argument("--errors", action="store_true", help="print each error")
    args = parser.parse_args()
    if args.write:
        write(list(fitted()))
    elif args.data:
        show_facts(args.data, errors=args.errors)
    elif args.left_out:
        frames = list(fitted())
        parts = np.random.default_rng(0).integers(0, PARTS, len(frames)).tolist()
        show("frames in ten parts", left_out(frames, parts))
        show("frames by language", left_out(frames, [one.language for one in frames]))
    else:
        for part in [args.part] if args.part else ["development", "final"]:
            show_pairs(part, errors=args.errors)


if __name__ == "__main__":
    main()
