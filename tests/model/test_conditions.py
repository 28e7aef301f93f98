"""Filters are checked when they are given, and mean one thing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from worlddb import Id, InvalidInputError, Node
from worlddb.model.conditions import condition_of, matches

DAY = datetime(2026, 3, 1, tzinfo=UTC)


def node(metadata: dict[str, Any], **fields: Any) -> Node:
    ident = Id(bytes(32))
    given = {"type": "Memory", "name": "", "content": "x", "valid_to": None, "provenance": ()}
    times = dict.fromkeys(("created_at", "valid_from", "known_from"), DAY)
    return Node(
        id=ident, state=ident, parent=None, metadata=metadata, **{**given, **times, **fields}
    )


SAMPLE = {
    "project": "x",
    "priority": 3,
    "done": True,
    "none": None,
    "tags": ["a", "team"],
    "who": {"name": "Ada", "langs": ["en", "fr"]},
}


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ({"project": "x"}, True),
        ({"project": ["y", "x"]}, True),
        ({"project": {"$ne": "x"}}, False),
        ({"missing": {"$ne": "x"}}, True),
        ({"missing": {"$nin": ["x"]}}, True),
        ({"missing": None}, True),
        ({"none": None}, True),
        ({"project": None}, False),
        ({"project": [None, "x"]}, True),
        ({"missing": [None, "x"]}, True),
        ({"priority": {"$gte": 3, "$lt": 4}}, True),
        ({"priority": {"$gt": 3}}, False),
        ({"priority": "3"}, False),
        ({"done": 1}, False),
        ({"priority": {"$gt": "2"}}, False),
        ({"done": {"$gte": 0}}, False),
        ({"tags": "a"}, True),
        ({"tags": {"$contains": "a"}}, True),
        ({"tags": {"$contains": "te"}}, False),
        ({"project": {"$contains": "x"}}, True),
        ({"who.name": "Ada"}, True),
        ({"who.name": {"$contains": "Ad"}}, True),
        ({"who.langs": {"$in": ["de", "fr"]}}, True),
        ({"missing": {"$exists": True}}, False),
        ({"missing": {"$exists": False}, "tags": {"$exists": True}}, True),
        ({"$or": [{"project": "y"}, {"priority": {"$lte": 3}}]}, True),
        ({"$and": [{"project": "x"}, {"$not": {"done": True}}]}, False),
        ({"priority": {"$not": {"$gt": 5}}}, True),
        ({"type": "Memory"}, True),
        ({"metadata.type": "Memory"}, False),
        ({"at": {"$gte": "2026-03-01", "$lt": "2026-03-02"}}, True),
        ({"valid_from": {"$lt": DAY}}, False),
        ({"expires_at": {"$exists": True}}, False),
        ({"source": "a.md"}, True),
        ({"source": {"$contains": ".md"}}, True),
        ({"speaker": "user"}, False),
    ],
)
def test_a_filter_is_true_of_a_node_or_not(where: dict[str, Any], wanted: bool) -> None:
    assert matches(node(SAMPLE, provenance=("a.md",)), condition_of(where)) is wanted


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ({}, "at least one"),
        ([], "mapping"),
        ({"a": {}}, "operator"),
        ({"a": {"$near": 1}}, r"no operator '\$near'"),
        ({"$nor": [{"a": 1}]}, r"\$and, \$or, \$not"),
        ({"$or": {"a": 1}}, "list of conditions"),
        ({"$or": []}, "list of conditions"),
        ({"a": {"$in": []}}, "1 to"),
        ({"a": {"$in": "x"}}, "1 to"),
        ({"a": {"$in": list(range(1001))}}, "1 to 1000"),
        ({"a": {"$gt": True}}, "number or text"),
        ({"a": {"$gt": None}}, "number or text"),
        ({"a": {"$eq": [1]}}, "text, a number"),
        ({"a": object()}, "text, a number"),
        ({"a": {"$exists": 1}}, "true or false"),
        ({"at": "yesterday"}, "ISO-8601"),
        ({1: 2}, "name of a field"),
        ({"a": "x" * 5000}, "characters"),
        ({f"k{n}": n for n in range(101)}, "more than 100"),
    ],
)
def test_a_wrong_filter_says_what_is_wrong(where: Any, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        condition_of(where)


@pytest.mark.parametrize("deep", ["$not", "$and", "field"])
def test_a_filter_is_bounded_in_depth(deep: str) -> None:
    where: Any = {"a": 1}
    for _ in range(20):
        if deep == "field":
            where = {"a": {"$not": where["a"] if isinstance(where, dict) else where}}
        else:
            where = {deep: where if deep == "$not" else [where]}
    with pytest.raises(InvalidInputError, match="nested deeper"):
        condition_of(where)
