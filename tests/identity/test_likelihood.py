"""Likelihood: odds from names, counts and attributes."""

from __future__ import annotations

from worlddb.identity.likelihood import (
    NO_CORROBORATION,
    Corroboration,
    Judgement,
    judge,
    probability,
)
from worlddb.identity.match_values import DEFAULT_SETTINGS, Population
from worlddb.identity.name_comparison import compare
from worlddb.language.proper_names import read_name


def judged(
    left: str,
    right: str,
    said: Corroboration = NO_CORROBORATION,
    *,
    names: int = 5_000,
    holding: int = 5,
) -> Judgement:
    one, other = read_name(left), read_name(right)
    population = Population(names, lambda word: holding)
    likeness = compare(one, other, 0.8)
    return judge(one, other, likeness, said, population, DEFAULT_SETTINGS, person=True)


def test_probabilities_stay_between_none_and_one() -> None:
    assert probability(0) == 0.5
    assert 0 < probability(-1e9) < 1e-9
    assert 1 - 1e-9 < probability(1e9) <= 1


def test_the_less_alike_the_less_likely() -> None:
    found = [
        judged("ada quill", other).confidence
        for other in ("ada quill", "quill ada", "ada quilll", "a quill", "ada hooper")
    ]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == len(found)


def test_the_more_names_there_are_the_more_fit_by_chance() -> None:
    few, many = judged("ada quill", "ada quill"), judged("ada quill", "ada quill", names=10**6)
    common = judged("ada quill", "ada quill", holding=500)
    assert few.confidence > 0.99
    assert common.confidence < 0.1
    assert few.evidence["by_chance"] < common.evidence["by_chance"]
    assert many.evidence["by_chance"] < few.evidence["by_chance"]  # the same counts, but rarer


def test_attributes_outweigh_a_doubt_only_if_they_are_strong_or_several() -> None:
    weak = Corroboration(3.0, agree=("city",))
    several = Corroboration(5.0, agree=("city", "street"))
    strong = Corroboration(7.0, strong=True, agree=("dob",))
    assert judged("sarah", "sarah chen").doubts == ("part of a name",)
    assert judged("sarah", "sarah chen", weak).doubts == ("part of a name",)
    assert judged("sarah", "sarah chen", several).doubts == ()
    assert judged("sarah", "sarah chen", strong).doubts == ()


def test_another_word_is_outweighed_by_what_tells_people_apart_alone() -> None:
    several = Corroboration(7.0, agree=("city", "street", "state"))
    strong = Corroboration(7.0, strong=True, agree=("dob",))
    assert judged("sarah chen", "lena chen", several).doubts == ("words differ",)
    assert judged("sarah chen", "lena chen", strong).doubts == ()


def test_two_spellings_that_several_bear_are_hardly_a_slip() -> None:
    rare = judged("ada shepherd", "ada sheperd", holding=2)
    known = judged("ada shepherd", "ada sheperd", holding=3)
    assert known.confidence < rare.confidence - 0.1
