"""Short ways to say who is asked about and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from worlddb.identity.match_values import Match, NamedNode, Population, Verdict, acted_on
from worlddb.identity.resolver import Resolver
from worlddb.language.proper_names import read_name


def named(
    *names: str, type: str = "Entity", key: object = None, attributes: Mapping[str, str] = {}
) -> NamedNode:
    return NamedNode(key=key or names, type=type, names=names, attributes=attributes)


def person(*names: str, key: object = None, **attributes: str) -> NamedNode:
    return named(*names, type="Person", key=key, attributes=attributes)


def counted(names: Sequence[str], total: int = 0) -> Population:
    """Return the population of a store that holds these names, among `total`."""
    counts = Counter(word for name in names for word in set(read_name(name).words))
    return Population(max(total, len(names)), lambda word: counts[word])


def resolve(candidate: NamedNode | str, *options: NamedNode | str, among: int = 0) -> Verdict:
    """Resolve in a store that holds the options, and further names up to `among`."""
    known = [named(item) if isinstance(item, str) else item for item in options]
    asked = named(candidate) if isinstance(candidate, str) else candidate
    population = counted([name for item in known for name in item.names], among)
    return Resolver().resolve(asked, known, population)


def acted(outcome: Verdict) -> list[str]:
    """Return the names of what is reused or proposed."""
    return [match.option.names[0] for match in acted_on(outcome)]


def only(outcome: Verdict) -> Match:
    """Return the one match of an outcome."""
    (match,) = outcome.matches
    return match
