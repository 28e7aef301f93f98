"""Properties that hold for any names, in any script."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from thinning import examples
from worlddb.identity.match_values import (
    DEFAULT_SETTINGS,
    NamedNode,
    Population,
    Resolved,
    Verdict,
    acted_on,
)
from worlddb.identity.name_comparison import compare
from worlddb.identity.resolver import Resolver, is_sentence, vetoes_of
from worlddb.identity.store_resolver import block_keys
from worlddb.language.proper_names import read_name

hard = settings(derandomize=True, deadline=None, database=None, max_examples=examples(150, 60))

PARTS = """
John Jon Jane Robert Bob Smith Smyth Chen Cheng J. K. Dr. Mr. Mrs. Jr. II Inc. Apple North South
York New iPhone Youssef Yusuf O'Brien Wendy's my the of and 4 4o 2023 王伟 Петров É ß 🙂
"""
WORDS = PARTS.split()
names = st.one_of(
    st.text(max_size=30),
    st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join),
    st.from_regex(r"[A-Z][a-z]{1,9} [A-Z][a-z]{1,9}", fullmatch=True),
)
types = st.sampled_from(["Entity", "Person", "Place"])
attributes = st.dictionaries(
    st.sampled_from(["dob", "suburb", "email", "Gender"]), st.text(max_size=12), max_size=3
)


@st.composite
def nameds(draw: st.DrawFn) -> NamedNode:
    return NamedNode(
        key=draw(st.integers(0, 1_000_000)),
        type=draw(types),
        names=tuple(draw(st.lists(names, min_size=1, max_size=3))),
        attributes=draw(attributes),
    )


populations = st.tuples(st.integers(0, 1_000_000), st.integers(0, 5_000)).map(
    lambda pair: Population(pair[0], lambda word: pair[1])
)


def shape(outcome: Verdict) -> list[tuple[object, ...]]:
    shown = outcome.matches or getattr(outcome, "considered", ())
    return [(type(outcome), m.option.key, m.tier, m.score, m.confidence, m.proposes) for m in shown]


@hard
@given(names, names)
def test_comparing_is_symmetric(one: str, other: str) -> None:
    left, right = read_name(one), read_name(other)
    there, back = compare(left, right, 0.8), compare(right, left, 0.8)
    assert abs(there.score - back.score) < 1e-9
    assert 0 <= there.score <= 1 + 1e-9
    assert {(p.left, p.right, p.kind) for p in there.pairs} == {
        (p.right, p.left, p.kind) for p in back.pairs
    }
    assert (there.more_left, there.more_right) == (back.more_right, back.more_left)
    assert (there.inside, there.turned) == (back.inside, back.turned)


@hard
@given(names, names, st.booleans())
def test_guards_are_symmetric_and_let_equal_names_pass(one: str, other: str, person: bool) -> None:
    left, right = read_name(one), read_name(other)
    there = vetoes_of(left, right, compare(left, right, 0.8), person)
    back = vetoes_of(right, left, compare(right, left, 0.8), person)
    assert there == back
    assert vetoes_of(left, left, compare(left, left, 0.8), person) == []


@hard
@given(nameds(), st.lists(nameds(), max_size=5, unique_by=lambda item: item.key), populations)
def test_any_names_give_an_answer_whatever_their_order(
    candidate: NamedNode, options: list[NamedNode], population: Population
) -> None:
    resolver = Resolver()
    outcome = resolver.resolve(candidate, options, population)
    shuffled = options[:]
    random.Random(3).shuffle(shuffled)
    assert shape(resolver.resolve(candidate, shuffled, population)) == shape(outcome)
    for match in outcome.matches:
        assert 0 <= match.confidence <= 1
        assert match.confidence >= DEFAULT_SETTINGS.consider_above
        assert "vetoes" not in match.evidence
        assert not (match.reuses and match.proposes)
    if isinstance(outcome, Resolved):
        assert outcome.match.tier != "phonetic"


@hard
@given(nameds(), nameds(), populations)
def test_whether_two_are_one_does_not_depend_on_who_came_first(
    one: NamedNode, other: NamedNode, population: Population
) -> None:
    resolver = Resolver()
    there = resolver.resolve(one, [other], population).matches
    back = resolver.resolve(other, [one], population).matches
    assert [(m.tier, m.reuses, m.proposes) for m in there] == [
        (m.tier, m.reuses, m.proposes) for m in back
    ]
    assert all(abs(m.confidence - n.confidence) < 1e-9 for m, n in zip(there, back, strict=True))


@hard
@given(names, st.integers(0, 99), st.integers(0, 99), types, populations)
def test_names_with_other_numbers_are_never_acted_on(
    name: str, first: int, second: int, type: str, population: Population
) -> None:
    one = NamedNode(key=1, type=type, names=(f"{name} {first}",))
    other = NamedNode(key=2, type=type, names=(f"{name} {second}",))
    found = list(acted_on(Resolver().resolve(one, [other], population)))
    assert first == second or not found


@hard
@given(names, types)
def test_a_name_is_itself(name: str, type: str) -> None:
    one, other = (NamedNode(key=key, type=type, names=(name,)) for key in (1, 2))
    found = list(acted_on(Resolver().resolve(one, [other])))
    parts = read_name(name)
    is_name = bool(parts.key) and not is_sentence(parts, DEFAULT_SETTINGS)
    assert [match.reuses for match in found] == [True] * is_name


@hard
@given(names)
def test_keys_are_few_and_blind_to_case(name: str) -> None:
    keys = block_keys(name)
    assert len(keys) <= 18
    assert all(key[0] in "=nwpbis" for key in keys)
    if name.isascii():
        assert block_keys(name.upper()) & keys or not keys
