"""The conversational alias set: `aliases.txt`, read and put to the resolver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from worlddb.identity.match_values import Match, NamedNode, Population, acted_on
from worlddb.identity.resolver import Resolver
from worlddb.identity.store_resolver import block_keys
from worlddb.language.proper_names import read_name

ALIASES = Path(__file__).with_name("aliases.txt")
NOBODY = "-"


@dataclass(frozen=True)
class Case:
    """A candidate, the options, and the option it is."""

    kind: str
    candidate: NamedNode
    options: tuple[NamedNode, ...]
    right: str


@dataclass(frozen=True)
class Result:
    """What became of a case: the matches that would be acted on, and how many are right."""

    case: Case
    matches: tuple[Match, ...]
    right: int
    blocked: bool

    @property
    def wrong(self) -> int:
        """How many matches are acted on that should not be."""
        return len(self.matches) - self.right

    @property
    def missed(self) -> bool:
        """Whether there was an answer and it was not found."""
        return self.case.right != NOBODY and not self.right

    def __str__(self) -> str:
        case = self.case
        found = ", ".join(f"{match.option.names[0]} ({match.tier})" for match in self.matches)
        options = " ; ".join(option.names[0] for option in case.options)
        return (
            f"{case.kind}: {case.candidate.names[0]} | {options} | {case.right} -> {found or '-'}"
        )


def cases() -> Iterator[Case]:
    """Yield the cases of the file."""
    for line in ALIASES.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            kind, candidate, options, right = line.split(" | ")
            named = [_named(text, i) for i, text in enumerate(options.split(" ; "))]
            yield Case(kind, _named(candidate, "candidate"), tuple(named), right)


def _named(text: str, key: object) -> NamedNode:
    head, sep, tail = text.partition(": ")
    type_, names = (head, tail) if sep and head.isalpha() else ("Entity", text)
    return NamedNode(key=key, type=type_, names=tuple(names.split(" = ")))


def run(case: Case, resolver: Resolver) -> Result:
    """Return what the resolver makes of a case, in a store that holds its options alone."""
    names = [name for option in case.options for name in option.names]
    counts = Counter(word for name in names for word in set(read_name(name).words))
    population = Population(len(case.options), counts.__getitem__)
    outcome = resolver.resolve(case.candidate, case.options, population)
    matches = tuple(acted_on(outcome))
    right = sum(match.option.names[0] == case.right for match in matches)
    return Result(case, matches, right, case.right == NOBODY or _is_blocked(case))


def _is_blocked(case: Case) -> bool:
    """Tell whether the right option shares a key with the candidate."""
    asked = _keys(case.candidate)
    return any(asked & _keys(item) for item in case.options if item.names[0] == case.right)


def _keys(named: NamedNode) -> set[str]:
    return {key for name in named.names for key in block_keys(name)}
