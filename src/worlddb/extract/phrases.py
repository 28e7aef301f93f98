"""Phrases: what stands right before a name and introduces it: "my older sister", "a dog named"."""

from __future__ import annotations

import re
from typing import NamedTuple

from worlddb.extract.lexicon.roles import MANY, MODIFIERS, PERSONS, PETS, ROLES

BEFORE_MAX = 80
LETTERS = re.compile(r"\s+\(([A-Z][A-Z&]{1,7})\)")
"""Letters in brackets after a long name: International Business Machines (IBM)."""

_OWNER = re.compile(r".*\b(my|our|your|his|her|their)\s", re.IGNORECASE | re.DOTALL)
_ROLE_BEFORE = re.compile(
    r"(my|our|your|his|her|their)((?:\s+[^\W\d_][\w-]*){1,4}?)"
    r"(?:(?P<named>['’]s?\s+names?\s+(?:is|are)|,?\s+(?:(?:is|are)\s+)?(?:named|called))"
    r"|(?P<is>\s+(?:is|are))|(?P<of>\s+of)|(?P<comma>,)|(?P<bracket>\s*[(]))?\s*[\"“]?$",
    re.IGNORECASE,
)
_ROLE_AFTER = re.compile(
    r"(?:,\s+|\s+is\s+|\s+\()(?:my|our)((?:\s+[^\W\d_][\w-]*){1,4}?)\s*(?:[,.;!?)\n]|\Z)"
)
_NAMED = re.compile(
    r"(?:\b(?:named|nicknamed|names? (?:is|was|are)|name['’]s|goes by|known as|aka|a\.k\.a\."
    r"|call(?:s|ed)? (?:him|her|it|them|me)|née|formerly"
    r"|(?:is|was|are|be|been) called|(?:a|an|the|this|that)(?: [\w'’-]{1,20}){1,4} called)"
    r"|['’](?:s|re) called)\s+[\"“'‘]?$",
    re.IGNORECASE,
)
# Without these the role would be another one: a former manager is none.
_QUALIFIERS = frozenset(
    ("best", "ex", "foster", "former", "great", "guinea", "half", "old", "previous", "shih", "step")
)
_LIVING = PERSONS | MANY | PETS
_IRREGULAR = {"children": "child", "wives": "wife", "puppies": "puppy", "kitties": "kitty"}
_IRREGULAR |= {"babies": "baby", "bunnies": "bunny", "ponies": "pony", "fiancés": "fiancé"}
_IRREGULAR |= {"companies": "company", "countries": "country", "cities": "city"}
_IRREGULAR |= {"grandchildren": "grandchild", "huskies": "husky", "churches": "church"}


class RolePhrase(NamedTuple):
    """What precedes a name, as "my older sister": whose, what, and how it is tied to the name."""

    start: int
    owner: str
    phrase: str
    role: str
    plural: bool
    tie: str


def role_before(plain: str, position: int) -> RolePhrase | None:
    """Return the role that stands before a name at `position`, if one does."""
    offset = max(0, position - BEFORE_MAX)
    nearest = _OWNER.match(plain, offset, position)
    if nearest is None:
        return None
    match = _ROLE_BEFORE.match(plain, nearest.start(1), position)
    if match is None:
        return None
    role = role_of(match[2].split())
    if role is None:
        return None
    name, plural = role
    phrase = " ".join(match[2].split())
    return RolePhrase(match.start(), match[1].lower(), phrase, name, plural, match.lastgroup or "")


def role_of(words: list[str]) -> tuple[str, bool] | None:
    """Return the role that words such as "older sister" name, and whether it is several."""
    last = words[-1].lower()
    plural = False
    if last not in ROLES:
        single = _IRREGULAR.get(last, last.removesuffix("s"))
        if single not in ROLES or single == last:
            return None
        last, plural = single, True
    if any(word.lower() not in MODIFIERS for word in words[:-1]):
        return None
    if words[:-1] and (qualifier := words[-2].lower()) in _QUALIFIERS:
        last = f"{qualifier} {last}"
    return last, plural


def introduced(plain: str, position: int) -> bool:
    """Return whether what stands at `position` is introduced as a name."""
    if _NAMED.search(plain, max(0, position - BEFORE_MAX), position) is not None:
        return True
    role = role_before(plain, position)
    return role is not None and role.role.split()[-1] in _LIVING


def explained(plain: str, position: int) -> bool:
    """Return whether what ends at `position` is said to be somebody's: "Bella is our cat"."""
    match = _ROLE_AFTER.match(plain, position)
    role = role_of(match[1].split()) if match is not None else None
    return role is not None and role[0].split()[-1] in _LIVING


def initials(text: str) -> str:
    """Return the capitals that the words of a long name begin with; empty for a single word."""
    words = [word for word in re.split(r"[\s-]+", text) if word[:1].isupper()]
    return "".join(word[0] for word in words) if len(words) > 1 else ""
