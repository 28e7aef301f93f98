"""Vocabulary: the small words in names that mean something of their own.

Titles, legal forms and generations stand around a name; marks are words that must not differ.
"""

from __future__ import annotations


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_MEN = _set("mr mister sir lord uncle grandpa herr monsieur senor")
_WOMEN = _set("mrs ms miss madam dame lady aunt auntie aunty grandma frau senora")
_ANYBODY = _set(
    """
    dr doctor prof professor rev reverend captain capt colonel col general gen major lt lieutenant
    sgt sergeant president senator governor judge justice coach chef hon mx
    """
)
# Title → the gender it tells, if it tells one.
TITLES = dict.fromkeys(_MEN, "m") | dict.fromkeys(_WOMEN, "f") | dict.fromkeys(_ANYBODY, "")
# Titles that are hardly ever a part of the name itself, as in General Motors or Captain America.
PLAIN_TITLES = frozenset({"mr", "mrs", "ms", "mx", "dr", "prof"})
SAME_TITLE = {
    "mister": "mr", "doctor": "dr", "professor": "prof", "reverend": "rev", "captain": "capt",
    "colonel": "col", "general": "gen", "lieutenant": "lt", "sergeant": "sgt", "aunty": "aunt",
    "auntie": "aunt",
}  # fmt: skip

# Given names that are also words, places or products: alone, they may be nobody's.
ALSO_WORDS = _set(
    """
    alexa amber angel april art august aurora austin basil bill brooke carol carolina cat chad
    charity charlotte chase chelsea claude clay cliff coral crystal daisy dakota dale dawn dean
    dick dot earl eden em eve faith fern flora florence frank georgia glen grace grant guy
    hazel heath heather herb holly hope hunter iris ivy jack jackson jade jan jasmine jasper
    jean jesus jordan joy jun june kent kit lily lincoln madison marina mark max mercedes miles
    myrtle olive opal orlando oscar paige paris pearl penny piper ray regina rich robin rocky
    roman rose rosemary ruby rusty santiago savannah sly sol sterling summer sydney tabby
    tiffany troy victoria violet virginia warren will win zara zelda
    """
)

LEGAL_FORMS = _set(
    """
    inc incorporated corp corporation co company ltd limited llc llp plc gmbh ag sa srl bv nv oy
    oyj pty
    """
)

GENERATIONS = {
    "jr": "jr", "jnr": "jr", "junior": "jr", "sr": "sr", "snr": "sr", "senior": "sr",
}  # fmt: skip
# Numerals that are nothing else however they are written; others count in capitals only.
ROMAN = _set("ii iii iv vii viii ix xii xiii xiv xv xvi xvii xviii xix")

# Written short: before other words, after them, anywhere.
SHORT_BEFORE = {"st": "saint", "ste": "saint", "mt": "mount", "ft": "fort"}
SHORT_AFTER = {"st": "street", "ave": "avenue", "rd": "road", "dr": "drive", "blvd": "boulevard"}
SHORT = {
    "univ": "university", "dept": "department", "intl": "international", "govt": "government",
    "natl": "national", "assoc": "association", "bros": "brothers",
}  # fmt: skip

OWNERS = _set("my our your his her their its")
ARTICLES = frozenset({"the", "a", "an"})
JOINERS = frozenset({"and", "und", "et"})
# With these inside, the order of the words is part of the name: University of Washington.
ORDERING = _set("of for in at on to with from by vs versus not or")

# A name with one of these and a name without it, or with another, are two names.
MARKS = _set(
    """
    north south east west northern southern eastern western northeast northwest southeast
    southwest upper lower left right inner outer new old young big little great small pro anti
    non pre post ex former late vice deputy assistant acting interim step half foster male female
    men women mens womens boys girls boy girl husband wife mother father mom dad mum son daughter
    brother sister uncle aunt mini micro max plus ultra lite air se xl beta alpha gamma delta
    nano turbo premium basic advanced indoor outdoor internal external public private import
    export buy sell spring summer autumn fall winter morning evening night monday tuesday
    wednesday thursday friday saturday sunday january february march april june july august
    september october november december one two three four five six seven eight nine ten eleven
    twelve first second third fourth fifth sixth seventh eighth ninth tenth no not never without
    un
    """
)

NEGATING = ("un", "non", "anti", "dis", "in", "im", "il", "ir", "a", "de", "counter", "ex")
OPPOSED = (
    ("hyper", "hypo"), ("inter", "intra"), ("micro", "macro"), ("pre", "post"), ("over", "under"),
    ("im", "ex"), ("in", "ex"), ("in", "out"), ("in", "de"), ("homo", "hetero"), ("maxi", "mini"),
    ("pro", "anti"), ("up", "down"), ("endo", "exo"), ("mono", "poly"),
)  # fmt: skip

# Written small inside a longer name, they make it a sentence.
VERBS = _set(
    """
    am is are was were be been has have had do does did will would can could should must said
    says told asked went goes likes liked loves loved wants wanted needs needed feels felt thinks
    thought made makes took takes got gets moved bought lives lived works worked
    """
)
SPEAKERS = _set("i we he she they you it i'm i've we're he's she's they're it's")

# Cyrillic and Greek as they are commonly written in Latin letters.
ROMANIZED = str.maketrans(
    {
        "а": "a", "б": "b", "в": "v", "г": "g", "ґ": "g", "д": "d", "е": "e", "ё": "yo", "є": "ye",
        "ж": "zh", "з": "z", "и": "i", "і": "i", "ї": "yi", "й": "y", "к": "k", "л": "l", "м": "m",
        "н": "n", "о": "o", "п": "p", "р": "r", "с": "s", "т": "t", "у": "u", "ў": "u", "ф": "f",
        "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ъ": "", "ы": "y", "ь": "",
        "э": "e", "ю": "yu", "я": "ya", "ј": "j", "љ": "lj", "њ": "nj", "ћ": "c", "ђ": "dj",
        "џ": "dz",
        "α": "a", "β": "v", "γ": "g", "δ": "d", "ε": "e", "ζ": "z", "η": "i", "θ": "th", "ι": "i",
        "κ": "k", "λ": "l", "μ": "m", "ν": "n", "ξ": "x", "ο": "o", "π": "p", "ρ": "r", "σ": "s",
        "ς": "s", "τ": "t", "υ": "y", "φ": "f", "χ": "ch", "ψ": "ps", "ω": "o",
    }
)  # fmt: skip
