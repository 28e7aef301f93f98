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
# Owned up to in a sentence of its own, also later: it may be about all that was said.
_JOKE = re.compile(
    rf"{_LEAD}(?:(?:i(?:['’]?m| am| was)\s+)?(?:just|only|totally|obviously|completely)?\s*"
    r"(?:kidding|joking)|jks?|j/k|april\s+fools?(?:['’]s?)?|psych(?:e)?|gotcha|sike"
    r"|(?:that|this|it|all\s+of\s+(?:that|this))(?:['’]?s|\s+is|\s+was|\s+were)\s+"
    r"(?:all\s+)?(?:just\s+|only\s+)?"
    r"(?:a\s+(?:joke|lie|dream|test|prank)|an\s+example|fake|made[ -]up|fiction))\b",
    re.IGNORECASE,
)
_WORLD = (
    r"(?:books?|dreams?|fantasy|film|game|head|imagination|movie|novel|play|simulat(?:ion|or)|sims"
    r"|story)"
)
_SLIP = re.compile(
    rf"{_LEAD}(?:(?:just\s+)?not\s*(?:really|yet|true|actually|quite|exactly|any\s?more|[.!,]|\Z)"
    r"|i\s+(?:meant|mean(?!\s+it\b)|lied)\b|(?:i\s+(?:wish|think|guess|hope)|maybe|probably|hopefully|allegedly|apparently"
    r"|supposedly)(?:\s+(?:so|not))?\s*(?:[.!,…]|\Z)|scratch\s+that|strike\s+that|my\s+(?:mistake|bad)"
    r"|correction\b|as\s+if\b|in\s+(?:my\s+dreams)"
    rf"|in\s+(?:the|my|a|this|our)\s+(?:[\w-]+\s+)?{_WORLD}\b"
    r"|or\s+(?:at\s+least|so|was|maybe|not|rather)|at\s+least\b|on\s+paper\b"
    r"|(?:that|this|it)(?:['’]?s|\s+is|\s+was)\s+(?:not\b|wrong\b|what\s|how\s|the\s+(?:old|wrong)\b"
    r"|(?!it|that|what|let|here|there)\w+['’]s\s*(?:[.!…]|\Z))"
    r"|(?:only|just)\s+(?:till|until|for)\b|until\b|till\b|for\s+(?:now|the\s+time\s+being|a\s+(?:bit|while))\b"
    r"|temporarily\b"
    r"|sorry,?\s+(?:i\b|no\b|wrong|that|it|meant)|wrong\b)",
    re.IGNORECASE,
)
# "No, wait", "no it's still Tom": more than the answer to a question.
_NO = re.compile(
    r"(?:a*h+a+(?:h+a+)*h?[\s,.!]*|lo+l[\s,.!]*|oh[\s,.!]*)?"
    r"(?:wait|hang on|hold on|sorry|no+)[\s,.!…—–-]+(?:no+|wait|it|it['’]?s|that['’]?s|i)\b",
    re.IGNORECASE,
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
        first = False
    return False
