"""The resolver: what it reuses or proposes, pair by pair, and how long it takes.

python -m bench.identity --data FOLDER [--names 10000 1000000]

FOLDER holds Febrl person records (dataset1.csv …; records of one person share a number in `rec_id`)
and nicknames.csv. Each record is in turn the candidate, all others of its file are the store.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from bench import aliases
from bench.percentiles import line, machine, timed
from worlddb.identity.match_values import DEFAULT_SETTINGS, NamedNode, Population, acted_on
from worlddb.identity.resolver import Resolver
from worlddb.identity.store_resolver import attribute_keys, block_keys
from worlddb.language.proper_names import read_name

JARO_WINKLER = 0.92
ATTRIBUTES = (
    "street_number", "address_1", "address_2", "suburb", "postcode", "state", "date_of_birth",
)  # fmt: skip
QUERIES = 2_000
LETTERS = "abcdefghijklmnopqrstuvwxyz"

Pairs = set[tuple[int, int]]
Record = dict[str, str]


def records(path: Path) -> list[Record]:
    with path.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, skipinitialspace=True)
        return [{name.strip(): (text or "").strip() for name, text in row.items()} for row in rows]


def full_name(record: Record) -> str:
    return f"{record['given_name']} {record['surname']}".strip()


def known(name: str) -> tuple[str, ...]:
    return (name,) if name else ()


def pair(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


def gold_pairs(rows: Sequence[Record]) -> Pairs:
    people: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        people[row["rec_id"].split("-")[1]].append(i)
    return {found for group in people.values() for found in combinations(group, 2)}


class Index:
    """Stands in for the store's name index: keys, the rows filed under them, word counts."""

    def __init__(self, named: Sequence[NamedNode], *, with_attributes: bool = False) -> None:
        self.named = named
        self._with_attributes = with_attributes
        hashes: list[int] = []
        rows: list[int] = []
        counts: Counter[str] = Counter()
        for row, item in enumerate(named):
            found = self.keys(item)
            hashes += map(hash, found)
            rows += [row] * len(found)
            counts.update({word for name in item.names for word in read_name(name).words})
        order = np.argsort(np.array(hashes, dtype=np.int64), kind="stable")
        self._hashes = np.array(hashes, dtype=np.int64)[order]
        self._rows = np.array(rows, dtype=np.int32)[order]
        self.population = Population(len(named), lambda word: counts.get(word, 0))

    def keys(self, item: NamedNode) -> set[str]:
        """Return what `item` is filed under."""
        found = {key for name in item.names for key in block_keys(name)}
        return found | attribute_keys(item.attributes) if self._with_attributes else found

    def options(self, item: NamedNode) -> list[NamedNode]:
        """Return what shares most keys with `item`; keys that too many share are skipped."""
        most = DEFAULT_SETTINGS.key_names_max
        found: Counter[int] = Counter()
        for key in self.keys(item):
            at = np.int64(hash(key))
            start, end = self._hashes.searchsorted(at), self._hashes.searchsorted(at, "right")
            if end - start <= most or key[0] == "=":
                found.update(self._rows[start : min(end, start + most)].tolist())
        bare, full = DEFAULT_SETTINGS.options_by_name_max, DEFAULT_SETTINGS.options_max
        rows = [row for row in found if self.named[row].key != item.key]
        rows.sort(key=lambda row: (-found[row], row))
        return [self.named[row] for row in rows[: full if item.attributes else bare]]


def acted_pairs(index: Index) -> tuple[Pairs, Pairs]:
    """Return the pairs that are reused or proposed, and the pairs that blocking brings together."""
    resolver = Resolver()
    acted: Pairs = set()
    blocked: Pairs = set()
    for i, candidate in enumerate(index.named):
        options = index.options(candidate)
        blocked.update(pair(i, _row(option)) for option in options)
        outcome = resolver.resolve(candidate, options, index.population)
        acted.update(pair(i, _row(match.option)) for match in acted_on(outcome))
    return acted, blocked


def _row(named: NamedNode) -> int:
    assert isinstance(named.key, int)
    return named.key


def plain_pairs(names: Sequence[str]) -> Pairs:
    """Return the pairs whose names are alike by Jaro-Winkler alone."""
    from rapidfuzz import process
    from rapidfuzz.distance import JaroWinkler

    found: Pairs = set()
    for start in range(0, len(names), 500):
        part = names[start : start + 500]
        scores = process.cdist(
            part, names, scorer=JaroWinkler.similarity, score_cutoff=JARO_WINKLER
        )
        for i, j in np.argwhere(scores >= JARO_WINKLER).tolist():
            if start + i < j and names[j]:
                found.add((start + i, j))
    return found


def figures(found: Iterable[tuple[int, int]], gold: Pairs) -> str:
    pairs = set(found)
    right = len(pairs & gold)
    precision, recall = right / max(len(pairs), 1), right / len(gold)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    return f"precision {precision:.3f}  recall {recall:.3f}  F1 {f1:.3f}"


