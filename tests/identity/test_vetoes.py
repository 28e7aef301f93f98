"""Vetoes: pairs that other systems merged, and that nothing may bring together here."""

from __future__ import annotations

import pytest

from identity.people import acted, named, person, resolve
from worlddb.identity.match_values import New
from worlddb.identity.name_comparison import compare
from worlddb.identity.resolver import vetoes_of
from worlddb.language.proper_names import read_name


def reasons(left: str, right: str, *, is_person: bool = False) -> list[str]:
    one, other = read_name(left), read_name(right)
    return vetoes_of(one, other, compare(one, other, 0.8), is_person)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("GPT-4", "GPT-4o"),
        ("GPT-4", "GPT"),
        ("iPhone 14", "iPhone 15"),
        ("Windows 10", "Windows 11"),
        ("Python 3.11", "Python 3.12"),
        ("Boeing 737", "Boeing 747"),
        ("Q1 2023", "Q3 2023"),
        ("Olympics 2020", "Olympics 2024"),
        ("meeting on 2024-03-05", "meeting on 2024-03-06"),
        ("Route 6", "Route 66"),
    ],
)
def test_numbers_versions_years_and_dates_agree(one: str, other: str) -> None:
    assert "numbers differ" in reasons(one, other)
    assert acted(resolve(one, other)) == []


def test_equal_numbers_written_another_way_agree() -> None:
    assert reasons("GPT-4", "GPT 4") == []
    assert acted(resolve("GPT4", "GPT-4", "GPT-4o")) == ["GPT-4"]
    assert acted(resolve("2023 Q1 report", "Q1 2023 report")) == ["Q1 2023 report"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("John Smith", "Jane Smith"),
        ("John Smith", "James Smith"),
        ("Tim Robbins", "Tom Robbins"),
        ("Mark Johnson", "Mark Johnston"),
        ("Sarah Chen", "Sarah Cheng"),
        ("Mario Rossi", "Maria Rossi"),
        ("Paul Jensen", "Paula Jensen"),
        ("Daniel Weber", "Danielle Weber"),
        ("Juan Ortega", "Juana Ortega"),
        ("Olga Ivanova", "Olga Ivanov"),
        ("Wei Zhang", "Wei Zheng"),
    ],
)
def test_different_people_with_a_name_in_common_stay_apart(one: str, other: str) -> None:
    assert acted(resolve(one, other)) == []
    assert acted(resolve(person(one), person(other))) == []


def test_a_slip_in_a_given_name_is_not_another_person() -> None:
    assert acted(resolve("Jon Smith", "John Smith", "Jane Smith")) == ["John Smith"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("IBM", "IBN"), ("UK", "US"), ("Bo", "Jo"), ("Ian", "Iain"), ("王伟", "王薇")],
)
def test_short_names_match_only_when_equal(one: str, other: str) -> None:
    assert acted(resolve(one, other)) == []
    assert acted(resolve(one, one)) == [one]


def test_sentences_are_never_names_not_even_equal_ones() -> None:
    text = "The meeting was moved to Friday because of the storm"
    assert resolve(text, text) == New()
    assert resolve("I like pizza", "I like pizza") == New()
    assert resolve("Friday", named(text)) == New()


def test_a_sentence_among_the_names_does_not_hide_the_others() -> None:
    option = named("She went to the shop with me", "Sarah Chen")
    assert acted(resolve("Sarah Chen", option)) == [option.names[0]]


@pytest.mark.parametrize(("one", "other"), [("Company", "Fruit"), ("Person", "Place")])
def test_things_of_different_types_are_not_one(one: str, other: str) -> None:
    outcome = resolve(named("Jordan", type=one), named("Jordan", type=other))
    assert isinstance(outcome, New)
    assert outcome.considered[0].evidence["vetoes"] == ["types differ"]


def test_a_generic_type_is_compatible_but_not_the_same() -> None:
    outcome = resolve(named("Sarah Chen", type="Person"), named("Sarah Chen", type="Entity"))
    (match,) = outcome.matches
    assert (match.reuses, match.proposes) == (False, True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("George Bush Jr.", "George Bush Sr."),
        ("Henry Ford II", "Henry Ford III"),
        ("Elizabeth I", "Elizabeth II"),
        ("Final Fantasy VII", "Final Fantasy VIII"),
        ("Final Fantasy VII", "Final Fantasy"),
        ("World War I", "World War II"),
        ("Super Bowl LVI", "Super Bowl LVII"),
    ],
)
def test_generations_and_parts_stay_apart(one: str, other: str) -> None:
    assert "generations differ" in reasons(one, other)
    assert acted(resolve(one, other)) == []


