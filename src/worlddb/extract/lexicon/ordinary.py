"""Ordinary words: capitalised for their place or for emphasis, and no names for all that.

`STARTERS` open sentences and say nothing of what follows ("Thanks Sarah", "Did Sarah"): a name
may begin right after one. `ORDINARY` holds them and the nouns, verbs and adjectives that people
capitalise. `NEVER` are words with a capital of their own that name no person, place, organisation,
product or pet: days, languages, feasts, what we call our parents.
"""

from __future__ import annotations

import re

from worlddb.extract.lexicon.vocabulary import VOCABULARY

_STARTERS = """
a about above absolutely according accordingly across actually add additionally admittedly afaik
after afterwards again agreed ah aha ahh ain't alas all almost along already alright also although
altogether always am amazing among an and another any anybody anyhow anyone anything anytime anyway
anyways apart apologies apparently are aren't around as aside ask at aw away awesome aww awww back
basically bc be because been before behind being believe below beside besides best better between
beyond both brilliant btw but by bye came can can't cannot cause certainly check cheers clearly
come coming congrats congratulations consequently considering continue cool could couldn't curious
currently cuz damn dang dear definitely depending despite did didn't do does doesn't doing don't
done dont down due during each earlier eh either else em enjoy enough er especially essentially
even eventually ever every everybody everyone everything evidently exactly excellent except excited
excuse explain fair fantastic far fascinating fellow few fewer finally find fine first firstly
following for forget fortunately frankly from fun funny further furthermore fyi gee geez generally
get getting give given glad go going good goodbye goodness goodnight gosh got gotcha gotta grab
gratefully great greetings guess ha had haha hahaha happy hardly has hasn't have haven't having he
he'd he'll he's heard heck hello help hence her here here's hers herself hey hi him himself his
hiya hmm hmmm honestly hooray hope hopefully how how'd how's however huge huh hurray i i'd i'll i'm
i've if imagine imo in inc incidentally incredible indeed initially inside instead interesting into
is isn't it it'd it'll it's its itself just keep kind kinda knowing kudos last lastly lately later
least leave less let let's lets like likely likewise listen literally little living lmao lol long
look looking lots love lovely loving lucky made mainly make making many maybe me mean meaning
meanwhile mhm might mind mine mm more moreover most mostly much must my myself nah naturally near
nearly need needless neither never nevertheless next nice no nobody none nonetheless noone nope nor
normally not note nothing now nowadays obviously of off often oh ohh oi ok okay omg on once one
ones only onto ooh oooh oops open opposite or ordinarily originally other others otherwise ouch our
ours ourselves out outside over overall particularly past pay per perfect perhaps personally phew
pick pity please plenty plus poor possibly presumably pretty previously probably proud provided put
question quick quickly quite rather read real really recall recently regarding regardless regards
remember remind right rofl roughly sad sadly said same save saw say says second secondly see seeing
seems seen seriously several shall share she she'd she'll she's should shouldn't show similarly
simply since so some somebody someday somehow someone something sometimes somewhat somewhere soon
sorry sort sounds speaking specifically start started still stop strangely such suddenly super
supposedly sure surely surprisingly sweet take taking talk talking tbh tell thank thankfully thanks
that that'd that'll that's the their theirs them themselves then there there'll there're there's
thereby therefore these they they'd they'll they're they've thing things think this tho those
though thought thoughts thrilled through throughout thru thus til till to today together told
tomorrow tonight too took totally toward towards tried true truly try trying turns two typically
ugh uh uhh ultimately um umm under undoubtedly unfortunately unless unlike until up upon us use
used using usually very via visit visited visiting wahoo wait waiting want wanted was wasn't
watching way we we'd we'll we're we've welcome well went were weren't what what'd what'll what're
what's what've whatever when when's whenever where where's whereas wherever whether which whichever
while who who'd who'll who's whoa whoever whole whom whose why why's will wish with within without
woah won't wonder wonderful wondering woohoo word worked working would wouldn't wow write y'all ya
yay ye yea yeah yep yes yesterday yet yikes yo you you'd you'll you're you've your yours yourself
yum yup
"""

# In lower case also where every word of a heading or a title has a capital.
_SMALL = """
a an and as at by de for from in is it la of on or the to vs with
"""

_NEVER = """
advent allah apr april aquarius aries aug august aunt auntie bible bluetooth bro buddha capricorn
chanukah christ christmas covid dad daddy dec december diwali earth easter eid epiphany father feb
february fri friday fridays god gramps gran granddad grandfather grandma grandmother grandpa granny
halloween hanukkah heaven hell holi i internet jan january jesus jul july jun june juneteenth
jupiter koran kwanzaa lent libra lord ma mama mar march mars may mom mommy mon monday mondays
mother mum mummy nana neptune nov november nye oct october ok okay oktoberfest papa passover
pentecost pisces pluto purim quran ramadan sagittarius sat satan saturday saturdays saturn scorpio
sep sept september sis sunday sundays taurus thanksgiving thu thur thurs thursday thursdays torah
tue tues tuesday tuesdays uncle uranus valentine valentine's valentines venus virgo wed wednesday
wednesdays wi-fi wifi xmas
"""

