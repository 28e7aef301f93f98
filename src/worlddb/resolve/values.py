"""Values: what the resolver is asked about, and what it answers.

    Named + options ──resolve()──▶ Resolved(match) | Ambiguous(options) | New(considered)

A caller reuses a node when the match says `reuses`, and stages a `same_as` proposal for every match
that says `proposes`. Nothing else is acted on: the rest explains.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Named:
    """Something with a name: the name first, then its aliases."""

    key: Hashable
    type: str
    names: tuple[str, ...]
    attributes: Mapping[str, str] = field(default_factory=dict)
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Match:
    """An option that may be the candidate.

    `score` is how alike the tier finds them, `confidence` how likely they are one: a name that many
    bear says little, attributes that agree say more. `evidence` is plain data and says why.
    """

    option: Named
    tier: str
    score: float
    confidence: float
    compared: tuple[str, str]
    reuses: bool = False
    proposes: bool = False
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resolved:
    """One option stands out."""

    match: Match

    @property
    def matches(self) -> tuple[Match, ...]:
        """Every match, best first."""
        return (self.match,)


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """One of these, or none: best first. Those that propose are worth a person's look."""

    options: tuple[Match, ...]

    @property
    def matches(self) -> tuple[Match, ...]:
        """Every match, best first."""
        return self.options


@dataclass(frozen=True, slots=True)
class New:
    """None of the options. `considered` says which came close and what kept them apart."""

    considered: tuple[Match, ...] = ()

    @property
    def matches(self) -> tuple[Match, ...]:
        """No match: nothing to reuse, nothing to propose."""
        return ()


Outcome: TypeAlias = Resolved | Ambiguous | New
# A person, a model, a function: picks one of several matches, or none.
Tiebreaker: TypeAlias = Callable[[Named, Sequence[Match]], Match | None]


@dataclass(frozen=True, slots=True)
class Population:
    """How many names the store holds, and how many of them hold a word.

    That is how a name becomes too common to decide. Words are asked for as `read_name` gives them;
    figures may be old, rounded or capped.
    """

    names: int
    holding: Callable[[str], int]


def _never(word: str) -> int:
    return 0


NO_POPULATION = Population(0, _never)


def acted_on(outcome: Outcome) -> Iterator[Match]:
    """Yield the matches of an outcome that a caller acts on: reuse one, or propose."""
    for match in outcome.matches:
        if match.reuses or match.proposes:
            yield match
