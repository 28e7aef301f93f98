"""Tiers: what each sees, in a store of few names and in one of many."""

from __future__ import annotations

import numpy as np
import pytest

from identity.people import acted, counted, named, only, person, resolve
from worlddb.identity.match_values import (
    Ambiguous,
    NamedNode,
    New,
    Population,
    Resolved,
    ResolverSettings,
)
from worlddb.identity.resolver import Resolver

# -- exact -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["sarah chen", "SARAH  CHEN", "Ｓａｒａｈ Chen", "“Sarah Chen”"])
def test_an_equal_name_is_reused_whatever_its_case_and_form(text: str) -> None:
    match = only(resolve(text, "Sarah Chen"))
    assert (match.tier, match.score, match.reuses, match.proposes) == ("exact", 1, True, False)
    assert match.compared == (text, "Sarah Chen")


def test_an_alias_of_either_is_a_name() -> None:
    known = named("Sarah Chen", "my manager")
    assert only(resolve("my manager", known)).reuses
    assert only(resolve(named("SC", "my manager"), known)).compared == ("my manager", "my manager")


def test_diacritics_are_not_equal_but_alike() -> None:
    match = only(resolve("José Núñez", "Jose Nunez"))
    assert (match.tier, match.proposes) == ("fuzzy", True)


def test_every_alias_is_looked_at_for_an_equal_name() -> None:
    known = named(*(f"Name {i}" for i in range(100)), "Sarah Chen")
    assert only(resolve("sarah chen", known)).reuses


def test_a_persons_name_that_many_bear_is_not_reused() -> None:
    """At 100,000 names, 40 of them are expected to be called so by chance."""
    counts = {"john": 4_000, "smith": 1_000}
    population = Population(100_000, lambda word: counts.get(word, 1))
    outcome = Resolver().resolve(person("John Smith"), [person("John Smith", key=1)], population)
    assert isinstance(outcome, Ambiguous | New)
    assert acted(outcome) == []
    rare = Resolver().resolve(person("Zebulon Quill"), [person("Zebulon Quill", key=1)], population)
    assert only(rare).reuses


def test_confidence_falls_with_how_common_a_name_is() -> None:
    found = []
    for count in (1, 30, 100, 300):
        population = Population(20_000, dict.fromkeys(("ada", "quill"), count).__getitem__)
        outcome = Resolver(ResolverSettings(consider_above=0.0)).resolve(
            person("Ada Quill"), [person("Ada Quill", key=1)], population
        )
        found.append(only(outcome))
    confidences = [match.confidence for match in found]
    assert confidences == sorted(confidences, reverse=True)
    assert [match.reuses for match in found] == [True, True, False, False]
    assert found[-1].evidence["by_chance"] == pytest.approx(4.1, abs=0.3)


def test_between_sure_and_undecided_an_equal_name_is_proposed() -> None:
    population = Population(5_000, lambda word: 40)
    match = only(Resolver().resolve(person("Ada Quill"), [person("Ada Quill", key=1)], population))
    assert 0.5 < match.confidence < 0.9
    assert (match.reuses, match.proposes) == (False, True)


def test_one_given_name_is_reused_until_many_others_bear_it() -> None:
    few = Population(200, lambda word: 3)
    many = Population(200, lambda word: 120)
    asked, known = person("Sarah"), [person("Sarah", key=1)]
    assert only(Resolver().resolve(asked, known, few)).reuses
    assert acted(Resolver().resolve(asked, known, many)) == []


def test_what_is_no_person_keeps_its_name_however_often_its_words_occur() -> None:
    population = Population(1_000_000, lambda word: 20_000)
    for name in ("New York City", "Tesla"):
        assert only(Resolver().resolve(named(name), [named(name, key=1)], population)).reuses


