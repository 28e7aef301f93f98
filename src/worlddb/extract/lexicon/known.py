"""Known names: places, organisations and products that everybody knows by one name."""

from __future__ import annotations

_PLACES = """
afghanistan africa alabama alaska alberta algeria america amsterdam anchorage antarctica argentina
arizona arkansas asia athens atlanta auckland austin australia austria bali baltimore bangalore
bangkok bangladesh barcelona bavaria beijing belfast belgium belgrade berkeley berlin bermuda
birmingham bogota bolivia bordeaux boston boulder brazil brighton brisbane bristol britain brooklyn
brussels bucharest budapest bulgaria burma cairo calgary california cambodia cambridge cameroon
canada cancun caracas cardiff charleston chicago chile china cincinnati cleveland cologne colombia
colorado columbus connecticut copenhagen croatia cuba cuzco cyprus czechia dallas damascus delaware
delhi denmark denver detroit dubai dublin dubrovnik ecuador edinburgh edmonton egypt england
estonia ethiopia europe fiji finland florida france frankfurt geneva germany ghana glasgow
gothenburg greece greenland guatemala haiti hamburg hanoi havana hawaii helsinki himalayas
hiroshima hollywood honduras houston hungary iceland idaho illinois india indiana indianapolis
indonesia iowa iran iraq ireland israel istanbul italy jakarta jamaica japan jerusalem johannesburg
kansas kathmandu kentucky kenya kiev korea krakow kuwait kyiv kyoto laos latvia lebanon leeds libya
lisbon lithuania liverpool london luxembourg lyon macedonia madagascar madrid maine malaysia
maldives malta manchester manhattan manila marrakech marseille maryland massachusetts maui
melbourne memphis mexico miami michigan milan minneapolis minnesota mississippi missouri moldova
monaco mongolia montana montenegro montreal morocco moscow mumbai munich myanmar nairobi namibia
naples nashville nebraska nepal netherlands nevada newfoundland nicaragua nigeria norway oakland
ohio oklahoma ontario oregon orlando osaka oslo ottawa oxford pakistan palestine panama paraguay
paris patagonia pennsylvania perth peru philadelphia philippines phoenix pittsburgh poland portland
portugal prague provence quebec reykjavik romania rome russia rwanda sacramento salzburg santiago
scandinavia scotland seattle senegal seoul serbia seville shanghai shenzhen siberia sicily
singapore slovakia slovenia somalia spain stockholm sudan sweden switzerland sydney syria tahiti
tahoe taipei taiwan tampa tanzania tasmania tennessee texas thailand tibet tokyo toronto toulouse
tunisia turin tuscany uganda ukraine uruguay utah valencia vancouver venezuela venice vermont
vienna vietnam virginia wales warsaw washington wellington wisconsin wyoming yellowstone yosemite
zagreb zambia zimbabwe zurich
"""

_BRANDS = """
accenture adidas adobe airbnb alibaba asana asos audi bbc bentley bmw boeing bosch canva carrefour
chatgpt chevrolet chevy chipotle cisco citibank coca-cola costco craigslist cvs dell deloitte dhl
discord disney dropbox duolingo dyson ebay epson ericsson etsy expedia facebook fedex ferrari figma
fitbit flickr fujifilm gamestop github gitlab gmail godaddy goodreads google gopro grammarly
groupon grubhub gucci harvard heineken hilton honda huawei hubspot hulu hyatt hyundai ibm ikea imdb
instagram ipad iphone itunes javascript jeep jira kickstarter kindle kodak kpmg kubernetes
lamborghini lego lenovo lexus lightroom linkedin linux logitech lyft macbook macy's marriott
mastercard mazda mcdonald's mcdonalds mercedes-benz microsoft mitsubishi mongodb myspace mysql nasa
nescafe netflix netgear nike nikon nintendo nissan nokia numpy nvidia nyu openai panasonic
patagonia patreon paypal peloton pepsi pfizer philips photoshop pinterest pixar playstation pokemon
polaroid porsche postgresql powerpoint prada princeton pytorch qualcomm quora reddit renault roblox
roku rolex roomba ryanair salesforce samsung sephora shopify siemens skype snapchat sonos sony
soundcloud spacex spotify sqlite stanford starbucks subaru substack suzuki tensorflow tesco tesla
tiktok timberland toyota trello tripadvisor trustpilot tumblr tupperware twitch twitter typescript
ubereats ubuntu unilever uniqlo venmo verizon vimeo vodafone volkswagen volvo walgreens walmart
wattpad waze wechat wendy's whatsapp wikipedia woolworths wordpress xbox xiaomi yahoo yelp youtube
zappos zara zillow
"""

# Words too: names inside a sentence only.
_BRANDS_PERHAPS = """
amazon apple audible bumble chase delta discord expedia ford gap hinge hulu intel kindle medium
meta mint notion oracle pixel puma shell siri slack sprint square steam stripe subway target tinder
uber visa zoom
"""

