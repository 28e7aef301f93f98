"""Regions: how wide a place is, as far as its name tells: who lives in Oslo lives in Norway."""

from __future__ import annotations

CITY, STATE, COUNTRY, CONTINENT = range(4)
"""Anything that is no known region counts as a city."""

_CONTINENTS = (
    "africa|america|antarctica|asia|europe|north america|oceania|scandinavia|south america"
)
_COUNTRIES = """
afghanistan|albania|algeria|andorra|angola|argentina|armenia|australia|austria|azerbaijan|bahamas
|bahrain|bangladesh|barbados|belarus|belgium|belize|benin|bhutan|bolivia|bosnia|botswana|brazil
|britain|brunei|bulgaria|burundi|cambodia|cameroon|canada|chad|chile|china|colombia|congo
|costa rica|croatia|cuba|cyprus|czech republic|czechia|denmark|dominican republic|ecuador|egypt
|el salvador|eritrea|estonia|ethiopia|fiji|finland|france|gabon|gambia|georgia|germany|ghana
|great britain|greece|greenland|guatemala|guinea|guyana|haiti|holland|honduras|hungary|iceland
|india|indonesia|iran|iraq|ireland|israel|italy|ivory coast|jamaica|japan|jordan|kazakhstan|kenya
|korea|kosovo|kuwait|kyrgyzstan|laos|latvia|lebanon|lesotho|liberia|libya|liechtenstein|lithuania
|luxembourg|madagascar|malawi|malaysia|maldives|mali|malta|mauritania|mauritius|mexico|moldova
|mongolia|montenegro|morocco|mozambique|myanmar|namibia|nepal|netherlands|new zealand|nicaragua
|niger|nigeria|north korea|north macedonia|norway|oman|pakistan|palestine|panama
|papua new guinea|paraguay|peru|philippines|poland|portugal|qatar|romania|russia|rwanda
|saudi arabia|senegal|serbia|sierra leone|slovakia|slovenia|somalia|south africa|south korea
|south sudan|spain|sri lanka|states|sudan|suriname|sweden|switzerland|syria|taiwan|tajikistan
|tanzania|thailand|togo|tonga|trinidad and tobago|tunisia|turkey|turkmenistan|u s|u s a|uganda|uk
|ukraine|united arab emirates|united kingdom|united states|united states of america|uruguay|us
|usa|uzbekistan|venezuela|vietnam|yemen|zambia|zimbabwe
"""
_STATES = """
alabama|alaska|alberta|andalusia|arizona|arkansas|bavaria|british columbia|brittany|california
|catalonia|colorado|connecticut|delaware|england|florida|hawaii|idaho|illinois|indiana|iowa|kansas
|kentucky|louisiana|maine|manitoba|maryland|massachusetts|michigan|minnesota|mississippi|missouri
|montana|nebraska|nevada|new england|new hampshire|new jersey|new mexico|new south wales
|newfoundland|north carolina|north dakota|northern ireland|nova scotia|ohio|oklahoma|ontario|oregon
|patagonia|pennsylvania|provence|quebec|queensland|rhode island|saskatchewan|saxony|scotland
|sicily|south carolina|south dakota|tasmania|tennessee|texas|tibet|tuscany|tyrol|utah|vermont
|victoria|virginia|wales|washington state|west virginia|wisconsin|wyoming
"""
_WIDTHS = {
    **dict.fromkeys(_STATES.replace("\n", "").split("|"), STATE),
    **dict.fromkeys(_COUNTRIES.replace("\n", "").split("|"), COUNTRY),
    **dict.fromkeys(_CONTINENTS.split("|"), CONTINENT),
}

# Other words for one town, in lower case and without accents.
_SPELLINGS = {
    "basle": "basel",
    "bengaluru": "bangalore",
    "bombay": "mumbai",
    "brugge": "bruges",
    "calcutta": "kolkata",
    "cracow": "krakow",
    "den haag": "hague",
    "firenze": "florence",
    "gent": "ghent",
    "geneve": "geneva",
    "goteborg": "gothenburg",
    "hannover": "hanover",
    "kiev": "kyiv",
    "koln": "cologne",
    "lisboa": "lisbon",
    "luzern": "lucerne",
    "marseilles": "marseille",
    "munchen": "munich",
    "new york city": "new york",
    "nurnberg": "nuremberg",
    "nyc": "new york",
    "odesa": "odessa",
    "oporto": "porto",
    "praha": "prague",
    "roma": "rome",
    "saigon": "ho chi minh city",
    "wien": "vienna",
}


def town_of(words: tuple[str, ...]) -> str:
    """Return the one name of a town that has several, from one of them in lower case."""
    name = " ".join(words)
    return _SPELLINGS.get(name, name)


def width_of(words: tuple[str, ...]) -> int:
    """Return how wide a place is, from its name in lower case."""
    return _WIDTHS.get(" ".join(words), CITY)
