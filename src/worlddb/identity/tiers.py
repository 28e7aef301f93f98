"""Guards: what keeps two names apart however alike they look.

Each guard is one function of two names and returns the reason, or nothing. They come from what
people complain about in systems that merge by likeness: GPT-4 with GPT-4o, North with South Korea,
a father with his son. No likeness, sound or vector overrides a guard.

G1  A guard is symmetric.
G2  Equal names pass every guard but `sentence`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

from worlddb.identity.likelihood import (
    NOTHING,
    Corroboration,
    agree_strongly,
    cleaned,
    corroborate,
    is_first_alone,
    judge,
    probability,
    strong_of,
)
from worlddb.identity.match_values import Match, Named, Population, ResolverSettings
from worlddb.identity.name_comparison import Likeness, compare, jaro_winkler, look_alike
from worlddb.language.person_names import MARKS, NEGATING, OPPOSED, Name, read_name
from worlddb.language.word_sound import spoken
from worlddb.resolve.known import is_name

Guard = Callable[[Name, Name, Likeness, bool], str]


def is_sentence(name: Name, settings: ResolverSettings) -> bool:
    """Tell whether a text is too long for a name, or reads like something said."""
    return (
        name.speaks
        or name.sentence_words > settings.name_words_max
        or len(name.text) > settings.name_letters_max
    )


def is_short(name: Name, settings: ResolverSettings) -> bool:
    """Tell whether a name has so few letters that only an equal one is the same."""
    return sum(map(len, (*name.words, *name.numbers))) <= settings.short_letters_max


def numbers(left: Name, right: Name, likeness: Likeness, person: bool) -> str:
    """Numbers, versions, years and dates agree: iPhone 14 is no iPhone 15, nor the iPhone."""
    return "numbers differ" if left.numbers != right.numbers else ""


def generations(left: Name, right: Name, likeness: Likeness, person: bool) -> str:
    """Jr. and Sr., II and III are two; without any, a person may be either, a work is the first."""
    one, other = (name.generation or name.ordinal for name in (left, right))
    if one == other or (person and not (one and other)):
        return ""
    return "generations differ"


def marks(left: Name, right: Name, likeness: Likeness, person: bool) -> str:
    """Words that set apart are the same on both sides: North and South Korea, pro and anti."""
    apart = {*likeness.more_left, *likeness.more_right}
    for pair in likeness.pairs:
        if pair.left != pair.right:
            apart.update((pair.left, pair.right))
    if not likeness.pairs and not (MARKS.issuperset(left.words) or MARKS.issuperset(right.words)):
        return ""  # other words altogether: the Big Apple, New York City
    # Max, April and West are also what people are called.
    told = [word for word in apart & MARKS if not (person and is_name(word))]
    return "marks differ" if told else ""


def opposites(left: Name, right: Name, likeness: Likeness, person: bool) -> str:
    """No word of one is a word of the other turned round: legal and illegal, import and export."""
    ones, others = list(likeness.more_left), list(likeness.more_right)
    for pair in likeness.pairs:
        if pair.left != pair.right:
            ones.append(pair.left)
            others.append(pair.right)
    return "opposites" if any(_opposed(one, other) for one in ones for other in others) else ""


def _opposed(one: str, other: str) -> bool:
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


def genders(left: Name, right: Name, likeness: Likeness, person: bool) -> str:
    """Mr and Mrs Chen are two."""
    return "titles differ" if left.gender and right.gender and left.gender != right.gender else ""


def owners(left: Name, right: Name, likeness: Likeness, person: bool) -> str:
    """My manager is not your manager; and whose it is must be said on both sides."""
    return "owners differ" if left.owner != right.owner else ""


def possessives(left: Name, right: Name, likeness: Likeness, person: bool) -> str:
    """Wendy's is not Wendy; McDonald's and McDonalds are one."""
    apart = (left.possessed - set(right.words)) | (right.possessed - set(left.words))
    return "possessives differ" if apart else ""


def kinds(left: Name, right: Name, likeness: Likeness, person: bool) -> str:
    """Ms. Delgado is not Delgado Inc."""
    firm = (left.legal and right.titles) or (right.legal and left.titles)
    return "a person and a firm" if firm else ""


def order(left: Name, right: Name, likeness: Likeness, person: bool) -> str:
    """The University of Washington is not Washington University."""
    return "order differs" if likeness.turned and (left.ordered or right.ordered) else ""


def initials(left: Name, right: Name, likeness: Likeness, person: bool) -> str:
    """Letters stand for words in the names of people only, and at the end only with a full stop.

    Vitamin C is not Vitamin Complex, nor is Jay Z Jay Zimmer.
    """
    if "initial" not in likeness.kinds:
        return ""
    undotted = any(map(_ends_with_bare_letter, (left, right))) and not likeness.turned
    return "a letter is no word" if undotted or not person else ""


def _ends_with_bare_letter(name: Name) -> bool:
    return len(name.words[-1]) == 1 and not name.text.rstrip().endswith(".")


GUARDS: tuple[Guard, ...] = (
    numbers,
    generations,
    marks,
    opposites,
    genders,
    owners,
    possessives,
    kinds,
    order,
    initials,
)


def vetoes_of(left: Name, right: Name, likeness: Likeness, person: bool) -> list[str]:
    """Return what keeps two names apart."""
    if left.key == right.key:
        return []
    return [reason for guard in GUARDS if (reason := guard(left, right, likeness, person))]


def compatible(one: str, other: str, settings: ResolverSettings) -> bool:
    """Tell whether two types may name one thing: they are equal, or one is generic."""
    one, other = one.casefold(), other.casefold()
    return one == other or one in settings.generic_types or other in settings.generic_types


# Tiers: the ways in which an option may be found to be the candidate, from sure to vague.
#
# Each tier looks at one option and returns a match, or nothing. A match that a guard forbids is
# returned with its vetoes, and then neither reuses nor proposes: it explains a `New`.


NAMES_MAX = 16  # of one thing: more aliases than this are not compared one by one
_PHONETIC = frozenset({"spoken", "sound"})
_COSINE_STEP = 0.04
_LOOKS_ALIKE = 0.92  # two words less alike than this are not one by their letters


class Asked:
    """A candidate with everything that is worked out once for all options."""

    def __init__(
        self, candidate: Named, population: Population, settings: ResolverSettings
    ) -> None:
        self.candidate = candidate
        self.population = population
        self.settings = settings
        self.names = readable(candidate, settings)
        self.keys = {name.key: name for name in self.names}
        self.attributes = cleaned(candidate.attributes)
        self.strong = strong_of(self.attributes, settings)
        self._compared: dict[tuple[str, str], Likeness] = {}

    def compared(self, left: Name, right: Name) -> Likeness:
        """Return how alike two names are; many options may bear the same one."""
        found = self._compared.get((left.text, right.text))
        if found is None:
            found = compare(left, right, self.settings.word_jaro_winkler)
            self._compared[left.text, right.text] = found
        return found


class Option:
    """An option, with what is worked out once for all tiers and only when one needs it."""

    def __init__(self, asked: Asked, named: Named) -> None:
        self.asked = asked
        self.named = named
        self.names = readable(named, asked.settings)
        types = {asked.candidate.type.casefold(), named.type.casefold()}
        people = asked.settings.person_types
        self.is_person = not types.isdisjoint(people)
        self.may_be_person = types <= people | asked.settings.generic_types

    @cached_property
    def said(self) -> Corroboration:
        """What the attributes of both say."""
        if not self.asked.attributes or not self.named.attributes:
            return NOTHING
        attributes = cleaned(self.named.attributes)
        return corroborate(self.asked.attributes, attributes, self.asked.settings)

    @cached_property
    def likenesses(self) -> list[tuple[Name, Name, Likeness]]:
        """The names of both that are alike enough to be looked at, two by two."""
        found = []
        settings = self.asked.settings
        strong = agree_strongly(self.asked.strong, self.named.attributes, settings)
        for right in self.names[:NAMES_MAX]:
            for left in self.asked.names[:NAMES_MAX]:
                likeness = self.asked.compared(left, right)
                if likeness.pairs and (strong or not likeness.differs):
                    found.append((left, right, likeness))
        return found


def readable(named: Named, settings: ResolverSettings) -> list[Name]:
    """Return the names of something, each once; sentences and empty texts are no names."""
    found: dict[str, Name] = {}
    for text in named.names:
        name = read_name(text)
        if name.key and not is_sentence(name, settings):
            found.setdefault(name.key, name)
    return list(found.values())


class Tier(Protocol):
    """One way to recognise."""

    name: str

    def match(self, asked: Asked, option: Option) -> Match | None:
        """Return the match of an option, if this tier sees one."""


class Exact:
    """An equal name or alias. Of one type it is the same node, unless many bear the name."""

    name = "exact"

    def match(self, asked: Asked, option: Option) -> Match | None:
        """Return the match of an option that bears one of the candidate's names."""
        found = [
            self._judged(asked, option, asked.keys[name.key], name)
            for name in option.names
            if name.key in asked.keys
        ]
        return max(found, key=_rank, default=None)

    def _judged(self, asked: Asked, option: Option, left: Name, right: Name) -> Match:
        likeness = asked.compared(left, right)
        person = option.is_person or (left.person and len(left.words) > 1)
        judged = judge(
            left, right, likeness, option.said, asked.population, asked.settings, person=person
        )
        return _decided(
            asked, option, self.name, 1.0, judged.confidence, (left, right),
            evidence=judged.evidence, vetoes=[], doubts=(),
        )  # fmt: skip


