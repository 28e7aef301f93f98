"""Having: what somebody is said to have, of which one has one: a phone number, a manager."""

from __future__ import annotations

import re
from collections.abc import Iterator

from worlddb.claims.claim import LIVES_IN
from worlddb.extract import forms
from worlddb.extract.clause import Clause, Found, Place
from worlddb.extract.lexicon.relations import favourite_of, relation_of
from worlddb.extract.values import Named, is_known_person, is_place

_NEW = re.compile(r"\b(?:new|now)\b", re.IGNORECASE)


class Having(Clause):
    """Reads what follows "my" or "Sarah's"."""

    def _having(self, place: Place) -> Iterator[Found]:
        favourite = self._match(forms.FAVOURITE, place)
        if favourite is not None:
            yield from self._favourite(place, favourite)
            return
        home = self._match(forms.HOME_NOW, place)
        town = self._home(place, home.end()) if home is not None else None
        if town is not None:
            if is_place(town.text):  # A home may also be in escrow.
                yield from self._ended(place, town.end, LIVES_IN, town.text)
            return
        thing = self._match(forms.THING, place)
        mine = forms.WHOSE.match(self.text, place.begin) is not None
        # Who says "my name is" may have several; a note about the user tells the one.
        if thing is None or (mine and relation_of(thing["thing"]) in ("name", "first name")):
            return
        changed = forms.HAS_CHANGED.match(self.plain, thing.end(), place.sentence.end)
        if changed is not None:
            yield from self._altered(place, thing, changed.end())
            return
        joined = forms.IS.match(self.plain, self._name_of(thing), place.sentence.end)
        value = self.values.of_thing(thing, joined.end()) if joined is not None else None
        if value is not None:
            at, was = self._instead(place, value[0], lambda at: self._thing(thing, at))
            is_named = bool(was) or self._name_of(thing) != thing.end()
            for found in self._ended(place, at, relation_of(thing["thing"]), value[1], was):
                # "My wife is Igbo": of a word that nobody knows, more has to be said.
                unsure = not is_named and self._is_unknown(thing, value[1], found)
                # "My manager there is Ruth": at one place of perhaps several.
                unsure = unsure or bool(joined and joined["there"])
                yield found._replace(yields=unsure) if unsure else found

    def _is_unknown(self, thing: re.Match[str], name: str, found: Found) -> bool:
        """Return whether nothing but its capital says that a word is the name of somebody new."""
        if forms.KINDS[thing["thing"].lower()] != "person" or is_known_person(name):
            return False
        return _NEW.search(self.plain, found.start, found.end) is None

    def _name_of(self, thing: re.Match[str]) -> int:
        """Return where "wife's name" ends, or what else one has."""
        named = forms.NAME_OF.match(self.plain, thing.end())
        person = forms.KINDS[thing["thing"].lower()] == "person"
        return named.end() if named is not None and person else thing.end()

    def _thing(self, thing: re.Match[str], at: int) -> Named | None:
        value = self.values.of_thing(thing, at)
        return None if value is None else Named(value[1], at, value[0], False)

    def _altered(self, place: Place, thing: re.Match[str], at: int) -> Iterator[Found]:
        """Read the values after "I changed my email" or "my email has changed"."""
        was = ""
        start = forms.FROM.match(self.plain, at, place.sentence.end)
        if start is not None:
            first = self.values.of_thing(thing, start.end())
            if first is None:
                return
            at, was = first
        towards = forms.TO.match(self.plain, at, place.sentence.end)
        value = self.values.of_thing(thing, towards.end()) if towards is not None else None
        if value is not None:
            yield from self._ended(place, value[0], relation_of(thing["thing"]), value[1], was)

    def _favourite(self, place: Place, match: re.Match[str]) -> Iterator[Found]:
        joined = forms.IS.match(self.plain, match.end(), place.sentence.end)
        if joined is None:
            return
        kind, relation = " ".join(match["kind"].lower().split()), favourite_of(match["kind"])
        at, end = joined.end(), place.sentence.end
        read = (self.values.named(at), self.values.title(at), self.values.plain(kind, at, end))
        for named in read:
            if named and (found := list(self._ended(place, named.end, relation, named.text))):
                yield from found
                return
