"""Notes: what agents and people write of the user in few words, and towns whatever their name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from language.english.claim_sentences import ME, NO_CLAIMS_IN_NOTES, NOTES
from language.english.scoring import AT, drafted, items
from worlddb.claims.claim_ends import claims_of
from worlddb.model.records import Draft

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


@pytest.mark.parametrize("text", NO_CLAIMS_IN_NOTES)
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