def people(path: Path) -> None:
    rows = records(path)
    gold = gold_pairs(rows)
    names = [full_name(row) for row in rows]
    print(f"\n{path.name}: {len(rows):,} records, {len(gold):,} pairs of one person")
    print(f"  names, Jaro-Winkler alone          {figures(plain_pairs(names), gold)}")
    bare = [NamedNode(key=i, type="Person", names=known(name)) for i, name in enumerate(names)]
    acted, blocked = acted_pairs(Index(bare))
    print(f"  names, resolver                    {figures(acted, gold)}")
    print(f"    recall of blocking {len(blocked & gold) / len(gold):.3f}")
    full = [
        NamedNode(
            key=i,
            type="Person",
            names=known(name),
            attributes={key: row[key] for key in ATTRIBUTES if row[key]},
        )
        for i, (name, row) in enumerate(zip(names, rows, strict=True))
    ]
    for what, with_attributes in (("names with attributes", False), ("… also as keys", True)):
        acted, blocked = acted_pairs(Index(full, with_attributes=with_attributes))
        print(f"  {what:<34} {figures(acted, gold)}")
        print(f"    recall of blocking {len(blocked & gold) / len(gold):.3f}")


def nicknames(path: Path) -> None:
    """Print how many listed nicknames are proposed, and how many unlisted pairs of names."""
    with path.open(encoding="utf-8", newline="") as lines:
        rows = [(row["name1"], row["name2"]) for row in csv.DictReader(lines)]
    given = sorted({name for row in rows for name in row})
    listed = {frozenset(row) for row in rows}
    rng = random.Random(1)
    others = [(rng.choice(given), rng.choice(given)) for _ in rows]
    others = [row for row in others if row[0] != row[1] and frozenset(row) not in listed]
    resolver = Resolver()

    def share(pairs: Sequence[tuple[str, str]]) -> float:
        found = 0
        for one, other in pairs:
            left, right = (
                NamedNode(key=name, type="Person", names=(f"{name} Fairweather",))
                for name in (one, other)
            )
            found += any(True for _ in acted_on(resolver.resolve(left, [right])))
        return found / len(pairs)

    print(f"\n{path.name}: {len(rows):,} pairs, each with one surname, in an empty store")
    print(f"  proposed {share(rows):.3f}; of as many pairs not in the list {share(others):.4f}")


def conversation() -> None:
    resolver = Resolver()
    results = [aliases.run(case, resolver) for case in aliases.cases()]
    acted = sum(len(result.matches) for result in results)
    right = sum(result.right for result in results)
    answers = sum(result.case.right != aliases.NOBODY for result in results)
    found = sum(bool(result.right) for result in results)
    keyed = sum(result.blocked for result in results)
    print(f"\naliases.txt: {len(results)} cases, {answers} of them with an answer")
    print(f"  precision {right / acted:.3f} of {acted}  recall {found / answers:.3f}")
    print(f"  the answer shares a key in {keyed / len(results):.3f} of the cases")
    for result in results:
        if result.wrong:
            print(f"  wrong   {result}")
        elif result.missed:
            print(f"  missed  {result}")


def mistyped(name: str, rng: random.Random) -> str:
    at = rng.randrange(len(name))
    return name[:at] + rng.choice(LETTERS) + name[at + rng.randrange(2) :]


def speed(rows: Sequence[Record], count: int) -> None:
    rng = random.Random(7)
    given = [row["given_name"] for row in rows if row["given_name"]]
    surnames = [row["surname"] for row in rows if row["surname"]]
    names = [f"{rng.choice(given)} {rng.choice(surnames)}" for _ in range(count)]
    named = [NamedNode(key=i, type="Person", names=(name,)) for i, name in enumerate(names)]
    index = Index(named)
    asked = [
        NamedNode(key="candidate", type="Person", names=(mistyped(rng.choice(names), rng),))
        for _ in range(QUERIES)
    ]
    resolver = Resolver()
    taken = timed(
        lambda i: resolver.resolve(asked[i], index.options(asked[i]), index.population), QUERIES
    )
    sizes = sorted(len(index.options(item)) for item in asked)
    print(line(f"keys, look-up and resolve among {count:,} names", taken), flush=True)
    print(f"    options: median {sizes[QUERIES // 2]}, at most {sizes[-1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the files")
    parser.add_argument("--names", type=int, nargs="*", default=[10_000, 1_000_000])
    args = parser.parse_args()
    print(machine(), flush=True)
    files = sorted(args.data.glob("dataset*.csv"))
    for path in files:
        people(path)
    nicknames(args.data / "nicknames.csv")
    conversation()
    print("\nspeed, embedding excluded")
    rows = [row for path in files for row in records(path)]
    for count in args.names:
        speed(rows, count)


if __name__ == "__main__":
    main()
