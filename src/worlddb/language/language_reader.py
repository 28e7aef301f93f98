"""Language reader: what the extractor asks of a language, and the values it gets back.

    text ──plain──▶ mentions ──▶ namings (roles, aliases, the speaker's own name), relations
              ├───▶ dates
              └───▶ claims

One pack per language implements `LanguageReader`; `worlddb.language.english` is the one there is.
All positions are offsets into the text as it was said.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import date
from typing import NamedTuple, Protocol

SPEAKER = "speaker"
LISTENER = "listener"


class Mention(NamedTuple):
    """A name from `start` to `end` of a text; `person` if a person's or a pet's.

    One that is not `sure` counts only if the same name is certain elsewhere in the draft.
    """

    start: int
    end: int
    text: str
    sure: bool
    person: bool


class Role(NamedTuple):
    """The mention with this number is somebody's `role`; `start` to `end` says so.

    `owner` is the speaker, the listener, or the number of another mention. `phrase` is what may
    serve as an alias after the owner ("older sister"); empty if nothing may.
    """

    mention: int
    owner: str | int
    role: str
    phrase: str
    start: int
    end: int


class Same(NamedTuple):
    """Two mentions that the text says are one; `alias` is what the second adds."""

    first: int
    second: int
    alias: str


class Alias(NamedTuple):
    """Another name of a mention that is no mention itself: the initials of a long name."""

    mention: int
    alias: str
    start: int
    end: int


class Self(NamedTuple):
    """The speaker says that this mention is their own name."""

    mention: int


Naming = Role | Same | Alias | Self


class StatedRelation(NamedTuple):
    """An edge of a type between two mentions; `start` to `end` states it."""

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
    """A claim of the speaker or of a mention (by number), and where the text states it.

    `was` is a value that no longer holds. A claim that `yields` can be replaced and replaces
    nothing. `vague`: a place of which it is not known whether it is a district or a country.
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


class AskedClaim(NamedTuple):
    """Whose claim a question asks for (empty: the asker's), and of which relations."""

    owner: str
    relations: tuple[str, ...]


class LanguageReader(Protocol):
    """Reads texts of one language by rule, without a model."""

    titles: Set[str]
    """Words that stand before a person's name ("Dr"), in lower case and without a full stop."""

    def is_ordinary(self, word: str) -> bool:
        """Return whether a word, in lower case, is an ordinary one and no name by itself."""

    def reads(self, text: str) -> bool:
        """Return whether a text is surely enough in this language."""

    def plain(self, text: str, *, note: bool = False) -> str:
        """Return a text of the same length with code, addresses and headings blotted out.

        In a `note`, a single text of the user, "the user" becomes "I".
        """

    def mentions(self, text: str, plain: str, speakers: Set[str]) -> list[Mention]:
        """Return the names in a text, in order; `speakers` are known names in lower case."""

    def namings(self, plain: str, mentions: Sequence[Mention], speakers: Set[str]) -> list[Naming]:
        """Return what a text says of its mentions: who they are, what else they are called."""

    def relations(self, text: str, plain: str, mentions: Sequence[Mention]) -> list[StatedRelation]:
        """Return what a text surely says of how things hang together; they need be no mentions."""

    def dates(self, plain: str, said: date) -> list[Dated]:
        """Return the dates that a text surely means, seen from the day it was said."""

    def claims(
        self,
        text: str,
        plain: str,
        mentions: Sequence[Mention],
        dates: Sequence[Dated],
        *,
        note: bool = False,
    ) -> list[StatedClaim]:
        """Return the claims that a text surely makes; in a note the subject may be left out."""

    def asked_claims(self, question: str) -> list[AskedClaim]:
        """Return which functional claims a question asks for; none for most questions."""
