"""Withdrawn: whether what a sentence claims is taken back by what follows it.

    I live in Rome now. Just kidding!            a joke, wherever it is owned up to
    My number is 555-0199. Wait no, that's Tom's.  a slip, if the very next words say so
    I'm now a nurse. In the game, I mean.        another world

One sentence looks certain alone. Who reads on knows better; in doubt nothing was claimed.
"""

from __future__ import annotations

import re

_ENDS = re.compile(r"[.!?…]+[\"”’')\]]*(?=\s|\Z)|\n+")
_LEAD = (
    r"(?:(?:a*h+a+(?:h+a+)*h?|lo+l|lmao|rofl|heh|hmm+|nah|oh|ok|okay|well|oops|ugh|wait|hang on"
    r"|hold on|and|but|yeah|yes|no|nope|obviously|obvs)\b[\s,.!…—–-]*){0,4}"
)
_STOP = r"(?=\s*(?:[.!,;…]|\Z))"
# Owned up to in a sentence of its own, also later: it may be about all that was said.
_JOKE = re.compile(
    rf"{_LEAD}(?:(?:i(?:['’]?m| am| was)\s+)?(?:just|only|totally|obviously|completely)?\s*"
    r"(?:(?:kidding|joking)|(?<=just\s)(?:messing|teasing|testing))"
    r"|i(?:['’]?m| am| was)\s+(?:just\s+)?(?:bluffing|lying(?!\s+(?:on|in|down|here)\b))|i\s+lied"
    rf"|jokes?{_STOP}|jks?|j/k|april\s+fools?(?:['’]s?)?|psych(?:e)?|gotcha{_STOP}|sike"
    r"|fooled\s+(?:you|ya)|you\s+(?:really\s+)?believed\s+(?:that|it|me)"
    r"|(?:that|this|it|all\s+of\s+(?:that|this))(?:['’]?s|\s+is|\s+was|\s+were)\s+"
    r"(?:all\s+)?(?:just\s+|only\s+)?"
    r"(?:a\s+(?:joke|lie|dream|test|prank)|an\s+example|fake|made[ -]up|fiction))\b",
    re.IGNORECASE,
)
_WORLD = (
    r"(?:books?|dreams?|fantasy|film|game|head|imagination|movie|novel|play|simulat(?:ion|or)|sims"
    r"|story)"
)
_SAY = (
    r"(?:say|says|said|write|writes|wrote|typed|put|tell|tells|told|claims?|claimed|thinks?|thought"
    r"|hear|heard|calls?|believes?)"
)
_SLIP = re.compile(
    rf"{_LEAD}(?:(?:just\s+)?not(?:\s+(?:really|yet|true|actually|quite|exactly|any\s?more)){{0,2}}"
    rf"(?:\s+(?:anyway|though|at\s+least|lol|haha))?{_STOP}"
    # "I mean, what a city!" takes nothing back.
    r"|i\s+(?:meant|lied)\b"
    r"|i\s+mean\b(?!,?\s+(?:it|it['’]?s|what|how|who|why|wow|finally|i['’]?m|i\s+(?:love|like))\b)"
    r"|(?:i\s+(?:wish|think|guess|hope)|maybe|probably|hopefully|allegedly|apparently|supposedly)"
    r"(?:\s+(?:so|not))?\s*(?:[.!…]|\Z|,\s*(?:maybe|not|or|anyway|at\s+least|who)\b)"
    r"|scratch\s+that|strike\s+that|my\s+(?:mistake|bad)"
    r"|correction\b|as\s+if\b|in\s+(?:my\s+dreams)"
    rf"|in\s+(?:the|my|a|this|our)\s+(?:[\w-]+\s+)?{_WORLD}(?:{_STOP}|\s+(?:i|that|at|though|of)\b)"
    r"|or\s+(?:at\s+least|so|was|maybe|not|rather)|on\s+paper\b"
    r"|at\s+least\s+(?:on|in|for|not|so|until|till|according|officially|that['’]?s|i\s+(?:think|hope"
    r"|wish|guess|will|want|plan|would))\b"
    r"|(?:that|this|it)(?:['’]?s|\s+is|\s+was)\s+(?:wrong\b|the\s+(?:old|wrong)\b"
    rf"|not(?:\s+(?:true|right|real|correct|so|me|mine|my|official|final|yet|actually|really|quite"
    rf"|certain|decided|permanent|serious)\b|{_STOP})"
    rf"|(?:what|how)\s[^.!?\n]*\b(?:{_SAY}\b|in\s+(?:the|my|a)\s+{_WORLD}\b)"
    r"|(?!it|that|what|let|here|there)\w+['’]s\s*(?:[.!…]|\Z))"
    r"|(?:only|just)\s+(?:till|until|for)\b"
    r"|(?:until|till)\b(?!\s+(?:next\s+time|then|later|soon|we\s+meet)\b)"
    r"|for\s+(?:now|the\s+time\s+being|a\s+(?:bit|while))(?:\s*[.!…]|\s*\Z|,?\s+(?:at\s+least|anyway"
    r"|that)\b)|temporarily\b"
    r"|sorry,?\s+(?:no\b|not\b|wrong|meant|(?:that|it)(?:['’]?s|\s+is|\s+was)\b|i(?:['’]?m|\s+am|\s+was)"
    r"\s+(?:wrong|confus)|i\s+(?:mean|got|made|mis|typed|confused|mixed)|\w+\s*[.!])"
    rf"|wrong(?:{_STOP}|\s+(?:number|person|one|name|city|again)\b))"
    r"|(?:a*h+a+(?:h+a+)*h?|lo+l|lmao|nah|nope|yeah)[\s,.!]+(?:no+|nope|nah|right|sure)\s*(?:[.!…]|\Z)",
    re.IGNORECASE,
)
# "No, wait", "no it's still Tom": more than the answer to a question, or than a call that comes in.
_NO = re.compile(
    r"(?:a*h+a+(?:h+a+)*h?[\s,.!]*|lo+l[\s,.!]*|oh[\s,.!]*)?"
    r"(?:wait|hang on|hold on|sorry|no+)[\s,.!…—–-]+"
    r"(?:no+\b|wait\b|(?:it|that)(?:['’]?s|\s+is|\s+was)\b"
    r"|i(?:['’]?m|\s+am)\s+(?:not|still|lying)\b|i\s+(?:mean|meant|lied|still|wish|live|work|was|got"
    r"|never|only|misspoke|typed|mixed|(?:did|have)(?:n['’]?t|\s+not))\b"
    rf"|i\s+(?:don['’]?t|do\s+not)(?:{_STOP}|\s+(?:really|actually|live|work|have)\b))",
    re.IGNORECASE,
)
# "It's not Tom", where Tom is what was claimed; "It's not Rome" is said of Oslo, too.
_NOT_NAMED = re.compile(
    r"(?i:(?:that|this|it)(?:['’]?s|\s+is|\s+was)\s+not|(?:it|that)\s+isn['’]?t)\s+([A-Z]\w+)"
)


def is_withdrawn(text: str, at: int) -> bool:
    """Return whether what is claimed up to `at` is taken back: by the next words, or as a joke."""
    first = True
    for end in _ENDS.finditer(text, at):
        start = end.end()
        while start < len(text) and text[start].isspace():
            start += 1
        if _JOKE.match(text, start) is not None:
            return True
        if first and (_SLIP.match(text, start) or _NO.match(text, start)):
            return True
        denied = _NOT_NAMED.match(text, start) if first else None
        if denied is not None and denied[1] in text[: end.start()]:
            return True
        first = False
    return False
