"""Relations: what somebody has one of at a time, and the words that say so or put it in doubt."""

from __future__ import annotations

from worlddb.extract.lexicon.roles import PERSONS

# People of whom one has one, and says who it is: "my manager is Priya".
ONE_PERSON = PERSONS & {
    *("accountant", "boss", "boyfriend", "dentist", "doctor", "fiance", "fiancee", "fiancé"),
    *(
        "fiancée",
        "gf",
        "girlfriend",
        "gp",
        "hairdresser",
        "hubby",
        "husband",
        "bf",
        "landlady",
        "landlord",
    ),
    *("manager", "partner", "physician", "spouse", "supervisor", "therapist", "vet", "wife"),
}

# Who may be a firm as well: a name that is not known as a person's is not taken for one here.
PERHAPS_A_FIRM = frozenset(
    (
        "accountant",
        "partner",
        "landlord",
        "landlady",
        "vet",
        "dentist",
        "doctor",
        "gp",
        "hairdresser",
        "therapist",
    )
)
# What is said of people after "is", and no name, although a capital makes it look like one.
_HOW_ONE_IS = """
aboard abroad absent adhd agile alive alone amish anglican annoyed aussie autistic awake aware away
awol berliner bilingual bipolar bisexual blind blonde brit brunette cancer capricorn celiac coeliac
colorblind commuting conservative coptic creole cruel cute dane deaf demanding diabetic divorced
dominican drunk dyslexic emo engaged epileptic extrovert feminist femme finn fired flaky flemish
furious gay gemini genius gluten goofy goth grumpy gypsy hasidic hindi hispanic hot hungover
introvert inuit keto kind kiwi kosher labour lactose latin lazy left-handed lesbian liberal
libertarian londoner manic mean meh moody nordic olympian pagan parisian pescatarian petite picky
pole pregnant promoted queer rude scot shy sick single slav smart socialist strict stubborn swede
tall tba tbd texan thai toxic trans transgender turk unavailable unwell vegan vegetarian wfh wiccan
widowed yankee yorker
"""
HOW_ONE_IS = frozenset(_HOW_ONE_IS.split())
HOW_ONE_IS_ENDINGS = ("ese", "ish", "ist", "ian", "ean", "ing", "ful", "less", "ous", "ive", "ic")

# What is one's own, by the kind of value it has.
NUMBERS = (
    *("phone number", "telephone number", "cell number", "cell phone number", "mobile number"),
    *("mobile phone number", "cellphone number", "phone", "telephone", "cell phone", "mobile"),
    *("cell", "number"),
    *("work number", "home number", "office number"),
)
MAILS = ("email address", "e-mail address", "email", "e-mail", "work email", "personal email")
PLACES_OF = ("home address", "mailing address", "shipping address", "work address", "address")
DAYS = ("birthday", "date of birth", "wedding anniversary", "anniversary")
TOKENS = (
    *("wifi password", "wi-fi password", "password", "pin code", "pin", "username", "user name"),
    *("zip code", "postal code", "postcode", "license plate", "licence plate", "shoe size"),
    *("blood type", "locker number", "room number", "seat number", "customer number"),
)
NAMES = ("name", "first name", "last name", "surname", "full name", "legal name", "employer")
TITLES = ("job title", "title", "position", "role", "job", "occupation", "profession")

THINGS = frozenset((*NUMBERS, *MAILS, *PLACES_OF, *DAYS, *TOKENS, *NAMES, *TITLES))

# Spellings that mean the same relation.
SAME_RELATION = {
    **dict.fromkeys(NUMBERS[:-3], "phone number"),
    **dict.fromkeys(MAILS[:4], "email"),
    **dict.fromkeys(TITLES, "job title"),
    **dict.fromkeys(("home address",), "address"),
    **dict.fromkeys(("fiancé", "fiance", "fiancée", "fiancee"), "fiancé"),
    **dict.fromkeys(("gp", "physician"), "doctor"),
    **dict.fromkeys(("gf",), "girlfriend"),
    **dict.fromkeys(("bf",), "boyfriend"),
    **dict.fromkeys(("hubby",), "husband"),
    **dict.fromkeys(("wi-fi password",), "wifi password"),
    **dict.fromkeys(("pin code",), "pin"),
    **dict.fromkeys(("user name",), "username"),
    **dict.fromkeys(("postal code", "postcode"), "zip code"),
    **dict.fromkeys(("licence plate",), "license plate"),
    **dict.fromkeys(("surname",), "last name"),
    **dict.fromkeys(("date of birth",), "birthday"),
    **dict.fromkeys(("wedding anniversary",), "anniversary"),
    "employer": "works at",
}

# Favourites that have a name, and those that are plain things.
FAVOURITES_NAMED = """
actor actress album anime artist author band bar basketball-team book brand cafe cartoon city club
coffee-shop comedian composer country director film football-team game movie musician novel painter
player podcast poet programming-language pub restaurant series show singer soccer-team song team
town tv-series tv-show video-game board-game writer youtuber
"""
FAVOURITES = """
animal beverage breakfast cake cheese cocktail color colour cuisine dessert dish drink flavor
flavour flower food fruit genre holiday ice-cream-flavor ice-cream-flavour instrument meal number
pizza-topping season snack sport subject tea vegetable workout
"""

