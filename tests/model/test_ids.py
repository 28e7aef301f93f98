"""Id: 32 bytes that print as hex, and the prefixes that stand for one."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import worlddb
from worlddb import Id, InvalidInputError
from worlddb.model.address import parse_prefix

HEX = "0123456789abcdef" * 4


def test_an_id_is_the_same_from_bytes_and_from_hex() -> None:
    assert Id(HEX) == Id(bytes.fromhex(HEX)) == bytes.fromhex(HEX)
    assert Id(Id(HEX)) == Id(HEX)
    assert Id(HEX.upper()) == Id(HEX)
    assert hash(Id(HEX)) == hash(bytes.fromhex(HEX))
    assert {Id(HEX): 1}[bytes.fromhex(HEX)] == 1  # type: ignore[index]


def test_an_id_prints_as_hex_and_its_repr_makes_it_again() -> None:
    ident = Id(HEX)
    assert str(ident) == f"{ident}" == HEX
    assert f"{ident:.6}|{ident:>66}" == f"{HEX[:6]}|  {HEX}"
    assert eval(repr(ident)) == ident
    assert ident.short == HEX[:12]
    assert pickle.loads(pickle.dumps(ident)) == ident


@settings(deadline=None, derandomize=True, database=None)
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_ids_order_as_their_bytes_do(one: bytes, other: bytes) -> None:
    assert (Id(one) < Id(other)) == (one < other) == (str(Id(one)) < str(Id(other)))
    assert Id(str(Id(one))) == one


@pytest.mark.parametrize(
    "bad",
    [b"", b"short", bytes(31), bytes(33), "", "ab", HEX[:-1], HEX + "00", "zz" * 32, "é" * 64],
)
def test_what_is_no_id_is_refused(bad: bytes | str) -> None:
    with pytest.raises(InvalidInputError, match=r"hexadecimal|32 bytes"):
        Id(bad)


@pytest.mark.parametrize("bad", [None, 5, 32, 1.5, [1] * 32, range(32), {}, object(), True])
def test_an_id_of_another_kind_is_refused_as_wrong_input(bad: Any) -> None:
    with pytest.raises(InvalidInputError):
        Id(bad)


@pytest.mark.parametrize("bad", ["ab " * 32, f" {HEX[:-2]} ff", HEX[:32] + " " + HEX[32:]])
def test_hex_with_gaps_is_no_id(bad: str) -> None:
    with pytest.raises(InvalidInputError):
        Id(bad)


def test_a_prefix_has_4_to_64_digits_and_any_case() -> None:
    assert parse_prefix(" ABCD ") == "abcd"
    assert parse_prefix(HEX) == HEX
    for bad, hint in (
        ("abc", "at least 4"),
        ("", "at least 4"),
        ("   ", "at least 4"),
        (HEX + "0", "64 digits"),
        ("ab cd", "hexadecimal"),
        ("wxyz", "hexadecimal"),
        ("0x12ab", "hexadecimal"),
        ("-1234", "hexadecimal"),
        ("１２３４", "hexadecimal"),
        ("ab\0cd", "hexadecimal"),
        ("abcd\ud800", "hexadecimal"),
    ):
        with pytest.raises(InvalidInputError, match=hint):
            parse_prefix(bad)


def test_the_root_id_is_an_id() -> None:
    with worlddb.open(":memory:") as db:
        assert isinstance(db.root_id, Id)
        assert isinstance(db.root_state, Id)
        assert isinstance(db.log()[0].hash, Id)
