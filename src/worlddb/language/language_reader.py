"""Language reader: the protocol of a language pack, and the values that it returns.

    text ──plain──▶ mentions ──▶ namings (roles, aliases, the speaker's own name), relations
              ├───▶ dates
              └───▶ claims

One pack per language implements `LanguageReader`; so far `worlddb.language.english` is the only
one. All positions are offsets into the original text.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import date
from typing import NamedTuple, Protocol

SPEAKER = "speaker"
LISTENER = "listener"


class Mention(NamedTuple):
    """A name from `start` to `end` of a text; `person` if it is a person's or a pet's.

    If it is not `sure`, it counts only if the same name is certain elsewhere in the draft.
    """

    start: int
    end: int
    text: str
    sure: bool
    person: bool


class Role(NamedTuple):
    """The `role` of a mention for its owner; `start` to `end` is the evidence.

    `owner` is the speaker, the listener, or the number of another mention. `phrase` can be an alias
    after the owner ("older sister"); empty if it cannot.
    """

    mention: int
    owner: str | int
    role: str
    phrase: str
    start: int
    end: int


class Same(NamedTuple):
    """Two mentions that the text identifies; `alias` is the name that the second adds."""

    first: int
    second: int
    alias: str


class Alias(NamedTuple):
    """An alias of a mention that is not a mention itself: the initials of a long name."""

    mention: int
    alias: str
    start: int
    end: int


class Self(NamedTuple):
    """The speaker's own name."""

    mention: int


Naming = Role | Same | Alias | Self


class StatedRelation(NamedTuple):
    """An edge of a type between two mentions; `start` to `end` is the evidence."""

    type: str
    source: Mention
    target: Mention
    start: int
    end: int


class Dated(NamedTuple):
    """A date from `start` to `end` of a text: its name, its first and its last day."""

    start: int
    end: int
    name: str
    first: date
    last: date


class StatedClaim(NamedTuple):
    """A claim about the speaker or a mention (by number), and its position in the text.

    `was` is a value that no longer holds. A claim that `yields` can be replaced and replaces
    nothing. `vague` if a place may be a district or a country.
    """

    owner: str | int
    relation: str
    value: str
    was: str
    start: int
    end: int
    since: date | None
    yields: bool = False
    vague: bool = False


class LanguageReader(Protocol):
    """Reads texts of one language with rules, without a model."""

    titles: Set[str]
    """Words before a person's name ("Dr"), in lower case and without a full stop."""

    def is_ordinary(self, word: str) -> bool:
        """Return whether a word, in lower case, is ordinary, so not a name by itself."""

    def reads(self, text: str) -> bool:
        """Return whether a text is in this language, with enough certainty."""

    def plain(self, text: str, *, note: bool = False) -> str:
        """Return a text of the same length with code, addresses and headings masked.

        In a `note`, a single text of the user, "the user" becomes "I".
        """

    def mentions(self, text: str, plain: str, speakers: Set[str]) -> list[Mention]:
        """Return the names in a text, in order; `speakers` are known names in lower case."""

    def namings(self, plain: str, mentions: Sequence[Mention], speakers: Set[str]) -> list[Naming]:
        """Return the roles, aliases and identities that a text gives its mentions."""

    def relations(self, text: str, plain: str, mentions: Sequence[Mention]) -> list[StatedRelation]:
        """Return the relations that a text states for certain; an end need not be a mention."""

    def dates(self, plain: str, said: date) -> list[Dated]:
        """Return the unambiguous dates of a text, relative to the day it was said."""

    def claims(
        self,
        text: str,
        plain: str,
        mentions: Sequence[Mention],
        dates: Sequence[Dated],
        *,
        note: bool = False,
    ) -> list[StatedClaim]:
        """Return the certain claims of a text; in a note the subject may be missing."""
