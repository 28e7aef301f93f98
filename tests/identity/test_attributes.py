"""Attributes: agreement corroborates, disagreement on what tells people apart is a veto."""

from __future__ import annotations

import pytest

from identity.people import acted, person, resolve
from worlddb.identity.likelihood import Corroboration, cleaned, corroborate
from worlddb.identity.match_values import DEFAULT_SETTINGS, New, Resolved


def said(left: dict[str, str], right: dict[str, str]) -> Corroboration:
    return corroborate(cleaned(left), cleaned(right), DEFAULT_SETTINGS)


@pytest.mark.parametrize(
    ("one", "other"), [("1984-05-01", "1984-05-01"), ("1984-05-01", "19840501")]
)
def test_the_same_birth_date_is_strong(one: str, other: str) -> None:
    found = said({"date_of_birth": one}, {"Date of Birth": other})
    assert found.agree == ("date_of_birth",)
    assert found.strong
    assert found.weight > 5


@pytest.mark.parametrize("other", ["19840502", "19840105", "19845001", "1984"])
def test_a_slip_in_a_birth_date_says_a_little(other: str) -> None:
    found = said({"dob": "19840501"}, {"dob": other})
    assert found.close == ("dob",)
    assert 0 < found.weight < 5
    assert not found.strong


def test_another_birth_date_forbids() -> None:
    assert said({"born": "1984-05-01"}, {"born": "1971-11-23"}).forbid == ("born",)
    outcome = resolve(
        person("Ada Quill", birth_date="1984-05-01"), person("Ada Quill", birth_date="1971-11-23")
    )
    assert isinstance(outcome, New)
    assert outcome.considered[0].evidence["vetoes"] == ["birth_date differs"]


def test_another_address_lowers_but_does_not_forbid() -> None:
    found = said({"suburb": "Richmond"}, {"suburb": "Carlton"})
    assert found.differ == ("suburb",)
    assert found.weight < 0
    assert not found.forbid
    outcome = resolve(person("Ada Quill", suburb="Richmond"), person("Ada Quill", suburb="Carlton"))
    assert acted(outcome) == ["Ada Quill"]


def test_what_a_household_shares_is_bounded() -> None:
    home = {"suburb": "Richmond", "street": "Long Street", "city": "Melbourne", "area": "Victoria"}
    assert (
        said(home, home).weight
        == said({**home, "zone": "Southern"}, {**home, "zone": "Southern"}).weight
    )


def test_nearly_equal_values_say_less_than_equal_ones() -> None:
    equal = said({"suburb": "Richmond"}, {"suburb": "richmond "})
    close = said({"suburb": "Richmond"}, {"suburb": "Richmnod"})
    assert equal.agree == close.close == ("suburb",)
    assert equal.weight > close.weight > 0


def test_short_values_say_little() -> None:
    assert said({"state": "vic"}, {"state": "vic"}).weight < 1


def test_an_identifier_is_strong_and_another_one_forbids_nothing() -> None:
    assert said({"email": "a@b.org"}, {"email": "A@B.ORG"}).strong
    other = said({"email": "a@b.org"}, {"email": "ada@home.net"})
    assert other.differ == ("email",)
    assert not other.forbid


def test_another_gender_weighs_heavily() -> None:
    assert said({"gender": "female"}, {"gender": "male"}).weight < -3


def test_empty_values_and_attributes_of_one_side_say_nothing() -> None:
    assert said({"suburb": " "}, {"suburb": "Richmond"}).weight == 0
    assert said({"suburb": "Richmond"}, {"city": "Melbourne"}).weight == 0


def test_agreement_lifts_a_doubtful_name() -> None:
    whole = person("Rhiannon Kolodina", dob="19801125", suburb="Richmond")
    assert acted(resolve(person("Kolodina"), whole)) == []
    part = person("Kolodina", dob="19801125", suburb="Richmond")
    assert acted(resolve(part, whole)) == ["Rhiannon Kolodina"]


def test_one_common_attribute_does_not_lift_a_doubtful_name() -> None:
    assert (
        acted(resolve(person("Sarah", city="Melbourne"), person("Sarah Chen", city="Melbourne")))
        == []
    )


def test_another_given_name_needs_a_birth_date_and_more() -> None:
    left = person("Emilia Warneke", dob="19801125", suburb="Richmond")
    assert acted(resolve(left, person("Jayden Warneke", dob="19801125", suburb="Richmond")))
    assert not acted(resolve(left, person("Jayden Warneke", suburb="Richmond")))
    assert not acted(resolve(left, person("Jayden Warneke", dob="19710203", suburb="Richmond")))


def test_agreement_decides_between_two_of_one_name() -> None:
    known = person("John Smith", key="known", dob="19801125")
    other = person("John Smith", key="other", suburb="Carlton")
    outcome = resolve(person("John Smith", dob="19801125"), known, other)
    assert isinstance(outcome, Resolved)
    assert outcome.match.option is known
    assert outcome.match.reuses


def test_a_corroborated_nickname_resolves() -> None:
    alone = resolve(person("Bob Tanner"), person("Robert Tanner"))
    assert not isinstance(alone, Resolved)
    assert acted(alone) == ["Robert Tanner"]
    both = resolve(person("Bob Tanner", dob="19801125"), person("Robert Tanner", dob="19801125"))
    assert isinstance(both, Resolved)
