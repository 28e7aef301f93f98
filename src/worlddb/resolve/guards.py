"""Guards: what keeps two names apart however alike they look.

Each guard is one function of two names and returns the reason, or nothing. They come from what
people complain about in systems that merge by likeness: GPT-4 with GPT-4o, North with South Korea,
a father with his son. No likeness, sound or vector overrides a guard.

G1  A guard is symmetric.
G2  Equal names pass every guard but `sentence`.
"""

from __future__ import annotations

from collections.abc import Callable

from worlddb.resolve.compare import Likeness
from worlddb.resolve.known import is_name
from worlddb.resolve.names import Name
from worlddb.resolve.settings import ResolverSettings
from worlddb.resolve.vocabulary import MARKS, NEGATING, OPPOSED

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


def vetoes(left: Name, right: Name, likeness: Likeness, person: bool) -> list[str]:
    """Return what keeps two names apart."""
    if left.key == right.key:
        return []
    return [reason for guard in GUARDS if (reason := guard(left, right, likeness, person))]


def compatible(one: str, other: str, settings: ResolverSettings) -> bool:
    """Tell whether two types may name one thing: they are equal, or one is generic."""
    one, other = one.casefold(), other.casefold()
    return one == other or one in settings.generic_types or other in settings.generic_types