class Fuzzy:
    """Names that differ by slips, order, initials, titles, middle names, nicknames, spellings."""

    name = "fuzzy"

    def match(self, asked: Asked, option: Option) -> Match | None:
        """Return the best match between the names of both."""
        found = []
        for left, right, likeness in option.likenesses:
            alike = likeness.score >= asked.settings.jaro_winkler or likeness.differs
            if alike and not _rests_on_sound(likeness):
                found.append(_judged(self.name, asked, option, (left, right), likeness))
        return max(found, key=_rank, default=None)


class Phonetic:
    """Names that sound alike."""

    name = "phonetic"

    def match(self, asked: Asked, option: Option) -> Match | None:
        """Return the best match between the names of both that rests on sound."""
        found = [
            _judged(self.name, asked, option, (left, right), likeness)
            for left, right, likeness in option.likenesses
            if _rests_on_sound(likeness)
        ]
        return max(found, key=_rank, default=None)


def _rests_on_sound(likeness: Likeness) -> bool:
    """Tell whether words are one by their sound, known to be so or not: Phillip and Filip."""
    near = jaro_winkler()
    return any(
        pair.kind in _PHONETIC
        or (
            pair.kind == "variant"
            and spoken(pair.left) == spoken(pair.right)
            and near(pair.left, pair.right) < _LOOKS_ALIKE
        )
        for pair in likeness.pairs
    )


