"""Forms: how a claim can be put, as patterns that begin after "I", "my" or a name.

Each ends where the value begins, unless the value is in it as a group.
"""

from __future__ import annotations

import re

from worlddb.extract.lexicon import relations as known
from worlddb.extract.lexicon import usual
from worlddb.language.dates import MONTHS


def form(pattern: str) -> re.Pattern[str]:
    """Return a pattern that does not mind the case of its words."""
    return re.compile(pattern, re.IGNORECASE)


# Who writes in haste leaves the apostrophe out: "im", "ive", "dont".
_AM = r"(?:\s+(?:am|is|are)|['’](?:m|s|re)|(?<=\b[iI])m(?=\s))"
_HAVE = r"(?:\s+(?:have|has)|['’](?:ve|s)|(?<=\b[iI])ve(?=\s))"
_HAD = rf"(?:{_HAVE})?"
_DONT = r"\s+(?:do|does)(?:\s+not|n['’]?t)"
_NOW = r"(?:\s+(?:now|currently|still|actually|officially|finally|just|recently))*"

HINT = form(
    r"\b(?:liv|based|relocat|mov|work|employ|start|join|job|promot|becam|turned|old\b|now\b|longer"
    r"|favou?rite|is\b|i?am\b|im\b|chang|updat|quit|left|resign|eat|drink|smok|vap|prefer)"
    r"|['’][sm]\b"
)
"""A quick look: no claim is without one of these."""
PASTED = form(
    r"\b(?:translate|proofread|rewrite|reword|rephrase|paraphrase|summari[sz]e|correct|edit|improve"
    r"|shorten|polish|check|review|fix|analy[sz]e)\b[^\n.!?]{0,120}:"
)
"""What follows was given to be worked on; who speaks in it is not known."""
WHO = form(r"(?:I|we)(?=[\s'’])|I(?=(?:m|ve)\s)")
WHOSE = form(r"(?:my|our)\s+")
BARE = form(
    r"\s*(?:(?:now|currently|recently|just)\s+)*(?:turned(?=\s\d)|(?:started|began)\s+(?:working(?!\s+with\b)|(?:a|my)\s+new"
    r"\s+job)|lives|moved|relocated|works|prefers|no\s+longer\s+(?:lives"
    r"|works)|has\s+(?:just\s+|recently\s+)?(?:moved|relocated)|is\s+(?:now|currently|based))\s"
)
"""How a note begins that leaves out whom it is about."""
USER_SUBJECT = form(
    r"(?:(?<=^)|(?<=[.!?:]\s)|(?<=[,;]\sand\s)|(?<=[,;]\sbut\s)|(?<=\n)|(?<=-\s))"
    r"(?:the\s+)?user(?=\s)"
)
USER_POSSESSIVE = form(
    r"(?<!\w)the\s+user['’]s(?=\s)|(?:(?<=^)|(?<=[.!?:-]\s)|(?<=\n))user['’]s(?=\s)"
)
POSSESSED = re.compile(r"['’]s?\s+")
ANY_MORE = form(r",?\s+any\s?(?:more|longer)\b")
AND = form(r",?\s+(?:and|but)(?:\s+(?P<who>I|we)(?=[\s'’]))?(?=[\s'’])")
"""How a sentence goes on about the same subject, which may be said again."""
AND_WORKS = form(
    r"\s+and\s+works?\s+(?:from\s+home|(?:at|as|for|in)(?:\s+[\w'’-]+){1,3})\s*[.!]*\s*\Z"
)
"""How one goes on about a work of which no more is known: "and work at a bakery"."""
COMMA = form(r"\s*[,;—–-]\s+")
GONE = form(
    r"\s+(?:(?:has\s+)?(?:left|quit|retired|resigned|moved\s+on)|(?:got|was)\s+(?:promoted|fired|sacked)"
    r"|(?:is|went)\s+on\s+(?:mat|maternity|paternity|parental)\s+leave)"
    r"(?=\s*(?:[.!,;]|\Z)|\s+(?:last|in|because|the\s+company|us)\s)"
)
"""How somebody is gone whose place another has taken."""
FROM = form(r"\s+from\s+")
TO = form(r"\s+to\s+(?=\S)")

NOT_THAT = form(r"(?:\s+now)?,?\s+(?:and\s+|but\s+)?not\s+(?:(?:in|at|for)\s+)?(?=\S)")
"""How what is not so follows what is: "I live in Dublin, not Rome"."""

# -- what somebody does ----------------------------------------------------------------------------

