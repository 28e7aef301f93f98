"""Resolver: decides which of several nodes a name refers to, by tiers from certain to vague.

    exact ──▶ fuzzy ──▶ phonetic ──▶ embedding ──▶ tiebreaker

A tier is a function of one option that returns a match or None. The tiers run in order until one is
certain. A *veto* keeps two names apart however similar they look. The vetoes come from known errors
of systems that merge by similarity: GPT-4 with GPT-4o, North with South Korea, a father with his
son. A match with a veto neither reuses nor proposes a node; it only explains a `New`.

R1  The answer depends on the set of options, not on their order.
R2  Sound, nicknames and first names alone never resolve; such a match is at most `Ambiguous`.
R3  A vetoed match is never acted on, not even by the tiebreaker's choice.
G1  Vetoes are symmetric.
G2  Equal names have no veto.
G3  No similarity, sound or vector overrides a veto.

Not here: the search for options (`store_resolver`) and the use of the answer (`ingest`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from worlddb.errors import InvalidInputError
from worlddb.identity.likelihood import (
    NO_CORROBORATION,
    Corroboration,
    Judgement,
    agree_strongly,
    cleaned,
    corroborate,
    is_first_alone,
    judge,
    probability,
    strong_of,
)
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
from worlddb.identity.name_comparison import Likeness, compare, jaro_winkler, look_alike, may_fit
from worlddb.language.proper_names import MARKS, NEGATING, OPPOSED, Name, is_name, read_name, spoken

NAMES_MAX = 16  # names compared per node; every further alias multiplies the comparisons
COSINE_STEP = 0.04  # an increase of the cosine by this much raises the log odds by 1
LOOKS_ALIKE = 0.92  # words that are less alike than this match by sound, not by letters
_PHONETIC = frozenset({"spoken", "sound"})


def is_sentence(name: Name, settings: ResolverSettings) -> bool:
    """Return whether a text is too long for a name, or reads like a sentence."""
    return (
        name.speaks
        or name.sentence_words > settings.name_words_max
        or len(name.text) > settings.name_letters_max
    )


def is_short(name: Name, settings: ResolverSettings) -> bool:
    """Return whether a name has so few letters that only an equal name matches."""
    return sum(map(len, (*name.words, *name.numbers))) <= settings.short_letters_max


def vetoes_of(left: Name, right: Name, likeness: Likeness, person: bool) -> list[str]:
    """Return the reasons that keep two names apart."""
    if left.key == right.key:
        return []
    unpossessed = (left.possessed - set(right.words)) | (right.possessed - set(left.words))
    vetoes: tuple[tuple[str, object], ...] = (
        # Numbers, versions, years and dates agree: iPhone 14 is no iPhone 15, nor the iPhone.
        ("numbers differ", left.numbers != right.numbers),
        ("generations differ", _generations_differ(left, right, person)),
        ("marks differ", _marks_differ(left, right, likeness, person)),
        ("opposites", _has_opposites(likeness)),
        # Mr and Mrs Chen are two.
        ("titles differ", left.gender and right.gender and left.gender != right.gender),
        # My manager is not your manager, and a manager without an owner is neither.
        ("owners differ", left.owner != right.owner),
        # Wendy's is not Wendy; McDonald's and McDonalds are one.
        ("possessives differ", unpossessed),
        # Ms. Delgado is not Delgado Inc.
        ("a person and a firm", (left.legal and right.titles) or (right.legal and left.titles)),
        # The University of Washington is not Washington University.
        ("order differs", likeness.turned and (left.ordered or right.ordered)),
        ("a letter is not a word", _has_no_initial(left, right, likeness, person)),
    )
    return [reason for reason, holds in vetoes if holds]


def _generations_differ(left: Name, right: Name, person: bool) -> bool:
    """Jr. and Sr., II and III are two. Without any, a person may be either, a work is the first."""
    one, other = (name.generation or name.ordinal for name in (left, right))
    return one != other and not (person and not (one and other))


def _marks_differ(left: Name, right: Name, likeness: Likeness, person: bool) -> bool:
    """Distinguishing words are the same on both sides: North and South Korea, pro and anti."""
    if not likeness.pairs and not (MARKS.issuperset(left.words) or MARKS.issuperset(right.words)):
        return False  # No word in common: the Big Apple, New York City.
    ones, others = likeness.unequal
    # Max, April and West are also names of people.
    return any(not (person and is_name(word)) for word in MARKS & {*ones, *others})


def _has_opposites(likeness: Likeness) -> bool:
    """No word is the opposite of a word of the other name: legal, illegal; import, export."""
    ones, others = likeness.unequal
    return any(_are_opposed(one, other) for one in ones for other in others)


def _are_opposed(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) > 4 and longer.endswith(shorter):
        return longer.removesuffix(shorter) in NEGATING
    for first, second in OPPOSED:
        for a, b in ((first, second), (second, first)):
            if one.startswith(a) and other.startswith(b):
                rest = one.removeprefix(a)
                if len(rest) > 2 and rest == other.removeprefix(b):
                    return True
    return False


def _has_no_initial(left: Name, right: Name, likeness: Likeness, person: bool) -> bool:
    """Initials occur in the names of people only, and at the end only with a full stop.

    Vitamin C is not Vitamin Complex, nor is Jay Z Jay Zimmer.
    """
    if "initial" not in likeness.kinds:
        return False
    undotted = any(
        len(name.words[-1]) == 1 and not name.text.rstrip().endswith(".") for name in (left, right)
    )
    return (undotted and not likeness.turned) or not person


# -- what the tiers work with ----------------------------------------------------------------------


class TypeKinds(NamedTuple):
    """The types of candidate and option; they `agree` if they are equal or one is generic."""

    is_person: bool
    may_be_person: bool
    agree: bool


class PreparedCandidate:
    """The candidate, with everything that is computed once for all options."""

    def __init__(self, node: NamedNode, population: Population, settings: ResolverSettings) -> None:
        self.node = node
        self.population = population
        self.settings = settings
        self.names = readable_names(node, settings)
        self.keys = {name.key: name for name in self.names}
        self.attributes = cleaned(node.attributes)
        self.strong = strong_of(self.attributes, settings)
        self._compared: dict[tuple[str, str], Likeness] = {}
        self._kinds: dict[str, TypeKinds] = {}

    def kinds_with(self, type_: str) -> TypeKinds:
        """Return the comparison of the candidate's type with an option's."""
        found = self._kinds.get(type_)
        if found is None:
            settings = self.settings
            types = {self.node.type.casefold(), type_.casefold()}
            found = self._kinds[type_] = TypeKinds(
                is_person=not types.isdisjoint(settings.person_types),
                may_be_person=types <= settings.person_types | settings.generic_types,
                agree=len(types) == 1 or not types.isdisjoint(settings.generic_types),
            )
        return found

    def compare(self, left: Name, right: Name) -> Likeness:
        """Return how alike two names are; cached, because many options may have the same name."""
        found = self._compared.get((left.text, right.text))
        if found is None:
            found = compare(left, right, self.settings.word_jaro_winkler)
            self._compared[left.text, right.text] = found
        return found


class PreparedOption:
    """An option, with everything that is computed once for all tiers.

    `likenesses` are the pairs of names that are alike enough to be judged.
    """

    __slots__ = ("_corroboration", "_likenesses", "candidate", "kinds", "names", "node")

    def __init__(self, candidate: PreparedCandidate, node: NamedNode) -> None:
        self.candidate = candidate
        self.node = node
        self.names = readable_names(node, candidate.settings)
        self.kinds = candidate.kinds_with(node.type)
        self._corroboration: Corroboration | None = None
        self._likenesses: list[tuple[Name, Name, Likeness]] | None = None

    @property
    def corroboration(self) -> Corroboration:
        """The comparison of the attributes of candidate and option."""
        candidate = self.candidate
        if not candidate.attributes or not self.node.attributes:
            return NO_CORROBORATION
        if self._corroboration is None:
            attributes = cleaned(self.node.attributes)
            self._corroboration = corroborate(candidate.attributes, attributes, candidate.settings)
        return self._corroboration

    @property
    def is_near(self) -> bool:
        """Whether another tier than the exact one may match."""
        both = self.candidate.node.vector is not None and self.node.vector is not None
        return both or bool(self.likenesses)

    @property
    def likenesses(self) -> list[tuple[Name, Name, Likeness]]:
        """The pairs of names that are alike enough to be judged."""
        if self._likenesses is None:
            self._likenesses = self._alike()
        return self._likenesses

    def _alike(self) -> list[tuple[Name, Name, Likeness]]:
        found = []
        candidate = self.candidate
        least = candidate.settings.word_jaro_winkler
        strong = agree_strongly(candidate.strong, self.node.attributes, candidate.settings)
        for right in self.names[:NAMES_MAX]:
            for left in candidate.names[:NAMES_MAX]:
                if strong or may_fit(left, right, least):
                    likeness = candidate.compare(left, right)
                    if likeness.pairs and (strong or not likeness.differs):
                        found.append((left, right, likeness))
        return found


def readable_names(node: NamedNode, settings: ResolverSettings) -> list[Name]:
    """Return the names of a node, each once; sentences and empty texts are left out."""
    if len(node.names) == 1:
        name = read_name(node.names[0])
        return [name] if name.key and not is_sentence(name, settings) else []
    found: dict[str, Name] = {}
    for text in node.names:
        name = read_name(text)
        if name.key and not is_sentence(name, settings):
            found.setdefault(name.key, name)
    return list(found.values())


# -- the tiers -------------------------------------------------------------------------------------


def match_exact(option: PreparedOption) -> Match | None:
    """Match an equal name or alias; with the same type it is the same node, unless it is common."""
    candidate, found = option.candidate, []
    for right in option.names:
        if (left := candidate.keys.get(right.key)) is not None:
            judged = judge(
                left, right, candidate.compare(left, right), option.corroboration,
                candidate.population, candidate.settings,
                person=option.kinds.is_person or (left.person and len(left.words) > 1),
            )  # fmt: skip
            undoubted = Judgement(judged.confidence, (), judged.evidence)
            found.append(_match(option, "exact", (left, right), 1.0, undoubted, []))
    return max(found, key=_rank, default=None)


def match_fuzzy(option: PreparedOption) -> Match | None:
    """Match names with slips, initials, titles, middle names, nicknames, or in another order."""
    least = option.candidate.settings.jaro_winkler
    found = [
        _judged(option, "fuzzy", left, right, likeness)
        for left, right, likeness in option.likenesses
        if (likeness.score >= least or likeness.differs) and not _rests_on_sound(likeness)
    ]
    return max(found, key=_rank, default=None)


def match_phonetic(option: PreparedOption) -> Match | None:
    """Match names that sound alike."""
    found = [
        _judged(option, "phonetic", left, right, likeness)
        for left, right, likeness in option.likenesses
        if _rests_on_sound(likeness)
    ]
    return max(found, key=_rank, default=None)


def match_embedding(option: PreparedOption) -> Match | None:
    """Match vectors that point the same way: different words for one thing.

    Names that share a word have close vectors whatever they refer to (Red Cross, Red Cross
    Society), so earlier tiers have judged those by their letters. Roles of one owner are close,
    too: my landlord, my neighbour.
    """
    candidate, settings = option.candidate, option.candidate.settings
    cosine = _cosine(candidate.node, option.node)
    if cosine < settings.cosine or not candidate.names or not option.names:
        return None
    left, right = candidate.names[0], option.names[0]
    person = option.kinds.is_person or left.person or right.person
    likeness = candidate.compare(left, right)
    vetoes = vetoes_of(left, right, likeness, person)
    if person and (likeness.differs or not likeness.pairs):
        vetoes.append("words differ")
    least = settings.word_jaro_winkler
    if not vetoes and (left.owner or look_alike(left, right, likeness, least)):
        return None
    log_odds = 0.5 + (cosine - settings.cosine) / COSINE_STEP + option.corroboration.weight
    judged = Judgement(probability(log_odds), (), {})
    return _match(option, "embedding", (left, right), cosine, judged, vetoes)


TIER_MATCHERS: dict[str, Callable[[PreparedOption], Match | None]] = {
    "exact": match_exact,
    "fuzzy": match_fuzzy,
    "phonetic": match_phonetic,
    "embedding": match_embedding,
}
"""The tiers by name, in the order in which they run."""


def _rests_on_sound(likeness: Likeness) -> bool:
    """Return whether words match by their sound, also as known variants: Phillip and Filip."""
    near = jaro_winkler()
    return any(
        pair.kind in _PHONETIC
        or (
            pair.kind == "variant"
            and spoken(pair.left) == spoken(pair.right)
            and near(pair.left, pair.right) < LOOKS_ALIKE
        )
        for pair in likeness.pairs
    )


def _rank(match: Match) -> tuple[bool, float, float, tuple[str, str]]:
    return match.reuses or match.proposes, match.confidence, match.score, match.compared


def _cosine(one: NamedNode, other: NamedNode) -> float:
    if one.vector is None or other.vector is None or one.vector.shape != other.vector.shape:
        return 0.0
    lengths = float((one.vector @ one.vector) * (other.vector @ other.vector)) ** 0.5
    return float(one.vector @ other.vector) / lengths if lengths else 0.0


def _judged(
    option: PreparedOption, tier: str, left: Name, right: Name, likeness: Likeness
) -> Match:
    candidate, settings = option.candidate, option.candidate.settings
    person = option.kinds.is_person or left.person or right.person
    # If attributes can be compared, they decide about a first name.
    may_be_first = option.kinds.may_be_person and option.corroboration is NO_CORROBORATION
    judged = judge(
        left, right, likeness, option.corroboration, candidate.population, settings,
        person=person, first_alone=may_be_first and is_first_alone(left, right, likeness),
    )  # fmt: skip
    vetoes = vetoes_of(left, right, likeness, person)
    if left.key != right.key and (is_short(left, settings) or is_short(right, settings)):
        vetoes.append("too short")
    return _match(option, tier, (left, right), likeness.score, judged, vetoes)


def _match(
    option: PreparedOption,
    tier: str,
    names: tuple[Name, Name],
    score: float,
    judged: Judgement,
    vetoes: list[str],
) -> Match:
    """Return the match with its decision and all evidence for it."""
    settings, said = option.candidate.settings, option.corroboration
    if not option.kinds.agree:
        vetoes = [*vetoes, "types differ"]
    vetoes = [*vetoes, *(f"{name} differs" for name in said.forbid)]
    attributes = {
        what: list(found)
        for what in ("agree", "close", "differ", "forbid")
        if (found := getattr(said, what))
    }
    told = {"attributes": attributes, "vetoes": vetoes, "doubts": list(judged.doubts)}
    sure = judged.confidence >= settings.propose_above and not vetoes and not judged.doubts
    reuses = tier == "exact" and option.candidate.node.type == option.node.type
    reuses = sure and reuses and judged.confidence >= settings.reuse_above
    return Match(
        option=option.node,
        tier=tier,
        score=min(score, 1.0),
        confidence=0.0 if vetoes else judged.confidence,
        compared=(names[0].text, names[1].text),
        reuses=reuses,
        proposes=sure and not reuses,
        evidence=judged.evidence | {what: value for what, value in told.items() if value},
    )


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
                    break  # As for most new names, no option is similar enough.
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
    """Return whether a match may end the search by itself (R2)."""
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