# -- fuzzy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Sarah Cehn", "Sarah Chen"),
        ("Jenifer Aniston", "Jennifer Aniston"),
        ("Chen Sarah", "Sarah Chen"),
        ("Chen, Sarah", "Sarah Chen"),
        ("J. Smith", "John Smith"),
        ("John F. Kennedy", "John Kennedy"),
        ("Dr. Sarah Chen", "Sarah Chen"),
        ("John Paul Fletcher", "John Fletcher"),
        ("Jean-Luc Picard", "Jean Luc Picard"),
        ("Aleksandr Petrov", "Alexander Petrov"),
        ("Александр Петров", "Alexander Petrov"),
        ("Apple Inc.", "Apple"),
        ("The Beatles", "Beatles"),
        ("Massachussetts", "Massachusetts"),
        ("Microsfot", "Microsoft"),
    ],
)
def test_fuzzy_proposes_names_written_another_way(one: str, other: str) -> None:
    outcome = resolve(one, other)
    assert isinstance(outcome, Resolved)
    assert (outcome.match.tier, outcome.match.proposes) == ("fuzzy", True)
    assert not outcome.match.reuses
    assert outcome.match.score >= 0.92
    assert outcome.match.evidence["words"]


@pytest.mark.parametrize("among", [0, 10_000])
def test_a_firm_is_recognised_in_a_large_store_too(among: int) -> None:
    assert acted(resolve("Apple Inc.", "Apple", "Applebee's", among=among)) == ["Apple"]
    assert acted(resolve("Microsfot", "Microsoft", among=among)) == ["Microsoft"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Chen", "Sarah Chen"),
        ("New York", "New York Times"),
        ("Tesla", "Tesla Motors"),
        ("Florence", "Florence Nightingale"),
        ("Mr. James", "James Taylor"),
        ("Ferdinand", "Ferdinand Meier Inc."),
    ],
)
def test_part_of_a_name_is_undecided(one: str, other: str) -> None:
    for outcome in (resolve(one, other), resolve(other, one)):
        assert isinstance(outcome, Ambiguous)
        assert acted(outcome) == []
        assert "part of a name" in only(outcome).evidence["doubts"]


@pytest.mark.parametrize(("one", "other"), [("Priya", "Priya Raman"), ("Priya Raman", "Priya")])
def test_a_first_name_alone_is_proposed_but_does_not_resolve(one: str, other: str) -> None:
    outcome = resolve(one, other)
    assert isinstance(outcome, Ambiguous)
    assert (only(outcome).tier, only(outcome).proposes) == ("fuzzy", True)
    assert only(outcome).evidence["first_name"] == "priya"


@pytest.mark.parametrize(
    "names",
    [
        ("Priya", "Priya Raman", "Priya Shah"),
        ("Priya Raman", "Priya", "Priya Shah"),
        ("Priya", "Priya Raman", "Priya R."),
    ],
)
def test_a_first_name_that_several_bear_is_undecided(names: tuple[str, ...]) -> None:
    outcome = resolve(*names)
    assert acted(outcome) == []
    assert all("fits several" in match.evidence["doubts"] for match in outcome.matches)


def test_a_first_name_that_many_others_bear_is_too_common_to_propose() -> None:
    elsewhere = [f"Priya Raman{number}" for number in range(10)]
    outcome = Resolver().resolve(named("Priya"), [named("Priya Raman")], counted(elsewhere))
    assert acted(outcome) == []
    assert only(outcome).confidence < 0.5


def test_a_first_name_is_no_place() -> None:
    outcome = Resolver().resolve(named("Priya", type="Place"), [named("Priya Raman")])
    assert acted(outcome) == []


def test_an_initial_that_fits_several_is_undecided() -> None:
    outcome = resolve("J. Smith", "John Smith", "Jane Smith")
    assert isinstance(outcome, Ambiguous)
    assert acted(outcome) == []
    assert len(outcome.options) == 2


def test_initials_alone_are_undecided() -> None:
    outcome = resolve("J. R. R. T.", "John Ronald Reuel Tolkien")
    assert acted(outcome) == []
    assert "initials alone" in only(outcome).evidence["doubts"]


@pytest.mark.parametrize(
    ("one", "other", "doubt"),
    [
        ("Lena Hardesty", "Lena Gardesty", "first letters differ"),
        ("Team Red", "Team Reed", "short words differ"),
        ("Ricky Mardin", "Ricky Maroin", "an unlikely slip"),
        ("Stephatnie Spogn", "Stephanie Spong", "no word the same"),
        ("Bill Turner", "Will Turner", "two short forms"),
        ("Stanford", "Stanferd", "one word alone"),
    ],
)
def test_among_few_names_a_doubtful_slip_is_only_mentioned(
    one: str, other: str, doubt: str
) -> None:
    outcome = resolve(one, other)
    assert isinstance(outcome, Ambiguous)
    assert acted(outcome) == []
    assert doubt in only(outcome).evidence["doubts"]


