"""The resolver: runs the tiers in order and stops at the first that is sure.

    exact ──▶ fuzzy ──▶ phonetic ──▶ embedding ──▶ tiebreaker

R1  The answer depends on the set of options, not on their order.
R2  Sound, nicknames and first names alone never resolve; such a match is at most `Ambiguous`.
R3  A vetoed match is never acted on, whoever breaks the tie.

Not here: the search for options (`store_resolver`) and the use of the answer (`ingest`).
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
    NamedNode,
    New,
    Population,
    Resolved,
    ResolverSettings,
    Tiebreaker,
    Verdict,
)
from worlddb.identity.tiers import TIER_MATCHERS, PreparedCandidate, PreparedOption

TRUST_ORDER = ("exact", "fuzzy", "embedding", "phonetic")
"""When tiers disagree, the tier further left is believed."""
LEAD_ODDS = 50.0  # how much likelier than the second the best of several matches must be


class Resolver:
    """Decides which of several options a candidate is, if any."""

    def __init__(
        self,
        settings: ResolverSettings = DEFAULT_SETTINGS,
        *,
        tiebreaker: Tiebreaker | None = None,
    ) -> None:
        self._settings = settings
        self._tiebreaker = tiebreaker
        self._tiers = [tier for tier in TIER_MATCHERS if tier in settings.tiers]

    def resolve(
        self,
        candidate: NamedNode,
        options: Sequence[NamedNode],
        population: Population = NO_POPULATION,
    ) -> Verdict:
        """Return which option the candidate is, which it may be, or that it is new.

        Raises:
            InvalidInputError: the tiebreaker returned a match that it was not offered.
        """
        prepared = PreparedCandidate(candidate, population, self._settings)
        if not prepared.names:
            return New()
        seen = [PreparedOption(prepared, option) for option in options]
        found: dict[Hashable, Match] = {}
        vetoed: dict[Hashable, Match] = {}
        near: list[PreparedOption] | None = None
        for tier in self._tiers:
            if tier != "exact" and near is None:
                near = [option for option in seen if option.is_near]
                if not near:
                    break  # As of most new names: no option is alike enough for any further tier.
            here = map(TIER_MATCHERS[tier], seen if near is None else near)
            matches = _doubt_shared_forms([match for match in here if match is not None])
            matches = _doubt_shared_firsts(matches, prepared, seen)
            likely = self._settings.propose_above
            earlier = [match for match in found.values() if match.confidence >= likely]
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

    def _settled(self, candidate: NamedNode, matches: list[Match], vetoed: list[Match]) -> Verdict:
        """Return the verdict on matches of which none stands out."""
        settings = self._settings
        matches = [match for match in matches if match.confidence >= settings.consider_above]
        if not matches:
            return New(tuple(vetoed[: settings.considered_max]))
        if self._tiebreaker is not None:
            chosen = self._tiebreaker(candidate, tuple(matches))
            if chosen is not None:
                if chosen not in matches:
                    raise InvalidInputError("tiebreaker: return one of the matches, or None")
                return Resolved(_chosen(chosen, candidate))
        return Ambiguous(tuple(matches))


def _resolves(match: Match) -> bool:
    """Tell whether a match may end the search by itself (R2)."""
    if match.tier == "phonetic" or not (match.reuses or match.proposes):
        return False
    if "first_name" in match.evidence:
        return False
    kinds = {kind for _, _, kind in match.evidence.get("words", ())}
    corroborated = "agree" in match.evidence.get("attributes", ())
    return corroborated or kinds.isdisjoint(("nickname", "cousins"))


def _leader(matches: list[Match], earlier: Iterable[Match]) -> Match | None:
    """Return the match that stands out: the only one, the only equal one, or by far the likeliest.

    None if an earlier tier found another option that is likely enough.
    """
    first, *others = _ordered(matches)
    if any(match.option.key != first.option.key for match in earlier):
        return None
    if not others or _odds(first) >= LEAD_ODDS * _odds(others[0]):
        return first
    if first.score == 1 and max(match.score for match in others) < 1:
        return first
    return None


def _odds(match: Match) -> float:
    return match.confidence / max(1 - match.confidence, 1e-12)


def _doubt_shared_forms(matches: list[Match]) -> list[Match]:
    """Doubt the matches by an initial or a nickname that fits several different names."""
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


def _doubt_shared_firsts(
    matches: list[Match], candidate: PreparedCandidate, seen: Sequence[PreparedOption]
) -> list[Match]:
    """Doubt the matches by a first name alone that several people have."""
    firsts = {match.evidence["first_name"] for match in matches if "first_name" in match.evidence}
    if not firsts:
        return matches
    bearers: dict[str, set[tuple[str, ...]]] = {first: set() for first in firsts}
    for name in (*candidate.names, *(name for option in seen for name in option.names)):
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
    """Return the initials and nicknames that a match rests on, and the words they stand for."""
    found: dict[str, list[str]] = {}
    if "vetoes" not in match.evidence:
        for left, right, kind in match.evidence.get("words", ()):
            if kind in ("initial", "nickname", "cousins"):
                short, full = sorted((left, right), key=lambda word: (len(word), word))
                found.setdefault(short, []).append(full)
    return found


def _ordered(matches: Iterable[Match]) -> list[Match]:
    """Return matches best first: acted on, tier, confidence, score; ties by name and key."""
    return sorted(
        matches,
        key=lambda match: (
            not (match.reuses or match.proposes),
            TRUST_ORDER.index(match.tier),
            -match.confidence,
            -match.score,
            match.option.names,
            repr(match.option.key),
        ),
    )


def _chosen(match: Match, candidate: NamedNode) -> Match:
    """Return the match that the tiebreaker chose, as one to act on."""
    reuses = match.tier == "exact" and match.option.type == candidate.type
    return replace(
        match,
        tier="tiebreaker",
        reuses=reuses,
        proposes=not reuses,
        evidence={**match.evidence, "chosen_from": match.tier},
    )
