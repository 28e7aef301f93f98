"""The resolver's question, its answer and its settings.

    candidate + options ──resolve()──▶ Resolved(match) | Ambiguous(options) | New(considered)

The *candidate* is the name in the text, the *options* are the nodes that it may refer to. A caller
reuses a node if the match has `reuses`, and stages a `same_as` proposal for every match with
`proposes`. All other values only explain the result.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from worlddb.errors import InvalidInputError
from worlddb.language.proper_names import TEXT_MAX

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TIERS = ("exact", "fuzzy", "phonetic", "embedding")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedNode:
    """A candidate or an option: its name first, then its aliases."""

    key: Hashable
    type: str
    names: tuple[str, ...]
    attributes: Mapping[str, str] = field(default_factory=dict)
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Match:
    """An option that may be the candidate.

    `score` is how alike the tier finds the names. `confidence` is the probability that both are
    one: a common name lowers it, attributes that agree raise it. `evidence` is plain data and
    explains the match.
    """

    option: NamedNode
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
        """All matches, best first."""
        return (self.match,)


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """The candidate may be one of these options (best first), or none of them."""

    options: tuple[Match, ...]

    @property
    def matches(self) -> tuple[Match, ...]:
        """All matches, best first."""
        return self.options


@dataclass(frozen=True, slots=True)
class New:
    """The candidate is none of the options. `considered` lists vetoed matches and the reasons."""

    considered: tuple[Match, ...] = ()

    @property
    def matches(self) -> tuple[Match, ...]:
        """Empty: there is nothing to reuse or to propose."""
        return ()


Verdict: TypeAlias = Resolved | Ambiguous | New
Tiebreaker: TypeAlias = Callable[[NamedNode, Sequence[Match]], Match | None]
"""A person, a model or a function that picks one of several matches, or None."""


@dataclass(frozen=True, slots=True)
class Population:
    """How many names the store holds, and how many of them contain a given word.

    These counts show which names are too common to decide. Words are normalised as in `read_name`.
    The counts may be old, rounded or capped.
    """

    names: int
    holding: Callable[[str], int]


NO_POPULATION = Population(0, lambda word: 0)


def acted_on(outcome: Verdict) -> Iterator[Match]:
    """Yield the matches that a caller acts on: those that reuse or propose."""
    return (match for match in outcome.matches if match.reuses or match.proposes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverSettings:
    """All thresholds of the resolver.

    `tiers` names the tiers to run; their order is fixed. A match is proposed from a confidence of
    `propose_above`. An equal name of the same type is reused from `reuse_above`. A match below
    `consider_above` is left out of the answer.
    """

    tiers: frozenset[str] = frozenset(TIERS)
    # Least similarity of whole names, and of single words inside longer names.
    jaro_winkler: float = 0.92
    word_jaro_winkler: float = 0.80
    cosine: float = 0.88
    reuse_above: float = 0.9
    propose_above: float = 0.5
    consider_above: float = 0.01
    # A longer text is a sentence and never a name. A shorter name must be equal.
    name_words_max: int = 12
    name_letters_max: int = 100
    short_letters_max: int = 3
    # A generic type is compatible with every type. Person types enable the rules for people.
    generic_types: frozenset[str] = frozenset({"entity"})
    person_types: frozenset[str] = frozenset({"person", "people", "human", "user", "contact"})
    # Attributes that identify a person. Different dates of birth are a veto.
    birth_attributes: frozenset[str] = frozenset(
        {"birth_date", "birthdate", "date_of_birth", "birthday", "dob", "born"}
    )
    identifier_attributes: frozenset[str] = frozenset(
        {"email", "phone", "url", "ssn", "passport", "isbn", "doi", "orcid", "vat_id"}
    )
    # Least number of names assumed. In a small store every name looks rare or common by accident.
    names_at_least: int = 1_000
    # Limits of the candidate search. A key with more names than `key_names_max` is skipped. Options
    # that share most keys come first; attributes can identify an option further down the list.
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
                # Equal settings compare equal, whatever collection they were given as.
                object.__setattr__(self, item.name, frozenset(value))


DEFAULT_SETTINGS = ResolverSettings()
