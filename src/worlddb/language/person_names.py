"""Vocabulary: the small words in names that mean something of their own.

Titles, legal forms and generations stand around a name; marks are words that must not differ.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from worlddb.language.known_names import is_given
from worlddb.language.text_tokens import folded
from worlddb.language.word_forms import fold

TEXT_MAX = 400  # Of a longer text only the beginning is read: a longer text is no name.


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


# Names: one name read into its parts.
#
# "Dr. Smith, John Jr." ──▶ words john smith · title dr · generation jr
#
# Case, accents, script (Cyrillic and Greek), punctuation and the order around a comma are folded
# away. Numbers are set apart from words, because they must agree where words may differ a little.


_CACHE_MAX = 1 << 15
_L = "[^\\x00-@\\[-`{-\\x7f]"
_TOKEN = re.compile(
    rf"v?\d+(?:[.,:/]\d+)*(?:[a-z]{{1,2}})?(?!{_L}|\d)|\d+|{_L}+(?:'{_L}+)*'?[+#]*|[,@&]"
)
_NUMERAL = re.compile(r"(?=[IVXL])(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_INITIAL = re.compile(r"(?<!\w)\w\.\s*\w")
# A full stop after a short word may be that of an abbreviation: St. Mary's, Prof. Chen.
_SENTENCE_END = re.compile(r"\w{5}\.\s+\S|[!?](?:\s|$)|\n")


@dataclass(frozen=True, slots=True)
class Name:
    """The parts of a name. `words` are without titles, legal forms, generations and articles."""

    text: str
    key: str
    words: tuple[str, ...]
    numbers: tuple[str, ...]
    titles: frozenset[str]
    gender: str
    legal: str
    generation: str
    ordinal: str
    owner: str
    possessed: frozenset[str]
    ordered: bool
    sentence_words: int
    speaks: bool
    person: bool


@lru_cache(maxsize=_CACHE_MAX)
def read_name(text: str) -> Name:
    """Return the parts of a name."""
    plain = fold(text[:TEXT_MAX])
    if not plain.isascii():
        plain = plain.translate(ROMANIZED)
    tokens = _TOKEN.findall(plain)
    tokens = _turned(tokens) if "," in tokens else tokens
    tokens = [token for token in tokens if token not in ("&", "@", ",")]
    numbers: list[str] = []
    words: list[str] = []
    possessed: set[str] = set()
    for token in tokens:
        if token[0].isdigit() or (token[0] == "v" and token[1:2].isdigit()):
            numbers.append(token.removeprefix("v").replace(",", ""))
            continue
        if "'" in token:
            owned = token.endswith(("'s", "'"))
            token = token.replace("'", "")
            if owned:
                possessed.add(token)
        if token:
            words.append(token)
    return _assembled(text, words, tuple(sorted(numbers)), frozenset(possessed))


def _turned(tokens: list[str]) -> list[str]:
    """Return the tokens in speaking order if there is one comma, as in "Smith, John"."""
    at = tokens.index(",")
    before, after = tokens[:at], tokens[at + 1 :]
    around = {*LEGAL_FORMS, *GENERATIONS, *ROMAN}
    if "," in after or not before or not after or not around.isdisjoint(after):
        return tokens
    return [*after, *before]


def _assembled(
    text: str, words: list[str], numbers: tuple[str, ...], possessed: frozenset[str]
) -> Name:
    count = len(words) + len(numbers)
    rest, owner = _after_articles(words, dotted=text[1:2] == ".")
    rest, titles = _after_titles(rest)
    rest, generation, ordinal, legal = _before_suffixes(rest, text)
    rest = _in_full([word for word in rest if word not in JOINERS] or rest)
    genders = {TITLES[title] for title in titles} - {""}
    ends = (rest[0], rest[-1]) if rest else ()
    return Name(
        text=text,
        key=folded(text[:TEXT_MAX]),
        words=tuple(rest),
        numbers=numbers,
        titles=frozenset(SAME_TITLE.get(title, title) for title in titles),
        gender=genders.pop() if len(genders) == 1 else "",
        legal=legal,
        generation=generation,
        ordinal=ordinal,
        owner=owner,
        possessed=possessed,
        ordered=not ORDERING.isdisjoint(rest),
        sentence_words=count,
        speaks=_is_spoken(text, words),
        person=bool(titles) or any(map(is_given, ends)) or _has_initial(text, rest),
    )


def _has_initial(text: str, words: list[str]) -> bool:
    """Tell whether a letter with a full stop stands before other words, as in Lyndon B. Johnson."""
    return len(words) > 1 and _INITIAL.search(text) is not None


def _after_articles(words: list[str], *, dotted: bool) -> tuple[list[str], str]:
    owner = ""
    if len(words) > 1 and words[0] in OWNERS:
        owner = words[0]
        words = words[1:]
    elif len(words) > 1 and words[0] in ARTICLES and not dotted:
        words = words[1:]
    return words, owner


def _after_titles(words: list[str]) -> tuple[list[str], list[str]]:
    titles: list[str] = []
    while len(words) > 1 and words[0] in TITLES:
        titles.append(words[0])
        words = words[1:]
    return words, titles


def _before_suffixes(words: list[str], text: str) -> tuple[list[str], str, str, str]:
    """Return the words without generation, ordinal and legal form at the end, and these."""
    generation = ordinal = legal = ""
    for count in (3, 2):
        spelled = words[-count:]
        if len(words) > count and "".join(spelled) in LEGAL_FORMS and max(map(len, spelled)) == 1:
            words = [*words[:-count], "".join(spelled)]
    while len(words) > 1 and words[-1] in LEGAL_FORMS:
        legal = words[-1]
        words = words[:-1]
    if len(words) > 1 and words[-1] in GENERATIONS:
        generation = GENERATIONS[words[-1]]
        words = words[:-1]
    elif len(words) > 1 and (words[-1] in ROMAN or _is_numeral(text.split()[-1], text)):
        ordinal = words[-1]
        words = words[:-1]
    return words, generation, ordinal, legal


def _is_numeral(last: str, text: str) -> bool:
    return not text.isupper() and _NUMERAL.fullmatch(last) is not None


def _in_full(words: list[str]) -> list[str]:
    """Return the words with what is commonly written short in full: St. Paul, Main St."""
    last = len(words) - 1
    if last < 1:
        return words
    found = [SHORT.get(word, SHORT_BEFORE.get(word, word)) for word in words[:-1]]
    return [*found, SHORT.get(words[last], SHORT_AFTER.get(words[last], words[last]))]


def _is_spoken(text: str, words: list[str]) -> bool:
    """Tell whether a text of several words reads like something said."""
    if len(words) >= 3 and words[0] in SPEAKERS:
        return True
    if len(words) < 4:
        return False
    if len(words) >= 5 and _SENTENCE_END.search(text):
        return True
    return not VERBS.isdisjoint(text.split()[1:])
