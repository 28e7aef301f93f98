"""The resolver: tiers in order, early stop, ties, and what the answer says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest

from identity.people import acted, named, only, person, resolve
from worlddb.errors import InvalidInputError
from worlddb.identity.match_values import (
    Ambiguous,
    Match,
    NamedNode,
    New,
    Resolved,
    ResolverSettings,
    acted_on,
)
from worlddb.identity.resolver import Resolver


def test_without_options_everything_is_new() -> None:
    assert resolve("Sarah Chen") == New()
    assert resolve("", "Sarah Chen") == New()
    assert Resolver().resolve(NamedNode(key=1, type="Entity", names=()), [named("x")]) == New()


def test_the_first_sure_tier_answers() -> None:
    outcome = resolve("Sarah Chen", "Sarah Cehn", "Sarah Chen", "Dr. Sarah Chen")
    assert isinstance(outcome, Resolved)
    assert outcome.match.option.names == ("Sarah Chen",)
    assert outcome.matches == (outcome.match,)


def test_a_name_without_a_slip_stands_out_among_slips() -> None:
    outcome = resolve("Sarah Kowalczyk-Meadow", "Sarah Kowalczyk Meadow", "Sarah Kowalczyk Meadwo")
    assert acted(outcome) == ["Sarah Kowalczyk Meadow"]


def test_several_of_one_name_are_ambiguous_and_all_proposed() -> None:
    one, two = person("Ada Quill", key=1), person("Ada Quill", key=2)
    for options in ((one, two), (two, one)):
        outcome = resolve(person("Ada Quill"), *options, person("Ada Qulil", key=3))
        assert isinstance(outcome, Ambiguous)
        assert [match.option.key for match in outcome.options] == [1, 2]


def test_the_answer_does_not_depend_on_the_order_of_the_options() -> None:
    options = [
        named("Sarah Cehn", key=1), named("Sarah Chen Lee", key=2), named("Sara Chen", key=3),
        named("Sarah Chen 2", key=4), named("S. Chen", key=5),
    ]  # fmt: skip
    seen = set()
    for order in permutations(options):
        outcome = resolve("Sarah Chen", *order)
        found = [(match.option.key, match.tier, match.confidence) for match in outcome.matches]
        seen.add((type(outcome), tuple(found)))
    assert len(seen) == 1


def test_an_earlier_tier_that_is_unsure_is_not_overruled_by_a_vaguer_one() -> None:
    vector = np.array([1.0, 0.0], dtype=np.float32)
    candidate = NamedNode(key="c", type="Entity", names=("Whale",), vector=vector)
    part = NamedNode(key="part", type="Entity", names=("Whale Project",))
    near = NamedNode(key="near", type="Entity", names=("Sea Monster",), vector=vector)
    outcome = Resolver().resolve(candidate, [part, near])
    assert isinstance(outcome, Ambiguous)
    assert {match.option.key for match in outcome.matches} == {"part", "near"}
    assert isinstance(Resolver().resolve(candidate, [near]), Resolved)


def test_new_says_what_came_close_and_what_kept_it_apart() -> None:
    outcome = resolve("iPhone 15", "iPhone 14", "iPhone")
    assert isinstance(outcome, New)
    assert outcome.matches == ()
    assert [match.evidence["vetoes"] for match in outcome.considered] == [["numbers differ"]] * 2
    assert all(match.confidence == 0 for match in outcome.considered)


def test_what_is_considered_is_bounded() -> None:
    outcome = resolve("iPhone 99", *(f"iPhone {i}" for i in range(20)))
    assert isinstance(outcome, New)
    assert len(outcome.considered) == ResolverSettings().considered_max


def test_evidence_is_plain_data() -> None:
    outcome = resolve(
        person("Bob Tanner", dob="19801125", suburb="Richmond"),
        person("Robert Tanner", dob="19801125", suburb="Carlton"),
    )
    evidence = only(outcome).evidence
    assert json.loads(json.dumps(evidence)) == {
        "by_chance": pytest.approx(0.0, abs=0.01),
        "words": [["bob", "robert", "nickname"], ["tanner", "tanner", "same"]],
        "attributes": {"agree": ["dob"], "differ": ["suburb"]},
    }


# -- tiebreakers -----------------------------------------------------------------------------------


def test_a_tiebreaker_chooses_among_the_undecided() -> None:
    asked: list[tuple[NamedNode, Sequence[Match]]] = []

    def last(candidate: NamedNode, matches: Sequence[Match]) -> Match:
        asked.append((candidate, matches))
        return matches[-1]

    options = [named("Sarah Chen", key=1), named("Sarah Miller", key=2)]
    outcome = Resolver(tiebreaker=last).resolve(named("Sarah"), options)
    assert isinstance(outcome, Resolved)
    assert (outcome.match.tier, outcome.match.option.key) == ("tiebreaker", 2)
    assert (outcome.match.proposes, outcome.match.reuses) == (True, False)
    assert outcome.match.evidence["chosen_from"] == "fuzzy"
    assert [match.option.key for match in asked[0][1]] == [1, 2]


def test_a_tiebreaker_that_picks_an_equal_name_reuses_it() -> None:
    options = [person("Ada Quill", key=1), person("Ada Quill", key=2)]
    resolver = Resolver(tiebreaker=lambda candidate, matches: matches[1])
    assert only(resolver.resolve(person("Ada Quill"), options)).reuses


def test_a_tiebreaker_may_leave_it_open() -> None:
    resolver = Resolver(tiebreaker=lambda candidate, matches: None)
    assert isinstance(resolver.resolve(named("Sarah"), [named("Sarah Chen")]), Ambiguous)


def test_a_tiebreaker_is_not_asked_when_there_is_no_tie_and_never_sees_a_veto() -> None:
    def never(candidate: NamedNode, matches: Sequence[Match]) -> Match | None:
        raise AssertionError

    resolver = Resolver(tiebreaker=never)
    assert isinstance(resolver.resolve(named("Tesla"), [named("Tesla", key=1)]), Resolved)
    assert isinstance(resolver.resolve(named("GPT-4"), [named("GPT-5")]), New)


def test_a_tiebreaker_cannot_choose_what_it_was_not_offered() -> None:
    stray = only(resolve("Tesla", "Tesla"))
    resolver = Resolver(tiebreaker=lambda candidate, matches: stray)
    with pytest.raises(InvalidInputError, match="one of the matches"):
        resolver.resolve(named("Sarah"), [named("Sarah Chen")])


def test_by_default_the_surer_tier_is_believed() -> None:
    vector = np.array([1.0, 0.0], dtype=np.float32)
    candidate = NamedNode(key="c", type="Entity", names=("Wraight",), vector=vector)
    sounds = NamedNode(key="sounds", type="Entity", names=("Rait",))
    near = NamedNode(key="near", type="Entity", names=("the composer",), vector=vector)
    outcome = Resolver().resolve(candidate, [sounds, near])
    assert next(acted_on(outcome)).tier == "embedding"


# -- settings --------------------------------------------------------------------------------------


def test_each_tier_can_be_switched_off() -> None:
    def tiers(*names: str) -> Resolver:
        return Resolver(ResolverSettings(tiers=frozenset(names)))

    exact, slip = [named("Sarah Chen")], [named("Sarah Cehn")]
    assert tiers("fuzzy", "phonetic").resolve(named("Sarah Chen"), slip) != New()
    assert tiers("exact").resolve(named("Sarah Chen"), slip) == New()
    assert only(tiers("exact").resolve(named("Sarah Chen"), exact)).tier == "exact"
    assert only(tiers("fuzzy").resolve(named("Sarah Chen"), exact)).tier == "fuzzy"


def test_thresholds_are_settings() -> None:
    strict = Resolver(ResolverSettings(jaro_winkler=0.99))
    assert strict.resolve(named("Jenifer Aniston"), [named("Jennifer Aniston")]) == New()
    sure = Resolver(ResolverSettings(propose_above=1.0, reuse_above=1.0))
    assert acted(sure.resolve(named("Tesla"), [named("Tesla", key=1)])) == []
    short = Resolver(ResolverSettings(short_letters_max=10))
    assert acted(short.resolve(named("Sarah Cehn"), [named("Sarah Chen")])) == []
    long = Resolver(ResolverSettings(name_words_max=1))
    assert long.resolve(named("Sarah Chen"), [named("Sarah Chen")]) == New()


@pytest.mark.parametrize(
    "wrong",
    [
        {"tiers": frozenset({"guess"})},
        {"cosine": 1.5},
        {"propose_above": -0.1},
        {"name_words_max": -1},
        {"name_letters_max": 100_000},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        ResolverSettings(**wrong)  # type: ignore[arg-type]


# -- determinism -----------------------------------------------------------------------------------

PROGRAM = """
from bench.aliases import cases
from worlddb.identity.store_resolver import block_keys
from worlddb.identity.resolver import Resolver
for case in cases():
    outcome = Resolver().resolve(case.candidate, case.options)
    shown = outcome.matches or getattr(outcome, "considered", ())
    print(type(outcome).__name__, sorted(block_keys(case.candidate.names[0])))
    print([(m.option.key, m.tier, m.score, m.confidence, m.evidence) for m in shown])
"""


def test_every_process_gives_the_same_answers() -> None:
    answers = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert answers[0] == answers[1]
    assert len(answers[0].splitlines()) > 500


def test_importing_the_values_keys_and_settings_loads_nothing_heavy() -> None:
    program = (
        "import sys, worlddb.index.name_index, worlddb.identity.resolver; "
        "print([m for m in ('rapidfuzz', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
