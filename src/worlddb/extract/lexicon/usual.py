"""Usual: words for habits, and for preferences of which one excludes the other."""

from __future__ import annotations

DOING = {"eat": "eating", "drink": "drinking", "smoke": "smoking", "vape": "vaping"}
HABITS = {form: verb for verb, doing in DOING.items() for form in (verb, f"{verb}s", doing)}

# What follows a verb without being what one eats or drinks.
NO_OBJECT = frozenset(
    (
        *("again", "alone", "and", "any", "anymore", "because", "but", "daily", "enough", "every"),
        *("everywhere", "first", "inside", "it", "its", "late", "less", "longer", "lots", "now"),
        *("nowadays", "often", "only", "outside", "rarely", "seldom", "since", "socially", "today"),
        *("ago", "cold", "completely", "earlier", "entirely", "few", "finally", "last", "lately"),
        *("forever", "officially", "permanently", "recently", "right", "yesterday"),
        *("together", "twice", "whenever", "yet"),
    )
)

# Of these, one is preferred at a time: what is called so, its ways, and the things it is said of.
_SHORT = dict.fromkeys(("short", "brief", "concise"), "short")
_LONG = dict.fromkeys(("long", "detailed", "verbose"), "long")
_TIMES = {word: word for word in ("morning", "afternoon", "evening")}
_EXCLUDING: tuple[tuple[str, dict[str, str], tuple[str, ...]], ...] = (
    ("mode", {"dark": "dark", "light": "light"}, ("mode", "theme")),
    ("seat", {"window": "window", "aisle": "aisle"}, ("seat", "seats")),
    ("units", {"metric": "metric", "imperial": "imperial"}, ("units",)),
    ("length of answers", {**_SHORT, **_LONG}, ("answers", "replies", "responses")),
    ("time of meetings", _TIMES, ("meetings",)),
    ("time of flights", _TIMES, ("flights",)),
)
HOW = tuple(sorted({word for _, ways, _ in _EXCLUDING for word in ways}))
WHAT = tuple(sorted({word for *_, things in _EXCLUDING for word in things}))


def preferred(how: str, what: str) -> tuple[str, str]:
    """Return the relation and the value of a preference; nothing if it excludes no other."""
    way, thing = how.lower(), what.lower()
    for name, ways, things in _EXCLUDING:
        if way in ways and thing in things:
            return f"preferred {name}", ways[way]
    return "", ""
