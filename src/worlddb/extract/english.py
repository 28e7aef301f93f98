"""English: whether the rules may read a text at all.

They know English words only; in another language a capital letter or a word such as "die" means
something else. When in doubt the text is foreign, and stays verbatim.
"""

from __future__ import annotations

import re

from worlddb.extract.lexicon.ordinary import ORDINARY

# None of these is a common word of another language that is written with the same letters.
_ENGLISH = """
about after and any are as at be been before but by called can could did didn't does don't for from
got had has have he her his how i i'll i'm i've if is it it's its just let's likes lives loves met
moved my new not of on or our really said she should some than thanks that that's the their them
then there they this to today tomorrow very we went were what when where which who why with works
would yesterday you your
"""
# No particles of names: "van", "de" and "la" are said in English too.
_FOREIGN = """
aber ale alla anche att au auch auf aus aux av avec bei bir bu ce cette che com como con dans das
dass dat della dem der des det dla een ein eine einen ela ele elle em en er es est está et foi für
gli haben het ich ihr ik ikke il inte ist için jag jak je jeg jest jij las le les lo los ma maar
mais mein meine meu mia mijn minha mio mit mon muito muy más na naar nach nel nicht nie niet non
nos nous não och oder og ook os para pas per pero più por pour på que questo ses sich sie się som
sono su sur til uma una und une uno ve você voor vous w wie wij wir wurde yo z zijn zu às är że
"""
ENGLISH = frozenset(_ENGLISH.split())
FOREIGN = frozenset(_FOREIGN.split())
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# Las Vegas is not Spanish, Aix-en-Provence not French.
_OF_NAMES = re.compile(r"(?<=[a-z] )(?:Las|Los|Le|El|Des)\s+(?=[A-Z])|-[a-z]+(?=-[A-Z])")
_LATIN_MAX = 0x250
_READ_MAX = 4_000
_SHORT = 10


def reads_as_english(text: str) -> bool:
    """Return whether `text` is in English, surely enough for rules that know nothing else."""
    read = _OF_NAMES.sub("", text[:_READ_MAX])
    words = _WORD.findall(read.replace("’", "'").lower())
    if not words:
        return False
    if not text.isascii():
        strange = sum(ord(word[0]) >= _LATIN_MAX for word in words)
        if strange * 4 > len(words):
            return False
    english = sum(word in ENGLISH for word in words)
    foreign = sum(word in FOREIGN for word in words)
    if foreign >= max(english, 1):
        return False
    if len(words) < _SHORT and not english:
        return sum(word in ORDINARY for word in words) * 3 >= len(words)
    return english * 10 >= len(words)
