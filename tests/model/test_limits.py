"""Limits: what is refused before anything is hashed or written, and what just fits."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worlddb import InvalidInputError, Limits
from worlddb.model.inputs import check_notes, check_type, encode_metadata, encode_text

LIMITS = Limits()
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=4
        )
    ),
    max_leaves=15,
)


def test_text_is_measured_in_bytes_of_utf_8() -> None:
    assert encode_text("ü" * 5, "name", 10) == "ü".encode() * 5
    with pytest.raises(InvalidInputError, match="name: 12 bytes, the limit is 10; shorten"):
        encode_text("🙂" * 3, "name", 10)


@pytest.mark.parametrize("bad", ["\0", "a\0b", "end\0"])
def test_nul_is_refused(bad: str) -> None:
    with pytest.raises(InvalidInputError, match=r"content: .*NUL.*remove"):
        encode_text(bad, "content", 100)


@pytest.mark.parametrize("bad", ["\ud800", "a\udfffb"])
def test_a_lone_surrogate_is_refused(bad: str) -> None:
    with pytest.raises(InvalidInputError, match=r"content: .*surrogate.*errors='replace'"):
        encode_text(bad, "content", 100)


@pytest.mark.parametrize("bad", [None, 5, 1.5, b"bytes", bytearray(b"x"), ["a"], {}, object()])
def test_what_is_no_text_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"name: give text, not {type(bad).__name__}"):
        encode_text(bad, "name", 100)


@pytest.mark.parametrize("good", ["Fact", "a", "Fait été", "日本", "x" * 128, "is a"])
def test_a_type_is_any_printable_word(good: str) -> None:
    check_type(good, LIMITS)


@pytest.mark.parametrize(
    "bad", ["", " ", " Fact", "Fact ", "a\nb", "a\tb", "\0", "\x7f", "\u200b", "x" * 129, "\ud800"]
)
def test_what_is_no_type_is_refused(bad: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^type: "):
        check_type(bad, LIMITS)


def test_notes_are_distinct_and_keep_their_order() -> None:
    assert check_notes(["b", "a", "b"], "aliases", LIMITS) == ("b", "a")
    assert check_notes("one", "source", LIMITS) == ("one",)
    assert check_notes(None, "source", LIMITS) == check_notes((), "source", LIMITS) == ()


@pytest.mark.parametrize("bad", ["", " ", "\t\n", "\u3000", "\u00a0"])
def test_an_alias_of_white_space_is_refused(bad: str) -> None:
    with pytest.raises(InvalidInputError, match=r"aliases: .*leave it out"):
        check_notes(["fine", bad], "aliases", LIMITS)


@pytest.mark.parametrize("bad", [5, 1.5, True, object(), [None], [5], b"ab", {"a": 1}, [["a"]]])
def test_notes_of_another_kind_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^aliases: "):
        check_notes(bad, "aliases", LIMITS)


def test_there_are_limits_on_notes() -> None:
    check_notes([str(number) for number in range(1000)], "aliases", LIMITS)
    with pytest.raises(InvalidInputError, match="aliases: 1001 given, the limit is 1000"):
        check_notes([str(number) for number in range(1001)], "aliases", LIMITS)
    with pytest.raises(InvalidInputError, match="aliases: 4,097 bytes"):
        check_notes(["x" * 4097], "aliases", LIMITS)


# -- metadata --------------------------------------------------------------------------------------


@settings(deadline=None, derandomize=True, database=None)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON, max_size=5))
def test_metadata_is_canonical_whatever_the_order_of_its_keys(data: dict[str, Any]) -> None:
    text = encode_metadata(data, LIMITS)
    assert encode_metadata(dict(reversed(data.items())), LIMITS) == text
    assert encode_metadata(json.loads(text), LIMITS) == text
    assert json.loads(text) == data


def test_a_mapping_of_any_kind_is_metadata() -> None:
    nested = MappingProxyType({"b": MappingProxyType({"c": (1, 2)}), "a": []})
    assert encode_metadata(nested, LIMITS) == '{"a":[],"b":{"c":[1,2]}}'
    assert encode_metadata(None, LIMITS) == encode_metadata({}, LIMITS) == "{}"


@pytest.mark.parametrize(
    "bad",
    [
        {"a": float("nan")},
        {"a": [float("inf")]},
        {"a": {"b": -float("inf")}},
        {1: "a"},
        {None: "a"},
        {True: "a"},
        {"a": {2: "b"}},
        {"a": [{("t",): 1}]},
        {"a": b"bytes"},
        {"a": {1, 2}},
        {"a": object()},
        {"a": 1 + 2j},
        {"a": "\ud800"},
        {"\ud800": 1},
        {"a": 10**5000},
        {"a": "x" * (1 << 16)},
    ],
)
def test_what_json_cannot_say_is_no_metadata(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^metadata: "):
        encode_metadata(bad, LIMITS)


@pytest.mark.parametrize("bad", [[1], ["a", "b"], "text", 5, 1.5, True, b"x", [("a", 1)], object()])
def test_metadata_that_is_no_mapping_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^metadata: give a mapping, not "):
        encode_metadata(bad, LIMITS)


@pytest.mark.parametrize("bad", [[], (), "", 0, False, b"", set()])
def test_an_empty_value_of_another_kind_is_no_metadata_either(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^metadata: give a mapping, not "):
        encode_metadata(bad, LIMITS)


def test_metadata_that_holds_itself_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["self"] = [circle]
    with pytest.raises(InvalidInputError, match=r"^metadata: "):
        encode_metadata(circle, LIMITS)


@pytest.mark.parametrize("depth", [100_000, 5_000, 1_000])
def test_metadata_that_is_too_deep_is_refused(depth: int) -> None:
    with pytest.raises(InvalidInputError, match=r"^metadata: "):
        encode_metadata(nested(depth), LIMITS)


def test_how_deep_metadata_may_be_does_not_depend_on_the_caller() -> None:
    """What was written at the top of a program must be read, checked and replayed far below it."""
    fits = [depth for depth in range(1, 1_000) if accepted(depth)]
    deepest = max(fits)
    assert fits == list(range(1, deepest + 1))
    assert below(300, lambda: accepted(deepest))


def nested(depth: int) -> dict[str, Any]:
    data: Any = 1
    for _ in range(depth):
        data = [data]
    return {"a": data}


def accepted(depth: int) -> bool:
    try:
        encode_metadata(nested(depth), LIMITS)
    except InvalidInputError:
        return False
    return True


def below(frames: int, call: Callable[[], bool]) -> bool:
    """Return what `call` says that many frames further down the stack."""
    return below(frames - 1, call) if frames else call()