# Names of which every word is an ordinary one.
_PHRASES = """
american express|animal crossing|apple watch|best buy|black panther|burger king|call of duty
central park|doctor who|dollar tree|east coast|game of thrones|general electric|general motors
goldman sachs|grand central|home depot|ice age|iron man|lord of the rings|middle east|middle-earth
north america|north pole|old navy|pizza hut|red cross|silicon valley|south africa|south america
south pole|southwest airlines|spider-man|spirit airlines|star trek|star wars|stranger things
super bowl|super mario|taco bell|times square|united airlines|united kingdom|united nations
united states|wall street|west coast|white house|whole foods|world bank|world cup
"""

# Capital letters alone do not make a name: these are ones.
_ACRONYMS = """
AARP ACLU AMC AOL ASPCA AT&T AWS BART BBC BMW CBS CDC CERN CIA CNN CVS DARPA DHL EPA EPFL ESA ESPN
ETH EU FAA FBI FCC FDA FEMA FIFA GPT H&M HBO HSBC IBM IKEA IMDB IMF INTERPOL IRS JFK KFC KLM KPMG
LACMA LAX LEGO LSU MBTA MIT MLB MOMA MSU MTV NASA NASCAR NATO NBA NBC NCAA NFL NHL NIH NOAA NPR NRA
NSA NSF NUS NYC NYPD NYU OECD OPEC PBS PETA PGA PWC REI SFO UCLA UCSD UCSF UEFA UFC UK UN UNC
UNESCO UNHCR UNICEF UPS US USA USC USDA USPS UT WHO WWF YMCA YWCA
"""

# After these a number belongs to the name: iPhone 15, Windows 11, GPT-4.
_NUMBERED = """
airbus alexa android apollo battlefield boeing chatgpt civilization claude cyberpunk diablo eos
fallout fifa fitbit fortnite galaxy gemini gopro gpt halo hero ios ipad iphone java kindle llama
macos model nikon nintendo note paperwhite persona photoshop pixel playstation postgresql python
route rtx sequel surface switch thinkpad ubuntu vision windows xbox zelda
"""

# Names that end in 's of their own.
_POSSESSIVE = """
applebee's arby's bloomingdale's campbell's chili's christie's denny's domino's dunkin' hardee's
hershey's kellogg's kohl's lay's levi's lord's lowe's macy's mcdonald's moody's popeye's reese's
sainsbury's sotheby's victoria's wendy's zaxby's
"""

# Names of two words with 's in one.
PAIRS = (
    "ben & jerry's",
    "charlotte's web",
    "dick's sporting",
    "jimmy john's",
    "papa john's",
    "sam's club",
    "trader joe's",
    "victoria's secret",
)

# A capitalised run that ends in one of these names a place or an organisation.
_HEADS = """
academy airlines airport airways aquarium arena association avenue bakery bank bar bay beach bistro
boulevard bridge building cafe café canyon castle cathedral cemetery center centre chapel church
clinic club college committee company conservatory cooperative corp corporation council county
court creek diner district drive embassy falls farm federation festival forest fort foundation
gallery garden gardens gmbh group gulf hall harbor harbour heights high hill hills hospital hotel
house inc inn institute island islands lake lane library llc lodge ltd mall market memorial
monastery motel mount mountain mountains museum observatory opera orchestra park parkway peak
peninsula pier place plaza port pub ranch records reserve restaurant river road sanctuary school
sea shelter shrine society square stadium station street studio studios temple terrace theater
theatre tower trail union university valley village vineyard winery zoo
"""

# "of" goes on with these: University of Michigan, Bank of America, Lord of the Rings.
_OF_HEADS = """
academy bank bay bishop call cape cathedral center church city college county court duke game games
garden gate god gods guardians gulf hall harbor house institute isle king kingdom lady league
legend legends library lord ministry museum order palace pirates prince princess queen republic
school statue strait temple theatre tower university wheel world
"""

# Begins a name when another capitalised word follows.
_OPENERS = """
cape costa east el fort ft lake las los monte mount mt new north port puerto rio saint
saint-germain san santa santo sao south st são upper west
"""

PLACES = frozenset(_PLACES.split())
BRANDS = frozenset(_BRANDS.split())
BRANDS_PERHAPS = frozenset(_BRANDS_PERHAPS.split())
PHRASES = frozenset(_PHRASES.replace("|", "\n").strip().splitlines())
ACRONYMS = frozenset(_ACRONYMS.split())
NUMBERED = frozenset(_NUMBERED.split())
POSSESSIVE = frozenset(_POSSESSIVE.split())
HEADS = frozenset(_HEADS.split())
OF_HEADS = frozenset(_OF_HEADS.split())
OPENERS = frozenset(_OPENERS.split())