def test_father_or_son_is_for_somebody_to_say() -> None:
    outcome = resolve(person("John Smith Jr."), person("John Smith"))
    (match,) = outcome.matches
    assert acted(outcome) == []
    assert match.evidence["doubts"] == ["generation unknown"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("North Korea", "South Korea"),
        ("West Virginia", "Virginia"),
        ("New York", "York"),
        ("pro-choice movement", "anti-choice movement"),
        ("vice president", "president"),
        ("MacBook Air", "MacBook"),
        ("my first car", "my second car"),
        ("Tuesday standup", "Thursday standup"),
        ("left knee", "right knee"),
    ],
)
def test_words_that_set_apart_must_be_on_both_sides(one: str, other: str) -> None:
    assert "marks differ" in reasons(one, other)
    assert acted(resolve(one, other)) == []


def test_words_that_set_apart_may_be_names_of_people() -> None:
    assert reasons("Max West", "Mx West", is_person=True) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("legal immigration", "illegal immigration"),
        ("import tax", "export tax"),
        ("hypothermia", "hyperthermia"),
        ("fiction", "nonfiction"),
        ("prewar period", "postwar period"),
        ("employment", "unemployment"),
        ("inpatient care", "outpatient care"),
    ],
)
def test_opposites_are_not_one(one: str, other: str) -> None:
    assert "opposites" in reasons(one, other)
    assert acted(resolve(one, other)) == []


def test_mr_and_mrs_are_two() -> None:
    assert reasons("Mr. Chen", "Mrs. Chen") == ["titles differ"]
    assert acted(resolve("Mr. Chen", "Mrs. Chen")) == []
    assert reasons("Dr. Chen", "Mrs. Chen") == []


def test_whose_it_is_must_be_the_same() -> None:
    for other in ("your manager", "his manager", "manager"):
        assert reasons("my manager", other) == ["owners differ"]
        assert acted(resolve("my manager", other)) == []
    assert acted(resolve("my manager", named("Sarah Chen", "my manager"))) == ["Sarah Chen"]


def test_a_possessive_is_another_name() -> None:
    assert reasons("Wendy's", "Wendy") == ["possessives differ"]
    assert acted(resolve("Denny's", "Denny", "Dennis")) == []
    assert acted(resolve("John's sister", "John")) == []
    assert acted(resolve("McDonalds", "McDonald's")) == ["McDonald's"]


def test_a_person_is_no_firm() -> None:
    assert "a person and a firm" in reasons("Ms. Delgado", "Delgado Inc.")
    assert acted(resolve("Ms. Delgado", "Delgado Inc.")) == []


def test_order_counts_where_a_preposition_makes_it() -> None:
    assert "order differs" in reasons("University of Washington", "Washington University of")
    assert acted(resolve("University of Washington", "Washington University")) == []


def test_letters_stand_for_words_in_names_of_people_only() -> None:
    assert "a letter is not a word" in reasons("Vitamin C", "Vitamin Complex")
    assert "a letter is not a word" in reasons("Jay Z", "Jay Zimmer", is_person=True)
    assert reasons("John S.", "John Smith", is_person=True) == []


def test_what_looks_like_a_title_may_be_a_part_of_the_name() -> None:
    assert acted(resolve("Captain America", "America")) == []
    assert acted(resolve("General Motors", "Motors")) == []
    assert acted(resolve("Coach Ramirez", "Ramirez")) == ["Ramirez"]


def test_places_and_firms_a_few_letters_apart_are_not_one() -> None:
    for one, other in (
        ("Austria", "Australia"),
        ("Niger", "Nigeria"),
        ("Colombia", "Columbia"),
        ("Iran", "Iraq"),
        ("Spotify", "Shopify"),
        ("Java", "JavaScript"),
        ("Stanford", "Sanford"),
        ("New York", "New Yorker"),
    ):
        assert acted(resolve(one, other)) == []