def test_nicknames_propose_and_do_not_resolve() -> None:
    outcome = resolve("Bob Miller", "Robert Miller")
    assert isinstance(outcome, Ambiguous)
    assert only(outcome).proposes
    assert ["bob", "robert", "nickname"] in only(outcome).evidence["words"]
    assert acted(resolve("Bob", "Robert")) == []
    assert acted(resolve("Andy Warhol", "Andrew Warhol", "Andrea Warhol")) == []


def test_two_given_names_in_another_order_are_undecided() -> None:
    assert acted(resolve("Paul Martin", "Martin Paul")) == []


def test_among_many_people_counts_tell_a_slip_from_a_name() -> None:
    names = ["ruby shepherd"] * 3 + ["rupert sheppard"] * 30 + ["ruby sheppert"] * 3
    population = counted(names, 5_000)
    resolver = Resolver()
    slip = resolver.resolve(person("ruby shephrd"), [person("ruby shepherd")], population)
    assert acted(slip) == ["ruby shepherd"]
    twice = resolver.resolve(person("stephatnie spogn"), [person("stephanie spong")], population)
    assert acted(twice) == ["stephanie spong"]
    both = resolver.resolve(person("ruby sheppert"), [person("ruby sheppard")], population)
    assert acted(both) == []


# -- phonetic --------------------------------------------------------------------------------------


def test_sound_alone_proposes_and_does_not_resolve() -> None:
    for one, other in (
        ("Qadir Marsden", "Kadeer Marsden"),
        ("Wraight", "Rait"),
        ("Phillip", "Filip"),
        ("Philip Marsden", "Filip Marsden"),
    ):
        outcome = resolve(one, other)
        assert isinstance(outcome, Ambiguous)
        assert (only(outcome).tier, only(outcome).proposes) == ("phonetic", True)


def test_the_same_code_with_other_letters_is_only_mentioned() -> None:
    outcome = resolve("Moammar Tellis", "Muammar Tellis")
    assert isinstance(outcome, Ambiguous)
    assert only(outcome).tier == "phonetic"
    assert not only(outcome).proposes


# -- embedding -------------------------------------------------------------------------------------


def with_vector(name: str, *values: float, type: str = "Entity") -> NamedNode:
    return NamedNode(key=name, type=type, names=(name,), vector=np.array(values, dtype=np.float32))


def test_near_vectors_propose_other_words_for_one_thing() -> None:
    outcome = Resolver().resolve(
        with_vector("the Big Apple", 1, 0.1), [with_vector("New York City", 1, 0.12)]
    )
    assert isinstance(outcome, Resolved)
    assert (outcome.match.tier, outcome.match.proposes) == ("embedding", True)
    assert outcome.match.score == pytest.approx(0.9998, abs=1e-3)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Red Cross", "Red Cross Society"),
        ("Niger", "Nigeria"),
        ("Signal", "Signals"),
        ("Salesforce", "Salesforce.com"),
        ("王芳", "王薇"),
        ("my landlord", "my neighbour"),
        ("Paul Martin", "Martin Paul"),
    ],
)
def test_near_vectors_say_nothing_where_letters_have_a_say(one: str, other: str) -> None:
    outcome = Resolver().resolve(with_vector(one, 1, 0), [with_vector(other, 1, 0)])
    assert acted(outcome) == []


@pytest.mark.parametrize("values", [(0.5, 1.0), (0.0, 0.0), (1.0, 0.1, 0.0)])
def test_far_empty_and_unlike_vectors_say_nothing(values: tuple[float, ...]) -> None:
    options = [with_vector("Gotham City", *values)]
    assert Resolver().resolve(with_vector("the Big Apple", 1, 0.1), options) == New()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("GPT-4", "GPT-4o"),
        ("North Korea", "South Korea"),
        ("Monday", "Tuesday"),
        ("John Smith", "Jane Smith"),
        ("my manager", "your manager"),
    ],
)
def test_no_vector_overrides_a_guard(one: str, other: str) -> None:
    outcome = Resolver().resolve(with_vector(one, 1, 0), [with_vector(other, 1, 0)])
    assert isinstance(outcome, New)
    assert outcome.considered[0].evidence["vetoes"]
