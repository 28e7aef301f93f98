"""English reader: the way into the English pack."""

from __future__ import annotations

from collections.abc import Set

from worlddb.language.english.claim_reader import claims_in
from worlddb.language.english.claim_values import asked_claims
from worlddb.language.english.english_names import mentions_in
from worlddb.language.english.name_roles import namings_in, relations_in
from worlddb.language.english.prose import (
    TITLES,
    dates_of,
    looks_ordinary,
    plain_prose,
    reads_as_english,
)


class EnglishReader:
    """Reads English texts: a `LanguageReader`, which says what each of these does."""

    titles: Set[str] = TITLES
    is_ordinary = staticmethod(looks_ordinary)
    reads = staticmethod(reads_as_english)
    plain = staticmethod(plain_prose)
    mentions = staticmethod(mentions_in)
    namings = staticmethod(namings_in)
    dates = staticmethod(dates_of)
    relations = staticmethod(relations_in)
    claims = staticmethod(claims_in)
    asked_claims = staticmethod(asked_claims)
