"""Access: names, origins, tokens and the file they are in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from worlddb.errors import FormatError, InvalidInputError, StorageError
from worlddb.faces.http.access_tokens import (
    Access,
    is_loopback,
    make_access,
    read_tokens,
    token_digest,
    token_file_warnings,
)
from worlddb.faces.http.http_server import address, welcome_text

from .serving import token

DIGEST = token_digest(b"a secret of some length").hex()


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:8765", "[::1]:80", "[::1]"]
)
def test_the_loopback_names_are_always_allowed(host: str) -> None:
    assert Access().allows_host(host)


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil@localhost"),
        *(
            "localhost:",
            "localhost:x",
            "localhost:80:80",
            "localhost:*",
            "127.0.0.2",
            "localhost\n",
        ),
        *("localhost evil", "http://localhost", "[::1", "0.0.0.0", "2130706433", "ｌocalhost"),
    ],
)
def test_any_other_name_is_not(host: str) -> None:
    assert not Access().allows_host(host)


def test_an_allowed_name_holds_for_any_port_unless_it_names_one() -> None:
    access = Access(hosts=("memory.example.org", "exact.example.org:443", "any.example.org:*"))
    assert access.allows_host("memory.example.org")
    assert access.allows_host("Memory.Example.org.:99")
    assert access.allows_host("exact.example.org:443")
    assert not access.allows_host("exact.example.org")
    assert not access.allows_host("exact.example.org:444")
    assert access.allows_host("any.example.org:1")
    assert not access.allows_host("x.memory.example.org")


def test_a_page_may_call_if_it_is_the_servers_own_or_was_allowed() -> None:
    access = make_access(host="127.0.0.1", tokens=(), allowed_origins=["https://App.example.org"])
    assert access.allows_origin("https://app.example.org", "localhost:1")
    assert access.allows_origin("http://localhost:1", "localhost:1")
    assert not access.allows_origin("http://localhost:2", "localhost:1")
    assert not access.allows_origin("null", "localhost:1")
    assert not access.allows_origin("https://app.example.org.evil", "localhost:1")
    assert not access.allows_origin("http://app.example.org", "localhost:1")


def test_only_what_stays_on_this_machine_is_loopback() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "192.168.1.1", "10.0.0.1"]))
    for host in ("nothing.invalid", "", "a b"):
        with pytest.raises(InvalidInputError, match="cannot be resolved"):
            is_loopback(host)


def test_a_server_that_others_reach_needs_a_token_and_names() -> None:
    with pytest.raises(InvalidInputError, match="needs a token"):
        make_access(host="0.0.0.0", tokens=(), allowed_hosts=["memory.lan"])
    with pytest.raises(InvalidInputError, match="--allowed-host"):
        make_access(host="0.0.0.0", tokens=[token("t" * 20, admin=True)])
    both = make_access(
        host="0.0.0.0", tokens=[token("t" * 20, admin=True)], allowed_hosts=["memory.lan"]
    )
    assert both.allows_host("memory.lan:8765")


@pytest.mark.parametrize("name", ["*", "", "a b", "http://x", "*.example.org", "x/y", "x:y"])
def test_a_name_that_would_allow_everything_or_nothing_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="allowed host"):
        make_access(host="127.0.0.1", tokens=(), allowed_hosts=[name])


@pytest.mark.parametrize("origin", ["*", "null", "example.org", "https://x/y", "https://a@b"])
def test_an_origin_has_a_scheme_and_a_name_and_nothing_else(origin: str) -> None:
    with pytest.raises(InvalidInputError, match="allowed origin"):
        make_access(host="127.0.0.1", tokens=(), allowed_origins=[origin])


def test_a_token_opens_until_it_expires() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    access = Access(tokens=(token("lasting"), token("passing", expires=now)))
    found = access.token_of(b"lasting", now)
    assert found is not None
    assert found.name == "lasting"
    assert access.token_of(b"passing", now - timedelta(seconds=1)) is not None
    assert access.token_of(b"passing", now) is None
    assert access.token_of(b"other", now) is None
    assert access.token_of(b"", now) is None


def test_the_file_of_tokens_says_what_each_opens(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(
        f"""
        [[token]]
        name = "ada's laptop"
        sha256 = "{DIGEST}"
        user_id = "ada"
        agent_id = ["a", "b"]
        expires = 2027-01-31T00:00:00+01:00
        read_only = true
        [[token]]
        value = "the-token-itself-in-plain-text"
        admin = true
        """
    )
    path.chmod(0o600)
    bound, admin = read_tokens(str(path))
    assert bound.bounds == {"user_id": ("ada",), "agent_id": ("a", "b")}
    assert bound.digest.hex() == DIGEST
    assert bound.expires == datetime(2027, 1, 30, 23, tzinfo=UTC)
    assert (bound.read_only, bound.admin) == (True, False)
    assert (admin.read_only, admin.admin, admin.bounds) == (False, True, {})
    assert Access(tokens=(bound, admin)).token_of(b"the-token-itself-in-plain-text") == admin
    assert token_file_warnings(str(path)) == []
    assert DIGEST not in repr(bound)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no tokens"),
        ("token = 5", r"begin each token with a line \[\[token\]\]"),
        ("[tokens]\nx = 1", r"begin each token with a line \[\[token\]\]"),
        ('[[token]]\nvalue = "x"', "give a scope"),
        ('[[token]]\nvalue = "x"\nuser_id = "a"\nadmin = true', "not both"),
        ('[[token]]\nuser_id = "a"', "either sha256 or value"),
        (f'[[token]]\nuser_id = "a"\nvalue = "x"\nsha256 = "{DIGEST}"', "either sha256 or value"),
        ('[[token]]\nuser_id = "a"\nsha256 = "abc"', "64 hexadecimal digits"),
        ('[[token]]\nuser_id = "a"\nvalue = "two words"', "printable ASCII"),
        ('[[token]]\nuser_id = "a"\nvalue = ""', "printable ASCII"),
        ('[[token]]\nuser_id = " "\nvalue = "x"', "token 1: user_id"),
        ('[[token]]\nuser_id = []\nvalue = "x"', "token 1: user_id"),
        ('[[token]]\nuser = "a"\nvalue = "x"', "'user' is not a key of a token"),
        ('[[token]]\nuser_id = "a"\nvalue = "x"\nexpires = 2027-01-31', "expires: write it as"),
        ('[[token]]\nuser_id = "a"\nvalue = "x"\nexpires = 2027-01-31T00:00:00', "expires"),
        (
            '[[token]]\nuser_id = "a"\nvalue = "x"\nread_only = "yes"',
            "read_only: give true or false",
        ),
    ],
)
def test_a_wrong_token_is_told_by_its_number(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=told):
        read_tokens(str(path))


def test_a_file_of_tokens_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file"):
        read_tokens(str(tmp_path / "nothing.toml"))
    path = tmp_path / "tokens.toml"
    for wrong in (b"\xff", b"[[token", b"a = " + b"[" * 5_000):
        path.write_bytes(wrong)
        with pytest.raises(FormatError, match="not TOML"):
            read_tokens(str(path))
    path.write_text('[[token]]\nvalue = "short"\nuser_id = "a"')
    path.chmod(0o644)
    assert [doubt.partition(": ")[2] for doubt in token_file_warnings(str(path))] == [
        "other users of this machine can read it; run chmod 600 on it",
        "a token is shorter than 16 characters",
    ]


def test_two_tokens_of_one_value_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="two tokens have the same value"):
        make_access(host="127.0.0.1", tokens=[token("x", admin=True), token("x", admin=True)])


def test_what_is_announced_is_an_address_that_works_and_no_token() -> None:
    assert address("127.0.0.1", 1) == "http://127.0.0.1:1"
    assert address("::1", 1) == "http://[::1]:1"
    assert address("0.0.0.0", 1, ("memory.lan",)) == "http://memory.lan:1"
    assert address("0.0.0.0", 1, ("memory.lan:80",)) == "http://memory.lan:80"
    assert "Bearer" not in welcome_text("http://x", "m.db", with_tokens=False)
    assert "Bearer $WORLDDB_TOKEN" in welcome_text("http://x", "m.db", with_tokens=True)
