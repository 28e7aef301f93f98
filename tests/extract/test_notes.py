"""Notes: what agents and people write of the user in few words, and towns whatever their name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from extract.scoring import AT, drafted, items
from worlddb.claims.claim import claims_of
from worlddb.model.drafts import Draft

ME = "entity:user"
SUNDAY = datetime(2026, 11, 15, 12, tzinfo=UTC)

TOWNS = (
    *("Paris", "Oslo", "Boston", "Porto", "Lima", "Quito", "Lagos", "Bergen", "Brno", "Kraków"),
    *("München", "Zürich", "York", "Ghent", "Basel", "Graz", "Ankara", "Bologna", "Utrecht"),
    *("Florence", "Malaga", "Málaga", "Nice", "Gdańsk", "Łódź", "Wrocław", "Reykjavík", "Aarhus"),
    *("Malmö", "Göteborg", "Turku", "Tallinn", "Riga", "Vilnius", "Lviv", "Sofia", "Split"),
    *("Ljubljana", "Bratislava", "Debrecen", "Cluj-Napoca", "Timișoara", "Bath", "Reading"),
    *("Derby", "Cork", "Galway", "Lille", "Nantes", "Reims", "Tours", "Bonn", "Essen", "Ulm"),
    *("Jena", "Leipzig", "Bern", "Pisa", "Verona", "Charlotte", "Madison", "Savannah", "Buffalo"),
    *("Eugene", "Jackson", "Lincoln", "Victoria", "Bogotá", "Medellín", "Córdoba", "Accra"),
    *("Kigali", "Tunis", "Durban", "Pune", "Goa", "Hue", "Busan", "Kobe", "Hobart", "Adelaide"),
    *("The Hague", "Den Haag", "San Sebastián", "Las Palmas", "Las Vegas", "St. Gallen"),
    *("Rio de Janeiro", "Baden-Baden", "Stratford-upon-Avon", "Aix-en-Provence", "New Haven"),
)
# Towns that nobody told us of.
UNHEARD_OF = ("Ouagadougou", "Zwickau", "Szolnok", "Llanelli", "Częstochowa", "Bad Homburg")

NO_TOWNS = """
Marketing|Engineering|Product|Sales|Customer Success|HR|the Platform team|Team Phoenix|Legal
Kubernetes|Postgres|Python|Vim|Linux|Slack|Notion|Firefox|Buildkite|Windows 11|Terraform|Go
Google|IBM|Tesla|Acme|Deutsche Bank|Goldman Sachs|McKinsey|DeepMind|Stanford University
Monday|Phase 2|Room 5|Project Falcon|Sarah|Sarah's place|Christianity|Done
"""
WRONG = [each for line in NO_TOWNS.strip().splitlines() for each in line.split("|")]

# The text, the relation, the value, and what it was.
NOTES: list[tuple[str, str, str, str]] = [
    ("The user lives in Rome.", "lives in", "Rome", ""),
    ("The user now lives in Paris.", "lives in", "Paris", ""),
    ("User lives in Rome", "lives in", "Rome", ""),
    ("user lives in rome", "lives in", "rome", ""),
    ("The user has moved to Ghent.", "lives in", "Ghent", ""),
    ("Note: the user lives in Rome, Italy.", "lives in", "Rome, Italy", ""),
    ("The user likes tea, and the user lives in Rome.", "lives in", "Rome", ""),
    ("The user works at Acme.", "works at", "Acme", ""),
    ("User no longer works at Google.", "works at", "", "Google"),
    ("The user is 31 years old.", "age", "31", ""),
    ("The user changed their email to b@x.com.", "email", "b@x.com", ""),
    ("User's favorite food is sushi.", "favorite food", "sushi", ""),
    ("User's favorite food is Pizza.", "favorite food", "Pizza", ""),
    ("The user’s favourite colour is red.", "favorite color", "red", ""),
    ("The user's name is Ada Chen.", "name", "Ada Chen", ""),
    ("The user's email is a@x.com.", "email", "a@x.com", ""),
    ("The user's phone is 555-123-4567.", "phone number", "555-123-4567", ""),
    ("The user's manager is Sarah Chen.", "manager", "Sarah Chen", ""),
    ("Sarah Chen is the user's manager.", "manager", "Sarah Chen", ""),
    ("Lives in Rome", "lives in", "Rome", ""),
    ("lives in rome", "lives in", "rome", ""),
    ("Now lives in Zürich.", "lives in", "Zürich", ""),
    ("Moved to Paris last month.", "lives in", "Paris", ""),
    ("Works at Google.", "works at", "Google", ""),
    ("No longer works at Google.", "works at", "", "Google"),
    ("i live in rome", "lives in", "rome", ""),
    ("i moved to new york last week", "lives in", "new york", ""),
    ("i'm now living in oslo, and i love it", "lives in", "oslo", ""),
    ("My favorite color is red.", "favorite color", "red", ""),
    ("My favorite season is spring.", "favorite season", "spring", ""),
    ("My favorite movie is Alien.", "favorite movie", "Alien", ""),
    ("My favorite movie is The Matrix.", "favorite movie", "The Matrix", ""),
    ("My favorite movie is Spirited Away!", "favorite movie", "Spirited Away", ""),
    ('My favorite movie is "Blade Runner".', "favorite movie", "Blade Runner", ""),
    ("My favorite movie is Heat, and I love it.", "favorite movie", "Heat", ""),
    ("My favorite band is Queen.", "favorite band", "Queen", ""),
    ("I quit Tern.", "works at", "", "Tern"),
    ("I quit Acme and joined Beta.", "works at", "", "Acme"),
    ("I left Google for Meta.", "works at", "", "Google"),
    ("I left Acme and joined Beta as a designer.", "works at", "", "Acme"),
]

NOTHING = """
The customer lives in Rome.
A user lives in Rome.
Users live in Rome.
Each user's manager is Sarah Chen.
The other user's email is a@x.com.
The user interface lives in Rome.
The user's friend lives in Rome.
The user might live in Rome.
The user does not live in Rome.
The user used to live in Rome.
The user wants to live in Rome.
If the user lives in Rome, show the tax.
Is the user based in Rome?
He said that the user lives in Rome.
The user and Tom live in Rome.
The user's email is required.
The user's password is hashed.
The user's phone is broken.
My name is Ana.
Live in Rome.
Lives in fear.
Lives in Rome. Likes tea.
Works at night.
Works for me.
Moved to Falcon.
Moved to Done.
Moved to Paris, then to Rome.
i live in nice
i live in a small house
i moved to react
i moved to marketing
We moved to Falcon.
Sarah moved to Falcon.
I moved from Jenkins to Buildkite.
I almost moved to Ghent.
I moved to Zürich and Basel.
My favorite movie is Alien or Heat.
My favorite movie is Alien, Heat and Jaws.
My favorite movie is over.
MY FAVORITE MOVIE IS PLAYING.
My favorite food is overrated.
I left Starbucks.
I left Google for Christmas.
I left Google for Paris.
I might quit Acme.
I quit sugar.
I'm a nurse.
""".strip().splitlines()


def told(draft: Draft) -> list[tuple[str, str, str]]:
    return [(claim.relation, claim.value, claim.was) for claim in claims_of(draft)]


@pytest.mark.parametrize("town", [*TOWNS, *UNHEARD_OF])
@pytest.mark.parametrize("rest", ["", " last week", " for work"])
def test_who_moved_lives_in_any_town_whatever_its_name(town: str, rest: str) -> None:
    assert told(drafted(f"I moved to {town}{rest}.")) == [("lives in", town, "")]


@pytest.mark.parametrize("town", TOWNS)
def test_a_known_town_is_where_one_lives_though_its_name_is_a_word(town: str) -> None:
    (claim,) = claims_of(drafted(f"We live in {town}."))
    assert (claim.relation, claim.value, claim.vague) == ("lives in", town, False)


@pytest.mark.parametrize("name", WRONG)
def test_who_moved_to_a_team_a_tool_or_a_company_lives_where_they_did(name: str) -> None:
    assert told(drafted(f"I moved to {name}.")) == []


@pytest.mark.parametrize(("text", "relation", "value", "was"), NOTES)
def test_a_note_claims_what_it_says_of_the_user(
    text: str, relation: str, value: str, was: str
) -> None:
    (claim,) = claims_of(drafted(text))
    assert (claim.subject, claim.relation, claim.value, claim.was) == (ME, relation, value, was)
    (span,) = claim.evidence
    assert text[span.start : span.end] == span.text == claim.text


@pytest.mark.parametrize("text", NOTHING)
def test_what_only_looks_like_such_a_note_claims_nothing(text: str) -> None:
    assert told(drafted(text)) == []


@pytest.mark.parametrize("text", ["The user lives in Rome.", "Lives in Rome."])
def test_in_a_conversation_the_user_is_somebody_else(text: str) -> None:
    assert told(drafted(("user", text), ("assistant", "Who is that?"))) == []
    assert told(drafted(("assistant", text))) == []
    assert told(drafted(("Caroline", text))) == []


def test_whose_manager_it_is_is_read_of_the_user_as_of_me() -> None:
    mine, users = (drafted(f"{whose} manager is Sarah Chen.") for whose in ("My", "The user's"))
    assert items(mine) == items(users)
    assert ("alias", "Sarah Chen", "my manager") in items(users)


def test_the_user_s_name_is_an_alias_of_the_user() -> None:
    (user,) = (each for each in drafted("User's name is Ada.").nodes if each.key == ME)
    assert user.aliases == ("Ada",)


@pytest.mark.parametrize("at", [AT, SUNDAY])
@pytest.mark.parametrize("when", ["last week", "last weekend", "last month", "last Friday"])
def test_a_past_day_that_can_be_read_in_two_ways_leaves_the_claim(at: datetime, when: str) -> None:
    assert told(drafted(f"I moved to Paris {when}.", at=at)) == [("lives in", "Paris", "")]
