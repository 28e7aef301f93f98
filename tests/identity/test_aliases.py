"""The conversational alias set, held to its bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench.aliases import NOBODY, Case, Result, cases, run

from worlddb.embed.embedder import checked
from worlddb.embed.embedder_catalog import DEFAULT, embedder_named
from worlddb.identity.match_values import NamedNode
from worlddb.identity.resolver import Resolver

# A middle initial that is another man's, and two spellings that are two women's.
KNOWN_WRONG = {"Michael Jordan", "Carey Mulligan"}
# A nickname nobody lists, acronyms, two slips, two short forms, a plural.
KNOWN_MISSED = {
    "Will Turner", "Buffy Summers", "Aym Dudlley", "Muammar Gaddafi", "NYC", "Gus Fring",
    "Brussels",
}  # fmt: skip


@pytest.fixture(scope="module")
def results() -> list[Result]:
    resolver = Resolver()
    return [run(case, resolver) for case in cases()]


def test_the_set_is_large_and_asks_both_ways(results: list[Result]) -> None:
    answers = sum(result.case.right != NOBODY for result in results)
    assert len(results) > 500
    assert answers > 200
    assert len({result.case.kind for result in results}) > 15


def test_what_is_acted_on_is_right(results: list[Result]) -> None:
    acted = sum(len(result.matches) for result in results)
    assert sum(result.right for result in results) / acted >= 0.98


def test_most_answers_are_found(results: list[Result]) -> None:
    answers = [result for result in results if result.case.right != NOBODY]
    assert sum(bool(result.right) for result in answers) / len(answers) >= 0.95


def test_where_it_fails_is_known(results: list[Result]) -> None:
    assert {item.case.candidate.names[0] for item in results if item.wrong} == KNOWN_WRONG
    assert {item.case.candidate.names[0] for item in results if item.missed} == KNOWN_MISSED


def test_the_index_finds_what_the_resolver_would(results: list[Result]) -> None:
    lost = [str(result) for result in results if result.right and not result.blocked]
    assert lost == []


def test_vectors_of_the_default_embedder_make_nothing_worse(results: list[Result]) -> None:
    asked = list(cases())
    names = sorted({item.names[0] for case in asked for item in (case.candidate, *case.options)})
    vectors = dict(zip(names, checked(embedder_named(DEFAULT), names, "document"), strict=True))

    def placed(item: NamedNode) -> NamedNode:
        return replace(item, vector=vectors[item.names[0]])

    def with_vectors(case: Case) -> Case:
        options = tuple(map(placed, case.options))
        return replace(case, candidate=placed(case.candidate), options=options)

    resolver = Resolver()
    again = [run(with_vectors(case), resolver) for case in asked]
    assert sum(item.wrong for item in again) <= sum(item.wrong for item in results)
    assert sum(item.right for item in again) >= sum(item.right for item in results)