LIVES = form(rf"{_NOW}\s+lives?\s+in\s+|{_AM}{_NOW}\s+(?:living|based|located)\s+in\s+")
LIVED = form(rf"{_HAVE}{_NOW}\s+(?:lived|been\s+(?:living|based))\s+in\s+")
MOVED = form(
    rf"{_HAD}{_NOW}\s+(?:moved|(?P<surely>relocated))(?:\s+(?:back|over))?(?=\s+(?:from|to)\s)"
)
_NEW_JOB = r"(?:a\s+(?:new\s+)?|my\s+new\s+)(?:job|position|role)"
WORKS = form(
    rf"{_NOW}\s+works?\s+(?:at|for)\s+"
    rf"|{_AM}\s+(?:now|currently)\s+(?:working|employed)\s+(?:at|for|by)\s+"
    rf"|{_HAD}{_NOW}\s+(?:started|began)\s+(?:working|{_NEW_JOB})\s+(?:at|with|for)\s+"
)
WORKED = form(rf"{_HAVE}{_NOW}\s+(?:worked|been\s+working)\s+(?:at|for)\s+")
JOINED = form(rf"{_HAD}{_NOW}\s+(?:joined|started\s+at)\s+")
SWITCHED = form(
    rf"{_HAD}{_NOW}\s+(?:switched|changed)\s+(?:jobs?|companies|employers?)(?=\s+from\s)"
)
LEFT = form(
    r"\s+no\s+longer\s+(?:(?P<home1>lives?\s+in)|works?\s+(?:at|for))\s+"
    rf"|{_AM}\s+no\s+longer\s+(?:(?P<home2>(?:living|based)\s+in)|(?:working|employed)\s+(?:at|for|by))\s+"
    rf"|(?P<not>{_DONT})\s+(?:(?P<home3>live\s+in)|work\s+(?:at|for))\s+"
    rf"|{_HAD}{_NOW}\s+(?:quit|left|resigned\s+from)\s+(?:my|her|his|their)\s+(?:job|position|role)"
    r"\s+(?:at|with)\s+"
)
LEFT_TOWN = form(rf"{_HAD}{_NOW}\s+left\s+")
QUIT = form(rf"{_HAD}{_NOW}\s+(?:quit|resigned\s+from|(?P<left>left))\s+")
AND_JOINED = form(
    r",?\s+(?:(?:and|then|and\s+then)\s+)?(?:joined|to\s+join|started\s+(?:working\s+)?at|(?P<for>for))\s+"
)
JOINED_FOR_ELSE = frozenset(known.JOINED_FOR_ELSE.split())
_HEADS = "|".join(sorted((word.replace("-", " ") for word in known.OCCUPATIONS), key=len)[::-1])
WORK = (
    rf"(?:(?:an?|the|our)\s+)?(?P<work>(?:[a-z][\w-]*\s+){{0,3}}?(?:{_HEADS}))"
    r"(?![\w-]|\s+of\b|['’])"
)
IS_NOW_WORK = form(
    rf"(?:{_AM}\s+now\s+|{_NOW}\s+works?\s+as\s+|{_AM}\s+(?:now|currently)\s+(?:working|employed)\s+as\s+"
    rf"|{_HAD}{_NOW}\s+started\s+(?:working\s+|a\s+new\s+job\s+)?as\s+"
    rf"|{_HAD}{_NOW}(?:\s+(?:got|was|been|were))?{_NOW}\s+promoted\s+to\s+){WORK}"
)
IS_WORK = form(rf"{_AM}\s+(?=an?\s){WORK}")
IS_WORK_NOW = form(rf"{_AM}\s+{WORK}\s+now\b")
AS_WORK = form(rf"\s+as\s+{WORK}")
A_WORK = form(WORK)
WORK_AT = form(r"\s+(?:at|for|with)\s+")
AGED = form(
    rf"{_AM}(?:\s+now)?\s+(?P<age>\d{{1,3}})(?:\s+(?:years?|yrs?)\s+old|(?=\s+now\b))"
    rf"|{_HAD}{_NOW}\s+turned\s+(?P<turned>\d{{1,3}})(?![\w:/.%-]*\w)"
)
CHANGED = form(rf"{_HAD}{_NOW}\s+(?:changed|updated)\s+(?:my|our|her|his|their)\s+")

# -- what is usual ---------------------------------------------------------------------------------

