"""Lenient: JSON as models write it."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worlddb.models.lenient_json import NotJsonError, Parsed, parse, without_thoughts

STEADY = settings(max_examples=150, derandomize=True, deadline=None, database=None)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.text("ab\"'\\,:{}[]\n /#“”", max_size=12)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)
CONTAINERS = VALUES.filter(lambda value: isinstance(value, dict | list))


@STEADY
@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_valid_json_is_read_as_any_parser_reads_it(value: Any, ascii: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    assert parse(text) == Parsed(json.loads(text), True)
    assert repr(parse(text).value) == repr(json.loads(text))


@STEADY
@given(CONTAINERS, st.sampled_from(["```json\n{}\n```", "Sure:\n{}\nHope it helps!", "{}\n\n"]))
def test_valid_json_is_found_between_other_words(value: Any, around: str) -> None:
    text = around.replace("{}", json.dumps(value, indent=1), 1)
    assert parse(text) == Parsed(value, True)


@STEADY
@given(CONTAINERS)
def test_python_is_read_as_well(value: Any) -> None:
    assert parse(f"The answer: {value!r}") == Parsed(value, True)


@STEADY
@given(CONTAINERS, st.data())
def test_what_was_cut_is_a_part_of_the_whole(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = data.draw(st.integers(0, len(text) - 1))
    try:
        parsed = parse(text[:cut])
    except NotJsonError:
        return
    assert is_part(parsed.value, value) or not text[:cut].startswith(("{", "["))


def is_part(part: Any, whole: Any) -> bool:
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(part[key], whole[key]) for key in part)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and part == whole[: len(part)]
    return bool(part == whole)


@STEADY
@given(st.text() | st.text("{}[]\"':,\\\n 0aTruenull-.e“#/", max_size=60))
def test_arbitrary_text_raises_one_clear_error_or_none(text: str) -> None:
    with contextlib.suppress(NotJsonError):
        json.dumps(parse(text).value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': 'b'}", {"a": "b"}),
        ("{'a': 'it's Anna's', 'b': 1}", {"a": "it's Anna's", "b": 1}),
        ('{"a": "he said "no", twice", "b": 1}', {"a": 'he said "no", twice', "b": 1}),
        ('{"a": [1, 2,], "b": {"c": 3,},}', {"a": [1, 2], "b": {"c": 3}}),
        ('{"a": True, "b": None, "c": False}', {"a": True, "b": None, "c": False}),
        ('{"a": "one\ntwo\tthree"}', {"a": "one\ntwo\tthree"}),
        ('{a: 1, b_c: "x"}', {"a": 1, "b_c": "x"}),
        ('{"a": 1 // why\n, "b": 2 # because\n}', {"a": 1, "b": 2}),
        ('{"a": "x"\n "b": "y"}', {"a": "x", "b": "y"}),
        ('[{"a": 1} {"a": 2}]', [{"a": 1}, {"a": 2}]),
        ("{“a”: “b”}", {"a": "b"}),
        (r"{'a': '\u00e9\x41\'\ud83d\ude00'}", {"a": "éA'😀"}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('see [3]: {"facts": [1, 2]} and [4]', {"facts": [1, 2]}),
        ('<think>{"a": "no, wait"} hmm</think>\n{"a": 1}', {"a": 1}),
        ('{"code": "```py\\nx = {1}\\n```"} as asked', {"code": "```py\nx = {1}\n```"}),
        ("{'n': -1.5e3, 'm': .5, 'k': +7}", {"n": -1500.0, "m": 0.5, "k": 7}),
    ],
)
def test_slips_are_forgiven(text: str, value: Any) -> None:
    assert parse(text) == Parsed(value, True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"s": "x", "f": [{"t": "a"}, {"t": "b', {"s": "x", "f": [{"t": "a"}]}),
        ('{"s": "x", "f": [{"t": "a"}, {"t": "b", "d": 20', {"s": "x", "f": [{"t": "a"}]}),
        ('```json\n{"s": "x", "f": [', {"s": "x"}),
        ("[1, 2", [1]),
        ('{"a": 1, "b": oops, "c": 3}', {"a": 1}),
    ],
)
def test_of_what_breaks_off_the_whole_items_are_kept(text: str, value: Any) -> None:
    assert parse(text) == Parsed(value, False)


@pytest.mark.parametrize(
    "text", ["", "  ", "I cannot do that.", "{", "[[[", "so [many words]", "{}}"[2:]]
)
def test_where_there_is_none_the_error_shows_the_text(text: str) -> None:
    with pytest.raises(NotJsonError, match="there is no JSON in the reply"):
        parse(text)


@pytest.mark.parametrize("piece", ["[", "{", '"', "{'a':", '["a', '"//', '"#', "'", "[1,", "\\"])
def test_no_text_takes_long(piece: str) -> None:
    text = "{" + piece * (200_000 // len(piece))
    begun = time.process_time()
    with contextlib.suppress(NotJsonError):
        parse(text)
    assert time.process_time() - begun < 5


def test_thoughts_are_left_out() -> None:
    assert without_thoughts("<think>a\nb</think> The answer") == "The answer"
    assert without_thoughts("x <THINKING>never ended") == "x"
    assert without_thoughts("plain") == "plain"