# What work people do, by the last word of it.
_OCCUPATIONS = """
accountant actor actress administrator advisor analyst architect artist assistant associate attorney
auditor baker banker barista bartender biologist bookkeeper broker builder bus-driver carpenter
cashier ceo cfo chef chemist chiropractor cleaner clerk coach consultant contractor controller cook
coordinator copywriter counselor counsellor courier cto curator dancer dentist designer developer
dietitian director doctor driver ecologist economist editor electrician engineer estimator executive
farmer firefighter florist foreman gardener geologist guide hairdresser illustrator inspector
instructor interpreter investigator janitor journalist judge lawyer lecturer librarian lifeguard
machinist manager mechanic midwife musician nanny nurse nutritionist officer operator optician
optometrist paralegal paramedic pharmacist photographer physician physicist physiotherapist pilot
plumber policeman policewoman postman principal producer professor programmer psychiatrist
psychologist realtor receptionist recruiter reporter researcher salesman saleswoman scientist
secretary soldier specialist statistician strategist superintendent supervisor surgeon surveyor
teacher technician therapist tester trader trainer translator tutor underwriter vet veterinarian
waiter waitress welder writer
"""
OCCUPATIONS = frozenset(_OCCUPATIONS.split())
# With these before it, it is not the one thing somebody does.
OCCUPATION_NOT = frozenset(
    (
        *("amateur", "aspiring", "certified", "ex", "fellow", "former", "freelance", "future"),
        *("good", "great", "licensed", "natural", "occasional", "part-time", "qualified"),
        *("adjunct", "guest", "honorary", "seasonal", "substitute", "visiting"),
        *("retired", "trained", "trainee", "volunteer", "wannabe", "would-be", "weekend", "bad"),
    )
)

# What people join who do not work there.
JOINED_FOR_ELSE = """
bluesky bumble club clubhouse discord facebook fitness gym hinge instagram league linkedin mastodon
meetup party pinterest reddit signal slack snapchat society substack team telegram threads tiktok
tinder tumblr twitch twitter union whatsapp x yoga youtube
"""

# What one may be beside another work: "I'm an artist" does not end when one is "now a teacher".
OCCUPATION_BESIDE = frozenset(
    (
        *("actor", "actress", "artist", "baker", "builder", "cleaner", "coach", "contractor"),
        *("consultant", "cook", "copywriter", "dancer", "director", "doctor", "driver", "editor"),
        *("farmer", "gardener", "guide", "illustrator", "investigator", "judge", "musician"),
        *("nanny", "operator", "photographer", "programmer", "researcher", "scientist", "soldier"),
        *("specialist", "tester", "trader", "trainer", "translator", "tutor", "vet", "writer"),
    )
)

# Predicates that tell how something is, not what it is: "my favorite restaurant is closed".
_NO_VALUE = """
about above again all always amazing any anything at available awesome back bad beautiful because
best better big bigger boring broken by called cheap cheaper clear closed cold cool currently dead
definitely delicious different difficult done down dying easy either empty every everything
expensive fast fine for free from fresh full fun gone good great half happy hard healthy her here
him his hot how if important impossible in into like lost lovely mine missing more most much my near
nearly new nice no none nothing of off ok okay old on one open or our out over perfect playing
pretty probably quite rare ready really rotten sad safe she sick similar simple small so some
something special spicy still such sweet tasty terrible than that the their them there these they
this those to today tonight too tough under unique up used usually very we weird what whatever when
where which who why with without won wonderful worse yours you your whoever wherever
"""
NO_VALUE = frozenset(_NO_VALUE.split())
# Things that end like them.
VALUES_ALIKE = frozenset(
    (
        *("dressing", "dumpling", "herring", "king", "pudding", "red", "seed", "spring"),
        *("starling", "stuffing", "vegetable"),
    )
)
NO_VALUE_ENDINGS = ("ous", "ful", "able", "ible", "less", "ed", "ing", "ier", "iest")

# A sentence with one of these is not, or not surely, about what is so now. In lower case.
_DOUBTS = """
acting allegedly almost also another apparently applied apply asked assume assuming before believe
both character claimed claims could dream dreamed dreams dreamt during either except fiction
formerly gather gonna guess half hear heard hope hopefully hoping if imagine imagined interim
interview interviewed jk joke joked joking kidding later lol lyrics may maybe might must nearly
never next not occasionally offer offered once or other part-time perhaps plan planned planning
plans possibly pretend pretended pretending previously probably reckon reckons remotely role-play
roleplay roleplaying rumor rumour said say says second should simulation sometimes soon suppose
supposed supposedly swears tell tells temp temporarily temporary than then think thinking thinks
thought till told tomorrow too trial tried try trying unless until usually visit visiting want
wanted wants was wasn't were weren't when whenever whether while will wish wished wishes won't would
wouldn't
"""
DOUBTS = frozenset(_DOUBTS.split())
DOUBTFUL_PHRASES = (
    r"(?:filling|fills|standing|stands) in|cover(?:s|ing) for"
    r"|about to|as a (?:child|kid|student|teen|teenager)|as well|at the time|for now|going to"
    r"|in between|in the (?:book|film|game|movie|novel|play|show|story)"
    r"|in (?:the )?(?:spring|summer|winter|fall)|need to|on paper|on weekends"
    r"|part of|some days|used to|back then|those days|(?:is|was|were|are|s|m|re) (?:all )?like"
    r"|for (?:a|an|one|the|this|two|three|\d+)(?: \w+)? (?:bit|day|days|month|months|night|season"
    r"|semester|summer|term|trip|week|weekend|weeks|while|winter|year|years)"
)


def relation_of(words: str) -> str:
    """Return the one name of a relation that has several."""
    said = " ".join(words.lower().split())
    return SAME_RELATION.get(said, said)


def favourite_of(kind: str) -> str:
    """Return the relation of somebody to their favourite of a kind."""
    plain = " ".join(kind.lower().split())
    return f"favorite {plain}".replace("colour", "color").replace("flavour", "flavor")