def _rank(match: Match) -> tuple[bool, float, float, tuple[str, str]]:
    return match.reuses or match.proposes, match.confidence, match.score, match.compared


def _judged(
    tier: str, asked: Asked, option: Option, names: tuple[Name, Name], likeness: Likeness
) -> Match:
    left, right = names
    person = option.is_person or left.person or right.person
    # Where attributes have something to say, they decide.
    first = option.may_be_person and option.said is NOTHING
    first = first and is_first_alone(left, right, likeness)
    judged = judge(
        left, right, likeness, option.said, asked.population, asked.settings,
        person=person, first_alone=first,
    )  # fmt: skip
    vetoes = vetoes_of(left, right, likeness, person)
    if left.key != right.key and any(is_short(name, asked.settings) for name in names):
        vetoes.append("too short")
    return _decided(
        asked, option, tier, likeness.score, judged.confidence, names,
        evidence=judged.evidence, vetoes=vetoes, doubts=judged.doubts,
    )  # fmt: skip


class Embedding:
    """Vectors that point the same way: other words for one thing.

    Names that share a word, or nearly, are near whatever they name (Red Cross, Red Cross Society);
    those the tiers before have judged by their letters, and they know better. Roles of one owner
    are near, too: my landlord, my neighbour.
    """

    name = "embedding"

    def match(self, asked: Asked, option: Option) -> Match | None:
        """Return the match of an option whose vector is near the candidate's."""
        cosine = _cosine(asked.candidate, option.named)
        if cosine < asked.settings.cosine or not asked.names or not option.names:
            return None
        left, right = asked.names[0], option.names[0]
        person = option.is_person or left.person or right.person
        likeness = asked.compared(left, right)
        vetoes = vetoes_of(left, right, likeness, person)
        if person and (likeness.differs or not likeness.pairs):
            vetoes.append("words differ")
        least = asked.settings.word_jaro_winkler
        if not vetoes and (left.owner or look_alike(left, right, likeness, least)):
            return None
        log_odds = 0.5 + (cosine - asked.settings.cosine) / _COSINE_STEP + option.said.weight
        return _decided(
            asked, option, self.name, cosine, probability(log_odds), (left, right),
            evidence={}, vetoes=vetoes, doubts=(),
        )  # fmt: skip


def _cosine(one: Named, other: Named) -> float:
    if one.vector is None or other.vector is None or one.vector.shape != other.vector.shape:
        return 0.0
    lengths = float((one.vector @ one.vector) * (other.vector @ other.vector)) ** 0.5
    return float(one.vector @ other.vector) / lengths if lengths else 0.0


def _decided(
    asked: Asked,
    option: Option,
    tier: str,
    score: float,
    confidence: float,
    names: tuple[Name, Name],
    *,
    evidence: dict[str, Any],
    vetoes: list[str],
    doubts: tuple[str, ...],
) -> Match:
    """Return the match with its verdict and everything that led to it."""
    settings, said, named = asked.settings, option.said, option.named
    if not compatible(asked.candidate.type, named.type, settings):
        vetoes = [*vetoes, "types differ"]
    vetoes = [*vetoes, *(f"{name} differs" for name in said.forbid)]
    attributes = {
        what: list(found)
        for what in ("agree", "close", "differ", "forbid")
        if (found := getattr(said, what))
    }
    told = {"attributes": attributes, "vetoes": vetoes, "doubts": list(doubts)}
    sure = confidence >= settings.propose_above and not vetoes and not doubts
    reuses = tier == "exact" and asked.candidate.type == named.type
    reuses = sure and reuses and confidence >= settings.reuse_above
    return Match(
        option=named,
        tier=tier,
        score=min(score, 1.0),
        confidence=0.0 if vetoes else confidence,
        compared=(names[0].text, names[1].text),
        reuses=reuses,
        proposes=sure and not reuses,
        evidence=evidence | {what: value for what, value in told.items() if value},
    )


ALL_TIERS: tuple[Tier, ...] = (Exact(), Fuzzy(), Phonetic(), Embedding())
