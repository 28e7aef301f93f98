"""Values: what the resolver is asked about, and what it answers.

    Named + options ──resolve()──▶ Resolved(match) | Ambiguous(options) | New(considered)

A caller reuses a node when the match says `reuses`, and stages a `same_as` proposal for every match
that says `proposes`. Nothing else is acted on: the rest explains.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from worlddb.errors import InvalidInputError
from worlddb.language.person_names import TEXT_MAX

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


Verdict: TypeAlias = Resolved | Ambiguous | New
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


def acted_on(outcome: Verdict) -> Iterator[Match]:
    """Yield the matches of an outcome that a caller acts on: reuse one, or propose."""
    for match in outcome.matches:
        if match.reuses or match.proposes:
            yield match


# Settings: every threshold of the resolver, in one place.


TIERS = ("exact", "fuzzy", "phonetic", "embedding")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverSettings:
    """How alike is alike, and how sure is sure.

    `tiers` names the tiers that run, in the order of the paper whatever order they are given in.
    A match is proposed if its confidence is at least `propose_above`; an equal name of the same
    type is reused from `reuse_above`; a match is named in the answer, but not acted on, from
    `consider_above`.
    """

    tiers: frozenset[str] = frozenset(TIERS)
    # Names as wholes, and words inside names of several words.
    jaro_winkler: float = 0.92
    word_jaro_winkler: float = 0.80
    cosine: float = 0.88
    reuse_above: float = 0.9
    propose_above: float = 0.5
    consider_above: float = 0.01
    # Longer is a sentence, and a sentence is no name. Shorter must be equal.
    name_words_max: int = 12
    name_letters_max: int = 100
    short_letters_max: int = 3
    # A generic type is compatible with every other; person types turn on what holds for people.
    generic_types: frozenset[str] = frozenset({"entity"})
    person_types: frozenset[str] = frozenset({"person", "people", "human", "user", "contact"})
    # Attributes that tell people apart: a clear disagreement is a veto.
    birth_attributes: frozenset[str] = frozenset(
        {"birth_date", "birthdate", "date_of_birth", "birthday", "dob", "born"}
    )
    identifier_attributes: frozenset[str] = frozenset(
        {"email", "phone", "url", "ssn", "passport", "isbn", "doi", "orcid", "vat_id"}
    )
    # In a small store every name looks rare or common by accident: count as if it had this many.
    names_at_least: int = 1_000
    # For the index: skip a key that finds more names than this, it tells nothing; and of all that
    # is found, take no more than this, those that share most keys with the candidate first. A name
    # by itself is found among a few or not at all; attributes recognise one further down.
    key_names_max: int = 100
    options_max: int = 64
    options_by_name_max: int = 24
    considered_max: int = 5

    def __post_init__(self) -> None:
        unknown = set(self.tiers) - set(TIERS)
        if unknown:
            raise InvalidInputError(f"unknown tier {min(unknown)!r}; use {', '.join(TIERS)}")
        if self.name_letters_max > TEXT_MAX:
            raise InvalidInputError(f"name_letters_max: at most {TEXT_MAX} letters are read")
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, float) and not 0 <= value <= 1:
                raise InvalidInputError(f"{item.name}: give a number from 0 to 1, not {value}")
            if isinstance(value, int) and value < 0:
                raise InvalidInputError(f"{item.name}: give a whole number from 0 on, not {value}")
            if isinstance(value, set | list | tuple):
                # So that settings can be told apart, whatever they were given as.
                object.__setattr__(self, item.name, frozenset(value))


DEFAULT_SETTINGS = ResolverSettings()
