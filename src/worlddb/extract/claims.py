"""Claims: which sentences say, without any doubt, what somebody has one of at a time.

    I moved to Oslo last week.        the speaker   lives in       Oslo     since 2023-04-30
    Sarah now works at Kolibri.       Sarah         works at       Kolibri
    My favourite colour is green.     the speaker   favorite color green
    I no longer work at Tern.         the speaker   works at       no longer Tern

C1  A claim is a whole sentence or clause that fits one of a few forms from its first word on:
    what is asked, supposed, planned, quoted, told by another, or was so once, fits none; nor does
    what follows "Translate this:" or "Proofread my letter:".
C2  What one can have several of is never a claim: places visited, friends, languages, likes.
C3  Two claims of one message that exclude each other are none; what it says to be over by its end
    is over, and no more.
C4  What is taken back in the same message ("Just kidding!") was never claimed.
"""

from __future__ import annotations

from collections.abc import Sequence

from worlddb.claims.claim import agree, value_key
from worlddb.extract import forms
from worlddb.extract.clause import Found
from worlddb.extract.clauses import Clauses
from worlddb.extract.dates import Dated
from worlddb.extract.mask import BLOT
from worlddb.extract.mentions import Mention
from worlddb.extract.statements import sentences_in
from worlddb.extract.withdrawn import is_withdrawn


def claims_in(
    text: str,
    plain: str,
    mentions: Sequence[Mention],
    dates: Sequence[Dated],
    *,
    note: bool = False,
) -> list[Found]:
    """Return the claims of a text, in order; `plain` is the text with what is no prose masked.

    In a `note` about the speaker the subject may be left out: "Lives in Oslo".
    """
    if (pasted := forms.PASTED.search(plain)) is not None:
        plain = plain[: pasted.end()] + BLOT * (len(plain) - pasted.end())
    if forms.HINT.search(plain) is None:
        return []
    found = list(dict.fromkeys(Clauses(text, plain, mentions, dates).found()))
    if note and forms.BARE.match(plain) is not None:
        found += _without_subject(text, plain, mentions, dates)
    meant = [one for one in found if not is_withdrawn(text, max(one.end - 1, 0))]
    return [one for one in meant if not any(_clash(one, other) for other in found)]


def _without_subject(
    text: str, plain: str, mentions: Sequence[Mention], dates: Sequence[Dated]
) -> list[Found]:
    """Return what a text claims that is one statement and begins with its verb."""
    subject = "i " if plain.lstrip()[:1].islower() else "I "
    size = len(subject)
    moved = [each._replace(start=each.start + size, end=each.end + size) for each in mentions]
    days = [each._replace(start=each.start + size, end=each.end + size) for each in dates]
    found = list(Clauses(subject + text, subject + plain, moved, days).found())
    end = len(plain.rstrip()) + size
    whole = found and (found[0].start, found[-1].end) == (0, end)
    single = len(list(sentences_in(subject + plain, moved))) == 1
    # "Moved to Falcon" is about anything.
    if not whole or not single or any(one.vague for one in found):
        return []
    return [one._replace(start=max(one.start - size, 0), end=one.end - size) for one in found]


def _clash(one: Found, other: Found) -> bool:
    if (one.owner, one.relation) != (other.owner, other.relation) or one.yields < other.yields:
        return False
    if one.value and other.value:
        return not agree(one.value, other.value)
    if one.value:
        return value_key(one.value) == value_key(other.was)
    # "I moved to Oslo but no longer live in Oslo": the last word is that it is over.
    return other.start >= one.start and value_key(one.was) == value_key(other.value)
