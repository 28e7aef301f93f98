"""Resolver: the tiers in order, stopping at the first that is sure.

    exact ──▶ fuzzy ──▶ phonetic ──▶ embedding ──▶ tiebreaker

R1  The answer depends on the set of options, not on their order.
R2  Sound, nicknames and first names alone never resolve: what rests on them is at most
    `Ambiguous`.
R3  A vetoed match is never acted on, whoever breaks the tie.

Not here: where options come from (an index asked for `block_keys`), what is done with the answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from worlddb.errors import InvalidInputError
from worlddb.identity.match_values import (
    DEFAULT_SETTINGS,
    NO_POPULATION,
    Ambiguous,
    Match,
    Named,
    New,
    Population,
    Resolved,
    ResolverSettings,
    Tiebreaker,
    Verdict,
)
from worlddb.identity.tiers import ALL_TIERS, Asked, Option

# When tiers disagree, the one further left is believed.
TIER_ORDER = ("exact", "fuzzy", "embedding", "phonetic")
_LEAD = 50.0  # odds by which one match must lead to stand out among several


class Resolver:
    """Decides whether a candidate is one of the options."""

    def __init__(
        self,
        settings: ResolverSettings = DEFAULT_SETTINGS,
        *,
        tiebreaker: Tiebreaker | None = None,
    ) -> None:
        self._settings = settings
        self._tiebreaker = tiebreaker
        self._tiers = [tier for tier in ALL_TIERS if tier.name in settings.tiers]

    def resolve(
        self,
        candidate: Named,
        options: Sequence[Named],
        population: Population = NO_POPULATION,
    ) -> Verdict:
        """Return which option the candidate is, which it may be, or that it is new.

        Raises:
            InvalidInputError: the tiebreaker chose something it was not offered.
        """
        asked = Asked(candidate, population, self._settings)
        if not asked.names:
            return New()
        seen = [Option(asked, option) for option in options]
        found: dict[Hashable, Match] = {}
        vetoed: dict[Hashable, Match] = {}
        for tier in self._tiers:
            here = (tier.match(asked, option) for option in seen)
            matches = _unshared([match for match in here if match is not None])
            matches = _only_bearers(matches, asked, seen)
            earlier = [match for match in found.values() if self._is_likely(match)]
            for match in matches:
                kept = vetoed if "vetoes" in match.evidence else found
                kept.setdefault(match.option.key, match)
            sure = [match for match in matches if _resolves(match)]
            if sure and (leader := _leader(sure, earlier)) is not None:
                return Resolved(leader)
            if sure:
                break
        apart = [match for key, match in vetoed.items() if key not in found]
        return self._settled(candidate, _ordered(found.values()), _ordered(apart))

    def _is_likely(self, match: Match) -> bool:
        return match.confidence >= self._settings.propose_above

    def _settled(self, candidate: Named, matches: list[Match], vetoed: list[Match]) -> Verdict:
        """Return what is made of matches of which none stands out."""
        settings = self._settings
        matches = [match for match in matches if match.confidence >= settings.consider_above]
        if not matches:
            return New(tuple(vetoed[: settings.considered_max]))
        if self._tiebreaker is not None:
            chosen = self._tiebreaker(candidate, tuple(matches))
            if chosen is not None:
                if chosen not in matches:
                    raise InvalidInputError(
                        "tiebreaker: return one of the matches it was given, or None"
                    )
                return Resolved(_chosen(chosen, candidate))
        return Ambiguous(tuple(matches))


def _resolves(match: Match) -> bool:
    if match.tier == "phonetic" or not (match.reuses or match.proposes):
        return False
    if "first_name" in match.evidence:
        return False
    kinds = {kind for _, _, kind in match.evidence.get("words", ())}
    corroborated = "agree" in match.evidence.get("attributes", ())
    return corroborated or kinds.isdisjoint(("nickname", "cousins"))


def _leader(matches: list[Match], earlier: Iterable[Match]) -> Match | None:
    """Return the match that stands out: the only one, the only one without a slip, the likeliest.

    None does where an earlier tier points at something else that is likely enough.
    """
    first, *others = _ordered(matches)
    if any(match.option.key != first.option.key for match in earlier):
        return None
    if not others or _odds(first) >= _LEAD * _odds(others[0]):
        return first
    if first.score == 1 and max(match.score for match in others) < 1:
        return first
    return None


def _odds(match: Match) -> float:
    return match.confidence / max(1 - match.confidence, 1e-12)


def _unshared(matches: list[Match]) -> list[Match]:
    """Return the matches; where a short form fits different names, none of them is acted on."""
    meant: dict[str, set[tuple[str, ...]]] = {}
    for match in matches:
        for short, full in _short_forms(match).items():
            meant.setdefault(short, set()).add(tuple(full))
    return [
        _doubted(match, "fits several")
        if any(len(meant[short]) > 1 for short in _short_forms(match))
        else match
        for match in matches
    ]


def _only_bearers(matches: list[Match], asked: Asked, seen: Sequence[Option]) -> list[Match]:
    """Return the matches; where several have a first name that stands alone, none is acted on."""
    firsts = {match.evidence["first_name"] for match in matches if "first_name" in match.evidence}
    if not firsts:
        return matches
    bearers: dict[str, set[tuple[str, ...]]] = {first: set() for first in firsts}
    for name in (*asked.names, *(name for option in seen for name in option.names)):
        if len(name.words) > 1 and name.words[0] in bearers:
            bearers[name.words[0]].add(name.words)
    return [
        _doubted(match, "fits several")
        if len(bearers.get(match.evidence.get("first_name", ""), ())) > 1
        else match
        for match in matches
    ]


def _doubted(match: Match, doubt: str) -> Match:
    doubts = [*match.evidence.get("doubts", ()), doubt]
    evidence = {**match.evidence, "doubts": doubts}
    return replace(match, reuses=False, proposes=False, evidence=evidence)


def _short_forms(match: Match) -> dict[str, list[str]]:
    """Return the initials and nicknames that a match rests on, and what they stand for."""
    found: dict[str, list[str]] = {}
    if "vetoes" not in match.evidence:
        for left, right, kind in match.evidence.get("words", ()):
            if kind in ("initial", "nickname", "cousins"):
                short, full = sorted((left, right), key=lambda word: (len(word), word))
                found.setdefault(short, []).append(full)
    return found


def _ordered(matches: Iterable[Match]) -> list[Match]:
    """Return matches best first: acted on, by tier, confidence, score; ties by name and key."""
    return sorted(
        matches,
        key=lambda match: (
            not (match.reuses or match.proposes),
            TIER_ORDER.index(match.tier),
            -match.confidence,
            -match.score,
            match.option.names,
            repr(match.option.key),
        ),
    )


def _chosen(match: Match, candidate: Named) -> Match:
    reuses = match.tier == "exact" and match.option.type == candidate.type
    return replace(
        match,
        tier="tiebreaker",
        reuses=reuses,
        proposes=not reuses,
        evidence={**match.evidence, "chosen_from": match.tier},
    )
