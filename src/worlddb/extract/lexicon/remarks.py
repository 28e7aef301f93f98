"""Remarks: how a statement ends or goes on in a chat without saying anything else of what it says.

    I moved to Oslo, sharing a flat with Jess.    what one does there
    My new manager is Ines, seems nice            how it is
    I moved to Oslo :)                            a mark

Only words that leave the statement as it is: no "starting", no "technically", no wink.
"""

from __future__ import annotations

_DOING = """
building designing doing earning enjoying feeling finally getting leading living looking loving
managing renting reporting running sharing studying teaching working writing
"""
_FELT = """
absolutely amazing awesome best brilliant exciting excited exhausted feels glad good great happy
hired joined just knackered looks lovely love loads lots much nice pretty promoted proud really
seems so sounds started super thrilled tired totally very
"""
DOING = "(?:" + "|".join(_DOING.split()) + ")"
FELT = "(?:" + "|".join(_FELT.split()) + ")"

_SMILE = r"[:=]['’]?-?[()D/]+(?!\w)|<3+|x{1,3}(?!\w)|\^\^"
# Pictures, but for those that laugh, wink or stick out their tongue: there it may be a joke.
_PICTURE = (
    "[\u2600-\u27bf\U0001f300-\U0001f601\U0001f603-\U0001f604\U0001f60a-\U0001f60e"
    "\U0001f610-\U0001f618\U0001f61e-\U0001f642\U0001f644-\U0001f922\U0001f924-\U0001f929"
    "\U0001f92b-\U0001faff\ufe0f\u200d]"
)
MARKS = f"{_SMILE}|{_PICTURE}"