# Capital letters alone do not make a name: these are none.
_INITIALISMS = """
ACT AD ADD ADHD AFK AI AIDS AKA AM AOC API AR ASAP ASMR ATM AUD B2B B2C BA BBQ BC BCE BFF BIPOC BLT
BLUETOOTH BMI BRB BS BSC BST BTS CAD CD CE CEO CET CFO CM CMO COO COVID COVID-19 CPU CRM CSS CST
CSV CT CTO CV DIY DJ DLC DM DNA DVD EDT EQ ERP EST ETA ETC ETF EUR FAQ FLU FOMO FPS FYI GB GBP GDP
GED GG GHZ GMAT GMT GPA GPS GPU GRE HBD HDD HDMI HIV HOA HP HR HTML HTTP HTTPS HVAC ID IDK IMHO IMO
INR IPO IQ IRA IRL IT JD JPY JSON KB KG KHZ KM KPI LB LBS LCD LED LGBT LGBTQ LGBTQ+ LGBTQIA LMAO
LOL LSAT MA MB MBA MBPS MC MD MHZ ML MM MMO MPH MRI MS MSC MST MVP NGO NLP NP NPC NSFW OCD OK OKAY
OMG OOTD PC PDF PDT PHD PIN PLS PLZ PM POC POV PR PS PSA PST PTSD QA RAM RIP RN RNA ROI RPG RPM
RSVP RV SAAS SAT SDK SEO SMART SMS SQL SSD STEM SUV SWOT TB TBA TBD TBH THX TTYL TV TY UI URL USB
USD UTC UV UX VIP VR WI-FI WIFI WWW XML XP YOLO
"""

# A run that ends in one of these is a kind of dish, work, method or feast: Chicken Pot Pie.
_KINDS = """
administrator analysis analyst assessment assistant beef bread breast brownies brûlée burger cake
casserole certification chicken chickpeas chili chowder coffee consultant cookies coordinator cream
curry day days degree department designer developer diet dip disease disorder dumplings engineer
eve exam exercise exercises fizz focaccia fries granola index intern jokes law learning lesson
management manager marinade marketing method model models month muffins mule networks night noodles
oatmeal omelette package pancakes parmesan pasta pie pizza plan policy pork process processing
programming pudding representative rice risotto roll rolls salad salmon sandwich sauce scientist
sessions shrimp skills smoothie soup specialist squash steak stew stir-fry strategy studies
syndrome system tacos tart tea technician technique techniques test theory therapy tofu training
waffles week weekend wings wrap
"""

# Work that stands before a name and is no part of it: Administrator Jill Hruby.
_TRADES = """
administrator ambassador analyst architect attorney author commissioner congressman congresswoman
correspondent deputy designer developer director editor engineer journalist manager minister
producer representative researcher secretary spokesperson teacher
"""

_PEOPLES = """
afghan african africans albanian algerian american americans angolan arab arabian arabic argentine
argentinian armenian asian asians atheist australian australians austrian bangladeshi baptist
baroque basque bavarian belgian bengali bolivian bosnian brazilian brazilians british buddhism
buddhist buddhists bulgarian burmese cambodian canadian canadians cantonese caribbean catalan
catholic catholics celtic chilean chinese christian christianity christians colombian communist
cornish croatian cuban czech danish democrat democrats dutch eastern ecuadorian egyptian english
estonian ethiopian eurasian european europeans filipino finnish flemish french gaelic georgian
german germans ghanaian gothic greek gujarati haitian hawaiian hebrew hindi hindu hinduism hindus
hispanic hungarian icelandic indian indians indonesian iranian iraqi irish islam islamic israeli
italian italians jamaican japanese javanese jew jewish jews jordanian judaism kenyan korean kurdish
latina latino latinx latvian lebanese libyan lithuanian lutheran malay malaysian maltese mandarin
maori marxist mayan medieval mediterranean methodist mexican mexicans mongolian mormon moroccan
muslim muslims native nazi nepalese nepali nigerian nordic northern norwegian oriental orthodox
pakistani palestinian panamanian persian peruvian polish polynesian portuguese protestant punjabi
quaker renaissance republican republicans romanian russian russians samoan saudi scandinavian
scottish senegalese serbian sicilian sikh sinhalese slavic slovak slovenian somali southern spanish
sudanese swahili swedish swiss syrian taiwanese tamil thai tibetan tunisian turkish ugandan
ukrainian urdu victorian vietnamese welsh western yiddish zulu
"""

_SUFFIX = re.compile(
    r"(?:ing|ings|tion|tions|sion|sions|ness|ment|ments|ism|isms|ology|ologist|ologists|graphy"
    r"|ically|fully|ously|ively|ably|ibly|able|ible|less|ful|ous|ward|wards|wise|ship|hood"
    r"|ist|ists|cian|cians|ity|ities|ance|ence|ally|edly|ingly|ified|ized|ised|ated|ted|ned|red"
    r"|ssed|ched|shed|sted|lled|rred|pped|ked|ved|yed|sed|zed|ced|ged)$"
)

STARTERS = frozenset(_STARTERS.split())
KINDS = frozenset(_KINDS.split())
TRADES = frozenset(_TRADES.split())
PEOPLES = frozenset(_PEOPLES.split())
INITIALISMS = frozenset(_INITIALISMS.split())
SMALL = frozenset(_SMALL.split())
NEVER = frozenset(_NEVER.split())
ORDINARY = STARTERS | VOCABULARY


def looks_ordinary(word: str) -> bool:
    """Return whether a word, in lower case, is an ordinary one: by the list or by its ending."""
    if word in ORDINARY or (word.endswith("s") and word[:-1] in VOCABULARY):
        return True
    return len(word) > 5 and _SUFFIX.search(word) is not None


def of_a_people(word: str) -> bool:
    """Return whether a word, in lower case, says of what nation, language or faith."""
    return word in PEOPLES or (word.endswith("s") and word[:-1] in PEOPLES)
