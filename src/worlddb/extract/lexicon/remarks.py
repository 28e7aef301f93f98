"""Remarks: how a statement ends or goes on in a chat without saying anything else of what it says.

    I moved to Oslo, sharing a flat with Jess.    what one does there
    My new manager is Ines, seems nice            how it is
    I moved to Oslo :)                            a mark

Only what surely leaves the statement as it is: no "starting", no "technically", no wink.
"""

from __future__ import annotations

_FELT = """
amazing awesome brilliant chill chuffed excited exhausted fantastic glad good great happy kind
knackered lovely nervous nice proud relieved star sweet thrilled tired wonderful
"""
_MUCH = r"(?:(?:so|really|very|super|pretty|absolutely|totally|a|quite)\s+)*"
_HOW = _MUCH + "(?:" + "|".join(_FELT.split()) + ")"
_THEY = r"(?:he|she|they|it|[Ii]|we)(?:['’]?(?:s|m|re)|\s+(?:is|am|are|seems?|looks?))"
HARMLESS = (
    rf"(?:(?:{_THEY}|seems|looks|feeling)\s+)?{_HOW}(?:,?\s+(?:but|and)\s+{_HOW})*"
    r"|(?:sharing|renting)\s+(?:a|an|the|my|our)\s+(?:\w+\s+)?(?:flat|house|room|place|apartment|studio)"
    r"(?:\s+(?:with|on|off|near|by)(?:\s+[\w'’-]+){1,4})?"
)
"""What may follow a claim up to the end of its sentence, and surely says nothing against it."""

# What goes on like this says the contrary, somebody else's words, or that it did not last.
_SAID = (
    r"(?:add|announc|answer|boast|claim|explain|insist|jok|li|repli|scream|shout|text|typ|whisper"
    r"|yell)ed|wrote|writes|read|reads|swore"
)
_UNREAL = (
    r"lie|lies|liar|lying|fake|joke|script|novel|example|demo|placeholder|alias|cover\s+story"
    r"|no\s+way|no\s+longer|line\s+from|disbelief"
)
_BESIDES = (
    r"side\s+(?:gig|job|hustle|project)|(?:second|weekend|evening|summer|holiday)\s+job|just\s+weekends"
    r"|stand-in|substitute|deputi[sz]ing|[Aa]irbnb|abroad|lasted"
)
_NOT_BEGUN = (
    r"(?:n['’]t|\s+not|never)\s+(?:\w+ly\s+)?(?:start|begin|begun|began|take|taken|took|exist|decid"
    r"|confirm|manag|mean|be\b|sign)\w*|\b(?:he|she|they)['’]?ll\s+(?:start|begin|join|take|be)\b"
)
UNDOING = (
    rf"[,;—–-]\s+(?:(?:he|she|they|[Ii]|we|[A-Z]\w+)\s+(?:{_SAID})\b"
    rf"|(?:that|this|it|there)(?:['’]?s|\s+is|\s+was)\b.*\b(?:{_UNREAL})\b"
    rf"|(?:feel|great|good|best|very|really|much|looking|just|so|totally)\w*\b.*\b(?:{_UNREAL})\b"
    r"|(?:it\s+|so\s+(?:it\s+)?)?(?:seems|looks|sounds|appears)(?:\s+(?:like|so|that\s+way))?"
    r"(?:\s+it)?(?:\s+anyway)?\s*[.!…]*\s*\Z"
    r"|(?:very|really|pretty|so)\s+funny|just\s+for\s+(?:show|fun)|just\s+(?:testing|checking)"
    r"|getting\s+(?:ready|set|prepared|coffee)|\w+\s+hour\s+only|[Ii]['’]?m\s+lying"
    r"|[Ii]\s+(?:hated|left)\b)"
    rf"|\bso\s+to\s+speak\b|\b(?:{_BESIDES})\b|{_NOT_BEGUN}"
    r"|\b(?:[Ii]['’]?m|[Ii]\s+am|(?:came|went|moved|flew|got|now)(?:\s+right)?)\s+(?:already\s+)?"
    r"(?:back|home)\b|\breturned\b|\b(?:any\s?more|any\s+longer)\b"
    r"|\bfor\s+(?:four|five|six|seven|eight|nine|ten|some|(?:a\s+)?few|several)\s+(?:days|weeks|months)\b"
    r"|\b(?:this|next)\s+(?:semester|term)\b"
)

_SMILE = r"[:=]['’]?-?[()D/]+(?!\w)|<3+|x{1,3}(?!\w)|\^\^"
# Pictures, but for those that laugh, wink, doubt, forbid, hope or play: there it may be no claim.
_PICTURE = (
    "(?![\u274c\u274e\u2753\u2754\u2716\u26d4\U0001f3ad\U0001f3ae\U0001f4ad\U0001f638\U0001f639"
    "\U0001f63c\U0001f645\U0001f6ab\U0001f914\U0001f91e\U0001f921\U0001f925\U0001f937\U0001f978"
    "\U0001f9e2])"
    "[\u2600-\u27bf\U0001f300-\U0001f601\U0001f603-\U0001f604\U0001f60a-\U0001f60e"
    "\U0001f610-\U0001f618\U0001f61e-\U0001f642\U0001f644-\U0001f922\U0001f924-\U0001f929"
    "\U0001f92b-\U0001faff\ufe0f\u200d]"
)
MARKS = f"{_SMILE}|{_PICTURE}"