_EATS = "|".join(f"{verb}s?" for verb in usual.DOING)
_EATING = "|".join(usual.DOING.values())
HABIT = form(
    rf"(?:(?P<ends>\s+no\s+longer)\s+|(?P<not>{_DONT})\s+|(?:\s+still)?\s+)"
    rf"(?P<verb>{_EATS})(?![\w'’-])"
)
GAVE_UP = form(
    rf"(?P<ends>{_HAD}{_NOW}\s+(?:quit|stopped|gave\s+up|given\s+up))\s+(?P<verb>{_EATING})(?![\w'’-])"
)
PREFERS = form(
    r"(?:(?P<gone>\s+no\s+longer)|(?P<now>\s+now))?\s+prefers?\s+(?:the\s+|an?\s+)?"
    rf"(?P<how>{'|'.join(usual.HOW)})\s+(?:(?:and\s+)?(?:detailed|thorough|precise|simple|clear)\s+)?(?P<what>{'|'.join(usual.WHAT)})(?![\w-])"
)
NOW = form(r",?\s+now\b")
_TIME = r"(?:\d{1,2}(?:[:.]\d{2})?\s?(?:am|pm|a\.m\.|p\.m\.)|\d{1,2}:\d{2}|noon)(?!\w)"
MEETING = form(
    r"(?P<what>(?:(?:daily|weekly|team)\s+)?(?:stand-?up|retro|sync|all-hands)|(?:team|weekly)\s+meeting)"
    r"(?:\s+is\s+at|(?P<now>\s+(?:is\s+now|now\s+is)\s+at|(?:\s+(?:has|was|got))?(?:\s+been)?\s+moved\s+to))"
    rf"\s+(?P<time>{_TIME})"
)

# -- what somebody has -----------------------------------------------------------------------------

_OWN = (
    (known.NUMBERS, "number"),
    (known.MAILS, "mail"),
    (known.PLACES_OF, "place"),
    (known.DAYS, "day"),
    (known.TOKENS, "token"),
    (known.NAMES, "name"),
    (known.TITLES, "title"),
    (tuple(sorted(known.ONE_PERSON)), "person"),
)
KINDS = {word: kind for words, kind in _OWN for word in words}
_THINGS = "|".join(re.escape(word) for word in sorted(KINDS, key=len, reverse=True))
THING = form(rf"(?:(?:new|current|updated)\s+)?(?P<thing>{_THINGS})(?![\w-])")
IS = form(
    r"(?P<there>\s+there)?(?:(?:,?\s+right)?\s+now|\s+these\s+days|\s+at\s+the\s+moment|\s+of\s+all\s+time)?"
    r"(?:\s+(?:is|has\s+become)(?:\s+(?:now|currently|still|actually))*|['’]s(?:\s+now)?):?\s+"
)
HOME_NOW = form(r"home\s+(?:is\s+now|now\s+is)\s+in\s+")
NAME_OF = form(r"['’]s\s+(?:first\s+|full\s+)?name(?![\w-])")
"""How the name of somebody is told who is one's only one: "my wife's name"."""
HAS_CHANGED = form(r"\s+(?:has\s+|was\s+|got\s+)?(?:just\s+)?(?:been\s+)?changed(?=\s)")
NAMED_KINDS = frozenset(word.replace("-", " ") for word in known.FAVOURITES_NAMED.split())
PLAIN_KINDS = frozenset(word.replace("-", " ") for word in known.FAVOURITES.split())
_FAVOURITES = "|".join(sorted(NAMED_KINDS | PLAIN_KINDS, key=len, reverse=True))
FAVOURITE = form(
    rf"(?:new\s+|current\s+)?(?:all-time\s+)?favou?rite\s+(?P<kind>{_FAVOURITES})(?![\w-])"
)
MY_ROLE = form(
    rf"(?:\s+is|['’]s)(?P<gone>\s+no\s+longer)?(?:\s+now)?\s+(?:my|our)\s+(?:(?:new|current)\s+)?"
    rf"(?P<role>{'|'.join(sorted(known.ONE_PERSON, key=len, reverse=True))})(?![\w-])"
)

# -- values ----------------------------------------------------------------------------------------

_SHORT_MONTHS = (
    "jan",
    "feb",
    "mar",
    "apr",
    "jun",
    "jul",
    "aug",
    "sept",
    "sep",
    "oct",
    "nov",
    "dec",
)
_MONTH = "|".join((*MONTHS, *_SHORT_MONTHS))
VALUES = {
    "number": re.compile(r"\+?\(?\d[\d\s().-]{4,20}\d(?![\w-])"),
    "mail": re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"),
    "place": re.compile(
        r"\d{1,5}[a-z]?\s+[A-Z][\w'’-]*(?:,?\s(?:[A-Z][\w'’-]*|\d{2,6}|of|the)){0,8}(?![\w-])"
    ),
    "day": form(
        rf"(?:on\s+)?((?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{_MONTH})\b(?:,?\s+\d{{4}})?"
        rf"|(?:{_MONTH})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}})?|\d{{4}}-\d{{2}}-\d{{2}})"
    ),
    "token": re.compile(r"[\"“'‘]?([\w#@$%&*+^~/.-]*[\w#@$%&*+^~/!])[\"”'’]?(?=[\s.!,]|\Z)"),
}
PLAIN_VALUE = re.compile(
    r"(?:the\s+|a\s+|an\s+)?([a-z][\w'’-]*(?:\s+[a-z][\w'’-]*){0,2}?|\d{1,6})(?=[.!,;]|\s+(?:now|and|but"
    r"|because|so|these|right)\b|\s*\Z)"
)
