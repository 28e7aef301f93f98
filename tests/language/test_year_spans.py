"""Years and spans of years in texts and questions."""

from __future__ import annotations

import pytest

from worlddb.language.ranking_features import NO_END, asked_years, year_spans


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("editor from 1940 to 1960 , and again in 1985", [(1940, 1960), (1985, 1985)]),
        (
            "the old hall ( 2010–2011 ) and the new one ( 2011–present )",
            [(2010, 2011), (2011, NO_END)],
        ),
        ("in the season 1990-95", [(1990, 1995)]),
        ("from July 1929 until May 3, 1943", [(1929, 1943)]),
        ("born on March 7, 1912, died on 2003-05-07", [(1912, 1912), (2003, 2003)]),
        ("since 2011 and 12 people", [(2011, 2011)]),
        ("it cost 1,990.50 dollars, number 1234567", []),
        ("from 1990 to 1980", [(1990, 1990)]),
    ],
)
def test_years_and_spans_are_read(text: str, spans: list[tuple[int, int]]) -> None:
    assert year_spans(text) == spans


def test_a_question_asks_for_one_span_over_all_its_years() -> None:
    assert asked_years("Who led it from Mar 1993 to May 1994?") == (1993, 1994)
    assert asked_years("Where did she live in 1990, in 1993?") == (1990, 1993)
    assert asked_years("Where does she live?") is None
